"""Private principal components, to project tables of many columns on a few directions.

Projected rows are still private rows, in fewer columns. Estimators of clusters, diagrams and
histograms can take them, and spend a privacy budget of their own.
"""

from sklearn_dptda.decomposition._private_pca import PrivatePCA

__all__ = ["PrivatePCA"]
