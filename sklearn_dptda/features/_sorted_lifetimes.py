"""The longest lifetimes of a diagram, sorted: few features with a public range.

Proof: doc/theory/people.md, "Maps of one record".
"""

from collections.abc import Iterable
from numbers import Integral, Real

import numpy as np
from gudhi.representations import PersistenceLengths
from numpy.typing import ArrayLike, NDArray

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.features._map_of_diagrams import MapOfDiagrams, read_diagrams
from sklearn_dptda.privacy._estimator import silent_arithmetic
from sklearn_dptda.utils._sklearn import Interval


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

    @silent_arithmetic()
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
