"""Functions of point clouds on a public grid or on the simplices of public landmarks.

A filtration is an exact statistic of its point cloud and is not private. It carries the public
numbers that a private release of its diagrams needs: how far replacing one point, or all points of
one person, can move the function, and how large the function can be.
"""

from sklearn_dptda.filtration._cloud import LatticeHistogram
from sklearn_dptda.filtration._complex import ComplexFiltration, LandmarkComplex
from sklearn_dptda.filtration._dtm import DTMFiltration, distance_to_measure, sensitivity_dtm
from sklearn_dptda.filtration._estimator import reuse_functions
from sklearn_dptda.filtration._filtration import GridFiltration
from sklearn_dptda.filtration._kernel import KernelDistanceFiltration, sensitivity_kernel_distance
from sklearn_dptda.filtration._private_cloud import PrivateCloud
from sklearn_dptda.filtration._released_cloud import ReleasedCloud

__all__ = [
    "ComplexFiltration",
    "DTMFiltration",
    "GridFiltration",
    "KernelDistanceFiltration",
    "LandmarkComplex",
    "LatticeHistogram",
    "PrivateCloud",
    "ReleasedCloud",
    "distance_to_measure",
    "reuse_functions",
    "sensitivity_dtm",
    "sensitivity_kernel_distance",
]
