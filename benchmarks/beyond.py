"""Private clusterings of peers on their examples and on ours, each in a separate environment.

``DIFFPRIVLIB_PYTHON`` names the interpreter of diffprivlib. Three peers are not packages and need
the folder of their source as well: ``GOOGLE_DP_PYTHON`` and ``GOOGLE_DP_FOLDER`` (``learning`` in
google/differential-privacy), ``DPM_PYTHON`` and ``DPM_FOLDER``
(UzL-PrivSec/dp-mondrian-clustering),
``DP_DBSCAN_PYTHON`` and ``DP_DBSCAN_FOLDER`` (QiuTedYuan/DpDBSCAN). A missing peer is left out, and
a message says so.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score, pairwise_distances_argmin
from sklearn.preprocessing import StandardScaler

from benchmarks._ask import ask, missing
from benchmarks._table import Table, mean, scores
from benchmarks._tasks import npz_table
from sklearn_dptda.cluster import DPLloyd, DPMoGMorse, DPToMATo
from sklearn_dptda.datasets import load_table

EPSILONS = (0.5, 1.0, 5.0)
DELTA = 1e-6
THEIRS = ("diffprivlib KMeans", "Google LSH", "DPM", "DP-DBSCAN")
PEERS = {"DIFFPRIVLIB": False, "GOOGLE_DP": True, "DPM": True, "DP_DBSCAN": True}


class Example(NamedTuple):
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

    @property
    def n_clusters(self):
        return len(np.unique(self.y[self.y >= 0]))


def tables(quick):
    """Yield messages about missing peers, then the table of adjusted Rand indices."""
    for peer, folder in PEERS.items():
        if reason := missing(peer, folder=folder):
            yield f"{peer} is left out: {reason}.\n"
    rows = []
    for example in _examples(quick):
        n_seeds = 2 if quick or example.large else 4
        for epsilon in (1.0,) if quick or example.large else EPSILONS:
            found = [*_ours(example, epsilon, n_seeds), *_theirs(example, epsilon, n_seeds)]
            name = f"{example.name}, {len(example.X):,} rows, {example.n_clusters} clusters"
            rows.append((name, epsilon, *(mean(own) if len(own) else "-" for own in found)))
    yield Table(
        "Private clusters: adjusted Rand index, mean and standard deviation",
        " | ".join(["data | epsilon | DPLloyd | DPMoGMorse | DPToMATo", *THEIRS]),
        rows,
        "The rows are in one public cube, except for DP-DBSCAN, which uses the range of the rows. "
        f"delta = {DELTA:g} for DPLloyd, DPMoGMorse, Google and DPM, and 0 for the others.",
    )


def _ours(example, epsilon, n_seeds):
    """Scores by method; none if a method does not suit the rows."""
    k, d = example.n_clusters, example.X.shape[1]
    public = {"epsilon": epsilon, "bounds": (-0.5, 0.5)}
    # Mixtures need a matrix for each component, and histograms a cell for each bin.
    return [
        scores(partial(_score, example, partial(make, **public)), range(n_seeds)) if fits else ()
        for make, fits in (
            (partial(DPLloyd, k, delta=DELTA), True),
            (partial(DPMoGMorse, k, max(8, k), delta=DELTA), d <= 20 and not example.large),
            (DPToMATo, d <= 3),
        )
    ]


def _score(example, make, seed):
    labels = make(random_state=seed).fit(example.X).predict(example.X)
    return adjusted_rand_score(example.y, labels)


def _theirs(example, epsilon, n_seeds):
    d = example.X.shape[1]
    given = {"epsilon": epsilon, "n_seeds": n_seeds, "delta": DELTA}
    means = {"n_clusters": example.n_clusters, **given}
    box = {"X": example.X, "low": np.full(d, -0.5), "high": np.full(d, 0.5)}
    # DPM does not clip rows and searches for gaps of 0.25 to 15, so it runs in the cube of its
    # demonstration.
    wide = {"X": np.clip(example.X, -0.5, 0.5) * 200}
    spans = {"alpha": example.alpha, "min_points": example.min_points, **given}
    answers = [
        ask("DIFFPRIVLIB", "noisy", box, **means),
        ask("GOOGLE_DP", "lsh", {"X": example.X}, folder=True, radius=example.radius, **means),
        ask("DPM", "separation", wide, folder=True, low=-100.0, high=100.0, **given),
        None
        if example.original is None
        else ask("DP_DBSCAN", "spans", {"X": example.original}, folder=True, **spans),
    ]
    found = [[np.array(own) for own in answer["found"]] if answer else [] for answer in answers]
    # The first two answer with centers.
    found[:2] = [[pairwise_distances_argmin(example.X, c) for c in own] for own in found[:2]]
    return [[adjusted_rand_score(example.y, labels) for labels in own] for own in found]


def _examples(quick):
    """Yield the examples; data sets that are not available are left out."""
    scaled, n = StandardScaler().fit_transform, 2000
    X, y = make_moons(n, noise=0.05, random_state=30)
    yield _boxed("DP-DBSCAN's moons", scaled(X), y, 0.2, 7)
    if quick:
        return
    X, y = make_circles(n, factor=0.5, noise=0.05, random_state=30)
    yield _boxed("DP-DBSCAN's circles", scaled(X), y, 0.2, 10)
    try:
        yield _boxed("DP-DBSCAN's cluto-t4", *npz_table("cluto_t4_8k"), 9.0, 11)
    except (KeyError, FileNotFoundError) as error:
        print(error)
    # A tenth of the rows of the peers' demonstrations, and all of them.
    for n in (10_000, 100_000):
        X, y = make_blobs(n, 10, centers=64, center_box=(-100, 100), random_state=42)
        # DPM states the box [-100, 100], so all methods use it. A few rows are outside.
        yield Example("DPM's blobs, 10-D", X / 200, y, np.sqrt(10) / 2, large=n > 10_000)
        X, y = _ball_of_clusters(n, 100, 64, 8.0)
        yield Example("Google's clusters, 100-D", X / 2, y, 0.5, large=n > 10_000)
    X, y = make_moons(5000, noise=0.08, random_state=0)
    yield _boxed("our moons", scaled(X), y, 0.2, 7)
    try:
        data = load_table("pulsar")
        yield _boxed("pulsar", data.data, data.target, 0.0, 0)
    except FileNotFoundError as error:
        print(error)


def _boxed(name, X, y, alpha, min_points):
    low, high = X.min(axis=0), X.max(axis=0)
    unit = (X - low) / np.where(high > low, high - low, 1.0) - 0.5
    radius = np.sqrt(X.shape[1]) / 2
    return Example(name, unit, y, radius, X if alpha else None, alpha, min_points)


def _ball_of_clusters(n, d, k, ratio):
    """Gaussian clusters around uniform points of the unit ball, projected back into the ball.

    This is the distribution in the demonstration of Google's clustering, with the radius 1.
    """
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((k, d))
    radii = (1 - 1 / ratio) * rng.random(k) ** (1 / d)
    centers *= (radii / np.linalg.norm(centers, axis=1))[:, None]
    y = np.repeat(np.arange(k), -(-n // k))[:n]
    X = centers[y] + rng.standard_normal((n, d)) / (ratio * np.sqrt(d))
    return X / np.maximum(np.linalg.norm(X, axis=1), 1.0)[:, None], y
