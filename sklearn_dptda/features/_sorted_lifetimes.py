"""The longest lifetimes of a diagram, sorted: few numbers with a public range.

Proof: doc/theory/people.md, "Maps of one record".
"""

from collections.abc import Iterable
from numbers import Integral, Real

import numpy as np
from gudhi.representations import PersistenceLengths
from numpy.typing import ArrayLike, NDArray

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.features._map_of_diagrams import MapOfDiagrams, read_diagrams
from sklearn_dptda.utils._sklearn import Interval


class SortedLifetimes(MapOfDiagrams):
    """Turn each diagram into its longest lifetimes, in units of a public cap.

    One of few vectorisations that a private estimator of rows can afford:
    noise grows with the number of features, and here there are few, each
    between 0 and 1 by construction. Points with infinite deaths are left out:
    an essential class is there in every cloud, and has no lifetime.

    Parameters
    ----------
    n_lifetimes : int, default=4
        How many lifetimes of each diagram are kept, the longest first. Where a
        diagram has fewer points, the others are 0.
    upper : float, default=None
        Public cap, in the units of the diagrams: a lifetime of so much or more
        becomes 1. None: 1, and within :class:`DiagramFeatures` the width of its
        range.

    Notes
    -----
    .. rubric:: Privacy

    None: features of exact diagrams are exact. But nothing is learnt, and each
    diagram is treated by itself. So if each cloud is one record, an estimator of
    rows with ``bounds=(0, 1)`` protects whole clouds.

    References
    ----------
    :class:`gudhi.representations.vector_methods.PersistenceLengths` sorts the
    lifetimes.

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

    def transform(self, X: Iterable[ArrayLike]) -> FloatArray:
        """Compute the lifetimes.

        Parameters
        ----------
        X : list of array-like of shape (n, 2)
            Diagrams.

        Returns
        -------
        ndarray of shape (n_samples, n_lifetimes)
            In [0, 1], falling along each row.
        """
        finite = [d[np.isfinite(d).all(axis=1)] for d in read_diagrams(X)]
        lengths = PersistenceLengths(int(self.n_lifetimes)).fit_transform(finite)
        shares: FloatArray = np.clip(lengths / (1.0 if self.upper is None else self.upper), 0, 1)
        return shares

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Names such as ``"lifetime0"``.

        Parameters
        ----------
        input_features : Ignored

        Returns
        -------
        ndarray of str
        """
        return np.array([f"lifetime{i}" for i in range(self.n_lifetimes)], dtype=object)
