"""Laws of tables with clusters in some of their columns, whose clusters are drawn for each seed."""

import numpy as np


def _centres(rng, k, d, gap):
    """Return k centres in d columns that are at least ``gap`` apart."""
    width = 1.6 * gap * max(1.0, 0.55 * k ** (1 / d))
    while True:
        centres = rng.uniform(-width, width, (k, d))
        apart = np.linalg.norm(centres[:, None] - centres, axis=2) + np.diag(np.full(k, np.inf))
        if apart.min() >= gap:
            return centres
        width *= 1.02


def _labels(rng, n, k):
    weights = rng.uniform(0.5, 2, k)
    return rng.choice(k, n, p=weights / weights.sum())


def _normal(rng, n, k, d, gap=4.0):
    """Return rows of k clusters with unit variance, and their labels."""
    y = _labels(rng, n, k)
    return _centres(rng, k, d, gap)[y] + rng.standard_normal((n, d)), y


def _noise(rng, n, d):
    return rng.uniform(0.5, 5, d) * rng.standard_normal((n, d))


def flags(rng, n):
    """One to four yes/no columns beside clusters in two to four columns."""
    k = int(rng.integers(2, 6))
    X, y = _normal(rng, n, k, int(rng.integers(2, 5)))
    shares = rng.uniform(0.15, 0.85, int(rng.integers(1, 5)))
    return np.c_[X, rng.random((n, len(shares))) < shares], y


def uniform_columns(rng, n):
    """Two to six uniform columns beside clusters in three to six columns."""
    X, y = _normal(rng, n, int(rng.integers(3, 6)), int(rng.integers(3, 7)))
    m = int(rng.integers(2, 7))
    return np.c_[X, rng.uniform(-1, 1, (n, m)) * rng.uniform(1, 20, m)], y


def one_column(rng, n):
    """Clusters in one column, and two to five normal columns."""
    k = int(rng.integers(2, 4))
    y = _labels(rng, n, k)
    first = np.cumsum(rng.uniform(5, 8, k))[y] + rng.standard_normal(n)
    return np.c_[first, _noise(rng, n, int(rng.integers(2, 6)))], y


def two_columns(rng, n):
    """Clusters in two columns, and three to six normal columns."""
    X, y = _normal(rng, n, int(rng.integers(3, 5)), 2, 5.0)
    return np.c_[X, _noise(rng, n, int(rng.integers(3, 7)))], y


def number_twice(rng, n):
    """Clusters in three columns, and a number without clusters that was measured twice."""
    X, y = _normal(rng, n, 3, 3, 5.0)
    number = rng.standard_normal(n)
    twice = [3 * number + 0.5 * rng.standard_normal(n), 2 * number + 0.4 * rng.standard_normal(n)]
    return np.c_[X, np.transpose(twice)], y


def skewed_columns(rng, n):
    """Clusters in four columns, and one to four lognormal columns."""
    X, y = _normal(rng, n, 4, 4, 5.0)
    m = int(rng.integers(1, 5))
    return np.c_[X, np.exp(rng.uniform(0.5, 1) * rng.standard_normal((n, m)))], y


