"""Warnings and errors about privacy."""

import math
import os
import sys
import warnings
from collections.abc import Iterator
from types import CodeType, FrameType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import joblib
import sklearn
import sklearn.model_selection._search

from sklearn_dptda.privacy._guarantee import PrivacyLoss


def code_of(*packages: ModuleType) -> tuple[str, ...]:
    """Return the folders of this package and others, as prefixes of file names."""
    files = [os.path.dirname(__file__), *(str(package.__file__) for package in packages)]
    return tuple(os.path.join(os.path.dirname(file), "") for file in files)


# Python shows a warning only once for each line that it points to. If it pointed to a line of this
# package or of scikit-learn, the second leak in a program would not be shown.
_NOT_THE_CALLER = code_of(sklearn, joblib)


# Seconds from which a computation is announced.
_LONG = 10.0
# What was said in each running search: functions that have warned of noise, and other warnings.
_WARNED: WeakKeyDictionary[Any, set[tuple[CodeType, str]]] = WeakKeyDictionary()


def frames() -> Iterator[FrameType]:
    """Yield the frames of the callers, the innermost one first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def running_search() -> Any:
    """Return an object that ends with the search of scikit-learn in the call stack, or None."""
    fit = sklearn.model_selection._search.__file__, "fit"
    for frame in frames():
        if (frame.f_code.co_filename, frame.f_code.co_name) == fit:
            return frame.f_locals.get("parallel")
    return None


def warn_of_time(seconds: float, advice: str) -> None:
    """Warn before a computation that will take long, by an estimate from public numbers."""
    if _LONG < seconds < math.inf:
        warn_caller(f"This computation will take about {seconds:.0f} s. {advice}")


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points to the line of the caller's own code.

    A search issues each warning once. It warns of noise once, although its fits have other
    parameters, which the messages name.
    """
    frame, level = sys._getframe(1), 2
    search = running_search()
    if search is not None:
        said = frame.f_code, "" if issubclass(category, NoiseWarning) else message
        warned = _WARNED.setdefault(search, set())
        if said in warned:
            return
        warned.add(said)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_NOT_THE_CALLER):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


class PrivacyLeakWarning(RuntimeWarning):
    """Warning: a quantity that should be public was computed from the data.

    The guarantee does not cover everything that the result reveals. Pass the quantity
    that the warning names to avoid the leak.

    Examples
    --------
    >>> import warnings
    >>> from sklearn_dptda import DTMFiltration
    >>> from sklearn_dptda.privacy import PrivacyLeakWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", PrivacyLeakWarning)
    ...     DTMFiltration().fit([[[0.0, 0.0], [1.0, 1.0]]])
    Traceback (most recent call last):
    ...
    sklearn_dptda.privacy._warnings.PrivacyLeakWarning: DTMFiltration was given no bounds...
    """


class NoiseWarning(UserWarning):
    """Warning: noise hides what a release should show. The message says what would help.

    If this follows from public numbers, the warning is issued before the budget is
    charged. Otherwise it is a function of the release, and is issued after it.

    Examples
    --------
    >>> import warnings
    >>> from sklearn_dptda import PrivatePersistence
    >>> from sklearn_dptda.privacy import NoiseWarning
    >>> private = PrivatePersistence(0.01, sensitivity=0.1, upper=1.0)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", NoiseWarning)
    ...     diagrams = private.fit_transform([[0.0, 0.5, 0.25]])
    >>> any(issubclass(warning.category, NoiseWarning) for warning in caught)
    True
    """


class PrivacyBudgetExceeded(RuntimeError):
    """Error: a release was refused because it costs more than the remaining budget.

    Nothing was spent and nothing was released. The parameters are also attributes.

    Parameters
    ----------
    asked : PrivacyLoss
        Cost of the release.
    left : PrivacyLoss
        Remaining budget.

    Examples
    --------
    >>> from sklearn_dptda.privacy import PrivacyAccountant, PrivacyBudgetExceeded
    >>> try:
    ...     PrivacyAccountant(1.0).spend(1.5)
    ... except PrivacyBudgetExceeded as error:
    ...     error.left
    PrivacyLoss(epsilon=1.0, delta=0.0)
    """

    def __init__(self, asked: PrivacyLoss, left: PrivacyLoss) -> None:
        super().__init__(asked, left)
        self.asked = asked
        self.left = left

    def __str__(self) -> str:
        if self.asked.delta > 0 and self.left.delta == 0:
            advice = "This budget has no delta left: use a budget with a delta, or delta=0."
        else:
            advice = "Use a smaller epsilon or delta, or a larger budget."
        return (
            f"asked for epsilon={self.asked.epsilon:g}, delta={self.asked.delta:g}; "
            f"left: epsilon={self.left.epsilon:g}, delta={self.left.delta:g}. "
            f"Nothing was released. {advice}"
        )


class PrivacyLedgerError(RuntimeError):
    """Error: the ledger of a budget cannot be read or written. Nothing is released.

    Examples
    --------
    >>> from sklearn_dptda.privacy import PrivacyAccountant, PrivacyLedgerError
    >>> try:
    ...     PrivacyAccountant.open("a_file_that_does_not_exist.db")
    ... except PrivacyLedgerError as error:
    ...     print("cannot be used" in str(error))
    True
    """
