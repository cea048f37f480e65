"""Persistence on a grid: one vector per diagram, whose mean gives an expected diagram.

Proof: doc/theory/populations.md, "The expected persistence diagram".
"""

import math
from collections.abc import Iterable
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.features._map_of_diagrams import MapOfDiagrams, read_diagrams
from sklearn_dptda.privacy._estimator import silent_arithmetic
from sklearn_dptda.utils._sklearn import Interval

# The recommended resolution is the largest of these whose number of nodes is at most this share of
# the number of people, times epsilon.
_NODES_FOR_EACH = 0.2
_RESOLUTIONS = (4, 6, 8, 12)
# Masses below this share of the typical maximum of Laplace noise over all nodes are left out.
_SEEN = 0.75


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

    @silent_arithmetic()
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
