"""Accuracy of synthetic tables: columns, pairs of columns, models trained on them, and time.

``DPMM_PYTHON`` names an interpreter with dpmm, whose MST and AIM are compared with our methods.
``TAB_PE_PYTHON`` names one with torch, and ``TAB_PE_FOLDER`` the folder of microsoft/DPSDA, which
contains Tab-PE. A peer that is not named is left out.
"""

from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from benchmarks._ask import ask, missing
from benchmarks._table import Table, scores
from benchmarks._timing import cpu_of
from sklearn_dptda.cluster import DPMoG
from sklearn_dptda.datasets import load_table
from sklearn_dptda.synthetic import PrivateMeasure

LISTS = {
    "work": [f"w{i}" for i in range(8)],
    "school": [f"s{i}" for i in range(16)],
    "status": [f"m{i}" for i in range(7)],
}
RANGES = {"hours": (0, 99), "gain": (0, 20), "age": (17, 90)}
DELTA = 1e-6
OPTIONS = {"default": {}, "delta=1e-6": {"delta": DELTA}, "boxes": {"method": "boxes"}}
# Bins of numbers for MST and AIM, which take categories only, and seconds that one of their fits
# may take. They have one run, and Tab-PE has several.
PEER_BINS, PATIENCE, EVOLVED_SEEDS = 16, 900, 5
PEERS = {"MST (dpmm)": "mst", "AIM (dpmm)": "aim"}


def tables(quick):
    """Yield the tables of a simulated census, and of models that are trained on synthetic rows."""
    yield _census_table(*(3000, 2) if quick else (30_000, 10))
    yield _models_table(_cases(quick), *((1.0,), 2) if quick else ((0.5, 1.0, 5.0), 20))


def _census(n, seed):
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


def _census_table(n, n_seeds):
    X, epsilons = _census(n, 0), (0.5, 1.0, 2.0)
    found = scores(partial(_census_errors, X), OPTIONS, epsilons, range(n_seeds)).mean(axis=2)
    rows = [
        (method, f"{epsilon:g}", *own.tolist())
        for method, by_epsilon in zip(OPTIONS, found, strict=True)
        for epsilon, own in zip(epsilons, by_epsilon, strict=True)
    ]
    rows.append(("another sample of the same law", "-", *_distances(X, _census(n, 1))))
    return Table(
        f"A simulated census, {n:,} rows: total variation distance of columns",
        " | ".join(["method | epsilon", *X.columns, "worst pair | mean pair"]),
        rows,
        f"Means over {n_seeds} runs. Numbers and ages are in 20 equal bins, and in 10 for pairs.",
    )


def _census_errors(X, method, epsilon, seed):
    bounds = tuple(zip(*RANGES.values(), strict=True))
    options = OPTIONS[method] | {"random_state": seed}
    private = PrivateMeasure(epsilon, bounds, categories=LISTS, **options)
    return _distances(X, private.fit(X).sample(len(X), random_state=seed))


def _distances(first, second):
    fine, coarse = ([_binned(X, bins) for X in (first, second)] for bins in (20, 10))
    columns = [_variation(*(X[name] for X in fine)) for name in first.columns]
    pairs = [
        _variation(*(50 * X[one] + X[other] for X in coarse))
        for one, other in combinations(first.columns, 2)
    ]
    return *columns, max(pairs), float(np.mean(pairs))


def _binned(X, bins):
    """Codes of bins or of categories."""
    codes = {name: pd.Categorical(X[name], LISTS[name]).codes.astype(int) for name in LISTS}
    for name, (low, high) in RANGES.items():
        inside = (X[name].to_numpy() - low) / (high - low) * bins
        codes[name] = np.minimum(inside, bins - 1).astype(int)
    return codes


