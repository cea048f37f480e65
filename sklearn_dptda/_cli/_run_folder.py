"""The folder of a run: reserved for one run at a time, until all files of a release are written."""

import os
import re
import shutil
import tempfile
import uuid
from contextlib import contextmanager, suppress
from hashlib import sha256
from math import inf
from pathlib import Path

from sklearn_dptda._cli._terminal import tell
from sklearn_dptda.privacy import PrivacyAccountant
from sklearn_dptda.privacy._ledger_stores import shown_location
from sklearn_dptda.privacy._whole_file import whole_file

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# Free disk space in bytes that a run needs before it pays. The files of most releases are smaller.
_NEEDED_BYTES = 1 << 20

# File with the public name of a run, in the folder of unfinished files. Under this name an
# interrupted run is continued. It is deleted as soon as the release is written.
_NAME = "name"
# Ledger of a run without one, which makes the run known to itself when it is continued.
_LEDGER = "ledger.db"
# File that is locked while a run is active.
_LOCK = "lock"
# File that says which ledger a run pays into.
_PAYER = "ledger"
# File with the digests of the complete files of a run, written before the first of them is moved.
_COMPLETE = "complete"
_KEPT = (_NAME, _LEDGER, _LOCK, _PAYER, _COMPLETE)
# Suffix of an earlier release while the new one is moved to its place.
_EARLIER = ".old"


