"""Edge-private graphs and their spectral embeddings.

Pairs of nodes are flipped with a public probability, which travels with the noisy graph. An
embedding takes the bias of the flips off with it.
"""

from sklearn_dptda.graph._embedding import AdjacencySpectralEmbedding
from sklearn_dptda.graph._flip import EdgeFlip, LaplaceFlip
from sklearn_dptda.graph._noisy import NoisyAdjacency, PackedAdjacency
from sklearn_dptda.graph._random_graphs import (
    make_latent,
    make_mixed_membership,
    make_rdpg,
    make_sbm,
)

__all__ = [
    "AdjacencySpectralEmbedding",
    "EdgeFlip",
    "LaplaceFlip",
    "NoisyAdjacency",
    "PackedAdjacency",
    "make_latent",
    "make_mixed_membership",
    "make_rdpg",
    "make_sbm",
]