def _variation(first, second):
    size = max(first.max(), second.max()) + 1
    shares = [np.bincount(codes, minlength=size) / len(codes) for codes in (first, second)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


# Models that are trained on synthetic rows and tested on real ones.


def _models_table(cases, epsilons, n_seeds):
    rows = []
    for case in cases:
        options = {"test_size": 0.3, "random_state": 0, "stratify": case.X[:, -1]}
        train, test = train_test_split(case.X, **options)
        rows.append(
            (case.name, "real rows", "-", *_row([(*_measured(case, train, train, test), 0)]))
        )
        # Tab-PE draws as few rows, so these tell what their number alone costs.
        few = train[np.random.default_rng(0).choice(len(train), 1000, replace=False)]
        rows.append(
            (case.name, "1,000 real rows", "-", *_row([(*_measured(case, few, train, test), 0)]))
        )
        for epsilon in epsilons:
            own = scores(partial(_of_method, case, train, test, epsilon), _METHODS, range(n_seeds))
            rows += [
                (case.name, method, f"{epsilon:g}", *_row(found))
                for method, found in zip(_METHODS, own, strict=True)
            ]
            if n_seeds > 2 and not missing("DPMM"):
                rows += [
                    (case.name, method, f"{epsilon:g}", *_of_peer(kind, case, train, test, epsilon))
                    for method, kind in PEERS.items()
                ]
            if n_seeds > 2 and not missing("TAB_PE", folder=True):
                own = _evolved(case, train, test, epsilon)
                rows.append((case.name, "Tab-PE", f"{epsilon:g}", *own))
    return Table(
        "Trained on synthetic rows, tested on real ones",
        "data | rows of | epsilon | area under the curve | pairs | columns | CPU, s",
        rows,
        f"Medians over {n_seeds} seeds and the worst run; Tab-PE has {EVOLVED_SEEDS}. MST and "
        f"AIM have one run, and {PEER_BINS} bins per column of numbers.",
    )


class Case(NamedTuple):
    """A table whose last column is a class of two, with the numbers of values of its columns.

    These are infinite for numbers.
    """

    name: str
    X: np.ndarray
    sizes: np.ndarray

    @property
    def low(self):
        return np.where(np.isinf(self.sizes), self.X.min(axis=0), 0.0)

    @property
    def high(self):
        return np.where(np.isinf(self.sizes), self.X.max(axis=0), self.sizes)

    def binned(self, X, bins):
        """Codes of bins, or of values."""
        bins = np.where(np.isinf(self.sizes), bins, self.sizes)
        return np.clip((X - self.low) / (self.high - self.low) * bins, 0, bins - 1).astype(int)


def _cases(quick):
    n = 2000 if quick else 10_000
    for seed, title in ((2, "made up, one in seven"), (3, "made up, even")):
        rng = np.random.default_rng(seed)
        y = (rng.random(n) < (0.15 if seed == 2 else 0.5)).astype(int)
        turns, centres = rng.normal(0, 0.7, (2, 8, 8)), rng.normal(0, 0.8, (2, 8))
        X = np.einsum("nd,nde->ne", rng.normal(size=(n, 8)), turns[y]) + centres[y]
        X[:, :4] = np.exp(X[:, :4] / 2)
        yield _of_numbers(title, X, y)
    yield _adult_like(n if quick else 30_000, 0)
    if quick:
        return
    for name in ("magic", "pulsar", "sloan"):
        try:
            table = load_table(name)
        except FileNotFoundError as error:
            print(error)
            return
        # The most common class is compared with all others.
        largest = table.target == np.bincount(table.target).argmax()
        yield _of_numbers(name, table.data, largest.astype(int))


def _of_numbers(name, X, y):
    return Case(name, np.column_stack([X, y]), np.array([np.inf] * X.shape[1] + [2]))


def _adult_like(n, seed):
    """Four numbers and seven categories of people in five groups; the class needs interactions."""
    rng = np.random.default_rng(seed)
    group = rng.choice(5, n, p=[0.35, 0.25, 0.2, 0.15, 0.05])
    age = 17 + rng.gamma(2.5 + group, 6)
    school = np.clip(rng.poisson(5 + 2 * group), 0, 15)
    work = np.minimum(rng.geometric(0.5, n) - 1 + group, 7)
    status = (rng.geometric(0.4, n) - 1 + (age > 35) * 2) % 7
    near = (status + (rng.random(n) < 0.3)) % 6
    relation = np.where(rng.random(n) < 0.85, near, rng.integers(0, 6, n))
    sex = (rng.random(n) < np.where(relation % 2, 0.75, 0.3)).astype(int)
    origin = rng.choice(5, n, p=[0.8, 0.1, 0.05, 0.03, 0.02])
    hours = np.clip(rng.normal(30 + 4 * group + 6 * sex, 8), 0, 99)
    gain = np.where(rng.random(n) < 0.92, 0, rng.lognormal(2 + group / 3, 1, n))
    skill = rng.normal(0, 1, n)
    logit = 0.25 * (school - 9) + 0.04 * (age - 38) + 1.4 * (status == 2) + 0.05 * (hours - 40)
    logit += 0.9 * (gain > 0) + 1.2 * np.where(sex == 1, skill, -skill) - 1.7
    y = (rng.random(n) < 1 / (1 + np.exp(-1.3 * logit))).astype(int)
    columns = [age, hours, gain, skill, school, work, status, relation, origin, sex, y]
    return Case(
        "like Adult", np.column_stack(columns), np.array([np.inf] * 4 + [16, 8, 7, 6, 5, 2, 2])
    )


def _measure(case, train, epsilon, seed, **options):
    numeric, (listed,) = np.isinf(case.sizes), np.nonzero(np.isfinite(case.sizes))
    private = PrivateMeasure(
        epsilon,
        (case.low[numeric], case.high[numeric]),
        categories={j: list(range(int(case.sizes[j]))) for j in listed},
        random_state=seed,
        **options,
    )
    return private.fit(train).sample(len(train), random_state=seed)


def _mixtures(case, train, epsilon, seed):
    """Sample from one mixture per class; the numbers of rows of the classes count as public."""
    drawn = []
    for label in (0, 1):
        X = train[train[:, -1] == label][:, :-1]
        bounds = case.low[:-1], case.high[:-1]
        model = DPMoG(6, epsilon=epsilon, delta=DELTA, bounds=bounds, random_state=seed).fit(X)
        rows = model.sample(len(X), random_state=seed)
        drawn.append(np.column_stack([rows, np.full(len(X), label)]))
    return np.concatenate(drawn)


_METHODS = {
    "PrivateMeasure": _measure,
    "PrivateMeasure, delta": partial(_measure, delta=DELTA),
    "PrivateMeasure, boxes": partial(_measure, method="boxes"),
    "DPMoG, one a class": _mixtures,
}


def _of_method(case, train, test, epsilon, method, seed):
    seconds, drawn = cpu_of(lambda: _METHODS[method](case, train, epsilon, seed))
    return *_measured(case, drawn, train, test), seconds


def _of_peer(kind, case, train, test, epsilon):
    sizes = np.where(np.isinf(case.sizes), PEER_BINS, case.sizes).astype(int)
    answer = ask(
        "DPMM",
        "marginals",
        {"codes": case.binned(train, PEER_BINS), "sizes": sizes},
        patience=PATIENCE,
        modules=["pandas", "dpmm.models.mst", "dpmm.models.aim"],
        n_seeds=1,
        method=kind,
        epsilon=epsilon,
        delta=DELTA,
    )
    if "found" not in answer:
        return *["-"] * 3, f"more than {PATIENCE}"
    codes, rng = np.array(answer["found"][0]), np.random.default_rng(0)
    places = np.where(np.isinf(case.sizes), rng.random(codes.shape), 0.0)
    drawn = case.low + (codes + places) / sizes * (case.high - case.low)
    return _row([(*_measured(case, drawn, train, test), *answer["seconds"])])


def _evolved(case, train, test, epsilon):
    """Rows of Tab-PE, which counts the shares of the classes as public."""
    given = {"n_seeds": EVOLVED_SEEDS, "epsilon": epsilon, "delta": DELTA}
    answer = ask("TAB_PE", "evolve_rows", {"X": train, "sizes": case.sizes}, folder=True, **given)
    found = [_measured(case, np.array(drawn), train, test) for drawn in answer["found"]]
    return _row([(*own, spent) for own, spent in zip(found, answer["seconds"], strict=True)])


def _measured(case, drawn, train, test):
    """Area under the curve, and mean total variation distance of pairs and of columns."""
    area, labels = 0.5, np.rint(drawn[:, -1]).astype(int)
    if len(np.unique(labels)) == 2:
        listed = np.isfinite(case.sizes[:-1]) & (case.sizes[:-1] > 2)
        model = HistGradientBoostingClassifier(
            max_iter=60, random_state=0, categorical_features=listed
        )
        X, X_test = drawn[:, :-1].copy(), test[:, :-1]
        X[:, listed] = np.clip(np.rint(X[:, listed]), 0, case.sizes[:-1][listed] - 1)
        model.fit(X, labels)
        area = roc_auc_score(test[:, -1], model.predict_proba(X_test)[:, 1])
    errors = []
    for bins, size in ((10, 2), (20, 1)):
        first, second = (case.binned(X, bins) for X in (drawn, train))
        powers = 100 ** np.arange(size)
        groups = [list(group) for group in combinations(range(len(case.sizes)), size)]
        errors.append(
            np.mean([_variation(first[:, g] @ powers, second[:, g] @ powers) for g in groups])
        )
    return area, *errors


def _row(found):
    areas, pairs, columns, seconds = np.transpose(found)
    if len(areas) == 1:
        return f"{areas[0]:.3f}", f"{pairs[0]:.3f}", f"{columns[0]:.3f}", f"{seconds[0]:.2g}"
    return (
        f"{np.median(areas):.3f} ({areas.min():.3f})",
        *(f"{np.median(errors):.3f} ({errors.max():.3f})" for errors in (pairs, columns)),
        f"{np.median(seconds):.2g}",
    )
