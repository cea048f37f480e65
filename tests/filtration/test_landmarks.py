"""Private landmarks: costs, accountants, people, and refusals before any payment."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline

from sklearn_dptda import (
    DTMFiltration,
    PersistenceProfile,
    PrivacyAccountant,
    PrivatePersistence,
)
from sklearn_dptda.cluster import DPLloyd, DPMoG, PrivateLandmarks
from sklearn_dptda.filtration import LandmarkComplex, _cloud, _nearest_sums
from sklearn_dptda.model_selection import pipeline_guarantee, planned_loss
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import PrivacyBudgetExceeded, gaussian_mu
from sklearn_dptda.utils._privacy_checks._border_checks import recorded
from tests._refusals import refuses

FEW = pytest.mark.filterwarnings("ignore:One person can change the function")
LANDMARKS = np.random.default_rng(3).uniform(size=(7, 5))


def ring(n, d=5, seed=0):
    rng = np.random.default_rng(seed)
    turns = rng.uniform(0, 2 * np.pi, n)
    flat = np.column_stack([np.cos(turns), np.sin(turns), np.zeros((n, d - 2))])
    return flat + 0.1 * rng.normal(size=(n, d))


X = ring(600)


class Fitted(DTMFiltration):
    """Keeps what was computed, so that a neighbour's can be compared."""

    kept = []

    def fit(self, X, y=None):
        super().fit([X])
        self.kept.append(self.transform([X])[0])
        return self


@pytest.mark.laws
@pytest.mark.parametrize("kind", ["far", "near"])
def test_private_landmarks_and_function_lose_what_they_declare(kind):
    epsilon, delta = 2.0, 1e-6
    private = PrivateLandmarks(12, epsilon, delta, bounds=(-1.5, 1.5), random_state=0)
    neighbour = X.copy()
    neighbour[0] = 1.5 if kind == "far" else X[0] + 0.1
    Fitted.kept = []
    transcript = recorded(partial(Fitted(landmarks=private).fit, X))
    moves = transcript.replay(partial(Fitted(landmarks=private).fit, neighbour))
    one, other = Fitted.kept
    # The released values are the same, so the landmarks are. Values that are not released change by
    # no more than the next release pays for.
    assert np.array_equal(one.complex.landmarks, other.complex.landmarks)
    assert one.upper == other.upper and one.sensitivity == other.sensitivity
    moved = np.abs(one.values - other.values).max()
    assert 0 < moved <= one.sensitivity
    assert 0 < max(moves) <= 1 + 1e-9
    assert transcript.declared()[1] <= gaussian_mu(epsilon, delta) ** 2 / 2 * (1 + 1e-9)


def of_one_person_each(X, n_people):
    return [X[i::n_people] for i in range(n_people)]


def brute_force(people, places, mass, cap, p):
    """Smallest mean distance of a mass of people's points, in floating point."""
    weights = np.concatenate([np.full(len(each), 1 / len(each)) for each in people])
    distances = np.linalg.norm(places[:, None] - np.concatenate(people), axis=2)
    order = np.argsort(distances, axis=1)
    distances, weights = np.take_along_axis(distances, order, axis=1), weights[order]
    taken = np.clip(mass - (np.cumsum(weights, axis=1) - weights), 0, weights)
    return ((np.minimum(distances, cap) ** p * taken).sum(axis=1) / mass) ** (1 / p)


@pytest.mark.laws
@FEW
@pytest.mark.parametrize(
    ("sizes", "m", "mass", "p"),
    [
        ((1, 2, 3, 7, 40, 5, 1, 1, 9, 4), 0.31, 4, 1),
        ((1,) * 200, 0.1, 20, 1),
        ((1,) * 200, 0.1, 20, 2.5),
    ],
)
def test_dtm_filtration_on_landmarks_equals_brute_force(sizes, m, mass, p, rng):
    people, of_people = [rng.uniform(size=(n, 5)) for n in sizes], max(sizes) > 1
    filtration = DTMFiltration(m, p, landmarks=LANDMARKS, groups=True if of_people else None)
    given = people if of_people else np.concatenate(people)
    (f,) = filtration.fit_transform([given])
    (far,) = filtration.set_params(max_distance=1e3).fit_transform([given])
    K, caps = f.complex, [f.upper, *(cap for _, cap in f.smaller_caps), far.upper]
    for each, cap in zip((f, *f.smaller, far), caps, strict=True):
        expected = K.highest(brute_force(people, K.places(), mass, cap, p))
        stated = (far if each is far else f).approximation_error
        assert np.abs(each.values - expected).max() <= stated < 1e-5 * cap
        assert each.sensitivity == pytest.approx(cap / mass ** (1 / p))
    assert f.n_points == len(sizes)
    assert f.unit == ("all points of one person" if of_people else "one point of a cloud")


