"""Clusters and classes learnt from rows with missing values."""

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from benchmarks._table import Table, median, scores
from sklearn_dptda.cluster import DPLloyd, DPMoG, DPMoGMorse
from sklearn_dptda.discriminant_analysis import DPLinearDiscriminantAnalysis

_SHARES, _ROWS, _CLUSTERS, _COLUMNS = (0.0, 0.1, 0.3, 0.5), 8000, 6, 5
_ESTIMATORS = {
    "DPLloyd": (DPLloyd, _CLUSTERS),
    "DPMoG": (DPMoG, _CLUSTERS),
    "DPMoGMorse": (DPMoGMorse, _CLUSTERS),
    "DPLinearDiscriminantAnalysis": (DPLinearDiscriminantAnalysis, list(range(_CLUSTERS))),
}


def tables(quick):
    """Yield the table of scores on complete rows, on rows with missing values, and after filling.

    Each table has six normal clusters in five correlated columns.
    """
    found = scores(_scores, _ESTIMATORS, _SHARES, range(2 if quick else 20))
    yield Table(
        f"Epsilon 1, {found.shape[2]} tables: median (lower quartile, worst)",
        "estimator | missing | complete rows | the same rows | filled by a constant",
        [
            (name, f"{share:g}", *(median(each, 0.25, 0, digits=3) for each in own.T))
            for name, by_share in zip(_ESTIMATORS, found, strict=True)
            for share, own in zip(_SHARES, by_share, strict=True)
        ],
    )


def _scores(name, share, seed):
    rng, (estimator, clusters) = np.random.default_rng(seed), _ESTIMATORS[name]
    X, y = make_blobs(
        _ROWS, centers=_CLUSTERS, n_features=_COLUMNS, cluster_std=1.6, random_state=seed
    )
    X = X @ (0.5 * rng.normal(size=(_COLUMNS, _COLUMNS)) + np.eye(_COLUMNS))
    gaps = np.where(rng.random(X.shape) < share, np.nan, X)
    options = {"epsilon": 1.0, "bounds": (-40.0, 40.0), "random_state": seed}
    private = estimator(clusters, missing=share > 0, **options).fit(gaps, y)
    filled = estimator(clusters, **options).fit(np.nan_to_num(gaps), y)
    return _agreement(private, X, y), _agreement(private, gaps, y), _agreement(filled, X, y)


def _agreement(private, X, y):
    """Share of right classes, or adjusted Rand index of clusters."""
    found = private.predict(X)
    return np.mean(found == y) if hasattr(private, "classes_") else adjusted_rand_score(y, found)
