"""What releases of diagrams promise, and at which rate their draws spend it."""

import math
from copy import copy
from functools import reduce
from numbers import Integral, Real
from operator import add

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.validation import check_array, check_is_fitted

from sklearn_dptda.filtration import GridFiltration
from sklearn_dptda.persistence._cubical import BaseGridPersistence, check_dimensions
from sklearn_dptda.persistence._error_statement import (
    WHOLE,
    approximation_error,
    warn_of_lattice,
    warn_of_noise,
)
from sklearn_dptda.persistence._mechanisms import (
    CLIPPED_SHARE,
    MAX_SIZE,
    PART_OF_SCALE,
    epsilon_of_draws,
    rate_of_draw,
)
from sklearn_dptda.privacy import (
    PrivacyAccountant,
    PrivacyGuarantee,
    PrivateEstimatorMixin,
    bounded_range_rho,
    pure_rho,
)
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.utils._clouds import check_collection, refuse_repeated
from sklearn_dptda.utils._frames import refuse_dask
from sklearn_dptda.utils._sklearn import Interval

_MECHANISMS = {
    "exact": "exponential mechanism (exact draw in integer arithmetic)",
    "mcmc": "exponential mechanism (Markov chain of finite length)",
}


def guarantee_of_diagrams(estimator, dimensions, public_bounds=True):
    """Guarantee of one call of ``transform`` of a :class:`PrivatePersistence`."""
    epsilon = float(estimator.epsilon)
    n_draws = 1 if estimator.utility == "max" else len(dimensions)
    free = math.isinf(epsilon)
    rate = for_diagrams = epsilon_of_draws(estimator)
    if not free:
        rate = rate_of_draw(for_diagrams, estimator.delta, estimator.utility, dimensions)
    pure = rate * n_draws <= for_diagrams
    rho = n_draws * bounded_range_rho(rate)
    names = ", ".join(f"H{q}" for q in dimensions)
    released = f"one persistence diagram per cloud and dimension ({names})"
    if estimator.mechanism == "exact" and math.isfinite(rate):
        least = f"1/{PART_OF_SCALE} of the entropic scale or 1/{MAX_SIZE // 2} of the range"
        released += f", in steps of {least}"
    counted = ""
    if estimator.clipped_share:
        counted = ", and the discrete Laplace mechanism"
        released += ", and the share of its points outside the bounds"
        rho += pure_rho(CLIPPED_SHARE * epsilon)
    return PrivacyGuarantee(
        epsilon=epsilon,
        delta=0.0 if pure else float(estimator.delta),
        adjacency="replace-one",
        unit="one point of a cloud",
        mechanism=_MECHANISMS[estimator.mechanism] + counted,
        released=released,
        seeded=estimator.random_state is not None,
        exact=estimator.mechanism == "exact" or free,
        public_parameters=public_bounds,
        rho=rho,
    )


def pure_guarantee(estimator, mechanism, released, public_bounds=True):
    """Guarantee of a release about clouds that needs no delta, drawn in integers."""
    epsilon = float(estimator.epsilon)
    return PrivacyGuarantee(
        epsilon=epsilon,
        delta=0.0,
        adjacency="replace-one",
        unit="one point of a cloud",
        mechanism=f"{mechanism} (exact draw in integer arithmetic)",
        released=released,
        seeded=estimator.random_state is not None,
        public_parameters=public_bounds,
        rho=pure_rho(epsilon),
    )


def have_public_bounds(X):
    """Whether no filtration says that its box was computed from the data."""
    return all(getattr(item, "public_bounds", True) for item in X)


def paid_bounds(X):
    """What was paid for the private box of the filtrations, or None; one box for all."""
    paid = [item for item in X if getattr(item, "bounds_guarantee", None) is not None]
    if not paid:
        return None
    # Two boxes that happen to be equal are two releases.
    boxes = {item.bounds_guarantee.release_id for item in paid}
    if len(boxes) > 1 or len(paid) < len(X):
        raise ValueError("X has filtrations in several boxes, and a private one among them.")
    return paid[0].bounds_guarantee


# What private releases of functions share: sensitivities, promises, what can fail early.

# Losses that are finite are not larger.
_MOST_EPSILON = 1e6


