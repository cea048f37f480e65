"""Clouds whose features are known, and neighbours that move diagrams as much as a point can."""

import numpy as np

from sklearn_dptda import DTMFiltration
from sklearn_dptda.datasets import make_two_circles


def four_clouds(n=4000):
    rng = np.random.default_rng(0)
    angle, radius = rng.uniform(0, 2 * np.pi, n), 1.5 * np.sqrt(rng.uniform(size=n))
    return [
        make_two_circles(n, random_state=0),
        make_two_circles(n, radii=(1.5,), centers=((0, 0),), random_state=0),
        radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]),
        rng.uniform(-2.5, 3, (n, 2)),
    ]


def hostile_pairs(k):
    """Clouds in a square of side 2 that differ in one point, made to move diagrams a lot."""
    rng = np.random.default_rng(k)
    turns = np.linspace(0, 2 * np.pi, 9 * k, endpoint=False)
    ring = np.column_stack([np.cos(turns), np.sin(turns)])
    corners, nodes = np.array([[-1.0, -1.0], [1.0, 1.0]]), np.linspace(-1, 1, 15)
    clouds = [
        np.repeat(corners, k, axis=0),
        np.repeat(np.vstack([corners, [[0.0, 0.0]]]), k, axis=0),
        0.8 * ring,
        0.4 * ring,
        0.516 * ring,
        np.repeat(rng.uniform(-1, 1, (3, 2)), k, axis=0),
        np.repeat(
            nodes[rng.integers(15, size=(5, 2))], rng.integers(max(1, k - 1), k + 2, 5), axis=0
        ),
        np.repeat(
            nodes[rng.integers(15, size=(3, 2))], rng.integers(max(1, k - 1), k + 2, 3), axis=0
        ),
        rng.uniform(-1, 1, (4 * k, 2)),
    ]
    for cloud in clouds:
        for place in ([0.0, 0.0], [1.0, 1.0], [-1.0, 1.0], [0.3, -0.7]):
            moved = cloud.copy()
            moved[len(cloud) // 2 - 1] = place
            yield cloud, moved


def filtration_of(cloud, k, **options):
    """The function of a cloud in which neighbours of a node are as many as ``k`` points."""
    filtration = DTMFiltration(
        k / len(cloud), bounds=(-1, 1), resolution=15, method="exact", **options
    )
    return filtration.fit_transform([cloud])[0]
