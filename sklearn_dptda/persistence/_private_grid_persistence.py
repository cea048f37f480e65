"""Base of the private releases of functions: input, guarantee, and privacy budget."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import FloatArray
from sklearn_dptda.filtration._complex import LandmarkComplex
from sklearn_dptda.filtration._filtration import POINT, Capped, Filtration
from sklearn_dptda.persistence._cubical import (
    Functions,
    check_dimensions,
    read_function,
    sublevel_diagrams,
)
from sklearn_dptda.privacy import (
    PrivacyAccountant,
    PrivacyGuarantee,
    PrivateEstimatorMixin,
    pure_rho,
)
from sklearn_dptda.privacy._estimator import refused_without_trace
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.utils._sklearn import Interval, ListInputMixin, _fit_context
from sklearn_dptda.utils._validation import check_collection, refuse_repeated

# Sensitivity and upper bound of a function under one cap.
Public: TypeAlias = tuple[float, float]
# These numbers under each cap, and the error of the function itself.
PublicNumbers: TypeAlias = tuple[list[Public], float]


class GridFunction(NamedTuple):
    """Values of a function, which are private, and the public numbers that a release depends on."""

    values: FloatArray
    sensitivity: float
    upper: float
    # Error of the values if points were moved to a lattice; zero for arrays.
    approximation_error: float
    # The same function under smaller caps of the distances.
    smaller: tuple[Capped, ...] = ()
    # The public simplices of the function, or None for a grid.
    complex: LandmarkComplex | None = None

    @property
    def caps(self) -> list[Public]:
        """Sensitivities and upper bounds, under the default cap and the smaller ones."""
        return [(self.sensitivity, self.upper), *(each[1:] for each in self.smaller)]

    @property
    def n_dimensions(self) -> int:
        """Number of homology dimensions that may be requested.

        On a grid with one coordinate there are no loops, but requesting them is not an error. On a
        complex of edges without triangles there would be loops that are never filled.
        """
        return max(2, self.values.ndim) if self.complex is None else self.complex.dimension

    def diagrams(self, dimensions: Iterable[int], n_caps: int = 1) -> list[list[FloatArray]]:
        """Compute exact diagrams under the first caps, by cap and dimension.

        Values below zero count as zero.
        """
        values = [self.values, *(each.values for each in self.smaller)]
        return [
            sublevel_diagrams(np.maximum(each, 0.0), dimensions, upper, self.complex)
            for each, (_, upper) in list(zip(values, self.caps, strict=True))[:n_caps]
        ]


def public_numbers(functions: Sequence[GridFunction]) -> NDArray[np.void]:
    """Return the public numbers of each function as an array with one item for each."""
    most = max((len(function.caps) for function in functions), default=1)
    numbers = np.empty(len(functions), dtype=[("caps", float, (most, 2)), ("error", float)])
    numbers["caps"] = np.nan
    for row, function in zip(numbers, functions, strict=True):
        row["caps"][: len(function.caps)] = function.caps
        row["error"] = function.approximation_error
    return numbers


def numbers_of(laws: Iterable[Any]) -> list[PublicNumbers]:
    """Return the caps and the error of each function."""
    return [
        ([(a, b) for a, b in law["caps"].tolist() if not math.isnan(a)], float(law["error"]))
        for law in laws
    ]


class PrivateGridPersistence(
    ListInputMixin, PrivateEstimatorMixin, TransformerMixin, BaseEstimator
):
    """Base of estimators that release numbers about functions of known sensitivity.

    Subclasses define their guarantee in ``_guarantee``, and in ``_set_errors`` what is known about
    their errors before a release.
    """

    _parameter_constraints = {
        "epsilon": [Interval(Real, 0, None, closed="right")],
        "homology_dimensions": [Interval(Integral, 0, None, closed="left"), "array-like"],
        "sensitivity": [Interval(Real, 0, None, closed="neither"), None],
        "upper": [Interval(Real, 0, None, closed="neither"), None],
        "accountant": [PrivacyAccountant, None],
        "random_state": ["random_state", np.random.Generator],
        "n_jobs": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Integral, None, -1, closed="right"),
            None,
        ],
    }

    @fill_doc
    @_fit_context(prefer_skip_nested_validation=True)
    @refused_without_trace
    def fit(self, X: Functions, y: object = None) -> Self:
        """Check parameters and input. Nothing is learnt or released, and no budget is spent.

        Parameters
        ----------
        X : list of GridFiltration or of array-like
            Functions of the same kind as those that you will pass to ``transform``.
        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        self

        Warns
        -----
        UserWarning
            If the public numbers show that the release will consist of noise alone.
        """
        self._check_loss()
        X = check_collection(X)
        self.homology_dimensions_, self.single_ = check_dimensions(self.homology_dimensions)
        self._set_errors(self._read(X))
        own = replace(self._guarantee(_have_public_bounds(X)), unit=_unit(X))
        paid = _paid_bounds(X)
        self._promise(own if paid is None else own + paid)
        self._own_at_fit, self._bounds_at_fit = own, paid
        return self

    def _check_loss(self) -> None:
        """Raise an error if noise cannot be scaled for this privacy loss."""
        self._check_epsilon()

    def _set_errors(self, functions: list[GridFunction]) -> None:
        """Set the attributes that describe the error of a release, and warn if noise hides all."""
        raise NotImplementedError

    def _guarantee(self, public_bounds: bool) -> PrivacyGuarantee:
        """Return the guarantee of one call of ``transform``, which must be known before ``fit``."""
        raise NotImplementedError

    def _guarantee_ahead(self, n_features: int | None) -> PrivacyGuarantee:
        return self._guarantee(True)

    def _guarantee_of_release(self) -> PrivacyGuarantee:
        """Return the guarantee of one call of ``transform``, without that of a private box."""
        public = self.privacy_guarantee_.public_parameters
        return replace(self._own_at_fit, public_parameters=public)

    def _promises_apart(self) -> list[PrivacyGuarantee]:
        """Return the guarantees of the release itself and of the private box of the filtrations."""
        return [p for p in (self._own_at_fit, self._bounds_at_fit) if p is not None]

    def _names(self) -> list[str]:
        """Return the names of the homology dimensions, which are known before ``fit``."""
        return [f"H{q}" for q in check_dimensions(self.homology_dimensions)[0]]

    def _read(self, X: list[Any]) -> list[GridFunction]:
        """Read filtrations and arrays, and refuse those that can never be released."""
        functions = []
        for i, item in enumerate(X):
            values, upper, complex = read_function(item, f"X[{i}]", self.upper)
            sensitivity, error = self.sensitivity, 0.0
            smaller: tuple[Capped, ...] = ()
            if isinstance(item, Filtration):
                if self.sensitivity is not None:
                    raise ValueError(
                        "sensitivity must be None, because filtrations carry their own sensitivity."
                    )
                if item.sensitivity == 0:
                    raise ValueError(
                        f"X[{i}] is public, because it is a function of a released cloud: its "
                        "exact diagrams cost nothing. Use CubicalPersistence."
                    )
                sensitivity, error = item.sensitivity, float(item.approximation_error)
                # If the caller states an upper bound, it is the only cap.
                smaller = item.smaller if self.upper is None else ()
            elif self.sensitivity is None or self.upper is None:
                raise ValueError(
                    f"X[{i}] is an array, so its sensitivity and upper bound are unknown. Pass "
                    "filtrations from DTMFiltration, or set sensitivity and upper from public "
                    "knowledge."
                )
            functions.append(GridFunction(values, sensitivity, upper, error, smaller, complex))
        # Homology dimensions that are always empty for functions of so few coordinates are refused,
        # except for components and loops.
        highest = max(self.homology_dimensions_)
        if highest >= max(function.n_dimensions for function in functions):
            raise ValueError(
                f"homology_dimensions={quoted(self.homology_dimensions)} is too high: the "
                f"functions in X have no H{highest}."
            )
        return functions

    def _read_in_transform(self, X: Functions) -> tuple[list[Any], list[GridFunction]]:
        """Read filtrations, and refuse those that would make the guarantee of ``fit`` wrong."""
        check_is_fitted(self)
        self._check_promise()
        X = check_collection(X)
        functions = self._read(X)
        if math.isfinite(self.epsilon):
            refuse_repeated([x.values if isinstance(x, Filtration) else x for x in X])
        if self.privacy_guarantee_.public_parameters and not _have_public_bounds(X):
            raise ValueError(
                "X has filtrations whose bounds were computed from the data, unlike those in fit, "
                "so privacy_guarantee_ would be wrong. Pass public bounds to the filtration."
            )
        if _unit(X) != self._own_at_fit.unit:
            raise ValueError(
                "X has filtrations of other records (points or people) than those in fit, so "
                "privacy_guarantee_ would be wrong. Call fit with these filtrations."
            )
        ids = [getattr(p, "release_id", None) for p in (_paid_bounds(X), self._bounds_at_fit)]
        if ids[0] != ids[1]:
            raise ValueError(
                "X has filtrations in another private box than those in fit, so privacy_guarantee_ "
                "would be wrong. Call fit with these filtrations."
            )
        # An invalid number of workers raises an error before any budget is spent.
        effective_n_jobs(self.n_jobs)
        return X, functions

    def __sklearn_tags__(self) -> Tags:
        """Describe the input and the release."""
        tags = super().__sklearn_tags__()
        tags.privacy.input = "functions"
        tags.privacy.releases = "transform"
        tags.privacy.adjacency = "replace-one"
        return tags


def _unit(X: Sequence[Any]) -> str:
    """Return the privacy unit of the filtrations, which is one point for arrays."""
    units = {getattr(item, "unit", POINT) for item in X}
    if len(units) > 1:
        raise ValueError(
            "X has filtrations of different records, some of points and some of people. Release "
            "them separately."
        )
    return units.pop()


def _have_public_bounds(X: Sequence[Any]) -> bool:
    """Return whether no filtration has a box that was computed from the data."""
    return all(getattr(item, "public_bounds", True) for item in X)


def _paid_bounds(X: Sequence[Any]) -> PrivacyGuarantee | None:
    """Return the guarantee of the private box that all filtrations share, or None."""
    paid = [item for item in X if getattr(item, "bounds_guarantee", None) is not None]
    if not paid:
        return None
    # Two equal boxes may come from two releases, so their ids are compared.
    boxes = {item.bounds_guarantee.release_id for item in paid}
    if len(boxes) > 1 or len(paid) < len(X):
        raise ValueError(
            "X has filtrations in several boxes, at least one of which is private. Fit one "
            "filtration to all clouds."
        )
    return paid[0].bounds_guarantee


def pure_guarantee(
    estimator: BaseEstimator, mechanism: str, released: str, public_bounds: bool = True
) -> PrivacyGuarantee:
    """Return the guarantee of a release with delta 0 that is drawn in integers."""
    epsilon = float(estimator.epsilon)
    return PrivacyGuarantee(
        epsilon=epsilon,
        delta=0.0,
        adjacency="replace-one",
        unit=POINT,
        mechanism=f"{mechanism} (exact draw in integer arithmetic)",
        released=released,
        seeded=estimator.random_state is not None,
        public_parameters=public_bounds,
        rho=pure_rho(epsilon),
    )
