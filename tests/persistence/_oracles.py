"""Slow and simple versions of the fast functions of the library."""

import itertools
from bisect import bisect_left
from functools import partial

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching
from scipy.stats import chisquare


def bottleneck(first, second):
    """Bottleneck distance by candidate radii and perfect matchings."""
    first = np.asarray(first, dtype=float).reshape(-1, 2)
    second = np.asarray(second, dtype=float).reshape(-1, 2)
    n, m = len(first), len(second)
    if n + m == 0:
        return 0.0
    cost = np.zeros((n + m, n + m))
    cost[:n, :m] = np.abs(first[:, None] - second).max(axis=2)
    cost[:n, m:] = np.inf
    cost[n:, :m] = np.inf
    cost[np.arange(n), m + np.arange(n)] = (first[:, 1] - first[:, 0]) / 2
    cost[n + np.arange(m), np.arange(m)] = (second[:, 1] - second[:, 0]) / 2
    # A perfect matching remains one at a larger radius.
    radii = np.unique(cost[np.isfinite(cost)])
    matched = partial(_has_perfect_matching, cost)
    return float(radii[bisect_left(radii, True, key=matched)])


def _has_perfect_matching(cost, radius):
    return bool((maximum_bipartite_matching(csr_matrix(cost <= radius)) >= 0).all())


def level(private, exact):
    """Bottleneck distance of integer diagrams, rounded up."""
    return int(np.ceil(bottleneck(private, exact)))


def states(measure):
    """All ordered tuples with a positive weight, and their weights."""
    size = measure.size
    points = [(b, d) for b in range(size) for d in range(b + 1, size + 1)]
    for m, omega in enumerate(measure.count_weights):
        if omega == 0:
            continue
        for slots in itertools.product(points, repeat=m):
            weight = omega
            for b, d in slots:
                weight *= (d - b) if measure.linear else 1
            yield slots, weight


def weights_of(measure):
    """Weights of all private diagrams, as sorted tuples."""
    found = {}
    for slots, weight in states(measure):
        key = tuple(sorted(slots))
        found[key] = found.get(key, 0) + weight
    return found


def law(diagram, measure, table):
    """Unnormalised law of the private diagram, exact integers, by sorted tuple."""
    own = weights_of(measure).items()
    return {key: weight * table.weight(level(key, diagram)) for key, weight in own}


def random_diagram(rng, size, n_points):
    pairs = []
    while len(pairs) < n_points:
        b, d = sorted(int(v) for v in rng.integers(0, size + 1, 2))
        if b < d:
            pairs.append((b, d))
    return pairs


def p_value(observed, expected, least=5):
    """That of a chi-squared test in which all outcomes below a number of draws are one."""
    observed, expected = np.asarray(observed, dtype=float), np.asarray(expected, dtype=float)
    rare = expected < least
    observed, expected = (np.append(x[~rare], x[rare].sum()) for x in (observed, expected))
    kept = expected > 0
    observed, expected = observed[kept], expected[kept]
    return chisquare(observed, expected * (observed.sum() / expected.sum())).pvalue
