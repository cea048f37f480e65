"""A private classifier, which protects each row together with its label.

The rows can also be features of clouds, with one cloud for each person.
"""

from sklearn_dptda.discriminant_analysis._dp_lda import DPLinearDiscriminantAnalysis

__all__ = ["DPLinearDiscriminantAnalysis"]
