"""Generators and loaders."""

from sklearn_dptda.datasets._generators import make_loops, make_two_circles

__all__ = ["make_loops", "make_two_circles"]
