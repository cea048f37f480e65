"""Features of diagrams by vectorizers of GUDHI and of ours."""

import pickle
import warnings

import gudhi.representations as representations
import numpy as np
import pytest
from gudhi.representations import Landscape
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline

from sklearn_dptda import CubicalPersistence, DiagramFeatures
from sklearn_dptda.cluster import DPLloyd
from sklearn_dptda.features import PersistenceMass, SortedLifetimes
from sklearn_dptda.privacy import PrivacyLeakWarning
from tests._refusals import by_name, refusals

SAMPLES = [
    [np.array([[0, 1.0], [0.1, 0.5]]), np.empty((0, 2))],
    [np.array([[0, np.inf]]), np.array([[0.2, 0.9]])],
    [np.empty((0, 2)), np.empty((0, 2))],
]
# This class is newer than the oldest supported GUDHI.
LENGTHS = hasattr(representations, "PersistenceLengths")
VECTORIZERS = [
    None,
    representations.PersistenceImage(),
    representations.Landscape(),
    representations.Silhouette(),
    representations.BettiCurve(),
    representations.Entropy(),
    representations.Entropy(mode="vector"),
    representations.TopologicalVector(),
    representations.ComplexPolynomial(),
    *([representations.PersistenceLengths()] if LENGTHS else []),
    representations.Atol(quantiser=KMeans(n_clusters=2, n_init=1, random_state=0)),
]


@pytest.mark.parametrize(
    ("vectorizer", "value_range"),
    [(vectorizer, (None, (0, 2))[i % 2]) for i, vectorizer in enumerate(VECTORIZERS)],
    ids=lambda value: type(value).__name__,
)
def test_diagram_features_work_with_every_vectorizer(vectorizer, value_range):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        features = DiagramFeatures(vectorizer, value_range=value_range).fit(SAMPLES)
        matrix = features.transform(SAMPLES)
    assert np.isfinite(matrix).all() and matrix.dtype == float
    assert matrix.shape == (3, len(features.get_feature_names_out()))
    again = pickle.loads(pickle.dumps(features)).transform(SAMPLES)
    np.testing.assert_array_equal(again, matrix)


def test_diagram_features_of_a_public_range_do_not_depend_on_the_fit():
    a = DiagramFeatures(representations.Landscape(), value_range=(0, 2)).fit(SAMPLES)
    b = DiagramFeatures(representations.Landscape(), value_range=(0, 2)).fit(SAMPLES[1:])
    np.testing.assert_array_equal(a.transform(SAMPLES), b.transform(SAMPLES))


def test_diagram_features_landscape_of_one_point():
    features = DiagramFeatures(
        representations.Landscape(1, resolution=5, keep_endpoints=True), value_range=(0, 2)
    )
    matrix = features.fit_transform([np.array([[0.0, 2.0]])])
    np.testing.assert_allclose(matrix, np.sqrt(2) * np.array([[0, 0.5, 1, 0.5, 0]]))
    assert features.get_feature_names_out()[0] == "H0_landscape0"


def test_diagram_features_of_single_diagrams_have_names():
    features = DiagramFeatures(representations.TopologicalVector(2), homology_dimensions=1)
    assert features.fit_transform([s[0] for s in SAMPLES]).shape == (3, 2)
    assert list(features.get_feature_names_out()) == [
        "H1_topologicalvector0",
        "H1_topologicalvector1",
    ]


# tests/test_refusals.py tries values of a wrong kind.
REFUSED = {
    "ranges": (
        lambda **options: DiagramFeatures(**options).fit(SAMPLES),
        by_name(value_range=[(1, 0), (1,)], homology_dimensions=[(0,), (0, -1)]),
    ),
    "diagrams": (
        lambda X: DiagramFeatures().fit(X),
        [
            ("NaN", [np.array([[0, np.nan]])]),
            ("homology dimensions in its third column", np.full((2, 3, 3), 0.5)),
        ],
    ),
    "fewer diagrams": (
        lambda X: DiagramFeatures().fit(SAMPLES).transform(X),
        [("must have 2", [SAMPLES[0][:1]])],
    ),
    "sorted lifetimes": (
        lambda **options: SortedLifetimes(**options).fit(SAMPLES),
        by_name(n_lifetimes=[0], upper=[0.0]),
    ),
    "no diagrams": (
        lambda X: SortedLifetimes().fit_transform(X),
        [(None, [np.zeros((3, 3))], [np.array([[1.0, 0.0]])], [["a"]], 3)],
        (ValueError, TypeError),
    ),
}


@refusals(REFUSED)
def test_features_of_diagrams_refuse_by_name(refuse):
    refuse()


@pytest.mark.parametrize(
    "transformer",
    [
        PersistenceMass(),
        SortedLifetimes(2),
        DiagramFeatures(value_range=(0, 1)),
        DiagramFeatures(representations.Landscape(), value_range=(0, 1)),
        CubicalPersistence(),
    ],
)
def test_features_of_extreme_diagrams_do_not_warn(transformer):
    # A warning of NumPy would reveal the record without noise.
    X = [np.array([[-1.5e308, 1.5e308], [-1e308, 5e-324]]), np.array([[0.0, 1.7e308]])]
    if isinstance(transformer, CubicalPersistence):
        X = [np.array([[-1.5e308, 1.5e308], [5e-324, 0.0]]), np.full((3, 3), 1e308)]
    with warnings.catch_warnings(action="error"):
        assert len(transformer.fit(X).transform(X)) == 2


# Arrays of giotto-tda.


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


# Sorted lifetimes.


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
