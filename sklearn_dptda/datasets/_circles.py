"""Point clouds with a known shape."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from sklearn_dptda._typing import FloatArray, IntArray, LegacyRandomStateLike


def make_two_circles(
    n_samples: int = 4000,
    *,
    radii: Sequence[float] = (1.5, 1.0),
    centers: ArrayLike = ((1.5, 1.5), (-1.5, -1.5)),
    noise: float = 0.0,
    weights: ArrayLike | None = None,
    random_state: LegacyRandomStateLike = None,
) -> FloatArray:
    """Points on two circles of the plane: two components, two loops.

    Parameters
    ----------
    n_samples : int, default=4000
        Number of points.
    radii : tuple of float, default=(1.5, 1.0)
        Radii of the circles.
    centers : tuple of pairs, default=((1.5, 1.5), (-1.5, -1.5))
        Centres of the circles.
    noise : float, default=0.0
        Standard deviation of Gaussian noise on each coordinate.
    weights : tuple of float, default=None
        Share of the points on each circle. None: equal.
    random_state : int, RandomState instance or None, default=None
        Seeds the generator. This is simulated data: no privacy is at stake.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)

    References
    ----------
    T. Kang, S. Kim, J. Sohn, J. Awan, "Differentially private topological data
    analysis", Section 5.

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
    directions = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    X = np.asarray(centers, dtype=float)[which] + np.asarray(radii)[which, None] * directions
    return X + noise * rng.standard_normal(X.shape) if noise else X


def make_loops(
    n_clouds: int = 60,
    n_points: int = 400,
    *,
    n_loops: Sequence[int] = (1, 2),
    noise: float = 0.05,
    random_state: LegacyRandomStateLike = None,
) -> tuple[list[FloatArray], IntArray]:
    """Labelled clouds that differ in their number of loops.

    Each cloud lies in the box ``[-2, 2]^2``: one circle, or a figure eight of
    two touching ones of half the size, at a random angle.

    Parameters
    ----------
    n_clouds : int, default=60
        Number of clouds; labels alternate.
    n_points : int, default=400
        Points of each cloud.
    n_loops : tuple of int, default=(1, 2)
        Numbers of loops, the labels: any of 0 (a disc), 1 and 2.
    noise : float, default=0.05
        Standard deviation of Gaussian noise on each coordinate.
    random_state : int, RandomState instance or None, default=None
        Seeds the generator. This is simulated data: no privacy is at stake.

    Returns
    -------
    X : list of ndarray of shape (n_points, 2)
    y : ndarray of shape (n_clouds,)
        Number of loops.

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
        raise ValueError(f"n_loops may contain 0, 1 and 2; got {sorted(unknown)}.")
    y = np.array([n_loops[i % len(n_loops)] for i in range(n_clouds)])
    X = []
    for loops in y:
        angle = rng.uniform(0, 2 * np.pi, n_points)
        ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
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
