"""The ledger of a privacy budget: one row that all payments change, and one line for each payment.

A payment is one transaction, which checks the budget and writes the line.
"""

import atexit
import json
import os
import re
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import count, takewhile
from typing import Any, NamedTuple, Self, get_type_hints

from sklearn_dptda.privacy._guarantee import (
    ADJACENCIES,
    COMPOSITIONS,
    Budget,
    Charge,
    Neighbours,
    PrivacyGuarantee,
    Sums,
    kind_of_unit,
)
from sklearn_dptda.privacy._ledger_stores import (
    TEMPORARY_FOLDER,
    Execute,
    MemoryStore,
    Store,
    damaged,
    folder_of,
    last_mark,
    noting,
    process_lock,
)
from sklearn_dptda.privacy._release_key import ReleaseKey, Turn, payment_of
from sklearn_dptda.privacy._spend_history import COLUMNS, Spend
from sklearn_dptda.privacy._stored_release import read_release, write_release
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
    unit TEXT,
    spent_epsilon TEXT NOT NULL,
    spent_delta TEXT NOT NULL,
    spent_rho TEXT NOT NULL)
"""
_CREATE_SPEND = """
CREATE TABLE IF NOT EXISTS privacy_spend (
    id VARCHAR(32) PRIMARY KEY,
    number INTEGER NOT NULL UNIQUE,
    time VARCHAR(32) NOT NULL,
    epsilon DOUBLE PRECISION NOT NULL CHECK (epsilon >= 0),
    delta DOUBLE PRECISION NOT NULL CHECK (delta >= 0 AND delta <= 1),
    rho DOUBLE PRECISION CHECK (rho >= 0),
    adjacency VARCHAR(16) NOT NULL,
    unit TEXT NOT NULL,
    what TEXT NOT NULL,
    estimator TEXT NOT NULL,
    parameters TEXT NOT NULL)
"""
_CREATE_RELEASE = """
CREATE TABLE IF NOT EXISTS privacy_release (
    id VARCHAR(32) PRIMARY KEY,
    digest VARCHAR(64) NOT NULL,
    size BIGINT NOT NULL,
    content {bytes_type})
