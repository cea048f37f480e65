"""Private measures of classes: the columns one by one, and the distribution of each within a class.

Proof: doc/theory/metric_privacy.md, "Measures".
"""

import math
from functools import partial
from typing import Any

import numpy as np

from sklearn_dptda.privacy._fixed_point import ROUND_UP
from sklearn_dptda.synthetic._box_measure import NoisyTrees, UnitMeasure, cell_ends, halvings

# Share of epsilon for the columns one by one, and the number of rows, for each scale of noise that
# a column has if the whole budget is for classes, from which this share is spent. With fewer rows,
# cells have even widths, which costs nothing; the last number is that of their halvings.
_SHARE_OF_LINES, _ROWS_FOR_LINES, _EVEN_HALVINGS = 0.4, 300, 4
# Largest number of entries of all lines of all classes.
_MOST_NUMBERS = 1 << 21
# Largest number of cells of a column in which classes are counted, and expected number of rows in a
# cell for a class of average size, in scales of noise.
_MOST_CELLS, _ROWS_PER_NOISE = 32, 8
# Least number of rows of a class. If noise leaves nothing of a class, it is distributed as all rows
# are.
_LEAST_ROWS = 1e-6


def class_measure(noisy: NoisyTrees, marginal_share: float | None, target: int) -> UnitMeasure:
    """Release the columns within each class of the target; the share is chosen if it is None.

    If the share is zero, cells have even widths.
    """
    d, sizes, epsilon = noisy.rows.n_features, noisy.sizes, noisy.epsilon
    n_classes = int(sizes[target])
    others = [a for a in range(d) if a != target]
    if marginal_share is None:
        enough = noisy.n_rows * epsilon >= _ROWS_FOR_LINES * len(others) * noisy.moved
        marginal_share = _SHARE_OF_LINES if enough else 0.0
    if marginal_share:
        most = max(int(math.log2(_MOST_NUMBERS / (n_classes * d))), 1)
        lines = {a: noisy.line(a, epsilon * marginal_share / len(others), most) for a in others}
        epsilon *= 1 - marginal_share
        n_cells = _n_cells(noisy.n_rows * epsilon / (n_classes * len(others) * noisy.moved))
        cuts = {a: _cuts(ends, masses, n_cells) for a, (ends, masses) in lines.items()}
    else:
        lines = {a: _even_line(sizes[a]) for a in others}
        cuts = {a: ends[1:-1] for a, (ends, _) in lines.items()}
    released = _noisy_tables(noisy, cuts, target, n_classes, epsilon)
    masses = np.mean([table.sum(axis=1) for table in released], axis=0)
    masses = np.maximum(masses, _LEAST_ROWS) / np.maximum(masses, _LEAST_ROWS).sum()
    ends = np.arange(n_classes + 1) / n_classes
    of_target = ends, np.r_[0.0, np.cumsum(masses[:-1]), 1.0]
    of_classes = [
        _within_classes(*lines[a], cuts[a], table)
        for a, table in zip(others, released, strict=True)
    ]
    of_classes.insert(target, [of_target] * n_classes)
    centres, widths = np.full((n_classes, d), 0.5), np.ones((n_classes, d))
    centres[:, target], widths[:, target] = (ends[1:] + ends[:-1]) / 2, 1 / n_classes
    # The marginals are those of the synthetic rows, since cells of classes are more precise than
    # the lines by which they were chosen.
    marginals = [
        of_target if a == target else (lines[a][0], masses @ [line for _, line in of_classes[a]])
        for a in range(d)
    ]
    by_class = [list(of_class) for of_class in zip(*of_classes, strict=True)]
    return UnitMeasure(centres, widths, masses, marginals, by_class)


def _even_line(size):
    """The line of even masses, with ends between values."""
    sizes = np.array([size])
    (ends,) = cell_ends(halvings(sizes, _EVEN_HALVINGS), sizes)
    # There is nothing between neighbouring values.
    ends = np.unique(ends)
    return ends, ends


def _noisy_tables(noisy, cuts, target, n_classes, epsilon):
    """Noisy counts of classes in the cells of each column, given their inner ends."""
    sizes = [n_classes * (len(cut) + 1) for cut in cuts.values()]
    count = partial(_class_counts, target=target, n_classes=n_classes, cuts=cuts)
    counts = noisy.rows.sum(count, n_cells=sum(sizes))
    # A row is counted once for each column.
    scale = len(cuts) * noisy.moved / epsilon * ROUND_UP
    counts = noisy.with_noise(counts, len(cuts), scale)
    tables = np.split(counts, np.cumsum(sizes)[:-1])
    return [table.reshape(n_classes, -1) for table in tables]


def _n_cells(rows_per_noise):
    """Largest power of two whose counts are well above their noise, and at least two."""
    cells = 2
    while 2 * cells <= _MOST_CELLS and 2 * cells * _ROWS_PER_NOISE <= rows_per_noise:
        cells *= 2
    return cells


def _cuts(ends, masses, n_cells):
    """Inner ends of about ``n_cells`` cells of even mass. Each is an end of a cell of the line."""
    first = np.unique(np.searchsorted(masses, np.arange(1, n_cells) / n_cells))
    return ends[first[first < len(ends) - 1]]


def _class_counts(part, target, n_classes, cuts):
    """Exact counts of classes in the cells of each column, one column after the other."""
    classes = np.minimum((part[:, target] * n_classes).astype(np.int64), n_classes - 1)
    counts: list[Any] = []
    for column, cut in cuts.items():
        n_cells = len(cut) + 1
        cells = classes * n_cells + np.searchsorted(cut, part[:, column], side="right")
        counts.append(np.bincount(cells, minlength=n_classes * n_cells))
    return np.concatenate(counts)


def _within_classes(ends, masses, cut, table):
    """Line of each class: that of all rows, stretched to the masses of the cells in this class."""
    below = np.r_[0.0, masses[np.searchsorted(ends, cut)], 1.0]
    lines = []
    for counts in table:
        shares = np.maximum(counts, 0.0) + _LEAST_ROWS * np.diff(below)
        of_class = np.r_[0.0, np.cumsum(shares / shares.sum())]
        lines.append((ends, np.interp(masses, below, of_class)))
    return lines
