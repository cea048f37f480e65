"""Persistence diagrams to feature matrices, by GUDHI's vectorisers, made safe to pickle.

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
from sklearn_dptda.features._sorted_lifetimes import SortedLifetimes
from sklearn_dptda.filtration._filtration import Filtration
from sklearn_dptda.privacy._estimator import learns
from sklearn_dptda.privacy._parameters import QuotedParametersMixin, quoted
from sklearn_dptda.utils._clouds import check_collection
from sklearn_dptda.utils._distances import as_diagram
from sklearn_dptda.utils._frames import refuse_dask
from sklearn_dptda.utils._sklearn import HasMethods, Interval, ListInputMixin, _fit_context


class DiagramFeatures(ListInputMixin, QuotedParametersMixin, TransformerMixin, BaseEstimator):
    """Turn persistence diagrams into a feature matrix.

    One clone of a GUDHI vectoriser per homology dimension, side by side.
    Empty diagrams and infinite deaths are taken care of.

    Parameters
    ----------
    vectorizer : estimator, default=None
        A transformer of lists of diagrams into matrices, such as those of
        ``gudhi.representations``. None: a persistence image of 10 x 10 pixels,
        weighted by persistence, of a bandwidth of a twentieth of the range.
    homology_dimensions : int or sequence of int, default=None
        The dimensions of the diagrams, in the order of the input: an integer
        for one diagram per sample, a sequence for one list of diagrams per
        sample. None takes what the input looks like and counts from 0.
    value_range : tuple (low, high), default=None
        Public range of births and deaths. Values are clipped to it, infinite
        deaths become ``high``, and vectorisers that ask for a range get it.
        None takes the range of the diagrams in ``fit``.

    Attributes
    ----------
    vectorizers_ : list of estimator
        One fitted vectoriser per dimension.
    homology_dimensions_ : tuple of int
        The dimensions.
    value_range_ : tuple of float
        The range that is used.

    Notes
    -----
    .. rubric:: Privacy

    Post-processing: on private diagrams everything, the range of
    the fit included, is as private as they are. On exact diagrams nothing is.
    But with a ``value_range`` and a vectoriser that learns nothing, each sample
    is treated by itself: if one cloud is one record, an estimator of rows that
    follows protects whole clouds.

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
    def fit(self, X: Iterable[ArrayLike | Sequence[ArrayLike]], y: object = None) -> Self:
        """Fit one vectoriser per homology dimension.

        Parameters
        ----------
        X : list of array-like of shape (n, 2), or list of lists of them
            Diagrams, as persistence estimators return them.
        y : Ignored

        Returns
        -------
        self
        """
        samples = check_collection(X)
        self.single_ = _is_diagram(samples[0])
        width = 1 if self.single_ else len(samples[0])
        self.homology_dimensions_ = self._dimensions(width)
        columns = self._columns(samples)
        self.value_range_ = self._range(columns)
        self.vectorizers_ = [
            self._in_range(*self.value_range_).fit(self._pad(column)) for column in columns
        ]
        first = [column[:1] for column in columns]
        self._widths = [part.shape[1] for part in map(self._apply, self.vectorizers_, first)]
        return self

    def transform(self, X: Iterable[ArrayLike | Sequence[ArrayLike]]) -> FloatArray:
        """Compute the features.

        Parameters
        ----------
        X : list of array-like of shape (n, 2), or list of lists of them

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        columns = self._columns(check_collection(X))
        return np.hstack(list(map(self._apply, self.vectorizers_, columns)))

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Names such as ``"H1_persistenceimage17"``.

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
                f"homology_dimensions names {len(given)} dimension(s), but every sample of X has "
                f"{width} diagram(s)."
            )
        if any(not isinstance(q, Integral) or q < 0 for q in given):
            raise ValueError(
                f"homology_dimensions must be non-negative integers; got {quoted(given)}."
            )
        return tuple(int(q) for q in given)

    def _columns(self, samples: list[Any]) -> list[list[FloatArray]]:
        """One list of checked diagrams per homology dimension."""
        width = len(self.homology_dimensions_)
        columns: list[list[FloatArray]] = [[] for _ in range(width)]
        for i, sample in enumerate(samples):
            diagrams = [sample] if self.single_ else list(sample)
            if _is_diagram(sample) != self.single_ or len(diagrams) != width:
                raise ValueError(f"X[{i}] must hold {width} diagram(s), as in fit.")
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
        """A clone of the vectoriser, in a range."""
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
        if self.value_range is None:
            return True
        return learns(self._in_range(*self.value_range))

    def _pad(self, column: list[FloatArray]) -> list[FloatArray]:
        """Clip diagrams to the range; an empty one becomes one point of no persistence.

        Several vectorisers of GUDHI fail on empty diagrams, and none tells a point on the
        diagonal from nothing.
        """
        low, high = self.value_range_
        ghost = np.array([[low, low]])
        if isinstance(self.vectorizer, SortedLifetimes):
            # Clipped, an essential class would be a lifetime as long as the range.
            column = [d[np.isfinite(d).all(axis=1)] for d in column]
        return [np.clip(d, low, high) if len(d) else ghost for d in column]

    def _apply(self, vectorizer: BaseEstimator, column: list[FloatArray]) -> FloatArray:
        # Normalising by a total persistence of zero is no error: such features are zero.
        with np.errstate(invalid="ignore", divide="ignore"):
            features = np.asarray(vectorizer.transform(self._pad(column)))
        features = features.reshape(len(column), -1)
        if np.iscomplexobj(features):
            features = np.hstack([features.real, features.imag])
        return np.nan_to_num(features.astype(float), nan=0.0)

    def __getstate__(self) -> dict[str, Any]:
        """Swap anonymous defaults of GUDHI for ones that pickle."""
        state = super().__getstate__()
        changes = {} if self.vectorizer is None else _named_defaults(self.vectorizer)
        if changes:
            state["vectorizer"] = clone(self.vectorizer).set_params(**changes)
        return state


def _persistence_weight(point: FloatArray) -> float:
    """Weight of a (birth, persistence) point in a persistence image: its persistence."""
    return point[1]


class _DefaultParameter:
    """A default of another class's constructor, looked up when it is called.

    GUDHI's weights are anonymous functions, which do not pickle; this stands in for one of them
    and does.
    """

    def __init__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name

    def __call__(self, point: FloatArray) -> float:
        """Call the default function."""
        return inspect.signature(self.owner).parameters[self.name].default(point)


def _named_defaults(vectorizer: BaseEstimator) -> dict[str, Any]:
    """Stand-ins for the anonymous functions among GUDHI's default parameters."""
    return {
        name: _DefaultParameter(type(vectorizer), name)
        for name, value in vectorizer.get_params(deep=False).items()
        if getattr(value, "__name__", "") == "<lambda>"
        and getattr(value, "__module__", "").startswith("gudhi.")
    }


def _is_unset(value: Any) -> bool:
    """Whether a range parameter is still GUDHI's default of NaNs."""
    if not isinstance(value, list | tuple | np.ndarray):
        return False
    return all(isinstance(v, Real) and math.isnan(v) for v in value)


def _checked(diagram: ArrayLike, name: str) -> FloatArray:
    """A diagram in which everything is born before it dies."""
    diagram = as_diagram(diagram, name)
    if (diagram[:, 1] < diagram[:, 0]).any():
        raise ValueError(
            f"{name} holds deaths before births: X must be diagrams, as PrivatePersistence returns "
            "them, not points; diagrams of superlevel sets have to be negated."
        )
    return diagram


def _is_diagram(sample: Any) -> bool:
    """Whether a sample is one diagram rather than a list of diagrams."""
    if isinstance(sample, Filtration):
        raise ValueError("X holds filtrations: put PrivatePersistence before DiagramFeatures.")
    refuse_dask(sample)
    if isinstance(sample, np.ndarray) and sample.dtype != object:
        return sample.ndim == 2
    return not any(np.ndim(part) == 2 or np.size(part) == 0 for part in sample)
