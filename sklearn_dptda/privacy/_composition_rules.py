"""Rules by which privacy losses add up, and when the next one still fits.

Proof: doc/theory/noise_and_calibration.md, "The ledger's filters".
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, Self, TypeAlias

from sklearn_dptda.privacy._calibration import check_epsilon, pure_rho, zcdp_epsilon, zcdp_rho
from sklearn_dptda.privacy._parameters import quoted

# Factor by which sums may exceed a budget: ten losses of 0.1 must fit a budget of 1, although
# their floats add up to a little more.
_BUDGET_TOLERANCE = 1 + 1e-12

# An exact number, or infinity.
_Exact: TypeAlias = Fraction | float


class PrivacyLoss(NamedTuple):
    """An (epsilon, delta) pair."""

    epsilon: float
    delta: float


_UNLIMITED = PrivacyLoss(math.inf, 1.0)


@dataclass(frozen=True)
class Charge:
    """What one release costs: epsilon and delta under basic composition, rho under zCDP.

    None stands for ``epsilon**2 / 2``, than which Gaussian or exponential mechanisms, for
    example, have a better rho.
    """

    epsilon: float
    delta: float = 0.0
    rho: float | None = None

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if not 0 <= self.delta < 1:
            raise ValueError(f"delta must be in [0, 1); got {quoted(self.delta)}.")
        if self.rho is not None and not self.rho >= 0:
            raise ValueError(f"rho must be non-negative; got {quoted(self.rho)}.")

    @property
    def concentrated(self) -> float:
        """The rho that zCDP composition adds up; infinite for what is not zCDP."""
        if self.rho is not None:
            return self.rho
        return pure_rho(self.epsilon) if self.delta == 0 else math.inf


class Sums(NamedTuple):
    """Exact sums over charges: Fractions, or infinite. They grow by addition alone."""

    epsilon: _Exact = Fraction(0)
    delta: _Exact = Fraction(0)
    concentrated: _Exact = Fraction(0)

    @classmethod
    def of(cls, charges: Iterable[tuple[Charge, int]]) -> Self:
        """Sums of (charge, count) pairs."""
        sums = cls()
        for charge, count in charges:
            each = charge.epsilon, charge.delta, charge.concentrated
            sums = sums.plus(cls(*(count * _exact(value) for value in each)))
        return sums

    def plus(self, other: "Sums") -> Self:
        """Both together."""
        pairs = zip(self, other, strict=True)
        # Fractions may be beyond what can be added to an infinite float.
        return type(self)(*(math.inf if math.inf in pair else sum(pair) for pair in pairs))

    def to_text(self) -> list[str]:
        """Text of each sum, that loses no digit."""
        return [str(value) for value in self]

    @classmethod
    def from_text(cls, texts: Iterable[str]) -> Self:
        """Read what :meth:`to_text` wrote."""
        return cls(*(math.inf if text == "inf" else Fraction(text) for text in texts))


def _exact(value: float) -> _Exact:
    return math.inf if math.isinf(value) else Fraction(value)


def _rounded(value: _Exact) -> float:
    """The nearest float."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


@dataclass(frozen=True)
class BasicComposition:
    """Epsilons add up, deltas add up; any loss can be counted."""

    epsilon: float
    delta: float

    def check(self, charge: Charge) -> None:
        """Refuse what cannot be counted: nothing."""

    def asked(self, sums: Sums) -> PrivacyLoss:
        """Return new losses in the terms of :meth:`remaining`."""
        return self.total(sums)

    def total(self, sums: Sums) -> PrivacyLoss:
        """Return the loss of all charges together."""
        return PrivacyLoss(_rounded(sums.epsilon), _rounded(sums.delta))

    def fits(self, sums: Sums) -> bool:
        """Whether the charges together stay within the budget."""
        if math.isinf(self.epsilon):
            return True
        epsilon, delta = self.total(sums)
        return (
            epsilon <= self.epsilon * _BUDGET_TOLERANCE and delta <= self.delta * _BUDGET_TOLERANCE
        )

    def remaining(self, sums: Sums) -> PrivacyLoss:
        """Largest loss that still fits."""
        if math.isinf(self.epsilon):
            return _UNLIMITED
        epsilon, delta = self.total(sums)
        return PrivacyLoss(max(self.epsilon - epsilon, 0.0), max(self.delta - delta, 0.0))


@dataclass(frozen=True)
class ZCDPComposition:
    """Rhos add up; the sum is converted at the delta of the budget.

    A filter on the sum of rhos is valid for adaptively chosen charges
    (R. Rogers, A. Roth, J. Ullman, S. Vadhan, "Privacy odometers and filters",
    2016; J. Whitehouse, A. Ramdas, R. Rogers, S. Wu, "Fully-adaptive
    composition in differential privacy", 2023). All of delta goes into the
    conversion: what is left of it for losses that state a delta and no rho
    could be chosen after seeing earlier releases, and a union over such
    choices is more than one of them.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not self.delta > 0:
            raise ValueError("composition='zcdp' needs a delta above 0.")

    def check(self, charge: Charge) -> None:
        """Refuse what is not zCDP."""
        if math.isfinite(self.epsilon) and charge.rho is None and charge.delta > 0:
            raise ValueError(
                f"a loss with delta={charge.delta:g} and no rho cannot be counted under "
                "composition='zcdp': state rho, or count it in a ledger with composition='basic'."
            )

    def asked(self, sums: Sums) -> PrivacyLoss:
        """Return new losses in the terms of :meth:`remaining`."""
        return _pure_loss(_rounded(sums.concentrated))

    def total(self, sums: Sums) -> PrivacyLoss:
        """Return the loss of all charges together, at the delta of the budget."""
        rho = _rounded(sums.concentrated)
        return PrivacyLoss(zcdp_epsilon(rho, self.delta), self.delta if rho > 0 else 0.0)

    def fits(self, sums: Sums) -> bool:
        """Whether the charges together stay within the budget."""
        if math.isinf(self.epsilon):
            return True
        budget = zcdp_rho(self.epsilon, self.delta)
        return _rounded(sums.concentrated) <= budget * _BUDGET_TOLERANCE

    def remaining(self, sums: Sums) -> PrivacyLoss:
        """Largest pure loss that still fits."""
        if math.isinf(self.epsilon):
            return _UNLIMITED
        spent = _rounded(sums.concentrated)
        return _pure_loss(max(zcdp_rho(self.epsilon, self.delta) - spent, 0.0))


def _pure_loss(rho: float) -> PrivacyLoss:
    """The pure loss of which rho is the zCDP parameter."""
    return PrivacyLoss(math.sqrt(2 * rho), 0.0)


COMPOSITIONS: dict[str, type[BasicComposition] | type[ZCDPComposition]] = {
    "basic": BasicComposition,
    "zcdp": ZCDPComposition,
}


class Budget(NamedTuple):
    """What a ledger may spend, and the name of the rule by which losses add up in it."""

    epsilon: float
    delta: float
    composition: str

    def rule(self) -> BasicComposition | ZCDPComposition:
        """Return the rule, or raise ValueError where it cannot have such a budget."""
        return COMPOSITIONS[self.composition](self.epsilon, self.delta)
