"""Simulated point clouds in the plane with boxes that contain them, and errors of diagrams."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.persistence import bottleneck_distance


@dataclass(frozen=True)
class Shape:
    """A distribution of points in the plane, and the lower and upper bound of its box."""

    name: str
    draw: object
    box: tuple = (-3.0, 3.0)

    def cloud(self, n, seed):
        """Draw ``n`` points."""
        return self.draw(n, np.random.default_rng(seed))

    def bounds(self, wide=1):
        """Return the box, enlarged by the factor ``wide``."""
        low, high = self.box
        centre, half = (low + high) / 2, (high - low) / 2
        return centre - wide * half, centre + wide * half


def _curve(x, y, spread, rng):
    return np.column_stack([x, y]) + rng.normal(0, spread, (len(x), 2))


def _ring(n, rng, radius=1.0, spread=0.05, centre=(0.0, 0.0), stretch=(1.0, 1.0)):
    t = rng.uniform(0, 2 * np.pi, n)
    circle = _curve(stretch[0] * np.cos(t), stretch[1] * np.sin(t), spread / radius, rng)
    return np.array(centre) + radius * circle


def _parts(n, rng, *parts):
    """Draw a random number of points of each part, by its weight."""
    weights, draws = zip(*parts, strict=True)
    counts = rng.multinomial(n, np.array(weights) / sum(weights))
    return np.concatenate([draw(count, rng) for count, draw in zip(counts, draws, strict=True)])


def _some_rings(*rings):
    """Return a distribution of several rings, given as (weight, radius, centre)."""
    parts = [(w, partial(_ring, radius=radius, centre=centre)) for w, radius, centre in rings]
    return lambda n, rng: _parts(n, rng, *parts)


_EIGHT = _some_rings((1, 1.0, (-1, 0)), (1, 1.0, (1, 0)))


def _blob(n, rng, spread, centre=(0.0, 0.0)):
    return np.array(centre) + rng.normal(0, spread, (n, 2))


def _eight_and_blob(n, rng):
    return _parts(n, rng, (0.8, _EIGHT), (0.2, partial(_blob, spread=0.12, centre=(0, 2.1))))


def _spiral(n, rng):
    t = 3.2 * np.pi * np.sqrt(rng.uniform(0.08, 1, n))
    return _curve(t * np.cos(t) / 5, t * np.sin(t) / 5, 0.05, rng)


def _torus(n, rng):
    u, v = rng.uniform(0, 2 * np.pi, (2, n))
    x, y = (1.5 + 0.5 * np.cos(v)) * np.cos(u), (1.5 + 0.5 * np.cos(v)) * np.sin(u)
    return np.column_stack([x, y * np.cos(0.6) - 0.5 * np.sin(v) * np.sin(0.6)])


def _s_curve(n, rng):
    t = 3 * np.pi * (rng.random(n) - 0.5)
    return _curve(1.5 * np.sin(t), np.sign(t) * (np.cos(t) - 1), 0.08, rng)


def _ring_in_noise(n, rng):
    ring = partial(_ring, radius=1.5)
    return _parts(n, rng, (0.7, ring), (0.3, lambda k, r: r.uniform(-3, 3, (k, 2))))


# Shapes on which the rule for caps was developed.
KNOWN = (
    Shape(
        "two circles",
        lambda n, r: make_two_circles(n, random_state=int(r.integers(2**31))),
        (-2.5, 3),
    ),
    Shape("figure eight", _EIGHT),
    Shape("eight and blob", _eight_and_blob),
    Shape(
        "three rings",
        _some_rings((0.45, 1.0, (-1.4, -1)), (0.33, 0.8, (1.4, -1)), (0.22, 0.6, (0, 1.4))),
    ),
    Shape("spiral", _spiral),
    Shape("torus", _torus),
    Shape("S-curve", _s_curve),
    Shape("ring that fills its box", partial(_ring, radius=2.9, spread=0.03)),
    Shape("blob", partial(_blob, spread=0.8)),
    Shape("ring in noise", _ring_in_noise),
)


def _ellipses(n, rng):
    flat = partial(_ring, radius=1.2, centre=(-0.9, -0.6), stretch=(1.0, 0.5))
    tall = partial(_ring, radius=1.2, centre=(1.2, 0.5), stretch=(0.6, 1.2))
    return _parts(n, rng, (0.5, flat), (0.5, tall))


def _cross(n, rng):
    t, across = rng.uniform(-2.2, 2.2, n), rng.random(n) < 0.5
    t = np.where(np.abs(t) < 0.5, np.sign(t) * (0.5 + np.abs(t)), t)
    return _curve(np.where(across, t, 0), np.where(across, 0, t), 0.06, rng)


def _rose(n, rng):
    t = rng.uniform(0, np.pi, n)
    radius = 2.3 * np.cos(3 * t)
    return _curve(radius * np.cos(t), radius * np.sin(t), 0.05, rng)


def _annulus(n, rng):
    radius, t = np.sqrt(rng.uniform(0.8**2, 1.8**2, n)), rng.uniform(0, 2 * np.pi, n)
    return np.column_stack([radius * np.cos(t), radius * np.sin(t)])


def _square(n, rng):
    t, side = rng.uniform(-1.5, 1.5, n), rng.integers(4, size=n)
    edge = np.where(side % 2, 1.5, -1.5)
    return _curve(np.where(side < 2, t, edge), np.where(side < 2, edge, t), 0.05, rng)


def _two_arms(n, rng):
    t, turn = np.sqrt(rng.uniform(0.05, 1, n)) * 1.6 * np.pi, np.pi * rng.integers(2, size=n)
    return _curve(t * np.cos(t + turn) / 2.2, t * np.sin(t + turn) / 2.2, 0.05, rng)


def _triangle_of_blobs(n, rng):
    corners = np.array([(-1.6, -1.0), (1.6, -1.0), (0.0, 1.7)])
    return corners[rng.choice(3, n, p=[0.5, 0.3, 0.2])] + rng.normal(0, 0.25, (n, 2))


def _ring_and_disc(n, rng):
    ring = partial(_ring, radius=1.1, spread=0.08, centre=(-0.8, -0.8))
    return _parts(n, rng, (0.6, ring), (0.4, partial(_blob, spread=0.35, centre=(1.7, 1.7))))


# New shapes, which were not used for tuning.
FRESH = (
    Shape("two ellipses", _ellipses),
    Shape("open cross", _cross),
    Shape("rose of three", _rose),
    Shape("annulus", _annulus),
    Shape(
        "four small rings",
        _some_rings(*((1, 0.55, (x, y)) for x in (-1.2, 1.2) for y in (-1.2, 1.2))),
    ),
    Shape("square", _square),
    Shape("two arms", _two_arms),
    Shape("three blobs", _triangle_of_blobs),
    Shape("ring and disc", _ring_and_disc),
    Shape("even square", lambda n, r: r.uniform(-2, 2, (n, 2))),
)


def finite_parts(diagrams):
    """Return H0 without its essential class, and H1."""
    components, loops = diagrams
    undying = np.lexsort((components[:, 0], -components[:, 1]))[:1]
    return [np.delete(components, undying, axis=0), loops]


def apart(first, second):
    """Return the sum of the bottleneck distances between two lists of diagrams."""
    return sum(map(bottleneck_distance, first, second))
