"""Point clouds to functions on a public grid.

A filtration is an exact statistic of its cloud, the distance-to-measure or the kernel distance,
and not private. It carries the bounds that a private release of its diagrams pays by: how far one
replaced point moves it, and how large it can be.
"""

from sklearn_dptda.filtration._distance_to_measure import distance_to_measure
from sklearn_dptda.filtration._dtm import DTMFiltration
from sklearn_dptda.filtration._grid_filtration import GridFiltration
from sklearn_dptda.filtration._kernel import KernelDistanceFiltration
from sklearn_dptda.filtration._lattice import LatticeHistogram
from sklearn_dptda.filtration._sensitivities import (
    sensitivity_cech,
    sensitivity_dtm,
    sensitivity_kernel_distance,
)

__all__ = [
    "DTMFiltration",
    "GridFiltration",
    "KernelDistanceFiltration",
    "LatticeHistogram",
    "distance_to_measure",
    "sensitivity_cech",
    "sensitivity_dtm",
    "sensitivity_kernel_distance",
]
