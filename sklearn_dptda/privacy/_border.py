"""The border that every private release crosses: a statistic goes in, and noise comes out.

Proof: doc/theory/noise_and_calibration.md, "The border".
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
# A metric by its name, or a function from the statistics of two data sets to their distance.
Metric: TypeAlias = Literal["l1", "l2", "linf", "range"] | Callable[[Any, Any], float]
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
    gaussian : bool, default=False
        Whether the loss is the parameter mu of Gaussian noise, and not an epsilon.
    """

    statistic: Any
    metric: Metric
    sensitivity: float
    rate: float
    gaussian: bool = False

    def moved(self, other: Any) -> float:
        """Distance from another value of the statistic, in units of the sensitivity."""
        if callable(self.metric):
            return self.metric(self.statistic, other) / self.sensitivity
        own, others = _parts(self.statistic), _parts(other)
        if [part.shape for part in own] != [part.shape for part in others]:
            return np.inf
        # Differences of integers are exact.
        change = np.concatenate(
            [np.ravel(a - b).astype(float) for a, b in zip(own, others, strict=True)]
        )
        if self.metric == "range":
            distance = np.ptp(change) if len(change) else 0.0
        else:
            distance = np.linalg.norm(change, {"l1": 1, "l2": 2, "linf": np.inf}[self.metric])
        return float(distance) / self.sensitivity

    @property
    def loss(self) -> float:
        """Privacy loss between neighbours whose statistics are as far apart as declared."""
        return self.rate * self.sensitivity


def _parts(statistic: Any) -> list[NDArray[Any]]:
    """Arrays of a statistic, which may be a tuple of them; numbers of lists may have any size."""
    parts = statistic if isinstance(statistic, tuple) else (statistic,)
    return [x if isinstance(x, np.ndarray) else np.asarray(x, dtype=object) for x in parts]


_watchers: list[Watcher] = []


def crossed(crossing: Crossing, draw: Callable[[Any], T]) -> T:
    """Return the result of a draw, which a watcher makes if there is one."""
    return _watchers[-1](crossing, draw) if _watchers else draw(crossing.statistic)


@contextmanager
def watched_border(watcher: Watcher) -> Iterator[None]:
    """Let a function make all draws of this process: ``watcher(crossing, draw)`` is their result.

    A watcher sees exact statistics. It is for tests on made-up data.
    """
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)