"""
# The text of a sum of floats is never longer. Longer text could be a number too large to compute.
_SUM = re.compile(r"inf|\d{1,2000}(/[1-9]\d{0,2000})?")
# Errors for text that is not the expected JSON. JSON can be nested too deeply.
_NOT_JSON = (TypeError, ValueError, RecursionError)
# Database servers store the number of a payment in a column of 32 bits.
_MOST_PAYMENTS = 2**31 - 1


class State(NamedTuple):
    """The one row of a ledger that every payment locks: the budget and the total spent so far.

    Sums are stored exactly, so that the time for a payment does not grow with the number of
    earlier payments.
    """

    id: str
    epsilon: float
    delta: float
    composition: str
    home: str | None
    number: int
    adjacency: str | None
    unit: str | None
    spent_epsilon: str
    spent_delta: str
    spent_rho: str

    @classmethod
    def new(cls, identity: str, budget: Budget, home: str | None) -> Self:
        """Return the state of a new ledger, in which nothing was spent."""
        return cls(identity, *budget, home, 0, None, None, *Sums().to_text())

    @classmethod
    def read(cls, row: Iterable[Any], place: str) -> Self:
        """Return the state in a row of the ledger at ``place``; PrivacyLedgerError if damaged."""
        state = cls(*row)
        sound = (
            re.fullmatch("[0-9a-f]{32}", str(state.id))
            and all(isinstance(value, float) for value in (state.epsilon, state.delta))
            and (state.epsilon > 0 and 0 <= state.delta < 1)
            and state.composition in COMPOSITIONS
            and (state.composition == "basic" or state.delta > 0)
            and (isinstance(state.number, int) and 0 <= state.number <= _MOST_PAYMENTS)
            and state.adjacency in (None, *ADJACENCIES)
            and isinstance(state.unit, str | None)
            and all(_SUM.fullmatch(str(text)) for text in state[-3:])
        )
        if not sound:
            raise damaged(place)
        return state

    @property
    def account(self) -> dict[str, Any]:
        """The part that a mark stores: everything except for the identity and the place."""
        return {name: v for name, v in self._asdict().items() if name not in ("id", "home")}

    @property
    def budget(self) -> Budget:
        """The budget of the ledger."""
        return Budget(self.epsilon, self.delta, self.composition)

    @property
    def sums(self) -> Sums:
        """The sums of all payments."""
        return Sums.from_text(self[-3:])

    def seen_in(self, mark: tuple[str, str] | None) -> Self:
        """Return the state that a mark records, or this state if there is no mark."""
        if mark is None:
            return self
        place, text = mark
        try:
            return self.read({**self._asdict(), **json.loads(text)}.values(), place)
        except _NOT_JSON:
            raise damaged(place) from None

    def follows(self, seen: Self) -> bool:
        """Whether this state can follow from an earlier state by payments alone."""
        return self.account == seen.account or (
            self.number > seen.number
            and self.budget == seen.budget
            and seen.adjacency in (None, self.adjacency)
            and seen.unit in (None, self.unit)
            and all(now >= before for now, before in zip(self.sums, seen.sums, strict=True))
        )

    def caught_up(self, seen: Self) -> Self:
        """Return this state with the budget that was seen, and at least the sums that were seen."""
        return seen._replace(
            home=self.home,
            number=max(self.number, seen.number),
            adjacency=seen.adjacency or self.adjacency,
            unit=seen.unit or self.unit,
            **_texts(Sums(*map(max, self.sums, seen.sums))),
        )

    def after(self, sums: Sums, number: int, neighbours: Neighbours) -> Self:
        """Return the state after ``number`` more payments, which add up to ``sums``."""
        return self._replace(
            number=self.number + number,
            adjacency=neighbours.adjacency,
            unit=self.unit or neighbours.unit,
            **_texts(self.sums.plus(sums)),
        )


def _texts(sums: Sums) -> dict[str, Any]:
    return dict(zip(State._fields[-3:], sums.to_text(), strict=True))


def _insertion(table: str, *columns: str) -> str:
    """Return the statement that writes a row with values for these columns."""
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) "
        f"VALUES ({', '.join(f':{name}' for name in columns)})"
    )


def _update(columns: Iterable[str]) -> str:
    """Return the statement that changes columns of the state."""
    return "UPDATE privacy_budget SET " + ", ".join(f"{name} = :{name}" for name in columns)


_READ_STATE = f"SELECT {', '.join(State._fields)} FROM privacy_budget"
_READ_LINES = f"SELECT {', '.join(COLUMNS)}, id FROM privacy_spend ORDER BY number"
# The columns of a line that do not depend on when it was written.
_CONTENT = COLUMNS[2:]
_LINE_TYPES = tuple({**get_type_hints(Spend), "parameters": dict}.values())


class Payment(NamedTuple):
    """A charge and the rest of its line. Of two payments with one key, one is made."""

    charge: Charge
    neighbours: Neighbours
    what: str
    estimator: str
    parameters: dict[str, str]
    key: str | None = None

    @classmethod
    def of(cls, guarantee: PrivacyGuarantee, estimator: str, turn: Turn | None = None) -> Self:
        """Return the payment for a release with this guarantee."""
        parameters, key = ({}, None) if turn is None else (turn.line, turn.payment)
        released = guarantee.released
        return cls(guarantee.charge, guarantee.neighbours, released, estimator, parameters, key)

    def columns(self) -> dict[str, Any]:
        """Return the contents of the line."""
        return {
            **vars(self.charge),
            **self.neighbours._asdict(),
            "what": self.what,
            "estimator": self.estimator,
            "parameters": json.dumps(self.parameters),
        }


class AnotherRelease(PrivacyLedgerError):
    """Something else was paid for under the name of a release."""


_LEDGERS: weakref.WeakSet["Ledger"] = weakref.WeakSet()


class Ledger:
    """A budget and its payments in a store, whose identity must be the given one, if any."""

    def __init__(self, store: Store, ledger_id: str | None = None) -> None:
        self.store = store
        # The identity is None until the ledger is created or attached to.
        self.id: Any = ledger_id
        # The secret of a ledger in memory stays in the process that has created the ledger.
        self._secret = ReleaseKey() if isinstance(store, MemoryStore) else None
        with process_lock:
            _LEDGERS.add(self)

    def create(self, budget: Budget) -> None:
        """Write the budget to the store; PrivacyLedgerError if the store is not empty."""
        identity = uuid.uuid4().hex
        with process_lock, noting() as note, self.store.creation() as execute:
            execute(_CREATE_BUDGET)
            execute(_CREATE_SPEND)
            execute(_CREATE_RELEASE.format(bytes_type=self.store.bytes_type))
            state = State.new(identity, budget, self.store.home(execute))
            row = {"one": 1, **state._asdict()}
            execute(_insertion("privacy_budget", *row), row)
            if not isinstance(self.store, MemoryStore):
                note(state.id, state.account, make=True)
        self.id = identity

    def secret(self) -> ReleaseKey:
        """Return the secret from which named releases draw: 32 bytes beside the marks of a user."""
        if self._secret is not None:
            return self._secret
        folder = folder_of(self.id)
        with process_lock:
            try:
                if os.path.isdir(folder):
                    return ReleaseKey.open(os.path.join(folder, "secret"))
                reason = "this process has not opened the ledger by its path"
            except OSError as error:
                reason = error.strerror or str(error)
            raise PrivacyLedgerError(
                f"The secret of the ledger {self.store.place} cannot be read or created in "
                f"{folder!r} ({reason}): nothing was released. Call under(name) in the process "
                "that has created or opened the budget, and set the environment variable "
                "XDG_STATE_HOME to a lasting folder that can be written to."
            )

    def attach(self, moved: bool = False) -> Budget:
        """Adopt and return the budget of the store; PrivacyLedgerError if there is none.

        ``moved`` declares that this file is the ledger from now on. Payments that this user has
        seen stay paid.
        """
        with process_lock, noting() as note, self.store.transaction() as execute:
            exists = self.store.has_table(execute, "privacy_budget")
            if not (exists and execute("SELECT 1 FROM privacy_budget")):
                raise PrivacyLedgerError(
                    f"{self.store.place} is not a privacy ledger, or it has lost its budget. "
                    "Nothing can be spent from it. To create a new ledger at a path where nothing "
                    "exists, use PrivacyAccountant(epsilon, path=...)."
                )
            _bring_up_to_date(execute, self.store)
            self.id = self._read(execute, lock=moved).id
            state = self._state(execute, moved=moved)
            note(state.id, state.account, make=True)
        return state.budget

    def spend(self, payments: Sequence[Payment], then: Callable[[], object] | None = None) -> None:
        """Check payments and write them in one transaction, all or none.

        ``then`` is called in the transaction after everything is written. If it raises, nothing is
        written. A payment with the same key and the same line is not repeated. Raises
        PrivacyBudgetExceeded if the charges do not fit, and PrivacyLedgerError if there is another
        line under a key, or if the store cannot be used.
        """
        with self._transaction(lock=True) as (execute, state):
            due = [payment for payment in payments if not _is_repeated(execute, payment)]
            if due:
                _write_payments(execute, state, due)
            if then is not None:
                then()

    def check(self, releases: Sequence[tuple[PrivacyGuarantee, int]]) -> None:
        """Raise the same errors as paying for these numbers of releases, and write nothing."""
        with self._transaction() as (_, state):
            _check_losses(state, releases)

    def read(self) -> State:
        """Return the state: budget, sums and number of lines."""
        with self._transaction() as (_, state):
            return state

    def is_paid(self, key: str) -> bool:
        """Whether there is a payment with this key."""
        with self._transaction() as (execute, _):
            return _is_paid(execute, key)

    def keep(self, key: str, content: bytes) -> None:
        """Store the bytes of a release beside its payment."""
        with self._transaction(lock=True) as (execute, _):
            write_release(execute, self.store, key, content)

    def release(self, key: str) -> Any:
        """Return the release that is stored under a key, or the last one under a name.

        LookupError if there is none.
        """
        with self._transaction() as (execute, _):
            if not _is_paid(execute, key):
                named = (payment_of(key, number) for number in count(1))
                *_, key = key, *takewhile(lambda each: _is_paid(execute, each), named)
            return read_release(execute, self.store, key)

    def spends(self) -> list[Spend]:
        """Return all payments in their order."""
        with self._transaction() as (execute, _):
            return self._lines(execute)

    def extract(self) -> tuple[State, list[Spend], dict[str, str]]:
        """Return state, payments and digests of stored releases, in one transaction."""
        with self._transaction() as (execute, state):
            digests = dict(execute("SELECT id, digest FROM privacy_release ORDER BY id"))
            return state, self._lines(execute), digests

    def _lines(self, execute: Execute) -> list[Spend]:
        """Return all payments in their order; PrivacyLedgerError if a line is damaged."""
        sizes: dict[str, int] = dict(execute("SELECT id, size FROM privacy_release"))
        lines = []
        for *values, parameters, key in execute(_READ_LINES):
            try:
                line = Spend._make((*values, json.loads(parameters), key, sizes.get(key)))
            except _NOT_JSON:
                raise damaged(self.store.place) from None
            if not all(map(isinstance, line, _LINE_TYPES)):
                raise damaged(self.store.place)
            lines.append(line)
        return lines

    @contextmanager
    def _transaction(self, lock: bool = False) -> Iterator[tuple[Execute, State]]:
        """Yield a function that runs statements, and the state; write a mark afterwards.

        ``lock`` makes other writers wait, as all who change something do.
        """
        with process_lock, noting() as note, self.store.transaction() as execute:
            state = self._state(execute, lock)
            yield execute, state
            if lock:
                state = self._read(execute)
            note(state.id, state.account)

    def _state(self, execute: Execute, lock: bool = False, moved: bool = False) -> State:
        """Return the state; PrivacyLedgerError unless it is that of the original, and complete.

        ``moved`` makes this file the original, and adds the losses that were seen.
        """
        # Read the mark first. A concurrent payment changes the ledger before it adds its mark, so
        # that the mark is never ahead of the ledger.
        mark = last_mark(self.id)
        state, home = self._read(execute, lock), self.store.home(execute)
        if moved:
            state = state.caught_up(state.seen_in(mark))._replace(home=home)
            execute(_update(State._fields), state._asdict())
            return state
        if state.home != home:
            raise PrivacyLedgerError(
                f"The privacy ledger {self.store.place} is a copy, or it was created on another "
                "machine, and the original may still be in use. Nothing was released. To share a "
                "ledger between machines, use a database server, path='postgresql://...'. If this "
                "file has replaced the original, open it with PrivacyAccountant.open(path, "
                "moved=True)."
            )
        if not state.follows(state.seen_in(mark)):
            raise PrivacyLedgerError(
                f"The privacy ledger {self.store.place} lacks payments that you have seen in it. "
                "It may be a restored backup, or a copy while another copy was in use. Nothing was "
                "released. To continue with this file, open it with PrivacyAccountant.open(path, "
                "moved=True), which adds the losses of all payments that you have seen."
            )
        return state

    def _read(self, execute: Execute, lock: bool = False) -> State:
        """Return what the ledger says; PrivacyLedgerError if it is damaged or another ledger."""
        rows = execute(_READ_STATE + (self.store.lock_clause if lock else ""))
        if not rows or self.id not in (None, rows[0][0]):
            raise PrivacyLedgerError(
                f"The privacy ledger {self.store.place} is not the one that this accountant "
                "was created for: nothing was released."
            )
        return State.read(rows[0], self.store.place)

    def forget(self) -> None:
        """Remove the marks and the secret of a ledger that will not be opened again."""
        shutil.rmtree(folder_of(self.id), ignore_errors=True)

    def share(self) -> None:
        """Move a ledger from memory to a temporary file, which other processes can open."""
        with process_lock:
            if isinstance(self.store, MemoryStore):
                folder = tempfile.mkdtemp(prefix=TEMPORARY_FOLDER)
                atexit.register(_remove, folder, os.getpid())
                store = self.store.move_to(os.path.join(folder, "budget.db"))
                with store.transaction() as execute:
                    execute(_update(["home"]), {"home": store.home(execute)})
                self.store = store


def _bring_up_to_date(execute: Execute, store: Store) -> None:
    """Add what ledgers of earlier versions lack: privacy units, none known, and releases."""
    if len(execute("SELECT * FROM privacy_budget")[0]) == len(State._fields):
        # The table has a primary key and all columns of the state except for the unit.
        execute("ALTER TABLE privacy_budget ADD COLUMN unit TEXT")
        execute("ALTER TABLE privacy_spend ADD COLUMN unit TEXT NOT NULL DEFAULT ''")
    if not store.has_table(execute, "privacy_release"):
        execute(_CREATE_RELEASE.format(bytes_type=store.bytes_type))


def _write_payments(execute: Execute, state: State, due: Sequence[Payment]) -> None:
    sums = _check_losses(state, [(payment, 1) for payment in due])
    # A finer time would reveal how long the release between two payments took.
    time = datetime.now(UTC).date().isoformat()
    for number, payment in enumerate(due, state.number + 1):
        identity = payment.key or uuid.uuid4().hex
        line = {"id": identity, "number": number, "time": time, **payment.columns()}
        execute(_insertion("privacy_spend", *line), line)
    # Update only the columns that change. A database role for payments then needs no right to write
    # the budget, nor, after the first payment, to write the adjacency and the privacy unit.
    before, after = state._asdict(), state.after(sums, len(due), due[0].neighbours)._asdict()
    new = {name: value for name, value in after.items() if value != before[name]}
    execute(_update(new), new)


def _is_paid(execute: Execute, key: str) -> bool:
    return bool(execute("SELECT 1 FROM privacy_spend WHERE id = :id", {"id": key}))


def _is_repeated(execute: Execute, payment: Payment) -> bool:
    """Whether the payment was made before; PrivacyLedgerError if its key has another line.

    Proof: doc/theory/kept_releases.md, "One payment, one release".
    """
    if payment.key is None:
        return False
    query = f"SELECT {', '.join(_CONTENT)} FROM privacy_spend WHERE id = :id"
    rows = execute(query, {"id": payment.key})
    if rows and dict(zip(_CONTENT, rows[0], strict=True)) != payment.columns():
        raise AnotherRelease(
            "Something else was paid for under the name of this release: the records, the "
            "parameters or the code differ, or it was made with the secret of another user or "
            "machine. Nothing was released. Choose another name; accountant.release(name) returns "
            "what is stored."
        )
    return bool(rows)


def _check_losses(state: State, losses: Sequence[tuple[Payment | PrivacyGuarantee, int]]) -> Sums:
    """Return the sums of (loss, count) pairs, or raise if they cannot be added or do not fit.

    Proof: doc/theory/noise_and_calibration.md, "Adjacency".
    """
    charges, rule = [(loss.charge, count) for loss, count in losses], state.budget.rule()
    for charge, _ in charges:
        rule.check(charge)
    neighbours = {loss.neighbours for loss, _ in losses}
    units = sorted(each.unit for each in neighbours)
    counted = state.unit or units[0]
    for other in units:
        if kind_of_unit(other) != kind_of_unit(counted):
            raise ValueError(
                f"This ledger counts losses of {counted}; a loss of {other} cannot be added, "
                "because one of these units may contain many of the other. Use a ledger for each "
                "unit, or the same unit in all releases, by the parameters groups or unit."
            )
    kinds = {kind for kind in (*(n.adjacency for n in neighbours), state.adjacency) if kind}
    if len(kinds) > 1:
        counted = state.adjacency or min(kinds)
        raise ValueError(
            f"This ledger counts losses under {counted!r} adjacency; a loss under "
            f"{max(kinds - {counted})!r} adjacency cannot be added. Use a ledger for each "
            "adjacency, or the same one in all releases: adjacency='replace-one' is the one that "
            "diagrams and graphs have."
        )
    sums = Sums.of(charges)
    if not rule.fits(state.sums.plus(sums)):
        raise PrivacyBudgetExceeded(rule.asked(sums), rule.remaining(state.sums))
    return sums


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _before_fork() -> None:
    """Wait for transactions to end, and share the ledgers of this process with the child."""
    process_lock.__enter__()
    for ledger in list(_LEDGERS):
        # A ledger that cannot be shared stays in memory, and the child is refused access.
        with suppress(PrivacyLedgerError, OSError):
            ledger.share()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=process_lock.__exit__,
        after_in_child=process_lock.renew,
    )
