"""Keys of releases: what a task that runs twice pays once, and draws once.

Proof: doc/theory/kept_releases.md, "One payment, one release".
"""

import hmac
import os
import pickle
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256, shake_256
from itertools import count
from typing import Any, NamedTuple, Self

from sklearn_dptda._typing import PathLike

# 256 bits, so that no two keys ever meet and none is guessed.
_SECRET_BYTES = 32


class ReleaseKey:
    """A secret that makes a release the same, and paid for once, however often its task runs.

    Engines run a task again whose worker has died. A release in such a task
    would be paid for again, and drawn again with other coins. Under a key,
    which is made before the task is sent and travels with it, all coins are a
    function of the key, and the payment carries a name that is one too: run
    again, the task repeats its draw, and finds it paid.

    Notes
    -----
    .. rubric:: Privacy

    With the key, the noise of its release can be undone. Give it to the
    workers that hold the records, and to nobody who reads releases or the
    ledger. Estimators that were not fitted hold it under
    ``accountant.under(key)``, since they take it to workers, and so does a
    search; pickles of fitted estimators hold none. It is good for one release
    of one data set, by the same parameters and the same code: the ledger
    refuses a second one. A new key, like any other noise here, comes from the
    operating system's entropy.

    Examples
    --------
    >>> from sklearn_dptda.privacy import NoiseSource, ReleaseKey
    >>> key = ReleaseKey()
    >>> noise = NoiseSource(key).discrete_laplace(3.0, 5)
    >>> bool((NoiseSource(key).discrete_laplace(3.0, 5) == noise).all())
    True
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
    def open(cls, path: PathLike) -> Self:
        """Key that a file keeps, so that work goes on with it after a crash or on another day.

        Parameters
        ----------
        path : str or path-like
            File that only you may read. It is made where there is none. Keep it
            with the records, and apart from releases and ledgers.

        Returns
        -------
        ReleaseKey

        Raises
        ------
        ValueError
            If the file holds no key, or others may read it.

        Examples
        --------
        >>> import os, tempfile
        >>> from sklearn_dptda.privacy import ReleaseKey
        >>> path = os.path.join(tempfile.mkdtemp(), "release.key")
        >>> ReleaseKey.open(path).name() == ReleaseKey.open(path).name()
        True
        """
        key = cls()
        try:
            file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except FileExistsError:
            with open(path, "rb") as opened:
                text = opened.read(2 * _SECRET_BYTES + 2).strip()
                mode = os.fstat(opened.fileno()).st_mode
        else:
            with os.fdopen(file, "wb") as opened:
                opened.write(key._secret.hex().encode() + b"\n")
                opened.flush()
                os.fsync(opened.fileno())
            sync_folder(os.path.dirname(os.path.abspath(path)))
            return key
        if os.name == "posix" and mode & 0o077:
            raise ValueError(
                f"Others may read the key in {os.fspath(path)!r}, and could undo the noise of its "
                "releases: chmod 600."
            )
        if not re.fullmatch(b"[0-9a-f]{%d}" % (2 * _SECRET_BYTES), text):
            raise ValueError(f"{os.fspath(path)!r} holds no key.")
        return cls._of(bytes.fromhex(text.decode()))

    def child(self, label: object) -> "ReleaseKey":
        """Key that is a function of this one and of a label, and tells nothing of this one.

        Parameters
        ----------
        label : object
            Whatever pickles. Labels that differ give independent keys.

        Returns
        -------
        ReleaseKey
        """
        digest = hmac.new(self._secret, digestmod=sha256)
        # The label may be a data set: it is read as it is pickled, and never held as a whole.
        pickle.Pickler(_Sink(digest), protocol=5).dump(label)
        return self._of(digest.digest())

    def name(self) -> str:
        """Public name of 32 characters, which tells nothing of the key.

        Returns
        -------
        str
        """
        return self.child("name")._secret.hex()[:32]

    def stream(self) -> "KeyStream":
        """Random bytes that are a function of the key.

        Returns
        -------
        KeyStream
        """
        return KeyStream(self._secret)

    def __reduce__(self) -> tuple[Any, ...]:
        return _key_of, (self._secret,)

    def __repr__(self) -> str:
        return "ReleaseKey()"


def sync_folder(folder: PathLike) -> None:
    """Let the names of files in a folder outlive a power failure, where the system can say so."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _key_of(secret: bytes) -> ReleaseKey:
    return ReleaseKey._of(secret)


class _Sink:
    """File that digests what is written to it."""

    def __init__(self, digest: hmac.HMAC) -> None:
        self.write = digest.update


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
        """Uniform integer of ``n`` bits."""
        size = -(-n // 8)
        return int.from_bytes(self.take(size), "little") >> (8 * size - n)


class Turn(NamedTuple):
    """What one release takes from a key: its coins, the name of its payment, its digest.

    Where there is a digest, coins are a function of it too, and the ledger keeps it beside the
    name: a second digest under the same name is refused.
    """

    coins: ReleaseKey
    name: str
    digest: str | None = None

    @classmethod
    def of(cls, key: ReleaseKey) -> Self:
        """That of a release which nothing but its key tells apart."""
        return cls(key, key.name())


class Attempt:
    """One run of a task under a key: its releases take their turns one after the other."""

    def __init__(self, key: ReleaseKey, bound: ReleaseKey | None = None) -> None:
        self.key, self.bound, self.count = key, bound, 0

    def next(self) -> Turn:
        self.count += 1
        turn = Turn.of(self.key.child(self.count))
        if self.bound is None:
            return turn
        return turn._replace(coins=self.bound.child(self.count), digest=self.bound.name())


def names_under(key: ReleaseKey) -> Iterator[str]:
    """Names of the releases of a task, the first one first, without end."""
    return (key.child(number).name() for number in count(1))


_ATTEMPT: ContextVar[Attempt | None] = ContextVar("_ATTEMPT", default=None)


@contextmanager
def under(key: ReleaseKey | None, bound: ReleaseKey | None = None) -> Iterator[None]:
    """Give the releases of this block, in this thread, keys of their own; None gives none.

    ``bound`` is a child of the key whose label is everything that decides about the releases.
    """
    token = _ATTEMPT.set(None if key is None else Attempt(key, bound))
    try:
        yield
    finally:
        _ATTEMPT.reset(token)


def next_turn() -> Turn | None:
    """What the next release of the surrounding :func:`under` takes, or None outside."""
    attempt = _ATTEMPT.get()
    return None if attempt is None else attempt.next()
