"""Point clouds to functions on a public grid, or on the simplices of public landmarks.

A filtration is an exact statistic of its cloud, the distance-to-measure or the kernel distance,
and not private. It carries the bounds that a private release of its diagrams pays by: how far one
replaced point, or one replaced person, moves it, and how large it can be.
"""

from sklearn_dptda.filtration._complex import ComplexFiltration, LandmarkComplex
from sklearn_dptda.filtration._dtm import DTMFiltration, distance_to_measure, sensitivity_dtm
from sklearn_dptda.filtration._filtration import GridFiltration
from sklearn_dptda.filtration._kernel import KernelDistanceFiltration, sensitivity_kernel_distance
from sklearn_dptda.filtration._lattice import LatticeHistogram
from sklearn_dptda.filtration._people import PeopleHistogram

__all__ = [
    "ComplexFiltration",
    "DTMFiltration",
    "GridFiltration",
    "KernelDistanceFiltration",
    "LandmarkComplex",
    "LatticeHistogram",
    "PeopleHistogram",
    "distance_to_measure",
    "sensitivity_dtm",
    "sensitivity_kernel_distance",
]
