"""GUDHI's tests of the functions that we have too, run through our estimators.

``GUDHI_TESTS`` names the folder ``src/python/test`` of a copy of GUDHI's source, which is not
included here. Where conventions differ, a thin adapter translates them and does nothing else.
"""

import importlib.util
import inspect
import os
from pathlib import Path

import gudhi
import gudhi.hera
import gudhi.representations
import gudhi.sklearn
import numpy as np
import pytest
from gudhi.sklearn.cubical_persistence import CubicalPersistence as TheirPersistence
from sklearn.base import clone

from sklearn_dptda import CubicalPersistence, DiagramFeatures, bottleneck_distance

FOLDER = os.environ.get("GUDHI_TESTS")
# Our errors about malformed diagrams are always ValueErrors.
OTHER_CONVENTIONS = {"test_invalid_format_bottleneck"}
LEAST = {"cubical": 3, "representations": 5, "bottleneck": 5}

needs_gudhi = pytest.mark.skipif(not FOLDER, reason="GUDHI_TESTS names no folder of its tests")


class OnCells:
    """GUDHI's interface: values on cells unless said, points by persistence, precision kept."""

    def __init__(self, homology_dimensions, input_type="top_dimensional_cells", n_jobs=None):
        self.input_type = input_type
        self.ours = CubicalPersistence(homology_dimensions, n_jobs=n_jobs)

    def fit_transform(self, X):
        X = [np.asarray(x) for x in X]
        nodes = [x if self.input_type == "vertices" else cells_as_nodes(x) for x in X]
        kinds = [x.dtype if np.issubdtype(x.dtype, np.floating) else float for x in X]
        diagrams = self.ours.fit_transform(nodes)
        if self.ours.single_:
            return [by_persistence(d, kind) for d, kind in zip(diagrams, kinds, strict=True)]
        return [
            [by_persistence(d, kind) for d in some]
            for some, kind in zip(diagrams, kinds, strict=True)
        ]


def cells_as_nodes(values):
    """Values of all cells of a complex as those of the nodes of its subdivision.

    A face has the least value of the cells around it, so that a part of the complex that is closed
    is subdivided by the nodes that lie in it.
    """
    for axis in range(values.ndim):
        v = np.moveaxis(values, axis, 0)
        wide = np.empty((2 * len(v) + 1, *v.shape[1:]), dtype=v.dtype)
        wide[1::2], wide[0], wide[-1] = v, v[0], v[-1]
        wide[2:-1:2] = np.minimum(v[:-1], v[1:])
        values = np.moveaxis(wide, 0, axis)
    return values


def by_persistence(diagram, kind):
    return diagram[np.argsort(diagram[:, 1] - diagram[:, 0], kind="stable")].astype(kind)


def load(name):
    """A file of GUDHI's tests as a fresh module."""
    path = Path(FOLDER) / name
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_all(module):
    """Run the tests of a module that we share; their number."""
    tests = {
        name: function
        for name, function in vars(module).items()
        if name.startswith("test_") and name not in OTHER_CONVENTIONS
    }
    for function in tests.values():
        assert not inspect.signature(function).parameters
        function()
    return len(tests)


@pytest.mark.parametrize("shape", [(9,), (2, 7), (6, 5), (4, 3, 5)])
def test_cells_as_nodes_gives_the_diagrams_of_cells(shape):
    values = np.random.default_rng(0).random(shape)
    dimensions = list(range(len(shape)))
    for ours, theirs in zip(
        OnCells(dimensions).fit_transform([values])[0],
        TheirPersistence(dimensions).fit_transform([values])[0],
        strict=True,
    ):
        assert np.array_equal(np.sort(ours, axis=0), np.sort(theirs, axis=0))


@needs_gudhi
def test_cubical_persistence_passes_tests_of_gudhi(monkeypatch):
    monkeypatch.setattr(gudhi.sklearn, "CubicalPersistence", OnCells, raising=False)
    module = load("test_sklearn_cubical_persistence.py")
    assert module.CubicalPersistence is OnCells
    np.random.seed(0)  # noqa: NPY002 (what its tests draw from)
    assert run_all(module) >= LEAST["cubical"]


@needs_gudhi
def test_diagram_features_passes_tests_of_gudhi():
    module = load("test_representations_interface.py")
    module.vectorizers = {
        name: DiagramFeatures(clone(vectorizer)) for name, vectorizer in module.vectorizers.items()
    } | {"image": DiagramFeatures(), "range": DiagramFeatures(value_range=(0, 12))}
    assert run_all(module) >= LEAST["representations"]


@needs_gudhi
def test_bottleneck_distance_passes_tests_of_gudhi(monkeypatch):
    # Our function is exact and has no third argument.
    def ours(first, second, e=0):
        return bottleneck_distance(first, second)

    monkeypatch.setattr(gudhi, "bottleneck_distance", ours)
    monkeypatch.setattr(gudhi.hera, "bottleneck_distance", ours)
    assert run_all(load("test_bottleneck_distance.py")) >= LEAST["bottleneck"]
