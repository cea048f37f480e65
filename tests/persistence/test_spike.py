"""The default prior of the number of points."""

import math

import numpy as np
import pytest

from sklearn_dptda.persistence import PrivatePersistence
from sklearn_dptda.persistence._mechanisms import mechanism_of, spike_of_range


def test_spike_of_range_rule():
    def points(loss, n_slots=10):
        return n_slots * (1 - spike_of_range(loss, n_slots))

    assert points(1e-30) == points(39) == pytest.approx(0.02)
    assert points(40) == points(100) == pytest.approx(0.05)
    assert points(159) == pytest.approx(0.05)
    assert points(400) == pytest.approx(1)
    assert points(1000) == points(math.inf) == pytest.approx(2)
    # The mean number of points does not depend on the number of slots.
    assert points(300, 5) == pytest.approx(points(300, 20))


@pytest.mark.laws
@pytest.mark.filterwarnings("ignore:At epsilon")
@pytest.mark.parametrize("epsilon", [0.2, 5.0])
def test_spike_keeps_empty_diagrams_nearly_empty(epsilon):
    # If the exact diagram is empty, a draw has 0.05 points on average. More than 40 in 200 draws
    # have a probability below 1e-6.
    flat = list(np.random.default_rng(0).uniform(0.999, 1, (200, 2, 2)))
    private = PrivatePersistence(
        epsilon, homology_dimensions=1, sensitivity=0.01, upper=1.0, random_state=0
    )
    assert sum(map(len, private.fit_transform(flat))) <= 40
    if epsilon < 0.3:
        assert sum(map(len, private.set_params(spike=0.5).fit_transform(flat))) > 200


def test_spike_depends_on_the_loss_over_the_range_only():
    for scale in (1.0, 1e-6, 1e6):
        private = PrivatePersistence(1.0, sensitivity=0.01 * scale, upper=scale)
        measure = mechanism_of(private, (0, 1)).prepare(0.01 * scale, scale).measure
        odds = measure.count_weights[0] / measure.count_weights[1]
        # At a loss of 100, one slot in 200 is filled.
        assert odds * 10 / measure.staircase(measure.size) == pytest.approx(199)
