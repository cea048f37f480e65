"""Comparison with peers in separate environments: private k-means and spectral embedding.

``DIFFPRIVLIB_PYTHON`` and ``GRASPOLOGIC_PYTHON`` name the interpreters (diffprivlib 0.6 needs
``scikit-learn==1.6.1``). The table of a missing peer is left out, and a message says so.
"""

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from benchmarks._ask import ask, missing
from benchmarks._table import Table
from benchmarks._tables_of_rows import tasks
from benchmarks._timing import Ratio, once, repeated, summary
from sklearn_dptda.cluster import DPLloyd
from sklearn_dptda.graph import AdjacencySpectralEmbedding, make_latent, make_rdpg

EPSILONS = (0.1, 0.5, 1.0, 5.0)
DELTA = 1e-6


def tables(quick):
    """Yield the tables of this benchmark."""
    yield _kmeans(quick)
    yield _embedding(quick)


def _tables_of_rows(quick):
    n = 1000 if quick else 10_000
    X, y = make_blobs(n, 2, centers=5, cluster_std=0.6, random_state=3)
    yield f"five blobs, {n:,} rows", X, y, 5
    for task in tasks(quick):
        if task.name in ("moons", "blobs, 8-D", "pulsar", "usps, t-SNE 3-D"):
            yield task.name, task.X, task.y, task.n_clusters


def _kmeans(quick):
    n_seeds, epsilons = (2, (1.0,)) if quick else (10, EPSILONS)
    if reason := missing("DIFFPRIVLIB"):
        return f"Private k-means is skipped: {reason}.\n"
    rows = [
        _kmeans_row(name, X, y, k, epsilon, n_seeds)
        for name, X, y, k in _tables_of_rows(quick)
        for epsilon in epsilons
    ]
    return Table(
        "Private k-means: adjusted Rand index, and seconds of a fit",
        (
            "data",
            "epsilon",
            f"DPLloyd, delta = {DELTA:g}",
            "DPLloyd, delta = 0",
            "diffprivlib KMeans, delta = 0",
            "KMeans, not private",
            "DPLloyd, s",
            "diffprivlib, s",
            "ratio",
        ),
        rows,
        f"Means and standard deviations over {n_seeds} seeds. The rows are scaled to the unit box "
        "for all methods. Adjacency: add-remove. Seconds (ours with "
        f"delta = {DELTA:g}): medians (range), one method after the "
        "other.",
    )


def _kmeans_row(name, X, y, k, epsilon, n_seeds):
    # The rows are scaled to the unit box, so that all columns have equal weight for all methods.
    low, high = X.min(axis=0), X.max(axis=0)
    X = (X - low) / (high - low)
    low, high = np.zeros(X.shape[1]), np.ones(X.shape[1])
    public = {"epsilon": epsilon, "bounds": (low, high)}

    def scores(make):
        models = [make(seed) for seed in range(n_seeds)]
        seconds = [once(lambda m=m: m.fit(X))[0] for m in models]
        return [adjusted_rand_score(y, m.predict(X)) for m in models], summary(seconds)

    own, own_time = scores(lambda seed: DPLloyd(k, delta=DELTA, **public, random_state=seed))
    pure, _ = scores(lambda seed: DPLloyd(k, delta=0.0, **public, random_state=seed))
    peer = ask(
        "DIFFPRIVLIB",
        "kmeans",
        {"X": X, "low": low, "high": high},
        n_clusters=k,
        epsilon=epsilon,
        n_seeds=n_seeds,
    )
    theirs = [adjusted_rand_score(y, labels) for labels in peer["labels"]]
    plain = adjusted_rand_score(y, KMeans(k, n_init=3, random_state=0).fit_predict(X))
    time = summary(peer["seconds"])
    return (
        name,
        epsilon,
        _spread(own),
        _spread(pure),
        _spread(theirs),
        plain,
        f"{own_time}",
        f"{time}",
        Ratio.of(own_time, time),
    )


def _spread(values):
    return f"{np.mean(values):.2f} ± {np.std(values):.2f}"


def _embedding(quick):
    if reason := missing("GRASPOLOGIC"):
        return f"Spectral embedding is skipped: {reason}.\n"
    rows = []
    for n in (300,) if quick else (1000, 2000, 4000):
        A = make_rdpg(make_latent(n, "circle", random_state=0), random_state=0)
        parts = {"data": A.data, "indices": A.indices, "indptr": A.indptr}
        repeats = 1 if quick else 5
        own = repeated(
            lambda A=A: AdjacencySpectralEmbedding(3, normalize=False).fit_transform(A), repeats
        )
        Z = AdjacencySpectralEmbedding(3, normalize=False).fit_transform(A)
        peer = ask("GRASPOLOGIC", "embedding", parts, n_components=3, repeats=repeats)
        difference = float(np.abs(Z[:50] @ Z[:50].T - peer["gram"]).max())
        time = summary(peer["seconds"])
        rows.append((n, f"{own}", f"{time}", Ratio.of(own, time), difference))
    return Table(
        "Adjacency spectral embedding with three components, compared with graspologic",
        ("nodes", "ours, s", "graspologic, s", "ratio", "largest difference of the Gram matrices"),
        rows,
        "Medians (range) on the same sparse arrays, one method after the other. Neither method "
        "augments the diagonal. graspologic does not search for connected components.",
    )
