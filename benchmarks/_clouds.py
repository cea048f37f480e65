"""Simulated point clouds in the plane: distributions of shapes, and boxes that contain them."""

from dataclasses import dataclass

import numpy as np

from sklearn_dptda.datasets import make_two_circles


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
    weights = np.array([weight for weight, _ in parts])
    counts = rng.multinomial(n, weights / weights.sum())
    return np.concatenate(
        [draw(count, rng) for count, (_, draw) in zip(counts, parts, strict=True)]
    )


def _some_rings(*rings):
    """Return a distribution of several rings, given as (weight, radius, centre)."""

    def draw(n, rng):
        return _parts(
            n,
            rng,
            *(
                (
                    weight,
                    lambda k, r, radius=radius, centre=centre: _ring(k, r, radius, 0.05, centre),
                )
                for weight, radius, centre in rings
            ),
        )

    return draw


def _eight_and_blob(n, rng):
    eight = _some_rings((1, 1.0, (-1, 0)), (1, 1.0, (1, 0)))
    blob = lambda k, r: np.array([0, 2.1]) + r.normal(0, 0.12, (k, 2))  # noqa: E731
    return _parts(n, rng, (0.8, eight), (0.2, blob))


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
    noise = lambda k, r: r.uniform(-3, 3, (k, 2))  # noqa: E731
    return _parts(n, rng, (0.7, lambda k, r: _ring(k, r, 1.5)), (0.3, noise))


# Shapes on which the rule for caps was developed.
KNOWN = (
    Shape(
        "two circles",
        lambda n, r: make_two_circles(n, random_state=int(r.integers(2**31))),
        (-2.5, 3),
    ),
    Shape("figure eight", _some_rings((1, 1.0, (-1, 0)), (1, 1.0, (1, 0)))),
    Shape("eight and blob", _eight_and_blob),
    Shape(
        "three rings",
        _some_rings((0.45, 1.0, (-1.4, -1)), (0.33, 0.8, (1.4, -1)), (0.22, 0.6, (0, 1.4))),
    ),
    Shape("spiral", _spiral),
    Shape("torus", _torus),
    Shape("S-curve", _s_curve),
    Shape("ring that fills its box", lambda n, r: _ring(n, r, 2.9, 0.03)),
    Shape("blob", lambda n, r: r.normal(0, 0.8, (n, 2))),
    Shape("ring in noise", _ring_in_noise),
)


def _ellipses(n, rng):
    flat = lambda k, r: _ring(k, r, 1.2, 0.05, (-0.9, -0.6), (1.0, 0.5))  # noqa: E731
    tall = lambda k, r: _ring(k, r, 1.2, 0.05, (1.2, 0.5), (0.6, 1.2))  # noqa: E731
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
    disc = lambda k, r: np.array([1.7, 1.7]) + r.normal(0, 0.35, (k, 2))  # noqa: E731
    return _parts(n, rng, (0.6, lambda k, r: _ring(k, r, 1.1, 0.08, (-0.8, -0.8))), (0.4, disc))


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
