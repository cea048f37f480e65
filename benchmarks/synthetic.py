"""Accuracy of synthetic tables: columns, pairs of columns, models trained on them, and time.

``SMARTNOISE_PYTHON`` names an interpreter with smartnoise-synth, whose MST is compared with our
methods. Without it, MST is left out.
"""

import warnings
from itertools import combinations
from time import perf_counter

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from benchmarks._ask import ask, missing
from benchmarks._table import Table
from sklearn_dptda.cluster import DPMoG
from sklearn_dptda.datasets import load_table
from sklearn_dptda.synthetic import PrivateMeasure

EPSILONS = (0.5, 1.0, 2.0)
LISTS = {
    "work": [f"w{i}" for i in range(8)],
    "school": [f"s{i}" for i in range(16)],
    "status": [f"m{i}" for i in range(7)],
}
RANGES = {"hours": (0, 99), "gain": (0, 20), "age": (17, 90)}
METHODS = {"default": None, "marginal_share=0": 0.0}


def census(n, seed):
    """Simulate two columns of numbers, one of integers and three of categories, in five groups."""
    rng = np.random.default_rng(seed)
    group = rng.choice(5, size=n, p=[0.35, 0.25, 0.2, 0.15, 0.05])
    codes = {
        "work": np.minimum(rng.geometric(0.5, n) - 1 + group, 7),
        "school": np.clip(rng.poisson(6 + 2 * group), 0, 15),
        "status": (rng.geometric(0.4, n) - 1 + 2 * group) % 7,
    }
    # The categories are shuffled, because real lists of categories are often unordered.
    shuffled = {name: np.random.default_rng(0).permutation(LISTS[name]) for name in LISTS}
    return pd.DataFrame(
        {
            "hours": np.clip(rng.normal(25 + 6 * group, 8), 0, 99),
            "gain": np.clip(rng.lognormal(group / 3, 0.6), 0, 20),
            "age": np.clip(17 + rng.gamma(3 + group, 6), 17, 90).astype(int),
            **{name: shuffled[name][code] for name, code in codes.items()},
        }
    )


def tables(quick):
    """Yield the tables of this benchmark."""
    yield _census_table(quick)
    yield _models_table(quick)


def _census_table(quick):
    n, n_seeds = (3000, 2) if quick else (30_000, 10)
    X = census(n, 0)
    bounds = tuple(zip(*RANGES.values(), strict=True))
    rows = []
    for method, share in METHODS.items():
        for epsilon in EPSILONS:
            runs = []
            for seed in range(n_seeds):
                private = PrivateMeasure(epsilon, bounds, categories=LISTS, marginal_share=share)
                start = perf_counter()
                synthetic = private.fit(X).sample(n, random_state=seed)
                runs.append((*_distances(X, synthetic), perf_counter() - start))
            rows.append((method, f"{epsilon:g}", *np.mean(runs, axis=0).tolist()))
    rows.append(("another sample of the same law", "-", *_distances(X, census(n, 1)), "-"))
    return Table(
        f"A simulated census, {n:,} rows: total variation distance of columns",
        ("method", "epsilon", *X.columns, "worst pair", "mean pair", "seconds"),
        rows,
        f"Means over {n_seeds} runs, with noise from the operating system. The time is that of fit "
        "and sample. Numbers and ages are in 20 equal bins, and in 10 for pairs. The columns of "
        "categories have 8, 16 and 7 categories.",
    )


def _distances(first, second):
    columns = [
        _variation(_binned(first, name, 20), _binned(second, name, 20)) for name in first.columns
    ]
    coarse = [{name: _binned(X, name, 10) for name in X.columns} for X in (first, second)]
    pairs = [
        _variation(*(50 * X[one] + X[other] for X in coarse))
        for one, other in combinations(first.columns, 2)
    ]
    return *columns, max(pairs), float(np.mean(pairs))


def _binned(X, name, bins):
    """Codes of bins or of categories."""
    if name in LISTS:
        return pd.Categorical(X[name], LISTS[name]).codes.astype(int)
    low, high = RANGES[name]
    return np.minimum((X[name].to_numpy() - low) / (high - low) * bins, bins - 1).astype(int)


