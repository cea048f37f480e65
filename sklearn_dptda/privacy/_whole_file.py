"""Files that are complete as soon as they have their name, even after a crash or on a full disk.

Ledgers, their secrets and stored releases are written under a temporary name in the same folder,
and are named at the end. If a program ends in between, the temporary file remains. It blocks
nothing and can be deleted.
"""

import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_TEMPORARY = re.compile(r"\.sklearn_dptda-[0-9a-f]{32}")


@contextmanager
def whole_file(path: str, mode: int = 0o600, overwrite: bool = False) -> Iterator[str]:
    """Yield the temporary name of an empty file, which is named ``path`` if the block succeeds.

    Unless ``overwrite`` is set, nothing may exist at ``path``: of several programs that create a
    file at once, one succeeds, and the others raise FileExistsError.
    """
    if not overwrite and os.path.lexists(path):
        raise FileExistsError(f"{path} exists.")
    folder = os.path.dirname(os.path.abspath(path))
    temporary = os.path.join(folder, f".sklearn_dptda-{uuid.uuid4().hex}")
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        if overwrite:
            os.replace(temporary, path)
        else:
            _name(temporary, path)
    finally:
        # The file may have lost this name already.
        with suppress(OSError):
            os.unlink(temporary)
    sync_folder(folder)


def _name(temporary: str, path: str) -> None:
    """Rename a file, and raise FileExistsError instead of overwriting another one."""
    if os.name == "nt":
        # On Windows, this overwrites nothing.
        os.rename(temporary, path)
        return
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:
        # Some file systems, such as FAT, have no links. An empty file reserves the name.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        os.replace(temporary, path)


def forget_temporary_name(path: str) -> None:
    """Remove the temporary name of a file whose creation ended while it had both names."""
    path = os.path.realpath(path)
    with suppress(OSError), os.scandir(os.path.dirname(path)) as entries:
        for entry in entries:
            if _TEMPORARY.fullmatch(entry.name) and os.path.samefile(entry.path, path):
                os.unlink(entry.path)


def sync_folder(folder: str) -> None:
    """Write the names of files in a folder to disk, so that they survive a power failure."""
    # Some file systems cannot do this. The files are complete nevertheless.
    with suppress(OSError):
        if os.name == "posix":
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
