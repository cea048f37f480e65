"""The budget of one run: a ledger that exists, one that it makes, or a count without a limit."""

import math
import os

from sklearn_dptda.privacy import PrivacyAccountant, PrivacyBudgetExceeded, PrivacyLedgerError

NOTHING = "nothing was spent"


class WatchedAccountant(PrivacyAccountant):
    """An accountant that knows what this run has spent, in words."""

    spent = NOTHING

    def spend(self, epsilon, delta=0.0, **line):
        """Pay, and remember it, also where Ctrl-C comes in between."""
        before, loss = self.spent, f"epsilon={epsilon:g}, delta={delta:g}"
        self.spent = f"{loss} may have been spent"
        try:
            super().spend(epsilon, delta, **line)
        except (PrivacyBudgetExceeded, ValueError):
            self.spent = before
            raise
        self.spent = f"{loss} was spent"


class Purse:
    """Where ``--ledger`` and ``--budget`` let a run pay from.

    A ledger that has to be made is made by ``accountant``, after everything that can be wrong has
    been checked against ``plan_with``, its double in memory.
    """

    def __init__(self, path, budget):
        self.path = path
        if budget is not None and len(budget) > 2:
            raise ValueError(f"--budget takes EPSILON [DELTA]; got {len(budget)} numbers.")
        self.budget = None if budget is None else tuple(budget)
        if path is None and budget is not None:
            raise ValueError("--budget belongs to a ledger: give --ledger PATH as well.")
        self._is_new = path is not None and not self._exists()
        if self._is_new and budget is None:
            raise ValueError(f"there is no ledger {path}: --budget EPSILON [DELTA] makes one.")
        self.plan_with = self._open()

    def _exists(self):
        if "://" not in self.path:
            return os.path.lexists(self.path)
        try:
            PrivacyAccountant.open(self.path)
        except PrivacyLedgerError:
            # Of a server that is out of reach the error comes again, and comes out.
            return self.budget is None
        return True

    def _open(self):
        if self.path is None:
            return WatchedAccountant(math.inf)
        if self._is_new:
            return WatchedAccountant(*self.budget)
        return WatchedAccountant.open(self.path, *(self.budget or ()))

    def accountant(self):
        """Return who pays."""
        return WatchedAccountant(*self.budget, path=self.path) if self._is_new else self.plan_with

    def left(self, accountant):
        """What is left, in words."""
        if self.path is None:
            return "no ledger: nobody counts what else is released of these data (--ledger PATH)"
        loss, place = accountant.remaining(), self.path
        if accountant.path is None:
            place += ", which would be made"
        return f"left in {place}: epsilon={loss.epsilon:g}, delta={loss.delta:g}"
