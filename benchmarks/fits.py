"""Times of fits against the nearest estimators of scikit-learn, Google and diffprivlib.

``DIFFPRIVLIB_PYTHON`` and ``GOOGLE_DP_PYTHON`` name the interpreters of the peers in separate
environments, and ``GOOGLE_DP_FOLDER`` the folder ``learning`` of google/differential-privacy. The
rows of a missing peer are left out, and a message says so. Set ``OMP_NUM_THREADS=1`` for fits with
one thread each; the peers inherit it.
"""

import warnings
from functools import partial

import numpy as np
from sklearn.cluster import DBSCAN, HDBSCAN
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity

from benchmarks._ask import ask, missing
from benchmarks._fixed_steps import N_PASSES, TwoMixtureSteps
from benchmarks._table import Table
from benchmarks._timing import Ratio, repeated, side_by_side, summary
from sklearn_dptda.cluster import DPLloyd, DPMoGMorse, DPToMATo
from sklearn_dptda.datasets import load_table
from sklearn_dptda.decomposition import PrivatePCA
from sklearn_dptda.synthetic import PrivateMeasure

DELTA = 1e-6
PUBLIC = {"epsilon": 1.0, "bounds": (-0.5, 0.5)}

# Peers of DPLloyd: the name, the job, and whether it is a source folder.
PEERS = {
    "GOOGLE_DP": ("Google LSH", "lsh_times", True),
    "DIFFPRIVLIB": ("diffprivlib KMeans", "kmeans_times", False),
}
# Rows, columns, clusters, and the targets as fractions of the times of these peers.
LARGE, SMALL = {"GOOGLE_DP": 1.0, "DIFFPRIVLIB": 0.5}, {"DIFFPRIVLIB": 0.5}
KMEANS = ((100_000, 10, 64, LARGE), (100_000, 100, 64, LARGE), (10_000, 2, 5, SMALL))
QUICK_KMEANS = ((2000, 10, 8, LARGE), (1000, 2, 5, SMALL))

# Passes of both mixtures over the rows: one for the scale, eight of k-means, and two of mixtures.
# Components of the mixture for shuttle, as in the benchmark "clusters".
SHUTTLE_COMPONENTS = 12
# Targets of DPMoG as fractions of the time of GaussianMixture, and seconds of DPMoGMorse.
ON_SHUTTLE, ON_BLOBS, MORSE_SECONDS = 0.3, 0.4, 2.0

# The standard deviation of a blob in a column of the cube.
WIDTH = 1 / 24
# HDBSCAN compares all pairs of rows, so it runs on fewer.
FEW_ROWS, MANY_ROWS = 20_000, 100_000


def tables(quick):
    """Yield messages about missing peers, then the table of this benchmark."""
    for peer, (name, _, folder) in PEERS.items():
        if reason := missing(peer, folder=folder):
            yield f"{name} is left out: {reason}.\n"
    repeats = 1 if quick else 5
    rows = [row for case in (QUICK_KMEANS if quick else KMEANS) for row in _kmeans(*case, repeats)]
    yield Table(
        "Times of fits against comparable estimators",
        ("data", "ours", "peer", "ours, s", "peer, s", "ratio"),
        [*rows, *_mixtures(quick, repeats), *_here(quick, repeats)],
        "Medians (range) of fits by turns, and the minimum of the CPU; ratios are those of minima. "
        f"Turns: {repeats}. Peers in other environments time their own fits, after a small one "
        "that is not timed. epsilon = 1, with noise from the operating system; "
        f"delta = {DELTA:g} for DPLloyd, the mixtures, PrivatePCA and Google, and 0 for the "
        "others. Adjacency: add-remove. Blobs lie in one public cube. Google's fit is timed "
        "without its labels of the rows. GaussianMixture starts from random rows and makes "
        f"{N_PASSES} passes, as many as the private mixtures. DPToMATo is compared with HDBSCAN on "
        "fewer rows, and with DBSCAN, whose radius is given. scikit-learn has no release of a "
        "measure: KernelDensity is the nearest, and both draw as many rows as they were given.",
    )


def _blobs(n, d, k):
    """Clusters in the cube [-1/2, 1/2]^d."""
    X = make_blobs(n, d, centers=k, center_box=(-8, 8), random_state=0)[0]
    return np.clip(X * WIDTH, -0.5, 0.5)


def _shape(X):
    return f"{len(X):,} x {X.shape[1]}"


def _row(data, names, timings, target=None):
    own, peer = timings
    ratio = Ratio.of(own, peer)
    shown = f"{ratio}" if target is None else ratio.against(target)
    return (data, *names, f"{own}", f"{peer}", shown)


