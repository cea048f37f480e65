"""Data sets for clustering: tables that are available, and simulated shapes."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.datasets import get_data_home, make_blobs, make_circles, make_moons
from sklearn.manifold import TSNE

from sklearn_dptda.datasets import load_table


class Task(NamedTuple):
    """Rows, labels, and the numbers of components and clusters."""

    name: str
    X: np.ndarray
    y: np.ndarray
    n_components: int
    n_clusters: int
    bounds: tuple


def tasks(quick):
    """Yield tasks; tables that are not available are left out."""
    n = 1000 if quick else 5000
    yield _boxed("moons", *make_moons(n, noise=0.08, random_state=0), 8, 2)
    yield _boxed("circles", *make_circles(n, noise=0.05, factor=0.4, random_state=0), 16, 2)
    yield _boxed("blobs, 8-D", *make_blobs(n, n_features=8, centers=5, random_state=0), 10, 5)
    if quick:
        return
    numbers = {"pulsar": 6, "magic": 6, "shuttle": 12, "emg": 10, "sloan": 6}
    for name, n_components in numbers.items():
        try:
            data = load_table(name)
        except FileNotFoundError as error:
            print(error)
            continue
        given = data.data, data.target, n_components, len(data.target_names)
        yield _boxed(name, *given)
        yield Task(f"{name}, loader's bounds", *given, data.bounds)
    try:
        yield _usps()
    except FileNotFoundError as error:
        print(error)


def _boxed(name, X, *given):
    """Bounds at the extremes of a public table, which the paper uses to scale its tables."""
    low, high = X.min(axis=0), X.max(axis=0)
    return Task(name, X, *given, (low, np.where(high > low, high, low + 1)))


def _usps():
    """Digits in three dimensions by t-SNE, as in the paper; no guarantee covers the t-SNE."""
    data = load_table("usps")
    path = Path(get_data_home()) / "usps_tsne_3d.npy"
    if not path.is_file():
        embedding = TSNE(3, init="pca", random_state=0).fit_transform(data.data.astype(np.float32))
        np.save(path, embedding)
    return _boxed("usps, t-SNE 3-D", np.load(path).astype(float), data.target, 13, 10)


def npz_table(name):
    """Read rows and labels (-1 for noise) from a file in the data folder."""
    with np.load(Path(os.environ["SKLEARN_DPTDA_DATA"]) / f"{name}.npz") as table:
        return table["X"], table["y"]
