"""Point clouds of known shapes: circles, loops, and clusters defined by connectedness."""

import math
import numbers
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import FloatArray, IntArray, LegacyRandomStateLike
from sklearn_dptda.privacy._parameters import quoted

# The radius at which the arms of a spiral begin. They end at radius 1.
_INNER_RADIUS = 0.2
# The length of an arm is computed at this number of radii, and interpolated between them.
_N_RADII = 2049


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
