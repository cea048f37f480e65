"""Errors of private diagrams, and how they depend on epsilon and the number of points."""

from functools import partial

import numpy as np

from benchmarks._replicates import replicate_table
from benchmarks._table import Table
from benchmarks._walkers import walker_tables
from sklearn_dptda import CubicalPersistence, DTMFiltration, PrivatePersistence, bottleneck_distance
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.model_selection import privacy_utility_curve
from sklearn_dptda.published import PublishedPersistence

BOUNDS, MASS = (-2.5, 3), 0.2
EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0)
CLOUD_SEEDS = (0, 1, 2)
SUM = partial(PublishedPersistence, mechanism="exact", base_measure="spike-slab", max_points=10)
PUBLISHED = partial(PublishedPersistence, mechanism="exact", max_points=5)
UNCAPPED = {"max_distance": np.inf}
# Names of rows, with parameters of the filtration, and the estimator that releases.
VARIANTS = {
    "default": ({}, PrivatePersistence),
    "no cap on distances": (UNCAPPED, PrivatePersistence),
    "sum": ({}, SUM),
    "published target, capped": ({}, PUBLISHED),
    "published target, no cap": (UNCAPPED, PUBLISHED),
}
SLOPE_VARIANTS = ("default", "published target, no cap")


def tables(quick):
    """Yield the tables of this benchmark."""
    n, n_replicates = (1000, 5) if quick else (4000, 100)
    curves = {name: _curve(name, n, EPSILONS, n_replicates) for name in VARIANTS}
    yield _errors(curves, n, n_replicates)
    yield _cap_bias(n)
    yield _epsilon_slopes(curves, n)
    yield _size_slopes(quick)
    yield replicate_table(_filtrations("default", n, CLOUD_SEEDS[:1]), 10 if quick else 500)
    yield from walker_tables(2 if quick else 20)


def _filtrations(name, n, seeds=CLOUD_SEEDS):
    clouds = [make_two_circles(n, random_state=seed) for seed in seeds]
    parameters, _ = VARIANTS[name]
    return DTMFiltration(MASS, bounds=BOUNDS, **parameters).fit_transform(clouds)


def _curve(name, n, epsilons, n_replicates):
    """Return errors by epsilon, replicate, cloud and dimension."""
    _, release = VARIANTS[name]
    return privacy_utility_curve(
        release(),
        _filtrations(name, n),
        param_range=epsilons,
        n_replicates=n_replicates,
        random_state=0,
        n_jobs=-1,
    ).errors


def _totals(errors):
    """Mean error by epsilon, summed over dimensions."""
    return errors.sum(axis=3).mean(axis=(1, 2))


def _errors(curves, n, n_replicates):
    published = _totals(curves["published target, no cap"])
    rows = []
    for name, errors in curves.items():
        totals = _totals(errors)
        ratios = " ".join(f"{ratio:.2f}" for ratio in totals / published)
        rows.append((name, *map(float, totals), ratios))
    return Table(
        f"Two circles, n = {n}: mean d_B(H0) + d_B(H1)",
        ("release", *(f"epsilon = {e:g}" for e in EPSILONS), "ratios to the published target"),
        rows,
        f"{n_replicates} seeded releases of each of {len(CLOUD_SEEDS)} clouds, m = {MASS:g}. "
        "Distances are to the exact diagrams of the same filtration. The largest standard error is "
        f"{max(map(_standard_error, curves.values())):.2g}.",
    )


def _standard_error(errors):
    totals = errors.sum(axis=3)
    return float(totals.std(axis=(1, 2)).max() / np.sqrt(totals[0].size))


def _cap_bias(n):
    """Measure how the cap changes the exact diagrams, which the errors above do not show."""
    capped, free = (_finite_diagrams(name, n) for name in ("default", "no cap on distances"))
    rows = [
        (seed, *map(bottleneck_distance, a, b))
        for seed, a, b in zip(CLOUD_SEEDS, capped, free, strict=True)
    ]
    title = "Effect of the cap on distances on the exact diagrams"
    return Table(title, ("cloud seed", "d_B of H0", "d_B of H1"), rows)


def _finite_diagrams(name, n):
    """Exact diagrams without the essential class, whose death is the bound of the values."""
    filtrations = _filtrations(name, n)
    diagrams = CubicalPersistence().fit_transform(filtrations)
    return [
        [diagram[diagram[:, 1] < filtration.upper] for diagram in both]
        for filtration, both in zip(filtrations, diagrams, strict=True)
    ]


def _log_slope(x, y):
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def _epsilon_slopes(curves, n):
    chosen = [i for i, epsilon in enumerate(EPSILONS) if epsilon >= 1]
    epsilons = np.array(EPSILONS)[chosen]
    return Table(
        f"Slope of the log error against log epsilon, 1 to 10, n = {n}",
        ("release", "slope"),
        [(name, _log_slope(epsilons, _totals(curves[name])[chosen])) for name in curves],
    )


def _size_slopes(quick):
    sizes, n_replicates = ((500, 1000), 5) if quick else ((1000, 2000, 4000, 8000), 50)
    rows = []
    for name in SLOPE_VARIANTS:
        totals = np.array([_totals(_curve(name, n, (5.0, 1.0), n_replicates)) for n in sizes])
        rows += [
            (name, epsilon, *map(float, column), _log_slope(sizes, column))
            for epsilon, column in zip((5.0, 1.0), totals.T, strict=True)
        ]
    return Table(
        "Slope of the log error against log n",
        ("release", "epsilon", *(f"n = {n}" for n in sizes), "slope"),
        rows,
        f"{n_replicates} seeded releases of each of {len(CLOUD_SEEDS)} clouds.",
    )
