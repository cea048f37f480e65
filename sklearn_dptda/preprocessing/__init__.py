"""Private bounds of rows and clouds, for data whose bounds you do not know.

The estimator also releases the share of the rows that lie beyond them.
"""

from sklearn_dptda.preprocessing._private_bounds import PrivateBounds

__all__ = ["PrivateBounds"]