def _variation(first, second):
    size = max(first.max(), second.max()) + 1
    shares = [np.bincount(codes, minlength=size) / len(codes) for codes in (first, second)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


# Models that are trained on synthetic rows and tested on real ones.

_DELTA = 1e-5
_PLAIN_BINS = 16
# A fit of MST takes a minute.
_N_MST = 1


def _models_table(quick):
    n_seeds, epsilons = (2, (1.0,)) if quick else (20, (0.5, 1.0, 5.0))
    rows = []
    for name, X, y in _two_classes(quick):
        low, high = X.min(axis=0), X.max(axis=0)
        parts = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
        train, test = (parts[0], parts[2]), (parts[1], parts[3])
        rows.append((name, "real rows", "-", *_row([_measured(*train, train, test, low, high)])))
        for epsilon in epsilons:
            for method, draw in _METHODS.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = Parallel(n_jobs=-1)(
                        delayed(_of_method)(draw, train, test, low, high, epsilon, seed)
                        for seed in range(n_seeds)
                    )
                rows.append((name, method, f"{epsilon:g}", *_row(found)))
            if not quick and not missing("SMARTNOISE"):
                rows.append((name, *_mst(train, test, low, high, epsilon)))
    return Table(
        "Trained on synthetic rows, tested on real ones",
        ("data", "synthetic rows of", "epsilon", "area under the curve", "columns", "pairs"),
        rows,
        f"Medians over {n_seeds} seeds and the worst run; MST has one run. Gradient boosting "
        "predicts one of two classes on the 30 % of the rows that were held out. Columns and "
        "pairs: mean total variation distance of the columns other than the class, in 20 bins, and "
        "of pairs of them, in 10 by 10 bins. Plain counts: Laplace noise in "
        f"{_PLAIN_BINS} bins of each column given the class. Mixtures and MST have "
        f"delta = {_DELTA:g}, and MST has {_PLAIN_BINS} bins per column. The bounds are those of "
        "the rows.",
    )


def _two_classes(quick):
    """Yield names, rows and classes."""
    n = 2000 if quick else 10_000
    for seed, title in ((2, "made up, one in seven"), (3, "made up, even")):
        rng = np.random.default_rng(seed)
        y = (rng.random(n) < (0.15 if seed == 2 else 0.5)).astype(int)
        turns, centres = rng.normal(0, 0.7, (2, 8, 8)), rng.normal(0, 0.8, (2, 8))
        X = np.einsum("nd,nde->ne", rng.normal(size=(n, 8)), turns[y]) + centres[y]
        X[:, :4] = np.exp(X[:, :4] / 2)
        yield title, X, y
    if quick:
        return
    for name in ("magic", "pulsar", "sloan"):
        try:
            table = load_table(name)
        except FileNotFoundError as error:
            print(error)
            return
        # The most common class is compared with all others.
        yield name, table.data, (table.target == np.bincount(table.target).argmax()).astype(int)


def _within_classes(train, low, high, epsilon, seed, **options):
    X, y = train
    private = PrivateMeasure(
        epsilon,
        (low, high),
        categories={X.shape[1]: [0, 1]},
        random_state=seed,
        **options,
    ).fit(np.column_stack([X, y]))
    drawn = private.sample(random_state=seed)
    return drawn[:, :-1], drawn[:, -1].astype(int)


def _with_target(train, *args):
    return _within_classes(train, *args, target=train[0].shape[1])


def _plain_counts(train, low, high, epsilon, seed):
    """Sample from noisy counts of the classes, and of all columns given the class."""
    X, y = train
    rng, d = np.random.default_rng(seed), X.shape[1]
    cells = np.minimum((X - low) / (high - low) * _PLAIN_BINS, _PLAIN_BINS - 1).astype(int)
    rows, labels = [], []
    for label in (0, 1):
        exact = [np.bincount(column, minlength=_PLAIN_BINS) for column in cells[y == label].T]
        counts = np.maximum(exact + rng.laplace(0, d / epsilon, (d, _PLAIN_BINS)), 0)
        n = int(np.median(counts.sum(axis=1)))
        drawn = [rng.choice(_PLAIN_BINS, n, p=line / line.sum()) for line in counts]
        rows.append((np.transpose(drawn) + rng.random((n, d))) / _PLAIN_BINS)
        labels.append(np.full(n, label))
    return low + np.concatenate(rows) * (high - low), np.concatenate(labels)


def _mixtures(train, low, high, epsilon, seed):
    """Sample from one mixture per class; the numbers of rows of the classes count as public."""
    X, y = train
    drawn = [
        DPMoG(6, epsilon=epsilon, delta=_DELTA, bounds=(low, high), random_state=seed)
        .fit(X[y == label])
        .sample(int((y == label).sum()), random_state=seed)
        for label in (0, 1)
    ]
    return np.concatenate(drawn), np.repeat([0, 1], [len(part) for part in drawn])


_METHODS = {
    "PrivateMeasure, target": _with_target,
    "PrivateMeasure": _within_classes,
    "plain counts given the class": _plain_counts,
    "DPMoG, one a class": _mixtures,
}


def _of_method(draw, train, test, low, high, epsilon, seed):
    return _measured(*draw(train, low, high, epsilon, seed), train, test, low, high)


def _mst(train, test, low, high, epsilon):
    scaled = (train[0] - low) / (high - low)
    cells = np.minimum(scaled * _PLAIN_BINS, _PLAIN_BINS - 1).astype(int)
    found = []
    for seed in range(_N_MST):
        answer = ask(
            "SMARTNOISE",
            "spanning_tree",
            {"table": np.column_stack([cells, train[1]])},
            script="_foreign_tools.py",
            epsilon=epsilon,
            delta=_DELTA,
        )
        drawn, rng = np.array(answer["rows"]), np.random.default_rng(seed)
        rows = (drawn[:, :-1] + rng.random((len(drawn), len(low)))) / _PLAIN_BINS
        rows = low + rows * (high - low)
        found.append(_measured(rows, drawn[:, -1], train, test, low, high))
    return "MST (smartnoise-synth)", f"{epsilon:g}", *_row(found)


def _measured(rows, labels, train, test, low, high):
    """Area under the curve, and mean total variation distance of columns and of pairs."""
    area = 0.5
    if len(np.unique(labels)) == 2:
        model = HistGradientBoostingClassifier(max_iter=60, random_state=0).fit(rows, labels)
        area = roc_auc_score(test[1], model.predict_proba(test[0])[:, 1])
    errors = []
    for bins, size in ((20, 1), (10, 2)):
        first, second = (
            np.clip((X - low) / (high - low) * bins, 0, bins - 1).astype(int)
            for X in (rows, train[0])
        )
        places = combinations(range(len(low)), size)
        powers = bins ** np.arange(size)
        errors.append(
            np.mean(
                [_variation(first[:, p] @ powers, second[:, p] @ powers) for p in map(list, places)]
            )
        )
    return area, *errors


def _row(found):
    areas, columns, pairs = np.transpose(found)
    if len(areas) == 1:
        return f"{areas[0]:.3f}", f"{columns[0]:.3f}", f"{pairs[0]:.3f}"
    return (
        f"{np.median(areas):.3f} ({areas.min():.3f})",
        *(f"{np.median(errors):.3f} ({errors.max():.3f})" for errors in (columns, pairs)),
    )
