"""The ledger: one transaction checks the budget and writes the spend."""

import atexit
import contextlib
import json
import os
import shutil
import tempfile
import uuid
import weakref
from dataclasses import dataclass, fields
from datetime import UTC, datetime

from sklearn_dptda.privacy._composition_rules import Budget, Charge
from sklearn_dptda.privacy._ledger_stores import MemoryStore, process_lock, taken
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
_LEDGERS: weakref.WeakSet["Ledger"] = weakref.WeakSet()


@dataclass(frozen=True)
class Spend:
    """One line of the history, never data; :class:`SpendHistory` explains its columns."""

    number: int
    time: str
    epsilon: float
    delta: float
    rho: float | None
    adjacency: str
    what: str
    estimator: str
    parameters: dict[str, str]


COLUMNS = tuple(column.name for column in fields(Spend))
_INSERT_SPEND = (
    f"INSERT INTO privacy_spend (id, {', '.join(COLUMNS)}) "
    f"VALUES (:id, {', '.join(f':{name}' for name in COLUMNS)})"
)


class Ledger:
    """A budget and its spends in a store, whose identity must be the given one, if any."""

    def __init__(self, store, ledger_id=None):
        self.store = store
        self.id = ledger_id
        with process_lock:
            _LEDGERS.add(self)

    def create(self, budget):
        """Write the budget into a store; PrivacyLedgerError if that holds anything already."""
        identity = uuid.uuid4().hex
        with process_lock, self.store.creation() as execute:
            execute(_CREATE_BUDGET)
            execute(_CREATE_SPEND)
            if self._read_budget(execute) is not None:
                raise taken(self.store.place)
            execute(
                "INSERT INTO privacy_budget VALUES (1, :id, :epsilon, :delta, :composition)",
                {"id": identity, **budget._asdict()},
            )
        self.id = identity

    def attach(self):
        """Adopt and return the budget of the store; PrivacyLedgerError if that has none."""
        with process_lock, self.store.transaction() as execute:
            row = self._read_budget(execute) if self.store.has_ledger(execute) else None
        if row is None:
            raise PrivacyLedgerError(
                f"{self.store.place} is no privacy ledger, or one that has lost its budget: "
                "nothing can be spent from it. PrivacyAccountant(epsilon, path=...) makes a new "
                "one where there is nothing."
            )
        self.id, *budget = row
        return Budget(*budget)

    def spend(self, charge, **line):
        """Check a charge and write it in one transaction, with the other columns of its line.

        Nothing is written where it raises PrivacyBudgetExceeded, since the charge does not fit,
        or PrivacyLedgerError, since the store cannot be used.
        """
        with process_lock, self.store.transaction() as execute:
            charges = self._refuse(execute, [(charge, 1)], {line["adjacency"]}, lock=True)
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

    def check(self, charges, adjacencies):
        """Raise what spending these (charge, count) pairs would raise, and write nothing."""
        with process_lock, self.store.transaction() as execute:
            self._refuse(execute, charges, adjacencies)

    def _refuse(self, execute, asked, adjacencies, lock=False):
        """Refuse charges that cannot be added; return what has been spent."""
        rule = self._rule(execute, lock)
        for charge, _ in asked:
            rule.check(charge)
        self._refuse_mixed_adjacency(execute, adjacencies)
        charges = self._charges(execute)
        if not rule.fits([*charges, *asked]):
            raise PrivacyBudgetExceeded(rule.asked(asked), rule.remaining(charges))
        return charges

    def read(self):
        """Return the composition rule and all (charge, count) pairs."""
        with process_lock, self.store.transaction() as execute:
            return self._rule(execute), self._charges(execute)

    def spends(self):
        """Return all spends in their order."""
        with process_lock, self.store.transaction() as execute:
            self._rule(execute)
            rows = execute(f"SELECT {', '.join(COLUMNS)} FROM privacy_spend ORDER BY number")
        return [Spend(*row[:-1], json.loads(row[-1])) for row in rows]

    def _rule(self, execute, lock=False):
        row = self._read_budget(execute, lock)
        if row is None or self.id not in (None, row[0]):
            raise PrivacyLedgerError(
                f"The privacy ledger {self.store.place} is not the one that this accountant "
                "was made for: nothing was released."
            )
        return Budget(*row[1:]).rule()

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

    def _refuse_mixed_adjacency(self, execute, adjacencies):
        counted = execute("SELECT DISTINCT adjacency FROM privacy_spend")
        kinds = {row[0] for row in counted} or {min(adjacencies)}
        if adjacencies - kinds:
            raise ValueError(
                f"This ledger counts losses under {kinds.pop()!r} adjacency; a loss under "
                f"{max(adjacencies)!r} adjacency cannot be added. Give all estimators the same "
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
