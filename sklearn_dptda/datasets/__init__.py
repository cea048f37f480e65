"""Generators and loaders."""

from sklearn_dptda.datasets._circles import make_loops, make_two_circles
from sklearn_dptda.datasets._networks import load_polblogs
from sklearn_dptda.datasets._shapes import make_rings, make_shapes, make_spirals
from sklearn_dptda.datasets._tables import (
    load_magic,
    load_pulsar,
    load_shuttle,
    load_sloan,
    load_usps,
)
from sklearn_dptda.datasets._walkers import load_walkers

__all__ = [
    "load_magic",
    "load_polblogs",
    "load_pulsar",
    "load_shuttle",
    "load_sloan",
    "load_usps",
    "load_walkers",
    "make_loops",
    "make_rings",
    "make_shapes",
    "make_spirals",
    "make_two_circles",
]
