"""The budget of a run: its ledger, whether the run fits it, and what is left."""

import math
import os
from typing import Any

from sklearn_dptda._cli._output import shown_loss
from sklearn_dptda._cli._terminal import say, tell
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyBudgetExceeded, PrivacyLedgerError
from sklearn_dptda.privacy._guarantee import Sums
from sklearn_dptda.privacy._ledger_stores import shown_location

# Said once, when a ledger is created.
_NO_DELTA = (
    "note: the new ledger has no delta, so that it refuses every release with a delta above 0, "
    "which those of cluster have by default. To allow them, create the ledger with --budget "
    "EPSILON DELTA."
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
        if path is not None and not self._is_new:
            self.plan_with = PrivacyAccountant.open(path, **self._budget)
            return
        try:
            self.plan_with = PrivacyAccountant(**(self._budget or {"epsilon": math.inf}))
        except ValueError as error:
            raise ValueError(f"--budget: {error}") from None

    def _exists(self):
        if "://" not in self.path:
            return os.path.lexists(self.path)
        try:
            PrivacyAccountant.open(self.path)
        except PrivacyLedgerError:
            # If a server cannot be reached, the error occurs again later and is then reported.
            return not self._budget
        return True

    def _lacks_delta(self):
        return self._is_new and self.plan_with.delta == 0 and math.isfinite(self.plan_with.epsilon)

    def accountant(self, folder):
        """Return the accountant that pays; of a run without a ledger, one in its hidden folder."""
        if self.path is None:
            return folder.ledger()
        if not self._is_new:
            return self.plan_with
        accountant = PrivacyAccountant(**self._budget, path=self.path)
        if self._lacks_delta():
            tell(_NO_DELTA)
        return accountant

    def print_plan(self, plan, remarks):
        """Print what a run would pay and what would be left, or say why it would be refused."""
        guarantees = [planned.guarantee for planned in plan.releases]
        kinds = sorted({f"{each.unit}; {each.adjacency}" for each in guarantees})
        say(
            *str(plan).splitlines(),
            f"privacy unit and adjacency: {' and '.join(kinds)}",
            self.left(self.plan_with) + (" before the run" if self.path is not None else ""),
            *remarks,
            *([_NO_DELTA] if self._lacks_delta() else []),
        )
        try:
            plan.check()
        except (PrivacyBudgetExceeded, ValueError) as error:
            raise ValueError(f"the run would be refused: {error}") from None
        if self.path is not None:
            state = self.plan_with._ledger.read()
            sums = Sums.of((each.guarantee.charge, each.count) for each in plan.releases)
            left = state.budget.rule().remaining(state.sums.plus(sums))
            say(f"left after the run: {shown_loss(left)}")

    def left(self, accountant):
        """Return a message about the remaining budget."""
        if self.path is None:
            return (
                "no ledger: the cost of this run is not recorded (pass --ledger PATH to record it)"
            )
        place = self.shown + (", which would be created" if accountant.path is None else "")
        return f"left in {place}: {shown_loss(accountant.remaining())}"
