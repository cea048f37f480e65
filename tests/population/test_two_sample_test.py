"""The private permutation test: level, power, integers, and cost."""

import math
from functools import partial

import numpy as np
import pandas as pd
import pytest

from sklearn_dptda.population import _two_sample_test, private_two_sample_test
from sklearn_dptda.privacy import (
    NoiseSource,
    PrivacyAccountant,
    PrivacyBudgetExceeded,
    audit_epsilon,
)
from tests._refusals import refuses, refuses_unpaid

ask = partial(private_two_sample_test, bounds=(0, 1))


def people(n, seed, shifted=0.0):
    """Rows of which a part is from another law."""
    rng = np.random.default_rng(seed)
    X = rng.beta(2, 6, (n, 3))
    others = rng.uniform(size=n) < shifted
    X[others] = rng.beta(8, 3, (int(others.sum()), 3))
    return X


@pytest.mark.nightly
@pytest.mark.parametrize("n", [10, 40, 100])
@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_private_two_sample_test_keeps_its_level_for_any_number_of_people(n, epsilon):
    # 300 tests: more than 38 rejections have a probability below 1e-6 at a level of 0.05.
    rejected = [
        ask(
            people(n, 2 * seed), people(n, 2 * seed + 1), epsilon=epsilon, random_state=seed
        ).rejected
        for seed in range(300)
    ]
    assert sum(rejected) <= 38


@pytest.mark.nightly
def test_private_two_sample_test_keeps_its_level_for_tied_people():
    # All people are equal, so every statistic is zero, and without noise all are tied. More than 30
    # of 200 rejections have a probability below 1e-6 at a level of 0.05.
    X = np.full((30, 2), 0.4)
    assert not ask(X, X, epsilon=math.inf).rejected
    assert sum(ask(X, X, random_state=seed).rejected for seed in range(200)) <= 30


@pytest.mark.nightly
@pytest.mark.parametrize(("epsilon", "least"), [(1.0, 17), (math.inf, 20)])
def test_private_two_sample_test_sees_a_fifth_of_other_people(epsilon, least):
    found = [
        ask(people(300, s), people(300, 99 + s, 0.2), epsilon=epsilon, random_state=s).rejected
        for s in range(20)
    ]
    assert sum(found) >= least


def test_private_two_sample_test_sees_more_than_the_mean():
    # Two distributions with the same mean.
    rng = np.random.default_rng(0)
    X, Y = rng.uniform(0.45, 0.55, (400, 2)), rng.choice([0.3, 0.7], (400, 2))
    assert ask(X, Y, random_state=0).rejected


# Integers, and the effect of one person.


def features(d, seed=0):
    rng = np.random.default_rng(seed)
    return _two_sample_test._Features.drawn((0.1, 0.5), np.zeros(d), np.ones(d), rng)


def test_features_of_a_person_have_a_norm_of_at_most_one():
    rng = np.random.default_rng(0)
    rows = [np.full((2000, 2), 0.3), rng.uniform(size=(7, 2)), rng.uniform(size=(1, 2)) * 1e6]
    codes = np.repeat(np.arange(3), [len(part) for part in rows])
    group = _two_sample_test._Group(np.vstack(rows), codes, 3)
    vectors = group.sums(features(2)).astype(object)
    norms = [sum(int(v) ** 2 for v in vector) for vector in vectors]
    bits = _two_sample_test._BITS
    assert max(norms) <= 4**bits and norms[0] > 0.999 * 4**bits > norms[1]


