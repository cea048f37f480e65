"""Private mixtures, and clusters of mixtures merged along density saddles."""

from sklearn_dptda.cluster._dp_mog import DPMoG, DPMoGMorse
from sklearn_dptda.cluster._merge_tree import MergeTree, morse_linkage
from sklearn_dptda.cluster._morse import MorseMerging

__all__ = ["DPMoG", "DPMoGMorse", "MergeTree", "MorseMerging", "morse_linkage"]
