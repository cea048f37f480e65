"""A line about what takes long."""

import sys
import threading
from contextlib import contextmanager

_SECONDS = 2.0


@contextmanager
def slow(what):
    """Say on stderr what is going on, if it takes more than two seconds."""
    timer = threading.Timer(_SECONDS, print, [f"{what} ..."], {"file": sys.stderr, "flush": True})
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
