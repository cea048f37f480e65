"""Exact diagrams of functions on a grid, by GUDHI and by duality."""

from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Self

import numpy as np
from gudhi.sklearn.cubical_persistence import CubicalPersistence as GudhiCubicalPersistence
from joblib import parallel_config
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.filtration import GridFiltration
from sklearn_dptda.privacy._parameters import QuotedParametersMixin, quoted
from sklearn_dptda.utils._clouds import check_collection
from sklearn_dptda.utils._frames import refuse_lossy
from sklearn_dptda.utils._sklearn import Interval, ListOutputMixin, _fit_context
from sklearn_dptda.utils._tasks import run


def sublevel_diagrams(values, dimensions, upper):
    """Exact persistence diagrams of a function on the nodes of a grid, by birth, then death.

    ``upper`` is the death of the class that never dies, and the cap of all values. Homology of
    dimensions from that of the grid on is empty.
    """
    values = np.minimum(values, upper)
    if values.ndim == 2 and min(values.shape) > 2:
        planar = _planar_diagrams(values)
        diagrams = [planar[q] if q < 2 else np.empty((0, 2)) for q in dimensions]
    else:
        diagrams = _gudhi_diagrams(values, list(dimensions), input_type="vertices")
    return [_capped(np.asarray(diagram).reshape(-1, 2), upper) for diagram in diagrams]


def _planar_diagrams(values):
    """Diagrams of a function on the nodes of a rectangle, by duality.

    Sublevel sets of the nodes are complements of superlevel sets of the dual cells, so by
    Alexander duality the dimensions swap and signs change; GUDHI is 20 times faster on cells. The
    frame of minus infinity closes the outside; its loop is the component that never dies.
    """
    cells = np.pad(-values, 1, constant_values=-np.inf)
    components, loops = _gudhi_diagrams(cells, [0, 1])
    holes = -np.asarray(components)[:, ::-1]
    return [-np.asarray(loops)[:, ::-1], holes[np.isfinite(holes).all(axis=1)]]


def _gudhi_diagrams(values, dimensions, **options):
    gudhi = GudhiCubicalPersistence(dimensions, **options).fit([values])
    # One function is one task, which other backends than threads cannot take from GUDHI.
    with parallel_config(backend="sequential"):
        return gudhi.transform([values])[0]


def _capped(diagram, upper):
    diagram = np.minimum(diagram, upper)
    diagram = diagram[diagram[:, 1] > diagram[:, 0]]
    return diagram[np.lexsort((diagram[:, 1], diagram[:, 0]))]


# What persistence estimators share: reading filtrations and dimensions.


def check_dimensions(homology_dimensions):
    """Return homology dimensions as a tuple, and whether a single one was given."""
    single = isinstance(homology_dimensions, Integral)
    dimensions = (homology_dimensions,) if single else tuple(homology_dimensions)
    if not dimensions:
        raise ValueError("homology_dimensions is empty.")
    if any(not isinstance(q, Integral) or q < 0 for q in dimensions):
        raise ValueError(
            f"homology_dimensions must be non-negative integers; got {quoted(homology_dimensions)}."
        )
    if len(set(dimensions)) < len(dimensions):
        raise ValueError(f"homology_dimensions has duplicates: {quoted(homology_dimensions)}.")
    return tuple(int(q) for q in dimensions), single


class BaseGridPersistence(QuotedParametersMixin, TransformerMixin, BaseEstimator):
    """What persistence estimators share: reading filtrations, shaping the output."""

    def _read(self, X):
        """Return a list of (values, sensitivity, upper), sensitivity None if not known."""
        stated = None if self.upper is None else float(self.upper)
        read = []
        for i, item in enumerate(check_collection(X)):
            if isinstance(item, GridFiltration):
                # A bound that the caller states applies on top of the one that travels along.
                upper = item.upper if stated is None else min(stated, item.upper)
                read.append((item.values, item.sensitivity, upper))
            else:
                read.append((_bare_values(item, f"X[{i}]"), None, stated))
        return read

    def _learns_records(self):
        return False

    def _shape(self, releases):
        return [diagrams[0] for diagrams in releases] if self.single_ else releases

    def __sklearn_tags__(self):
        """Describe the input: filtrations, no tables."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags


def _bare_values(item, name):
    refuse_lossy(item, name)
    try:
        values = np.asarray(item, dtype=float)
    except Exception:
        raise ValueError(f"{name} is neither a GridFiltration nor an array.") from None
    if values.ndim == 0 or values.size == 0:
        raise ValueError(f"{name} is empty or no array.")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} contains NaN or infinity.")
    return values


# Exact persistence diagrams of functions on a grid.


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
