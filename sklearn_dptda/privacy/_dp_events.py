"""Losses of other libraries, which are events of ``dp_accounting``, as charges of a ledger."""

import math
from typing import Any

from sklearn_dptda._typing import Adjacency
from sklearn_dptda.privacy._guarantee import Charge, accounting_library


def charge_of(event: Any, delta: float, adjacency: Adjacency) -> Charge:
    """Return what a ledger counts for an event.

    Pure events count their epsilon. Others count the epsilon that the RDP accountant computes at
    ``delta``, and the rho of the event where all of its parts have one.
    """
    if not type(event).__module__.startswith("dp_accounting."):
        raise TypeError(
            "epsilon must be a number, a PrivacyGuarantee or an event of dp_accounting; got "
            f"{type(event).__name__}."
        )
    accounting = accounting_library()
    epsilon, rho = _pure_and_concentrated(event, accounting)
    if math.isfinite(epsilon):
        return Charge(epsilon, 0.0, rho)
    if not delta > 0:
        raise ValueError(
            f"delta must be above 0 for {type(event).__name__}, which has no pure epsilon."
        )
    from dp_accounting.rdp import RdpAccountant

    relation = {"replace-one": "REPLACE_ONE", "add-remove": "ADD_OR_REMOVE_ONE"}[adjacency]
    accountant = RdpAccountant(
        neighboring_relation=getattr(accounting.NeighboringRelation, relation)
    )
    if not accountant.supports(event):
        raise ValueError(
            f"{type(event).__name__} cannot be counted under {adjacency!r} adjacency: pass its "
            "epsilon and delta as numbers."
        )
    accountant.compose(event)
    return Charge(
        float(accountant.get_epsilon(delta)), float(delta), rho if math.isfinite(rho) else None
    )


def _pure_and_concentrated(event: Any, accounting: Any) -> tuple[float, float]:
    """Pure epsilon and zCDP rho of an event, infinite where it has none."""
    if isinstance(event, accounting.NoOpDpEvent):
        return 0.0, 0.0
    if isinstance(event, accounting.ComposedDpEvent):
        parts = [_pure_and_concentrated(part, accounting) for part in event.events]
        return math.fsum(part[0] for part in parts), math.fsum(part[1] for part in parts)
    if isinstance(event, accounting.SelfComposedDpEvent):
        epsilon, rho = _pure_and_concentrated(event.event, accounting)
        # No events of no loss at all are no loss, and not infinity times nothing.
        return (event.count * epsilon, event.count * rho) if event.count else (0.0, 0.0)
    if isinstance(event, accounting.LaplaceDpEvent):
        epsilon = math.inf if event.noise_multiplier == 0 else 1 / event.noise_multiplier
        return epsilon, Charge(epsilon).concentrated
    if isinstance(event, accounting.GaussianDpEvent):
        scale = event.noise_multiplier
        return math.inf, math.inf if scale == 0 else 1 / (2 * scale**2)
    if isinstance(event, accounting.ZCDpEvent):
        return math.inf, event.rho if event.xi == 0 else math.inf
    return math.inf, math.inf
