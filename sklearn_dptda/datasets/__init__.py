"""Simulated point clouds, and published data sets with public bounds.

Generators draw point clouds of a known shape. Loaders read files that are not part of the package.
If a file is missing, the error message says where to get it.
"""

from sklearn_dptda.datasets._published_data import load_polblogs, load_table
from sklearn_dptda.datasets._simulated import (
    make_loops,
    make_rings,
    make_series,
    make_shapes,
    make_spirals,
    make_two_circles,
    make_visits,
)
from sklearn_dptda.datasets._walkers import load_walkers

__all__ = [
    "load_polblogs",
    "load_table",
    "load_walkers",
    "make_loops",
    "make_rings",
    "make_series",
    "make_shapes",
    "make_spirals",
    "make_two_circles",
    "make_visits",
]
