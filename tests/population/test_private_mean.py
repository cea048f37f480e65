"""The mean of people, its confidence band, and its cost."""

import math

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_dptda.population import PrivateMean
from tests._refusals import refuses_unpaid

BOX = (0.0, 1.0)


def lifetimes(n, d=4, seed=0):
    """Rows near a corner of the box, with columns of several sizes, as lifetimes are."""
    rng = np.random.default_rng(seed)
    return rng.beta(1, [4, 8, 16, 40][:d], size=(n, d))


TRUTH = 1 / (1 + np.array([4, 8, 16, 40]))


@pytest.mark.parametrize(
    ("delta", "adjacency", "options"),
    [
        (1e-6, "add-remove", {}),
        (0.0, "replace-one", {}),
        (1e-6, "replace-one", {"confidence": None}),
        (0.0, "add-remove", {"confidence": None}),
        (1e-6, "replace-one", {"norm_bound": 9.0}),
        (0.0, "add-remove", {"norm_bound": 9.0}),
    ],
)
def test_private_mean_without_noise_is_the_mean(delta, adjacency, options):
    X = lifetimes(500)
    found = PrivateMean(math.inf, delta, BOX, adjacency=adjacency, **options).fit(X)
    assert found.mean_ == pytest.approx(X.mean(axis=0), abs=1e-6)
    assert found.n_samples_ == pytest.approx(500) and (found.noise_ == 0).all()
    if found.confidence is None:
        assert not hasattr(found, "variance_") and not hasattr(found, "half_widths_")
    else:
        assert found.variance_ == pytest.approx(X.var(axis=0), abs=1e-6)
        assert (found.half_widths_ < 0.03).all()


def test_private_mean_shortens_long_rows():
    X = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    for delta, kept in ((1e-6, [0.6, 0.8]), (0.0, [3 / 7, 4 / 7])):
        found = PrivateMean(math.inf, delta, (0, 5), norm_bound=1.0).fit(X)
        assert found.mean_ == pytest.approx((np.array(kept) + X[1]) / 3, abs=1e-6)


@pytest.mark.parametrize("confidence", [0.95, None])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_private_mean_weights_move_by_one_for_a_record(norm, confidence):
    # Number, sum and squares share one budget by public parts in either norm.
    weights = PrivateMean(confidence=confidence)._weights(norm)
    assert weights.sensitivity("add-remove", norm).value == pytest.approx(1.0)


@pytest.mark.nightly
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize(
    ("n", "epsilon", "delta"), [(100, 1.0, 1e-6), (1000, 1.0, 1e-6), (2000, 2.0, 0.0)]
)
def test_private_mean_band_holds_the_mean_of_the_population(n, epsilon, delta, adjacency):
    # 500 samples. At a coverage of 0.95, fewer than 437 of them have a probability below 1e-6, and
    # the threshold is higher.
    private = PrivateMean(epsilon, delta, BOX, adjacency=adjacency)
    held = 0
    for seed in range(500):
        found = clone(private).set_params(random_state=seed).fit(lifetimes(n, seed=1000 + seed))
        held += bool((np.abs(found.mean_ - TRUTH) <= found.half_widths_).all())
    assert held >= 465


@pytest.mark.nightly
def test_private_mean_band_of_one_error_alone_is_too_narrow():
    # Broken twins: 200 samples, in a case where each part of the error matters.
    held = np.zeros(2)
    for seed in range(200):
        found = PrivateMean(2.0, 1e-6, BOX, random_state=seed).fit(lifetimes(400, seed=seed))
        share = found.noise_**2 / (found.noise_**2 + found.variance_ / found.n_samples_)
        for i, part in enumerate((share, 1 - share)):
            half = np.sqrt(part) * found.half_widths_
            held[i] += (np.abs(found.mean_ - TRUTH) <= half).all()
    assert held.min() < 170 and held.max() < 200


@pytest.mark.parametrize("bounds", [(1, 2), ([0, 0, 0, 0], [1, 100, 1, 1]), (-3, -1)])
def test_private_mean_leaves_the_box_only_by_shortened_rows(bounds):
    low, high = (np.broadcast_to(end, 4).astype(float) for end in bounds)
    X = np.random.default_rng(0).uniform(low, high, (50, 4))
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    short = X * np.minimum(1, 1.5 / norms)
    found = PrivateMean(math.inf, bounds=bounds, norm_bound=1.5).fit(X)
    assert found.mean_ == pytest.approx(short.mean(axis=0), abs=1e-4)
    for norm_bound in (None, 100.0):
        for seed in range(3):
            noisy = PrivateMean(0.01, bounds=bounds, norm_bound=norm_bound, random_state=seed)
            mean = noisy.fit(X).mean_
            assert (mean <= np.maximum(high, 0 if norm_bound else -9)).all()
            assert (mean >= np.minimum(low, 0 if norm_bound else 9)).all()


@pytest.mark.parametrize("bounds", [(0, 1), (0, 1e-80), (-1e80, 1e80), None])
def test_private_mean_is_finite_for_any_norm_bound(bounds):
    X = np.vstack([np.zeros((50, 2)), np.ones((1, 2))])
    for norm_bound, delta in ((1e-90, 1e-6), (1e-30, 0.0), (1e30, 1e-6), (1e90, 0.0)):
        found = PrivateMean(1.0, delta, bounds, norm_bound=norm_bound, random_state=0).fit(X)
        released = (found.mean_, found.noise_, found.half_widths_)
        assert all(np.isfinite(part).all() for part in released), (norm_bound, delta)


def test_private_mean_gains_from_narrow_bounds_and_short_norms():
    X = lifetimes(500)
    wide = PrivateMean(1.0, bounds=(0, 1), random_state=0).fit(X)
    narrow = PrivateMean(1.0, bounds=(0, [0.8, 0.5, 0.3, 0.1]), random_state=0).fit(X)
    short = PrivateMean(1.0, bounds=(0, 1), norm_bound=0.6, random_state=0).fit(X)
    assert (narrow.half_widths_[2:] < 0.6 * wide.half_widths_[2:]).all()
    assert (short.noise_ < 0.7 * wide.noise_).all()


def test_private_mean_html_names_all_errors_once():
    fitted = PrivateMean(1.0, bounds=BOX, random_state=0).fit(lifetimes(100))
    assert fitted._repr_html_().count("all errors of a release") == 1


# The ends of ranges, which do not belong to them.
@pytest.mark.parametrize(("name", "value"), [("confidence", 1.0), ("norm_bound", 0.0)])
def test_private_mean_refuses_wrong_parameters_unpaid(name, value):
    private = PrivateMean(bounds=BOX).set_params(**{name: value})
    refuses_unpaid(name, private.fit, lifetimes(20))
