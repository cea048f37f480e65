"""Clouds that are released once: their mechanism, and what other estimators make of them."""

import math
import pickle

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from sklearn_dptda import (
    CubicalPersistence,
    DiagramFeatures,
    DTMFiltration,
    KernelDistanceFiltration,
    PrivacyAccountant,
    PrivateCloud,
    PrivatePersistence,
)
from sklearn_dptda.filtration import ReleasedCloud, _cloud
from sklearn_dptda.filtration._private_cloud import cells_along_axes
from sklearn_dptda.filtration._released_cloud import projected
from sklearn_dptda.model_selection import PrivateMassSearch, pipeline_guarantee, planned_loss
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import NoiseSource
from sklearn_dptda.utils._privacy_checks._border_checks import recorded
from tests._refusals import refuses, refuses_unpaid
from tests.test_border import furthest, inputs_of

WEIGHT = 1 << 22


def frame_of(points, n_people):
    return pd.DataFrame(points, columns=["a", "b"]).assign(who=np.arange(len(points)) % n_people)


@pytest.fixture
def points(rng):
    return rng.uniform(-1, 2, size=(300, 2))


def released(X, epsilon=1.0, bounds=(-1, 2), random_state=0, **parameters):
    private = PrivateCloud(epsilon, bounds, random_state=random_state, **parameters)
    return private.fit_transform([X])[0]


def crossings_of(X, **parameters):
    return recorded(lambda: released(X, **parameters)).crossings


# The mechanism.


@pytest.mark.parametrize(
    ("groups", "adjacency", "expected"),
    [
        (None, "replace-one", [(2, 1.0)]),
        (None, "add-remove", [(1, 0.05), (1, 0.95)]),
        ("who", "replace-one", [(2 * WEIGHT, 1.0)]),
        ("who", "add-remove", [(1, 0.05), (WEIGHT, 0.95)]),
    ],
)
def test_private_cloud_spends_what_its_proof_says(points, groups, adjacency, expected):
    X = frame_of(points, n_people=100) if groups else points
    draws = crossings_of(X, groups=groups, adjacency=adjacency)
    spent = [(draw.sensitivity, draw.sensitivity * draw.rate) for draw in draws]
    for (sensitivity, loss), (known, share) in zip(spent, expected, strict=True):
        assert sensitivity == known
        assert share * (1 - 1e-12) <= loss <= share


def test_private_cloud_counts_each_point_in_its_cell(points):
    (draw,) = crossings_of(points, n_cells=[3, 6])
    edges = [np.linspace(-1, 2, 4), np.linspace(-1, 2, 7)]
    expected, *_ = np.histogram2d(*points.T, bins=edges)
    np.testing.assert_array_equal(draw.statistic, expected)
    # Points outside of the box belong to the nearest cell.
    outside = [[-9.0, -9.0], [9.0, 0.3], [2.0, 2.0]]
    (draw,) = crossings_of(np.array(outside), n_cells=3)
    np.testing.assert_array_equal(np.argwhere(draw.statistic), [[0, 0], [2, 1], [2, 2]])


def test_person_has_the_weight_of_one_record_wherever_the_points_are():
    X = pd.DataFrame({"x": [0.1, 0.9, 0.9, 0.4], "y": 0.1, "who": ["a", "a", "a", "b"]})
    (draw,) = crossings_of(X, groups="who", bounds=(0, 1), n_cells=2)
    first, second = draw.statistic[:, 0]
    assert draw.statistic.sum() == 2 * WEIGHT
    assert abs(second - 2 * WEIGHT / 3) < 1 and abs(first - 4 * WEIGHT / 3) < 1


def half_declared(monkeypatch):
    cross = NoiseSource.cross

    def broken(self, *given, sensitivity, **options):
        return cross(self, *given, sensitivity=sensitivity / 2, **options)

    monkeypatch.setattr(NoiseSource, "cross", broken)


def points_count_as_people(monkeypatch):
    def weights(self):
        found = np.zeros(self.n_nodes, dtype=np.int64)
        np.add.at(found, self.keys % self.n_nodes, self.counts * WEIGHT)
        return found

    monkeypatch.setattr(_cloud.PeopleAtNodes, "weights", weights)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("twin", [half_declared, points_count_as_people])
def test_border_catches_broken_private_clouds(twin, monkeypatch):
    private = PrivateCloud(1.0, (0, 1), groups="who", random_state=0)
    assert furthest(private, inputs_of(private)) <= 1
    twin(monkeypatch)
    assert furthest(private, inputs_of(private)) >= 2


def test_cells_are_about_cubes_and_not_too_many():
    assert cells_along_axes(1000, 1.0, np.array([1.0, 1.0])) == (13, 13)
    assert cells_along_axes(10, 0.1, np.array([1.0, 1.0])) == (12, 12)
    first, second = cells_along_axes(10_000, 1.0, np.array([4.0, 1.0]))
    assert first / second == pytest.approx(4, rel=0.1)
    for sides in ([1e9, 1.0], [1.0, 1.0, 1e6], [1.0] * 4, [1.0]):
        shape = cells_along_axes(10**9, 1e3, np.array(sides))
        assert min(shape) >= 2 and math.prod(shape) <= 1 << 18


