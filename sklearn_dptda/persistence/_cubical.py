"""Exact persistence diagrams of functions on a grid."""

from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.filtration import GridFiltration
from sklearn_dptda.persistence._base_persistence import BaseGridPersistence, check_dimensions
from sklearn_dptda.persistence._sublevel_diagrams import sublevel_diagrams
from sklearn_dptda.utils import ListOutputMixin
from sklearn_dptda.utils._sklearn import Interval, _fit_context
from sklearn_dptda.utils._tasks import run


class CubicalPersistence(ListOutputMixin, BaseGridPersistence):
    """Exact persistence diagrams of grid filtrations: *not* private.

    The non-private sibling of :class:`PrivatePersistence`; the same numbers as
    ``PrivatePersistence(epsilon=np.inf)``.

    Parameters
    ----------
    homology_dimensions : int or sequence of int, default=(0, 1)
        Which diagrams to compute.
    upper : float, default=None
        Cap of the values and death of the class that never dies. None takes
        the bound that travels with each filtration, and infinity for a bare
        array.
    n_jobs : int, default=None
        Number of filtrations that are worked on at a time, by joblib.

    Attributes
    ----------
    homology_dimensions_ : tuple of int
        The dimensions as a tuple.
    single_ : bool
        Whether a single dimension was given.

    See Also
    --------
    PrivatePersistence : The private release.

    Notes
    -----
    .. rubric:: Privacy

    None: the diagrams are exact.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_dptda import CubicalPersistence, DTMFiltration
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> X = make_two_circles(2000, random_state=0)
    >>> pipeline = make_pipeline(DTMFiltration(m=0.1, bounds=(-3, 3.5)), CubicalPersistence(1))
    >>> diagram, = pipeline.fit_transform([X])
    >>> diagram[:, 1].round(2)[-2:]
    array([0.99, 1.48])
    """

    _parameter_constraints = {
        "homology_dimensions": [Interval(Integral, 0, None, closed="left"), "array-like"],
        "upper": [Interval(Real, None, None, closed="neither"), None],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        homology_dimensions: int | Sequence[int] = (0, 1),
        *,
        upper: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.homology_dimensions = homology_dimensions
        self.upper = upper
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Iterable[GridFiltration | ArrayLike], y: object = None) -> Self:
        """Check the input; nothing is learnt.

        Parameters
        ----------
        X : list of GridFiltration or of array-like
        y : Ignored

        Returns
        -------
        self
        """
        self.homology_dimensions_, self.single_ = check_dimensions(self.homology_dimensions)
        self._read(X)
        return self

    def transform(
        self, X: Iterable[GridFiltration | ArrayLike]
    ) -> list[FloatArray] | list[list[FloatArray]]:
        """Compute the diagrams.

        Parameters
        ----------
        X : list of GridFiltration or of array-like

        Returns
        -------
        list of ndarray of shape (n, 2), or list of lists of them
            One diagram per filtration for a single dimension, else one list
            of diagrams per filtration. Births and deaths in the units of the
            filtration. Exact, *not* private.
        """
        check_is_fitted(self)
        functions = [
            (values, self.homology_dimensions_, np.inf if upper is None else upper)
            for values, _, upper in self._read(X)
        ]
        return self._shape(run(sublevel_diagrams, functions, n_jobs=self.n_jobs, prefer="threads"))
