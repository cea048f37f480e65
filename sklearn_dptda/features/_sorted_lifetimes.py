"""The longest lifetimes of a diagram, sorted: few numbers with a public range.

Proof: doc/theory/people.md, "Maps of one record".
"""

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Self

import numpy as np
from gudhi.representations import PersistenceLengths
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.privacy._parameters import QuotedParametersMixin
from sklearn_dptda.utils._clouds import check_collection
from sklearn_dptda.utils._distances import as_diagram
from sklearn_dptda.utils._frames import refuse_dask
from sklearn_dptda.utils._sklearn import Interval, _fit_context


class SortedLifetimes(QuotedParametersMixin, TransformerMixin, BaseEstimator):
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

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Iterable[ArrayLike], y: object = None) -> Self:
        """Check the parameters; nothing is learnt.

        Parameters
        ----------
        X : list of array-like of shape (n, 2)
            Diagrams.
        y : Ignored

        Returns
        -------
        self
        """
        read_diagrams(X)
        return self

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

    def _learns_records(self) -> bool:
        return False

    def __sklearn_tags__(self) -> Tags:
        """Describe the input: diagrams, no tables."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.requires_fit = False
        return tags


def read_diagrams(X: Iterable[ArrayLike]) -> list[FloatArray]:
    """Diagrams of a list, checked."""
    refuse_dask(X)
    diagrams = [as_diagram(diagram, f"X[{i}]") for i, diagram in enumerate(check_collection(X))]
    if any((diagram[:, 1] < diagram[:, 0]).any() for diagram in diagrams):
        raise ValueError("X has points that die before they are born: these are no diagrams.")
    return diagrams
