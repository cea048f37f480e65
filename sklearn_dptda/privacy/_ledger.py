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
from typing import Any, NamedTuple

from sklearn_dptda.privacy._composition_rules import Budget, Sums
from sklearn_dptda.privacy._ledger_stores import MemoryStore, process_lock, taken
from sklearn_dptda.privacy._warnings import PrivacyBudgetExceeded, PrivacyLedgerError

_CREATE_BUDGET = """
CREATE TABLE IF NOT EXISTS privacy_budget (
    one INTEGER PRIMARY KEY,
    id VARCHAR(32) NOT NULL,
    epsilon DOUBLE PRECISION NOT NULL,
    delta DOUBLE PRECISION NOT NULL,
    composition VARCHAR(16) NOT NULL,
    home VARCHAR(64),
    number INTEGER NOT NULL,
    adjacency VARCHAR(16),
    spent_epsilon TEXT NOT NULL,
    spent_delta TEXT NOT NULL,
    spent_rho TEXT NOT NULL)
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
# What a line says, whenever it was written.
_CONTENT = COLUMNS[2:]


class State(NamedTuple):
    """The one row of a ledger that every payment locks: its budget, and what was spent so far.

    Sums are kept exactly, so that a payment costs the same after a million others.
    """

    id: str
    epsilon: float
    delta: float
    composition: str
    home: str | None
    number: int
    adjacency: str | None
    spent_epsilon: str
    spent_delta: str
    spent_rho: str

    @classmethod
    def new(cls, identity, budget, home):
        """Nothing spent."""
        return cls(identity, *budget, home, 0, None, *Sums().to_text())

    @property
    def budget(self):
        """What may be spent."""
        return Budget(self.epsilon, self.delta, self.composition)

    @property
    def sums(self):
        """What has been spent."""
        return Sums.from_text(self[-3:])

    def after(self, sums, number, adjacency):
        """The row when ``number`` more lines have been paid for, which add up to ``sums``."""
        names = ("spent_epsilon", "spent_delta", "spent_rho")
        texts = dict(zip(names, self.sums.plus(sums).to_text(), strict=True))
        return self._replace(number=self.number + number, adjacency=adjacency, **texts)


class Payment(NamedTuple):
    """A charge and the other columns of its line; of two with the same key only one is paid."""

    charge: Any
    line: dict[str, Any]
    key: str | None = None

    @classmethod
    def of(cls, guarantee, estimator):
        """Payment for what a guarantee promises."""
        line = {"adjacency": guarantee.adjacency, "what": guarantee.released}
        return cls(guarantee.charge, {**line, "estimator": estimator, "parameters": {}})

    def columns(self):
        """What the line will say."""
        charge = self.charge
        losses = {"epsilon": charge.epsilon, "delta": charge.delta, "rho": charge.rho}
        return {**losses, **self.line, "parameters": json.dumps(self.line["parameters"])}


_INSERT_SPEND = (
    f"INSERT INTO privacy_spend (id, {', '.join(COLUMNS)}) "
    f"VALUES (:id, {', '.join(f':{name}' for name in COLUMNS)})"
)
_READ_STATE = f"SELECT {', '.join(State._fields)} FROM privacy_budget"
_WRITE_STATE = "UPDATE privacy_budget SET " + ", ".join(f"{f} = :{f}" for f in State._fields)
_CREATE_STATE = (
    f"INSERT INTO privacy_budget (one, {', '.join(State._fields)}) "
    f"VALUES (1, {', '.join(f':{name}' for name in State._fields)})"
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
            if execute(_READ_STATE):
                raise taken(self.store.place)
            execute(_CREATE_STATE, State.new(identity, budget, self.store.home())._asdict())
        self.id = identity

    def attach(self, moved=False):
        """Adopt and return the budget of the store; PrivacyLedgerError if that has none.

        ``moved`` says that this file is the ledger from now on, wherever it was before.
        """
        with process_lock, self.store.transaction() as execute:
            rows = execute(_READ_STATE) if self.store.has_ledger(execute) else []
            if not rows:
                raise PrivacyLedgerError(
                    f"{self.store.place} is no privacy ledger, or one that has lost its budget: "
                    "nothing can be spent from it. PrivacyAccountant(epsilon, path=...) makes a "
                    "new one where there is nothing."
                )
            state = State(*rows[0])
            if moved:
                execute(_WRITE_STATE, state._replace(home=self.store.home())._asdict())
            else:
                self._refuse_copies(state)
        self.id = state.id
        return state.budget

    def spend(self, payments, then=None):
        """Check payments and write them in one transaction, all or none.

        ``then`` is called in it, after all is written, and may still undo it by raising.

        A payment whose key was paid for before, by the same line, is not made again. Nothing is
        written where it raises PrivacyBudgetExceeded, since the charges do not fit, or
        PrivacyLedgerError, since the store cannot be used, or a key has another line.
        """
        with process_lock, self.store.transaction() as execute:
            state = self._state(execute, lock=True)
            due = [payment for payment in payments if not self._is_paid(execute, payment)]
            if not due:
                return
            adjacencies = {payment.line["adjacency"] for payment in due}
            sums = self._refuse(state, [(payment.charge, 1) for payment in due], adjacencies)
            time = datetime.now(UTC).isoformat()
            for number, payment in enumerate(due, state.number + 1):
                identity = payment.key or uuid.uuid4().hex
                line = {"id": identity, "number": number, "time": time, **payment.columns()}
                execute(_INSERT_SPEND, line)
            execute(_WRITE_STATE, state.after(sums, len(due), adjacencies.pop())._asdict())
            if then is not None:
                then()

    def _is_paid(self, execute, payment):
        if payment.key is None:
            return False
        query = f"SELECT {', '.join(_CONTENT)} FROM privacy_spend WHERE id = :id"
        rows = execute(query, {"id": payment.key})
        if rows and dict(zip(_CONTENT, rows[0], strict=True)) != payment.columns():
            raise PrivacyLedgerError(
                "Something else was paid for under the key of this release: nothing was released."
            )
        return bool(rows)

    def check(self, charges, adjacencies):
        """Raise what spending these (charge, count) pairs would raise, and write nothing."""
        with process_lock, self.store.transaction() as execute:
            self._refuse(self._state(execute), charges, adjacencies)

    def _refuse(self, state, asked, adjacencies):
        """Refuse charges that cannot be added; return their sums."""
        rule = state.budget.rule()
        for charge, _ in asked:
            rule.check(charge)
        kinds = adjacencies | {state.adjacency} - {None}
        if len(kinds) > 1:
            counted = state.adjacency or min(kinds)
            raise ValueError(
                f"This ledger counts losses under {counted!r} adjacency; a loss under "
                f"{max(kinds - {counted})!r} adjacency cannot be added. Give all estimators the "
                "same adjacency: adjacency='replace-one' is the one that diagrams and graphs have."
            )
        sums = Sums.of(asked)
        if not rule.fits(state.sums.plus(sums)):
            raise PrivacyBudgetExceeded(rule.asked(sums), rule.remaining(state.sums))
        return sums

    def read(self):
        """Return the state: budget, sums and number of lines."""
        with process_lock, self.store.transaction() as execute:
            return self._state(execute)

    def spends(self):
        """Return all spends in their order."""
        with process_lock, self.store.transaction() as execute:
            self._state(execute)
            rows = execute(f"SELECT {', '.join(COLUMNS)} FROM privacy_spend ORDER BY number")
        return [Spend(*row[:-1], json.loads(row[-1])) for row in rows]

    def _state(self, execute, lock=False):
        rows = execute(_READ_STATE + (self.store.lock_clause if lock else ""))
        if not rows or self.id not in (None, rows[0][0]):
            raise PrivacyLedgerError(
                f"The privacy ledger {self.store.place} is not the one that this accountant "
                "was made for: nothing was released."
            )
        state = State(*rows[0])
        self._refuse_copies(state)
        return state

    def _refuse_copies(self, state):
        if state.home != self.store.home():
            raise PrivacyLedgerError(
                f"The privacy ledger {self.store.place} is a copy, or was made on another machine, "
                "and the original may still be spent from: nothing was released. Machines share a "
                "ledger in a database server, path='postgresql://...'. If this file has replaced "
                "the original: PrivacyAccountant.open(path, moved=True)."
            )

    def share(self):
        """Move a ledger from memory to a temporary file that other processes can open."""
        with process_lock:
            if isinstance(self.store, MemoryStore):
                folder = tempfile.mkdtemp(prefix="sklearn_dptda_")
                atexit.register(_remove, folder, os.getpid())
                store = self.store.move_to(os.path.join(folder, "budget.db"))
                with store.transaction() as execute:
                    execute("UPDATE privacy_budget SET home = :home", {"home": store.home()})
                self.store = store


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
