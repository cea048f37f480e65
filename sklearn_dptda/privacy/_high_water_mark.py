"""What this user has seen of a ledger, kept apart from it: a backup of the ledger has seen less.

A ledger has a folder, and in it a small file whose name is the number of payments. Marks are
added and never changed, so that writers need no lock: the highest one counts. A mark is written
before the payments that it tells of are committed, and gets its name afterwards: whatever dies in
between leaves a mark that lags behind its ledger, by payments whose releases were never drawn.
"""

import errno
import os
import sys
import uuid
from contextlib import contextmanager, suppress

from sklearn_dptda.privacy._warnings import warn_caller


@contextmanager
def noting():
    """Yield a function that prepares a mark; marks count once the block has ended well."""
    prepared = []

    def note(ledger_id, number, text, make=False):
        """Prepare the mark of a number of payments; ``make`` begins to keep marks of the ledger."""
        folder = _folder(ledger_id)
        if _numbers(folder)[-1:] >= [number] or not (make or os.path.isdir(folder)):
            return
        new = os.path.join(folder, f"{number}.{uuid.uuid4().hex}")
        with _said(folder):
            if not os.path.isabs(folder):
                raise FileNotFoundError(errno.ENOENT, "this user has no home")
            os.makedirs(folder, mode=0o700, exist_ok=True)
            with open(new, "x", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                # What has a name is whole, also after a power failure.
                os.fsync(file.fileno())
            prepared.append((new, folder, str(number)))

    yield note
    for new, folder, name in prepared:
        with _said(folder):
            # Who has gone beyond this mark meanwhile has cleared it away.
            with suppress(FileNotFoundError):
                os.replace(new, os.path.join(folder, name))
            _clear(folder)


def last_mark(ledger_id):
    """Place and text of the highest mark, or None."""
    folder = _folder(ledger_id)
    for _ in range(3):
        numbers = _numbers(folder)
        if not numbers:
            break
        place = os.path.join(folder, str(numbers[-1]))
        # It is gone where two higher ones have come meanwhile.
        with suppress(FileNotFoundError), open(place, encoding="utf-8", errors="replace") as file:
            return repr(place), file.read()
    return None


@contextmanager
def _said(folder):
    """Go on without marks where there can be none, but not in silence."""
    try:
        yield
    except OSError as error:
        warn_caller(
            f"What is paid cannot be noted in {folder!r} ({error.strerror}): a backup that is "
            "restored in place of this ledger will not be noticed. The environment variable "
            "XDG_STATE_HOME names another folder.",
            RuntimeWarning,
        )


def _folder(ledger_id):
    """Where this system keeps what programs remember for a user."""
    place = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(place):
        places = {"win32": "~/AppData/Local", "darwin": "~/Library/Application Support"}
        place = os.path.expanduser(places.get(sys.platform, "~/.local/state"))
    return os.path.join(place, "sklearn_dptda", "ledgers", ledger_id)


def _numbers(folder):
    """Numbers of the marks, from the lowest."""
    with suppress(OSError):
        return sorted(int(name) for name in os.listdir(folder) if name.isdecimal())
    return []


def _clear(folder):
    """Remove what is below the two highest marks: who lists the folder meanwhile finds one."""
    lowest = min(_numbers(folder)[-2:], default=0)
    for name in os.listdir(folder):
        number = name.partition(".")[0]
        if number.isdecimal() and int(number) < lowest:
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, name))
