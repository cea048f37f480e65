"""Filtrations: exact values compared with GUDHI, and times on the lattice by number of points."""

import numpy as np
from gudhi.point_cloud.dtm import DistanceToMeasure

from benchmarks._table import Table
from benchmarks._timing import Ratio, side_by_side
from sklearn_dptda import DTMFiltration, KernelDistanceFiltration
from sklearn_dptda.datasets import make_two_circles

# Points, neighbours, and the target as a fraction of GUDHI's time.
SIZES = (
    (4000, 800, 0.08),
    (1000, 200, 0.08),
    (4000, 40, 0.5),
    (20_000, 20, 0.5),
    (20_000, 1000, 0.08),
)
QUICK_SIZES = ((4000, 800, 0.08), (1000, 20, 0.5))
BOUNDS = (-2.5, 3)
BANDWIDTH = 0.3


def tables(quick):
    """Yield the tables of this benchmark."""
    yield _against_gudhi(quick)
    yield _lattice(quick)
    yield _kernel(quick)


def _against_gudhi(quick):
    sizes, repeats = (QUICK_SIZES, 1) if quick else (SIZES, 9)
    return Table(
        "Exact distance-to-measure, 101 x 101 nodes, against GUDHI",
        ("n", "k", "DTMFiltration, s", "GUDHI, s", "ratio", "largest difference"),
        [_exact_row(*size, repeats) for size in sizes],
        f"Medians (range) of {repeats} calls in turn, with one thread each, no cap on distances, "
        "and the default implementation of GUDHI.",
    )


def _exact_row(n, k, target, repeats):
    X = make_two_circles(n, random_state=0)
    ours = DTMFiltration(m=k / n, bounds=BOUNDS, method="exact", max_distance=np.inf).fit([X])
    nodes = np.stack([m.ravel() for m in np.meshgrid(*ours.axes_, indexing="ij")], axis=1)

    def gudhi():
        return DistanceToMeasure(k, q=1).fit(X).transform(nodes)

    difference = np.abs(ours.transform([X])[0].values.ravel() - gudhi()).max()
    own, peer = side_by_side(lambda: ours.transform([X]), gudhi, repeats=repeats)
    shown = Ratio.of(own, peer).against(target)
    return n, k, f"{own}", f"{peer}", shown, float(difference)


def _lattice(quick):
    n, repeats = (10_000, 1) if quick else (100_000, 5)
    few, many = (make_two_circles(size, random_state=0) for size in (n, 10 * n))
    lattice = DTMFiltration(m=0.2, bounds=BOUNDS, method="lattice").fit([few])
    small, large = side_by_side(
        lambda: lattice.transform([few]), lambda: lattice.transform([many]), repeats=repeats
    )
    return Table(
        "Distance-to-measure on the lattice, m = 0.2: ten times the points",
        ("n", "seconds", "ratio to the first row"),
        [
            (n, f"{small}", ""),
            (10 * n, f"{large}", Ratio.of(large, small).against(2)),
        ],
        f"Medians (range) of {repeats} calls in turn, with the default cap and refinement.",
    )


def _kernel(quick):
    sizes, repeats = ((1000,), 1) if quick else ((1000, 4000, 20_000), 3)
    return Table(
        f"Kernel distance, bandwidth {BANDWIDTH:g}, 101 x 101 nodes: exact against lattice",
        ("n", "exact, s", "lattice, s", "exact / lattice", "largest difference", "stated bound"),
        [_kernel_row(n, repeats) for n in sizes],
        f"Medians (range) of {repeats} calls in turn. The stated bound is the approximation "
        "error that the lattice filtration states.",
    )


def _kernel_row(n, repeats):
    X = make_two_circles(n, random_state=0)
    exact, lattice = (
        KernelDistanceFiltration(BANDWIDTH, bounds=BOUNDS, method=method).fit([X])
        for method in ("exact", "lattice")
    )
    (a,), (b,) = exact.transform([X]), lattice.transform([X])
    slow, fast = side_by_side(
        lambda: exact.transform([X]), lambda: lattice.transform([X]), repeats=repeats
    )
    ratio = Ratio.of(slow, fast)
    difference = float(np.abs(a.values - b.values).max())
    return n, f"{slow}", f"{fast}", ratio, difference, b.approximation_error
