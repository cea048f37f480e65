"""Warnings and errors about privacy."""

import os
import sys
import warnings
from types import ModuleType

import joblib
import sklearn

from sklearn_dptda.privacy._guarantee import PrivacyLoss


def code_of(*packages: ModuleType) -> tuple[str, ...]:
    """Folders of this package and others: what names of their files begin with."""
    files = [os.path.dirname(__file__), *(str(package.__file__) for package in packages)]
    return tuple(os.path.join(os.path.dirname(file), "") for file in files)


# Python shows a warning once for each line that it points at: a line of ours, or of scikit-learn,
# would hide the second leak of a program.
_NOT_THE_CALLER = code_of(sklearn, joblib)


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the caller's own code, whatever has been called in between."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_NOT_THE_CALLER):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


class PrivacyLeakWarning(RuntimeWarning):
    """A quantity that should be public was computed from the data.

    The result is still returned, as the ecosystem does, but the stated
    guarantee no longer covers everything that the result reveals. Pass the
    quantity that the warning names, and the warning goes away.
    """


class NoiseWarning(UserWarning):
    """By its public numbers a release will show nothing but noise.

    It is given before the payment, and names what would help.
    """


class PrivacyBudgetExceeded(RuntimeError):
    """A release was refused: it would cost more than is left.

    Nothing was spent and nothing was released.

    Parameters
    ----------
    asked : PrivacyLoss
        What the release would have cost.
    left : PrivacyLoss
        What the budget still allows.

    Attributes
    ----------
    asked, left : PrivacyLoss
        As given.
    """

    def __init__(self, asked: PrivacyLoss, left: PrivacyLoss) -> None:
        super().__init__(asked, left)
        self.asked = asked
        self.left = left

    def __str__(self) -> str:
        if self.asked.delta > 0 and self.left.delta == 0:
            advice = "this budget has no delta left: give it some, or ask for delta=0."
        else:
            advice = "ask for less, or for a larger budget."
        return (
            f"asked for epsilon={self.asked.epsilon:g}, delta={self.asked.delta:g}; "
            f"left: epsilon={self.left.epsilon:g}, delta={self.left.delta:g}. "
            f"Nothing was released: {advice}"
        )


class PrivacyLedgerError(RuntimeError):
    """The ledger of a budget cannot be read or written, so nothing is released."""
