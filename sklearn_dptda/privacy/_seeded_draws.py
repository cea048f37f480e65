"""The same integer laws from a seeded NumPy generator: fast, reproducible, not secure."""

import numpy as np

# Below this scale the whole law fits a short table.
_TABLE_SCALE = 32.0
# Tails beyond this many scales have less mass than a double can resolve.
_GAUSSIAN_TAIL = 9.0


def discrete_laplace(rng, scale, size):
    """Difference of two geometric variables: probabilities ~ exp(-|x| / scale)."""
    success = -np.expm1(-1 / scale)
    return rng.geometric(success, size) - rng.geometric(success, size)


def discrete_gaussian(rng, scale, size):
    """Integers with probabilities ~ exp(-x**2 / (2 scale**2))."""
    if scale < _TABLE_SCALE:
        return _gaussian_by_table(rng, scale, size)
    drawn = np.empty(0, dtype=np.int64)
    while len(drawn) < size:
        drawn = np.concatenate([drawn, _gaussian_by_rejection(rng, scale, size - len(drawn))])
    return drawn


def _gaussian_by_table(rng, scale, size):
    reach = int(np.ceil(_GAUSSIAN_TAIL * scale)) + 1
    support = np.arange(-reach, reach + 1)
    cumulative = np.cumsum(np.exp(-0.5 * (support / scale) ** 2))
    return support[np.searchsorted(cumulative, rng.random(size) * cumulative[-1], side="right")]


def _gaussian_by_rejection(rng, scale, size):
    """Round a Gaussian y to x; accept with odds exp((y**2 - x**2) / (2 scale**2)).

    Integrated over the cell of x, the accepted mass is proportional to
    exp(-x**2 / (2 scale**2)). The constant bounds the odds within the tail.
    """
    y = rng.standard_normal(size) * scale
    x = np.rint(y)
    log_odds = (y - x) * (y + x) / (2 * scale**2)
    largest = (_GAUSSIAN_TAIL * scale + 0.25) / (2 * scale**2)
    accepted = (np.abs(y) <= _GAUSSIAN_TAIL * scale) & (
        np.log1p(-rng.random(size)) <= log_odds - largest
    )
    return x[accepted].astype(np.int64)


LAWS = {"laplace": discrete_laplace, "gaussian": discrete_gaussian}
