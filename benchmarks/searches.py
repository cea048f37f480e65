"""Private searches, against single runs of a random and of the best candidate."""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score, pairwise_distances_argmin_min
from sklearn.model_selection import GridSearchCV, ParameterGrid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from benchmarks._classes import CLASSES
from benchmarks._table import Table, save, scores
from sklearn_dptda import DiagramFeatures, DTMFiltration, PrivatePersistence
from sklearn_dptda.cluster import DPLloyd, DPMoG, DPMoGMorse
from sklearn_dptda.datasets import load_walkers, make_shapes
from sklearn_dptda.discriminant_analysis import DPLinearDiscriminantAnalysis
from sklearn_dptda.model_selection import PrivateSearchCV

_TOTALS, _FOLDS = (1.0, 3.0), 5
# The place of the mass 0.1 among the candidates for clouds.
_DEFAULT = 2
# Totals of the picture.
_CURVE = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


class _Task(NamedTuple):
    """A private estimator, a grid, data of a seed, and the utility of a fitted estimator."""

    name: str
    estimator: object
    grid: dict
    scoring: object
    data: Callable
    utility: Callable


def tables(quick):
    """Yield the tables of utilities on fresh data, with a picture, and of classes of clouds."""
    tasks, seeds, rows = _tasks(), range(2 if quick else 20), []
    for i, task in enumerate(tasks[:1] if quick else tasks):
        if task.name in CLASSES:
            continue
        for total, found in zip(
            _TOTALS, scores(partial(_utilities, i), _TOTALS, seeds), strict=True
        ):
            excess, own, runs = found[:, 0], found[:, 1:5], found[:, 5:]
            random = runs.mean(axis=1)
            cells = [f"{np.median(each):.3g} ({each.min():.3g})" for each in own.T]
            bias = "" if np.isnan(excess).any() else f"{excess.mean():.3f}"
            best, better = f"{runs.mean(axis=0).max():.3g}", int((own[:, 0] > random).sum())
            head = task.name, f"{total:g}", f"{np.median(random):.3g}"
            rows.append((*head, *cells, best, better, bias))
    _draw([1] if quick else [1, 3], _CURVE[::3] if quick else _CURVE, seeds)
    yield Table(
        f"Utility on fresh data, medians of {len(seeds)} seeds and the worst seed",
        "task | epsilon | random | search | geometric | equal parts | GridSearchCV | best"
        " | search above random | `best_score_` too high by",
        rows,
    )
    names = list(CLASSES)
    yield _of_classes(names[:1] if quick else names, seeds)


def _of_classes(names, seeds):
    rows = []
    for i, task in enumerate(_tasks()):
        for total in _TOTALS if task.name in names else ():
            found = scores(partial(_utilities, i, others=False), [total], seeds)[0]
            runs, excess = found[:, 3:], found[:, 0]
            cells = runs[:, _DEFAULT].mean(), runs.mean(), found[:, 1].mean()
            error = excess.std(ddof=1) / math.sqrt(len(seeds))
            bias = f"{excess.mean():+.2f} ± {error:.2f}"
            rows.append((task.name, f"{total:g}", *cells, runs.mean(axis=0).max(), bias))
    return Table(
        f"Accuracy on fresh clouds, means of {len(seeds)} seeds",
        "classes | epsilon | m = 0.1 | random | search | best | `best_score_` too high by",
        rows,
    )


def _draw(places, totals, seeds):
    """Draw utility against the total epsilon."""
    size = {"figsize": (9, 3.4), "layout": "constrained"}
    figure, axes = plt.subplots(1, len(places), squeeze=False, **size)
    for place, ax in zip(places, axes[0], strict=True):
        found = scores(partial(_utilities, place, others=False), totals, seeds)[:, :, 1:]
        single = found[:, :, 2:]
        for values, label, color in (
            (single.max(axis=2), "one run of the best candidate", "0.6"),
            (found[:, :, 1], "private search, geometric law", "#0072B2"),
            (single.mean(axis=2), "one run of a random candidate", "#D55E00"),
        ):
            low, middle, high = np.quantile(values, [0.25, 0.5, 0.75], axis=1)
            ax.plot(totals, middle, "o-", ms=4, color=color, label=label)
            ax.fill_between(totals, low, high, color=color, alpha=0.15, lw=0)
        ax.set(title=_tasks()[place].name, xscale="log", xlabel="epsilon of everything")
        ax.set_xticks(totals, [f"{total:g}" for total in totals], minor=False)
        ax.set_xticks([], minor=True)
    axes[0][0].set_ylabel("utility on fresh data")
    axes[0][-1].legend(loc="lower right", fontsize="small", frameon=False)
    save(figure, "searches.png")


