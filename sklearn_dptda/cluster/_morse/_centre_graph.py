"""Centres of a mixture and transition points between them: the graph of quadratic strings."""

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree

from sklearn_dptda.cluster._morse._mixture_density import MixtureDensity
from sklearn_dptda.cluster._morse._quadratic_strings import centres_reached, transitions

# Standard deviations around centres that the cube holds.
_AROUND = 2.0


class CentreGraph:
    """Centres, the densest first, and the lowest transition point found between each two.

    Its attributes are those of ``BarrierGraph``: ``modes`` are centres, and ``owners`` has the one
    of each component. ``heights`` are infinite and ``places`` missing between centres without a
    transition point.
    """

    def __init__(self, density):
        self.n_known = n = density.n_components
        heights = density.height(density.means)
        order = np.argsort(heights, kind="stable")
        self.owners, self.modes = np.argsort(order), density.means[order]
        self.heights = np.full((n, n), np.inf)
        self.places = np.full((n, n, density.n_features), np.nan)
        np.fill_diagonal(self.heights, heights[order])
        middle, half = _cube(density)
        pairs, places = transitions(_scaled(density, middle, half))
        places = middle + half * places
        for edge, place, height in zip(
            self.owners[pairs], places, density.height(places), strict=True
        ):
            for i, j in (edge, edge[::-1]):
                if height < self.heights[i, j]:
                    self.heights[i, j], self.places[i, j] = height, place

    def edges(self):
        """Single linkage, Algorithm 4: pairs without a transition point last, densest first."""
        pairs = np.array(np.triu_indices(self.n_known, 1))
        order = np.argsort(self.heights[tuple(pairs)], kind="stable")
        ranks = np.zeros((self.n_known, self.n_known))
        # Zero means no edge to SciPy.
        ranks[tuple(pairs[:, order])] = 1 + np.arange(len(order))
        tree = minimum_spanning_tree(ranks).tocoo()
        return sorted((int(i), int(j)) for i, j in zip(tree.row, tree.col, strict=True))


def centres_climbed_to(density, X):
    """Index of the centre nearest to the mode of each row, in the cube."""
    middle, half = _cube(density)
    return centres_reached(_scaled(density, middle, half), (X - middle) / half)


def _cube(density):
    """Middle and half widths of the box that holds all centres and two deviations around them.

    It stands for the cube that the paper scales its rows to, which a mixture does not know.
    """
    around = _AROUND * np.sqrt(np.einsum("kii->ki", density.covariances))
    low, high = (density.means - around).min(axis=0), (density.means + around).max(axis=0)
    return (low + high) / 2, (high - low) / 2


def _scaled(density, middle, half):
    means = (density.means - middle) / half
    return MixtureDensity(density.weights, means, density.covariances / np.outer(half, half))
