"""Generators and loaders."""

from sklearn_dptda.datasets._generators import make_loops, make_two_circles
from sklearn_dptda.datasets._walkers import load_walkers

__all__ = ["load_walkers", "make_loops", "make_two_circles"]
