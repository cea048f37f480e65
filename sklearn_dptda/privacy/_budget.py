"""Rules by which privacy losses add up, and when the next one still fits."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from sklearn_dptda.privacy._calibration import pure_rho, zcdp_epsilon, zcdp_rho

# Ten losses of 0.1 must fit a budget of 1, although their floats add up to a little more.
_SLACK = 1 + 1e-12


class PrivacyLoss(NamedTuple):
    """An (epsilon, delta) pair."""

    epsilon: float
    delta: float


_UNLIMITED = PrivacyLoss(math.inf, 1.0)


@dataclass(frozen=True)
class Charge:
    """What one release costs, under each rule.

    Parameters
    ----------
    epsilon, delta : float
        Cost under basic composition.
    rho : float or None, default=None
        zCDP parameter where the mechanism has a better one than
        ``epsilon**2 / 2``, for example Gaussian or exponential mechanisms.
    """

    epsilon: float
    delta: float = 0.0
    rho: float | None = None

    def __post_init__(self):
        if not self.epsilon >= 0:
            raise ValueError(f"epsilon must be non-negative; got {self.epsilon!r}.")
        if not 0 <= self.delta < 1:
            raise ValueError(f"delta must be in [0, 1); got {self.delta!r}.")
        if self.rho is not None and not self.rho >= 0:
            raise ValueError(f"rho must be non-negative; got {self.rho!r}.")

    @property
    def concentrated(self):
        """The pair (rho, delta) that zCDP composition adds up.

        An (epsilon, delta)-private mechanism is delta-approximately
        ``epsilon**2 / 2``-zCDP (Bun and Steinke, 2016, Section 8).
        """
        if self.rho is None:
            return pure_rho(self.epsilon), self.delta
        return self.rho, 0.0


@dataclass(frozen=True)
class BasicComposition:
    """Epsilons add up, deltas add up."""

    epsilon: float
    delta: float

    def asked(self, charge):
        """Return one charge in the terms of :meth:`remaining`."""
        return PrivacyLoss(charge.epsilon, charge.delta)

    def total(self, charges):
        """Return the loss of all charges together, as (charge, count) pairs."""
        return PrivacyLoss(
            _sum(count * charge.epsilon for charge, count in charges),
            _sum(count * charge.delta for charge, count in charges),
        )

    def fits(self, charges):
        """Whether the charges together stay within the budget."""
        if math.isinf(self.epsilon):
            return True
        total = self.total(charges)
        return total.epsilon <= self.epsilon * _SLACK and total.delta <= self.delta * _SLACK

    def remaining(self, charges):
        """Largest loss that still fits."""
        if math.isinf(self.epsilon):
            return _UNLIMITED
        total = self.total(charges)
        return PrivacyLoss(
            max(self.epsilon - total.epsilon, 0.0), max(self.delta - total.delta, 0.0)
        )


@dataclass(frozen=True)
class ZCDPComposition:
    """Rhos add up; the sum is converted at the delta of the budget.

    A filter on the sum of rhos is valid for adaptively chosen charges
    (R. Rogers, A. Roth, J. Ullman, S. Vadhan, "Privacy odometers and filters",
    2016; J. Whitehouse, A. Ramdas, R. Rogers, S. Wu, "Fully-adaptive
    composition in differential privacy", 2023).
    """

    epsilon: float
    delta: float

    def __post_init__(self):
        if not self.delta > 0:
            raise ValueError("composition='zcdp' needs a delta above 0.")

    def asked(self, charge):
        """Return one charge in the terms of :meth:`remaining`."""
        rho, delta = charge.concentrated
        return PrivacyLoss(math.sqrt(2 * rho), delta)

    def _sums(self, charges):
        pairs = [(charge.concentrated, count) for charge, count in charges]
        rho = _sum(count * pair[0] for pair, count in pairs)
        return rho, _sum(count * pair[1] for pair, count in pairs)

    def total(self, charges):
        """Return the loss of all charges together, at the delta of the budget."""
        rho, delta = self._sums(charges)
        if rho == 0 and delta == 0:
            return PrivacyLoss(0.0, 0.0)
        if delta >= self.delta:
            return PrivacyLoss(math.inf, delta)
        return PrivacyLoss(zcdp_epsilon(rho, self.delta - delta), self.delta)

    def fits(self, charges):
        """Whether the charges together stay within the budget."""
        if math.isinf(self.epsilon):
            return True
        rho, delta = self._sums(charges)
        return delta < self.delta and rho <= zcdp_rho(self.epsilon, self.delta - delta) * _SLACK

    def remaining(self, charges):
        """Largest pure loss that still fits."""
        if math.isinf(self.epsilon):
            return _UNLIMITED
        rho, delta = self._sums(charges)
        if delta >= self.delta:
            return PrivacyLoss(0.0, 0.0)
        left = max(zcdp_rho(self.epsilon, self.delta - delta) - rho, 0.0)
        return PrivacyLoss(math.sqrt(2 * left), 0.0)


COMPOSITIONS = {"basic": BasicComposition, "zcdp": ZCDPComposition}


def _sum(values):
    """Sum, rounded once."""
    values = list(values)
    return math.inf if math.inf in values else math.fsum(values)