def test_masses_are_the_nearest_that_can_be(rng):
    values = rng.normal(size=7) * 3
    found = projected(values, 5.0)
    best = minimize(
        lambda w: ((w - values) ** 2).sum(),
        np.full(7, 5 / 7),
        bounds=[(0, None)] * 7,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 5},
    )
    np.testing.assert_allclose(found, best.x, atol=1e-3)
    assert found.min() >= 0 and found.sum() == pytest.approx(5)


# Clouds in parts, of people, in a found box.


@pytest.mark.parametrize("groups", [None, "who"])
def test_private_cloud_of_parts_is_that_of_the_whole(points, groups):
    X, n = (points, 300) if groups is None else (frame_of(points, n_people=40), 40)
    private = PrivateCloud(1.0, (-1, 2), groups=groups, random_state=0).fit([X])
    (whole,) = private.transform([X])
    assert whole.n_points == n and whole.weights.sum() == pytest.approx(n)
    histograms = [private.make_histogram([X[:70], X[70:]], n_points=n)]
    if groups is None:
        parts = points[:9], points[9:], da.from_array(points, chunks=(80, 2))
        first, second, of_dask = (private.make_histogram(part, n_points=n) for part in parts)
        histograms += [first + second, of_dask]
    for (cloud,) in map(private.transform, zip(histograms, strict=True)):
        np.testing.assert_array_equal(cloud.counts, whole.counts)


def test_private_cloud_finds_its_box_within_epsilon(rng):
    X = [rng.normal(size=(20_000, 2)) + 7]
    accountant = PrivacyAccountant(1.0, 0.0)
    private = PrivateCloud(1.0, accountant=accountant, random_state=0)
    assert planned_loss(private, X).total().epsilon == pytest.approx(1)
    (cloud,) = private.fit_transform(X)
    assert accountant.total().epsilon == pytest.approx(1.0)
    assert private.privacy_guarantee_.epsilon == pytest.approx(1.0)
    assert (cloud.low < 5).all() and (cloud.high > 9).all() and (cloud.high - cloud.low < 40).all()


def test_private_cloud_takes_a_private_box_of_its_adjacency(points):
    found = released(points, bounds=PrivateBounds(5.0, adjacency="add-remove", random_state=0),
                     adjacency="add-remove")  # fmt: skip
    assert (found.high > found.low).all()
    refuses(
        "bounds must have adjacency='replace-one'",
        released,
        points,
        bounds=PrivateBounds(5.0, adjacency="add-remove"),
    )


def test_private_cloud_accepts_any_number_of_points_if_it_is_private(rng):
    X = rng.uniform(size=(2, 2))
    refuses("fewer than 2|at least 2", released, X[:1])
    # As for tables, a box is found around one point at least.
    for n, bounds in ((0, (0, 1)), (1, (0, 1)), (2, (0, 1)), (1, None), (2, None)):
        cloud = released(X[:n], 50.0, bounds, adjacency="add-remove")
        assert 1 <= cloud.n_points <= 5 and cloud.weights.sum() == pytest.approx(cloud.n_points)
    refuses_unpaid("at least 1", released, X[:0], bounds=None, adjacency="add-remove")


# Released clouds are public input.


BOX = {"bounds": (-1, 2), "resolution": 21, "method": "exact"}


@pytest.mark.parametrize(
    ("filtration", "within"),
    [
        *(
            (DTMFiltration(m, p, **BOX, max_distance=math.inf), 1e-4)
            for m in (0.05, 0.3, 1.0)
            for p in (1, 2)
        ),
        (KernelDistanceFiltration(0.5, **BOX), 2e-3),
        (DTMFiltration(0.2, landmarks=np.random.default_rng(0).uniform(-1, 2, (12, 2))), 2e-3),
    ],
)
def test_functions_of_released_clouds_are_those_of_repeated_centres(points, filtration, within):
    cloud = released(points, math.inf, n_cells=9)
    copies = np.repeat(cloud.points, np.rint(cloud.weights).astype(int), axis=0)
    assert len(copies) == 300
    (function,), (expected,) = (filtration.fit_transform([each]) for each in (cloud, copies))
    np.testing.assert_allclose(function.values, expected.values, atol=within)
    assert function.sensitivity == 0 < expected.sensitivity


def test_filtrations_of_released_clouds_have_their_box_and_no_warning(points, recwarn):
    clouds = [released(points), released(points, bounds=(-2, 1))]
    fitted = DTMFiltration(0.1).fit(clouds)
    np.testing.assert_array_equal(fitted.bounds_, [[-2, -2], [2, 2]])
    assert not recwarn.list


