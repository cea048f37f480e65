"""The budget of a run, and what the run has spent."""

import math
import os
from typing import Any

from sklearn_dptda._cli._terminal import tell
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyBudgetExceeded, PrivacyLedgerError
from sklearn_dptda.privacy._guarantee import Sums
from sklearn_dptda.privacy._ledger_stores import shown_location

# Said once, when a ledger is created.
NO_DELTA = (
    "the new ledger has no delta, so that it refuses every release with a delta above 0, which "
    "those of cluster have by default. To allow them, create the ledger with --budget EPSILON "
    "DELTA."
)
NOTHING_SPENT = "nothing was spent"


class AnotherRelease(Exception):
    """The key of this run has paid for a release with other arguments or of another file."""


class WatchedAccountant(PrivacyAccountant):
    """An accountant that keeps a message about what this run has spent."""

    spent = NOTHING_SPENT

    def spend(self, epsilon, delta=0.0, **line):
        """Pay, and record the payment in the message, even if Ctrl-C interrupts the payment."""
        before, loss = self.spent, f"epsilon={epsilon:g}, delta={delta:g}"
        self.spent = f"{loss} may have been spent"
        try:
            super().spend(epsilon, delta, **line)
        except (PrivacyBudgetExceeded, ValueError):
            self.spent = before
            raise
        except PrivacyLedgerError:
            # An unusable ledger raises the error again. Otherwise, the payment under this key is
            # for another release, so that this one was not charged.
            if line.get("key") is None or not self._ledger.is_paid(line["key"]):
                raise
            self.spent = before
            raise AnotherRelease from None
        self.spent = f"{loss} was spent"


class RunBudget:
    """The budget of one run: an existing ledger, a new ledger, or an unlimited count in memory.

    A new ledger is created by the method ``accountant``. Before that, all checks are made with
    ``plan_with``, a copy of the ledger in memory.
    """

    def __init__(self, path, numbers):
        if numbers is not None and len(numbers) > 2:
            raise ValueError(f"--budget takes EPSILON [DELTA]; got {len(numbers)} numbers.")
        if path is None and numbers is not None:
            raise ValueError("--budget needs a ledger: pass --ledger PATH as well.")
        self.path = path
        # The path for messages, without a password.
        self.shown = "" if path is None else shown_location(path)
        self._budget: dict[str, Any] = dict(zip(("epsilon", "delta"), numbers or (), strict=False))
        self._is_new = path is not None and not self._exists()
        if self._is_new and not self._budget:
            raise ValueError(
                f"there is no ledger {self.shown}: pass --budget EPSILON [DELTA] to create it."
            )
        if path is None:
            self.plan_with = WatchedAccountant(math.inf)
        elif self._is_new:
            self.plan_with = WatchedAccountant(**self._budget)
        else:
            self.plan_with = WatchedAccountant.open(path, **self._budget)

    def _exists(self):
        if "://" not in self.path:
            return os.path.lexists(self.path)
        try:
            PrivacyAccountant.open(self.path)
        except PrivacyLedgerError:
            # If a server cannot be reached, the error occurs again later and is then reported.
            return not self._budget
        return True

    @property
    def lacks_delta(self):
        """Whether the run creates a ledger that refuses every release with a positive delta."""
        return self._is_new and self.plan_with.delta == 0 and math.isfinite(self.plan_with.epsilon)

    def accountant(self):
        """Return the accountant that pays."""
        if not self._is_new:
            return self.plan_with
        accountant = WatchedAccountant(**self._budget, path=self.path)
        if self.lacks_delta:
            tell(f"note: {NO_DELTA}")
        return accountant

    def left_after(self, plan):
        """Return what would be left after a plan."""
        state = self.state()
        planned = ((each.guarantee.charge, each.count) for each in plan.releases)
        return state.budget.rule().remaining(state.sums.plus(Sums.of(planned)))

    def state(self):
        """Return the budget, the sums, and what the ledger counts, without all its payments."""
        return self.plan_with._ledger.read()

    def left(self, accountant):
        """Return a message about the remaining budget."""
        if self.path is None:
            return (
                "no ledger: the cost of this run is not recorded (pass --ledger PATH to record it)"
            )
        loss, place = accountant.remaining(), self.shown
        if accountant.path is None:
            place += ", which would be created"
        return f"left in {place}: epsilon={loss.epsilon:g}, delta={loss.delta:g}"
