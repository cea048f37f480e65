"""Clusters of private rows: k-means, Gaussian mixtures, and clusters of any shape.

The estimators whose names begin with ``DP``, and :class:`PrivateLandmarks`, learn from private rows
by noisy moments, noisy counts and private choices. Merging components along saddles and climbing to
peaks are post-processing of these releases. :class:`MorseMerging`, :class:`ToMATo` and
:func:`morse_linkage` also work without privacy.
"""

from sklearn_dptda.cluster._dp_landmark_tomato import DPLandmarkToMATo
from sklearn_dptda.cluster._dp_mog import DPMoG
from sklearn_dptda.cluster._dp_tomato import DPToMATo
from sklearn_dptda.cluster._dp_tree import DPTree
from sklearn_dptda.cluster._merge_tree import MergeTree, morse_linkage
from sklearn_dptda.cluster._morse_merging import DPMoGMorse, MorseMerging
from sklearn_dptda.cluster._private_kmeans import DPLloyd
from sklearn_dptda.cluster._private_landmarks import PrivateLandmarks
from sklearn_dptda.cluster._tomato import ToMATo

__all__ = [
    "DPLandmarkToMATo",
    "DPLloyd",
    "DPMoG",
    "DPMoGMorse",
    "DPToMATo",
    "DPTree",
    "MergeTree",
    "MorseMerging",
    "PrivateLandmarks",
    "ToMATo",
    "morse_linkage",
]
