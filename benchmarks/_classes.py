"""Classes of clouds in the plane: 24 clouds of 600 points, half of them of each of two shapes."""

from functools import partial

import numpy as np
from sklearn.datasets import make_circles, make_moons

from sklearn_dptda.datasets import make_loops, make_rings

_POINTS, _CLOUDS = 600, 24


def _seed(rng):
    return int(rng.integers(2**31))


def _rings(*radii, rng):
    return make_rings(_POINTS, radii=radii, noise=0.15, random_state=_seed(rng))[0]


def _annulus(inner, rng):
    radius, turn = np.sqrt(rng.uniform(inner**2, 1, _POINTS)), rng.uniform(0, 2 * np.pi, _POINTS)
    points = np.column_stack([radius * np.cos(turn), radius * np.sin(turn)])
    return 2 * points + 0.1 * rng.standard_normal((_POINTS, 2))


def _moons(rng):
    return 1.6 * (make_moons(_POINTS, noise=0.1, random_state=_seed(rng))[0] - [0.5, 0.25])


def _circles(rng):
    return 2 * make_circles(_POINTS, noise=0.08, factor=0.45, random_state=_seed(rng))[0]


def _square(rng):
    t, side = rng.uniform(-1.5, 1.5, _POINTS), rng.integers(4, size=_POINTS)
    edge = np.where(side % 2, 1.5, -1.5)
    points = np.column_stack([np.where(side < 2, t, edge), np.where(side < 2, edge, t)])
    return points + 0.15 * rng.standard_normal((_POINTS, 2))


def _cross(rng):
    t, across = rng.uniform(-2, 2, _POINTS), rng.random(_POINTS) < 0.5
    points = np.column_stack([np.where(across, t, 0), np.where(across, 0, t)])
    return points + 0.15 * rng.standard_normal((_POINTS, 2))


def _groups(k, rng):
    turns = 2 * np.pi * np.arange(k) / k
    centres = 1.8 * np.column_stack([np.cos(turns), np.sin(turns)])
    return centres[rng.integers(k, size=_POINTS)] + 0.3 * rng.standard_normal((_POINTS, 2))


def _drawn(first, second, seed):
    rng = np.random.default_rng(seed)
    y = _labels(rng)
    return [np.clip((second if label else first)(rng=rng), -3, 3) for label in y], y


def _labels(rng):
    # In random order: the seeded noise of a place is the same for clouds to learn from and for
    # fresh clouds, and would tell labels that are the same as well.
    return rng.permutation(np.arange(_CLOUDS) % 2)


def _loops(seed):
    clouds, y = make_loops(_CLOUDS, _POINTS, random_state=seed)
    order = np.random.default_rng(seed).permutation(_CLOUDS)
    return [np.clip(clouds[i], -3, 3) for i in order], np.asarray(y)[order]


def _disc(rng):
    return _blurred(np.sqrt(rng.random(_POINTS)), rng)


def _wide_ring(rng):
    return _blurred(0.75 + 0.25 * rng.random(_POINTS), rng)


def _blurred(radius, rng):
    turn = 2 * np.pi * rng.random(_POINTS)
    points = 2 * radius[:, None] * np.column_stack([np.cos(turn), np.sin(turn)])
    return points + 0.35 * rng.standard_normal((_POINTS, 2))


# Each draws clouds and labels of a seed.
CLASSES = {
    "ring or disc": partial(_drawn, _wide_ring, _disc),
    "one loop or two": _loops,
    "ring, or ring in ring": partial(_drawn, partial(_rings, 2.0), partial(_rings, 1.0, 2.0)),
    "wide or narrow annulus": partial(_drawn, partial(_annulus, 0.3), partial(_annulus, 0.6)),
    "moons or circles": partial(_drawn, _moons, _circles),
    "square or cross": partial(_drawn, _square, _cross),
    "three or five groups": partial(_drawn, partial(_groups, 3), partial(_groups, 5)),
    "no difference": partial(_drawn, _disc, _disc),
}
