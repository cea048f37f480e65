"""Units of columns: clusters in some columns of a table, beside columns of other kinds."""

import warnings

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from benchmarks._laws import INTEGERS, LAWS, table
from benchmarks._table import Table
from sklearn_dptda.cluster import DPLloyd, DPMoG, DPMoGMorse, DPToMATo

EPSILONS = (1.0, 2.0)
ESTIMATORS = {"DPLloyd": DPLloyd, "DPMoG": DPMoG, "DPMoGMorse": DPMoGMorse}
BOXES = ("tight", "1.3 times", "equal sides", "none")
# The seeds on which the rule was chosen are smaller.
_FIRST_SEED = 300


def tables(quick):
    """Yield the tables of this benchmark."""
    n_seeds = 2 if quick else 20
    laws = list(LAWS)[:2] if quick else list(LAWS)
    seeds = range(_FIRST_SEED, _FIRST_SEED + n_seeds)
    jobs = [(law, box, seed) for law in laws for box in BOXES for seed in seeds]
    found = Parallel(n_jobs=-1)(delayed(_scores)(*job) for job in jobs)
    plain = Parallel(n_jobs=-1)(delayed(_without_privacy)(a, s) for a in laws for s in seeds)
    scores = np.array(found).reshape(len(laws), len(BOXES), n_seeds, -1)
    best = np.median(np.array(plain).reshape(len(laws), n_seeds, 2), axis=1)
    names = [f"{name}, {epsilon:g}" for name in ESTIMATORS for epsilon in EPSILONS]
    wide = scores[:, BOXES.index("1.3 times")]
    yield Table(
        "Clusters beside other columns: adjusted Rand index",
        ("law", "KMeans, not private", "mixture, not private", *names),
        [
            (law, *(f"{each:.2f}" for each in plain), *map(_median_and_worst, own.T))
            for law, plain, own in zip(laws, best, wide, strict=True)
        ],
        f"Medians of {n_seeds} seeds and the worst seed, 4,000 rows, delta = 1e-6, the number of "
        "clusters given, bounds 1.3 times as wide as the rows. Without privacy, columns are "
        "divided by their standard deviations.",
    )
    yield Table(
        "Clusters beside other columns, by box: mean over laws of the medians",
        ("box", *names),
        [
            (box, *(f"{x:.2f} ({w:.2f})" for x, w in zip(*_means(scores[:, i]), strict=True)))
            for i, box in enumerate(BOXES)
        ],
        "In brackets: the mean over laws of the worst seeds.",
    )
    yield _of_integers(seeds)


def _of_integers(seeds):
    jobs = [(law, typed, seed) for law in INTEGERS for typed in (False, True) for seed in seeds]
    found = Parallel(n_jobs=-1)(delayed(_scores_of_integers)(*job) for job in jobs)
    scores = np.array(found).reshape(2 * len(INTEGERS), len(seeds), -1)
    names = [f"{law}, {kind}" for law in INTEGERS for kind in ("floats", "integers")]
    return Table(
        "DPToMATo, columns of whole numbers: adjusted Rand index",
        ("law and type", *(f"{box}, {k}" for box in ("box", "no box") for k in ("k given", "not"))),
        [(name, *map(_median_and_worst, own.T)) for name, own in zip(names, scores, strict=True)],
        f"Medians of {len(seeds)} seeds and the worst seed, 4,000 rows, epsilon = 1, bounds of the "
        "rows or none, number of clusters k given or not.",
    )


def _scores_of_integers(law, typed, seed):
    warnings.simplefilter("ignore")
    X, y = table(law, seed)
    bounds, rows = (X.min(axis=0), X.max(axis=0)), pd.DataFrame(X).add_prefix("x")
    whole = {"x0": int} if law == "code and number" else int
    rows = rows.astype(whole) if typed else rows
    return [
        adjusted_rand_score(y, DPToMATo(k, 1.0, box, random_state=seed).fit_predict(rows))
        for box in (bounds, None)
        for k in (int(y.max()) + 1, None)
    ]


def _median_and_worst(scores):
    return f"{np.median(scores):.2f} ({scores.min():.2f})"


def _means(scores):
    return np.median(scores, axis=1).mean(axis=0), scores.min(axis=1).mean(axis=0)


def _scores(law, box, seed):
    warnings.simplefilter("ignore")
    X, y = table(law, seed)
    k, bounds = len(np.unique(y)), _bounds(X, box)
    return [
        adjusted_rand_score(
            y, kind(k, epsilon=epsilon, bounds=bounds, random_state=seed).fit(X).predict(X)
        )
        for kind in ESTIMATORS.values()
        for epsilon in EPSILONS
    ]


def _bounds(X, box):
    low, high = X.min(axis=0), X.max(axis=0)
    if box == "none":
        return None
    if box == "equal sides":
        most = 1.3 * float(np.abs(X).max())
        return -most, most
    middle, half = (low + high) / 2, (high - low) / 2 * (1.3 if box == "1.3 times" else 1.0)
    return middle - half, middle + half


def _without_privacy(law, seed):
    X, y = table(law, seed)
    k, rows = len(np.unique(y)), (X - X.mean(axis=0)) / X.std(axis=0)
    means = KMeans(k, n_init=5, random_state=0).fit_predict(rows)
    mixture = GaussianMixture(k, n_init=2, reg_covar=1e-3, random_state=0).fit_predict(rows)
    return adjusted_rand_score(y, means), adjusted_rand_score(y, mixture)
