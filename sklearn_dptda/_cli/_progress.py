"""A line about what takes long."""

import sys
import threading
import time
from contextlib import contextmanager

# Until the first line, and between further ones.
_SECONDS, _AGAIN = 2.0, 5.0


@contextmanager
def slow(what):
    """Say on stderr what is going on after two seconds, and then every five."""
    done = threading.Event()
    teller = threading.Thread(target=_tell, args=(what, done), daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()


def _tell(what, done):
    start = time.monotonic()
    if done.wait(_SECONDS):
        return
    print(f"{what} ...", file=sys.stderr, flush=True)
    while not done.wait(_AGAIN):
        elapsed = time.monotonic() - start
        print(f"{what} ... {elapsed:.0f} s", file=sys.stderr, flush=True)