class RunFolder:
    """The hidden folder in which a run writes its files, beside the place of the results."""

    def __init__(self, out, files):
        self.out, self.files = Path(out), files
        self.hidden = self.out / f".{files[0]}.part"
        self._own_ledger = None

    @property
    def is_unfinished(self):
        """Whether the folder has the name of a run, which may have paid."""
        return (self.hidden / _NAME).exists()

    @contextmanager
    def reserved(self, ledger, force, resumes):
        """Create the folder, by one run at a time; ``ledger`` is the path of the one that pays.

        Creating a folder is atomic, so only one of several runs succeeds. If a run is interrupted
        after its payment, the folder remains, and ``--resume`` continues under the name in it.
        """
        if resumes and not self.is_unfinished:
            raise ValueError(
                f"--resume: there is no interrupted run in {self.out} that has paid. Leave "
                "--resume out."
            )
        try:
            self.hidden.mkdir(exist_ok=resumes)
        except FileExistsError:
            raise self._begun() from None
        lock = _locked(self.hidden / _LOCK)
        try:
            # A run may have been killed after it had moved an earlier file away.
            for name in self.files:
                earlier = self._earlier(name)
                if earlier.exists() and not os.path.lexists(self.out / name):
                    os.replace(earlier, self.out / name)
            # Another run may have written its release since the first check.
            self.refuse_overwriting(force)
            self._refuse_full_disk()
            self._refuse_another_ledger(place_of(ledger), resumes)
            yield
        finally:
            if not self.is_unfinished:
                self._delete()
            elif self.hidden.is_dir():
                # Incomplete files are of no use and are deleted.
                for file in self.hidden.iterdir():
                    if file.name not in _KEPT and file.suffix != _EARLIER:
                        file.unlink()
            lock.close()

    def _delete(self):
        """Delete the folder, and the secret of the ledger in it, which is of no use without it."""
        if self._own_ledger is not None:
            self._own_ledger._ledger.forget()
        shutil.rmtree(self.hidden, ignore_errors=True)

    def ledger(self):
        """Return the ledger of a run without one, which counts without limit."""
        path = self.hidden / _LEDGER
        opened = PrivacyAccountant.open if path.exists() else PrivacyAccountant
        self._own_ledger = opened(path=path, epsilon=inf, keep=0)
        return self._own_ledger

    def take_name(self):
        """Return the public name of the run, which is chosen if there is none."""
        path = self.hidden / _NAME
        with suppress(FileExistsError), whole_file(str(path)) as temporary:
            Path(temporary).write_text(uuid.uuid4().hex, encoding="utf-8")
        return path.read_text(encoding="utf-8")

    def delete_name(self):
        """Delete the name: the run has ended, with its release or without a payment."""
        (self.hidden / _NAME).unlink(missing_ok=True)

    def refuse_unfinished(self):
        """Refuse to begin a run while another one may have paid for the same files."""
        if self.is_unfinished:
            raise self._begun()

    def _begun(self):
        remedy = "delete the folder. It contains no release that was paid for."
        if self.is_unfinished:
            remedy = (
                "continue it with --resume, or delete the folder. Deleting it forfeits the release "
                "if it was paid for."
            )
        return ValueError(
            f"{self.hidden} exists: another run is making this release. If there is no other run, "
            f"an earlier one was interrupted: {remedy}"
        )

    def _earlier(self, name):
        """Return the place of an earlier file while the new one is moved to its place."""
        return self.hidden / f"{name}{_EARLIER}"

    def _refuse_full_disk(self):
        room = self.hidden / "room"
        try:
            room.write_bytes(bytes(_NEEDED_BYTES))
        except OSError as error:
            raise ValueError(
                f"--out: {self.out} has no room for a release ({error.strerror})."
            ) from None
        room.unlink()

    def _refuse_another_ledger(self, payer, resumes):
        """Remember the ledger of a run, and refuse to continue the run with another one."""
        kept = self.hidden / _PAYER
        if resumes and kept.exists() and kept.read_text(encoding="utf-8") != payer:
            raise ValueError(
                f"the interrupted run in {self.out} had another ledger, or none. Nothing was "
                "charged. Repeat the original command with --resume."
            )
        kept.write_text(payer, encoding="utf-8")

    def refuse_overwriting(self, force):
        """Refuse to overwrite files, unless an interrupted run of this release moved them here."""
        complete = self.hidden / _COMPLETE
        own = complete.read_text(encoding="utf-8").splitlines() if complete.exists() else []
        for path in (self.out / name for name in self.files):
            if not os.path.lexists(path):
                continue
            if not path.is_file():
                raise ValueError(
                    f"{path} is not a file, so the release cannot be written there. Move it, or "
                    "choose another folder with -o."
                )
            if not force and _line_of(path) not in own:
                raise ValueError(
                    f"{path} contains an earlier release, which was paid for. --force overwrites "
                    "it; -o chooses another folder."
                )

    def write_all(self, write):
        """Write all files or none by the function ``write(path)``, and return their folder.

        If the files cannot be written to the intended folder, they are written to a temporary one.
        """
        try:
            for name in self.files:
                write(self.hidden / name)
                with (self.hidden / name).open("rb+") as file:
                    os.fsync(file.fileno())
            # A resumed run writes other bytes if a format contains a time, so that lines are added.
            with (self.hidden / _COMPLETE).open("a", encoding="utf-8") as file:
                file.writelines(f"{_line_of(self.hidden / name)}\n" for name in self.files)
            self._move()
        except Exception as error:
            # The release must not be lost, and libraries raise various errors when a disk is full.
            other = Path(tempfile.mkdtemp(prefix="dptda-out-"))
            try:
                for name in self.files:
                    write(other / name)
            except BaseException:
                shutil.rmtree(other, ignore_errors=True)
                raise
            tell(f"note: written to {other} instead of {self.out}: {error}")
            return other
        return self.out

    def _move(self):
        """Move all files to their folder; if one cannot be moved, restore the earlier files."""
        try:
            for name in self.files:
                if (self.out / name).exists():
                    os.replace(self.out / name, self._earlier(name))
                os.replace(self.hidden / name, self.out / name)
        except BaseException:
            for name in self.files:
                if not (self.hidden / name).exists():
                    os.replace(self.out / name, self.hidden / name)
                if self._earlier(name).exists():
                    os.replace(self._earlier(name), self.out / name)
            raise


def place_of(ledger):
    """Return the place of a ledger, without the user and the password of a server."""
    if ledger is None:
        return "no ledger"
    if "://" not in ledger:
        return os.path.realpath(ledger)
    # Another user may continue the run.
    return re.sub("//.*@", "//", shown_location(ledger))


def _locked(path):
    """Return a file that is locked while this run is active, if the system has such locks."""
    file = path.open("w")
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise ValueError(
                f"{path.parent} is locked: another run is making this release. Wait until it has "
                "ended."
            ) from None
    return file


def _line_of(path):
    """Return the digest and the name of a file."""
    return f"{sha256(path.read_bytes()).hexdigest()}  {path.name}"
