"""Recovery of groups of nodes from noisy graphs, with and without normalized positions."""

import warnings
from math import inf

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from benchmarks._table import Table
from sklearn_dptda.cluster import ToMATo
from sklearn_dptda.datasets import load_polblogs
from sklearn_dptda.graph import AdjacencySpectralEmbedding, EdgeFlip

EPSILONS = (inf, 8.0, 4.0, 2.0, 1.0)
NODES, DEGREE = 1000, 30
LINKED = "political blogs, all with a noisy link"


def group_table(quick):
    """Return the table of the agreement between clusters and groups."""
    graphs = {
        "42 groups, degrees vary": lambda seed: _blocks(42, 1.0, seed),
        "42 groups, degrees vary less": lambda seed: _blocks(42, 0.5, seed),
        "10 groups, degrees vary": lambda seed: _blocks(10, 1.0, seed),
        "political blogs": lambda seed: _blogs(largest_component=True),
        "political blogs, all": lambda seed: _blogs(largest_component=False),
        LINKED: lambda seed: _blogs(largest_component=False),
    }
    epsilons, seeds = ((4.0,), range(1)) if quick else (EPSILONS, range(5))
    rows = [
        (name, f"{epsilon:g}", *_row(make, epsilon, seeds, name == LINKED))
        for name, make in graphs.items()
        for epsilon in epsilons
    ]
    return Table(
        "Clusters of nodes: adjusted Rand index, positions / normalized",
        (
            "graph",
            "epsilon",
            "KMeans",
            "KMeans, dimension found",
            "GaussianMixture",
            "ToMATo",
            "ToMATo, 10 neighbours",
            "ToMATo, number found",
        ),
        rows,
        f"Means of {len(seeds)} graphs or releases. The simulated graphs are degree-corrected "
        f"block models of {NODES:,} nodes with a mean degree of {DEGREE} before probabilities are "
        "cut off at 1. The sizes of the groups are proportional to rank ** -0.7, the activities "
        "are log-normal (standard deviation 1, or 0.5 where degrees vary less), and links within a "
        "group are 30 times as likely as others. The number of coordinates is the number of "
        "groups, unless stated otherwise. So is the number of clusters, except in the last column, "
        "which also uses 10 neighbours. 'All with a noisy link': nodes without a link are dropped "
        "after the flips. The line of a graph that is not available is blank.",
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
    try:
        blogs = load_polblogs(**options)
    except FileNotFoundError:
        return None
    return blogs.adjacency, blogs.target


def _row(make, epsilon, seeds, linked_only):
    scores = [
        _scores(*graph, epsilon, seed, linked_only) for seed in seeds if (graph := make(seed))
    ]
    # Each column shows the scores on positions and on normalized coordinates.
    return [f"{a:.2f} / {b:.2f}" for a, b in np.mean(scores, axis=0)] if scores else [""] * 6


def _scores(A, y, epsilon, seed, linked_only):
    noisy = EdgeFlip(epsilon, random_state=seed).fit_transform(A)
    if linked_only:
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
        (GaussianMixture(k, covariance_type="diag", random_state=0), given),
        (ToMATo(k), given),
        (ToMATo(k, n_neighbors=10), given),
        (ToMATo(n_neighbors=10), given),
    )
    with warnings.catch_warnings():
        # Warnings about too few peaks and mixtures that do not converge are expected here.
        warnings.simplefilter("ignore")
        return [[adjusted_rand_score(y, m.fit_predict(Z)) for Z in Zs] for m, Zs in columns]
