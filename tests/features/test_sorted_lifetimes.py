"""Sorted longest lifetimes."""

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_dptda import DiagramFeatures
from sklearn_dptda.features import SortedLifetimes
from tests._refusals import refuses

DIAGRAMS = [np.array([[0.0, 2.0], [0.5, 1.0], [1.0, 1.25]]), np.empty((0, 2)), np.array([[0, 9.0]])]


@pytest.mark.parametrize(("k", "upper"), [(1, None), (2, 0.5), (5, 2.0), (5, None)])
def test_sorted_lifetimes_fall_and_lie_in_the_unit_interval(k, upper):
    made = SortedLifetimes(k, upper=upper).fit_transform(DIAGRAMS)
    assert made.shape == (3, k) and (np.diff(made, axis=1) <= 0).all()
    exact = np.zeros((3, 5))
    exact[0, :3], exact[2, 0] = (2.0, 0.5, 0.25), 9.0
    assert np.array_equal(made, np.clip(exact[:, :k] / (upper or 1.0), 0, 1))


def test_sorted_lifetimes_take_the_width_of_the_value_range():
    made = DiagramFeatures(SortedLifetimes(2), value_range=(0.5, 2.5)).fit(DIAGRAMS)
    # Points are clipped to the range: of (0, 2), only (0.5, 2) is left.
    assert made.transform(DIAGRAMS).tolist() == [[0.75, 0.25], [0, 0], [1, 0]]
    assert made.get_feature_names_out().tolist() == ["H0_sortedlifetimes0", "H0_sortedlifetimes1"]
    given = DiagramFeatures(SortedLifetimes(1, upper=4.0), value_range=(0, 2)).fit(DIAGRAMS)
    assert given.transform(DIAGRAMS).ravel().tolist() == [0.5, 0, 0.5]


def test_sorted_lifetimes_learn_nothing():
    step = SortedLifetimes(2)
    assert vars(step.fit(DIAGRAMS)) == vars(clone(step))


def test_sorted_lifetimes_leave_out_essential_classes():
    diagrams = [np.array([[0.2, np.inf], [0.1, 0.6]]), np.array([[0.0, np.inf]])]
    assert SortedLifetimes(1).fit_transform(diagrams).tolist() == [[0.5], [0.0]]
    features = DiagramFeatures(SortedLifetimes(1), value_range=(0, 2))
    assert features.fit_transform(diagrams).tolist() == [[0.25], [0.0]]


@pytest.mark.parametrize("options", [{"n_lifetimes": 0}, {"upper": 0.0}])
def test_sorted_lifetimes_refuse_the_ends_of_ranges(options):
    refuses(next(iter(options)), SortedLifetimes(**options).fit, DIAGRAMS)


@pytest.mark.parametrize("wrong", [[np.zeros((3, 3))], [np.array([[1.0, 0.0]])], [["a"]], 3])
def test_sorted_lifetimes_refuse_what_is_no_diagram(wrong):
    refuses(None, SortedLifetimes().fit_transform, wrong, error=(ValueError, TypeError))
