"""Peaks of a density: times of ToMATo, GUDHI and HDBSCAN, and accuracy of private peaks."""

import os
from pathlib import Path

import numpy as np
from gudhi.clustering.tomato import Tomato
from joblib import Parallel, delayed
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from benchmarks._table import Table
from benchmarks._timing import Ratio, side_by_side
from sklearn_dptda.cluster import DPLloyd, DPToMATo, ToMATo
from sklearn_dptda.datasets import make_rings, make_shapes, make_spirals

EPSILONS = (0.5, 1.0, 2.0, 5.0)


def _blobs(n, seed):
    centers = np.random.default_rng(7).uniform(-4, 4, (5, 2))
    return make_blobs(n, centers=centers, cluster_std=0.5, random_state=seed)


# Number of clusters, bounds, and a function that generates the data.
SHAPES = {
    "moons": (
        2,
        ([-1.6, -1.1], [2.6, 1.6]),
        lambda n, s: make_moons(n, noise=0.07, random_state=s),
    ),
    "circles": (
        2,
        (-1.3, 1.3),
        lambda n, s: make_circles(n, noise=0.05, factor=0.4, random_state=s),
    ),
    "spirals": (2, (-1.2, 1.2), lambda n, s: make_spirals(n, noise=0.02, random_state=s)),
    "five blobs": (5, (-6, 6), _blobs),
    "five shapes": (5, (-4, 4), lambda n, s: make_shapes(n, noise=0.05, random_state=s)),
    "three linked rings, 3-D": (
        3,
        (-2.5, 2.5),
        lambda n, s: make_rings(n, radii=(1, 1, 1), n_features=3, noise=0.05, random_state=s),
    ),
}
# Clusters of different densities, or with background noise. Tables are read from the folder that
# SKLEARN_DPTDA_DATA names.
UNDER_NOISE = {
    "cluto_t4_8k": (6, lambda s: npz_table("cluto_t4_8k")),
    "cluto_t7_10k": (9, lambda s: npz_table("cluto_t7_10k")),
    "aggregation": (7, lambda s: npz_table("aggregation")),
    "five discs": (5, lambda s: _discs(6000, s)),
    "unequal blobs, 1,500 rows": (3, lambda s: _unequal(1500)),
    "unequal blobs, 5,000 rows": (3, lambda s: _unequal(5000)),
    "moons, 2,000 rows": (2, lambda s: make_moons(2000, noise=0.06, random_state=s)),
    "circles, 2,000 rows": (
        2,
        lambda s: make_circles(2000, noise=0.05, factor=0.5, random_state=s),
    ),
    "fifteen blobs, 5,000 rows": (15, lambda s: _fifteen(5000, s)),
}


def npz_table(name):
    """Read rows and labels (-1 for noise) from a file in the data folder."""
    with np.load(Path(os.environ["SKLEARN_DPTDA_DATA"]) / f"{name}.npz") as table:
        return table["X"], table["y"]


def _discs(n, seed):
    rng = np.random.default_rng(seed)
    centers = np.array([[2, 2], [7, 2], [2, 7], [7.5, 7.5], [4.7, 4.7]])
    y = rng.choice(6, n, p=[0.085, 0.255, 0.255, 0.1275, 0.1275, 0.15])
    turn, radius = rng.uniform(0, 2 * np.pi, n), np.sqrt(rng.uniform(size=n))
    X = rng.uniform(0, 10, size=(n, 2))
    sizes = np.array([1.5, 1.5, 1.2, 2.0, 0.5])
    inside = y < 5
    disc = radius[:, None] * np.column_stack([np.cos(turn), np.sin(turn)])
    X[inside] = centers[y[inside]] + sizes[y[inside], None] * disc[inside]
    return X, np.where(inside, y, -1)


def _unequal(n):
    return make_blobs(n, cluster_std=[1.0, 2.5, 0.5], random_state=170)


def _fifteen(n, seed):
    centers = [(i, j) for i in range(5) for j in range(3)]
    return make_blobs(n, centers=centers, cluster_std=0.18, random_state=seed)


def tables(quick):
    """Yield the tables of this benchmark."""
    yield _times(quick)
    for n in (1000,) if quick else (1000, 10_000):
        yield _scores(n, 2 if quick else 10)
    yield _under_noise(2 if quick else 10)


