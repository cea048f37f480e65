"""Keys of releases, so that a task that runs twice pays once and draws the same noise.

Proof: doc/theory/kept_releases.md, "One payment, one release".
"""

import hmac
import os
import pickle
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from hashlib import sha256, shake_256
from itertools import count
from typing import Any, NamedTuple, Self

from sklearn_dptda._typing import PathLike
from sklearn_dptda.privacy._whole_file import forget_temporary_name, whole_file

# With 256 bits, two keys never coincide, and a key cannot be guessed.
_SECRET_BYTES = 32


class ReleaseKey:
    """Secret key under which a release is paid for once, however often its task runs.

    A computing engine runs a task again if its worker has died. Without a key, a
    release in such a task would be paid for again, and drawn again with other
    random numbers. With a key, all random numbers are a function of the key, and so
    is the name of the payment. You create the key before the task is sent, and it
    travels with the task. If the task runs again, it repeats its draw and finds
    its payment in the ledger.

    See Also
    --------
    sklearn_dptda.model_selection.release_once : Release under a key.

    Notes
    -----
    .. rubric:: Privacy

    The noise of a release can be undone with its key. Give the key only to the
    workers that hold the records, and not to readers of the releases or of the
    ledger. Under ``accountant.under(key)``, estimators hold the key until they are
    fitted or cloned, because they bring it to the workers. Pickles made later hold
    no key, and refuse to release again until you set the accountant anew. An ensemble
    that clones its estimator only in worker processes, such as ``BaggingClassifier``
    with ``n_jobs``, cannot be fitted under a key.

    A key is valid for one release of one data set, with the same parameters and
    the same code. The ledger refuses a different release under the same key. New
    keys are drawn from the operating system's entropy.

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
        """Read a key from a file, or create the file with a new key.

        With a key in a file, you can continue work after a crash or on another
        day.

        Parameters
        ----------
        path : str or path-like
            Name of the file. If the file does not exist, it is created such that
            only you can read it. Keep it with the records, and apart from releases
            and ledgers.

        Returns
        -------
        ReleaseKey
            The key in the file.

        Examples
        --------
        >>> import os, tempfile
        >>> from sklearn_dptda.privacy import ReleaseKey
        >>> path = os.path.join(tempfile.mkdtemp(), "release.key")
        >>> ReleaseKey.open(path).name() == ReleaseKey.open(path).name()
        True
        """
        key, path = cls(), os.fsdecode(path)
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
                f"Other users may read the key in {path!r}, and could undo the noise of "
                "its releases. Restrict access with chmod 600."
            )
        if not re.fullmatch(b"[0-9a-f]{%d}" % (2 * _SECRET_BYTES), text):
            raise ValueError(
                f"{path!r} does not hold a key. Use the path of a key file, or a path "
                "where no file exists."
            )
        return cls._of(bytes.fromhex(text.decode()))

    def child(self, label: object) -> "ReleaseKey":
        """Derive a key from this key and a label. It reveals nothing about this key.

        Parameters
        ----------
        label : object
            Any object that can be pickled. Different labels give independent keys.

        Returns
        -------
        ReleaseKey
            The derived key.
        """
        digest = hmac.new(self._secret, digestmod=sha256)
        # The label may be a large data set, so that it is digested while it is pickled.
        pickle.Pickler(_Sink(digest), protocol=5).dump(label)
        return self._of(digest.digest())

    def name(self) -> str:
        """Return the public name of the key, which reveals nothing about the key.

        Returns
        -------
        str
            A name of 32 characters.
        """
        return self.child("name")._secret.hex()[:32]

    def stream(self) -> "KeyStream":
        """Return a stream of random bytes that is a function of the key.

        Returns
        -------
        KeyStream
        """
        return KeyStream(self._secret)

    def __reduce__(self) -> tuple[Any, ...]:
        return _key_of, (self._secret,)

    def __repr__(self) -> str:
        return "ReleaseKey()"


def _key_of(secret: bytes) -> ReleaseKey:
    return ReleaseKey._of(secret)


class _Sink:
    """File-like object that digests everything written to it."""

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
        """Return a uniform integer of ``n`` bits."""
        size = -(-n // 8)
        return int.from_bytes(self.take(size), "little") >> (8 * size - n)


class Turn(NamedTuple):
    """The key for the draws of one release, the name of its payment, and a digest, if any.

    If there is a digest, the draws also depend on it, and the ledger stores it beside the name.
    Another digest under the same name is refused.
    """

    coins: ReleaseKey
    name: str
    digest: str | None = None

    @classmethod
    def of(cls, key: ReleaseKey) -> Self:
        """Return the turn of a release that is identified by its key alone."""
        return cls(key, key.name())


class Attempt:
    """One run of a task under a key, whose releases take keys one after the other."""

    def __init__(self, key: ReleaseKey, bound: ReleaseKey | None = None) -> None:
        self.key, self.bound, self.count = key, bound, 0

    def next(self) -> Turn:
        self.count += 1
        turn = Turn.of(self.key.child(self.count))
        if self.bound is None:
            return turn
        return turn._replace(coins=self.bound.child(self.count), digest=self.bound.name())


def names_under(key: ReleaseKey) -> Iterator[str]:
    """Yield the names of the first, second, ... release of a task, without end."""
    return (key.child(number).name() for number in count(1))


_ATTEMPT: ContextVar[Attempt | None] = ContextVar("_ATTEMPT", default=None)


@contextmanager
def under(key: ReleaseKey | None, bound: ReleaseKey | None = None) -> Iterator[None]:
    """Give each release in this block and thread a key of its own; None gives no keys.

    ``bound`` is a child of the key whose label is everything that determines the releases.
    """
    token = _ATTEMPT.set(None if key is None else Attempt(key, bound))
    try:
        yield
    finally:
        _ATTEMPT.reset(token)


def next_turn() -> Turn | None:
    """Return the turn of the next release in the surrounding :func:`under`, or None outside."""
    attempt = _ATTEMPT.get()
    return None if attempt is None else attempt.next()
