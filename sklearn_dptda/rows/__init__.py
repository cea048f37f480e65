"""A look at a table, and the shared foundation of all estimators that learn from its rows.

The foundation contains the box to which rows are clipped, private intervals for columns without
public bounds, noisy moments and their budget, and the base class that pays before it learns.
"""

from sklearn_dptda.rows._look import look

__all__ = ["look"]
