"""Diagrams in arrays of three columns, as giotto-tda makes them."""

import numpy as np
import pytest
from gudhi.representations import Landscape
from sklearn.pipeline import make_pipeline

from sklearn_dptda import DiagramFeatures
from sklearn_dptda.cluster import DPLloyd
from sklearn_dptda.features import SortedLifetimes
from sklearn_dptda.privacy import PrivacyLeakWarning

LISTS = [
    [np.array([[0.0, 1.0], [0.1, 0.3]]), np.array([[0.2, 0.9]])],
    [np.array([[0.0, 1.0]]), np.empty((0, 2))],
]


def array_of(lists, length=4):
    """Samples padded to one length by points on the diagonal, in giotto's order."""
    rows = []
    for sample in lists:
        points = [(*pair, q) for q, diagram in enumerate(sample) for pair in diagram.tolist()]
        padding = [(0.5, 0.5, (i + 1) % len(sample)) for i in range(length - len(points))]
        rows.append(points + padding)
    return np.array(rows)


@pytest.mark.parametrize("vectorizer", [None, Landscape(1, resolution=5)])
def test_diagram_features_of_a_giotto_array_equal_those_of_lists(vectorizer):
    of_lists = DiagramFeatures(vectorizer, value_range=(0, 1)).fit(LISTS)
    of_array = DiagramFeatures(vectorizer, value_range=(0, 1)).fit(array_of(LISTS))
    expected = of_lists.transform(LISTS)
    np.testing.assert_array_equal(of_array.transform(array_of(LISTS)), expected)
    np.testing.assert_array_equal(of_array.transform(array_of(LISTS, 9)), expected)
    assert of_array.get_feature_names_out().tolist() == of_lists.get_feature_names_out().tolist()


def test_diagram_features_choose_and_keep_dimensions_of_an_array():
    loops = DiagramFeatures(homology_dimensions=[1], value_range=(0, 1)).fit(array_of(LISTS))
    expected = DiagramFeatures(value_range=(0, 1)).fit_transform([each[1:] for each in LISTS])
    np.testing.assert_array_equal(loops.transform(array_of(LISTS)), expected)
    # A dimension that a later array lacks has empty diagrams.
    both = DiagramFeatures(value_range=(0, 1)).fit(array_of(LISTS))
    without = array_of([[LISTS[0][0]]])
    np.testing.assert_array_equal(
        both.transform(without), both.transform([[LISTS[0][0], np.empty((0, 2))]])
    )
    skipped = array_of(LISTS)
    skipped[:, :, 2] *= 2
    assert DiagramFeatures(value_range=(0, 1)).fit(skipped).homology_dimensions_ == (0, 2)


@pytest.mark.parametrize("dimensions", [None, [0, 1]])
def test_diagram_features_tell_private_steps_of_learnt_dimensions(dimensions):
    features = DiagramFeatures(SortedLifetimes(2), dimensions, value_range=(0, 1))
    model = make_pipeline(features, DPLloyd(2, 50.0, bounds=(0, 1), unit="one cloud"))
    array = array_of(LISTS * 5)
    if dimensions is None:
        with pytest.warns(PrivacyLeakWarning, match="DiagramFeatures learnt"):
            model.fit(array)
    else:
        model.fit(array)
    assert model[-1].privacy_guarantee_.public_parameters == (dimensions is not None)


def test_diagram_features_refuse_a_third_column_of_other_numbers():
    with pytest.raises(ValueError, match="homology dimensions in its third column"):
        DiagramFeatures().fit(np.full((2, 3, 3), 0.5))
