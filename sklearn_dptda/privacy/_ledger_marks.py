"""Marks outside of a ledger: the last state that a user has seen.

A restored backup is noticed by its mark. A mark is a small file whose name is the number of
payments. Marks are added and never changed, so that writers need no lock, and the highest mark is
valid. A mark is written before its payments are committed and gets its name afterwards. If a
program ends in between, the mark lags only by payments whose releases were never drawn.
"""

import errno
import json
import os
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sklearn_dptda.privacy._warnings import warn_caller


@contextmanager
def noting() -> Iterator[Callable[..., None]]:
    """Yield a function that prepares a mark; marks become valid if the block ends without error."""
    prepared = []

    def note(ledger_id: str, account: dict[str, Any], make: bool = False) -> None:
        """Prepare the mark of an account; ``make`` creates the folder for marks of its ledger."""
        folder, number = folder_of(ledger_id), account["number"]
        if _numbers(folder)[-1:] >= [number] or not (make or os.path.isdir(folder)):
            return
        new = os.path.join(folder, f"{number}.{uuid.uuid4().hex}")
        with _warning_if_not_written(folder):
            if not os.path.isabs(folder):
                raise FileNotFoundError(errno.ENOENT, "this user has no home directory")
            os.makedirs(folder, mode=0o700, exist_ok=True)
            with open(new, "x", encoding="utf-8") as file:
                file.write(json.dumps(account))
                file.flush()
                # A file with the name of a mark must be complete, even after a power failure.
                os.fsync(file.fileno())
            prepared.append((new, folder, str(number)))

    yield note
    for new, folder, name in prepared:
        with _warning_if_not_written(folder):
            # Another process may have set a higher mark in the meantime and removed this one.
            with suppress(FileNotFoundError):
                os.replace(new, os.path.join(folder, name))
            _clear(folder)


def last_mark(ledger_id: str) -> tuple[str, str] | None:
    """Return place and text of the highest mark, or None."""
    folder = folder_of(ledger_id)
    for _ in range(3):
        numbers = _numbers(folder)
        if not numbers:
            break
        place = os.path.join(folder, str(numbers[-1]))
        # The file is missing if two higher marks were set in the meantime.
        with suppress(FileNotFoundError), open(place, encoding="utf-8", errors="replace") as file:
            return repr(place), file.read()
    return None


@contextmanager
def _warning_if_not_written(folder: str) -> Iterator[None]:
    """Warn and continue if no mark can be written."""
    try:
        yield
    except OSError as error:
        warn_caller(
            f"The state of the ledger cannot be recorded in {folder!r} ({error.strerror}). If a "
            "backup is restored in place of this ledger, it will not be noticed. Set the "
            "environment variable XDG_STATE_HOME to use another folder.",
            RuntimeWarning,
        )


def folder_of(ledger_id: str) -> str:
    """Return the folder of the marks of a ledger, where the system keeps the state of programs."""
    place = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(place):
        places = {"win32": "~/AppData/Local", "darwin": "~/Library/Application Support"}
        place = os.path.expanduser(places.get(sys.platform, "~/.local/state"))
    return os.path.join(place, "sklearn_dptda", "ledgers", ledger_id)


def _numbers(folder: str) -> list[int]:
    """Return the numbers of the marks in increasing order."""
    with suppress(OSError):
        return sorted(int(name) for name in os.listdir(folder) if name.isdecimal())
    return []


def _clear(folder: str) -> None:
    """Remove all but the two highest marks. A concurrent reader of the folder still finds one."""
    lowest = min(_numbers(folder)[-2:], default=0)
    for name in os.listdir(folder):
        number = name.partition(".")[0]
        if number.isdecimal() and int(number) < lowest:
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, name))
