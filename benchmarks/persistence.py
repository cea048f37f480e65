"""Persistent homology of grids: exact diagrams compared with GUDHI, and the cost of privacy."""

from importlib.util import find_spec

import gudhi
import numpy as np

from benchmarks._table import Table
from benchmarks._timing import Ratio, side_by_side
from sklearn_dptda import CubicalPersistence, DTMFiltration, PrivatePersistence
from sklearn_dptda.datasets import make_two_circles

# Number of coordinates, number of nodes per axis.
GRIDS = ((2, 101), (2, 301), (2, 601), (3, 41), (3, 81))
QUICK_GRIDS = ((2, 51), (3, 15))


def tables(quick):
    """Yield the table of this benchmark."""
    repeats = 1 if quick else 9
    yield Table(
        "Diagrams of a distance-to-measure, all dimensions below the grid's",
        (
            "grid",
            "CubicalPersistence, s",
            "GUDHI by vertices, s",
            "ratio",
            "largest difference",
            "PrivatePersistence, secure, s",
        ),
        [_row(d, side, repeats) for d, side in (QUICK_GRIDS if quick else GRIDS)],
        f"Medians (range) of {repeats} calls in turn, with one thread each. GUDHI's complex takes "
        "values on vertices, and ours uses the dual complex in the plane. The private release "
        "(epsilon = 1) includes the exact diagrams. Diagrams in space are computed by "
        f"{'cripser, which is optional' if find_spec('cripser') else 'GUDHI, without cripser'}.",
    )


def _row(d, side, repeats):
    X = make_two_circles(2000, random_state=0)
    if d == 3:
        X = np.column_stack([X, np.random.default_rng(0).normal(0, 0.3, len(X))])
    (filtration,) = DTMFiltration(0.1, bounds=(-2.5, 3), resolution=side).fit_transform([X])
    dimensions = tuple(range(d))
    ours, private = CubicalPersistence(dimensions), PrivatePersistence(1.0, dimensions)

    def peer():
        cells = gudhi.CubicalComplex(vertices=filtration.values)
        cells.compute_persistence(homology_coeff_field=2)
        return [cells.persistence_intervals_in_dimension(q) for q in dimensions]

    difference = max(
        _difference(a, b, filtration.upper)
        for a, b in zip(ours.fit_transform([filtration])[0], peer(), strict=True)
    )
    times = side_by_side(
        lambda: ours.fit_transform([filtration]),
        peer,
        lambda: private.fit_transform([filtration]),
        repeats=repeats,
    )
    ratio = Ratio.of(times[0], times[1])
    return (
        " x ".join([str(side)] * d),
        f"{times[0]}",
        f"{times[1]}",
        ratio.against(0.5 if d == 3 else 1.0),
        difference,
        f"{times[2]}",
    )


def _difference(own, peer, upper):
    """Largest difference of coordinates after sorting; the numbers of points must be equal."""
    peer = np.minimum(peer.reshape(-1, 2), upper)
    peer = peer[peer[:, 1] > peer[:, 0]]
    own, peer = (a[np.lexsort(a.T)] for a in (own, peer))
    return float(np.abs(own - peer).max(initial=0.0)) if own.shape == peer.shape else np.inf
