"""People of whom each has several rows, or is a time series: for trying what protects people."""

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d
from sklearn.utils import check_random_state

from sklearn_dptda._typing import FloatArray, IntArray, LegacyRandomStateLike
from sklearn_dptda.datasets._shapes import _check_number

# Frequencies of the periodic series, in periods for each step.
_FREQUENCIES = (0.08, 0.14)
# Standard deviation of the noise on each step of a series.
_SERIES_NOISE = 0.25
# Steps that noise without a period is averaged over.
_SMOOTHED = 6

_CENTRES = 3.0 * np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
# Standard deviations of people about the centres, and of visits about people.
_SPREAD = 0.6
# Shape of the Pareto law of the number of visits: some people have very many.
_TAIL = 1.1


def make_series(
    n_series: int = 60, n_steps: int = 300, *, random_state: LegacyRandomStateLike = None
) -> tuple[FloatArray, IntArray]:
    """Time series of two kinds that differ in their shape: a period, or none.

    Half of them, at random, are sines of an unknown frequency and phase with
    noise; the others are smoothed noise of the same size. Delay embeddings of
    the first are loops, those of the second are not.

    Parameters
    ----------
    n_series : int, default=60
        Number of series; each stands for a person.
    n_steps : int, default=300
        Steps of each.
    random_state : int, RandomState instance or None, default=None
        Seeds the generator. This is simulated data: no privacy is at stake.

    Returns
    -------
    X : ndarray of shape (n_series, n_steps)
    y : ndarray of shape (n_series,)
        1 for the series with a period.

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
    """Visits of people, of whom half come once or twice and some hundreds of times.

    Rows lie about four centres. Each person has her own mixture of these, and an
    offset from them.

    Parameters
    ----------
    n_people : int, default=500
        Number of people.
    max_visits : int, default=500
        The most visits of one person; 1 for one visit each.
    biased : bool, default=False
        Whether those who are mostly near the first centre come twenty times as
        often.
    random_state : int, RandomState instance or None, default=None
        Seeds the generator. This is simulated data: no privacy is at stake.

    Returns
    -------
    X : ndarray of shape (n_visits, 2)
        Nearly all in the box ``[-8, 8]^2``.
    ids : ndarray of shape (n_visits,)
        Whose visit it is, from 0 on.
    y : ndarray of shape (n_visits,)
        Which centre it is about.

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
