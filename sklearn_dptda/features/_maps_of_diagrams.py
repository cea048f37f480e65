"""Maps of each diagram to numbers, which learn nothing: their base, mass on a grid, and lifetimes.

The mean of vectors of mass gives an expected diagram. Sorted lifetimes are few features with a
public range.

Proof: doc/theory/populations.md, "The expected persistence diagram".
Proof: doc/theory/people.md, "Maps of one record".
"""

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Self

import numpy as np
from gudhi.representations import PersistenceLengths
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.privacy._estimator import plain_arithmetic
from sklearn_dptda.privacy._parameters import QuotedParametersMixin
from sklearn_dptda.utils._distances import as_diagram
from sklearn_dptda.utils._sklearn import Interval, ListInputMixin, _fit_context
from sklearn_dptda.utils._validation import check_collection, refuse_dask

# The recommended resolution is the largest of these whose number of nodes is at most this share of
# the number of people, times epsilon.
_NODES_FOR_EACH = 0.2
_RESOLUTIONS = (4, 6, 8, 12)
# Masses below this share of the typical maximum of Laplace noise over all nodes are left out.
_SEEN = 0.75


class MapOfDiagrams(ListInputMixin, QuotedParametersMixin, TransformerMixin, BaseEstimator):
    """Base class of transformers of diagrams that learn nothing."""

    @_fit_context(prefer_skip_nested_validation=True)
    @plain_arithmetic()
    def fit(self, X: Iterable[ArrayLike], y: object = None) -> Self:
        """Check the parameters and the input. Nothing is learnt from it.

        Parameters
        ----------
        X : list of array-like of shape (n, 2)
            Diagrams: births and deaths.
        y : Ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        read_diagrams(X)
        return self

    def _check_parameters(self) -> None:
        """Raise an error if parameters are incompatible."""

    def _learns_records(self) -> bool:
        return False

    def __sklearn_tags__(self) -> Tags:
        """Describe the input, and declare that no fit is required."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


def read_diagrams(X: Iterable[ArrayLike]) -> list[FloatArray]:
    """Return the diagrams of a list after checking them."""
    refuse_dask(X)
    diagrams = [as_diagram(diagram, f"X[{i}]") for i, diagram in enumerate(check_collection(X))]
    if any((diagram[:, 1] < diagram[:, 0]).any() for diagram in diagrams):
        raise ValueError(
            "X has points whose death precedes their birth, which diagrams cannot have."
        )
    return diagrams


