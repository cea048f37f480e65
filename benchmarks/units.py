"""Units of columns: clusters in some columns of a table, beside columns of other kinds."""

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from benchmarks._laws import LAWS, table
from benchmarks._table import Table, median, scores
from sklearn_dptda.cluster import DPLloyd, DPMoG, DPMoGMorse

EPSILONS = (1.0, 2.0)
ESTIMATORS = {"DPLloyd": DPLloyd, "DPMoG": DPMoG, "DPMoGMorse": DPMoGMorse}
BOXES = ("tight", "1.3 times", "equal sides", "none")
# The seeds on which the rule was chosen are smaller.
_FIRST_SEED = 300


def tables(quick):
    """Yield the tables of clusters by law and by box."""
    seeds = range(_FIRST_SEED, _FIRST_SEED + (2 if quick else 20))
    laws = list(LAWS)[:2] if quick else list(LAWS)
    found = scores(_scores, laws, BOXES, seeds)
    plain = np.median(scores(_without_privacy, laws, seeds), axis=1)
    names = " | ".join(f"{name}, {epsilon:g}" for name in ESTIMATORS for epsilon in EPSILONS)
    yield Table(
        f"Median adjusted Rand index of {len(seeds)} seeds and the worst seed, 1.3 times as wide",
        f"law | KMeans, not private | mixture, not private | {names}",
        [
            (law, *(f"{each:.2f}" for each in best), *(median(each, 0) for each in own.T))
            for law, best, own in zip(laws, plain, found[:, 1], strict=True)
        ],
    )
    middle, worst = np.median(found, axis=2).mean(axis=0), found.min(axis=2).mean(axis=0)
    yield Table(
        "Means over the laws of the medians, and of the worst seeds",
        f"box | {names}",
        [
            (box, *(f"{each:.2f} ({least:.2f})" for each, least in zip(*pair, strict=True)))
            for box, *pair in zip(BOXES, middle, worst, strict=True)
        ],
    )


def _scores(law, box, seed):
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
