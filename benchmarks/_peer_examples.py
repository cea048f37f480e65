"""Data sets for private clusterings: the examples of the peers, and our own."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.preprocessing import StandardScaler

from sklearn_dptda.datasets import load_table

# Files of the two-dimensional data sets of the CLUTO papers.
_SCENES = {"cluto-t4": ("cluto_t4_8k.npz", 9.0, 11), "cluto-t7": ("cluto_t7_10k.npz", 12.0, 20)}


@dataclass(frozen=True)
class Example:
    """Rows in the cube [-1/2, 1/2]^d, their labels, and parameters of the methods.

    ``radius`` is the radius of a ball around the origin that contains all rows. ``original``,
    ``alpha`` and ``min_points`` are used by DP-DBSCAN. ``large`` data sets are run at one epsilon,
    without mixtures.
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    radius: float
    original: np.ndarray | None = None
    alpha: float = 0.0
    min_points: int = 0
    large: bool = False


def examples(quick):
    """Yield the examples; data sets that are not available are left out."""
    n = 2000
    make = {
        "DP-DBSCAN's moons": (make_moons(n, noise=0.05, random_state=30), 7),
        "DP-DBSCAN's circles": (make_circles(n, factor=0.5, noise=0.05, random_state=30), 10),
        "DP-DBSCAN's blobs": (_uneven_blobs(n), 7),
    }
    for name, ((X, y), min_points) in make.items():
        yield _boxed(name, StandardScaler().fit_transform(X), y, 0.2, min_points)
        if quick:
            return
    yield from _scenes()
    # A tenth of the rows of the peers' demonstrations, and all of them.
    for n in (10_000, 100_000):
        X, y = make_blobs(n, 10, centers=64, center_box=(-100, 100), random_state=42)
        # DPM states the box [-100, 100], so all methods use it. A few rows are outside.
        yield Example("DPM's blobs, 10-D", X / 200, y, np.sqrt(10) / 2, large=n > 10_000)
        X, y = ball_of_clusters(n, 100, 64, 8.0)
        yield Example("Google's clusters, 100-D", X / 2, y, 0.5, large=n > 10_000)
    X, y = make_blobs(10_000, 2, centers=5, cluster_std=0.6, random_state=3)
    yield _boxed("five blobs", X, y, 0.0, 0)
    X, y = make_moons(5000, noise=0.08, random_state=0)
    yield _boxed("our moons", StandardScaler().fit_transform(X), y, 0.2, 7)
    try:
        data = load_table("pulsar")
    except FileNotFoundError as error:
        print(error)
        return
    yield _boxed("pulsar", data.data, data.target, 0.0, 0)


def _uneven_blobs(n):
    centers = [[1, 1], [-1, -1], [1.5, -1.5]]
    return make_blobs(n, centers=centers, cluster_std=[0.4, 0.1, 0.75], random_state=30)


def _scenes():
    folder = os.environ.get("SKLEARN_DPTDA_DATA")
    for name, (file, alpha, min_points) in _SCENES.items():
        if folder and (Path(folder) / file).is_file():
            with np.load(Path(folder) / file) as data:
                yield _boxed(f"DP-DBSCAN's {name}", data["X"], data["y"], alpha, min_points)
        else:
            print(f"{file} is not in the folder that SKLEARN_DPTDA_DATA names")


def _boxed(name, X, y, alpha, min_points):
    low, high = X.min(axis=0), X.max(axis=0)
    unit = (X - low) / np.where(high > low, high - low, 1.0) - 0.5
    d = X.shape[1]
    return Example(name, unit, y, np.sqrt(d) / 2, X if alpha else None, alpha, min_points)


def ball_of_clusters(n, d, k, ratio, seed=0):
    """Gaussian clusters around uniform points of the unit ball, projected back into the ball.

    This is the distribution in the demonstration of Google's clustering, with the radius 1.
    """
    rng = np.random.default_rng(seed)
    centers = rng.standard_normal((k, d))
    radii = (1 - 1 / ratio) * rng.random(k) ** (1 / d)
    centers *= (radii / np.linalg.norm(centers, axis=1))[:, None]
    y = np.repeat(np.arange(k), -(-n // k))[:n]
    X = centers[y] + rng.standard_normal((n, d)) / (ratio * np.sqrt(d))
    return X / np.maximum(np.linalg.norm(X, axis=1), 1.0)[:, None], y
