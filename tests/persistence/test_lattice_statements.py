"""Statements of profiles and counts about clouds whose points were moved to a lattice."""

import numpy as np
import pytest

from sklearn_dptda import DTMFiltration, PersistenceProfile, PrivateBettiNumbers
from sklearn_dptda.persistence import CubicalPersistence


@pytest.fixture(scope="module")
def two_groups():
    """Two groups whose distance a coarse lattice misjudges, and its exact persistence."""
    rng = np.random.default_rng(0)
    places = rng.permutation(np.repeat([[0.3, 0.5], [0.7, 0.5]], 10_000, axis=0))
    cloud = places + 0.004 * rng.standard_normal((20_000, 2))
    box = {"m": 0.1, "bounds": (0, 1), "resolution": 12}
    exact = DTMFiltration(**box, method="exact").fit_transform([cloud])
    coarse = DTMFiltration(**box, method="lattice", refinement=1).fit_transform([cloud])
    lives = np.sort(np.ptp(CubicalPersistence(0).fit_transform(exact)[0], axis=1))
    return coarse, lives[-2], coarse[0].approximation_error


def test_confidence_intervals_on_a_lattice_hold_for_the_cloud(two_groups):
    coarse, exact, off = two_groups
    profile = PersistenceProfile(20.0, n_longest=1, homology_dimensions=0, random_state=0)
    with pytest.warns(UserWarning, match="moved to a lattice"):
        released = profile.fit(coarse).transform(coarse)
    (low, high), *_ = profile.confidence_intervals(released)[0]
    assert low <= exact <= high and profile.half_widths_[0] > 2 * off
    # The statement about the lattice alone.
    assert abs(released[0, 0] - exact) > profile.half_widths_[0] - 2 * off


@pytest.mark.parametrize("threshold", [0.15, None])
def test_margins_of_counts_on_a_lattice_hold_for_the_cloud(two_groups, threshold):
    coarse, exact, off = two_groups
    counts = PrivateBettiNumbers(20.0, threshold, homology_dimensions=0, random_state=0)
    with pytest.warns(UserWarning, match="moved to a lattice"):
        released = counts.fit(coarse).transform(coarse)
    assert released[0, 0] == 2 and counts.margins_[0] > 2 * off
    if threshold is not None:
        assert exact < threshold and threshold - counts.margins_[0] < exact
    else:
        assert exact > counts.thresholds_[0] - counts.release_margins_[0]
