"""Secrets from which a release under a name draws its noise, so that it is paid and drawn once.

Proof: doc/theory/kept_releases.md, "One payment, one release".
"""

import hmac
import os
import re
import secrets
from contextlib import suppress
from hashlib import sha256, shake_256
from typing import Any, NamedTuple, Self

from sklearn_dptda.privacy._whole_file import forget_temporary_name, whole_file

# With 256 bits, two keys never coincide, and a key cannot be guessed.
_SECRET_BYTES = 32


class ReleaseKey:
    """Secret of a ledger, of a name or of a release. All random numbers can be functions of it.

    The noise of a release can be undone with its key. A key therefore travels only to workers that
    hold the records, and is in no ledger and in no pickle of a fitted estimator.
    """

    __slots__ = ("_secret",)

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(_SECRET_BYTES)

    @classmethod
    def _of(cls, secret: bytes) -> Self:
        key = object.__new__(cls)
        key._secret = secret
        return key

    @classmethod
    def open(cls, path: str) -> Self:
        """Read a key from a file, or create the file with a new key, which only its owner reads."""
        key = cls()
        # Another process may create the file at the same time.
        with (
            suppress(FileExistsError),
            whole_file(path) as temporary,
            open(temporary, "wb") as opened,
        ):
            opened.write(key._secret.hex().encode() + b"\n")
        with open(path, "rb") as opened:
            text = opened.read(2 * _SECRET_BYTES + 2).strip()
            status = os.fstat(opened.fileno())
        if status.st_nlink > 1:
            # The key must not stay in a second file when this one is deleted.
            forget_temporary_name(path)
        if os.name == "posix" and status.st_mode & 0o077:
            raise ValueError(
                f"Other users may read the secret of a ledger in {path!r}, and could undo the "
                "noise of its named releases. Restrict access with chmod 600."
            )
        if not re.fullmatch(b"[0-9a-f]{%d}" % (2 * _SECRET_BYTES), text):
            raise ValueError(
                f"{path!r} does not hold the secret of a ledger. If you delete the file, releases "
                "that are stored remain, and names of others cannot be continued."
            )
        return cls._of(bytes.fromhex(text.decode()))

    def child(self, label: int | str | tuple[int | str | bytes, ...]) -> "ReleaseKey":
        """Derive a key from this key and a label, which reveals nothing about this key.

        Different labels give independent keys.
        """
        return self._of(hmac.new(self._secret, repr(label).encode(), sha256).digest())

    def tag(self) -> str:
        """Return a public text of 32 characters, which reveals nothing about the key."""
        return self.child("name")._secret.hex()[:32]

    def stream(self) -> "KeyStream":
        """Return a stream of random bytes that is a function of the key."""
        return KeyStream(self._secret)

    def __reduce__(self) -> tuple[Any, ...]:
        return _key_of, (self._secret,)

    def __repr__(self) -> str:
        return "ReleaseKey()"


def _key_of(secret: bytes) -> ReleaseKey:
    return ReleaseKey._of(secret)


class KeyStream:
    """Pseudorandom bytes: blocks of SHAKE-256 of a secret and a counter."""

    _BYTES_PER_BLOCK = 1 << 13

    def __init__(self, secret: bytes) -> None:
        self._secret, self._counter = secret, 0
        self._left = memoryview(b"")

    def take(self, n: int) -> bytes:
        """Return the next ``n`` bytes."""
        parts = []
        while n > len(self._left):
            parts.append(self._left)
            n -= len(self._left)
            self._counter += 1
            block = shake_256(self._secret + self._counter.to_bytes(8, "little"))
            self._left = memoryview(block.digest(self._BYTES_PER_BLOCK))
        parts.append(self._left[:n])
        self._left = self._left[n:]
        return b"".join(parts)

    def getrandbits(self, n: int) -> int:
        """Return a uniform integer of ``n`` bits."""
        size = -(-n // 8)
        return int.from_bytes(self.take(size), "little") >> (8 * size - n)


class Turn(NamedTuple):
    """The key of the draws of one release, the identity of its payment, and what its line says.

    The draws and the tag in the line depend on a digest of what determines the release. Another
    digest under the same identity is refused.
    """

    coins: ReleaseKey
    payment: str
    line: dict[str, str]

    @classmethod
    def of(cls, key: ReleaseKey, name: str | None, number: int, digest: bytes = b"") -> Self:
        """Return the turn of the release with this number under the key of a public name.

        Without a name, the payment is found by its key alone.
        """
        coins = key.child((number, digest))
        if name is None:
            return cls(coins, coins.tag(), {})
        return cls(coins, payment_of(name, number), {"name": name, "tag": coins.tag()})


def payment_of(name: str, number: int) -> str:
    """Return the identity of the payment for the release with this number under a name."""
    return sha256(f"{number} {name}".encode()).hexdigest()[:32]
