"""Lengths of the longest features in whole steps, and what private numbers about them share.

Proof: doc/theory/private_profiles.md, "One record moves persistences by twice the sensitivity".
"""

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, check_is_fitted

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.persistence._cubical import Functions, sublevel_diagrams
from sklearn_dptda.persistence._error_statement import (
    VISIBLE_SHARE,
    warn_of_lattice,
    warn_of_noise,
)
from sklearn_dptda.persistence._mechanisms import too_far_apart
from sklearn_dptda.persistence._private_grid_persistence import GridFunction, PrivateGridPersistence
from sklearn_dptda.privacy import FixedPoint
from sklearn_dptda.privacy._estimator import Paid
from sklearn_dptda.utils._clouds import check_collection
from sklearn_dptda.utils._frames import refuse_dask
from sklearn_dptda.utils._sklearn import Interval
from sklearn_dptda.utils._tasks import run, tasks_may_repeat

# Binary digits of the steps per sensitivity: 2**16 to 2**17 steps, so that rounding the sensitivity
# up to whole steps adds less than one part in 2**16.
_STEP_BITS = 16
# Largest ratio of the upper bound and a step: sums of hundreds of persistences stay exact in the
# 53 bits of floating point.
_MAX_STEPS = 2.0**46
# Smallest exponent of a step, above that of the smallest normal number, 2**-1022.
_MIN_EXPONENT = -1000
# Largest finite loss that is accepted, and so that is named as one that shows a feature.
_MAX_EPSILON = 1e6


@dataclass(frozen=True)
class LifetimeLattice:
    """Levels in whole steps, of a power of two, of which one record moves none further than half.

    Levels are rounded down, which is exact. Where ``x' <= x + D`` and ``D`` is at most ``K`` steps,
    the rounded levels obey ``i' <= i + K``: rounding is a map of the values of the function, so
    that births and deaths in steps are those of rounded functions at most ``K`` apart, and
    persistences move by at most ``sensitivity = 2 K`` steps.
    """

    levels: FixedPoint
    sensitivity: int

    @property
    def step(self) -> float:
        """Distance of neighbouring levels."""
        return self.levels.step


def make_lattice(sensitivity: float, upper: float, finer: float = 1.0) -> LifetimeLattice:
    """Lattice for functions up to ``upper``, of which one record moves no value further.

    ``finer`` says how many times less than the sensitivity the noise is: steps are not longer.
    """
    bits = max(_STEP_BITS, math.frexp(finer)[1])
    exponent = math.frexp(sensitivity)[1] - 1 - bits
    if exponent < _MIN_EXPONENT or math.ldexp(upper / _MAX_STEPS, bits) > sensitivity:
        raise too_far_apart(sensitivity, upper)
    return LifetimeLattice(FixedPoint(exponent), 2 * math.ceil(math.ldexp(sensitivity, -exponent)))


def longest_lifetimes(
    values: FloatArray,
    upper: float,
    numbers: Mapping[int, int],
    lattice: LifetimeLattice | None = None,
) -> list[NDArray[Any]]:
    """Longest persistences of finite classes, in decreasing order, zeros where there are no more.

    ``numbers`` says for each homology dimension how many. In steps, or exact without a lattice.
    """
    diagrams = sublevel_diagrams(np.maximum(values, 0.0), list(numbers), upper)
    return lifetimes_of(diagrams, numbers, lattice)


def lifetimes_of(
    diagrams: Sequence[FloatArray], numbers: Mapping[int, int], lattice: LifetimeLattice | None
) -> list[NDArray[Any]]:
    """The same of diagrams."""
    longest = []
    for diagram, (q, number) in zip(diagrams, numbers.items(), strict=True):
        ends = diagram if lattice is None else lattice.levels.encode(diagram)
        lives = np.sort(ends[:, 1] - ends[:, 0])[::-1]
        # None lives longer than the essential component, which is kept apart.
        kept = lives[1 if q == 0 else 0 :][:number]
        longest.append(np.pad(kept, (0, number - len(kept))))
    return longest


