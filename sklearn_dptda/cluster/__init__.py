"""Private mixtures and k-means, and clusters of mixtures merged along density saddles."""

from sklearn_dptda.cluster._dp_cube import DPCube
from sklearn_dptda.cluster._dp_lloyd import DPLloyd
from sklearn_dptda.cluster._dp_mog import DPMoG, DPMoGMorse
from sklearn_dptda.cluster._dp_tree import DPTree
from sklearn_dptda.cluster._merge_tree import MergeTree, morse_linkage
from sklearn_dptda.cluster._morse import MorseMerging

__all__ = [
    "DPCube",
    "DPLloyd",
    "DPMoG",
    "DPMoGMorse",
    "DPTree",
    "MergeTree",
    "MorseMerging",
    "morse_linkage",
]
