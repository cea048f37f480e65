"""Accuracy of private clusterings on known classes, with and without merging."""

from functools import partial

import numpy as np
from sklearn.metrics import adjusted_rand_score

from benchmarks._table import Table, median, scores
from benchmarks._tasks import tasks
from sklearn_dptda.cluster import DPLloyd, DPMoG, DPMoGMorse, DPTree, MorseMerging
from sklearn_dptda.published import DPCube, PublishedMixture

EPSILONS = (10.0, 1.0, 0.5)
DELTA = 1e-5


def _merged(kind, **options):
    return lambda task, **public: MorseMerging(
        kind(task.n_components, **options, **public), task.n_clusters
    )


METHODS = {
    "DPMoGMorse": lambda task, **public: DPMoGMorse(task.n_clusters, **public),
    "DPMoG": lambda task, **public: DPMoG(task.n_clusters, **public),
    "DPLloyd + Morse": _merged(DPLloyd, covariance_share=0.5),
    "DPTree + Morse": _merged(DPTree, covariance_share=0.5),
    "DPCube + Morse": _merged(DPCube, covariance_share=0.5),
    "PublishedMixture + Morse": _merged(PublishedMixture),
}


def tables(quick):
    """Yield a table for each data set."""
    for task in tasks(quick):
        known = ("DPMoGMorse",) if "bounds" in task.name else METHODS
        found = scores(partial(_score, task), known, EPSILONS, range(2 if quick else 20))
        own = METHODS["DPMoGMorse"](task, epsilon=np.inf, bounds=task.bounds).fit(task.X)
        plain = adjusted_rand_score(task.y, own.predict(task.X))
        yield Table(
            f"{task.name}: median adjusted Rand index (lower quartile, worst run)",
            " | ".join(["method", *(f"epsilon = {e:g}" for e in EPSILONS)]),
            [
                (name, *(median(each, 0.25, 0) for each in own))
                for name, own in zip(known, found, strict=True)
            ],
            f"{found.shape[2]} seeds, delta = {DELTA:g}. DPMoGMorse without privacy: {plain:.3f}.",
        )


def _score(task, name, epsilon, seed):
    public = {"epsilon": epsilon, "delta": DELTA, "bounds": task.bounds, "random_state": seed}
    return adjusted_rand_score(task.y, METHODS[name](task, **public).fit(task.X).predict(task.X))