class PersistenceMass(MapOfDiagrams):
    """Distribute the persistence of each diagram over a grid of births and lifetimes.

    The sum of a row is the total persistence of its diagram. The mean of the rows of many
    people, divided by the lifetimes of the nodes, is their expected persistence diagram.
    Because points are weighted by their persistence, the privacy noise is the same for all
    nodes.

    Parameters
    ----------
    upper : float, default=1.0
        Public cap, in the units of the diagrams. Births and lifetimes are clipped to it, and
        negative births to zero.
    least_lifetime : float, default=0.1
        Public lower limit of lifetimes, in the units of the diagrams. Shorter features are
        ignored.
    resolution : int, default=6
        Number of steps of the grid along each axis, from 1 to 1000. More steps give more
        features and therefore more privacy noise in total. :meth:`resolution_for` recommends
        a value.

    See Also
    --------
    sklearn_dptda.population.PrivateMean : Releases the mean of the rows.

    Notes
    -----
    .. rubric:: Privacy

    There is no privacy guarantee, but nothing is learnt, and each diagram is transformed
    independently. If ``PrivateMean(delta=0, bounds=(0, M), norm_bound=M, confidence=None)``
    is the next step, where ``M`` is a public bound of the total persistence of a person, it
    protects whole diagrams.

    References
    ----------
    V. Divol, T. Lacombe, "Estimation and quantization of expected persistence diagrams",
    ICML 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda.features import PersistenceMass
    >>> diagrams = [np.array([[0.0, 0.5], [0.2, 0.25]])]
    >>> mass = PersistenceMass(upper=1.0, least_lifetime=0.1, resolution=4).fit(diagrams)
    >>> float(mass.transform(diagrams).sum())
    0.5
    """

    _parameter_constraints = {
        "upper": [Interval(Real, 0, None, closed="neither")],
        "least_lifetime": [Interval(Real, 0, None, closed="neither")],
        "resolution": [Interval(Integral, 1, 1000, closed="both")],
    }

    def __init__(
        self, upper: float = 1.0, *, least_lifetime: float = 0.1, resolution: int = 6
    ) -> None:
        self.upper = upper
        self.least_lifetime = least_lifetime
        self.resolution = resolution

    @staticmethod
    def resolution_for(n_people: int, epsilon: float = 1.0) -> int:
        """Return a resolution for which the error from privacy noise is at most that of the grid.

        Parameters
        ----------
        n_people : int
            Public number of people, or an estimate of it.
        epsilon : float, default=1.0
            Privacy loss of the release of the mean.

        Returns
        -------
        int
        """
        most = _NODES_FOR_EACH * epsilon * n_people
        return max((k for k in _RESOLUTIONS if (k + 1) ** 2 <= most), default=_RESOLUTIONS[0])

    def _check_parameters(self) -> None:
        if not self.least_lifetime < self.upper:
            raise ValueError(
                f"least_lifetime={self.least_lifetime:g} must be below upper={self.upper:g}."
            )

    @plain_arithmetic()
    def transform(self, X: Iterable[ArrayLike]) -> FloatArray:
        """Compute the masses.

        Parameters
        ----------
        X : list of array-like of shape (n, 2)
            Diagrams: births and deaths. Deaths may be infinite.

        Returns
        -------
        ndarray of shape (n_samples, (resolution + 1)**2)
            Non-negative masses, in units of persistence.
        """
        self._check_parameters()
        return np.array([self._masses(diagram) for diagram in read_diagrams(X)])

    def _masses(self, diagram: FloatArray) -> FloatArray:
        """Distribute points by multilinear hats, which preserve births, lifetimes and masses."""
        k, least = int(self.resolution), float(self.least_lifetime)
        lifetimes = diagram[:, 1] - diagram[:, 0]
        long = lifetimes > least
        births = np.clip(diagram[long, 0] / self.upper, 0, 1) * k
        above = np.clip((lifetimes[long] - least) / (self.upper - least), 0, 1) * k
        cells = [np.minimum(axis.astype(int), k - 1) for axis in (births, above)]
        masses = np.zeros((k + 1, k + 1))
        heights = self.node_lifetimes()
        for a, b in ((0, 0), (0, 1), (1, 0), (1, 1)):
            i, j = cells[0] + a, cells[1] + b
            share = (1 - np.abs(births - i)) * (1 - np.abs(above - j))
            np.add.at(masses, (i, j), share * heights[j])
        return masses.ravel()

    def node_lifetimes(self) -> FloatArray:
        """Return the lifetimes of the nodes of the grid, in the units of the diagrams.

        Returns
        -------
        ndarray of shape (resolution + 1,)
        """
        return np.linspace(self.least_lifetime, self.upper, int(self.resolution) + 1)

    def expected_diagram(self, mean: ArrayLike, noise: ArrayLike = 0.0) -> FloatArray:
        """Compute the expected persistence diagram from a mean of rows.

        This is post-processing of the mean, so it costs no privacy.

        Parameters
        ----------
        mean : array-like of shape ((resolution + 1)**2,)
            Mean of rows, such as ``mean_`` of a :class:`PrivateMean`.
        noise : float or array-like of the same shape, default=0.0
            Standard deviation of the noise in the mean, such as ``noise_``. Masses that are about
            as small as the largest Laplace noise of all nodes are left out.

        Returns
        -------
        ndarray of shape (n, 3)
            Birth, death, and expected number of points for each node that has any.
        """
        masses = np.asarray(mean, dtype=float)
        n = int(self.resolution) + 1
        if masses.shape != (n * n,):
            raise ValueError(f"mean must have {n * n} entries, one for each node of the grid.")
        reached = np.broadcast_to(noise, masses.shape) / math.sqrt(2) * math.log(n * n)
        seen = masses > _SEEN * reached
        i, j = np.divmod(np.flatnonzero(seen & (masses > 0)), n)
        births, lifetimes = np.linspace(0, self.upper, n)[i], self.node_lifetimes()[j]
        numbers = masses.reshape(n, n)[i, j] / lifetimes
        return np.column_stack([births, births + lifetimes, numbers])

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Get the names, such as ``"mass0_3"`` for the first birth and the fourth lifetime.

        Parameters
        ----------
        input_features : Ignored

        Returns
        -------
        ndarray of str
        """
        nodes = range(int(self.resolution) + 1)
        return np.array([f"mass{i}_{j}" for i in nodes for j in nodes], dtype=object)


class SortedLifetimes(MapOfDiagrams):
    """Transform each diagram into its longest lifetimes, divided by a public cap.

    This vectorisation suits private estimators of rows, whose noise grows with the number of
    features: its features are few, and between 0 and 1. Points with infinite deaths are left
    out.

    Parameters
    ----------
    n_lifetimes : int, default=4
        Number of lifetimes of each diagram, at least 1, the longest first. If a diagram has
        fewer points, the remaining features are 0.
    upper : float, default=None
        Public cap, in the units of the diagrams. A lifetime of ``upper`` or more becomes 1.
        None means 1, and inside :class:`DiagramFeatures` the width of its range.

    See Also
    --------
    DiagramFeatures : Applies a vectoriser to each homology dimension.
    PersistenceMass : A vectoriser that keeps births, too.

    Notes
    -----
    .. rubric:: Privacy

    There is no privacy guarantee, but nothing is learnt, and each diagram is transformed
    independently. If each cloud is one record, a private estimator of rows with ``bounds=(0,
    1)`` in the next step therefore protects whole clouds.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda import DiagramFeatures
    >>> from sklearn_dptda.features import SortedLifetimes
    >>> diagrams = [np.array([[0.0, 2.0], [0.5, 1.0]]), np.empty((0, 2))]
    >>> DiagramFeatures(SortedLifetimes(3), value_range=(0, 2)).fit_transform(diagrams)
    array([[1.  , 0.25, 0.  ],
           [0.  , 0.  , 0.  ]])
    """

    _parameter_constraints = {
        "n_lifetimes": [Interval(Integral, 1, None, closed="left")],
        "upper": [Interval(Real, 0, None, closed="neither"), None],
    }

    def __init__(self, n_lifetimes: int = 4, *, upper: float | None = None) -> None:
        self.n_lifetimes = n_lifetimes
        self.upper = upper

    @plain_arithmetic()
    def transform(self, X: Iterable[ArrayLike]) -> FloatArray:
        """Compute the lifetimes.

        Parameters
        ----------
        X : list of array-like of shape (n, 2)
            Diagrams: births and deaths.

        Returns
        -------
        ndarray of shape (n_samples, n_lifetimes)
            Values in [0, 1], in decreasing order in each row.
        """
        finite = [d[np.isfinite(d).all(axis=1)] for d in read_diagrams(X)]
        lengths = PersistenceLengths(int(self.n_lifetimes)).fit_transform(finite)
        shares: FloatArray = np.clip(lengths / (1.0 if self.upper is None else self.upper), 0, 1)
        return shares

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Get the names of the features, such as ``"lifetime0"``.

        Parameters
        ----------
        input_features : Ignored

        Returns
        -------
        ndarray of str
        """
        return np.array([f"lifetime{i}" for i in range(self.n_lifetimes)], dtype=object)
