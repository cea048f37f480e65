"""Finite metric spaces with known answers, and random ones."""

import itertools

import numpy as np
import pytest

LETTERS = np.array(list(itertools.product((0, 1), repeat=4)))


def line(n):
    places = np.linspace(0, 1, n)
    return np.abs(places[:, None] - places)


def cycle(n):
    steps = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    return np.minimum(steps, n - steps) / (n // 2)


def hamming():
    return (LETTERS[:, None] != LETTERS).mean(axis=2)


def words(distances, n_letters=2):
    """Words whose distance is that of the first place where they differ."""
    L = len(distances)
    found = np.array(list(itertools.product(range(n_letters), repeat=L)))
    differ = found[:, None] != found
    first = np.where(differ.any(axis=2), differ.argmax(axis=2), L)
    return np.r_[np.asarray(distances, float), 0.0][first]


def square(n):
    places = np.array(list(itertools.product(np.linspace(0, 1, n), repeat=2)))
    return np.abs(places[:, None] - places).max(axis=2)


def sphere(n):
    k = np.arange(n) + 0.5
    z, angle = 1 - 2 * k / n, np.pi * (1 + 5**0.5) * k
    r = np.sqrt(1 - z**2)
    X = np.column_stack([r * np.cos(angle), r * np.sin(angle), z])
    return np.arccos(np.clip(X @ X.T, -1, 1)) / np.pi * (1 - np.eye(n))


def star(n):
    D = np.full((n, n), 1.0) - np.eye(n)
    D[0, 1:] = D[1:, 0] = 0.5
    return D


def random_graph(n, seed):
    """Shortest ways in a random weighted graph."""
    from scipy.sparse.csgraph import shortest_path

    rng = np.random.default_rng(seed)
    W = np.where(rng.random((n, n)) < 0.4, rng.random((n, n)) + 0.1, 0.0)
    W[np.arange(n - 1), np.arange(1, n)] = 1.0
    W = np.maximum(W, W.T)
    np.fill_diagonal(W, 0.0)
    return shortest_path(W, directed=False)


def random_points(n, d, seed):
    X = np.random.default_rng(seed).random((n, d))
    return np.abs(X[:, None] - X).max(axis=2)


HALVES = 2.0 ** -np.arange(1, 5)
KNOWN = {
    "two points": 1 - np.eye(2),
    "complete": 1 - np.eye(10),
    "hamming": hamming(),
    "cycle": cycle(16),
    "interval": line(21),
    "baire": words(HALVES),
}
# Distances of words by the first different position, for privacy and for accuracy.
PAIRS = [
    (lambda k: 2.0**-k, lambda k: 2.0**-k),
    (lambda k: 2.0**-k, lambda k: 3.0**-k),
    (lambda k: 1 / k, lambda k: 2.0**-k),
    (lambda k: 3.0**-k, lambda k: 1 / k),
]


def many_spaces():
    """Forty spaces and more, of few points."""
    found = [KNOWN["two points"], star(6), line(7), cycle(8), square(3), words(HALVES[:3])]
    found += [random_graph(n, seed) for n in (4, 6, 8) for seed in range(6)]
    found += [random_points(n, d, seed) for n, d in ((6, 1), (7, 2), (8, 3)) for seed in range(6)]
    return found


def pairwise(names, values):
    """All pairs of both, of which the unit layer has each name once and the values in turn."""
    return [
        pytest.param(name, value, marks=() if i % len(values) == j else pytest.mark.laws)
        for (i, name), (j, value) in itertools.product(enumerate(names), enumerate(values))
    ]
