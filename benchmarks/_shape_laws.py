"""Laws of tables whose clusters are shapes, cross, lie over decades, or are beside far rows.

Each function draws a table anew: rows, labels (-1 for rows that are not scored), and the number of
clusters.
"""

import numpy as np


def _apart(rng, k, d, reach, least):
    """Return k centres in d columns that are at least ``least`` apart."""
    while True:
        centres = rng.uniform(-reach, reach, (k, d))
        apart = np.linalg.norm(centres[:, None] - centres, axis=2) + np.diag(np.full(k, np.inf))
        if apart.min() >= least:
            return centres


def _circle(t):
    return np.column_stack([np.cos(t), np.sin(t)])


def waves(rng, n):
    y, t = rng.choice(2, n), rng.uniform(0, 4 * np.pi, n)
    return np.c_[t, 1.2 * np.sin(t) + 2 * y + 0.12 * rng.normal(size=n)], y, 2


def bands(rng, n):
    y, t = rng.choice(3, n), rng.uniform(0, 5, n)
    return np.c_[t, np.sin(1.3 * t) + 1.5 * y + 0.15 * rng.normal(size=n)], y, 3


def pupils(rng, n):
    y, t = rng.choice(4, n, p=[0.35, 0.35, 0.15, 0.15]), rng.uniform(0, 2 * np.pi, n)
    radius = np.where(y < 2, 1.0, 0.15) * (1 + 0.05 * rng.normal(size=n))
    return radius[:, None] * _circle(t) + np.c_[np.where(y % 2, 1.25, -1.25), 0 * t], y, 4


def spirals(rng, n):
    y, t = rng.choice(2, n), np.sqrt(rng.random(n)) * 3 * np.pi + 1
    return t[:, None] * _circle(t + np.pi * y) + 0.25 * rng.normal(size=(n, 2)), y, 2


def horseshoe(rng, n):
    """Around a blob, in unlike units."""
    y, t = rng.choice(2, n, p=[0.7, 0.3]), rng.uniform(-0.8 * np.pi, 0.8 * np.pi, n)
    ring = (2 + 0.12 * rng.normal(size=(n, 1))) * _circle(t)
    X = np.where(y[:, None] == 0, ring, 0.3 * rng.normal(size=(n, 2)))
    return X @ np.linalg.qr(rng.normal(size=(2, 2)))[0] * [30, 2] + [100, 5], y, 2


def letters(rng, n):
    """Strokes side by side, in a box of sides 6:1."""
    y, t, bar = rng.choice(6, n), rng.uniform(-1, 1, n), rng.integers(2, size=6) == 0
    X = np.where(bar[y, None], np.c_[0 * t, t], _circle(t * np.pi) * [0.6, 1])
    return X * 1.3 + np.c_[3.0 * y, 0 * t] + 0.08 * rng.normal(size=(n, 2)), y, 6


def lines_that_cross(rng, n):
    y, u = rng.choice(2, n), rng.uniform(-4, 4, n)
    slope = rng.uniform(0.6, 1.5)
    return np.c_[u, slope * np.where(y == 0, u, -u)] + 0.25 * rng.normal(size=(n, 2)), y, 2


def a_t(rng, n):
    y, u = rng.choice(2, n), rng.uniform(-4, 4, n)
    X = np.where(y[:, None] == 0, np.c_[u, 0 * u + 4], np.c_[0 * u, u])
    return X + 0.2 * rng.normal(size=(n, 2)), y, 2


def amounts(rng, n):
    """One column over six decades."""
    y = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    return np.exp(np.array([2.0, 7, 11.5])[y] + 0.7 * rng.normal(size=n))[:, None], y, 3


def sales(rng, n):
    """Amounts, numbers of items and margins."""
    y, order = rng.choice(4, n), rng.permuted(np.tile(np.arange(4), (2, 1)), axis=1)
    amount = np.exp(3.0 + 2 * order[0][y] + 0.5 * rng.normal(size=n))
    items = 1 + rng.poisson(np.array([1, 3, 8, 25])[order[1]][y])
    return np.c_[amount, items, rng.uniform(-0.2, 0.6, 4)[y] + 0.08 * rng.normal(size=n)], y, 4


