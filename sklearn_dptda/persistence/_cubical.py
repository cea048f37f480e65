"""Exact persistence diagrams of functions on a grid, by GUDHI and by duality: *not* private.

Proof: doc/theory/sensitivity.md, "Diagrams".
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from numbers import Integral, Real
from typing import Any, Self, TypeAlias, cast

import numpy as np
from gudhi import SimplexTree
from gudhi.sklearn.cubical_persistence import CubicalPersistence as GudhiCubicalPersistence
from joblib import parallel_config
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.filtration import GridFiltration
from sklearn_dptda.filtration._complex import LandmarkComplex
from sklearn_dptda.filtration._filtration import Filtration
from sklearn_dptda.privacy._parameters import QuotedParametersMixin, quoted
from sklearn_dptda.utils._sklearn import Interval, ListInputMixin, ListOutputMixin, _fit_context
from sklearn_dptda.utils._tasks import run
from sklearn_dptda.utils._validation import check_collection, refuse_lossy

# The input and output of persistence estimators: functions, and for each of them one diagram or one
# list of diagrams by dimension.
Functions: TypeAlias = Iterable[GridFiltration | ArrayLike]
Diagrams: TypeAlias = list[FloatArray] | list[list[FloatArray]]
# cripser stores places in 15 bits for each axis.
_LONGEST_AXIS = 1 << 14


def sublevel_diagrams(
    values: FloatArray,
    dimensions: Iterable[int],
    upper: float,
    complex: LandmarkComplex | None = None,
) -> list[FloatArray]:
    """Compute exact persistence diagrams of a function, sorted by birth, then by death.

    The function is defined on the nodes of a grid, or on the simplices of a complex. ``upper`` is
    the cap of all values and the death of essential classes. The diagrams of dimensions equal to or
    above that of the grid are empty.
    """
    values = np.minimum(values, upper)
    if complex is not None:
        diagrams = _simplex_diagrams(values, list(dimensions), upper, complex)
    elif values.ndim == 2 and min(values.shape) > 2:
        planar = _planar_diagrams(values)
        diagrams = [planar[q] if q < 2 else np.empty((0, 2)) for q in dimensions]
    elif values.ndim == 3 and max(values.shape) <= _LONGEST_AXIS and (ripser := _ripser()):
        pairs = ripser(values, maxdim=2)
        diagrams = [_volume_diagram(pairs, q, upper) for q in dimensions]
    else:
        diagrams = _gudhi_diagrams(values, list(dimensions), input_type="vertices")
    return [_capped(np.asarray(diagram).reshape(-1, 2), upper) for diagram in diagrams]


def _planar_diagrams(values: FloatArray) -> list[FloatArray]:
    """Compute the diagrams of a function on the nodes of a rectangle, by Alexander duality.

    Sublevel sets of the nodes are complements of superlevel sets of the dual cells, so dimensions
    are swapped and signs change. GUDHI is 20 times faster on cells. A frame of minus infinity
    closes the outside, and its loop is the essential component.
    """
    cells = np.pad(-values, 1, constant_values=-np.inf)
    components, loops = _gudhi_diagrams(cells, [0, 1])
    holes = -np.asarray(components)[:, ::-1]
    return [-np.asarray(loops)[:, ::-1], holes[np.isfinite(holes).all(axis=1)]]


def _volume_diagram(pairs: FloatArray, q: int, upper: float) -> FloatArray:
    """Select a dimension from rows of dimension, birth and death, then the places of both.

    The death of an essential class is the largest number, in place of infinity.
    """
    diagram = pairs[pairs[:, 0] == q, 1:3]
    diagram[diagram[:, 1] == np.finfo(float).max, 1] = upper
    return diagram


@cache
def _ripser() -> Callable[..., FloatArray] | None:
    """Return the function of cripser, which is optional, because its licence is the GPL.

    Its diagrams of volumes equal those of GUDHI, bit for bit, and take a sixth of the time.
    """
    try:
        from cripser import computePH
    except ImportError:
        return None
    return cast(Callable[..., FloatArray], computePH)


def _simplex_diagrams(
    values: FloatArray, dimensions: list[int], upper: float, complex: LandmarkComplex
) -> list[FloatArray]:
    """Compute the diagrams of a function on simplices."""
    tree = persistent_tree(values, upper, complex)
    return [tree.persistence_intervals_in_dimension(q) for q in dimensions]


def persistent_tree(values: FloatArray, upper: float, complex: LandmarkComplex) -> SimplexTree:
    """Build the tree of the simplices whose values are below the cap, and its persistence.

    The dimension of this tree depends on the records, and GUDHI leaves out the homology of the
    top dimension by default. A loop would then appear only after the first triangle anywhere.
    """
    tree, start = SimplexTree(), 0
    for simplices in complex.simplices:
        own = values[start : start + len(simplices)]
        start += len(simplices)
        there = own < upper
        tree.insert_batch(np.ascontiguousarray(simplices[there].T), own[there])
    tree.compute_persistence(persistence_dim_max=True)
    return tree


def _gudhi_diagrams(values: FloatArray, dimensions: list[int], **options: str) -> list[FloatArray]:
    gudhi = GudhiCubicalPersistence(dimensions, **options).fit([values])
    # Each function is one task. GUDHI's own parallel loop would only work with threads.
    with parallel_config(backend="sequential"):
        return gudhi.transform([values])[0]


def _capped(diagram: FloatArray, upper: float) -> FloatArray:
    diagram = np.minimum(diagram, upper)
    diagram = diagram[diagram[:, 1] > diagram[:, 0]]
    return diagram[np.lexsort((diagram[:, 1], diagram[:, 0]))]


def check_dimensions(homology_dimensions: int | Sequence[int]) -> tuple[tuple[int, ...], bool]:
    """Return the homology dimensions as a tuple, and whether a single one was given."""
    dimensions: tuple[Any, ...] = (homology_dimensions,)
    if not isinstance(homology_dimensions, int | Integral):
        dimensions = tuple(homology_dimensions)
    if not dimensions:
        raise ValueError("homology_dimensions is empty. Pass at least one dimension.")
    if any(not isinstance(q, Integral) or q < 0 for q in dimensions):
        raise ValueError(
            f"homology_dimensions must be non-negative integers; got {quoted(homology_dimensions)}."
        )
    if len(set(dimensions)) < len(dimensions):
        raise ValueError(f"homology_dimensions has duplicates: {quoted(homology_dimensions)}.")
    return tuple(int(q) for q in dimensions), isinstance(homology_dimensions, Integral)


def read_function(
    item: Filtration | ArrayLike, name: str, upper: float | None
) -> tuple[FloatArray, float, LandmarkComplex | None]:
    """Return the values of a filtration or of an array, their upper bound, and their complex.

    ``upper`` is a bound that the caller states, in addition to that of the filtration. Without
    any bound, the result is infinity. The complex is None for grids.
    """
    stated = np.inf if upper is None else float(upper)
    if isinstance(item, Filtration):
        return item.values, min(stated, item.upper), getattr(item, "complex", None)
    refuse_lossy(item, name)
    try:
        values = np.asarray(item, dtype=float)
    except Exception:
        raise ValueError(f"{name} is neither a filtration nor an array of numbers.") from None
    if values.ndim == 0 or values.size == 0:
        raise ValueError(f"{name} is empty or not an array.")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} contains NaN or infinity.")
    return values, stated, None


class CubicalPersistence(
    ListInputMixin, ListOutputMixin, QuotedParametersMixin, TransformerMixin, BaseEstimator
):
    """Exact persistence diagrams of filtrations: *not* private.

    The diagrams are those of :class:`PrivatePersistence` with ``epsilon=np.inf``.

    Parameters
    ----------
    homology_dimensions : int or sequence of int, default=(0, 1)
        Homology dimensions of the diagrams: 0 for components, 1 for loops, 2 for voids.
        For a single integer, :meth:`transform` returns one diagram for each filtration
        instead of a list.
    upper : float, default=None
        Cap of the values and death of the essential component, in the units of the
        filtration. None uses the bound of each filtration, and infinity for an array.
    n_jobs : int, default=None
        Number of filtrations that joblib processes in parallel. None means 1 unless in a
        :func:`joblib.parallel_config` context; -1 uses all processors.

    Attributes
    ----------
    homology_dimensions_ : tuple of int
        The homology dimensions as a tuple.
    single_ : bool
        Whether ``homology_dimensions`` is a single integer.

    Notes
    -----
    .. rubric:: Privacy

    There is no privacy guarantee.

    .. rubric:: Implementation

    GUDHI computes the diagrams. In three coordinates, cripser takes a sixth of the time with the
    same results. It is used if it is installed (``pip install "sklearn-dptda[cubical]"``). It is
    optional, because its licence is the GPL.

    References
    ----------
    S. Kaji, T. Sudo, K. Ahara, "Cubical Ripser: software for computing persistent homology of
    image and volume data", 2020.

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
    def fit(self, X: Functions, y: object = None) -> Self:
        """Check the input. Nothing is learnt from it.

        Parameters
        ----------
        X : list of GridFiltration, ComplexFiltration or array-like
            The functions. An array holds the values on the nodes of a grid.
        y : Ignored

        Returns
        -------
        self
        """
        self.homology_dimensions_, self.single_ = check_dimensions(self.homology_dimensions)
        self._read(X)
        return self

    def transform(self, X: Functions) -> Diagrams:
        """Compute the persistence diagrams.

        Parameters
        ----------
        X : list of GridFiltration, ComplexFiltration or array-like
            The functions, one for each cloud.

        Returns
        -------
        list of ndarray of shape (n, 2), or list of lists of them
            For each filtration, one diagram if ``homology_dimensions`` is an integer, else a
            list of diagrams. The columns are birth and death, in the units of the filtration.
        """
        check_is_fitted(self)
        functions = [
            (values, self.homology_dimensions_, upper, complex)
            for values, upper, complex in self._read(X)
        ]
        diagrams = run(sublevel_diagrams, functions, n_jobs=self.n_jobs, prefer="threads")
        return [each[0] for each in diagrams] if self.single_ else diagrams

    def _read(self, X: Functions) -> list[tuple[FloatArray, float, LandmarkComplex | None]]:
        items = enumerate(check_collection(X))
        return [read_function(item, f"X[{i}]", self.upper) for i, item in items]

    def _learns_records(self) -> bool:
        return False
