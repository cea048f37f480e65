"""A private classifier: rows are protected together with their labels.

Rows may be features of clouds, of which each is one person.
"""

from sklearn_dptda.discriminant_analysis._dp_lda import DPLinearDiscriminantAnalysis

__all__ = ["DPLinearDiscriminantAnalysis"]