def waiting_times(rng, n):
    """With hours of the day."""
    y, mean = rng.choice(3, n, p=[0.4, 0.35, 0.25]), np.array([0.5, 8, 90])
    hours = np.array([5.0, 12, 19])[y] + 1.2 * rng.normal(size=n)
    return np.c_[hours, rng.gamma(2, mean[y] / 2)], y, 3


def counts(rng, n):
    y, means = rng.choice(3, n, p=[0.5, 0.3, 0.2]), np.exp(rng.uniform(0, 3.5, (3, 6)))
    return rng.negative_binomial(3, 3 / (3 + means[y])).astype(float), y, 3


def ladder(rng, n):
    """Clusters of geometric size."""
    y = rng.choice(8, n)
    return 2.0 ** y[:, None] * (1 + 0.1 * rng.normal(size=(n, 2))), y, 8


def far_rows(rng, n):
    """Tight clusters, and 5 % of the rows far away."""
    y = rng.choice(5, n)
    X = _apart(rng, 5, 3, 5, 3)[y] + 0.5 * rng.normal(size=(n, 3))
    far = rng.random(n) < 0.05
    X[far], y[far] = 50 * rng.standard_cauchy((far.sum(), 3)), -1
    return X, y, 5


def wrong_factor(rng, n):
    """Of 3 % of the rows, all values are a thousand times as large."""
    y = rng.choice(4, n)
    X = 8 + _apart(rng, 4, 3, 5, 4)[y] + 0.7 * rng.normal(size=(n, 3))
    far = rng.random(n) < 0.03
    X[far], y[far] = 1000 * X[far], -1
    return X, y, 4


def far_cluster(rng, n):
    """One of four clusters, of 6 % of the rows, is ten times as far away as the others."""
    y = rng.choice(4, n, p=[0.4, 0.3, 0.24, 0.06])
    C = np.array([[0.0, 0], [5, 1], [1, 6], [60, 20]])
    return C[y] + 0.7 * rng.normal(size=(n, 2)), y, 4


def codes(rng, n):
    """Two category codes that follow the cluster beside three numbers."""
    y, values = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1]), rng.integers(0, 7, (4, 2))
    follow = np.where(rng.random((n, 2)) < 0.7, values[y], rng.integers(0, 7, (n, 2)))
    return np.c_[_apart(rng, 4, 3, 4, 3.5)[y] + rng.normal(size=(n, 3)), follow], y, 4


def scales(rng, n):
    """Three tight clusters close together, far from a wide one."""
    y = rng.choice(4, n, p=[0.7, 0.1, 0.1, 0.1])
    C = np.array([[0.0, 0], [40, 40], [41.5, 40], [40.7, 41.5]])
    return C[y] + np.array([8, 0.2, 0.2, 0.2])[y, None] * rng.normal(size=(n, 2)), y, 4


def student(rng, n):
    y = rng.choice(4, n)
    return _apart(rng, 4, 3, 8, 7)[y] + rng.standard_t(2.5, (n, 3)), y, 4


def signals(rng, n):
    """Of several sensors about zero: clusters differ by how strong each of them is."""
    y, strength = rng.choice(5, n), np.exp(rng.uniform(0, 4, (5, 6)))
    return strength[y] * rng.laplace(size=(n, 6)), y, 5


def unequal(rng, n):
    """Clusters of 60, 30, 8 and 2 %."""
    y = rng.choice(4, n, p=[0.6, 0.3, 0.08, 0.02])
    return _apart(rng, 4, 4, 4, 5)[y] + 0.8 * rng.normal(size=(n, 4)), y, 4


LAWS = (
    *(waves, bands, pupils, spirals, horseshoe, letters, lines_that_cross, a_t, amounts, sales),
    *(waiting_times, counts, ladder, far_rows, wrong_factor, far_cluster, codes, scales, student),
    *(unequal, signals),
)
