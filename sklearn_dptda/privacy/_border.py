"""The border that every private release crosses: a statistic goes in, and noise comes out.

Proof: doc/theory/noise_and_calibration.md, "The border".
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
# A metric by its name, or a function from the statistics of two data sets to their distance.
Metric: TypeAlias = Literal["l1", "l2", "linf", "range"] | Callable[[Any, Any], float]
Law: TypeAlias = Literal["pure", "range", "gaussian"]
Watcher: TypeAlias = Callable[["Crossing", Callable[[Any], Any]], Any]


@dataclass(frozen=True)
class Crossing:
    """What enters one draw of a mechanism, and what the mechanism was told about it.

    Parameters
    ----------
    statistic : object
        The exact statistic, *not* private.
    metric : {"l1", "l2", "linf", "range"} or callable
        Metric in which one record moves the statistic. ``"range"`` is the largest
        minus the smallest change of a list of costs. A callable takes the
        statistics of two data sets and returns their distance.
    sensitivity : float
        Declared largest distance between the statistics of two neighbours.
    rate : float
        Privacy loss for a unit of the metric.
    law : {"pure", "range", "gaussian"}, default="pure"
        Whether the loss is an epsilon, an epsilon that also bounds the range of the loss,
        or the parameter mu of Gaussian noise.
    weights : sequence of float, default=()
        Factors of the parts of a tuple in the metric; none means 1 for each part.
    """

    statistic: Any
    metric: Metric
    sensitivity: float
    rate: float
    law: Law = "pure"
    weights: Sequence[float] = ()

    def moved(self, other: Any) -> float:
        """Distance from another value of the statistic, in units of the sensitivity."""
        distance = self._distance(other)
        # Infinite sensitivities are those of releases that promise nothing.
        assert not np.isnan(distance) and (self.sensitivity < np.inf or self.rate == np.inf)
        return float(distance / self.sensitivity)

    def _distance(self, other: Any) -> float:
        if callable(self.metric):
            return self.metric(self.statistic, other)
        own, others = _parts(self.statistic), _parts(other)
        if [part.shape for part in own] != [part.shape for part in others]:
            return np.inf
        # Differences of integers are exact.
        weights = self.weights or [1.0] * len(own)
        change = np.concatenate(
            [
                w * np.ravel(a - b).astype(float)
                for w, a, b in zip(weights, own, others, strict=True)
            ]
        )
        if self.metric == "range":
            return float(np.ptp(change)) if len(change) else 0.0
        order = {"l1": 1, "l2": 2, "linf": np.inf}[self.metric]
        return float(np.linalg.norm(change, order))

    @property
    def loss(self) -> float:
        """Privacy loss between neighbours whose statistics are as far apart as declared."""
        return self.rate * self.sensitivity


def _parts(statistic: Any) -> list[NDArray[Any]]:
    """Arrays of a statistic, which may be a tuple of them; numbers of lists may have any size."""
    parts = statistic if isinstance(statistic, tuple) else (statistic,)
    wide = [x if isinstance(x, np.ndarray) else np.asarray(x, dtype=object) for x in parts]
    # Differences of short integers could wrap around.
    return [x.astype(np.int64) if x.dtype.kind in "bi" else x for x in wide]


class _Watchers(threading.local):
    """The watchers of a thread. Other threads make their releases as ever."""

    def __init__(self) -> None:
        self.list: list[Watcher] = []


_watchers = _Watchers()


def crossed(crossing: Crossing, draw: Callable[[Any], T]) -> T:
    """Return the result of a draw, which a watcher makes if there is one."""
    if not _watchers.list:
        return draw(crossing.statistic)
    return _watchers.list[-1](crossing, draw)


@contextmanager
def watched_border(watcher: Watcher) -> Iterator[None]:
    """Let a function make all draws of this thread: ``watcher(crossing, draw)`` is their result.

    A watcher sees exact statistics. It is for tests on made-up data.
    """
    _watchers.list.append(watcher)
    try:
        yield
    finally:
        _watchers.list.remove(watcher)
