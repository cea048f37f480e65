"""Private peaks of the density of simulated shapes."""

from functools import partial

import numpy as np
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from benchmarks._table import Table, scores
from sklearn_dptda.cluster import DPLloyd, DPToMATo
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


def tables(quick):
    """Yield the tables of shapes with 1,000 and with 10,000 rows."""
    seeds = range(2 if quick else 10)
    for n in (1000,) if quick else (1000, 10_000):
        found = scores(partial(_scores, n), SHAPES, EPSILONS, seeds).mean(axis=2)
        yield Table(
            f"Adjusted Rand index, {n:,} rows, number given / found / DPLloyd",
            " | ".join(["shape", *(f"epsilon = {e:g}" for e in EPSILONS)]),
            [
                (name, *(" / ".join(f"{value:.2f}" for value in each) for each in own))
                for name, own in zip(SHAPES, found, strict=True)
            ],
        )


def _scores(n, name, epsilon, seed):
    k, bounds, make = SHAPES[name]
    X, y = make(n, seed)
    models = (
        DPToMATo(k, epsilon, bounds, random_state=seed),
        DPToMATo(None, epsilon, bounds, random_state=seed),
        DPLloyd(k, epsilon, bounds=bounds, random_state=seed),
    )
    return [adjusted_rand_score(y, model.fit(X).predict(X)) for model in models]
