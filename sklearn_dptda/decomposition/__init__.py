"""Private directions that tables of any width are projected on.

Rows on private directions are private rows as before, in a few columns: clusters, diagrams and
histograms then see them, and pay for it.
"""

from sklearn_dptda.decomposition._private_pca import PrivatePCA

__all__ = ["PrivatePCA"]
