"""Which machine this is, so that a ledger can tell that it was copied to another one."""

import hashlib
import platform
import uuid
from functools import cache

# Where Linux keeps the identity that an installation was given.
_PLACES = ("/etc/machine-id", "/var/lib/dbus/machine-id")
# Set in the address of a network card, it says that the address was made up.
_MADE_UP = 1 << 40


@cache
def machine_identity() -> str:
    """Digest of what tells this machine from others, and of nothing that identifies it elsewhere.

    Containers that share an image and its identity count as one machine.
    """
    return hashlib.sha256(f"sklearn_dptda ledger {_identity()}".encode()).hexdigest()[:24]


def _identity():
    for place in _PLACES:
        try:
            with open(place) as file:
                text = file.read().strip()
        except OSError:
            continue
        if text:
            return text
    address = uuid.getnode()
    return platform.node() if address & _MADE_UP else f"{address:x}"
