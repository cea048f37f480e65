"""Simulated people, who have several rows or one time series each."""

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d
from sklearn.utils import check_random_state

from sklearn_dptda._typing import FloatArray, IntArray, LegacyRandomStateLike
from sklearn_dptda.datasets._shapes import _check_number

# Range of the frequencies of periodic series, in periods per step.
_FREQUENCIES = (0.08, 0.14)
# Standard deviation of the noise on each step of a series.
_SERIES_NOISE = 0.25
# Number of steps over which noise without a period is averaged.
_SMOOTHED = 6

_CENTRES = 3.0 * np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
# Standard deviations of people about the centres, and of visits about people.
_SPREAD = 0.6
# Shape of the Pareto distribution of the number of visits, which has a heavy tail.
_TAIL = 1.1


def make_series(
    n_series: int = 60, n_steps: int = 300, *, random_state: LegacyRandomStateLike = None
) -> tuple[FloatArray, IntArray]:
    """Generate time series of two kinds: with and without a period.

    About half of the series, chosen at random, are sines of random frequency and phase with
    noise, whose delay embeddings are loops. The others are smoothed noise of the same size.

    Parameters
    ----------
    n_series : int, default=60
        Number of series, each of which represents a person.
    n_steps : int, default=300
        Number of time steps of each series.
    random_state : int, RandomState instance or None, default=None
        Seed of the generator. The data are simulated, so it does not concern privacy.

    Returns
    -------
    X : ndarray of shape (n_series, n_steps)
        The series.
    y : ndarray of shape (n_series,)
        1 for series with a period, and 0 for the others.

    Examples
    --------
    >>> from sklearn_dptda.datasets import make_series
    >>> X, y = make_series(10, random_state=0)
    >>> X.shape, y.tolist()
    ((10, 300), [0, 1, 1, 0, 1, 1, 1, 1, 1, 1])
    """
    for name, value in (("n_series", n_series), ("n_steps", n_steps)):
        _check_number(name, value, 1, whole=True)
    rng = check_random_state(random_state)
    y = rng.randint(2, size=n_series)
    steps = np.arange(n_steps)
    angle = 2 * np.pi * rng.uniform(*_FREQUENCIES, size=(n_series, 1)) * steps
    periodic = np.sin(angle + rng.uniform(0, 2 * np.pi, size=(n_series, 1)))
    smooth = 2 * uniform_filter1d(rng.normal(size=(n_series, n_steps)), _SMOOTHED, mode="wrap")
    X = np.where(y[:, None], periodic, smooth)
    return X + _SERIES_NOISE * rng.normal(size=X.shape), y


def make_visits(
    n_people: int = 500,
    *,
    max_visits: int = 500,
    biased: bool = False,
    random_state: LegacyRandomStateLike = None,
) -> tuple[FloatArray, NDArray[np.intp], IntArray]:
    """Generate visits of people, half of whom come once or twice and some hundreds of times.

    Each visit is a row near one of four centres. Each person has a mixture of the centres, and an
    offset from them.

    Parameters
    ----------
    n_people : int, default=500
        Number of people.
    max_visits : int, default=500
        Largest number of visits of one person. 1 means one visit each.
    biased : bool, default=False
        Whether people who are mostly near the first centre visit 20 times as often.
    random_state : int, RandomState instance or None, default=None
        Seed of the generator. The data are simulated, so it does not concern privacy.

    Returns
    -------
    X : ndarray of shape (n_visits, 2)
        The visits. Nearly all are in the box ``[-8, 8]^2``.
    ids : ndarray of shape (n_visits,)
        The person of each visit, numbered from 0.
    y : ndarray of shape (n_visits,)
        The centre of each visit, numbered from 0.

    Examples
    --------
    >>> from sklearn_dptda.datasets import make_visits
    >>> X, ids, y = make_visits(4, random_state=0)
    >>> X.shape, ids.tolist()
    ((10, 2), [0, 1, 1, 1, 2, 2, 2, 3, 3, 3])
    """
    for name, value in (("n_people", n_people), ("max_visits", max_visits)):
        _check_number(name, value, 1, whole=True)
    rng = check_random_state(random_state)
    shares = rng.dirichlet(np.full(len(_CENTRES), 0.5), size=n_people)
    visits = 1 + np.floor(2 * rng.pareto(_TAIL, size=n_people))
    visits = np.where((shares[:, 0] > 0.6) & biased, 20 * visits, visits)
    ids = np.repeat(np.arange(n_people), np.minimum(visits, max_visits).astype(int))
    below = np.cumsum(shares, axis=1)[ids, :-1]
    y = (rng.uniform(size=(len(ids), 1)) > below).sum(axis=1)
    offsets = _SPREAD * rng.normal(size=(n_people, 2))
    X = _CENTRES[y] + offsets[ids] + _SPREAD * rng.normal(size=(len(ids), 2))
    return X, ids, y
