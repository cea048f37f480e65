"""Persistence on a grid: masses of points, the bound of one person, the expected diagram."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from sklearn_dptda.features import PersistenceMass
from sklearn_dptda.model_selection import pipeline_guarantee
from sklearn_dptda.population import PrivateMean
from tests._refusals import refuses

MASS = PersistenceMass(2.0, least_lifetime=0.25, resolution=6)


def diagrams(n, seed=0):
    """A loop or two of many sizes, and much that is near the diagonal."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        long = np.column_stack([rng.uniform(0, 0.3, 2), rng.uniform(0.8, 1.6, 2)])
        births = rng.uniform(0, 1, 30)
        near = np.column_stack([births, births + rng.uniform(0, 0.2, 30)])
        found.append(np.vstack([long[: rng.integers(1, 3)], near]))
    return found


def test_persistence_mass_of_a_point_keeps_lifetime_and_place():
    rng = np.random.default_rng(0)
    births = rng.uniform(0, 2, 200)
    lifetimes = rng.uniform(0.25, 2, 200)
    points = [np.array([[b, b + life]]) for b, life in zip(births, lifetimes, strict=True)]
    masses = MASS.fit(points).transform(points)
    assert (masses >= 0).all() and masses.shape == (200, 49)
    # The number of points is one, and its birth and lifetime are unchanged.
    for row, b, life in zip(masses, births, lifetimes, strict=True):
        found = MASS.expected_diagram(row)
        numbers = found[:, 2]
        assert numbers.sum() == pytest.approx(1.0)
        assert numbers @ found[:, 0] == pytest.approx(b)
        assert row.sum() == pytest.approx(life)


def test_persistence_mass_drops_short_points_and_clips_far_ones():
    births = np.linspace(0, 1, 10_000)
    near = np.column_stack([births, births + 0.2])
    rows = MASS.fit_transform([near, np.array([[0.0, np.inf], [3.0, 9.0]]), np.empty((0, 2))])
    assert rows.sum(axis=1) == pytest.approx([0.0, 4.0, 0.0])


def test_private_mean_of_masses_moves_by_no_more_than_the_bound():
    # One person with ten thousand points just above the smallest lifetime, and one with few points.
    rng = np.random.default_rng(0)
    births = rng.uniform(0, 1, 10_000)
    hostile = np.column_stack([births, births + 0.3])
    others = diagrams(50)
    rows = [MASS.fit_transform(each) for each in ([*others, hostile], others)]
    means = [
        PrivateMean(np.inf, 0.0, (0, 3), norm_bound=3.0, confidence=None).fit(each) for each in rows
    ]
    sums = [len(each) * mean.mean_ for each, mean in zip(rows, means, strict=True)]
    assert np.abs(sums[0] - sums[1]).sum() == pytest.approx(3.0, abs=1e-3)


@pytest.mark.nightly
def test_expected_diagram_has_the_points_of_the_population():
    model = make_pipeline(
        clone(MASS),
        PrivateMean(
            1.0, 0.0, (0, 3), norm_bound=3.0, confidence=None, unit="one cloud", random_state=0
        ),
    )
    X = diagrams(1000)
    mean = model.fit(X)[-1]
    found = MASS.expected_diagram(mean.mean_, mean.noise_)
    exact = MASS.expected_diagram(MASS.fit_transform(X).mean(axis=0))
    # Average number and places of the points of a person.
    assert found[:, 2].sum() == pytest.approx(1.5, abs=0.25)
    assert exact[:, 2].sum() == pytest.approx(1.5, abs=0.05)
    centres = [(d[:, :2] * d[:, 2:]).sum(axis=0) / d[:, 2].sum() for d in (found, exact)]
    assert centres[0] == pytest.approx(centres[1], abs=0.2)
    guarantee = pipeline_guarantee(model)
    assert guarantee.unit == "one cloud" and guarantee.delta == 0 and guarantee.public_parameters


def test_persistence_mass_resolution_follows_from_public_numbers():
    found = [PersistenceMass.resolution_for(n, 1.0) for n in (30, 300, 500, 1000, 10**6)]
    assert found == [4, 6, 8, 12, 12] and PersistenceMass.resolution_for(600, 0.5) == 6


def test_persistence_mass_refuses_wrong_ranges_and_means_of_another_grid():
    with pytest.raises(ValueError, match="least_lifetime=3 must be below upper=2"):
        clone(MASS).set_params(least_lifetime=3.0).fit(diagrams(2))
    refuses("49 entries", MASS.expected_diagram, np.zeros(25))
    assert len(MASS.get_feature_names_out()) == 49
