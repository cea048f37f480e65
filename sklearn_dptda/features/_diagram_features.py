"""Feature matrices of persistence diagrams, by GUDHI's vectorisers, made safe to pickle.

Proof: doc/theory/people.md, "Maps of one record".
"""

import inspect
import math
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from gudhi.representations import PersistenceImage
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.features._maps_of_diagrams import SortedLifetimes
from sklearn_dptda.filtration._filtration import Filtration
from sklearn_dptda.privacy._estimator import plain_arithmetic
from sklearn_dptda.privacy._learning_steps import learns
from sklearn_dptda.privacy._parameters import QuotedParametersMixin, quoted
from sklearn_dptda.utils._distances import as_diagram
from sklearn_dptda.utils._sklearn import HasMethods, Interval, ListInputMixin, _fit_context
from sklearn_dptda.utils._validation import check_collection, refuse_dask


class DiagramFeatures(ListInputMixin, QuotedParametersMixin, TransformerMixin, BaseEstimator):
    """Transform persistence diagrams into a feature matrix.

    The features of one clone of a vectoriser for each homology dimension are concatenated.
    The transformer also handles empty diagrams and infinite deaths, which several vectorisers
    of GUDHI do not.

    Parameters
    ----------
    vectorizer : estimator, default=None
        A transformer of lists of diagrams into matrices, such as those of
        ``gudhi.representations``. None uses a persistence image of 10 x 10 pixels, weighted
        by persistence, whose bandwidth is one twentieth of the range.
    homology_dimensions : int or sequence of int, default=None
        Homology dimensions of the diagrams, in the order of the input: an integer for one
        diagram per sample, a sequence for a list of diagrams per sample. None derives it
        from the input and numbers the diagrams from 0.
    value_range : tuple (low, high), default=None
        Public range of births and deaths, in the units of the diagrams. Values are clipped
        to it, infinite deaths become ``high``, and it is passed to vectorisers that need a
        range. None uses the range of the diagrams in ``fit``, so each sample then depends
        on all of them.

    Attributes
    ----------
    vectorizers_ : list of estimator
        One fitted vectoriser for each homology dimension.
    homology_dimensions_ : tuple of int
        The homology dimensions.
    value_range_ : tuple of float
        The range of births and deaths that is used.

    See Also
    --------
    SortedLifetimes : A vectoriser with few features, for private estimators.
    PersistenceMass : A vectoriser for expected persistence diagrams.

    Notes
    -----
    .. rubric:: Privacy

    This is post-processing: features of private diagrams are as private as the diagrams,
    including the range in ``fit``. Features of exact diagrams are not private. However,
    with a ``value_range`` and a vectoriser that learns nothing, each sample is transformed
    independently. If one cloud is one record, a private estimator of rows in the next step
    then protects whole clouds.

    Examples
    --------
    >>> import numpy as np
    >>> from gudhi.representations import Landscape
    >>> from sklearn_dptda import DiagramFeatures
    >>> diagrams = [np.array([[0.0, 1.0], [0.2, 0.5]]), np.empty((0, 2))]
    >>> features = DiagramFeatures(Landscape(1, resolution=4), value_range=(0, 1))
    >>> features.fit_transform(diagrams).shape
    (2, 4)
    >>> features.get_feature_names_out()[0]
    'H0_landscape0'
    """

    _parameter_constraints = {
        "vectorizer": [HasMethods(["fit", "transform"]), None],
        "homology_dimensions": [
            Interval(Integral, 0, None, closed="left"),
            "array-like",
            None,
        ],
        "value_range": ["array-like", None],
    }

    def __init__(
        self,
        vectorizer: BaseEstimator | None = None,
        homology_dimensions: int | Sequence[int] | None = None,
        *,
        value_range: Sequence[float] | None = None,
    ) -> None:
        self.vectorizer = vectorizer
        self.homology_dimensions = homology_dimensions
        self.value_range = value_range

    @_fit_context(prefer_skip_nested_validation=False)
    @plain_arithmetic()
    def fit(self, X: Iterable[ArrayLike | Sequence[ArrayLike]], y: object = None) -> Self:
        """Fit one vectoriser for each homology dimension.

        Parameters
        ----------
        X : list of array-like of shape (n, 2), list of lists of them, or ndarray of shape \
(n_samples, n_points, 3)
            Diagrams, as persistence estimators return them. In an array of three
            columns, as giotto-tda makes it, the third column is the homology
            dimension, and points whose birth equals their death are padding. Pass
            ``homology_dimensions`` if the diagrams are exact: without it, they are
            those that occur in the array, which a guarantee does not cover.
        y : Ignored

        Returns
        -------
        self
        """
        samples = check_collection(_by_dimension(X, self.homology_dimensions))
        self.single_ = _is_diagram(samples[0])
        width = 1 if self.single_ else len(samples[0])
        known = _dimensions_of_array(X) if self.homology_dimensions is None else None
        # Which dimensions there are is then learnt from the diagrams.
        self._dimensions_are_learnt = known is not None
        self.homology_dimensions_ = known or self._dimensions(width)
        columns = self._columns(samples)
        self.value_range_ = self._range(columns)
        self.vectorizers_ = [
            self._in_range(*self.value_range_).fit(self._pad(column)) for column in columns
        ]
        first = [column[:1] for column in columns]
        self._widths = [part.shape[1] for part in map(self._apply, self.vectorizers_, first)]
        return self

    @plain_arithmetic()
    def transform(self, X: Iterable[ArrayLike | Sequence[ArrayLike]]) -> FloatArray:
        """Compute the features.

        Parameters
        ----------
        X : list of array-like of shape (n, 2), or list of lists of them
            The diagrams.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        columns = self._columns(check_collection(_by_dimension(X, self.homology_dimensions_)))
        return np.hstack(list(map(self._apply, self.vectorizers_, columns)))

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Get the names of the features, such as ``"H1_persistenceimage17"``.

        Parameters
        ----------
        input_features : Ignored

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        parts = zip(self.homology_dimensions_, self.vectorizers_, self._widths, strict=True)
        names = [
            f"H{q}_{type(vectorizer).__name__.lower()}{i}"
            for q, vectorizer, width in parts
            for i in range(width)
        ]
        return np.array(names, dtype=object)

    def _dimensions(self, width: int) -> tuple[int, ...]:
        if self.homology_dimensions is None:
            return tuple(range(width))
        given: tuple[Any, ...] = (self.homology_dimensions,)
        if not isinstance(self.homology_dimensions, int | Integral):
            given = tuple(self.homology_dimensions)
        if len(given) != width:
            raise ValueError(
                f"homology_dimensions has {len(given)} dimension(s), but every sample of X has "
                f"{width} diagram(s). Pass one dimension for each diagram."
            )
        if any(not isinstance(q, Integral) or q < 0 for q in given):
            raise ValueError(
                f"homology_dimensions must be non-negative integers; got {quoted(given)}."
            )
        return tuple(int(q) for q in given)

    def _columns(self, samples: list[Any]) -> list[list[FloatArray]]:
        """Return one list of checked diagrams for each homology dimension."""
        width = len(self.homology_dimensions_)
        columns: list[list[FloatArray]] = [[] for _ in range(width)]
        for i, sample in enumerate(samples):
            diagrams = [sample] if self.single_ else list(sample)
            if _is_diagram(sample) != self.single_ or len(diagrams) != width:
                raise ValueError(f"X[{i}] must have {width} diagram(s), like the samples in fit.")
            for column, diagram in zip(columns, diagrams, strict=True):
                column.append(_checked(diagram, f"X[{i}]"))
        return columns

    def _range(self, columns: list[list[FloatArray]]) -> tuple[float, float]:
        if self.value_range is not None:
            got = quoted(self.value_range)
            if len(self.value_range) != 2:
                raise ValueError(f"value_range must be (low, high); got {got}.")
            low, high = (float(v) for v in self.value_range)
            if not (math.isfinite(low) and math.isfinite(high) and low < high):
                raise ValueError(f"value_range must be finite and increasing; got {got}.")
            return low, high
        values = np.concatenate([np.empty(0), *(d.ravel() for column in columns for d in column)])
        values = values[np.isfinite(values)]
        if values.size == 0:
            return 0.0, 1.0
        low, high = float(values.min()), float(values.max())
        return (low, high) if low < high else (low, low + 1.0)

    def _in_range(self, low: float, high: float) -> BaseEstimator:
        """Return a clone of the vectoriser with its range set."""
        if self.vectorizer is None:
            vectorizer = PersistenceImage(
                bandwidth=(high - low) / 20, weight=_persistence_weight, resolution=[10, 10]
            )
        else:
            vectorizer = clone(self.vectorizer)
        parameters = vectorizer.get_params(deep=False)
        changes = _named_defaults(vectorizer)
        if _is_unset(parameters.get("im_range")):
            # Birth and persistence.
            changes["im_range"] = [low, high, 0.0, high - low]
        if _is_unset(parameters.get("sample_range")):
            changes["sample_range"] = [low, high]
        if isinstance(vectorizer, SortedLifetimes) and vectorizer.upper is None:
            changes["upper"] = high - low
        return vectorizer.set_params(**changes)

    def _learns_records(self) -> bool:
        if self.value_range is None or getattr(self, "_dimensions_are_learnt", False):
            return True
        return learns(self._in_range(*self.value_range))

    def _pad(self, column: list[FloatArray]) -> list[FloatArray]:
        """Clip diagrams to the range, and replace an empty one by a point of zero persistence.

        Several vectorisers of GUDHI fail on empty diagrams, and for all of them a point on the
        diagonal is equivalent to no point.
        """
        low, high = self.value_range_
        ghost = np.array([[low, low]])
        if isinstance(self.vectorizer, SortedLifetimes):
            # If it were clipped, an essential class would have a lifetime as long as the range.
            column = [d[np.isfinite(d).all(axis=1)] for d in column]
        return [np.clip(d, low, high) if len(d) else ghost for d in column]

    def _apply(self, vectorizer: BaseEstimator, column: list[FloatArray]) -> FloatArray:
        # Features that are normalised by a total persistence of zero are defined as zero.
        with np.errstate(invalid="ignore", divide="ignore"):
            features = np.asarray(vectorizer.transform(self._pad(column)))
        features = features.reshape(len(column), -1)
        if np.iscomplexobj(features):
            features = np.hstack([features.real, features.imag])
        return np.nan_to_num(features.astype(float), nan=0.0)

    def __getstate__(self) -> dict[str, Any]:
        """Replace anonymous default functions of GUDHI by objects that can be pickled."""
        state = super().__getstate__()
        changes = {} if self.vectorizer is None else _named_defaults(self.vectorizer)
        if changes:
            state["vectorizer"] = clone(self.vectorizer).set_params(**changes)
        return state


def _persistence_weight(point: FloatArray) -> float:
    """Return the weight of a (birth, persistence) point in a persistence image."""
    return point[1]


class _DefaultParameter:
    """A default argument of another class's constructor, looked up when it is called.

    It replaces GUDHI's weights, which are anonymous functions and cannot be pickled.
    """

    def __init__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name

    def __call__(self, point: FloatArray) -> float:
        """Call the default function."""
        return inspect.signature(self.owner).parameters[self.name].default(point)


def _named_defaults(vectorizer: BaseEstimator) -> dict[str, Any]:
    """Return replacements of the anonymous functions among GUDHI's default parameters."""
    return {
        name: _DefaultParameter(type(vectorizer), name)
        for name, value in vectorizer.get_params(deep=False).items()
        if getattr(value, "__name__", "") == "<lambda>"
        and getattr(value, "__module__", "").startswith("gudhi.")
    }