class PrivateGridPersistence(PrivateEstimatorMixin, BaseGridPersistence):
    """Releases in ``transform`` what it promised in ``fit``, for functions of known sensitivity.

    Subclasses have the parameters ``homology_dimensions``, ``sensitivity``, ``upper`` and
    ``n_jobs``, besides those of :class:`PrivateEstimatorMixin`.
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

    def _read_in_fit(self, X):
        """Read filtrations and dimensions; refuse what can never be released."""
        self.homology_dimensions_, self.single_ = check_dimensions(self.homology_dimensions)
        read = self._read(X)
        self._check_homology(read)
        return read

    def _warn_of_noise(self, X, read, what):
        """Warn where no feature in the range is sure to be seen, or where a lattice is coarse."""
        if math.isinf(self.epsilon):
            return
        errors = map(approximation_error, X)
        warn_of_lattice([(s, u, off) for (_, s, u), off in zip(read, errors, strict=True)])
        uppers = np.array([upper for _, _, upper in read])
        if (self._least_seen(X, read) >= WHOLE * uppers).all():
            warn_of_noise(what, self.epsilon, self._epsilon_that_shows(X, read, uppers))

    def _least_seen(self, X, read):
        """For each filtration the persistence from which on a feature is sure to be seen."""

    def _epsilon_that_shows(self, X, read, uppers):
        """Least epsilon, to a tenth, at which a feature is seen, and its length; or None.

        A quarter of the range, or half way from thresholds that are higher to its end.
        """
        at, low, high = copy(self), float(self.epsilon), _MOST_EPSILON
        least = at.set_params(epsilon=high)._least_seen(X, read)
        wanted = np.where(least < uppers / 4, uppers / 4, (uppers + least) / 2)
        if not (least < wanted).any():
            return None
        while high > 1.1 * low:
            middle = math.sqrt(low * high)
            enough = (at.set_params(epsilon=middle)._least_seen(X, read) <= wanted).any()
            low, high = (low, middle) if enough else (middle, high)
        seen = at.set_params(epsilon=high)._least_seen(X, read) <= wanted
        return high, float(wanted[seen].min())

    def _guarantee_ahead(self, n_features):
        return self._guarantee(True)

    def _names(self):
        """Names of the homology dimensions, known before fit."""
        return ", ".join(f"H{q}" for q in check_dimensions(self.homology_dimensions)[0])

    def _promise_for(self, X, own):
        """Promise a release, and what was paid for the private box of the filtrations."""
        self._own_at_fit, self._bounds_at_fit = own, paid_bounds(X)
        self._promise(reduce(add, self._promises_apart()))

    def _promises_apart(self):
        return [self._own_at_fit] + [self._bounds_at_fit] * (self._bounds_at_fit is not None)

    def _read_in_transform(self, X):
        """Read filtrations, and refuse those for which the promise would not be true."""
        check_is_fitted(self)
        self._check_promise()
        X = check_collection(X)
        read = self._read(X)
        if math.isfinite(self.epsilon):
            refuse_repeated([x.values if isinstance(x, GridFiltration) else x for x in X])
        self._check_homology(read)
        if self.privacy_guarantee_.public_parameters and not have_public_bounds(X):
            raise ValueError(
                "X has filtrations whose bounds were computed from the data, which those in fit "
                "had not: privacy_guarantee_ would not be true."
            )
        if _id_of(paid_bounds(X)) != _id_of(self._bounds_at_fit):
            raise ValueError(
                "X has filtrations in another private box than those in fit: privacy_guarantee_ "
                "would not be true."
            )
        # What a bad number of workers can make fail, fails before the payment.
        effective_n_jobs(self.n_jobs)
        return read

    def _rows_of_release(self, rows, name, X, at_fit):
        """Check rows of a release, and find their public numbers: of ``fit``, or of ``X``."""
        check_is_fitted(self)
        self._check_promise()
        refuse_dask(rows, name)
        rows = check_array(rows, input_name=name)
        width = len(self.get_feature_names_out())
        if rows.shape[1] != width:
            raise ValueError(f"{name} must have {width} columns; got {rows.shape[1]}.")
        numbers = at_fit
        if X is not None:
            X = check_collection(X)
            numbers = self._public_numbers(X, self._read(X))
        if len(numbers) != len(rows):
            raise ValueError(
                f"{name} has {len(rows)} rows, and there are {len(numbers)} filtrations"
                f"{' in fit' if X is None else ''}: pass as X those that were released."
            )
        return rows, numbers

    def _check_homology(self, read):
        """Refuse to sell what is always empty; components and loops are offered of anything."""
        most = max(2, *(values.ndim for values, _, _ in read))
        if max(self.homology_dimensions_) >= most:
            raise ValueError(
                f"homology_dimensions={quoted(self.homology_dimensions)}: functions of so few "
                f"coordinates have no H{max(self.homology_dimensions_)}."
            )

    def _read(self, X):
        read = super()._read(X)
        for i, (_, sensitivity, upper) in enumerate(read):
            if sensitivity is None and (self.sensitivity is None or upper is None):
                raise ValueError(
                    f"X[{i}] is a bare array: its sensitivity and upper bound are not known. "
                    "Pass filtrations from DTMFiltration, or state sensitivity and upper "
                    "yourself, from public knowledge."
                )
            if sensitivity is not None and self.sensitivity is not None:
                raise ValueError("sensitivity must stay None for filtrations that carry their own.")
        return [
            (values, self.sensitivity if own is None else own, upper) for values, own, upper in read
        ]

    def __sklearn_tags__(self):
        """Describe the input and the release."""
        tags = super().__sklearn_tags__()
        tags.privacy.input = "functions"
        tags.privacy.releases = "transform"
        tags.privacy.adjacency = "replace-one"
        return tags


def _id_of(release):
    return None if release is None else release.release_id
