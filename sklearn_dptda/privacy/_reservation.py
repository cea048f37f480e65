"""Payments made ahead, all at once, for releases that are drawn elsewhere later."""

import threading
from typing import Any

from sklearn_dptda.privacy._accountant import PrivacyAccountant
from sklearn_dptda.privacy._composition_rules import Charge
from sklearn_dptda.privacy._warnings import PrivacyLedgerError


class Reservation(PrivacyAccountant):
    """Stands in for an accountant whose ledger has been charged for some guarantees already.

    Releases take from it what was reserved, and nothing else: one that costs more than what is
    left, or of another adjacency, is refused. Of what covers a release it takes the cheapest.
    """

    def __init__(self, guarantees):
        self._left = list(guarantees)
        self._lock = threading.Lock()

    def spend(self, epsilon, delta=0.0, *, rho=None, adjacency="replace-one", **line: Any) -> None:
        """Take what was reserved for such a release."""
        asked = Charge(float(epsilon), float(delta), rho)
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
            del self._left[min(covering)[1]]

    def __reduce__(self):
        # Of two copies each would pay.
        raise PrivacyLedgerError(
            "What was paid for ahead for one task cannot be shared with other processes: nothing "
            "was released. Leave n_jobs of what runs inside of the task at None."
        )

    def __repr__(self):
        return "Reservation()"


def _costs(charge):
    return charge.epsilon, charge.delta, charge.concentrated


def _covers(paid, asked):
    return all(has >= costs for has, costs in zip(_costs(paid), _costs(asked), strict=True))
