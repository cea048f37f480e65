"""Simulated data: point clouds of known shapes, and people.

The shapes are circles, loops, and clusters defined by connectedness. People have several rows or
one time series each.
"""

import math
import numbers
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import uniform_filter1d
from sklearn.utils import check_random_state

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import FloatArray, IntArray, LegacyRandomStateLike
from sklearn_dptda.privacy._parameters import quoted

# The radius at which the arms of a spiral begin. They end at radius 1.
_INNER_RADIUS = 0.2
# The length of an arm is computed at this number of radii, and interpolated between them.
_N_RADII = 2049
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


def make_two_circles(
    n_samples: int = 4000,
    *,
    radii: Sequence[float] = (1.5, 1.0),
    centers: ArrayLike = ((1.5, 1.5), (-1.5, -1.5)),
    noise: float = 0.0,
    weights: ArrayLike | None = None,
    random_state: LegacyRandomStateLike = None,
) -> FloatArray:
    """Generate points on two circles of the plane: two components and two loops.

    Parameters
    ----------
    n_samples : int, default=4000
        Number of points.
    radii : tuple of float, default=(1.5, 1.0)
        Radii of the circles.
    centers : tuple of pairs, default=((1.5, 1.5), (-1.5, -1.5))
        Centres of the circles.
    noise : float, default=0.0
        Standard deviation of Gaussian noise that is added to each coordinate.
    weights : tuple of float, default=None
        Share of the points on each circle. None gives equal shares.
    random_state : int, RandomState instance or None, default=None
        Seed of the generator. The data are simulated, so it does not concern privacy.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)

    References
    ----------
    T. Kang, S. Kim, J. Sohn, J. Awan, "Differentially private topological data analysis",
    Section 5.

    Examples
    --------
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> make_two_circles(100, random_state=0).shape
    (100, 2)
    """
    rng = check_random_state(random_state)
    weights = np.full(len(radii), 1 / len(radii)) if weights is None else np.asarray(weights)
    counts = np.floor(np.cumsum(weights) / np.sum(weights) * n_samples + 0.5).astype(int)
    which = np.searchsorted(counts, np.arange(n_samples), side="right")
    angle = rng.uniform(0, 2 * np.pi, n_samples)
    circles = np.asarray(radii)[which, None] * _directions(angle)
    return _blur(np.asarray(centers, dtype=float)[which] + circles, noise, rng)


def make_loops(
    n_clouds: int = 60,
    n_points: int = 400,
    *,
    n_loops: Sequence[int] = (1, 2),
    noise: float = 0.05,
    random_state: LegacyRandomStateLike = None,
) -> tuple[list[FloatArray], IntArray]:
    """Generate labelled point clouds that differ in their number of loops.

    Without noise, each cloud lies in the box ``[-2, 2]^2``. With one loop it is a circle of radius
    1.5, and with two loops a figure eight of two touching circles of radius 0.9. Each cloud is
    rotated by a random angle.

    Parameters
    ----------
    n_clouds : int, default=60
        Number of clouds. The labels alternate.
    n_points : int, default=400
        Number of points of each cloud.
    n_loops : tuple of int, default=(1, 2)
        Numbers of loops, which are the labels: any of 0 (a disc), 1 and 2.
    noise : float, default=0.05
        Standard deviation of Gaussian noise that is added to each coordinate.
    random_state : int, RandomState instance or None, default=None
        Seed of the generator. The data are simulated, so it does not concern privacy.

    Returns
    -------
    X : list of ndarray of shape (n_points, 2)
    y : ndarray of shape (n_clouds,)
        Number of loops of each cloud.

    Examples
    --------
    >>> from sklearn_dptda.datasets import make_loops
    >>> X, y = make_loops(4, 100, random_state=0)
    >>> len(X), y
    (4, array([1, 2, 1, 2]))
    """
    rng = check_random_state(random_state)
    unknown = set(n_loops) - {0, 1, 2}
    if unknown:
        raise ValueError(f"n_loops must contain only 0, 1 and 2; got {sorted(unknown)}.")
    y = np.array([n_loops[i % len(n_loops)] for i in range(n_clouds)])
    X = []
    for loops in y:
        ring = _directions(rng.uniform(0, 2 * np.pi, n_points))
        if loops == 0:
            cloud = 1.5 * ring * np.sqrt(rng.uniform(size=(n_points, 1)))
        elif loops == 1:
            cloud = 1.5 * ring
        else:
            side = rng.choice([-0.9, 0.9], size=n_points)
            cloud = 0.9 * ring + side[:, None] * np.array([1.0, 0.0])
        turn = rng.uniform(0, 2 * np.pi)
        rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        X.append(cloud @ rotation.T + noise * rng.standard_normal((n_points, 2)))
    return X, y