def _is_unset(value: Any) -> bool:
    """Return whether a range parameter has GUDHI's default value of NaNs."""
    if not isinstance(value, list | tuple | np.ndarray):
        return False
    return all(isinstance(v, Real) and math.isnan(v) for v in value)


def _checked(diagram: ArrayLike, name: str) -> FloatArray:
    """Return a diagram after checking that every birth precedes its death."""
    diagram = as_diagram(diagram, name)
    if (diagram[:, 1] < diagram[:, 0]).any():
        raise ValueError(
            f"{name} has deaths before births. X must consist of diagrams, such as those of "
            "PrivatePersistence, not of points. Negate diagrams of superlevel sets."
        )
    return diagram


def _dimensions_of_array(X: Any) -> tuple[int, ...] | None:
    """Return the dimensions in the third column of an array of diagrams; None of other input."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if len(shape) != 3 or shape[2] != 3:
        return None
    found = np.unique(np.asarray(X)[:, :, 2])
    if (found != np.rint(found)).any() or (found < 0).any():
        raise ValueError("X has homology dimensions in its third column that are no integers.")
    return tuple(found.astype(int).tolist())


def _by_dimension(X: Any, dimensions: Any) -> Any:
    """Return lists of diagrams, one for each dimension, of an array of three columns."""
    found = _dimensions_of_array(X)
    if found is None:
        return X
    wanted = found if dimensions is None else np.atleast_1d(dimensions).tolist()
    array = np.asarray(X)
    # A point on the diagonal pads a diagram to the length of the longest one.
    kept = array[:, :, 0] != array[:, :, 1]
    return [
        [points[mask & (points[:, 2] == q), :2] for q in wanted]
        for points, mask in zip(array, kept, strict=True)
    ]


def _is_diagram(sample: Any) -> bool:
    """Return whether a sample is one diagram rather than a list of diagrams."""
    if isinstance(sample, Filtration):
        raise ValueError(
            "X consists of filtrations, not of diagrams. Put PrivatePersistence before "
            "DiagramFeatures."
        )
    refuse_dask(sample)
    if isinstance(sample, np.ndarray) and sample.dtype != object:
        return sample.ndim == 2
    try:
        return not any(np.ndim(part) == 2 or np.size(part) == 0 for part in sample)
    except (TypeError, ValueError):
        # A pair of a dimension and a point, as SimplexTree.persistence() lists them, is no diagram.
        return True