def _times(quick):
    rows = []
    for n, d in ((5000, 2),) if quick else ((10_000, 2), (100_000, 2), (100_000, 8)):
        X = make_blobs(n, d, centers=8, cluster_std=1.5, random_state=0)[0]
        k = 20

        def own(X=X, k=k):
            return ToMATo(8, n_neighbors=k).fit(X)

        def gudhi(X=X, k=k):
            return Tomato(k=k, n_clusters=8).fit(X)

        def hdbscan(X=X):
            return HDBSCAN(copy=True).fit(X)

        functions = (own, gudhi, hdbscan) if n <= 10_000 else (own, gudhi)
        times = side_by_side(*functions, repeats=1 if quick else 5)
        ratio = Ratio.of(times[0], times[1])
        rows.append(
            (
                n,
                d,
                f"{times[0]}",
                f"{times[1]}",
                f"{times[2]}" if len(times) > 2 else "-",
                ratio,
            )
        )
    return Table(
        "Times of ToMATo with 20 neighbours, of GUDHI's Tomato and of HDBSCAN",
        ("rows", "columns", "ToMATo, s", "GUDHI, s", "HDBSCAN, s", "ToMATo / GUDHI"),
        rows,
        "Medians (range) of calls in turn, with one thread each. HDBSCAN is run only where it "
        "takes seconds.",
    )


def _scores(n, n_repeats):
    rows = []
    for name, (k, bounds, make) in SHAPES.items():
        cells = []
        for epsilon in EPSILONS:
            scores = np.array(
                Parallel(n_jobs=-1)(
                    delayed(_score)(make, n, seed, k, epsilon, bounds) for seed in range(n_repeats)
                )
            )
            cells.append(" / ".join(f"{value:.2f}" for value in scores.mean(axis=0)))
        X, y = make(n, 0)
        plain = adjusted_rand_score(y, KMeans(k, n_init=3, random_state=0).fit_predict(X))
        rows.append((name, *cells, plain))
    return Table(
        f"Adjusted Rand index, {n:,} rows: DPToMATo with given / estimated number / DPLloyd",
        ("shape", *(f"epsilon = {e:g}" for e in EPSILONS), "KMeans, not private"),
        rows,
        f"Means over {n_repeats} data sets and seeds of noise, with public bounds and default "
        "settings.",
    )


def _score(make, n, seed, k, epsilon, bounds):
    X, y = make(n, seed)
    models = (
        DPToMATo(k, epsilon, bounds, random_state=seed),
        DPToMATo(None, epsilon, bounds, random_state=seed),
        DPLloyd(k, epsilon, bounds=bounds, random_state=seed),
    )
    return [adjusted_rand_score(y, model.fit(X).predict(X)) for model in models]


def _under_noise(n_repeats):
    rows = []
    for name, (k, make) in UNDER_NOISE.items():
        try:
            make(0)
        except (KeyError, FileNotFoundError):
            rows.append((name, "not in SKLEARN_DPTDA_DATA", *["-"] * 4))
            continue
        scores = np.array(
            Parallel(n_jobs=-1)(
                delayed(_score_under_noise)(make, seed, k) for seed in range(n_repeats)
            )
        )
        given, found, numbers, missed, lost = scores.mean(axis=0).T
        cells = [
            "-" if np.isnan(pair).all() else " / ".join(f"{value:.{digits}f}" for value in pair)
            for pair, digits in ((given, 2), (found, 2), (numbers, 1), (missed, 2), (lost, 2))
        ]
        rows.append((f"{name} ({k})", *cells))
    return Table(
        "DPToMATo, different densities and background noise: epsilon = 1 / 0.2",
        (
            "data (clusters)",
            "number given",
            "number estimated",
            "estimated number of clusters",
            "share of noise rows in clusters",
            "share of cluster rows labelled -1",
        ),
        rows,
        f"Adjusted Rand index of the rows that are not noise, means over {n_repeats} seeds. The "
        "bounds are the range of the data, which a private analysis must not use. The last two "
        'columns use noise="auto".',
    )


def _score_under_noise(make, seed, k):
    X, y = make(seed)
    bounds, true = (X.min(axis=0), X.max(axis=0)), y >= 0
    rows = []
    for epsilon in (1.0, 0.2):
        given, found, marked = (
            DPToMATo(n, epsilon, bounds, noise=noise, random_state=seed).fit(X)
            for n, noise in ((k, None), (None, None), (None, "auto"))
        )
        background = marked.predict(X) < 0
        rows.append(
            [
                adjusted_rand_score(y[true], given.predict(X[true])),
                adjusted_rand_score(y[true], found.predict(X[true])),
                found.n_clusters_,
                np.nan if true.all() else 1 - background[~true].mean(),
                background[true].mean(),
            ]
        )
    return rows
