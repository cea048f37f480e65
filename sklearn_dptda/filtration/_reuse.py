"""Functions of clouds that are computed once and used again, within one block of code."""

import copy
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.privacy._release import digest_of


class _KeptFunctions:
    """Functions by the digest of everything that decides about them, the latest ones last."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._bytes = max_bytes, 0
        self._kept: OrderedDict[bytes, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: bytes) -> Any:
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def put(self, key: bytes, function: Any, size: int) -> None:
        with self._lock:
            if key in self._kept or size > self._max_bytes:
                return
            self._kept[key] = function, size
            self._bytes += size
            while self._bytes > self._max_bytes:
                _, (_, dropped) = self._kept.popitem(last=False)
                self._bytes -= dropped


_SHELVES: list[_KeptFunctions] = []


@contextmanager
def reuse_functions(max_bytes: int = 1 << 30) -> Iterator[None]:
    """Compute the function of a cloud once for all fits of a block, such as those of a search.

    Within this block, ``transform`` of a filtration looks up the functions that it has
    computed before, for equal points and equal parameters. The results are the same.

    Parameters
    ----------
    max_bytes : int, default=2**30
        Memory for functions. Beyond it, those used least recently are computed again.

    Notes
    -----
    .. rubric:: Privacy

    The functions are exact and *not* private. They stay in the memory of this
    process until the end of the block, and are never pickled or written to a file.
    Releases, payments and guarantees do not change: equal clouds of two people remain
    two records. Worker processes do not share the block: use ``n_jobs=None`` or
    joblib's backend ``"threading"`` for the search. A filtration with ``n_jobs`` uses
    threads within the block.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn_dptda import DTMFiltration, PrivatePersistence
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> from sklearn_dptda.filtration import reuse_functions
    >>> clouds = [make_two_circles(500, random_state=seed) for seed in range(4)]
    >>> with reuse_functions():
    ...     first = DTMFiltration(m=0.2, bounds=(-3, 3.5)).fit_transform(clouds)
    ...     again = DTMFiltration(m=0.2, bounds=(-3, 3.5)).fit_transform(clouds)
    >>> bool((first[0].values == again[0].values).all()), first[0] is again[0]
    (True, False)
    """
    if not max_bytes > 0:
        raise ValueError(f"max_bytes must be positive; got {quoted(max_bytes)}.")
    shelf = _KeptFunctions(max_bytes)
    _SHELVES.append(shelf)
    try:
        yield
    finally:
        _SHELVES.remove(shelf)


def preferred_workers() -> str | None:
    """Threads within a block, because processes would not share it, and joblib's default else."""
    return "threads" if _SHELVES else None


def computed_once(compute: Callable[..., Any], estimator: Any, cloud: Any, unit: str) -> Any:
    """Return ``compute(cloud, unit)``, or an equal object if a block has computed it before.

    Equal clouds of two people must not become one object, since releases tell records by objects.
    """
    if not _SHELVES:
        return compute(cloud, unit)
    shelf = _SHELVES[-1]
    try:
        key = digest_of((estimator, cloud, unit))
    except ValueError:
        # What has no description, such as a weight of your own, is computed each time.
        return compute(cloud, unit)
    function = shelf.get(key)
    if function is None:
        function = compute(cloud, unit)
        shelf.put(key, function, _size(function))
    # Arrays of a filtration cannot be written to, so that copies may share them.
    return copy.copy(function)


def _size(value: Any) -> int:
    """Bytes of the arrays that an object holds."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, list | tuple):
        return sum(map(_size, value))
    return sum(map(_size, vars(value).values())) if hasattr(value, "__dict__") else 0
