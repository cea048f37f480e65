"""Payments made ahead, all at once, for releases that are drawn elsewhere later."""

import threading
from typing import Any

from sklearn_dptda.privacy._accountant import PrivacyAccountant
from sklearn_dptda.privacy._composition_rules import Charge
from sklearn_dptda.privacy._warnings import PrivacyLedgerError


class PaidAhead:
    """Charges that a ledger has counted already, until they are taken or closed.

    Of what covers a release the cheapest is taken. Where ``pay`` is given, nothing is counted yet:
    it is called once, when the first release has passed all checks and asks for its share.
    """

    def __init__(self, guarantees, pay=None):
        self.is_open = True
        self._pay_all = pay
        self._left = list(guarantees)
        self._lock = threading.Lock()

    def take(self, asked, adjacency):
        """Take what was paid for such a release; PrivacyLedgerError if nothing is left for it."""
        with self._lock:
            covering = [
                (_costs(paid.charge), place)
                for place, paid in enumerate(self._left)
                if paid.adjacency == adjacency and _covers(paid.charge, asked)
            ]
            if not covering:
                raise PrivacyLedgerError(
                    "A release was not among those that were paid for ahead: nothing was released."
                )
            self._settle()
            del self._left[min(covering)[1]]

    @property
    def is_paid(self):
        """Whether the ledger has counted the charges."""
        return self._pay_all is None

    def settle(self):
        """Pay, if nobody has asked for a share so far."""
        with self._lock:
            self._settle()

    def _settle(self):
        if self._pay_all is not None:
            self._pay_all()
            self._pay_all = None


class Reservation(PrivacyAccountant):
    """An accountant of which releases of one task take what was paid for ahead, and nothing else.

    What has left the task, as a pickle or when the task is over, is the accountant itself again.
    """

    def __init__(self, accountant, paid):
        self.__dict__.update(vars(accountant))
        self._paid = paid

    def spend(self, epsilon, delta=0.0, *, rho=None, adjacency="replace-one", **line: Any) -> None:
        """Take what was paid for, or, when the task is over, pay."""
        if self._paid.is_open:
            self._paid.take(Charge(float(epsilon), float(delta), rho), adjacency)
        else:
            super().spend(epsilon, delta, rho=rho, adjacency=adjacency, **line)


def _costs(charge):
    return charge.epsilon, charge.delta, charge.concentrated


def _covers(paid, asked):
    return all(has >= costs for has, costs in zip(_costs(paid), _costs(asked), strict=True))
