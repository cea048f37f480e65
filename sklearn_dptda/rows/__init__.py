"""The shared foundation of all estimators that learn from the rows of a sensitive table.

It contains the box to which rows are clipped, private intervals for columns without public bounds,
noisy moments and their budget, and the base class that pays before it learns.
"""

from sklearn_dptda.rows._rows import Box

__all__ = ["Box"]
