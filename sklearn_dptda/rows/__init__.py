"""Rows of sensitive tables: in batches, in chunks, in parts elsewhere, several to a person.

Whatever learns from private rows stands on this room: the box that rows are clipped to, private
intervals where no bounds are public, noisy moments and their budget, and the base class that pays
before it learns.
"""

from sklearn_dptda.rows._rows import Box

__all__ = ["Box"]
