"""The folder of a run: one run at a time, under a name, until what it paid for is written."""

import os
import shutil
import tempfile
import uuid
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path

from sklearn_dptda._cli._terminal import tell
from sklearn_dptda.privacy import PrivacyLedgerError
from sklearn_dptda.privacy._ledger import AnotherRelease
from sklearn_dptda.privacy._release_key import payment_of

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# Free disk space in bytes that a run needs before it pays. The files of most releases are smaller.
_NEEDED_BYTES = 1 << 20

# File with the public name of a run, which is locked while the run is active. Under this name an
# interrupted run is continued. It is deleted as soon as the release is written.
_NAME = "name"
# Ledger of a run without one, which makes the run known to itself when it is continued.
_LEDGER = "ledger.db"
# File with the digests of the complete files of a run, written before the first of them is moved.
_COMPLETE = "complete"


class RunFolder:
    """The hidden folder of a run, beside the place of the results.

    The ledger knows, under the public name in the folder, whether the run has paid, and draws the
    same release when the run is continued. The folder is deleted when there is nothing to continue.
    ``loss`` is the cost of the run in words.
    """

    def __init__(self, out, files, loss):
        self.out, self.files, self._loss = Path(out), files, loss
        self.hidden = self.out / f".{files[0]}.part"
        # What was spent as far as the ledger knows; empty if nothing was.
        self._spent = ""

    @property
    def _is_unfinished(self):
        """Whether the folder has the name of a run, which may have paid."""
        return (self.hidden / _NAME).exists()

    @contextmanager
    def reported(self):
        """Say in messages about errors and interrupts what the run has spent."""
        try:
            yield
        except KeyboardInterrupt:
            raise KeyboardInterrupt(self._message() or "nothing was spent") from None
        except Exception:
            if message := self._message():
                tell(f"note: {message}")
            raise

    def _message(self):
        if not self._spent or not self._is_unfinished:
            return self._spent and f"{self._spent}, and the release is complete"
        return (
            f"{self._spent}. Run the same command with --resume to continue; it pays nothing more"
        )

    @contextmanager
    def reserved(self, accountant_of, force, resumes):
        """Yield the accountant of the run, and this accountant under the name of the run.

        ``accountant_of`` returns the accountant, given a path for the ledger of a run without one.
        Creating a folder is atomic, so only one of several runs succeeds. The folder remains if
        the run has paid, and is interrupted before its release is written.
        """
        if resumes and not self._is_unfinished:
            raise ValueError(
                f"--resume: there is no interrupted run in {self.out} that has paid. Leave "
                "--resume out."
            )
        try:
            self.hidden.mkdir(exist_ok=resumes)
        except FileExistsError:
            raise self._begun() from None
        accountant, name, is_over = None, "", False
        with (self.hidden / _NAME).open("a+", encoding="utf-8") as file:
            try:
                self._lock(file)
                # Another run may have written its release since the first check.
                self.refuse_overwriting(force)
                self._refuse_full_disk()
                accountant = accountant_of(self.hidden / _LEDGER, resumes)
                name = _name_in(file)
                if resumes and not (accountant and _is_paid(accountant, name)):
                    raise ValueError(
                        f"the interrupted run in {self.out} has paid nothing into this ledger: it "
                        "had another ledger, or none. Nothing was charged. Repeat the original "
                        "command with --resume. If this is the original command, the run had not "
                        f"paid: delete {self.hidden}."
                    )
                yield accountant, accountant.under(name)
                self._spent, is_over = f"{self._loss} was spent", True
            except AnotherRelease:
                raise ValueError(self._another_release(accountant, name)) from None
            except BaseException:
                # A second Ctrl-C must not delete the name of a release that was paid for.
                self._look(accountant, name)
                is_over = not (resumes or self._spent)
                raise
            finally:
                if is_over:
                    self._delete(file, accountant)

    def _lock(self, file):
        """Lock the file while this run is active, if the system has such locks."""
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ValueError(
                    f"{self.hidden} is locked: another run is making this release. Wait until it "
                    "has ended."
                ) from None

    def _look(self, accountant, name):
        """Ask the ledger whether the release was paid for."""
        try:
            paid = accountant is not None and _is_paid(accountant, name)
        except PrivacyLedgerError:
            self._spent = f"{self._loss} may have been spent"
        else:
            self._spent = f"{self._loss} was spent" * paid

    def _delete(self, file, accountant):
        """Delete the folder, and the secret of the ledger in it, which is of no use without it."""
        if fcntl is None:
            # Windows deletes no file that is open.
            file.close()
        (self.hidden / _NAME).unlink(missing_ok=True)
        if (self.hidden / _LEDGER).exists() and accountant is not None:
            accountant._ledger.forget()
        shutil.rmtree(self.hidden, ignore_errors=True)

    def refuse_unfinished(self):
        """Refuse to begin a run while another one may have paid for the same files."""
        if self._is_unfinished:
            raise self._begun()

    def _begun(self):
        remedy = "delete the folder. It contains no release that was paid for."
        if self._is_unfinished:
            remedy = (
                "continue it with --resume, or delete the folder. Deleting it forfeits the release "
                "if it was paid for."
            )
        return ValueError(
            f"{self.hidden} exists: another run is making this release. If there is no other run, "
            f"an earlier one was interrupted: {remedy}"
        )

    def _another_release(self, accountant, name):
        """Return why an interrupted run is not continued, and what can be done."""
        remedy = "To make a new release, which is paid for again, choose another folder with -o."
        (paid,) = (each for each in accountant.releases() if each.key == payment_of(name, 1))
        if paid.size is not None:
            remedy = (
                "The ledger has stored what was paid for: 'sklearn-dptda ledger "
                f"{accountant.path} --release {paid.number}' writes it. {remedy}"
            )
        return (
            f"the interrupted run in {self.out} is not continued. It had other options or another "
            "file, or another version of this package or another user, with another secret, made "
            "it. Nothing was charged. Repeat the original command with --resume, as the same user "
            f"and with the same version. {remedy}"
        )

    def _refuse_full_disk(self):
        room = self.hidden / "room"
        try:
            room.write_bytes(bytes(_NEEDED_BYTES))
        except OSError as error:
            raise ValueError(
                f"--out: {self.out} has no room for a release ({error.strerror})."
            ) from None
        finally:
            room.unlink(missing_ok=True)

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
            with tempfile.TemporaryDirectory(dir=self.hidden) as folder:
                parts = [Path(folder, name) for name in self.files]
                for part in parts:
                    write(part)
                    with part.open("rb+") as file:
                        os.fsync(file.fileno())
                # A resumed run writes other bytes if a format contains a time: lines are added.
                with (self.hidden / _COMPLETE).open("a", encoding="utf-8") as file:
                    file.writelines(f"{_line_of(part)}\n" for part in parts)
                self._move(parts)
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

    def _move(self, parts):
        """Move all files to their folder; if one cannot be moved, restore the earlier files."""
        with ExitStack() as undo:
            for part in parts:
                place, earlier = self.out / part.name, part.with_name(f"{part.name}.old")
                if place.exists():
                    # The place is never empty, even if the run is killed.
                    shutil.copy2(place, earlier, follow_symlinks=False)
                os.replace(part, place)
                undo.callback(
                    os.replace, *((earlier, place) if earlier.exists() else (place, part))
                )
            undo.pop_all()


def _name_in(file):
    """Return the public name in the file of a run, which is chosen if there is none."""
    file.seek(0)
    if not (name := file.read()):
        file.write(name := uuid.uuid4().hex)
        file.flush()
        os.fsync(file.fileno())
    return name


def _is_paid(accountant, name):
    return accountant._ledger.is_paid(payment_of(name, 1))


def _line_of(path):
    """Return the digest and the name of a file."""
    return f"{sha256(path.read_bytes()).hexdigest()}  {path.name}"
