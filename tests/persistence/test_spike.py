"""The default prior of the number of points."""

import math

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


def test_spike_depends_on_the_loss_over_the_range_only():
    for scale in (1.0, 1e-6, 1e6):
        private = PrivatePersistence(1.0, sensitivity=0.01 * scale, upper=scale)
        measure = mechanism_of(private, (0, 1)).prepare(0.01 * scale, scale).measure
        odds = measure.count_weights[0] / measure.count_weights[1]
        # At a loss of 100, one slot in 200 is filled.
        assert odds * 10 / measure.staircase(measure.size) == pytest.approx(199)
        given = mechanism_of(private.set_params(spike=0.5), (0, 1)).prepare(0.01 * scale, scale)
        odds = given.measure.count_weights[0] / given.measure.count_weights[1]
        assert odds * 10 / measure.staircase(measure.size) == pytest.approx(1)
