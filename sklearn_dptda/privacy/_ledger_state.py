"""The one row of a ledger that all payments change: its budget, and what was spent so far."""

import re
from typing import NamedTuple

from sklearn_dptda.privacy._composition_rules import COMPOSITIONS, Budget, Sums
from sklearn_dptda.privacy._ledger_stores import damaged
from sklearn_dptda.privacy._sensitivity import ADJACENCIES

CREATE_BUDGET = """
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
# Of a float's sums none is longer; other text could name a number too large to compute.
_SUM = re.compile(r"inf|\d{1,2000}(/[1-9]\d{0,2000})?")
# Columns are of 32 bits in servers.
_MOST = 2**31 - 1
_PLACED = ("id", "home")


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

    @classmethod
    def read(cls, row, place):
        """Return a row of the ledger at ``place``; PrivacyLedgerError where it is damaged."""
        state = cls(*row)
        sound = (
            re.fullmatch("[0-9a-f]{32}", str(state.id))
            and all(isinstance(value, float) for value in (state.epsilon, state.delta))
            and (state.epsilon > 0 and 0 <= state.delta < 1)
            and state.composition in COMPOSITIONS
            and (state.composition == "basic" or state.delta > 0)
            and (isinstance(state.number, int) and 0 <= state.number <= _MOST)
            and state.adjacency in (None, *ADJACENCIES)
            and all(_SUM.fullmatch(str(text)) for text in state[-3:])
        )
        if not sound:
            raise damaged(place)
        return state

    @property
    def account(self):
        """What a mark keeps of it: all but which ledger it is and where."""
        return {name: value for name, value in self._asdict().items() if name not in _PLACED}

    def follows(self, seen):
        """Whether payments alone can have made it of the state that was seen."""
        if self.account == seen.account:
            return True
        return (
            self.number > seen.number
            and self.budget == seen.budget
            and seen.adjacency in (None, self.adjacency)
            and all(now >= before for now, before in zip(self.sums, seen.sums, strict=True))
        )

    def caught_up(self, seen):
        """The row with at least what was seen spent, and the budget that was seen."""
        return seen._replace(
            home=self.home,
            number=max(self.number, seen.number),
            adjacency=seen.adjacency or self.adjacency,
            **_texts(Sums(*map(max, self.sums, seen.sums))),
        )

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
        texts = _texts(self.sums.plus(sums))
        return self._replace(number=self.number + number, adjacency=adjacency, **texts)


def _texts(sums):
    return dict(zip(State._fields[-3:], sums.to_text(), strict=True))


READ_STATE = f"SELECT {', '.join(State._fields)} FROM privacy_budget"
WRITE_STATE = "UPDATE privacy_budget SET " + ", ".join(f"{f} = :{f}" for f in State._fields)
CREATE_STATE = (
    f"INSERT INTO privacy_budget (one, {', '.join(State._fields)}) "
    f"VALUES (1, {', '.join(f':{name}' for name in State._fields)})"
)
