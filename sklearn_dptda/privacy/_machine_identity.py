"""Which machine and file system these are, so that a ledger can tell that it was copied."""

import hashlib
import os
import platform
import uuid
from contextlib import suppress
from functools import cache

# Where Linux keeps the identity that an installation was given.
_PLACES = ("/etc/machine-id", "/var/lib/dbus/machine-id")
# Where Linux names the file systems of devices.
_UUIDS = "/dev/disk/by-uuid"
# Set in the address of a network card, it says that the address was made up.
_MADE_UP = 1 << 40


@cache
def machine_identity() -> str:
    """Digest of what tells this machine from others, and of nothing that identifies it elsewhere.

    Containers that share an image and its identity count as one machine.
    """
    return _digest(_identity())[:24]


def file_system_identity(path) -> str:
    """Digest of what a file system keeps across reboots; empty where that cannot be told.

    Numbers of devices can change when a machine starts: where the system has no better name for a
    file system (XFS and FAT without udev, macOS, some network file systems), it counts for nothing.
    """
    device = os.stat(path).st_dev
    if not hasattr(os, "statvfs"):
        # Windows: the serial number of the volume.
        return _digest(device)[:16]
    identity = os.statvfs(path).f_fsid
    if identity == device:
        identity = _file_system_uuid(device)
    return _digest(identity)[:16] if identity else ""


def _file_system_uuid(device):
    with suppress(OSError), os.scandir(_UUIDS) as entries:
        for entry in entries:
            if entry.stat().st_rdev == device:
                return entry.name
    return None


def _digest(identity):
    return hashlib.sha256(f"sklearn_dptda ledger {identity}".encode()).hexdigest()


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