def _utilities(i, total, seed, others=True):
    """Excess of the best score, and utilities.

    They are those of two searches, equal parts, a grid search, and one run of each candidate.
    """
    task = _tasks()[i]
    train, test = task.data(seed), task.data(1000 + seed)
    candidates = [clone(task.estimator).set_params(**each) for each in ParameterGrid(task.grid)]
    found = [math.nan]
    for law in ("reciprocal", "geometric"):
        options = {"epsilon": total, "scoring": task.scoring, "law": law, "random_state": seed}
        search = PrivateSearchCV(task.estimator, task.grid, **options)
        found.append(task.utility(search.fit(*train), test))
        if law == "reciprocal" and task.utility is _accuracy:
            # A private sum counts hits from the middle of their range.
            score = search.best_score_
            score = score if task.scoring is None else score / len(train[0]) + 0.5
            found[0] = score - found[-1]
    runs = [task.utility(_one(each, total, seed, train), test) for each in candidates]
    if not others:
        return [*found, *runs]
    parts = [_one(each, total / len(candidates), seed, train) for each in candidates]
    found.append(task.utility(max(parts, key=lambda model: task.utility(model, train)), test))
    n_fits = len(candidates) * _FOLDS + 1
    if hasattr(task.estimator, "steps") and task.scoring is None:
        # Scores release, too.
        n_fits = 2 * (n_fits - 1) + 1
    search = GridSearchCV(_with_epsilon(task.estimator, total / n_fits, seed), task.grid, cv=_FOLDS)
    found.append(task.utility(search.fit(*train), test))
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
    pipeline = make_pipeline(
        DTMFiltration(0.1, bounds=(-3, 3), resolution=12),
        PrivatePersistence(),
        DiagramFeatures(value_range=(0, 2)),
        LogisticRegression(),
    )
    masses = {"dtmfiltration__m": [0.02, 0.05, 0.1, 0.2, 0.4]}
    walkers = clone(pipeline).set_params(dtmfiltration__bounds=(-2, 2), dtmfiltration__resolution=8)
    merged = DPMoGMorse(5, bounds=(-1, 1), delta=1e-6)
    pieces = {"n_components": [5, 10, 20, 30, 40]}
    means = DPLloyd(bounds=(-1, 1), delta=1e-6)
    counts = {"n_clusters": [2, 4, 6, 12, 24]}
    tasks = [
        _Task("mixture, shapes", mixture, numbers, "log_likelihood", _shapes, _log_likelihood),
        _Task("mixture, six groups", mixture, numbers, "log_likelihood", _groups, _log_likelihood),
        _Task("classes in a ring", classifier, degrees, "accuracy", _ring, _accuracy),
        _Task("classes by a cubic", classifier, degrees, "accuracy", _cubic, _accuracy),
        _Task("k-means, six groups", means, counts, "inertia", _groups, _explained),
        _Task("merged mixture, shapes", merged, pieces, "log_likelihood", _labelled_shapes, _rand),
    ]
    for name, draw in CLASSES.items():
        tasks.append(_Task(name, pipeline, masses, None, draw, _accuracy))
    if _walkers(0) is not None:
        tasks.append(_Task("clouds, walkers", walkers, masses, None, _walkers, _accuracy))
    return tasks


def _shapes(seed):
    return _labelled_shapes(seed)[:1]


def _labelled_shapes(seed):
    rows, labels = make_shapes(2000, noise=0.1, random_state=seed)
    return np.clip(rows / 4.5, -1, 1), labels


@cache
def _walkers(seed):
    """Return windows of one part of the recordings; from seed 1000 on, of the other part."""
    try:
        data = load_walkers(series=True, download=False)
    except FileNotFoundError:
        return None
    chosen = np.flatnonzero((np.asarray(data.segment) == 1) == (seed >= 1000))
    # In random order, as the classes of clouds.
    chosen = np.random.default_rng(seed).permutation(chosen)
    windows = [np.clip(data.data[i], -2, 2) for i in chosen]
    return windows, np.asarray(data.target)[chosen]


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


def _log_likelihood(model, data):
    """Return the mean log-likelihood relative to that of a uniform law, with a background."""
    (rows,) = data
    uniform = -rows.shape[1] * math.log(2)
    own = np.logaddexp(math.log(0.95) + model.score_samples(rows), math.log(0.05) + uniform)
    return float(own.mean() - uniform)


def _explained(model, data):
    """Return one minus the share of the squared distances that remains."""
    (rows,) = data
    # Distances of ``transform`` are in the units that the model has found.
    centres = getattr(model, "best_estimator_", model).cluster_centers_
    remains = np.square(pairwise_distances_argmin_min(rows, centres)[1]).sum()
    return float(1 - remains / np.square(rows - rows.mean(axis=0)).sum())


def _rand(model, data):
    return float(adjusted_rand_score(data[1], model.predict(data[0])))


def _accuracy(model, data):
    return float((model.predict(data[0]) == data[1]).mean())
