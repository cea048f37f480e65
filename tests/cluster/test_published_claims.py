"""Claims of Byun, Choi and Lee that our documentation confirms or corrects, in numbers."""

import itertools

import numpy as np
import pytest


def published_r(d):
    return 1 + 3 * d + 2 * d**2


def raw_moments(x):
    """Count, sum and the entries of x x' that differ, as Algorithm 2 has noise for."""
    return np.r_[1.0, x, np.outer(x, x)[np.triu_indices(len(x))]]


def joint_norm(d):
    return 1 + d + d * (d + 1) // 2


def worst_replacement(d, rng):
    """Largest squared L2 change found, within a cell and between two."""
    corners = np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=d)))
    points = np.vstack([corners[rng.choice(len(corners), 60)], rng.uniform(-1, 1, (60, d))])
    points = np.vstack([points, np.ones(d), -np.ones(d)])
    moments = np.array([raw_moments(x) for x in points])
    within = ((moments[:, None] - moments) ** 2).sum(axis=2).max()
    squares = (moments**2).sum(axis=1)
    return within, (squares[:, None] + squares).max()


@pytest.mark.parametrize("d", [1, 2, 3, 8])
def test_published_r_covers_sets_that_are_emptied_each_step(d, rng):
    within, between = worst_replacement(d, rng)
    assert within <= 3 * d + 2 * d**2 < published_r(d)
    assert between == pytest.approx(2 * joint_norm(d)) and between <= published_r(d)
    assert (published_r(d) == between) == (d == 1)
    # The largest change within a cell is between corners, and needs no more.
    assert within <= between


@pytest.mark.parametrize("d", [1, 8, 16])
@pytest.mark.parametrize("k", [6, 10])
def test_published_r_does_not_cover_sets_that_are_emptied_once(d, k):
    n_steps, sets = 10, set()
    moved = 0.0
    for step in range(n_steps):
        sets.add(step % k)
        moved += len(sets) * (raw_moments(np.ones(d)) ** 2).sum()
    assert moved > n_steps * published_r(d)
    if (d, k) == (8, 10):
        assert (moved, n_steps * published_r(d)) == (2475, 1530)


def test_published_r_does_not_cover_residuals_about_a_noisy_mean():
    # Even for a mean that is clipped to the cube, residuals have entries up to 2.
    d = 8
    record, mean = np.ones(d), -np.ones(d)
    squares = np.outer(record - mean, record - mean)[np.triu_indices(d)]
    assert 1 + d + (squares**2).sum() == 1 + d + 8 * d * (d + 1) > 3 * published_r(d)
    # A noisy sum over a small noisy count is not in the cube.
    far = np.outer(record + 40 * record, record + 40 * record)[np.triu_indices(d)]
    assert (far**2).sum() > 1e5 * published_r(d)


def true_delta(d, first, second, rng, epsilon=1.0, claimed=1e-5, n_runs=40_000):
    """Delta of the printed step, for one cluster, between two tables at a given epsilon."""
    log = np.log(1 / claimed)
    rho = (np.sqrt(log + epsilon) - np.sqrt(log)) ** 2
    sigma, entries = np.sqrt(published_r(d) / (2 * rho)), np.triu_indices(d)
    count = len(first) + sigma * rng.standard_normal(n_runs)
    total = first.sum(axis=0) + sigma * rng.standard_normal((n_runs, d))
    noise = sigma * rng.standard_normal((n_runs, len(entries[0])))

    def squares(rows):
        away = rows[:, None] - total / count[:, None]
        return (away[..., entries[0]] * away[..., entries[1]]).sum(axis=0)

    loss = (count - len(second)) ** 2 - (count - len(first)) ** 2
    loss += ((total - second.sum(axis=0)) ** 2 - (total - first.sum(axis=0)) ** 2).sum(axis=1)
    loss += ((noise + squares(first) - squares(second)) ** 2 - noise**2).sum(axis=1)
    return np.maximum(1 - np.exp(np.minimum(epsilon - loss / (2 * sigma**2), 0.0)), 0.0).mean()


@pytest.mark.nightly
@pytest.mark.parametrize("d", [1, 2, 10])
@pytest.mark.parametrize("n_others", [0, 10])
def test_published_step_has_a_larger_delta_than_claimed(d, n_others, rng):
    # Bounds on means of 40,000 runs, whose standard errors are below 0.002.
    others, corner = np.zeros((n_others, d)), np.ones((1, d))
    first = np.vstack([others, corner])
    assert 0.09 < true_delta(d, first, others, rng) < 0.205
    assert 0.04 < true_delta(d, first, np.vstack([others, 0 * corner]), rng) < 0.08
    assert 0.08 < true_delta(d, first, np.vstack([others, -corner]), rng) < 0.15


def test_published_product_of_metrics_need_not_be_positive():
    metric, precision = np.diag([1.0, 100.0]), np.array([[1.0, 0.9], [0.9, 1.0]])
    assert (np.linalg.eigvalsh(metric) > 0).all() and (np.linalg.eigvalsh(precision) > 0).all()
    product = metric @ precision
    assert np.linalg.eigvalsh((product + product.T) / 2)[0] == pytest.approx(-16.7, abs=0.05)
