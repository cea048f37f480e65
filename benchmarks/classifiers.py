"""Private classifiers of people, where a person is one row of features with a private label.

``DIFFPRIVLIB_PYTHON`` names the interpreter of diffprivlib (with ``scikit-learn==1.6.1``). Without
it, two columns are left out, and a message says so. Nearest mean, naive Bayes and AdaSSP use
ordinary floating-point noise and serve for comparison only: they take rows of the cube
``[-1, 1]**d``, and are private for adding or removing one row with its label.
"""

from functools import partial

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from benchmarks._ask import ask, missing
from benchmarks._populations import populations, series
from benchmarks._table import Table, median, scores
from sklearn_dptda.discriminant_analysis import DPLinearDiscriminantAnalysis
from sklearn_dptda.privacy import gaussian_mu

DELTA = 1e-6
EPSILONS = (0.5, 1.0, 3.0, 10.0)
_THEIRS = {"logistic": "diffprivlib, logistic", "bayes": "diffprivlib, naive Bayes"}


def tables(quick):
    """Yield a table for each population, and one of the accuracy by the number of people."""
    if reason := missing("DIFFPRIVLIB"):
        yield f"diffprivlib is left out: {reason}.\n"
    few = [(series(150), (60,), 2)]
    for population, sizes, n_seeds in few if quick else populations():
        yield _table(population, sizes, EPSILONS[1:2] if quick else EPSILONS, range(n_seeds))
    sizes = (60,) if quick else (60, 90, 120, 180, 240, 300, 450, 600, 1000, 1500)
    yield _curve(series(150 if quick else 3000), sizes, range(2 if quick else 100))


def _table(population, sizes, epsilons, seeds):
    rows = []
    for n in sizes:
        exact = np.median(scores(partial(_score, population, n, np.inf, "exact"), seeds))
        for epsilon in epsilons:
            score = partial(_score, population, n, epsilon)
            ours = scores(score, (DELTA, 0.0), seeds)
            peers = np.median(scores(score, PEERS, seeds), axis=1)
            theirs = _theirs(population, n, epsilon, len(seeds))
            rows.append((n, epsilon, *map(_quartiles, ours), *peers, *theirs, exact))
    names = [*PEERS, *([] if missing("DIFFPRIVLIB") else _THEIRS.values()), "not private"]
    return Table(
        f"{population.name}: median accuracy (lower quartile, upper quartile, worst)",
        " | ".join(["people | epsilon | DPLDA | the same, delta = 0", *names]),
        rows,
        f"{len(seeds)} seeds, delta = {DELTA:g}, except for diffprivlib, where it is 0.",
    )


def _curve(population, sizes, seeds):
    epsilons = (0.5, 1.0, 3.0)
    ours = scores(partial(_score, population), sizes, epsilons, [DELTA], seeds)[:, :, 0]
    exact = scores(partial(_score, population), sizes, [np.inf], ["exact"], seeds)[:, 0, 0]
    rows = [
        (n, *map(_quartiles, own), np.median(plain))
        for n, own, plain in zip(sizes, ours, exact, strict=True)
    ]
    return Table(
        "Accuracy by the number of people: series",
        "people | epsilon = 0.5 | epsilon = 1 | epsilon = 3 | not private",
        rows,
    )


def _quartiles(values):
    return median(values, 0.25, 0.75, 0, digits=3)


def _score(population, n, epsilon, method, seed):
    """Accuracy of a method: a name, or the delta of our own."""
    X, y = population.training(n, seed)
    test, (low, high) = population.test, population.bounds
    rows, classes = population.X[test], np.unique(population.y)
    if method == "exact":
        found = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=1e-3).fit(X, y).predict(rows)
    elif method in PEERS:
        X, rows = (2 * (each - low) / (high - low) - 1 for each in (X, rows))
        codes, rng = np.searchsorted(classes, y), np.random.default_rng(seed)
        found = classes[PEERS[method](X, codes, len(classes), epsilon, DELTA, rng)(rows)]
    else:
        bounds = low, high
        model = DPLinearDiscriminantAnalysis(classes, epsilon, method, bounds, random_state=seed)
        found = model.fit(X, y).predict(rows)
    return float((found == population.y[test]).mean())


def _theirs(population, n, epsilon, n_seeds):
    X, y = map(np.stack, zip(*(population.training(n, s) for s in range(n_seeds)), strict=True))
    (low, high), test = population.bounds, population.test
    X, rows = (2 * (each - low) / (high - low) - 1 for each in (X, population.X[test]))
    arrays = {"X": X, "y": y, "T": rows, "t": population.y[test]}
    found = [
        ask("DIFFPRIVLIB", "classify", arrays, kind=kind, epsilon=epsilon, n_seeds=n_seeds)
        for kind in _THEIRS
    ]
    return [np.median(answer["found"]) for answer in found if answer]


def _nearest_mean(X, y, k, epsilon, delta, rng):
    """Nearest mean, from noisy counts and sums of the classes."""
    counts, sums = _noisy_sums(X, y, k, gaussian_mu(epsilon, delta), (0.05, 0.95), rng)
    means = sums / counts[:, None]
    return lambda rows: (rows @ means.T - 0.5 * (means**2).sum(axis=1)).argmax(axis=1)


def _naive_bayes(X, y, k, epsilon, delta, rng):
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


def _ridge(X, y, k, epsilon, delta, rng):
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


PEERS = {"nearest mean": _nearest_mean, "naive Bayes": _naive_bayes, "AdaSSP": _ridge}