@fill_doc
def make_spirals(
    n_samples: int = 1000,
    *,
    n_arms: int = 2,
    turns: float = 1.5,
    noise: float = 0.0,
    random_state: LegacyRandomStateLike = None,
) -> tuple[FloatArray, IntArray]:
    """Generate points on interleaved spiral arms of the plane, with one label for each arm.

    The arms extend from radius 0.2 to radius 1, and the points are uniform along their length.
    Without noise, they lie in the box ``[-1, 1]^2``.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of points, at least ``n_arms``. The labels alternate.
    n_arms : int, default=2
        Number of arms.
    turns : float, default=1.5
        Number of times that an arm winds around the origin. The distance between neighbouring
        arms is about ``0.8 / (n_arms * turns)``.
    %(noise_and_seed)s

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
    y : ndarray of shape (n_samples,)
        Index of the arm of each point.

    Examples
    --------
    >>> from sklearn_dptda.datasets import make_spirals
    >>> X, y = make_spirals(100, n_arms=3, random_state=0)
    >>> X.shape, y[:4]
    ((100, 2), array([0, 1, 2, 0]))
    """
    _check_number("n_arms", n_arms, 1, whole=True)
    _check_number("turns", turns, 0, strict=True)
    rng, y = _start(n_samples, n_arms, noise, random_state)
    # Points are uniform in arc length. Otherwise, inner windings would be dense and outer ones
    # would have gaps.
    winding = 2 * np.pi * turns / (1 - _INNER_RADIUS)
    grid = np.linspace(_INNER_RADIUS, 1, _N_RADII)
    length = winding * grid * np.hypot(1, winding * grid) + np.arcsinh(winding * grid)
    radius = np.interp(rng.uniform(length[0], length[-1], n_samples), length, grid)
    angle = winding * (radius - _INNER_RADIUS) + 2 * np.pi * y / n_arms
    return _blur(radius[:, None] * _directions(angle), noise, rng), y


@fill_doc
def make_rings(
    n_samples: int = 1000,
    *,
    radii: ArrayLike = (1.0, 2.0, 3.0),
    n_features: Literal[2, 3] = 2,
    noise: float = 0.0,
    random_state: LegacyRandomStateLike = None,
) -> tuple[FloatArray, IntArray]:
    """Generate points on rings: concentric in the plane, or linked in space.

    In space, the rings form a chain along the first axis, centred at the origin. Each ring lies in
    a plane orthogonal to that of the previous ring, and passes through it. The distance between
    linked rings is two thirds of the smaller radius.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of points, at least the number of rings. The labels alternate, so each ring has
        the same share, whatever its size.
    radii : tuple of float, default=(1.0, 2.0, 3.0)
        Radii of the rings. They must differ if ``n_features=2``.
    n_features : {2, 3}, default=2
        2 gives circles around the origin, and 3 a chain of linked circles.
    %(noise_and_seed)s

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        Index of the ring of each point.

    Examples
    --------
    >>> from sklearn_dptda.datasets import make_rings
    >>> X, y = make_rings(100, n_features=3, random_state=0)
    >>> X.shape, y[:4]
    ((100, 3), array([0, 1, 2, 0]))
    """
    if n_features not in (2, 3):
        raise ValueError(f"n_features must be 2 or 3; got {quoted(n_features)}.")
    radii = _checked_radii(radii, distinct=n_features == 2)
    rng, y = _start(n_samples, len(radii), noise, random_state)
    circle = radii[y, None] * _directions(rng.uniform(0, 2 * np.pi, n_samples))
    if n_features == 2:
        return _blur(circle, noise, rng), y
    X = np.zeros((n_samples, 3))
    X[:, 0] = circle[:, 0] + _chain(radii)[y]
    X[np.arange(n_samples), 1 + y % 2] = circle[:, 1]
    return _blur(X, noise, rng), y


