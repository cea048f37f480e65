"""Diagrams of functions on grids, compared with GUDHI on complexes of vertices."""

import gudhi
import numpy as np
import pytest

from sklearn_dptda import CubicalPersistence
from sklearn_dptda.persistence import _cubical


def reference(values, q):
    cubical = gudhi.CubicalComplex(vertices=values)
    cubical.compute_persistence()
    diagram = cubical.persistence_intervals_in_dimension(q).reshape(-1, 2)
    return diagram[np.lexsort((diagram[:, 1], diagram[:, 0]))]


@pytest.mark.parametrize(
    ("shape", "ties"),
    [
        ((3, 4), True),
        ((9, 7), False),
        ((20, 21), True),
        ((2, 5), False),
        ((1, 1), False),
        ((12,), True),
        ((5, 4, 6), False),
        ((5, 4, 6), True),
    ],
)
def test_cubical_persistence_equals_diagrams_of_vertices(shape, ties, rng):
    # Diagrams are computed by duality, from pixels.
    values = rng.random(shape)
    if ties:
        values = np.round(values, 1)
    (found,) = CubicalPersistence((0, 1, 2)).fit_transform([values])
    for q in range(3):
        np.testing.assert_array_equal(found[q], reference(values, q))


@pytest.mark.parametrize(
    "shape",
    [
        (2, 2, 2),
        (1, 4, 5),
        (4, 1, 6),
        (5, 1, 1),
        (5, 5, 5),
        pytest.param((3, 130, 3), marks=pytest.mark.laws),
    ],
)
def test_cubical_persistence_of_volumes_is_the_same_without_cripser(shape, rng, monkeypatch):
    pytest.importorskip("cripser")
    volumes = [rng.random(shape), rng.integers(0, 3, shape), -rng.integers(0, 50, shape) / 7]
    volumes += [1 + 1e-12 * rng.integers(0, 2, shape), np.zeros(shape)]
    for values in map(np.asarray, volumes):
        for upper in (None, float(np.quantile(values, 0.7))):
            estimator = CubicalPersistence((0, 1, 2, 3), upper=upper)
            (fast,) = estimator.fit_transform([values])
            with monkeypatch.context() as patch:
                patch.setattr(_cubical, "_ripser", lambda: None)
                (slow,) = estimator.fit_transform([values])
            for q in range(4):
                np.testing.assert_array_equal(fast[q], slow[q])


def test_cubical_persistence_caps_the_essential_class():
    values = np.array([[0.0, 0.3, 2.0], [0.1, 5.0, 2.0], [0.3, 0.2, 0.1]])
    (components,) = CubicalPersistence(0, upper=1.0).fit_transform([values])
    assert components[0].tolist() == [0.0, 1.0]
    assert components[:, 1].max() <= 1.0
