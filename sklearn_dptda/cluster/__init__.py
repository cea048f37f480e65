"""Private mixtures, k-means and density peaks; clusters merged along saddles.

Estimators, in view here, learn from private rows through noisy moments, noisy counts and private
choices; merging along saddles and climbing to peaks are post-processing of what these release.
"""

from sklearn_dptda.cluster._dp_cube import DPCube
from sklearn_dptda.cluster._dp_landmark_tomato import DPLandmarkToMATo
from sklearn_dptda.cluster._dp_lloyd import DPLloyd
from sklearn_dptda.cluster._dp_mog import DPMoG
from sklearn_dptda.cluster._dp_mog_morse import DPMoGMorse
from sklearn_dptda.cluster._dp_tomato import DPToMATo
from sklearn_dptda.cluster._dp_tree import DPTree
from sklearn_dptda.cluster._merge_tree import MergeTree, morse_linkage
from sklearn_dptda.cluster._morse_merging import MorseMerging
from sklearn_dptda.cluster._private_landmarks import PrivateLandmarks
from sklearn_dptda.cluster._tomato import ToMATo

__all__ = [
    "DPCube",
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
