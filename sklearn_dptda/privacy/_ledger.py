"""The ledger: one transaction checks the budget and writes the spend."""

import atexit
import contextlib
import json
import os
import shutil
import tempfile
import uuid
import weakref
from dataclasses import dataclass
from datetime import UTC, datetime

from sklearn_dptda.privacy._composition_rules import COMPOSITIONS, Charge
from sklearn_dptda.privacy._ledger_stores import MemoryStore, process_lock
from sklearn_dptda.privacy._warnings import PrivacyBudgetExceeded, PrivacyLedgerError

_CREATE_BUDGET = """
CREATE TABLE IF NOT EXISTS privacy_budget (
    one INTEGER PRIMARY KEY,
    id VARCHAR(32) NOT NULL,
    epsilon DOUBLE PRECISION NOT NULL,
    delta DOUBLE PRECISION NOT NULL,
    composition VARCHAR(16) NOT NULL)
"""
_CREATE_SPEND = """
CREATE TABLE IF NOT EXISTS privacy_spend (
    id VARCHAR(32) PRIMARY KEY,
    number INTEGER NOT NULL UNIQUE,
    time VARCHAR(32) NOT NULL,
    epsilon DOUBLE PRECISION NOT NULL,
    delta DOUBLE PRECISION NOT NULL,
    rho DOUBLE PRECISION,
    adjacency VARCHAR(16) NOT NULL,
    what TEXT NOT NULL,
    estimator TEXT NOT NULL,
    parameters TEXT NOT NULL)
"""
_INSERT_SPEND = """
INSERT INTO privacy_spend VALUES
    (:id, :number, :time, :epsilon, :delta, :rho, :adjacency, :what, :estimator, :parameters)
"""
_LEDGERS: weakref.WeakSet["Ledger"] = weakref.WeakSet()


@dataclass(frozen=True)
class Spend:
    """One line of the history; never data.

    Attributes
    ----------
    number : int
        Position in the ledger, from 1.
    time : str
        ISO 8601, UTC.
    epsilon, delta : float
        Cost under basic composition.
    rho : float or None
        Cost under zCDP, where the mechanism states one.
    adjacency : str
        Which neighbours the cost refers to.
    what : str
        What was released.
    estimator : str
        Name of the class that released it.
    parameters : dict
        Its public parameters, as text.
    """

    number: int
    time: str
    epsilon: float
    delta: float
    rho: float | None
    adjacency: str
    what: str
    estimator: str
    parameters: dict[str, str]


