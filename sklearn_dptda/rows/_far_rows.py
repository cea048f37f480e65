"""Rows far outside the box that was found, which are left out if they are no cluster.

Proof: doc/theory/private_bounds.md, "Far rows".
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from sklearn_dptda._typing import FloatArray, IntArray
from sklearn_dptda.rows._moments import KEPT, FitBudget
from sklearn_dptda.rows._rows import Box, Ends, Rows


@dataclass(frozen=True)
class _FarRules:
    """Public constants of far rows.

    Accuracy only: what is counted is taken off the budget, and a row that is left out adds nothing.
    """

    # Half widths of the box from which on a row is far, and shares of the rows that are far: with
    # fewer, they do no harm, and with more, they are no exceptions.
    reach: float = 2.0
    shares: tuple[float, float] = (0.01, 0.15)
    # Share of the budget for counting them by their places, by the norm of the noise.
    budget: Mapping[str, float] = field(default_factory=lambda: {"l2": 0.02, "l1": 0.04})
    # Ends of the groups of distances, in half widths of the box. The groups are wide, so that a far
    # cluster is in one of them.
    ends: tuple[float, ...] = (8.0, 32.0, 128.0, 512.0, 2048.0)
    # Least sum of squared shares of the places of a far cluster. It is one if there is nothing else
    # far away.
    spread: float = 0.3
    # Least share of all rows that is taken for a far cluster, and how many times as many rows its
    # place then has as any other place.
    cluster: float = 0.02
    ratio: float = 2.0


_FAR = _FarRules()


def far_ends(box: Box) -> Ends:
    """Bounds beyond which a row is far from a box."""
    more = (_FAR.reach - 1) * (box.high - box.low) / 2
    return box.low - more, box.high + more


def without_far_rows(
    rows: Rows, box: Box, budget: FitBudget, n_far: float, deviation: float, n: float
) -> tuple[Rows, FitBudget, bool]:
    """Leave out the rows that are far from the box, if they are no cluster.

    ``n_far`` and ``n`` are noisy numbers of rows, far from the box and in all. A far cluster, whose
    rows are in one place, stays, clipped to the box. Returns also whether rows are left out.
    """
    least, most = _FAR.shares
    if not max(KEPT * deviation, least * n) <= n_far <= most * n:
        return rows, budget, False
    share = _FAR.budget[budget.norm]
    count = partial(_of_places, low=box.low, high=box.high)
    counts, sd = budget.noisy_counts(rows.sum(count), 1, share)
    budget = budget.rest(share)
    squares = float((counts**2).sum()) - len(counts) * sd**2
    doubt = math.sqrt(2 * len(counts)) * sd**2
    second, largest = np.sort(counts)[-2:]
    single = largest > _FAR.cluster * n + KEPT * sd and largest > _FAR.ratio * second
    if single or squares + doubt > max(_FAR.spread * n_far, _FAR.cluster * n) * n_far:
        return rows, budget, False
    return rows.within(*far_ends(box)), budget, True


def _of_places(part: FloatArray, low: FloatArray, high: FloatArray) -> IntArray:
    """Counts of far rows by the side of the box and the distance where each is farthest."""
    half = np.maximum(high - low, np.finfo(float).tiny) / 2
    away = np.nan_to_num((part - low) / half - 1, nan=0.0)
    column = np.abs(away).argmax(axis=1)
    farthest = away[np.arange(len(part)), column]
    sides, groups = 2 * column + (farthest > 0), np.searchsorted(_FAR.ends, np.abs(farthest))
    n_groups = len(_FAR.ends) + 1
    places = (sides * n_groups + groups)[np.abs(farthest) > _FAR.reach]
    return np.bincount(places, minlength=2 * part.shape[1] * n_groups)
