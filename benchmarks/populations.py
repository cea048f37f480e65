"""Bands for the means of populations, and tests that compare two of them."""

import math
from functools import partial

import numpy as np

from benchmarks._populations import planar, series, shapes
from benchmarks._table import Table, scores
from sklearn_dptda.population import PrivateMean, private_two_sample_test

_PROMISES = (("add-remove", 1e-6), ("replace-one", 1e-6), ("add-remove", 0.0))


def tables(quick):
    """Yield the tables of bands and of tests."""
    planar_shapes, _ = shapes(planar, 300 if quick else 4500)
    yield _coverage(planar_shapes, 4 if quick else 500)
    yield _power([planar_shapes, series(150 if quick else 1200)], 4 if quick else 200)


def _coverage(population, n_draws):
    people, epsilons = (100, 300, 1000), (0.5, 1.0, 2.0)
    found = scores(partial(_band, population.X), people, epsilons, _PROMISES, range(n_draws))
    held = found.mean(axis=3)
    return Table(
        f"95 % confidence bands for the mean: {population.name}",
        "people | epsilon | add-remove | replace-one | add-remove, delta = 0",
        [
            (n, epsilon, *(f"{share:.3f} ({width:.3f})" for share, width in held[i, j]))
            for i, n in enumerate(people)
            for j, epsilon in enumerate(epsilons)
        ],
        f"Share of {n_draws} samples of {len(population.X)} clouds in which all means are in the "
        "band (mean half width).",
    )


def _band(X, n, epsilon, promise, seed):
    adjacency, delta = promise
    sample = X[np.random.default_rng(seed).choice(len(X), n)]
    mean = PrivateMean(epsilon, delta, (0, 1), adjacency=adjacency, random_state=seed).fit(sample)
    held = (np.abs(mean.mean_ - X.mean(axis=0)) <= mean.half_widths_).all()
    return float(held), float(mean.half_widths_.mean())


def _power(populations, n_tests):
    shares, people, epsilons = (0.0, 0.2, 0.5), (20, 100, 300), (0.5, 1.0, 2.0, math.inf)
    rows = []
    for population in populations:
        found = scores(partial(_rejected, population), shares, people, epsilons, range(n_tests))
        rejected = found.mean(axis=3)
        rows += [
            (population.name, share, n, *(f"{each:.3f}" for each in rejected[i, j]))
            for i, share in enumerate(shares)
            for j, n in enumerate(people)
        ]
    return Table(
        f"private_two_sample_test: share of {n_tests} tests that reject at the level 0.05",
        "data | others | people | epsilon = 0.5 | epsilon = 1 | epsilon = 2 | not private",
        rows,
    )


def _rejected(population, share, n, epsilon, seed):
    """Compare controls of the lower half of the classes with patients, some of the upper half."""
    rng = np.random.default_rng(seed)
    low = population.y <= (population.y.max() - 1) // 2
    few, many = population.X[low], population.X[~low]
    others = rng.binomial(n, share)
    controls = few[rng.choice(len(few), n)]
    patients = np.vstack(
        [few[rng.choice(len(few), n - others)], many[rng.choice(len(many), others)]]
    )
    return private_two_sample_test(
        controls, patients, bounds=(0, 1), epsilon=epsilon, random_state=seed
    ).rejected
