"""Lengths of the longest features in whole steps, and the base of estimators that release them.

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
from sklearn_dptda.utils._sklearn import Interval
from sklearn_dptda.utils._tasks import run, tasks_may_repeat
from sklearn_dptda.utils._validation import check_collection, refuse_dask

# Binary digits of the number of steps per sensitivity. With 2**16 to 2**17 steps, rounding the
# sensitivity up to whole steps adds less than one part in 2**16.
_STEP_BITS = 16
# Largest ratio of the upper bound to a step. Sums of hundreds of persistences then remain exact in
# the 53 bits of floating point.
_MAX_STEPS = 2.0**46
# Smallest exponent of a step, above that of the smallest normal number, 2**-1022.
_MIN_EXPONENT = -1000
# Largest finite epsilon that is accepted, and therefore the largest that a warning recommends.
_MAX_EPSILON = 1e6


@dataclass(frozen=True)
class LifetimeLattice:
    """Levels in whole steps of a power of two, and the sensitivity of persistences in steps.

    Levels are rounded down. If ``x' <= x + D`` and ``D`` is at most ``K`` steps, the rounded levels
    satisfy ``i' <= i + K``, so persistences change by at most ``sensitivity = 2 K`` steps.
    """

    levels: FixedPoint
    sensitivity: int

    @property
    def step(self) -> float:
        """Distance between neighbouring levels."""
        return self.levels.step


def make_lattice(sensitivity: float, upper: float, finer: float = 1.0) -> LifetimeLattice:
    """Return the lattice for functions up to ``upper`` with this sensitivity.

    ``finer`` is the ratio of the sensitivity to the scale of the noise. The steps are short enough
    for this scale.
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
    """Return the longest persistences of finite classes in decreasing order, padded with zeros.

    ``numbers`` gives the number of persistences for each homology dimension. They are in steps, or
    exact without a lattice.
    """
    diagrams = sublevel_diagrams(np.maximum(values, 0.0), list(numbers), upper)
    return lifetimes_of(diagrams, numbers, lattice)


def lifetimes_of(
    diagrams: Sequence[FloatArray], numbers: Mapping[int, int], lattice: LifetimeLattice | None
) -> list[NDArray[Any]]:
    """Return the longest persistences of finite classes of given diagrams."""
    longest = []
    for diagram, (q, number) in zip(diagrams, numbers.items(), strict=True):
        ends = diagram if lattice is None else lattice.levels.encode(diagram)
        lives = np.sort(ends[:, 1] - ends[:, 0])[::-1]
        # The essential component has the largest persistence. It is not counted here.
        kept = lives[1 if q == 0 else 0 :][:number]
        longest.append(np.pad(kept, (0, number - len(kept))))
    return longest


class PrivateLifetimes(PrivateGridPersistence):
    """Base of estimators that release numbers about the longest persistences of each function.

    Subclasses define the scale of the noise in ``_scale``, the draw in ``_task``, its error in
    ``_error``, and in ``_least_seen`` the shortest feature that is sure to be visible.
    """

    _parameter_constraints = {
        **PrivateGridPersistence._parameter_constraints,
        "confidence": [Interval(Real, 0, 1, closed="neither")],
    }

    def _scale(self, function: GridFunction) -> tuple[Any, ...]:
        """Return the arguments of a draw that follow from the public numbers of a function."""
        raise NotImplementedError

    def _task(self) -> tuple[Any, ...]:
        """Return the function that draws one row, and its first arguments, common to all functions.

        The other arguments are the function, the result of :meth:`_scale` for it, and a seed.
        """
        raise NotImplementedError

    def _error(self, function: GridFunction) -> float:
        """Return the error of a release at the given confidence, from public numbers."""
        raise NotImplementedError

    def _least_seen(self, functions: list[GridFunction]) -> FloatArray:
        """Return the shortest persistence that is sure to be visible, for each function."""
        raise NotImplementedError

    def _errors(self, functions: list[GridFunction]) -> FloatArray:
        return np.array([self._error(function) for function in functions])

    def _draw(self, X: Functions) -> tuple[NDArray[Any], list[GridFunction], Paid]:
        """Spend the budget, and draw one row for each function, which are returned, too."""
        _, functions = self._read_in_transform(X)
        function, *common = self._task()
        # Errors that depend on public numbers are raised before any budget is spent.
        scales = [self._scale(f) for f in functions]
        # The budget of a private box has already been spent.
        own = self._guarantee_of_release()
        repeat = tasks_may_repeat(self.n_jobs)
        with self._paid(own, len(functions), may_repeat=repeat, records=functions) as seeds:
            clouds = [
                (f, *scale, seed) for f, scale, seed in zip(functions, scales, seeds, strict=True)
            ]
            return np.array(run(function, clouds, *common, n_jobs=self.n_jobs)), functions, seeds

    def _rows_of_release(
        self,
        rows: ArrayLike,
        name: str,
        X: Functions | None,
        known: FloatArray,
    ) -> tuple[NDArray[Any], FloatArray]:
        """Check rows of a release, and return them with their errors.

        The errors are those of the filtrations ``X``, or ``known`` if ``X`` is None.
        """
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
                f"{name} has {len(checked)} rows, but there are {len(errors)} filtrations"
                f"{' in the last fit or transform' if X is None else ''}. Pass the filtrations of "
                "this release as X."
            )
        return checked, errors

    def _warn_of_noise(self, functions: list[GridFunction], what: str) -> None:
        """Warn if no feature in the range is sure to be visible, or if a lattice is coarse."""
        if math.isinf(self.epsilon):
            return
        warn_of_lattice(functions)
        uppers = np.array([function.upper for function in functions])
        if (self._least_seen(functions) >= VISIBLE_SHARE * uppers).all():
            warn_of_noise(what, self.epsilon, self._epsilon_that_shows(functions, uppers))

    def _epsilon_that_shows(
        self, functions: list[GridFunction], uppers: FloatArray
    ) -> tuple[float, float] | None:
        """Return the least epsilon, to within 10 %, that shows a feature, and its length; or None.

        The length is a quarter of the range, or halfway between a higher threshold and the end of
        the range.
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
