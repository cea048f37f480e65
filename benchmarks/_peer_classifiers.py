"""Private classifiers for comparison: nearest mean, naive Bayes, ridge regression, diffprivlib.

The first three use ordinary floating-point noise and serve for comparison only. All of them take
rows of the cube ``[-1, 1]**d`` and are private for adding or removing one row with its label.
"""

import numpy as np

from sklearn_dptda.privacy import gaussian_mu


def nearest_mean(X, y, k, epsilon, delta, rng):
    """Nearest mean, from noisy counts and sums of the classes."""
    counts, sums = _noisy_sums(X, y, k, gaussian_mu(epsilon, delta), (0.05, 0.95), rng)
    means = sums / counts[:, None]
    return lambda rows: (rows @ means.T - 0.5 * (means**2).sum(axis=1)).argmax(axis=1)


def naive_bayes(X, y, k, epsilon, delta, rng):
    """Naive Bayes, from noisy counts, sums and sums of squares, with one variance per column."""
    mu, d = gaussian_mu(epsilon, delta), X.shape[1]
    counts, sums = _noisy_sums(X, y, k, mu, (0.05, 0.55), rng)
    # The norm of the squares of a row is at most that of the row of ones.
    squares = (X**2).sum(axis=0) + d**0.5 / mu / 0.4**0.5 * rng.standard_normal(d)
    means, shares = np.clip(sums / counts[:, None], -1, 1), counts / counts.sum()
    pooled = np.clip(squares / counts.sum() - shares @ means**2, 0, 1)
    variance = np.maximum(pooled, max(0.02, 0.1 * pooled.mean()))

    def predict(rows):
        away = ((rows[:, None] - means) ** 2 / variance).sum(axis=2)
        return (np.log(shares) - 0.5 * away).argmax(axis=1)

    return predict


def ridge(X, y, k, epsilon, delta, rng):
    """AdaSSP (Wang 2018) on indicators of the classes, with a constant column."""
    n, d = X.shape
    mu = gaussian_mu(epsilon, delta)
    rows = np.column_stack([X / d**0.5, np.ones(n)]) / 2**0.5
    sd = 3**0.5 / mu
    noise = rng.standard_normal((d + 1, d + 1)) * sd / 2
    gram = rows.T @ rows
    least = max(np.linalg.eigvalsh(gram)[0] + sd * rng.standard_normal() - 2 * sd, 0)
    targets = 2 * np.eye(k)[y] - 1 / k
    targets /= np.linalg.norm(targets, axis=1, keepdims=True)
    products = rows.T @ targets + sd * rng.standard_normal((d + 1, k))
    penalty = max(0.0, 2 * (d + 1) ** 0.5 * sd - least) + 1e-6 * n
    solved = np.linalg.solve(gram + noise + noise.T + penalty * np.eye(d + 1), products)
    return lambda new: (np.column_stack([new / d**0.5, np.ones(len(new))]) @ solved).argmax(axis=1)


def _noisy_sums(X, y, k, mu, shares, rng):
    of_count, of_sum = np.sqrt(shares)
    one = np.eye(k)[y]
    counts = one.sum(axis=0) + rng.standard_normal(k) / mu / of_count
    radius = X.shape[1] ** 0.5
    sums = one.T @ X + radius / mu / of_sum * rng.standard_normal((k, X.shape[1]))
    return np.maximum(counts, 1 / mu), sums


PEERS = {"nearest mean": nearest_mean, "naive Bayes": naive_bayes, "AdaSSP": ridge}