class PrivateLifetimes(PrivateGridPersistence):
    """Releases numbers about the longest persistences, one row for each function.

    Subclasses say in ``_scale`` how large the noise is, in ``_task`` what is drawn, in ``_error``
    how far it is off, and in ``_least_seen`` how long a feature has to be to be seen.
    """

    _parameter_constraints = {
        **PrivateGridPersistence._parameter_constraints,
        "confidence": [Interval(Real, 0, 1, closed="neither")],
    }

    def _scale(self, function: GridFunction) -> tuple[Any, ...]:
        """What a draw needs of the public numbers of a function."""
        raise NotImplementedError

    def _task(self) -> tuple[Any, ...]:
        """Function that draws one row, and its first arguments, the same for all functions.

        The others are the function, what :meth:`_scale` says of it, and a seed.
        """
        raise NotImplementedError

    def _error(self, function: GridFunction) -> float:
        """Error of a release at the confidence, a function of public numbers."""
        raise NotImplementedError

    def _least_seen(self, functions: list[GridFunction]) -> FloatArray:
        """For each function the persistence from which on a feature is sure to be seen."""
        raise NotImplementedError

    def _errors(self, functions: list[GridFunction]) -> FloatArray:
        return np.array([self._error(function) for function in functions])

    def _draw(self, X: Functions) -> tuple[NDArray[Any], Paid]:
        """Pay, and draw one row for each function."""
        _, functions = self._read_in_transform(X)
        function, *common = self._task()
        # Whatever public numbers can make fail, fails before the payment.
        scales = [self._scale(f) for f in functions]
        # A private box has been paid for already.
        own = self._guarantee_of_release()
        repeat = tasks_may_repeat(self.n_jobs)
        with self._paid(own, len(functions), may_repeat=repeat, records=functions) as seeds:
            clouds = [
                (f, *scale, seed) for f, scale, seed in zip(functions, scales, seeds, strict=True)
            ]
            return np.array(run(function, clouds, *common, n_jobs=self.n_jobs)), seeds

    def _rows_of_release(
        self,
        rows: ArrayLike,
        name: str,
        X: Functions | None,
        known: FloatArray,
    ) -> tuple[NDArray[Any], FloatArray]:
        """Check rows of a release, and find their errors: those that are known, or of ``X``."""
        check_is_fitted(self)
        self._check_promise()
        refuse_dask(rows, name)
        checked: NDArray[Any] = check_array(rows, input_name=name)
        width = len(self.get_feature_names_out())
        if checked.shape[1] != width:
            raise ValueError(f"{name} must have {width} columns; got {checked.shape[1]}.")
        errors = known if X is None else self._errors(self._read(check_collection(X)))
        if len(errors) != len(checked):
            raise ValueError(
                f"{name} has {len(checked)} rows, and there are {len(errors)} filtrations"
                f"{' in the last fit or transform' if X is None else ''}: pass as X those that "
                "were released."
            )
        return checked, errors

    def _warn_of_noise(self, functions: list[GridFunction], what: str) -> None:
        """Warn where no feature in the range is sure to be seen, or where a lattice is coarse."""
        if math.isinf(self.epsilon):
            return
        warn_of_lattice(functions)
        uppers = np.array([function.upper for function in functions])
        if (self._least_seen(functions) >= VISIBLE_SHARE * uppers).all():
            warn_of_noise(what, self.epsilon, self._epsilon_that_shows(functions, uppers))

    def _epsilon_that_shows(
        self, functions: list[GridFunction], uppers: FloatArray
    ) -> tuple[float, float] | None:
        """Least epsilon, to a tenth, at which a feature is seen, and its length; or None.

        The length is a quarter of the range, or half way to its end from thresholds that are
        higher.
        """
        twin = copy(self)

        def least_seen(epsilon: float) -> FloatArray:
            return twin.set_params(epsilon=epsilon)._least_seen(functions)

        low, high = float(self.epsilon), _MAX_EPSILON
        least = least_seen(high)
        wanted = np.where(least < uppers / 4, uppers / 4, (uppers + least) / 2)
        if not (least < wanted).any():
            return None
        while high > 1.1 * low:
            middle = math.sqrt(low * high)
            enough = (least_seen(middle) <= wanted).any()
            low, high = (low, middle) if enough else (middle, high)
        return high, float(wanted[least_seen(high) <= wanted].min())
