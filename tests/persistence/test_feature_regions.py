"""Where features are: places and regions of points of diagrams."""

import sys

import numpy as np
import pytest

from sklearn_dptda import CubicalPersistence, DTMFiltration, GridFiltration, PrivateCloud
from sklearn_dptda.persistence import CloudResamples, feature_regions
from tests._refusals import refuses


def function_of(values):
    axes = tuple(np.arange(n) * 1.0 for n in values.shape)
    return GridFiltration(values, 0.01, 2.0, 100, "an example", axes=axes)


@pytest.mark.parametrize("shape", [(7, 5), (2, 6), (4, 5, 3)])
@pytest.mark.parametrize("ties", [False, True])
def test_places_have_the_values_of_births_and_deaths(shape, ties, rng):
    for _ in range(30):
        values = rng.integers(1, 6, shape) / 5 if ties else rng.uniform(0.1, 1, shape)
        function = function_of(values)
        for dimension in (0, len(shape) - 1):
            (diagram,) = CubicalPersistence(dimension).fit_transform([function])
            regions = feature_regions(function, diagram, dimension)
            assert len(regions) == len(diagram)
            for region, (birth, death) in zip(regions, diagram, strict=True):
                assert values[tuple(region.birth_place.astype(int))] == birth
                if np.isnan(region.death_place).any():
                    assert dimension == 0 and death == 2.0
                else:
                    assert values[tuple(region.death_place.astype(int))] == death
                    assert region.contains(region.birth_place if dimension == 0 else
                                           region.death_place)  # fmt: skip


def test_loop_encloses_what_is_inside_of_it():
    values = np.full((9, 9), 0.9)
    values[2:7, 2:7] = 0.1
    values[3:6, 3:6] = 0.7
    values[4, 4] = 0.8
    function = function_of(values)
    (loops,) = CubicalPersistence(1).fit_transform([function])
    (region,) = feature_regions(function, loops, 1)
    assert (region.birth, region.death, region.persistence) == (0.1, 0.8, pytest.approx(0.7))
    assert region.death_place.tolist() == [4, 4] and region.level == pytest.approx(0.45)
    expected = np.zeros((9, 9), dtype=bool)
    expected[3:6, 3:6] = True
    np.testing.assert_array_equal(region.inside, expected)
    (outline,) = region.outline()
    # Half a step beyond the nodes, and closed.
    np.testing.assert_array_equal(
        [outline.min(axis=0), outline.max(axis=0)], [[2.5] * 2, [5.5] * 2]
    )
    np.testing.assert_array_equal(outline[0], outline[-1])


def test_components_are_alike_whichever_is_older():
    one, two = np.full((3, 9), 0.9), np.full((3, 9), 0.9)
    for values, lower in ((one, 1), (two, 7)):
        values[1, 1:8] = [0.2, 0.3, 0.4, 0.6, 0.4, 0.3, 0.2]
        values[1, lower] = 0.1
    found = []
    for values in (one, two):
        (diagram,) = CubicalPersistence(0).fit_transform([function_of(values)])
        regions = feature_regions(function_of(values), diagram, 0)
        found.append({region.inside.tobytes() for region in regions})
        assert [region.level for region in regions] == [0.6, 0.6]
    assert found[0] == found[1] and len(found[0]) == 2


def test_void_in_space_has_a_region():
    values = np.full((7, 7, 7), 1.5)
    values[1:6, 1:6, 1:6] = 0.2
    values[2:5, 2:5, 2:5] = 1.0
    (voids,) = CubicalPersistence(2).fit_transform([function_of(values)])
    (region,) = feature_regions(function_of(values), voids, 2)
    assert region.inside.sum() == 27
    refuses("curves in the plane", region.outline)


