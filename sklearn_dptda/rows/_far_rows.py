"""Rows far outside the box that was found, which are left out if they lie in all directions.

Proof: doc/theory/private_bounds.md, "Far rows".
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from sklearn_dptda._typing import FloatArray, IntArray
from sklearn_dptda.rows._moments import KEPT, FitBudget
from sklearn_dptda.rows._rows import Box, Rows


@dataclass(frozen=True)
class _FarRules:
    """Public constants of far rows.

    Accuracy only: what is counted is taken off the budget, and a row that is left out adds nothing.
    """

    # Least share of the rows that must be far.
    least: float = 0.01
    # Share of the budget for counting them by their places, by the norm of the noise.
    shares: Mapping[str, float] = field(default_factory=lambda: {"l2": 0.02, "l1": 0.04})
    # Ends of the groups of distances, in half widths of the box. The groups are wide, so that a far
    # cluster is in one of them.
    ends: tuple[float, ...] = (2.0, 8.0, 32.0, 128.0, 512.0, 2048.0)
    # Largest sum of squared shares of the places. It is one if all far rows are a single cluster.
    spread: float = 0.3
    # Least share of all rows that is taken for a far cluster: the mean size of the places.
    cluster: float = 0.02


_FAR = _FarRules()


def without_far_rows(
    rows: Rows, box: Box, budget: FitBudget, outside: float, deviation: float, n: float
) -> tuple[Rows, FitBudget, bool]:
    """Leave out the rows outside the box, if they are many and in all directions.

    ``outside`` and ``n`` are noisy numbers of rows, outside and in all. A far cluster, whose rows
    are in one place, stays, clipped to the box. Returns also whether rows are left out.
    """
    if outside < max(KEPT * deviation, _FAR.least * n):
        return rows, budget, False
    n_cells = 2 * rows.n_features * (len(_FAR.ends) + 1)
    share = _FAR.shares[budget.norm]
    count = partial(_of_places, low=box.low, high=box.high)
    counts, sd = budget.noisy_counts(rows.sum(count), 1, share)
    squares = float((counts**2).sum()) - n_cells * sd**2
    doubt = math.sqrt(2 * n_cells) * sd**2
    if squares + doubt > max(_FAR.spread * outside, _FAR.cluster * n) * outside:
        return rows, budget.rest(share), False
    return rows.within(box.low, box.high), budget.rest(share), True


def _of_places(part: FloatArray, low: FloatArray, high: FloatArray) -> IntArray:
    """Counts of the rows outside by the side of the box and the distance where each is farthest."""
    half = np.maximum(high - low, np.finfo(float).tiny) / 2
    away = np.nan_to_num((part - low) / half - 1, nan=0.0)
    column = np.abs(away).argmax(axis=1)
    farthest = away[np.arange(len(part)), column]
    cells = (2 * column + (farthest > 0)) * (len(_FAR.ends) + 1)
    cells += np.searchsorted(_FAR.ends, np.abs(farthest))
    outside = ((part < low) | (part > high)).any(axis=1)
    return np.bincount(cells[outside], minlength=2 * part.shape[1] * (len(_FAR.ends) + 1))