def test_search_over_m_of_released_clouds_pays_nothing(rng):
    accountant = PrivacyAccountant(1.0, 0.0)
    angles = rng.uniform(0, 2 * np.pi, size=(12, 400))
    circles = [np.column_stack([np.cos(a), np.sin(a) * (i % 2)]) for i, a in enumerate(angles)]
    private = PrivateCloud(1.0, (-1.5, 1.5), accountant=accountant, random_state=0)
    clouds = private.fit_transform(circles)
    features = DiagramFeatures(value_range=(0, 1.5))
    model = make_pipeline(
        DTMFiltration(resolution=21), CubicalPersistence(), features, LogisticRegression()
    )
    search = GridSearchCV(model, {"dtmfiltration__m": [0.05, 0.2]}, cv=3)
    search.fit(clouds, np.arange(12) % 2)
    assert len(accountant) == 1 and search.best_score_ == 1
    whole = make_pipeline(PrivateCloud(1.0, (-1.5, 1.5)), model).fit(circles, np.arange(12) % 2)
    assert pipeline_guarantee(whole).epsilon == 1


def test_released_cloud_comes_back_from_pickles_and_ledgers(points, tmp_path):
    accountant = PrivacyAccountant(2.0, path=tmp_path / "ledger.db")
    private = PrivateCloud(1.0, (-1, 2), accountant=accountant)
    (cloud,) = private.fit_transform([points])
    (stored,) = accountant.release(accountant.releases()[-1].key)["transform"]
    for again in (stored, pickle.loads(pickle.dumps(cloud))):
        assert isinstance(again, ReleasedCloud)
        np.testing.assert_array_equal(again.counts, cloud.counts)
        np.testing.assert_array_equal(again.weights, cloud.weights)


def test_samples_and_resamples_follow_the_released_measure(points):
    cloud = released(points)
    sample = cloud.sample(5000, random_state=0)
    assert ((sample >= -1) & (sample <= 2)).all() and len(cloud.sample()) == 300
    inside = ((sample - cloud.low) / cloud.cell).astype(int)
    counts = np.bincount(
        np.ravel_multi_index(inside.T, cloud.counts.shape), minlength=cloud.counts.size
    )
    assert np.abs(counts / 5000 - cloud._masses / 300).max() < 0.02
    assert (counts[cloud._masses == 0] == 0).all()
    noise = np.array([cloud.resample(seed).counts.ravel() for seed in range(300)]) - cloud._masses
    assert np.abs(noise.mean(axis=0)).max() < 1 and noise.std() == pytest.approx(2.83, rel=0.02)


def test_cells_have_loops_of_their_own(rng):
    # The mass of each cell is that of each value, so that distances are those of a lattice.
    counts = np.full((8, 8), 10)
    cloud = ReleasedCloud(counts, np.zeros(2), np.ones(2), 640, 0.0)
    (function,) = DTMFiltration(1 / 64, bounds=(0, 1), resolution=129).fit_transform([cloud])
    (loops,) = CubicalPersistence(1).fit_transform([function])
    assert np.diff(loops).max() == pytest.approx(cloud.lattice_loop, rel=1e-3)


# Refusals.


@pytest.mark.parametrize(
    ("message", "X", "parameters"),
    [
        ("at most 4 columns; got 5", np.zeros((9, 5)), {"bounds": (0, 1)}),
        ("n_cells must be an integer", np.zeros((9, 2)), {"n_cells": [3]}),
        ("n_cells must be an integer", np.zeros((9, 2)), {"n_cells": [1, 3]}),
        ("Lower it", np.zeros((9, 2)), {"n_cells": 5000}),
        ("crossed", np.zeros((9, 2)), {"bounds": (1, 0)}),
        ("epsilon", np.zeros((9, 2)), {"epsilon": 1e-9}),
    ],
)
def test_private_cloud_refuses_unpaid(message, X, parameters):
    refuses_unpaid(message, PrivateCloud(**{"bounds": (0, 1), **parameters}).fit_transform, [X])


@pytest.mark.parametrize("bounds", [None, PrivateBounds(1.0), (-1, 2)])
def test_private_cloud_refuses_a_repeated_cloud_before_its_box_is_paid_for(points, bounds):
    refuses_unpaid("several times", PrivateCloud(1.0, bounds).fit_transform, [points, points])


def test_released_clouds_are_refused_where_they_make_no_sense(points):
    cloud = released(points)
    (function,) = DTMFiltration(0.1).fit_transform([cloud])
    refuses("CubicalPersistence", PrivatePersistence().fit, [function])
    refuses("GridSearchCV", PrivateMassSearch(DTMFiltration(bounds=(-1, 2))).fit, [cloud])
    refuses("released already", PrivateCloud(bounds=(-1, 2)).fit, [cloud])
    refuses("Leave groups out", DTMFiltration(bounds=(-1, 2), groups="who").fit, [cloud])
    refuses("bounds must be numbers", DTMFiltration(0.1).fit, [cloud, points])
    refuses("2 features", DTMFiltration(bounds=(0, 1)).fit([np.eye(3)]).transform, [cloud])


def test_private_cloud_refuses_other_histograms(points):
    private = PrivateCloud(1.0, (-1, 2)).fit([points])
    refuses("n_points must be given", private.make_histogram, points)
    other = private.make_histogram(points, n_points=10**6)
    refuses("does not belong to the cells", private.transform, [other])
    adding = PrivateCloud(1.0, (-1, 2), adjacency="add-remove").fit([points])
    refuses("n_cells must be given", adding.transform, [other])
