"""Errors of private diagrams of two circles, beside those of the published mechanism."""

from functools import partial

import numpy as np

from benchmarks._table import Table
from sklearn_dptda import DTMFiltration, PrivatePersistence
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.model_selection import privacy_utility_curve
from sklearn_dptda.published import PublishedPersistence

EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0)
# Names of rows, with parameters of the filtration, and the estimator that releases.
VARIANTS = {
    "this library, default settings": ({}, PrivatePersistence),
    "the published mechanism, drawn exactly": (
        {"max_distance": np.inf},
        partial(PublishedPersistence, mechanism="exact", max_points=5),
    ),
}


def tables(quick):
    """Yield the table of errors; distances are to the exact diagrams of the same filtration."""
    n, n_replicates = (1000, 5) if quick else (4000, 100)
    yield Table(
        f"Two circles, n = {n}, {n_replicates} seeded releases of each of three clouds: mean "
        "d_B(H0) + d_B(H1)",
        " | ".join(["release", *(f"epsilon = {e:g}" for e in EPSILONS)]),
        [(name, *map(float, _errors(name, n, n_replicates).mean(axis=0))) for name in VARIANTS],
    )


def _errors(name, n, n_replicates):
    """Errors of a variant, added over dimensions: releases by epsilon."""
    clouds = [make_two_circles(n, random_state=seed) for seed in (0, 1, 2)]
    parameters, release = VARIANTS[name]
    errors = privacy_utility_curve(
        release(),
        DTMFiltration(0.2, bounds=(-2.5, 3), **parameters).fit_transform(clouds),
        param_range=EPSILONS,
        n_replicates=n_replicates,
        random_state=0,
        n_jobs=-1,
    ).errors
    return errors.sum(axis=3).reshape(len(EPSILONS), -1).T
