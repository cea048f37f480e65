"""Sums of outer products: sensitivities by attack, exact sums in any batch, declared noise."""

import math

import numpy as np
import pytest

from sklearn_dptda.privacy import NoiseSource
from sklearn_dptda.rows import _moments, _rows
from sklearn_dptda.rows._assignments import clip_norm
from sklearn_dptda.rows._moments import (
    GaussianBudget,
    LaplaceBudget,
    entry_noise,
    release_outer_products,
)
from sklearn_dptda.rows._rows import Rows

KINDS = {"l2": GaussianBudget, "l1": LaplaceBudget}


def release(U, norm, total=math.inf, adjacency="add-remove", seed=0):
    budget = KINDS[norm](total, adjacency, NoiseSource(seed))
    return release_outer_products(Rows.of_array(U), lambda batch: batch, budget, 1.0)


def loss(change, norm, adjacency):
    """What moved entries cost at a total of one: in units of the noise that each of them gets."""
    off, on = entry_noise(KINDS[norm](1.0, adjacency, None), 1.0)
    upper = np.triu(change, 1) / off + np.diag(np.diag(change)) / on
    return np.linalg.norm(upper.ravel(), {"l1": 1, "l2": 2}[norm])


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_entry_noise_covers_the_worst_pair_of_rows_exactly(norm, rng):
    # Random pairs in the ball, and rows along axes, which are the worst case.
    order, d = {"l1": 1, "l2": 2}[norm], 4
    pairs = rng.normal(size=(50, 2, d)) * rng.uniform(size=(50, 2, d))
    pairs /= np.linalg.norm(pairs, order, axis=2, keepdims=True)
    axes = np.eye(d)[:2]
    worst = {"add-remove": 0.0, "replace-one": 0.0}
    for u, v in [axes, *pairs]:
        a, b = (release(w[None], norm) for w in (u, v))
        worst["add-remove"] = max(worst["add-remove"], loss(a, norm, "add-remove"))
        worst["replace-one"] = max(worst["replace-one"], loss(a - b, norm, "replace-one"))
    for found in worst.values():
        assert found <= 1 + 1e-12
        assert found == pytest.approx(1.0, rel=1e-9)


def test_release_outer_products_keeps_rounded_rows_in_the_ball(rng):
    # This also holds where a row rounded to the nearest step would leave the ball.
    U = clip_norm(rng.normal(size=(2000, 50)), 1e-3)
    for u in U[:50]:
        assert np.trace(release(u[None], "l2")) <= 1
    moved = [np.linalg.norm(release(u[None], "l2")) for u in U[:50]]
    assert max(moved) <= 1 and min(moved) > 1 - 1e-4


def test_release_outer_products_is_exact_in_any_order_and_batch(rng, monkeypatch):
    U = clip_norm(rng.normal(size=(500, 7)), 1.0)
    U[:100] = np.eye(7)[0]
    whole = release(U, "l2")
    assert np.array_equal(release(rng.permutation(U), "l2"), whole)
    steps = np.trunc(U * 2.0**_moments._BITS).astype(int)
    exact = np.array([[sum(map(int, a * b)) for a in steps.T] for b in steps.T], dtype=object)
    assert (whole == (exact / 2 ** (2 * _moments._BITS)).astype(float)).all()
    monkeypatch.setattr(_rows, "BATCH", 1)
    assert np.array_equal(release(U, "l2"), whole)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("total", [0.3, 1e-6, 1e6])
def test_release_outer_products_draws_noise_of_the_declared_scale(norm, total):
    # No rows in 100 columns: means of 4,950 and 100 squares, within 5.5 and 9 standard errors. The
    # squares of Laplace noise have a variance of 5 and heavy tails: 15. False alarms below 1e-6.
    noise = release(np.zeros((1, 100)), norm, total)
    assert np.array_equal(noise, noise.T)
    entries = noise[np.triu_indices(100, 1)], np.diag(noise)
    kind = KINDS[norm](total, "add-remove", None)
    for scale, values, room in zip(entry_noise(kind, 1.0), entries, (5.5, 9.0), strict=True):
        error = math.sqrt((5 if norm == "l1" else 2) / values.size)
        declared = kind.deviation(scale) ** 2
        room *= 5 / 3 if norm == "l1" else 1
        assert np.mean(values**2) == pytest.approx(declared, rel=room * error)
    off, on = entry_noise(kind, 1.0)
    assert off * (math.sqrt(2) if norm == "l2" else 1) == pytest.approx(on)


def test_release_outer_products_draws_noise_without_a_seed():
    # Two of 15 multiples of 2^-36 coincide in one of 10^9 releases.
    assert len(np.unique(release(np.zeros((1, 5)), "l2", 1.0, seed=None))) == 15
