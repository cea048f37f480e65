"""Simulated shapes and published data sets, the latter with public bounds.

Generators draw clouds of a known shape; loaders read files that are not shipped, and say where
they are to be had.
"""

from sklearn_dptda.datasets._networks import load_polblogs
from sklearn_dptda.datasets._people import make_series, make_visits
from sklearn_dptda.datasets._shapes import (
    make_loops,
    make_rings,
    make_shapes,
    make_spirals,
    make_two_circles,
)
from sklearn_dptda.datasets._tables import load_table
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