@FEW
def test_dtm_filtration_of_one_point_each_equals_points_on_landmarks(rng):
    points = rng.uniform(size=(50, 5))
    (of_points,) = DTMFiltration(landmarks=LANDMARKS).fit_transform([points])
    people = list(points[:, None])
    (of_people,) = DTMFiltration(landmarks=LANDMARKS, groups=True).fit_transform([people])
    assert np.array_equal(of_points.values, of_people.values)


def test_point_weights_share_weight_of_person():
    weights = _cloud.point_weights(["ann", "bob", "ann", "ann", "bob"])
    whole = 1 << _cloud.WEIGHT_BITS
    assert weights[[0, 2, 3]].sum() == weights[[1, 4]].sum() == whole
    assert np.ptp(weights[[0, 2, 3]]) <= 1 and weights[1] == weights[4]


def test_weighted_sums_are_exact_where_large(rng):
    # Few places, and as many people as 64 bits must represent.
    n = 3000
    power = _nearest_sums.FixedPointPower(1.0, 1, n, (0.5,))
    points, weights = np.full((n, 1), 2.0), np.full(n, 1 << 22)
    place = np.zeros((1, 1))
    for whole, parts in _nearest_sums.weighted_sums(
        points, weights, 22, np.zeros((1, 1)), power, 1
    ):
        assert whole[0] in (n << 40, n << 39) and parts[0] == 0
    points, weights = rng.integers(2**20, size=(n, 1)) / 2**20, rng.integers(1, 1 << 22, n)
    weights[-1] += (n << 22) - weights.sum() if weights.sum() > (n << 22) else 0
    distances = power.integers(points[:, 0] ** 2)
    half = _nearest_sums.FixedPointPower(1.0, 1, n // 4, ())
    ((whole, parts),) = _nearest_sums.weighted_sums(points, weights, 22, place, half, 1)
    left, total = (n // 4) << 22, 0
    order = np.argsort(distances)
    for distance, weight in zip(distances[order].tolist(), weights[order].tolist(), strict=True):
        total += distance * min(weight, left)
        left -= min(weight, left)
    assert whole[0] == total >> 22 and parts[0] == (total & ((1 << 22) - 1)) / 2**22


def test_weighted_sums_are_the_same_without_a_compiler(rng, monkeypatch):
    cases = []
    for bits in (0, 22):
        points, places = rng.integers(0, 9, (500, 2)) / 8, rng.normal(size=(30, 2))
        weights = rng.integers(1, 1 << (12 if bits == 0 else 22), 500)
        k = int(weights.sum()) // 3 >> bits
        power = _nearest_sums.FixedPointPower(2.0, 1, k, (0.5, 0.1))
        cases.append((points, weights, bits, places, power, 64.0))
    found = [_nearest_sums.weighted_sums(*case) for case in cases]
    monkeypatch.setattr(_nearest_sums, "compiled", None)
    for case, each in zip(cases, found, strict=True):
        for one, other in zip(each, _nearest_sums.weighted_sums(*case), strict=True):
            np.testing.assert_array_equal(one[0], other[0])
            assert one[1] is None or (one[1] == other[1]).all()


@pytest.mark.laws
def test_planned_loss_with_private_landmarks_adds_up():
    with PrivacyAccountant(3.0, 1e-5) as budget:
        landmarks = PrivateLandmarks(10, 0.5, bounds=(-2, 2), random_state=0)
        pipeline = make_pipeline(
            DTMFiltration(landmarks=landmarks), PersistenceProfile(1.5, homology_dimensions=1)
        )
        plan = planned_loss(pipeline, [X])
        assert plan.total().epsilon == 2.0 and len(budget) == 0
        pipeline.fit_transform([X])
        assert budget.total().epsilon == pipeline_guarantee(pipeline).epsilon == 2.0
        guarantee = pipeline[-1].privacy_guarantee_
        assert guarantee.delta == 1e-6 and guarantee.unit == "one point of a cloud"
        with pytest.raises(PrivacyBudgetExceeded):
            clone(pipeline).set_params(dtmfiltration__landmarks__epsilon=2.0).fit([X])
        assert len(budget) == 2


@pytest.mark.laws
def test_private_landmarks_that_are_equal_are_two_releases():
    def functions(X):
        landmarks = PrivateLandmarks(8, 1.0, bounds=(-2, 2), random_state=0)
        return DTMFiltration(landmarks=landmarks).fit_transform([X])

    first, second = functions(X), functions(X)
    refuses("several boxes", PrivatePersistence(1.0).fit, [*first, *second])


@pytest.mark.laws
@pytest.mark.parametrize(
    "model",
    [
        DPMoG(3, 1.0, bounds=(-2, 2), adjacency="replace-one", random_state=0),
        DPLloyd(6, 1.0, delta=0.0, bounds=(-2, 2), adjacency="replace-one", random_state=0),
        PrivateLandmarks(9, 1.0, bounds=(-2, 2), dimension=1, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_dtm_filtration_takes_landmarks_of_paid_models(model):
    fitted = clone(model).fit(X)
    filtration = clone(DTMFiltration(landmarks=FrozenEstimator(fitted)))
    with PrivacyAccountant(5.0, 1e-5) as budget:
        private = PrivatePersistence(1.0, homology_dimensions=0)
        private.fit_transform(filtration.fit_transform([X]))
        assert budget.total().epsilon == 1.0
    assert private.privacy_guarantee_.epsilon == 2.0
    assert private.privacy_guarantee_.unit == "one point of a cloud"
    complex = filtration.complex_
    if isinstance(model, PrivateLandmarks):
        assert np.array_equal(complex.landmarks, fitted.landmarks_) and complex.dimension == 1
        assert complex.reach == fitted.reach_
    elif isinstance(model, DPLloyd):
        assert np.array_equal(complex.landmarks, fitted.cluster_centers_)
    else:
        assert complex.landmarks.shape == (40, 5)


@pytest.mark.laws
def test_dtm_filtration_of_people_fits_landmarks_of_people():
    people = of_one_person_each(X, 60)
    filtration = DTMFiltration(
        0.3, landmarks=PrivateLandmarks(8, 3.0, bounds=(-2, 2), random_state=0), groups=True
    ).fit([people])
    assert filtration.bounds_guarantee_.unit == "all points of one person"


def test_place_histogram_refuses_other_places_reach_and_memory():
    grid = DTMFiltration(bounds=(-2, 2)).fit([X[:, :2]])
    filtration = DTMFiltration(landmarks=LANDMARKS[:, :2])
    refuses(r"X\[0\] is a histogram on a grid", filtration.fit, [grid.make_histogram(X[:, :2])])
    histogram = filtration.fit([X[:, :2]]).make_histogram(X[:, :2])
    refuses("counts distances of points from landmarks", grid.transform, [histogram])
    refuses(
        "Fit it where the points", DTMFiltration(landmarks=PrivateLandmarks(5)).fit, [histogram]
    )
    of_people = DTMFiltration(0.5, landmarks=LANDMARKS, groups=True)
    refuses("clouds in memory", of_people.fit([of_one_person_each(X, 60)]).make_histogram)
    of = [LandmarkComplex(LANDMARKS, *options) for options in ((2, 1.0), (2, 9.0), (1, 1.0))]
    filtrations = [DTMFiltration(landmarks=complex).fit([X]) for complex in of]
    filtrations.append(clone(filtrations[0]).set_params(max_distance=0.1).fit([X]))
    histogram = filtrations[0].make_histogram(X)
    for other in filtrations[1:]:
        refuses("landmarks, max_distance and p of this estimator", other.transform, [histogram])
        added = histogram.__add__, other.make_histogram(X)
        refuses("same landmarks, max_distance and p can be added", *added)
    small = filtrations[0].set_params(memory=1.0)
    refuses(r"memory=1 MiB\. Use fewer landmarks", small.make_histogram, X)


# With p = 1, the error of counts is smaller than the part of a single neighbour.
@pytest.mark.parametrize("p", [1, pytest.param(2, marks=pytest.mark.laws)])
def test_place_histogram_of_parts_equals_whole(p):
    # Landmarks near the points, so that caps leave most values as they are.
    filtration = DTMFiltration(p=p, landmarks=X[:7]).fit([X])
    (exact,) = filtration.transform([X])
    whole = filtration.make_histogram(X)
    parts = filtration.make_histogram(np.array_split(X, 7))
    assert np.array_equal(whole.counts, parts.counts) and len(X) == parts.n_points == 600
    assert (whole.counts.sum(axis=1) == 600).all() and whole.n_clipped == exact.n_clipped
    (f,) = filtration.transform([pickle.loads(pickle.dumps(parts))])
    for each, of_points in zip((f, *f.smaller), (exact, *exact.smaller), strict=True):
        error = np.abs(each.values - of_points.values).max()
        assert error <= f.approximation_error
        assert each.sensitivity == pytest.approx(of_points.sensitivity)
        assert each.upper == of_points.upper
    assert not np.array_equal(f.values, exact.values)
    assert exact.values.max() < 0.9 * exact.upper
    assert f.approximation_error < 1.01 * exact.upper * 2.0 ** (-8 / p)


@pytest.mark.laws
@pytest.mark.parametrize("counted", [False, True])
def test_dtm_filtration_on_landmarks_moves_by_sensitivity_and_no_more(counted, rng):
    filtration = DTMFiltration(landmarks=LANDMARKS).fit([X])
    worst = 0.0
    for n in np.repeat([10, 40], 20):
        loose = rng.choice([0.0, 0.2]) * rng.normal(size=(n, 5))
        pair = [LANDMARKS[rng.integers(7, size=n)] + loose] * 2
        pair[1] = np.vstack([rng.choice([0.3, 100.0]) * rng.normal(size=(1, 5)), pair[0][1:]])
        pair = filtration.transform(map(filtration.make_histogram, pair) if counted else pair)
        for first, second in zip(*[(f, *f.smaller) for f in pair], strict=True):
            change = np.abs(first.values - second.values).max() / first.sensitivity
            assert change <= 1
            worst = max(worst, change)
    assert worst > 0.99


@pytest.mark.engines
def test_place_histogram_counts_dask_parts():
    dask = pytest.importorskip("dask.array")
    fitted = PrivateLandmarks(9, 5.0, bounds=(-2, 2), random_state=0).fit(X)
    filtration = DTMFiltration(landmarks=FrozenEstimator(fitted)).fit([X[:2]])
    far = dask.from_array(X, chunks=(97, 5))
    assert np.array_equal(
        filtration.make_histogram(far).counts, filtration.make_histogram(X).counts
    )
    (f,) = filtration.transform([filtration.make_histogram(far)])
    assert PersistenceProfile(1.0, homology_dimensions=1).fit_transform([f]).shape == (1, 2)


def test_dtm_filtration_refit_forgets_other_places():
    filtration = DTMFiltration(bounds=(-2, 2), resolution=5).fit([X[:, :2]])
    filtration.set_params(bounds=None, resolution=None, landmarks=LANDMARKS).fit([X])
    assert not hasattr(filtration, "axes_") and filtration.n_features_in_ == 5
    filtration.set_params(bounds=(-2, 2), resolution=5, landmarks=None).fit([X[:, :2]])
    assert not hasattr(filtration, "complex_")
    assert filtration.transform([X[:, :2]])[0].shape == (5, 5)


@pytest.mark.laws
def test_dtm_filtration_on_private_landmarks_keeps_no_point():
    landmarks = PrivateLandmarks(8, 5.0, bounds=(-2, 2), random_state=0)
    filtration = DTMFiltration(landmarks=landmarks).fit([X])
    text = pickle.dumps(filtration)
    assert all(row.tobytes() not in text for row in X)
    again = pickle.loads(text)
    assert np.array_equal(again.transform([X])[0].values, filtration.transform([X])[0].values)


@pytest.mark.laws
@pytest.mark.parametrize("kind", ["float32", "list", "frame", "people"])
def test_dtm_filtration_counts_repeated_cloud_once(kind):
    # Copies that are made to check the input must not hide that it is an iterator.
    small = X[:300, :2]
    given = {
        "float32": small.astype("f4"),
        "list": small.tolist(),
        "frame": pd.DataFrame(small),
        "people": of_one_person_each(small, 60),
    }[kind]
    people = {"groups": True, "m": 0.5} if kind == "people" else {}
    for parameter, private in (
        ("landmarks", PrivateLandmarks(6, 2.0, bounds=(-2, 2), random_state=0)),
        ("bounds", PrivateBounds(1.0, random_state=0)),
    ):
        once, twice = (
            DTMFiltration(**{parameter: private}, **people).fit([given] * n) for n in (1, 2)
        )
        if parameter == "landmarks":
            assert np.array_equal(once.complex_.landmarks, twice.complex_.landmarks)
        else:
            assert np.array_equal(once.bounds_, twice.bounds_)
            assert once.clipped_share_ == twice.clipped_share_
        first, second = twice.transform([given] * 2)
        assert first is second


@pytest.mark.laws
def test_dtm_filtration_refuses_nothing_after_payment():
    with PrivacyAccountant(5.0, 1e-5) as budget:
        landmarks = PrivateLandmarks(8, 1.0, random_state=0)
        filtration = DTMFiltration(landmarks=landmarks, max_distance=1e-11)
        (f,) = filtration.fit_transform([X])
        assert 0 < f.upper <= 1e-8 * f.complex.diameter and len(budget) == 1


@pytest.mark.laws
def test_dtm_filtration_refuses_too_many_people_unpaid():
    n = 2**20
    people = pd.DataFrame({"x": np.zeros(n), "y": np.ones(n), "id": np.arange(n)})
    with PrivacyAccountant(5.0, 1e-5) as budget:
        filtration = DTMFiltration(1.0, landmarks=PrivateLandmarks(4, 1.0), groups="id")
        refuses("Lower m", filtration.fit, [people])
        assert len(budget) == 0


@pytest.mark.parametrize("value", [-1e308, 5e-324])
def test_dtm_filtration_far_row_moves_by_at_most_sensitivity(value):
    filtration = DTMFiltration(1.0, landmarks=LANDMARKS).fit([X])
    neighbour = X[:40].copy()
    neighbour[0] = value
    for make in (lambda cloud: cloud, filtration.make_histogram):
        (one,), (two,) = (filtration.transform([make(c)]) for c in (X[:40], neighbour))
        assert np.abs(one.values - two.values).max() <= one.sensitivity


@pytest.mark.laws
def test_private_landmarks_cover_samples():
    # The reach is the largest of 4,000 distances. Of 2,000 more of the same law, 13 exceed it with
    # a probability of 3**-13, which is below 1e-6.
    private = PrivateLandmarks(20, 5.0, bounds=(-2, 2), random_state=0).fit(X)
    distances = np.linalg.norm(
        private.sample(2000, random_state=1)[:, None] - private.landmarks_, axis=2
    )
    nearest = distances.min(axis=1)
    assert (nearest > private.reach_).sum() < 13 and private.reach_ < 1.5 * nearest.max()
    of_sample = DPMoG(3, 5.0, bounds=(-2, 2), adjacency="replace-one", random_state=0).fit(X)
    complex = DTMFiltration(landmarks=FrozenEstimator(of_sample)).fit([X]).complex_
    drawn = of_sample.sample(2000, random_state=1)
    nearest = np.linalg.norm(drawn[:, None] - complex.landmarks, axis=2).min(axis=1)
    assert (nearest > complex.reach).sum() < 13 and complex.reach < 1.5 * nearest.max()


@pytest.mark.laws
def test_dtm_filtration_counts_points_beyond_landmarks():
    landmarks = LandmarkComplex(X[:20], reach=2.0)
    outside = np.concatenate([X, np.full((30, 5), 10.0)])
    (f,) = DTMFiltration(landmarks=landmarks).fit_transform([outside])
    assert f.n_clipped == 30
    private = PrivatePersistence(50.0, clipped_share=True, random_state=0).fit([f])
    private.transform([f])
    assert private.clipped_share_[0] == pytest.approx(30 / 630, abs=0.01)
    people = [*of_one_person_each(X, 60)[:-1], np.full((3, 5), 10.0)]
    (f,) = DTMFiltration(0.5, landmarks=landmarks, groups=True).fit_transform([people])
    assert f.n_clipped == 1
    gaps = LandmarkComplex([[0.0], [1.0], [3.0]])
    assert gaps.reach == 4.0 and gaps.diameter == 3.0
