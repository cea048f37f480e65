"""Synthetic tables: a private measure of the rows, from which new rows are drawn.

Tables may have numbers, integers, truth values and categories. Counts of boxes, and of columns
within classes, are noisy; everything that is drawn from them is post-processing.
"""

from sklearn_dptda.synthetic._private_measure import PrivateMeasure

__all__ = ["PrivateMeasure"]
