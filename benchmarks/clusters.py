"""Accuracy and speed of private clusterings on known classes, with and without merging."""

import warnings

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from benchmarks._fixed_steps import N_PASSES, TwoMixtureSteps
from benchmarks._table import Table
from benchmarks._tables_of_rows import tasks
from benchmarks._timing import Ratio, side_by_side
from sklearn_dptda.cluster import DPLloyd, DPMoG, DPMoGMorse, DPTree, MorseMerging
from sklearn_dptda.published import DPCube, PublishedMixture

EPSILONS = (10.0, 5.0, 2.0, 1.0, 0.5)
DELTA = 1e-5
PAPER = {
    "pulsar": "0.754 0.694 0.689 0.561 -",
    "magic": "0.259 0.217 0.083 0.040 -",
}


def _plain(kind):
    return lambda task, **public: kind(task.n_clusters, **public)


def _merged(kind):
    return lambda task, **public: MorseMerging(
        kind(task.n_components, covariance_share=0.5, **public), task.n_clusters
    )


METHODS = {
    "DPMoGMorse": lambda task, **public: DPMoGMorse(task.n_clusters, task.n_components, **public),
    "DPMoGMorse, replace-one": lambda task, **public: DPMoGMorse(
        task.n_clusters, task.n_components, adjacency="replace-one", **public
    ),
    "PublishedMixture + Morse": lambda task, **public: MorseMerging(
        PublishedMixture(task.n_components, **public), task.n_clusters
    ),
    "DPMoG": _plain(DPMoG),
    "DPLloyd": _plain(DPLloyd),
    "DPLloyd + Morse": _merged(DPLloyd),
    "DPTree": _plain(DPTree),
    "DPTree + Morse": _merged(DPTree),
    "DPCube": _plain(DPCube),
    "DPCube + Morse": _merged(DPCube),
}


def tables(quick):
    """Yield the tables of this benchmark."""
    n_seeds = 2 if quick else 20
    for task in tasks(quick):
        yield _scores(task, n_seeds)
        if task.name == "shuttle" or quick:
            yield _times(task)


def _scores(task, n_seeds):
    rows = []
    for name, make in METHODS.items():
        if "bounds" in task.name and name not in ("DPMoGMorse", "DPLloyd"):
            continue
        scores = np.array(
            Parallel(n_jobs=-1)(
                delayed(_score)(task, make, epsilon, seed)
                for epsilon in EPSILONS
                for seed in range(n_seeds)
            )
        ).reshape(len(EPSILONS), n_seeds)
        rows.append((name, *map(_quantiles, scores)))
    if task.name in PAPER:
        rows.append(("paper, Table 2", *PAPER[task.name].split()))
    return Table(
        f"{task.name}: adjusted Rand index",
        ("method", *(f"epsilon = {e:g}" for e in EPSILONS)),
        rows,
        f"Median of {n_seeds} seeds (lower quartile, worst run), delta = {DELTA:g}, "
        f"{len(task.X)} rows, {task.X.shape[1]} columns, {task.n_clusters} clusters from "
        f"{task.n_components} components, default settings. Without privacy: {_ceilings(task)}.",
    )


def _quantiles(scores):
    median, quartile, worst = np.quantile(scores, [0.5, 0.25, 0])
    return f"{median:.2f} ({quartile:.2f}, {worst:.2f})"


def _score(task, make, epsilon, seed):
    model = make(task, epsilon=epsilon, delta=DELTA, bounds=task.bounds, random_state=seed)
    return adjusted_rand_score(task.y, model.fit(task.X).predict(task.X))


def _ceilings(task):
    low, high = task.bounds
    X = (np.clip(task.X, low, high) - low) / (np.asarray(high) - low)
    own = DPMoGMorse(task.n_clusters, task.n_components, np.inf, bounds=task.bounds)
    found = {"this method": adjusted_rand_score(task.y, own.fit(task.X).predict(task.X))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for k in sorted({task.n_clusters, task.n_components}):
            scores = []
            for seed in range(3):
                mixture = GaussianMixture(k, reg_covar=1e-5, random_state=seed)
                morse = MorseMerging(mixture, task.n_clusters).fit(X)
                scores.append(adjusted_rand_score(task.y, morse.labels_))
            found[f"GaussianMixture({k}) merged"] = np.mean(scores)
    return ", ".join(f"{name} {value:.3f}" for name, value in found.items())


def _times(task):
    k = task.n_components
    private = TwoMixtureSteps(k, 1.0, DELTA, task.bounds, random_state=0)
    peer = GaussianMixture(
        k, max_iter=N_PASSES, tol=0, init_params="random_from_data", random_state=0
    )

    def fit_peer():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            peer.fit(task.X)

    secure = TwoMixtureSteps(k, 1.0, DELTA, task.bounds)
    times = side_by_side(
        lambda: private.fit(task.X), lambda: secure.fit(task.X), fit_peer, repeats=5
    )
    return Table(
        f"{task.name}: time of one fit with {k} components and {N_PASSES} passes",
        ("DPMoG, seeded, s", "DPMoG, secure, s", "GaussianMixture, s", "secure / GaussianMixture"),
        [(*(f"{time}" for time in times), Ratio.of(times[1], times[2]))],
    )
