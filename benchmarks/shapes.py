"""Clusters by default: shapes, clusters that cross, columns over decades, and far rows."""

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from benchmarks._shape_laws import LAWS
from benchmarks._table import Table, median, scores
from sklearn_dptda.cluster import DPLloyd, DPMoGMorse, DPToMATo, MorseMerging

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
METHODS = (DPMoGMorse, DPToMATo, DPLloyd)


def tables(quick):
    """Yield the table at one epsilon, and one of what more budget changes."""
    laws, seeds = (LAWS[::6] if quick else LAWS), range(2 if quick else 20)
    without = np.median(scores(_without_privacy, laws, seeds[:5]), axis=1)
    found = scores(_score, laws, METHODS, EPSILONS, seeds)
    names = [method.__name__ for method in METHODS]
    yield Table(
        "adjusted Rand index at epsilon 2: median (lower quartile, worst)",
        " | ".join(["law", "not private", *names]),
        [
            (law.__name__, f"{best:.2f}", *(median(each[2], 0.25, 0) for each in own))
            for law, best, own in zip(laws, without, found, strict=True)
        ],
        f"{len(seeds)} tables of 5,000 rows, drawn anew, with a box and without one by turns. Not "
        "private: the best of a mixture, k-means and merged mixtures, with logarithms and without.",
    )
    yield Table(
        "medians by epsilon",
        " | ".join(["law", *(f"{name}: {EPSILONS}" for name in names)]),
        [
            (law.__name__, *(" ".join(f"{np.median(e):.2f}" for e in each) for each in own))
            for law, own in zip(laws, found, strict=True)
        ],
    )


def _score(law, method, epsilon, seed):
    X, y, k = law(np.random.default_rng(seed), 5000)
    middle, half = (X.max(axis=0) + X.min(axis=0)) / 2, 0.55 * np.ptp(X, axis=0)
    bounds = (middle - half, middle + half) if seed % 2 else None
    private = method(n_clusters=k, epsilon=epsilon, bounds=bounds, random_state=seed).fit(X)
    return adjusted_rand_score(y[y >= 0], private.predict(X)[y >= 0])


def _without_privacy(law, seed):
    X, y, k = law(np.random.default_rng(seed), 5000)
    own, found = y >= 0, []
    for rows in (X, np.sign(X) * np.log1p(np.abs(X))):
        rows = StandardScaler().fit_transform(rows)[own]
        for model in (
            GaussianMixture(k, n_init=5, random_state=0),
            KMeans(k, n_init=10, random_state=0),
            MorseMerging(GaussianMixture(16, random_state=0), k),
            MorseMerging(GaussianMixture(32, random_state=0), k),
        ):
            found.append(adjusted_rand_score(y[own], model.fit_predict(rows)))
    return max(found)
