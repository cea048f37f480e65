"""The budget of a run, and what the run has spent."""

import math
import os
from typing import Any

from sklearn_dptda._cli._run_folder import LEDGER
from sklearn_dptda._cli._terminal import tell
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyLedgerError
from sklearn_dptda.privacy._guarantee import Sums
from sklearn_dptda.privacy._ledger_stores import shown_location

# Said once, when a ledger is created.
NO_DELTA = (
    "the new ledger has no delta, so that it refuses every release with a delta above 0, which "
    "those of cluster have by default. To allow them, create the ledger with --budget EPSILON "
    "DELTA."
)


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
            self.plan_with = PrivacyAccountant(math.inf)
        elif self._is_new:
            self.plan_with = PrivacyAccountant(**self._budget)
        else:
            self.plan_with = PrivacyAccountant.open(path, **self._budget)

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

    def accountant(self, beside):
        """Return the accountant that pays; of a run without a ledger, one in its hidden folder."""
        if self.path is None:
            path = beside / LEDGER
            if path.exists():
                return PrivacyAccountant.open(path, keep=0)
            return PrivacyAccountant(math.inf, path=path, keep=0)
        if not self._is_new:
            return self.plan_with
        accountant = PrivacyAccountant(**self._budget, path=self.path)
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
