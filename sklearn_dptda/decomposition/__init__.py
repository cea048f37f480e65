"""Private principal components, to project tables of many columns on a few directions.

Projected rows are still private. What learns from them spends a privacy budget of its own.
"""

from sklearn_dptda.decomposition._private_pca import PrivatePCA

__all__ = ["PrivatePCA"]