def test_outline_of_a_region_at_the_border_is_closed(monkeypatch):
    values = np.full((4, 4), 0.2)
    values[0, :2] = 0.1
    (diagram,) = CubicalPersistence(0).fit_transform([function_of(values)])
    (region,) = feature_regions(function_of(values), diagram, 0)
    (curve,) = region.outline()
    np.testing.assert_array_equal(curve[0], curve[-1])
    monkeypatch.setitem(sys.modules, "contourpy", None)
    refuses(r"dptda\[plot\]", region.outline, error=ImportError)


def test_shares_tell_loops_from_noise(rng):
    angles = rng.uniform(0, 2 * np.pi, 4000)
    ring = np.column_stack([np.cos(angles), np.sin(angles)])
    for X, epsilon, least, most in ((ring, 2.0, 0.95, 1.0), (ring[:60], 0.05, 0.0, 0.6)):
        clouds = PrivateCloud(epsilon, (-1.5, 1.5), random_state=0).fit_transform([X])
        filtration = DTMFiltration(0.1, resolution=41).fit(clouds)
        resamples = CloudResamples(clouds[0], filtration, random_state=0)
        function = resamples.function
        (loops,) = CubicalPersistence(1).fit_transform([function])
        lengths = loops[:, 1] - loops[:, 0]
        regions = feature_regions(function, loops[lengths.argsort()[-1:]], 1)
        assert least <= resamples.shares(regions)[0] <= most
    assert len(resamples.shares([])) == 0
    short = feature_regions(function, loops[lengths.argsort()[:1]], 1)
    assert resamples.shares(short) == [0]


def test_resamples_know_how_many_features_there_are_and_where_they_lie(rng):
    angles = rng.uniform(0, 2 * np.pi, 6000)
    ring = np.column_stack([np.cos(angles), np.sin(angles)])
    clouds = PrivateCloud(3.0, (-1.5, 1.5), random_state=0).fit_transform([ring])
    filtration = DTMFiltration(0.1, resolution=41).fit(clouds)
    resamples = CloudResamples(clouds[0], filtration, n_resamples=30, random_state=0)
    exact, released = filtration.transform([ring])[0], resamples.function
    for dimension in (0, 1):
        counts = resamples.count(dimension, longer_than=0.4)
        assert counts.argmax() == 1 and counts.sum() == pytest.approx(1)
    exact_loop, loop = (
        CubicalPersistence(1).fit_transform([each])[0][-1] for each in (exact, released)
    )
    width = resamples.band()
    assert (np.abs(exact_loop - loop) < width).all()
    assert np.abs(exact.values - released.values).max() <= width < 0.3
    # Equal seeds give equal resamples, and exact clouds have no noise.
    again = CloudResamples(clouds[0], filtration, n_resamples=30, random_state=0)
    np.testing.assert_array_equal(again.functions[7].values, resamples.functions[7].values)
    (plain,) = PrivateCloud(np.inf, (-1.5, 1.5)).fit_transform([ring])
    still = CloudResamples(plain, filtration, n_resamples=2)
    assert still.band() == pytest.approx(np.linalg.norm(plain.cell) / 2)
    refuses("longer_than", resamples.count, 1, 0.0)
    refuses("level", resamples.band, 0.0)
    refuses("n_resamples", CloudResamples, clouds[0], filtration, n_resamples=0)


def test_feature_regions_refuses_what_it_cannot_place(rng):
    function = function_of(rng.uniform(0.1, 1, (5, 5)))
    space = function_of(rng.uniform(0.1, 1, (4, 4, 4)))
    refuses("none of this filtration", feature_regions, function, [[0.123, 0.456]], 1)
    refuses("must be 0, or 2", feature_regions, space, np.empty((0, 2)), 1)
    refuses("have no regions", feature_regions, function_of(np.ones(4)), np.empty((0, 2)), 0)
    refuses("shape", feature_regions, function, [[[0.1, 0.2]]], 1)
    refuses("GridFiltration", feature_regions, np.ones((3, 3)), np.empty((0, 2)), 1)
