"""Exact diagrams of functions on a grid, by GUDHI and by duality."""

import numpy as np
from gudhi.sklearn.cubical_persistence import CubicalPersistence as GudhiCubicalPersistence
from joblib import parallel_config


def sublevel_diagrams(values, dimensions, upper):
    """Exact persistence diagrams of a function on the nodes of a grid, by birth, then death.

    ``upper`` is the death of the class that never dies, and the cap of all values. Homology of
    dimensions from that of the grid on is empty.
    """
    values = np.minimum(values, upper)
    if values.ndim == 2 and min(values.shape) > 2:
        planar = _planar_diagrams(values)
        diagrams = [planar[q] if q < 2 else np.empty((0, 2)) for q in dimensions]
    else:
        diagrams = _gudhi_diagrams(values, list(dimensions), input_type="vertices")
    return [_capped(np.asarray(diagram).reshape(-1, 2), upper) for diagram in diagrams]


def _planar_diagrams(values):
    """Diagrams of a function on the nodes of a rectangle, by duality.

    Sublevel sets of the nodes are complements of superlevel sets of the dual cells, so by
    Alexander duality the dimensions swap and signs change; GUDHI is 20 times faster on cells. The
    frame of minus infinity closes the outside; its loop is the component that never dies.
    """
    cells = np.pad(-values, 1, constant_values=-np.inf)
    components, loops = _gudhi_diagrams(cells, [0, 1])
    holes = -np.asarray(components)[:, ::-1]
    return [-np.asarray(loops)[:, ::-1], holes[np.isfinite(holes).all(axis=1)]]


def _gudhi_diagrams(values, dimensions, **options):
    gudhi = GudhiCubicalPersistence(dimensions, **options).fit([values])
    # One function is one task, which other backends than threads cannot take from GUDHI.
    with parallel_config(backend="sequential"):
        return gudhi.transform([values])[0]


def _capped(diagram, upper):
    diagram = np.minimum(diagram, upper)
    diagram = diagram[diagram[:, 1] > diagram[:, 0]]
    return diagram[np.lexsort((diagram[:, 1], diagram[:, 0]))]
