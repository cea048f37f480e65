"""Point clouds to functions on a public grid."""

from sklearn_dptda.filtration._dtm import DTMFiltration
from sklearn_dptda.filtration._grid import GridFiltration
from sklearn_dptda.filtration._kernel import KernelDistanceFiltration
from sklearn_dptda.filtration._lattice import LatticeHistogram
from sklearn_dptda.filtration._measure import distance_to_measure
from sklearn_dptda.filtration._sensitivity import (
    cech_worst_case,
    dtm_worst_case,
    dtm_worst_case_loop,
    sensitivity_cech,
    sensitivity_dtm,
    sensitivity_kernel_distance,
)

__all__ = [
    "DTMFiltration",
    "GridFiltration",
    "KernelDistanceFiltration",
    "LatticeHistogram",
    "cech_worst_case",
    "distance_to_measure",
    "dtm_worst_case",
    "dtm_worst_case_loop",
    "sensitivity_cech",
    "sensitivity_dtm",
    "sensitivity_kernel_distance",
]
