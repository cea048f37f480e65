"""Private clusterings beside those of peers, on the peers' examples and on ours.

``DIFFPRIVLIB_PYTHON`` and ``GOOGLE_DP_PYTHON`` name the interpreters of peers in separate
environments, and ``GOOGLE_DP_FOLDER`` the folder ``learning`` of google/differential-privacy. A
missing peer is left out, and a message says so.
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
PEERS = {"DIFFPRIVLIB": False, "GOOGLE_DP": True}


class Example(NamedTuple):
    """Rows in the cube [-1/2, 1/2]^d, their labels, and the radius of a ball around them.

    ``large`` data sets are run at one epsilon, without mixtures.
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    radius: float
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
        "data | epsilon | DPLloyd | DPMoGMorse | DPToMATo | diffprivlib KMeans | Google LSH",
        rows,
        f"delta = {DELTA:g} for DPLloyd, DPMoGMorse and Google, and 0 for the others.",
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
    X, d = example.X, example.X.shape[1]
    box = {"X": X, "low": np.full(d, -0.5), "high": np.full(d, 0.5)}
    given = {"n_clusters": example.n_clusters, "n_seeds": n_seeds, "delta": DELTA}
    for peer, job in zip(PEERS, ("noisy", "lsh"), strict=True):
        options = {"folder": PEERS[peer], "radius": example.radius, "epsilon": epsilon}
        answer = ask(peer, job, box, **options, **given)
        yield [
            adjusted_rand_score(example.y, pairwise_distances_argmin(X, np.array(centers)))
            for centers in (answer["found"] if answer else [])
        ]


def _examples(quick):
    """Yield the examples; data sets that are not available are left out."""
    scaled, n = StandardScaler().fit_transform, 2000
    X, y = make_moons(n, noise=0.05, random_state=30)
    yield _boxed("DP-DBSCAN's moons", scaled(X), y)
    if quick:
        return
    X, y = make_circles(n, factor=0.5, noise=0.05, random_state=30)
    yield _boxed("DP-DBSCAN's circles", scaled(X), y)
    # A tenth of the rows of the peers' demonstrations, and all of them.
    for n in (10_000, 100_000):
        X, y = make_blobs(n, 10, centers=64, center_box=(-100, 100), random_state=42)
        # DPM states the box [-100, 100], so all methods use it. A few rows are outside.
        yield Example("DPM's blobs, 10-D", X / 200, y, np.sqrt(10) / 2, n > 10_000)
        X, y = _ball_of_clusters(n, 100, 64, 8.0)
        yield Example("Google's clusters, 100-D", X / 2, y, 0.5, n > 10_000)
    X, y = make_moons(5000, noise=0.08, random_state=0)
    yield _boxed("our moons", scaled(X), y)
    try:
        yield _boxed("cluto-t4", *npz_table("cluto_t4_8k"))
        yield _boxed("pulsar", *load_table("pulsar", return_X_y=True))
    except (KeyError, FileNotFoundError) as error:
        print(error)


def _boxed(name, X, y):
    low, high = X.min(axis=0), X.max(axis=0)
    unit = (X - low) / np.where(high > low, high - low, 1.0) - 0.5
    return Example(name, unit, y, np.sqrt(X.shape[1]) / 2)


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
