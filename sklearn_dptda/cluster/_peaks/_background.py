"""Background of a noisy histogram: the cells that do not stand out from the empty ones."""

import numpy as np

from sklearn_dptda.cluster._peaks._adaptive_smoothing import adaptive_heights, stabilise

# Rows live where it is denser than the background by this factor, or there is none.
_DENSER = 2


def background_cells(noisy, variance, threshold):
    """Whether each cell is background, which stands out from its level by no more than a threshold.

    The level is the mean count of the lower of Otsu's two classes of cells. Where rows as a rule
    live at hardly more than it, there is no background.
    """
    heights, sizes = adaptive_heights(noisy, 1, variance)
    level = max(noisy[heights <= _between_classes(heights)].mean(), 0.0)
    if _count_around_a_row(noisy, variance) < _DENSER * level:
        return np.zeros(noisy.shape, dtype=bool)
    return (heights - stabilise(level, variance)) * np.sqrt(sizes) <= threshold


def _count_around_a_row(noisy, variance):
    """Expected count of the cell of a row drawn at random, without bias by sampling and noise."""
    counts = noisy.astype(float)
    return (counts**2 - counts - variance).sum() / max(counts.sum(), 1.0)


def _between_classes(values):
    """Threshold between the two classes whose means explain most of the variance.

    N. Otsu, "A threshold selection method from gray-level histograms", IEEE Transactions on
    Systems, Man, and Cybernetics 9, 1979.
    """
    rising = np.sort(values, axis=None)
    n, below = len(rising), np.arange(1, len(rising))
    sums = np.cumsum(rising)
    apart = sums[:-1] / below - (sums[-1] - sums[:-1]) / (n - below)
    last = np.argmax(below * (n - below) * apart**2)
    return 0.5 * (rising[last] + rising[last + 1])
