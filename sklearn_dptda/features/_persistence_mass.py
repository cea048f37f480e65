"""Persistence on a grid: one vector for each diagram, whose mean is an expected diagram.

Proof: doc/theory/populations.md, "The expected persistence diagram".
"""

import math
from collections.abc import Iterable
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.features._map_of_diagrams import MapOfDiagrams, read_diagrams
from sklearn_dptda.utils._sklearn import Interval

# Part of the people that there may be nodes, for each unit of epsilon: the finest of the
# resolutions that this allows.
_NODES_FOR_EACH = 0.2
_RESOLUTIONS = (4, 6, 8, 12)
# Masses below this part of what Laplace noise reaches in one of the nodes are left out.
_SEEN = 0.75


class PersistenceMass(MapOfDiagrams):
    """Spread the persistence of each diagram over a grid of births and lifetimes.

    The sum of a row is the total persistence of its diagram. The mean of the
    rows of many people, divided by the lifetimes of the nodes, is their
    expected persistence diagram; weighted by persistence, all nodes cost the
    same under privacy.

    Parameters
    ----------
    upper : float, default=1.0
        Public cap: births and lifetimes are clipped to it, and negative births
        to zero.
    least_lifetime : float, default=0.1
        Public; shorter features count as nothing. Most features of a cloud are
        shorter than what is worth a look.
    resolution : int, default=6
        Steps of the grid along each axis. :meth:`resolution_for` names one that
        the noise of privacy allows.

    Notes
    -----
    .. rubric:: Privacy

    None: masses of exact diagrams are exact. But nothing is learnt, and each
    diagram is treated by itself. So with
    ``PrivateMean(delta=0, bounds=(0, M), norm_bound=M, confidence=None)``
    behind it, ``M`` a public bound of the total persistence of a person, whole
    diagrams are protected.

    References
    ----------
    V. Divol, T. Lacombe, "Estimation and quantization of expected persistence
    diagrams", ICML 2021.

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
        """Resolution at which the noise of privacy is no larger than the cells.

        Parameters
        ----------
        n_people : int
            Public number of people, or a guess.
        epsilon : float, default=1.0

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

    def transform(self, X: Iterable[ArrayLike]) -> FloatArray:
        """Compute the masses.

        Parameters
        ----------
        X : list of array-like of shape (n, 2)
            Diagrams; deaths may be infinite.

        Returns
        -------
        ndarray of shape (n_samples, (resolution + 1)**2)
            Not negative, in units of persistence.
        """
        self._check_parameters()
        return np.array([self._masses(diagram) for diagram in read_diagrams(X)])

    def _masses(self, diagram: FloatArray) -> FloatArray:
        """Multilinear hats: births, lifetimes and masses of points are kept."""
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
        """Lifetimes of the nodes of the grid.

        Returns
        -------
        ndarray of shape (resolution + 1,)
        """
        return np.linspace(self.least_lifetime, self.upper, int(self.resolution) + 1)

    def expected_diagram(self, mean: ArrayLike, noise: ArrayLike = 0.0) -> FloatArray:
        """Expected persistence diagram of a mean of rows: post-processing.

        Parameters
        ----------
        mean : array-like of shape ((resolution + 1)**2,)
            Mean of rows, such as ``mean_`` of a :class:`PrivateMean`.
        noise : float or array-like of the same shape, default=0.0
            Standard deviation of the noise in the mean, ``noise_``. Masses of
            about the size that Laplace noise alone reaches in one of the nodes
            are left out.

        Returns
        -------
        ndarray of shape (n, 3)
            Births, deaths, and the expected number of points at them, of nodes
            with any.
        """
        masses = np.asarray(mean, dtype=float)
        n = int(self.resolution) + 1
        if masses.shape != (n * n,):
            raise ValueError(f"mean must have {n * n} entries, one for each node.")
        reached = np.broadcast_to(noise, masses.shape) / math.sqrt(2) * math.log(n * n)
        seen = masses > _SEEN * reached
        i, j = np.divmod(np.flatnonzero(seen & (masses > 0)), n)
        births, lifetimes = np.linspace(0, self.upper, n)[i], self.node_lifetimes()[j]
        numbers = masses.reshape(n, n)[i, j] / lifetimes
        return np.column_stack([births, births + lifetimes, numbers])

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Names such as ``"mass0_3"``, of the node at the first birth and the fourth lifetime.

        Parameters
        ----------
        input_features : Ignored

        Returns
        -------
        ndarray of str
        """
        nodes = range(int(self.resolution) + 1)
        return np.array([f"mass{i}_{j}" for i in nodes for j in nodes], dtype=object)
