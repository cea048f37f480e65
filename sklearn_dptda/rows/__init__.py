"""The shared foundation of all estimators that learn from the rows of a sensitive table.

The rows may come in batches, in chunks or in parts on other machines, and one person may have
several rows. This package contains the box to which rows are clipped, private intervals for
columns without public bounds, noisy moments and their budget, and the base class that pays before
it learns.
"""

from sklearn_dptda.rows._rows import Box

__all__ = ["Box"]
