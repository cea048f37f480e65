"""Features of diagrams by vectorizers of GUDHI and of ours."""

import pickle
import warnings

import gudhi.representations as representations
import numpy as np
import pytest
from sklearn.cluster import KMeans

from sklearn_dptda import CubicalPersistence, DiagramFeatures
from sklearn_dptda.features import PersistenceMass, SortedLifetimes
from tests._refusals import refuses

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
@pytest.mark.parametrize(
    "options",
    [
        {"value_range": (1, 0)},
        {"value_range": (1,)},
        {"homology_dimensions": (0,)},
        {"homology_dimensions": (0, -1)},
    ],
)
def test_diagram_features_refuse_bad_ranges(options):
    refuses(next(iter(options)), DiagramFeatures(**options).fit, SAMPLES)


def test_diagram_features_refuse_bad_diagrams():
    refuses("NaN", DiagramFeatures().fit, [np.array([[0, np.nan]])])
    refuses("must have 2", DiagramFeatures().fit(SAMPLES).transform, [SAMPLES[0][:1]])


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
