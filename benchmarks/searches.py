"""Private searches, against single runs of a random and of the best candidate."""

import math
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, ParameterGrid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from benchmarks._table import Table
from sklearn_dptda import DiagramFeatures, DTMFiltration, PrivatePersistence
from sklearn_dptda.cluster import DPMoG
from sklearn_dptda.datasets import make_shapes
from sklearn_dptda.discriminant_analysis import DPLinearDiscriminantAnalysis
from sklearn_dptda.model_selection import PrivateSearchCV

_TOTALS, _FOLDS = (1.0, 3.0), 5


class _Task(NamedTuple):
    """A private estimator, a grid, data of a seed, and the utility of a fitted estimator."""

    name: str
    estimator: object
    grid: dict
    scoring: object
    data: Callable
    utility: Callable


def tables(quick):
    """Yield the tables of this benchmark."""
    tasks, n_seeds = _tasks(), 2 if quick else 20
    tasks = tasks[:1] if quick else tasks
    jobs = [
        (i, total, seed) for i in range(len(tasks)) for total in _TOTALS for seed in range(n_seeds)
    ]
    found = Parallel(n_jobs=-1)(delayed(_utilities)(*job) for job in jobs)
    rows = []
    for i, task in enumerate(tasks):
        for total in _TOTALS:
            own = np.array([f for f, job in zip(found, jobs, strict=True) if job[:2] == (i, total)])
            best = own[:, 4:].mean(axis=0).max()
            random = np.median(own[:, 4:].mean(axis=1))
            cells = [f"{np.median(each):.3g} ({each.min():.3g})" for each in own[:, :4].T]
            better = int((own[:, 0] > own[:, 4:].mean(axis=1)).sum())
            rows.append((task.name, f"{total:g}", f"{random:.3g}", *cells, f"{best:.3g}", better))
    yield Table(
        f"Utility on fresh data, medians of {n_seeds} seeds and the worst seed",
        (
            "task",
            "epsilon",
            "random",
            "search",
            "geometric",
            "equal parts",
            "GridSearchCV",
            "best",
            "search above random",
        ),
        rows,
        "random: the mean of one run of each candidate; best: the one that is best on average. "
        "Both have the whole epsilon. equal parts: each candidate once, chosen by an exact score.",
    )


def _utilities(i, total, seed):
    """Utilities of two searches, equal parts, a grid search, and one run of each candidate."""
    warnings.simplefilter("ignore")
    task = _tasks()[i]
    train, test = task.data(seed), task.data(1000 + seed)
    candidates = [clone(task.estimator).set_params(**each) for each in ParameterGrid(task.grid)]
    found = []
    for law in ("reciprocal", "geometric"):
        search = PrivateSearchCV(
            task.estimator,
            task.grid,
            epsilon=total,
            scoring=task.scoring,
            law=law,
            random_state=seed,
        )
        found.append(task.utility(search.fit(*train), test))
    parts = [_one(each, total / len(candidates), seed, train) for each in candidates]
    found.append(task.utility(max(parts, key=lambda model: task.utility(model, train)), test))
    n_fits = len(candidates) * _FOLDS + 1
    if hasattr(task.estimator, "steps") and task.scoring is None:
        # Scores release, too.
        n_fits = 2 * (n_fits - 1) + 1
    search = GridSearchCV(_with_epsilon(task.estimator, total / n_fits, seed), task.grid, cv=_FOLDS)
    found.append(task.utility(search.fit(*train), test))
    runs = [task.utility(_one(each, total, seed, train), test) for each in candidates]
    return [*found, *runs]


def _with_epsilon(estimator, epsilon, seed):
    names = estimator.get_params()
    changed = {n: epsilon for n in names if n.split("__")[-1] == "epsilon"}
    seeds = {n: seed for n in names if n.split("__")[-1] == "random_state"}
    return clone(estimator).set_params(**changed, **seeds)


def _one(estimator, epsilon, seed, train):
    return _with_epsilon(estimator, epsilon, seed).fit(*train)


def _tasks():
    mixture = DPMoG(bounds=(-1, 1), delta=1e-6)
    numbers = {"n_components": [2, 4, 8, 16, 32]}
    classifier = make_pipeline(
        PolynomialFeatures(include_bias=False),
        DPLinearDiscriminantAnalysis(classes=[0, 1], bounds=(-1, 1), delta=1e-6),
    )
    degrees = {"polynomialfeatures__degree": [1, 2, 3, 5]}
    # The number of columns of the classifier depends on the degree.
    pipeline = make_pipeline(
        DTMFiltration(0.1, bounds=(-3, 3), resolution=12),
        PrivatePersistence(),
        DiagramFeatures(value_range=(0, 2)),
        LogisticRegression(),
    )
    masses = {"dtmfiltration__m": [0.02, 0.05, 0.1, 0.2, 0.4]}
    return [
        _Task("mixture, shapes", mixture, numbers, "log_likelihood", _shapes, _log_likelihood),
        _Task("mixture, six groups", mixture, numbers, "log_likelihood", _groups, _log_likelihood),
        _Task("classes in a ring", classifier, degrees, "accuracy", _ring, _accuracy),
        _Task("classes by a cubic", classifier, degrees, "accuracy", _cubic, _accuracy),
        _Task("clouds, ring or disc", pipeline, masses, None, _clouds, _accuracy),
    ]


def _shapes(seed):
    rows, _ = make_shapes(2000, noise=0.1, random_state=seed)
    return (np.clip(rows / 4.5, -1, 1),)


def _groups(seed):
    centres = np.random.default_rng(77).uniform(-0.7, 0.7, (6, 4))
    rng = np.random.default_rng(seed)
    rows = centres[rng.integers(6, size=2000)] + 0.08 * rng.standard_normal((2000, 4))
    return (np.clip(rows, -1, 1),)


def _ring(seed):
    return _labelled(seed, lambda rows: (rows**2).sum(axis=1) - 0.6)


def _cubic(seed):
    return _labelled(seed, lambda rows: rows[:, 1] - 2 * rows[:, 0] ** 3 + 1.2 * rows[:, 0])


def _labelled(seed, function):
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-1, 1, (2000, 2))
    return rows, (function(rows) + 0.1 * rng.standard_normal(2000) > 0).astype(int)


def _clouds(seed):
    rng, labels = np.random.default_rng(seed), np.arange(24) % 2
    clouds = []
    for label in labels:
        radius = np.sqrt(rng.random(600)) if label else 0.75 + 0.25 * rng.random(600)
        angle = 2 * np.pi * rng.random(600)
        points = 2 * radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
        clouds.append(np.clip(points + 0.35 * rng.standard_normal((600, 2)), -3, 3))
    return clouds, labels


def _log_likelihood(model, data):
    """Return the mean log-likelihood relative to that of a uniform law, with a background."""
    (rows,) = data
    uniform = -rows.shape[1] * math.log(2)
    own = np.logaddexp(math.log(0.95) + model.score_samples(rows), math.log(0.05) + uniform)
    return float(own.mean() - uniform)


def _accuracy(model, data):
    return float((model.predict(data[0]) == data[1]).mean())
