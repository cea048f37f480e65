"""Recovery of groups of nodes from noisy graphs, with and without normalized positions."""

from math import inf

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from benchmarks._table import Table, scores
from sklearn_dptda.cluster import ToMATo
from sklearn_dptda.datasets import load_polblogs
from sklearn_dptda.graph import AdjacencySpectralEmbedding, EdgeFlip

EPSILONS = (inf, 8.0, 4.0, 2.0, 1.0)
NODES, DEGREE = 1000, 30
LINKED = "political blogs, all with a noisy link"
GRAPHS = {
    "42 groups, degrees vary": lambda seed: _blocks(42, 1.0, seed),
    "42 groups, degrees vary less": lambda seed: _blocks(42, 0.5, seed),
    "10 groups, degrees vary": lambda seed: _blocks(10, 1.0, seed),
    "political blogs": lambda seed: _blogs(largest_component=True),
    "political blogs, all": lambda seed: _blogs(largest_component=False),
    LINKED: lambda seed: _blogs(largest_component=False),
}


def tables(quick):
    """Yield the table of the agreement between clusters and groups.

    The number of coordinates is the number of groups, unless stated otherwise. So is the number of
    clusters, except in the last column. The line of a graph that is not available has no numbers.
    """
    epsilons, seeds = ((4.0,), range(1)) if quick else (EPSILONS, range(5))
    found = scores(_scores, GRAPHS, epsilons, seeds).mean(axis=2)
    yield Table(
        f"Clusters of nodes: adjusted Rand index, means of {len(seeds)} graphs or releases, "
        "positions / normalized",
        "graph | epsilon | KMeans | dimension found | ToMATo, 10 neighbours | number found",
        [
            (name, f"{epsilon:g}", *(f"{a:.2f} / {b:.2f}" for a, b in own))
            for name, by_epsilon in zip(GRAPHS, found, strict=True)
            for epsilon, own in zip(epsilons, by_epsilon, strict=True)
        ],
    )


def _blocks(n_groups, deviation, seed):
    """Degree-corrected block model, in which the nodes of a group have different degrees."""
    rng = np.random.default_rng(seed)
    shares = np.arange(1, n_groups + 1) ** -0.7
    y = np.sort(rng.choice(n_groups, NODES, p=shares / shares.sum()))
    activity = np.exp(deviation * rng.standard_normal(NODES))
    P = activity[:, None] * activity * np.where(y[:, None] == y, 1.0, 1 / 30)
    P = np.minimum(P * NODES * DEGREE / P.sum(), 1.0)
    A = np.triu(rng.random(P.shape) < P, 1)
    return (A | A.T).astype(float), y


def _blogs(**options):
    blogs = load_polblogs(**options)
    return blogs.adjacency, blogs.target


def _scores(name, epsilon, seed):
    try:
        A, y = GRAPHS[name](seed)
    except FileNotFoundError:
        return np.full((4, 2), np.nan)
    noisy = EdgeFlip(epsilon, random_state=seed).fit_transform(A)
    if name == LINKED:
        linked = np.flatnonzero(noisy.sum(axis=1))
        noisy, y = noisy[linked][:, linked], y[linked]
    k = len(np.unique(y))
    given, found = (
        [AdjacencySpectralEmbedding(d, normalize=b).fit_transform(noisy) for b in (False, True)]
        for d in (k, None)
    )
    columns = (
        (KMeans(k, n_init=10, random_state=0), given),
        (KMeans(k, n_init=10, random_state=0), found),
        (ToMATo(k, n_neighbors=10), given),
        (ToMATo(n_neighbors=10), given),
    )
    return [[adjusted_rand_score(y, m.fit_predict(Z)) for Z in Zs] for m, Zs in columns]