class Ledger:
    """A budget and its spends in a store.

    Parameters
    ----------
    store : MemoryStore, SqliteStore or ServerStore
    ledger_id : str or None, default=None
        Identity that the store must have; None accepts any.
    """

    def __init__(self, store, ledger_id=None):
        self.store = store
        self.id = ledger_id
        with process_lock:
            _LEDGERS.add(self)

    def create(self, epsilon, delta, composition):
        """Write the budget into a store that has none.

        Raises
        ------
        PrivacyLedgerError
            If the store has one, or holds anything else.
        """
        identity = uuid.uuid4().hex
        with process_lock, self.store.creation() as execute:
            execute(_CREATE_BUDGET)
            execute(_CREATE_SPEND)
            if self._read_budget(execute) is not None:
                raise self.store.taken()
            execute(
                "INSERT INTO privacy_budget VALUES (1, :id, :epsilon, :delta, :composition)",
                {"id": identity, "epsilon": epsilon, "delta": delta, "composition": composition},
            )
        self.id = identity

    def attach(self):
        """Adopt the budget that the store has.

        Returns
        -------
        tuple of (float, float, str)
            Epsilon, delta and composition.

        Raises
        ------
        PrivacyLedgerError
            If the store has none.
        """
        with process_lock, self.store.transaction() as execute:
            found = self._read_budget(execute) if self.store.has_ledger(execute) else None
        if found is None:
            raise PrivacyLedgerError(
                f"{self.store.describe()} is no privacy ledger, or one that has lost its budget: "
                "nothing can be spent from it. PrivacyAccountant(epsilon, path=...) makes a new "
                "one where there is nothing."
            )
        self.id = found[0]
        return found[1:]

    def spend(self, charge, **line):
        """Check and write in one transaction.

        Parameters
        ----------
        charge : Charge
        **line
            ``adjacency``, ``what``, ``estimator``, ``parameters``.

        Raises
        ------
        PrivacyBudgetExceeded
            If the charge does not fit; nothing is written.
        PrivacyLedgerError
            If the store cannot be used.
        """
        with process_lock, self.store.transaction() as execute:
            rule = self._rule(execute, lock=True)
            rule.check(charge)
            self._refuse_mixed_adjacency(execute, line["adjacency"])
            charges = self._charges(execute)
            if not rule.fits([*charges, (charge, 1)]):
                raise PrivacyBudgetExceeded(rule.asked(charge), rule.remaining(charges))
            execute(
                _INSERT_SPEND,
                {
                    "id": uuid.uuid4().hex,
                    "number": sum(count for _, count in charges) + 1,
                    "time": datetime.now(UTC).isoformat(),
                    "epsilon": charge.epsilon,
                    "delta": charge.delta,
                    "rho": charge.rho,
                    **line,
                    "parameters": json.dumps(line["parameters"]),
                },
            )

    def read(self):
        """Return the composition rule and all (charge, count) pairs."""
        with process_lock, self.store.transaction() as execute:
            return self._rule(execute), self._charges(execute)

    def spends(self):
        """Return all spends in their order."""
        with process_lock, self.store.transaction() as execute:
            self._rule(execute)
            rows = execute(
                "SELECT number, time, epsilon, delta, rho, adjacency, what, estimator, parameters "
                "FROM privacy_spend ORDER BY number"
            )
        return [Spend(*row[:-1], json.loads(row[-1])) for row in rows]

    def _rule(self, execute, lock=False):
        found = self._read_budget(execute, lock)
        if found is None or self.id not in (None, found[0]):
            raise PrivacyLedgerError(
                f"The privacy ledger {self.store.describe()} is not the one that this accountant "
                "was made for: nothing was released."
            )
        _, epsilon, delta, composition = found
        return COMPOSITIONS[composition](epsilon, delta)

    def _read_budget(self, execute, lock=False):
        rows = execute(
            "SELECT id, epsilon, delta, composition FROM privacy_budget"
            + (self.store.lock_clause if lock else "")
        )
        return rows[0] if rows else None

    def _charges(self, execute):
        rows = execute(
            "SELECT epsilon, delta, rho, COUNT(*) FROM privacy_spend GROUP BY epsilon, delta, rho"
        )
        return [(Charge(*row[:3]), row[3]) for row in rows]

    def _refuse_mixed_adjacency(self, execute, adjacency):
        found = execute("SELECT DISTINCT adjacency FROM privacy_spend")
        if found and found[0][0] != adjacency:
            raise ValueError(
                f"This ledger counts losses under {found[0][0]!r} adjacency; a loss under "
                f"{adjacency!r} adjacency cannot be added to them. Give all estimators the same "
                "adjacency: adjacency='replace-one' is the one that diagrams and graphs have."
            )

    def share(self):
        """Move a ledger from memory to a temporary file that other processes can open."""
        with process_lock:
            if isinstance(self.store, MemoryStore):
                folder = tempfile.mkdtemp(prefix="sklearn_dptda_")
                atexit.register(_remove, folder, os.getpid())
                self.store = self.store.move_to(os.path.join(folder, "budget.db"))


def _remove(folder, owner):
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _before_fork():
    """Wait for transactions to end, and let the child find the ledgers of this process."""
    process_lock.__enter__()
    for ledger in list(_LEDGERS):
        # What cannot be shared stays in memory, where the child will be refused.
        with contextlib.suppress(PrivacyLedgerError, OSError):
            ledger.share()


def _after_fork_in_parent():
    process_lock.__exit__()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=process_lock.renew,
    )
