"""Simulated people: series with and without a period, visits of many lengths."""

import numpy as np
import pytest

from sklearn_dptda.datasets import make_series, make_visits


def test_make_series_labels_differ_in_their_period():
    X, y = make_series(400, random_state=0)
    assert X.shape == (400, 300) and set(y) == {0, 1}
    power = np.abs(np.fft.rfft(X)) ** 2
    # Most of the power of a sine is at a single frequency.
    peak = power.max(axis=1) / power.sum(axis=1)
    assert np.median(peak[y == 1]) > 3 * np.median(peak[y == 0])
    # The series have about the same size, so the spread does not separate them.
    spread = X.std(axis=1)
    assert spread[y == 1].mean() == pytest.approx(spread[y == 0].mean(), rel=0.25)
    again, labels = make_series(400, random_state=0)
    assert np.array_equal(X, again) and np.array_equal(y, labels)


@pytest.mark.parametrize("biased", [False, True])
def test_make_visits_has_many_lengths_and_bias(biased):
    X, ids, y = make_visits(3000, biased=biased, random_state=0)
    sizes = np.bincount(ids)
    assert len(sizes) == 3000 and sizes.min() == 1 and sizes.max() == 500
    assert np.median(sizes) <= 3 and (np.diff(ids) >= 0).all()
    assert (np.abs(X) <= 8).all(axis=1).mean() > 0.999
    centres = np.array([X[y == k].mean(axis=0) for k in range(4)])
    assert np.abs(centres) == pytest.approx(np.full((4, 2), 3), abs=0.4)
    # With bias, people with many visits mostly visit the first cluster.
    assert ((y == 0).mean() > 0.5) == biased
    one, people, _ = make_visits(50, max_visits=1, random_state=0)
    assert len(one) == 50 and people.tolist() == list(range(50))