@fill_doc
def make_shapes(
    n_samples: int = 1000, *, noise: float = 0.0, random_state: LegacyRandomStateLike = None
) -> tuple[FloatArray, IntArray]:
    """Generate five different shapes in one scene of the plane.

    The shapes are two interleaved moons (labels 0 and 1), a ring (2) around a disc (3), and a long
    thin ellipse (4). Without noise, they lie in the box ``[-4, 4]^2``, and the distance between
    any two is at least 0.6.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of points, at least 5. The labels alternate.
    %(noise_and_seed)s

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
    y : ndarray of shape (n_samples,)
        Index of the shape of each point.

    Examples
    --------
    >>> from sklearn_dptda.datasets import make_shapes
    >>> X, y = make_shapes(100, random_state=0)
    >>> X.shape, y[:6]
    ((100, 2), array([0, 1, 2, 3, 4, 0]))
    """
    rng, y = _start(n_samples, 5, noise, random_state)
    angle, depth = rng.uniform(size=(2, n_samples))
    arc, ring = _directions(np.pi * angle), _directions(2 * np.pi * angle)
    disc = ring * np.sqrt(depth)[:, None]
    tilt = _directions(np.deg2rad([70, 160]))
    candidates = [
        [-2.1, 1.7] + 1.2 * arc,
        [-0.9, 2.3] - 1.2 * arc,
        [-2.0, -2.0] + 1.5 * ring,
        [-2.0, -2.0] + 0.5 * disc,
        [2.4, 0.0] + disc * [3.0, 0.3] @ tilt,
    ]
    return _blur(np.stack(candidates)[y, np.arange(n_samples)], noise, rng), y


def _start(n_samples, n_shapes, noise, random_state):
    """Check the common parameters of all generators, and return alternating labels."""
    _check_number("n_samples", n_samples, n_shapes, whole=True)
    _check_number("noise", noise, 0)
    return check_random_state(random_state), np.arange(n_samples) % n_shapes


def _check_number(name, value, low, *, whole=False, strict=False):
    kind = numbers.Integral if whole else numbers.Real
    if (
        not isinstance(value, kind)
        or isinstance(value, bool)
        or not (low < value if strict else low <= value)
        or not math.isfinite(value)
    ):
        raise ValueError(
            f"{name} must be a {'whole' if whole else 'finite'} number "
            f"{'above' if strict else 'of at least'} {low}; got {quoted(value)}."
        )


def _checked_radii(radii: ArrayLike, distinct: bool) -> FloatArray:
    try:
        values = np.asarray(radii, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"radii must be a list of numbers; got {quoted(radii)}.") from None
    if values.ndim != 1 or not values.size or not (np.isfinite(values) & (values > 0)).all():
        raise ValueError(
            f"radii must be a non-empty list of finite positive numbers; got {quoted(radii)}."
        )
    if distinct and np.unique(values).size < values.size:
        raise ValueError(f"radii must differ if n_features=2; got {quoted(radii)}.")
    return values


def _chain(radii):
    """Return the centres of the rings on the axis of the chain, whose middle is 0."""
    # With an overlap of two thirds, the distance of a ring to the next but one is two thirds, too.
    link = 2 / 3 * np.minimum(radii[:-1], radii[1:])
    centers = np.concatenate([[0], np.cumsum(radii[:-1] + radii[1:] - link)])
    return centers - ((centers - radii).min() + (centers + radii).max()) / 2


def _directions(angle):
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _blur(X, noise, rng):
    return X + noise * rng.standard_normal(X.shape) if noise else X


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
