"""Clusters and classes learnt from rows with missing values."""

import warnings

import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from benchmarks._table import Table
from sklearn_dptda.cluster import DPLloyd, DPMoG, DPMoGMorse
from sklearn_dptda.discriminant_analysis import DPLinearDiscriminantAnalysis

_SHARES, _ROWS, _CLUSTERS, _COLUMNS = (0.0, 0.1, 0.3, 0.5), 8000, 6, 5
_BOUNDS = (-40.0, 40.0)
_ESTIMATORS = {
    "DPLloyd": lambda **o: DPLloyd(_CLUSTERS, **o),
    "DPMoG": lambda **o: DPMoG(_CLUSTERS, **o),
    "DPMoGMorse": lambda **o: DPMoGMorse(_CLUSTERS, **o),
    "DPLinearDiscriminantAnalysis": lambda **o: DPLinearDiscriminantAnalysis(
        list(range(_CLUSTERS)), **o
    ),
}


def tables(quick):
    """Yield the tables of this benchmark."""
    warnings.simplefilter("ignore")
    seeds = range(2 if quick else 20)
    jobs = [(name, share, seed) for name in _ESTIMATORS for share in _SHARES for seed in seeds]
    scores = Parallel(n_jobs=-1)(delayed(_scores)(*job) for job in jobs)
    rows = []
    for name in _ESTIMATORS:
        for share in _SHARES:
            own = [s for job, s in zip(jobs, scores, strict=True) if job[:2] == (name, share)]
            rows.append((name, f"{share:g}", *map(_summary, np.transpose(own))))
    yield Table(
        f"Rows with missing values, epsilon 1, {len(seeds)} tables",
        ("estimator", "missing", "complete rows", "the same rows", "filled by a constant"),
        rows,
        "Median, with the lower quartile and the worst. Each table has 8,000 rows of 6 normal "
        "clusters in 5 correlated columns.",
    )


def _scores(name, share, seed):
    """Scores on complete rows, on rows with missing values, and after filling by a constant."""
    rng = np.random.default_rng(seed)
    X, y = make_blobs(
        _ROWS, centers=_CLUSTERS, n_features=_COLUMNS, cluster_std=1.6, random_state=seed
    )
    X = X @ (0.5 * rng.normal(size=(_COLUMNS, _COLUMNS)) + np.eye(_COLUMNS))
    gaps = np.where(rng.random(X.shape) < share, np.nan, X)
    options = {"epsilon": 1.0, "bounds": _BOUNDS, "random_state": seed}
    private = _ESTIMATORS[name](missing=share > 0, **options).fit(gaps, y)
    filled = _ESTIMATORS[name](**options).fit(np.nan_to_num(gaps), y)
    return _agreement(private, X, y), _agreement(private, gaps, y), _agreement(filled, X, y)


def _agreement(private, X, y):
    """Share of right classes, or adjusted Rand index of clusters."""
    found = private.predict(X)
    return np.mean(found == y) if hasattr(private, "classes_") else adjusted_rand_score(y, found)


def _summary(scores):
    median, quartile = np.percentile(scores, [50, 25])
    return f"{median:.3f} ({quartile:.3f}, {min(scores):.3f})"
