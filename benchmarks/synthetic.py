"""How near synthetic tables are to a simulated census: columns, pairs of columns, and time."""

from itertools import combinations
from time import perf_counter

import numpy as np
import pandas as pd

from benchmarks._table import Table
from sklearn_dptda.metric_privacy import PrivateMeasure

EPSILONS = (0.5, 1.0, 2.0)
LISTS = {
    "work": [f"w{i}" for i in range(8)],
    "school": [f"s{i}" for i in range(16)],
    "status": [f"m{i}" for i in range(7)],
}
RANGES = {"hours": (0, 99), "gain": (0, 20), "age": (17, 90)}
METHODS = {"default": None, "marginal_share=0": 0.0}


def census(n, seed):
    """Two columns of numbers, one of integers and three of categories, from five groups."""
    rng = np.random.default_rng(seed)
    group = rng.choice(5, size=n, p=[0.35, 0.25, 0.2, 0.15, 0.05])
    codes = {
        "work": np.minimum(rng.geometric(0.5, n) - 1 + group, 7),
        "school": np.clip(rng.poisson(6 + 2 * group), 0, 15),
        "status": (rng.geometric(0.4, n) - 1 + 2 * group) % 7,
    }
    # In no order, as lists of categories come.
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
    """Yield the table of this benchmark."""
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
    yield Table(
        f"A simulated census, {n:,} rows: total variation of columns",
        ("method", "epsilon", *X.columns, "worst pair", "mean pair", "seconds"),
        rows,
        f"Means of {n_seeds} runs, noise of the operating system; time of fit and sample. Numbers "
        "and ages in 20 equal bins, in pairs 10; 8, 16 and 7 categories.",
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
    """Numbers of bins, or of categories."""
    if name in LISTS:
        return pd.Categorical(X[name], LISTS[name]).codes.astype(int)
    low, high = RANGES[name]
    return np.minimum((X[name].to_numpy() - low) / (high - low) * bins, bins - 1).astype(int)


def _variation(first, second):
    size = max(first.max(), second.max()) + 1
    shares = [np.bincount(codes, minlength=size) / len(codes) for codes in (first, second)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)