def _kmeans(n, d, k, targets, repeats):
    X = _blobs(n, d, k)
    arrays = {"X": X, "low": np.full(d, -0.5), "high": np.full(d, 0.5)}
    # The ball around the cube is the public bound of Google's method.
    given = {"n_clusters": k, "epsilon": PUBLIC["epsilon"], "delta": DELTA, "radius": d**0.5 / 2}
    asked = {
        peer: partial(ask, peer, job, arrays, folder=folder, **given)
        for peer, (_, job, folder) in PEERS.items()
        if not missing(peer, folder=folder)
    }
    found = _turns(lambda: DPLloyd(k, delta=DELTA, **PUBLIC).fit(X), asked, repeats)
    data = f"blobs, {_shape(X)}, {k} clusters"
    for peer, timings in found.items():
        yield _row(data, ("DPLloyd", PEERS[peer][0]), timings, targets.get(peer))


def _turns(fit, asked, repeats):
    """Time a fit here and those in other environments by turns: the pairs of timings by peer."""
    own, theirs = [], {peer: [] for peer in asked}
    for _ in range(repeats if asked else 0):
        time = repeated(fit, 1)
        own.append((time.low, time.cpu))
        for peer, answer in asked.items():
            theirs[peer].append(answer()["times"])
    return {
        peer: tuple(summary(*zip(*times, strict=True)) for times in (own, found))
        for peer, found in theirs.items()
    }


def _mixtures(quick, repeats):
    k = 8
    X = _blobs(10_000 if quick else 1_000_000, 8, k)
    cases = [(f"blobs, {_shape(X)}, {k} components", X, PUBLIC["bounds"], k, ON_BLOBS)]
    if not quick:
        cases += _shuttle()
    for data, rows, bounds, size, target in cases:
        private = TwoMixtureSteps(size, 1.0, DELTA, bounds)
        timings = side_by_side(
            partial(private.fit, rows), partial(_fit_mixture, size, rows), repeats=repeats
        )
        yield _row(data, ("DPMoG", "GaussianMixture"), timings, target)
    yield from _morse(quick, repeats)


def _shuttle():
    """The case of the table "shuttle", or nothing if it is not available."""
    try:
        X = load_table("shuttle").data
    except FileNotFoundError as error:
        print(error)
        return []
    low, high = X.min(axis=0), X.max(axis=0)
    bounds = (low, np.where(high > low, high, low + 1))
    data = f"shuttle, {_shape(X)}, {SHUTTLE_COMPONENTS} components"
    return [(data, X, bounds, SHUTTLE_COMPONENTS, ON_SHUTTLE)]


def _fit_mixture(k, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        GaussianMixture(k, max_iter=N_PASSES, tol=0, init_params="random_from_data").fit(X)


def _morse(quick, repeats):
    n, k = (10_000, 4) if quick else (100_000, 64)
    X = _blobs(n, 10, k)
    # If the number of clusters is not given, the merging is repeated on redrawn mixtures.
    numbers = {"DPMoGMorse": None, f"DPMoGMorse, {k // 2} clusters": k // 2}
    fits = [DPMoGMorse(number, k, delta=DELTA, **PUBLIC).fit for number in numbers.values()]
    *own, peer = side_by_side(
        *(partial(fit, X) for fit in (*fits, partial(_fit_mixture, k))), repeats=repeats
    )
    for name, time in zip(numbers, own, strict=True):
        data = f"blobs, {_shape(X)}, {k} components"
        *cells, ratio = _row(data, (name, "GaussianMixture"), (time, peer))
        # The target is in seconds, so the ratio to one second is shown.
        seconds = Ratio(time.low, time.cpu).against(MORSE_SECONDS)
        yield (*cells, f"{ratio}; seconds: {seconds}")


def _here(quick, repeats):
    """Rows of estimators whose peers are in this environment."""
    few, many = (1000, 2000) if quick else (FEW_ROWS, MANY_ROWS)
    X = _blobs(many, 4, 5)
    some, radius = X[:few], WIDTH / 2
    # HDBSCAN and DBSCAN have parameters for which they find five clusters in these rows.
    cases = (
        (some, "DPToMATo", _tomato, "HDBSCAN", HDBSCAN(min_cluster_size=50, copy=True).fit),
        (X, "DPToMATo", _tomato, "DBSCAN", DBSCAN(eps=radius, min_samples=50).fit),
        (X, "PrivateMeasure, with sample", _measure, "KernelDensity, with sample", _density),
        (X, "PrivatePCA", PrivatePCA(2, delta=DELTA, **PUBLIC).fit, "PCA", PCA(2).fit),
    )
    for rows, own, fit, peer, fit_peer in cases:
        timings = side_by_side(partial(fit, rows), partial(fit_peer, rows), repeats=repeats)
        yield _row(f"blobs, {_shape(rows)}, 5 clusters", (own, peer), timings)


def _tomato(X):
    DPToMATo(**PUBLIC).fit(X)


def _measure(X):
    PrivateMeasure(**PUBLIC).fit(X).sample(len(X))


def _density(X):
    KernelDensity(bandwidth=WIDTH / 4).fit(X).sample(len(X))
