"""Private classifiers of people, where a person is one row of features with a private label.

``DIFFPRIVLIB_PYTHON`` names the interpreter of diffprivlib (with ``scikit-learn==1.6.1``). Without
it, two columns are left out, and a message says so.
"""

import warnings

import numpy as np
from joblib import Parallel, delayed
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from benchmarks._ask import ask, missing
from benchmarks._peer_classifiers import PEERS
from benchmarks._populations import (
    digits,
    pixels,
    planar,
    recordings,
    series,
    shapes,
    spatial,
    walkers,
)
from benchmarks._table import Table
from sklearn_dptda.discriminant_analysis import DPLinearDiscriminantAnalysis

DELTA = 1e-6
EPSILONS = (0.5, 1.0, 3.0, 10.0)
THEIRS = ("diffprivlib, logistic", "diffprivlib, naive Bayes")


def tables(quick):
    """Yield a table for each population."""
    if reason := missing("DIFFPRIVLIB"):
        yield f"diffprivlib is left out: {reason}.\n"
    for population, sizes, n_seeds in _populations(quick):
        yield _table(population, sizes, n_seeds, EPSILONS[1:2] if quick else EPSILONS)
    yield _curve(quick)


def _populations(quick):
    if quick:
        yield series(150), (60,), 2
        return
    # With few people, scores are either near 0.5 or near 1, so medians need many seeds.
    yield series(), (60, 120, 300), 100
    for population in shapes(planar, 4500):
        yield population, (300, 1000, 3000), 20
    for population in shapes(spatial, 1200):
        yield population, (300, 800), 20
    for population in digits():
        yield population, (1200,), 20
    for windows, n in ((walkers, 150), (recordings, 390)):
        try:
            for population in windows():
                yield population, (n,), 20
        except FileNotFoundError as error:
            print(error)
    try:
        yield pixels(), (1000, 7291), 20
    except FileNotFoundError as error:
        print(error)


def _table(population, sizes, n_seeds, epsilons):
    rows, (low, high) = [], population.bounds
    for n in sizes:
        exact = _scores(_exact, population, n, np.inf, n_seeds)
        for epsilon in epsilons:
            ours = [
                _scores(_private, population, n, epsilon, n_seeds, delta) for delta in (DELTA, 0.0)
            ]
            peers = [
                np.median(_scores(_peer, population, n, epsilon, n_seeds, name)) for name in PEERS
            ]
            rows.append(
                (
                    n,
                    epsilon,
                    *map(_quartiles, ours),
                    *peers,
                    *_theirs(population, n, epsilon, n_seeds),
                    np.median(exact),
                )
            )
    return Table(
        f"{population.name}: accuracy",
        (
            "people",
            "epsilon",
            "DPLinearDiscriminantAnalysis",
            "the same, delta = 0",
            *PEERS,
            *([] if missing("DIFFPRIVLIB") else THEIRS),
            "not private",
        ),
        rows,
        f"Median (lower quartile, upper quartile; worst) of {n_seeds} seeds for the first two "
        f"methods, and the median for the others. delta = {DELTA:g}, except for diffprivlib, where "
        f"it is 0. Adjacency: add-remove. Bounds for all methods: ({low:g}, {high:g}). The test "
        f"set has {int(population.test.sum())} other rows.",
    )


def _curve(quick):
    """Return the table of the accuracy by the number of people."""
    population, n_seeds = series(150 if quick else 3000), 2 if quick else 100
    sizes = (60,) if quick else (60, 90, 120, 180, 240, 300, 450, 600, 1000, 1500)
    rows = [
        (
            n,
            *(
                _quartiles(_scores(_private, population, n, epsilon, n_seeds))
                for epsilon in (0.5, 1.0, 3.0)
            ),
            np.median(_scores(_exact, population, n, np.inf, n_seeds)),
        )
        for n in sizes
    ]
    return Table(
        "Accuracy by the number of people: series",
        ("people", "epsilon = 0.5", "epsilon = 1", "epsilon = 3", "not private"),
        rows,
        f"Median (lower quartile, upper quartile; worst) of {n_seeds} seeds.",
    )


def _scores(make, population, n, epsilon, n_seeds, *options):
    return Parallel(n_jobs=-1)(
        delayed(_score)(make, population, n, epsilon, seed, *options) for seed in range(n_seeds)
    )


def _score(make, population, n, epsilon, seed, *options):
    X, y = population.training(n, seed)
    predict = make(population, X, y, epsilon, seed, *options)
    test = population.test
    return float((predict(population.X[test]) == population.y[test]).mean())


def _private(population, X, y, epsilon, seed, delta=DELTA):
    model = DPLinearDiscriminantAnalysis(
        np.unique(population.y), epsilon, delta, population.bounds, random_state=seed
    )
    with warnings.catch_warnings():
        # Warnings about rows that the noise hides are expected here.
        warnings.simplefilter("ignore")
        return model.fit(X, y).predict


def _peer(population, X, y, epsilon, seed, name):
    classes = np.unique(population.y)
    fit = PEERS[name]
    codes = np.searchsorted(classes, y)
    rng = np.random.default_rng(seed)
    predict = fit(_cube(population, X), codes, len(classes), epsilon, DELTA, rng)
    return lambda rows: classes[predict(_cube(population, rows))]


def _exact(population, X, y, epsilon, seed):
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage=1e-3).fit(X, y).predict


def _cube(population, X):
    low, high = population.bounds
    return 2 * (X - low) / (high - low) - 1


def _theirs(population, n, epsilon, n_seeds):
    if missing("DIFFPRIVLIB"):
        return []
    chosen = [population.training(n, seed) for seed in range(n_seeds)]
    arrays = {
        "X": np.stack([_cube(population, X) for X, _ in chosen]),
        "y": np.stack([y for _, y in chosen]),
        "T": _cube(population, population.X[population.test]),
        "t": population.y[population.test],
    }
    answer = ask("DIFFPRIVLIB", "classify", arrays, epsilon=epsilon)
    return [np.median(answer[name]) for name in ("logistic", "bayes")]


def _quartiles(scores):
    low, middle, high = np.quantile(scores, [0.25, 0.5, 0.75])
    return f"{middle:.3f} ({low:.2f}, {high:.2f}; {min(scores):.2f})"