@pytest.mark.parametrize(
    "seed", [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.laws) for seed in range(3, 12))]
)
def test_statistics_move_by_no_more_than_declared_for_a_person(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(2, 30, 2)
    most = 2**_two_sample_test._BITS
    # Vectors of the largest norm, in opposite directions for the worst case.
    vectors = rng.normal(size=(n + m, 5))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[:n] = vectors[0]
    before = np.trunc(vectors * most).astype(np.int64)
    after = before.copy()
    after[0] = -after[0]
    found = [
        _two_sample_test._statistics([each[:n], each[n:]], 50, np.random.default_rng(seed))
        for each in (before, after)
    ]
    moved = max(abs(int(a) - int(b)) for a, b in zip(*found, strict=True))
    declared = _two_sample_test._scale(int(max(n, m)), 1.0) / 2
    assert moved <= declared
    if n <= m:
        assert moved > 0.2 * declared


def test_statistics_are_distances_of_means():
    rng = np.random.default_rng(0)
    one, other = (rng.integers(-1000, 1000, (size, 4)) for size in (7, 9))
    (first, *_) = _two_sample_test._statistics([one, other], 3, rng)
    exact = 7 * 9 * np.linalg.norm(one.mean(axis=0) - other.mean(axis=0))
    assert first == math.floor(exact + 1e-6)


def test_statistics_of_many_people_are_as_exact(monkeypatch):
    # For so many people, 64 bits would be too few. The statistics are then Python's integers.
    rng = np.random.default_rng(0)
    sums = [rng.integers(-(2**22), 2**22, (size, 4)) for size in (7, 9)]
    found = _two_sample_test._statistics(sums, 20, np.random.default_rng(1))
    monkeypatch.setattr(_two_sample_test, "_BITS", 60)
    assert found == _two_sample_test._statistics(sums, 20, np.random.default_rng(1))


def decide(data, random_state, factor=1.0):
    """The last step, with a factor less noise."""
    noise = NoiseSource(random_state)
    return np.array([_two_sample_test._decide(data, 10, factor, 0.05, noise)], dtype=float)


@pytest.mark.nightly
def test_audit_of_the_decision_refutes_missing_noise():
    # The observed statistic is a little above or below the others, which change as well. 4,000 runs
    # per side, false alarms below 1e-6.
    moves = 2 * 10 * 2**_two_sample_test._BITS
    first = [2 * moves, *[0] * 19]
    second = [moves, *[moves] * 19]
    options = {
        "n_runs": 4000,
        "confidence": 1 - 1e-6,
        "random_state": 0,
        "event": lambda release: release[0] > 0.5,
    }
    assert not audit_epsilon(decide, first, second, **options).refutes(1.0)
    assert audit_epsilon(partial(decide, factor=8.0), first, second, **options).refutes(1.0)


# People, payments, mistakes.


@pytest.mark.parametrize("library", ["pandas", pytest.param("polars", marks=pytest.mark.laws)])
def test_private_two_sample_test_weighs_people_alike(library):
    frames = pytest.importorskip(library)
    X, Y = people(60, 0), people(60, 1, 0.5)
    ids = [[f"{name}{i}" for i in range(60)] for name in "ab"]
    plain = ask(X, Y, random_state=0)
    often = np.r_[np.arange(60), np.full(40, 3)]
    tables = [
        frames.DataFrame({"id": [of[i] for i in often], **{f"x{j}": Z[often, j] for j in range(3)}})
        for of, Z in zip(ids, (X, Y), strict=True)
    ]
    named = ask(*tables, groups="id", random_state=0)
    beside = ask(
        X[often], Y[often], groups=([ids[0][i] for i in often], [ids[1][i] for i in often])
    )
    assert named.rejected == plain.rejected
    assert "replacing all rows of one person, by 'id'" in str(named)
    assert "replacing all rows of one person:" in str(beside)


def test_private_two_sample_test_pays_once_and_repeats_for_a_seed():
    X, Y = people(50, 0), people(70, 1, 0.9)
    with PrivacyAccountant(1.5) as accountant:
        first = ask(X, Y, unit="one cloud", random_state=5)
        refuses(None, ask, X, Y, unit="one cloud", error=PrivacyBudgetExceeded)
    (spend,) = accountant.spends()
    assert (spend.epsilon, spend.unit, spend.adjacency) == (1.0, "one cloud", "replace-one")
    assert spend.what == "whether two groups differ"
    assert "for replacing one cloud" in str(first) and first.privacy_guarantee_.seeded
    again = ask(X, Y, unit="one cloud", random_state=5)
    assert again == first
    assert not ask(X, Y).privacy_guarantee_.seeded


SECRET = "person-73645"
X = people(20, 0)
MISTAKES = {
    "epsilon": (lambda: ask(X, X, epsilon=0), "epsilon"),
    "tiny epsilon": (lambda: ask(X, X, epsilon=1e-200), "epsilon"),
    "alpha": (lambda: ask(X, X, alpha=1.0), "alpha"),
    "few permutations": (lambda: ask(X, X, n_permutations=18), "n_permutations=18"),
    "bandwidths": (lambda: ask(X, X, bandwidths=[0.0]), "bandwidths"),
    "no bandwidths": (lambda: ask(X, X, bandwidths=[]), "bandwidths"),
    "bounds": (lambda: private_two_sample_test(X, X, bounds=(1, 0)), "bounds"),
    "columns": (lambda: ask(X, X[:, :2]), "X has 3 columns, but Y has 2"),
    "one person": (lambda: ask(X, X[:1]), "Y must have at least 2 people"),
    "nan": (lambda: ask(X, np.where(X > 0.2, np.nan, X)), "Y contains NaN"),
    "one dimension": (lambda: ask(X[:, 0], X), "Expected 2D array"),
    "one in both": (
        lambda: ask(X, X, groups=([SECRET] * 10 + ["a"] * 10, ["b"] * 19 + [SECRET])),
        "one person is in both X and Y",
    ),
    "too few ids": (lambda: ask(X, X, groups=([SECRET], [SECRET])), "groups has 1 entries"),
    "alpha nan": (lambda: ask(X, X, alpha=math.nan), "alpha"),
    "ids of two kinds": (
        lambda: ask(X, X, groups=(list(range(20)), list(map(str, range(20))))),
        "all numbers or all strings",
    ),
    "other columns": (
        lambda: ask(pd.DataFrame(X, columns=list("abc")), pd.DataFrame(X, columns=list("bac"))),
        "the same columns, in the same order",
    ),
    "accountant": (lambda: ask(X, X, accountant="budget"), "accountant"),
    "ids of one": (lambda: ask(X, X, groups=[SECRET] * 20), "groups must be the name"),
    "all of one": (
        lambda: ask(X, X, groups=([SECRET] * 20, ["b"] * 10 + ["a"] * 10)),
        "X must have at least 2 people",
    ),
    "no such column": (
        lambda: ask(pd.DataFrame(X), pd.DataFrame(X), groups="id"),
        "groups='id' must be the name of one column",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_private_two_sample_test_refuses_mistakes_unpaid(mistake):
    call, message = MISTAKES[mistake]
    assert SECRET not in refuses_unpaid(message, call, error=(ValueError, TypeError))


@pytest.mark.engines
def test_private_two_sample_test_refuses_dask_collections():
    array = pytest.importorskip("dask.array").from_array(X)
    refuses("is a Dask collection", ask, array, X)