def telling_flags(rng, n):
    """Four clusters that two yes/no columns tell nine times in ten, and three other columns."""
    y = rng.choice(4, n)
    answers = np.c_[y % 2, y // 2] ^ (rng.random((n, 2)) < 0.05)
    return np.c_[answers, _centres(rng, 4, 3, 2.5)[y] + rng.standard_normal((n, 3))], y


def many_clusters(rng, n):
    """Ten to nineteen clusters in three to five columns."""
    return _normal(rng, n, int(rng.integers(10, 20)), int(rng.integers(3, 6)), 5.0)


def heavy_tails(rng, n):
    """Four clusters with t3 tails in two to four columns."""
    d = int(rng.integers(2, 5))
    y = _labels(rng, n, 4)
    return _centres(rng, 4, d, 7.0)[y] + rng.standard_t(3, (n, d)), y


def hours(rng, n):
    """Clusters in four columns, an hour of the day and a day of the week."""
    X, y = _normal(rng, n, 3, 4)
    return np.c_[X, rng.integers(0, 24, n), rng.integers(0, 7, n)], y


def poisson_counts(rng, n):
    """Counts in five columns, whose rates differ between three clusters."""
    y = _labels(rng, n, 3)
    return rng.poisson(np.exp(rng.uniform(0, 3, (3, 5)))[y]).astype(float), y


def grid_of_clusters(rng, n):
    """Six clusters on a grid in two columns of unlike units, and one to three uniform columns."""
    y = rng.choice(6, n)
    m = int(rng.integers(1, 4))
    across, along = 5 * (y % 3) + rng.standard_normal(n), 60 * (y // 3) + 8 * rng.standard_normal(n)
    return np.c_[across, along, rng.uniform(0, 1, (n, m))], y


def unlike_units(rng, n):
    """Clusters in five columns whose units differ by up to seven powers of ten."""
    X, y = _normal(rng, n, 4, 5)
    return X * 10 ** rng.uniform(-3, 4, 5) + rng.uniform(-10, 10, 5), y


def thin_clusters(rng, n):
    """Four turned clusters, six times as long as wide, in two to five columns."""
    d = int(rng.integers(2, 6))
    y = _labels(rng, n, 4)
    return _shaped(rng, y, _centres(rng, 4, d, 8.0), np.geomspace(1.8, 0.3, d)), y


def planes(rng, n):
    """Five clusters near planes in eight columns."""
    y = rng.choice(5, n)
    return _shaped(rng, y, _centres(rng, 5, 8, 7.0), np.r_[2.0, 2.0, np.full(6, 0.3)]), y


def _shaped(rng, y, centres, lengths):
    X, d = np.empty((len(y), len(lengths))), len(lengths)
    for k, centre in enumerate(centres):
        turn = np.linalg.qr(rng.standard_normal((d, d)))[0] * lengths
        X[y == k] = centre + rng.standard_normal(((y == k).sum(), d)) @ turn.T
    return X


def purchases(rng, n):
    """Six columns in which each of three clusters has other shares of zeros."""
    y = _labels(rng, n, 3)
    shares, means = rng.choice([0.05, 0.3, 0.95], (3, 6)), rng.uniform(2, 6, (3, 6))
    bought = rng.random((n, 6)) < shares[y]
    return np.where(bought, np.abs(means[y] + 0.6 * rng.standard_normal((n, 6))), 0.0), y


def ten_answers(rng, n):
    """Ten yes/no columns of three clusters."""
    y = _labels(rng, n, 3)
    return (rng.random((n, 10)) < rng.choice([0.1, 0.9], (3, 10))[y]).astype(float), y


def scales_of_five(rng, n):
    """Answers from 1 to 5 to ten questions, of four clusters."""
    y = _labels(rng, n, 4)
    answers = rng.uniform(1, 5, (4, 10))[y] + 0.8 * rng.standard_normal((n, 10))
    return np.clip(np.round(answers), 1, 5), y


def plain(rng, n):
    """Two to seven clusters in two to seven columns."""
    return _normal(rng, n, int(rng.integers(2, 8)), int(rng.integers(2, 8)))


def mixed_table(rng, n):
    """Ages, incomes, an index, yes/no columns, codes and hours; the first four tell clusters."""
    y = _labels(rng, n, 3)
    Z = _centres(rng, 3, 3, 4.0)[y] + rng.standard_normal((n, 3))
    numbers = np.c_[40 + 8 * Z[:, 0], np.exp(10 + 0.5 * Z[:, 1]), Z[:, 2]]
    answers = rng.random((n, 2)) < np.c_[rng.uniform(0.1, 0.9, 3)[y], np.full(n, 0.5)]
    return np.c_[numbers, answers, rng.integers(0, 5, n), rng.uniform(0, 24, n)], y


LAWS = {
    each.__name__.replace("_", " "): each
    for each in (
        flags,
        uniform_columns,
        hours,
        mixed_table,
        telling_flags,
        one_column,
        two_columns,
        number_twice,
        skewed_columns,
        grid_of_clusters,
        unlike_units,
        plain,
        many_clusters,
        thin_clusters,
        planes,
        heavy_tails,
        poisson_counts,
        purchases,
        scales_of_five,
        ten_answers,
    )
}


def table(name, seed, n=4000):
    """Return rows and labels of a law."""
    return LAWS[name](np.random.default_rng(seed), n)
