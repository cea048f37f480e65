"""What private releases of functions on grids share: their input, their promise, and who paid."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import effective_n_jobs
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
from sklearn_dptda.utils._clouds import check_collection, refuse_repeated
from sklearn_dptda.utils._sklearn import Interval, ListInputMixin, _fit_context


class GridFunction(NamedTuple):
    """Values on a grid, which are private, and the public numbers that a release depends on."""

    values: FloatArray
    sensitivity: float
    upper: float
    # By how much the values are off where points were moved to a lattice; zero for bare arrays.
    approximation_error: float
    # The same function under smaller caps.
    smaller: tuple[Capped, ...] = ()
    # The public simplices that it lives on, where these are not a grid.
    complex: LandmarkComplex | None = None

    @property
    def caps(self) -> list[tuple[float, float]]:
        """Sensitivities and upper bounds, under the default cap and the smaller ones."""
        return [(self.sensitivity, self.upper), *(each[1:] for each in self.smaller)]

    @property
    def n_dimensions(self) -> int:
        """Homology dimensions from this one on are not asked for.

        On grids of one coordinate there are no loops, but asking for them is no mistake; edges
        without triangles would have loops that nothing fills.
        """
        return max(2, self.values.ndim) if self.complex is None else self.complex.dimension

    def diagrams(self, dimensions: Iterable[int], n_caps: int = 1) -> list[list[FloatArray]]:
        """Exact diagrams under the first caps, by cap and dimension; values below zero are zero."""
        values = [self.values, *(each.values for each in self.smaller)]
        return [
            sublevel_diagrams(np.maximum(each, 0.0), dimensions, upper, self.complex)
            for each, (_, upper) in list(zip(values, self.caps, strict=True))[:n_caps]
        ]


class PrivateGridPersistence(
    ListInputMixin, PrivateEstimatorMixin, TransformerMixin, BaseEstimator
):
    """Releases in ``transform`` what it promised in ``fit``, for functions of known sensitivity.

    Subclasses have the parameters of the constraints below. They say in ``_guarantee`` what they
    promise, and in ``_set_errors`` what is known of their errors before a release.
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
        """Check parameters and input; nothing is learnt, nothing is released.

        %(fit_functions)s
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
        """Refuse losses for which noise cannot be scaled."""
        self._check_epsilon()

    def _set_errors(self, functions: list[GridFunction]) -> None:
        """Set the attributes that say how far a release is off, and warn where it says nothing."""
        raise NotImplementedError

    def _guarantee(self, public_bounds: bool) -> PrivacyGuarantee:
        """Guarantee of one call of ``transform``; it has to be known before ``fit``."""
        raise NotImplementedError

    def _guarantee_ahead(self, n_features: int | None) -> PrivacyGuarantee:
        return self._guarantee(True)

    def _guarantee_of_release(self) -> PrivacyGuarantee:
        """What one call of ``transform`` pays for: a private box has been paid for already."""
        public = self.privacy_guarantee_.public_parameters
        return replace(self._own_at_fit, public_parameters=public)

    def _promises_apart(self) -> list[PrivacyGuarantee]:
        """The release itself, and what was paid for the private box of the filtrations."""
        return [p for p in (self._own_at_fit, self._bounds_at_fit) if p is not None]

    def _names(self) -> list[str]:
        """Names of the homology dimensions, known before ``fit``."""
        return [f"H{q}" for q in check_dimensions(self.homology_dimensions)[0]]

    def _read(self, X: list[Any]) -> list[GridFunction]:
        """Read filtrations and bare arrays, and refuse what can never be released."""
        functions = []
        for i, item in enumerate(X):
            values, upper, complex = read_function(item, f"X[{i}]", self.upper)
            sensitivity, error = self.sensitivity, 0.0
            smaller: tuple[Capped, ...] = ()
            if isinstance(item, Filtration):
                if self.sensitivity is not None:
                    raise ValueError(
                        "sensitivity must stay None for filtrations that carry their own."
                    )
                sensitivity, error = item.sensitivity, float(item.approximation_error)
                # A bound that the caller states is the cap.
                smaller = item.smaller if self.upper is None else ()
            elif self.sensitivity is None or self.upper is None:
                raise ValueError(
                    f"X[{i}] is a bare array: its sensitivity and upper bound are not known. "
                    "Pass filtrations from DTMFiltration, or state sensitivity and upper "
                    "yourself, from public knowledge."
                )
            functions.append(GridFunction(values, sensitivity, upper, error, smaller, complex))
        # Dimensions that functions of so few coordinates never have are refused, but for components
        # and loops.
        highest = max(self.homology_dimensions_)
        if highest >= max(function.n_dimensions for function in functions):
            raise ValueError(
                f"homology_dimensions={quoted(self.homology_dimensions)}: functions of so few "
                f"coordinates have no H{highest}."
            )
        return functions

    def _read_in_transform(self, X: Functions) -> tuple[list[Any], list[GridFunction]]:
        """Read filtrations, and refuse those for which the promise would not be true."""
        check_is_fitted(self)
        self._check_promise()
        X = check_collection(X)
        functions = self._read(X)
        if math.isfinite(self.epsilon):
            refuse_repeated([x.values if isinstance(x, Filtration) else x for x in X])
        if self.privacy_guarantee_.public_parameters and not _have_public_bounds(X):
            raise ValueError(
                "X has filtrations whose bounds were computed from the data, which those in fit "
                "had not: privacy_guarantee_ would not be true."
            )
        if _unit(X) != self._own_at_fit.unit:
            raise ValueError(
                "X has filtrations of other records than those in fit, points or people: "
                "privacy_guarantee_ would not be true."
            )
        ids = [getattr(p, "release_id", None) for p in (_paid_bounds(X), self._bounds_at_fit)]
        if ids[0] != ids[1]:
            raise ValueError(
                "X has filtrations in another private box than those in fit: privacy_guarantee_ "
                "would not be true."
            )
        # What a bad number of workers can make fail, fails before the payment.
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
    """What one record of the filtrations is; of bare arrays it is one point."""
    units = {getattr(item, "unit", POINT) for item in X}
    if len(units) > 1:
        raise ValueError(
            "X has filtrations of different records, some of points and some of people: release "
            "them apart."
        )
    return units.pop()


def _have_public_bounds(X: Sequence[Any]) -> bool:
    """Whether no filtration says that its box was computed from the data."""
    return all(getattr(item, "public_bounds", True) for item in X)


def _paid_bounds(X: Sequence[Any]) -> PrivacyGuarantee | None:
    """What was paid for the private box of the filtrations, or None; one box for all."""
    paid = [item for item in X if getattr(item, "bounds_guarantee", None) is not None]
    if not paid:
        return None
    # Two boxes that happen to be equal are two releases.
    boxes = {item.bounds_guarantee.release_id for item in paid}
    if len(boxes) > 1 or len(paid) < len(X):
        raise ValueError("X has filtrations in several boxes, and a private one among them.")
    return paid[0].bounds_guarantee


def pure_guarantee(
    estimator: BaseEstimator, mechanism: str, released: str, public_bounds: bool = True
) -> PrivacyGuarantee:
    """Guarantee of a release about clouds that needs no delta, drawn in integers."""
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
