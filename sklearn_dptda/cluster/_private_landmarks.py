"""Landmarks along the ridges of a private mixture.

Proof: doc/theory/landmarks.md, "Private landmarks".
"""

import math
from dataclasses import replace
from numbers import Integral

import numpy as np
from scipy.spatial import KDTree
from sklearn.mixture import GaussianMixture

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import Adjacency, FloatArray, RandomStateLike, RowBounds
from sklearn_dptda.cluster._dp_mog import DPMoG, given_mixture
from sklearn_dptda.cluster._mixture_density import MixtureDensity, mixture_parameters
from sklearn_dptda.privacy import PrivacyAccountant
from sklearn_dptda.rows._moments import FitBudget
from sklearn_dptda.rows._rows import Box, Rows
from sklearn_dptda.utils._distances import farthest_first
from sklearn_dptda.utils._sklearn import Interval

# Accuracy only: the rows are drawn from a released mixture.
# Number of rows that are drawn from the mixture; the share of them that are the nearest ones of
# each; and how often each row is moved to their mean. In many columns noise fills a shell around
# the ridges of the mixture, and these moves lead from the shell to the ridges.
N_DRAWN, _NEAREST, _N_MOVES = 4000, 0.03, 2
# Largest number of landmarks whose distances fit into a few megabytes.
MOST_LANDMARKS = 1000


@fill_doc
class PrivateLandmarks(DPMoG):
    """Landmarks along the ridges of a private Gaussian mixture.

    The estimator draws rows from the mixture, and moves each of them twice to the
    mean of its nearest ones, which removes the noise of many columns. The landmarks
    are moved rows that are far from each other.

    Parameters
    ----------
    n_landmarks : int, default=40
        Number of landmarks, from 2 to 1,000. It is public.
    %(epsilon)s
    %(gaussian_delta)s
    %(row_bounds)s
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Which tables count as neighbours. ``"replace-one"`` (bounded): one row is
        replaced, and the number of rows is public; filtrations take this one.
        ``"add-remove"`` (unbounded): one row is added or removed.
    %(row_groups)s
    dimension : int, default=2
        Dimension of the largest simplices on the landmarks, from 1 to 3, if a
        :class:`~sklearn_dptda.DTMFiltration` takes these landmarks. Its diagrams
        have the dimensions below this one.
    %(fit_accountant_and_random_state)s

    Attributes
    ----------
    landmarks_ : ndarray of shape (n_landmarks, n_features)
        Private landmarks, in the units of the columns.
    reach_ : float
        Largest distance from the nearest landmark, of 4,000 rows that are drawn
        from the mixture.
    %(landmark_components)s
    %(noise_of_components)s
    %(bounds_of_rows)s
    %(fit_guarantee_and_columns)s

    See Also
    --------
    sklearn_dptda.DTMFiltration : Takes this estimator as its ``landmarks``.
    sklearn_dptda.preprocessing.PrivateBounds : A private box for a grid.

    Notes
    -----
    .. rubric:: Privacy

    One fit releases bounds and a Gaussian mixture, as :class:`DPMoG` does. It is
    (``epsilon``, ``delta``)-differentially private for replacing one row (a point
    of a cloud, if a filtration fits it to clouds), or for adding or removing one.
    What you compute from the same records at the landmarks spends a budget of its
    own, and both losses add up.
    %(privacy_of_groups)s

    Examples
    --------
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> from sklearn_dptda.cluster import PrivateLandmarks
    >>> X = make_two_circles(4000, random_state=0)
    >>> PrivateLandmarks(30, random_state=0).fit(X).landmarks_.shape
    (30, 2)
    """

    _parameter_constraints = {
        **DPMoG._parameter_constraints,
        "n_landmarks": [Interval(Integral, 2, MOST_LANDMARKS, closed="both")],
        "dimension": [Interval(Integral, 1, 3, closed="both")],
    }
    # The covariances of the mixture and the units of columns, which are not parameters here.
    covariance_type, units = "auto", "columns"

    _adapts_to_columns = False

    def __init__(
        self,
        n_landmarks: int = 40,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: RowBounds | None = None,
        *,
        adjacency: Adjacency = "replace-one",
        groups: str | None = None,
        unit: str = "one row",
        dimension: int = 2,
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.n_landmarks = n_landmarks
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.adjacency = adjacency
        self.groups = groups
        self.unit = unit
        self.dimension = dimension
        self.accountant = accountant
        self.random_state = random_state

    def _n_start(self) -> int | None:
        return None

    def _learn(self, rows: Rows, budget: FitBudget, rng: np.random.Generator, box: Box) -> None:
        # Landmarks are compared in the sides of the box, and the mixture in the same units.
        super()._learn(rows, budget, rng, replace(box, spreads=None))
        drawn, _ = self._sampler(rng).sample(N_DRAWN)
        self.landmarks_ = self._landmarks_among(drawn, box)
        self.reach_ = float(distances_to(self.landmarks_, drawn).max())

    def _sampler(self, rng: np.random.Generator) -> GaussianMixture:
        """The mixture during a fit, as an object that draws rows."""
        density = MixtureDensity(*mixture_parameters(self))
        return given_mixture(density, int(rng.integers(2**32)))

    def _landmarks_among(self, drawn: FloatArray, box: Box) -> FloatArray:
        """Landmarks chosen among rows that are drawn from the mixture."""
        return on_ridges(drawn, int(self.n_landmarks))


def on_ridges(rows: FloatArray, n_landmarks: int) -> FloatArray:
    """Move rows towards the rows near them, and choose some that are far from each other."""
    nearest = math.ceil(_NEAREST * len(rows))
    for _ in range(_N_MOVES):
        _, places = KDTree(rows).query(rows, nearest)
        rows = rows[places].reshape(len(rows), -1, rows.shape[1]).mean(axis=1)
    moved = rows
    far, _ = farthest_first(lambda i: ((moved - moved[i]) ** 2).sum(axis=1), n_landmarks)
    return moved[far]


def distances_to(landmarks: FloatArray, points: FloatArray) -> FloatArray:
    """Distance of each point from the nearest landmark."""
    return KDTree(landmarks).query(points)[0]
