"""The folder of a run: reserved for one run at a time, until all files of a release are written."""

import os
import re
import shutil
import tempfile
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from sklearn_dptda._cli._terminal import tell
from sklearn_dptda.privacy._ledger_stores import shown_location

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# Free disk space in bytes that a run needs before it pays. The files of most releases are smaller.
_NEEDED_BYTES = 1 << 20

# File with the public name of a run, in the folder of unfinished files. Under this name an
# interrupted run is continued. It is deleted as soon as the release is written.
NAME = "name"
# Ledger of a run without one, which makes the run known to itself when it is continued.
LEDGER = "ledger.db"
# File that is locked while a run is active.
_LOCK = "lock"
# File that says which ledger a run pays into.
_PAYER = "ledger"
# File with the digests of the complete files of a run, written before the first of them is moved.
_COMPLETE = "complete"
_KEPT = (NAME, LEDGER, _LOCK, _PAYER, _COMPLETE)
# Suffix of an earlier release while the new one is moved to its place.
_EARLIER = ".old"


@contextmanager
def reserved(out, files, force, resumes):
    """Create the hidden folder in which the results are written, by one run at a time.

    Creating a folder is atomic, so only one of several runs succeeds. If a run is interrupted
    after its payment, the folder remains, and ``--resume`` continues under the name in it.
    """
    beside = folder_beside(out, files)
    if resumes and not (beside / NAME).exists():
        raise ValueError(
            f"--resume: there is no interrupted run in {out} that has paid. Leave --resume out."
        )
    try:
        beside.mkdir(exist_ok=resumes)
    except FileExistsError:
        raise begun(beside) from None
    lock = _locked(beside)
    try:
        # A run may have been killed after it had moved an earlier file away.
        for name in files:
            if (beside / f"{name}{_EARLIER}").exists() and not os.path.lexists(out / name):
                os.replace(beside / f"{name}{_EARLIER}", out / name)
        # Another run may have written its release since the first check.
        refuse_overwriting(out, files, force)
        room = beside / "room"
        try:
            room.write_bytes(bytes(_NEEDED_BYTES))
        except OSError as error:
            raise ValueError(
                f"--out: {out} has no room for a release ({error.strerror})."
            ) from None
        room.unlink()
        yield beside
    finally:
        if not (beside / NAME).exists():
            shutil.rmtree(beside, ignore_errors=True)
        elif beside.is_dir():
            # Incomplete files are of no use and are deleted.
            for file in beside.iterdir():
                kept = (
                    file.name in (NAME, LEDGER, _LOCK, _PAYER, _COMPLETE) or file.suffix == _EARLIER
                )
                if not kept:
                    file.unlink()
        lock.close()


def refuse_another_ledger(beside, path, resumes):
    """Remember the ledger of a run, and refuse to continue the run with another one."""
    payer, kept = place_of(path), beside / _PAYER
    if resumes and kept.exists() and kept.read_text(encoding="utf-8") != payer:
        raise ValueError(
            f"the interrupted run in {beside.parent} had another ledger, or none. Nothing was "
            "charged. Repeat the original command with --resume."
        )
    kept.write_text(payer, encoding="utf-8")


def place_of(path):
    """Return the place of a ledger, without the user and the password of a server."""
    if path is None:
        return "no ledger"
    if "://" not in path:
        return os.path.realpath(path)
    # Another user may continue the run.
    return re.sub("//.*@", "//", shown_location(path))


def folder_beside(out, files):
    """Return the hidden folder of unfinished files."""
    return out / f".{files[0]}.part"


def begun(beside):
    remedy = "delete the folder. It contains no release that was paid for."
    if (beside / NAME).exists():
        remedy = (
            "continue it with --resume, or delete the folder. Deleting it forfeits the release if "
            "it was paid for."
        )
    return ValueError(
        f"{beside} exists: another run is making this release. If there is no other run, an "
        f"earlier one was interrupted: {remedy}"
    )


def _locked(beside):
    """Return a file that is locked while this run is active, if the system has such locks."""
    file = (beside / _LOCK).open("w")
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise ValueError(
                f"{beside} is locked: another run is making this release. Wait until it has ended."
            ) from None
    return file


def refuse_overwriting(out, files, force):
    """Refuse to overwrite files, unless an interrupted run of this release has moved them here."""
    complete = folder_beside(out, files) / _COMPLETE
    own = complete.read_text(encoding="utf-8").splitlines() if complete.exists() else []
    earlier = [out / name for name in files if os.path.lexists(out / name)]
    blocked = [path for path in earlier if not path.is_file()]
    if blocked:
        raise ValueError(
            f"{blocked[0]} is not a file, so the release cannot be written there. Move it, or "
            "choose another folder with -o."
        )
    foreign = [path for path in earlier if not force and _line_of(path) not in own]
    if foreign:
        raise ValueError(
            f"{foreign[0]} contains an earlier release, which was paid for. --force overwrites it; "
            "-o chooses another folder."
        )


def _line_of(path):
    """Return the digest and the name of a file."""
    return f"{sha256(path.read_bytes()).hexdigest()}  {path.name}"


def write_all(release, beside, result):
    """Write all files or none, and return their folder.

    If the files cannot be written to the intended folder, they are written to a temporary one.
    """
    out = beside.parent
    try:
        release.write(beside, result)
        for name in release.files:
            with (beside / name).open("rb+") as file:
                os.fsync(file.fileno())
        # A resumed run writes other bytes if a format contains a time, so that lines are added.
        with (beside / _COMPLETE).open("a", encoding="utf-8") as file:
            file.writelines(f"{_line_of(beside / name)}\n" for name in release.files)
        _move(beside, out, release.files)
    except Exception as error:
        # The release must not be lost, and libraries raise various errors when a disk is full.
        other = Path(tempfile.mkdtemp(prefix="dptda-out-"))
        try:
            release.write(other, result)
        except BaseException:
            shutil.rmtree(other, ignore_errors=True)
            raise
        tell(f"note: written to {other} instead of {out}: {error}")
        return other
    return out


def _move(beside, out, files):
    """Move all files to their folder; if one cannot be moved, restore the earlier files."""
    try:
        for name in files:
            if (out / name).exists():
                os.replace(out / name, beside / f"{name}{_EARLIER}")
            os.replace(beside / name, out / name)
    except BaseException:
        for name in files:
            if not (beside / name).exists():
                os.replace(out / name, beside / name)
            if (beside / f"{name}{_EARLIER}").exists():
                os.replace(beside / f"{name}{_EARLIER}", out / name)
        raise
