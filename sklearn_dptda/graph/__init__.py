"""Edge-private graphs, their spectral embeddings, and random graphs.

The mechanisms flip each pair of nodes with a public probability, which is stored with the noisy
graph. An embedding uses this probability to remove the bias that the flips cause.
"""

from sklearn_dptda.graph._adjacency import NoisyAdjacency, PackedAdjacency
from sklearn_dptda.graph._embedding import AdjacencySpectralEmbedding
from sklearn_dptda.graph._flip import EdgeFlip, LaplaceFlip
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
