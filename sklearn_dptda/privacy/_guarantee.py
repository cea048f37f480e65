"""Privacy guarantees: what one release promises, neighbouring data sets, and composition.

Proof: doc/theory/noise_and_calibration.md, "Adjacency".
Proof: doc/theory/noise_and_calibration.md, "The ledger's filters".
"""

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from html import escape
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np

from sklearn_dptda._typing import Adjacency, FloatArray
from sklearn_dptda.privacy._calibration import check_epsilon, pure_rho, zcdp_epsilon, zcdp_rho
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.privacy._risk import (
    LARGEST_LOSS,
    Curve,
    LossLaw,
    PrivacyRisk,
    advantage_of,
    delta_of_charge,
    sentence_of,
)

# Factor by which sums may exceed a budget. Ten losses of 0.1 must fit a budget of 1, although the
# sum of their floats is slightly larger.
_BUDGET_TOLERANCE = 1 + 1e-12
# Rounding errors of the delta of a law, in relation to the stated one and absolute.
_LAW_TOLERANCE, _LAW_ERROR = 1e-6, 1e-12

# An exact number, or infinity.
_Exact: TypeAlias = Fraction | float


class PrivacyLoss(NamedTuple):
    """Privacy loss, an (epsilon, delta) pair.

    Parameters
    ----------
    epsilon : float
        Privacy loss.
    delta : float
        Failure probability of the bound.

    Examples
    --------
    >>> from sklearn_dptda.privacy import PrivacyAccountant
    >>> PrivacyAccountant(1.0).remaining()
    PrivacyLoss(epsilon=1.0, delta=0.0)
    """

    epsilon: float
    delta: float


_UNLIMITED = PrivacyLoss(math.inf, 1.0)


@dataclass(frozen=True)
class Charge:
    """Cost of one release: epsilon and delta under basic composition, rho under zCDP.

    If rho is None, ``epsilon**2 / 2`` is used. Gaussian and exponential mechanisms, for example,
    have a smaller rho.
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
        """The rho that zCDP composition adds; infinite if the release is not zCDP."""
        if self.rho is not None:
            return self.rho
        return pure_rho(self.epsilon) if self.delta == 0 else math.inf


class Sums(NamedTuple):
    """Exact sums over charges, as Fractions or infinity."""

    epsilon: _Exact = Fraction(0)
    delta: _Exact = Fraction(0)
    concentrated: _Exact = Fraction(0)

    @classmethod
    def of(cls, charges: Iterable[tuple[Charge, int]]) -> Self:
        """Return the sums over (charge, count) pairs."""
        # Many payments have equal charges, and products are faster than sums of fractions.
        counts: Counter[Charge] = Counter()
        for charge, count in charges:
            counts[charge] += count
        sums = cls()
        for charge, count in counts.items():
            each = charge.epsilon, charge.delta, charge.concentrated
            sums = sums.plus(cls(*(count * _exact(value) for value in each)))
        return sums

    def plus(self, other: "Sums") -> Self:
        """Return the sums over the charges of both."""
        pairs = zip(self, other, strict=True)
        # A Fraction may be too large to be added to an infinite float.
        return type(self)(*(math.inf if math.inf in pair else sum(pair) for pair in pairs))

    def to_text(self) -> list[str]:
        """Return each sum as a text without rounding."""
        return [str(value) for value in self]

    @classmethod
    def from_text(cls, texts: Iterable[str]) -> Self:
        """Read the result of :meth:`to_text`."""
        return cls(*(math.inf if text == "inf" else Fraction(text) for text in texts))


def _exact(value: float) -> _Exact:
    return math.inf if math.isinf(value) else Fraction(value)


def _rounded(value: _Exact) -> float:
    """Return the nearest float."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


@dataclass(frozen=True)
class BasicComposition:
    """Basic composition: epsilons and deltas are added. Any loss can be counted."""

    epsilon: float
    delta: float

    def check(self, charge: Charge) -> None:
        """Accept any charge, because all charges can be counted."""

    def asked(self, sums: Sums) -> PrivacyLoss:
        """Return new losses in a form that is comparable with :meth:`remaining`."""
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
    """Composition in zCDP: rhos are added, and the sum is converted at the delta of the budget.

    A filter on the sum of rhos is valid for adaptively chosen charges (R. Rogers, A. Roth, J.
    Ullman, S. Vadhan, "Privacy odometers and filters", 2016; J. Whitehouse, A. Ramdas, R. Rogers,
    S. Wu, "Fully-adaptive composition in differential privacy", 2023). No part of delta can be kept
    for losses without a rho: its size could be chosen after seeing earlier releases.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not self.delta > 0:
            raise ValueError("composition='zcdp' requires a delta larger than 0.")

    def check(self, charge: Charge) -> None:
        """Refuse a charge that is not zCDP."""
        if math.isfinite(self.epsilon) and charge.rho is None and charge.delta > 0:
            raise ValueError(
                f"a loss with delta={charge.delta:g} and no rho cannot be counted under "
                "composition='zcdp': state rho, or count it in a ledger with composition='basic'."
            )

    def asked(self, sums: Sums) -> PrivacyLoss:
        """Return new losses in a form that is comparable with :meth:`remaining`."""
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
    """Return the pure loss whose zCDP parameter is rho."""
    return PrivacyLoss(math.sqrt(2 * rho), 0.0)


COMPOSITIONS: dict[str, type[BasicComposition] | type[ZCDPComposition]] = {
    "basic": BasicComposition,
    "zcdp": ZCDPComposition,
}


class Budget(NamedTuple):
    """Budget of a ledger, and the name of the rule by which losses are added."""

    epsilon: float
    delta: float
    composition: str

    def rule(self) -> BasicComposition | ZCDPComposition:
        """Return the composition rule, or raise ValueError if it does not allow this budget."""
        return COMPOSITIONS[self.composition](self.epsilon, self.delta)


def accounting_library() -> Any:
    """Return the module ``dp_accounting``, or raise an error that says how to install it."""
    try:
        import dp_accounting
    except ImportError:
        raise ImportError(
            "Events need dp_accounting: pip install 'sklearn-dptda[accounting]'."
        ) from None
    return dp_accounting


ADJACENCIES = ("replace-one", "add-remove")


def check_adjacency(adjacency: Adjacency) -> Adjacency:
    """Return the adjacency, or raise ValueError if it is unknown."""
    if adjacency not in ADJACENCIES:
        raise ValueError(f"adjacency must be one of {ADJACENCIES}; got {quoted(adjacency)}.")
    return adjacency


class Neighbours(NamedTuple):
    """Neighbouring data sets of a loss: how they differ (adjacency), and in what (privacy unit)."""

    adjacency: Adjacency
    unit: str


# Privacy units of which one person may have any number, as the estimators here name them.
_PARTS = frozenset(
    {
        "one point of a cloud",
        "a point of a cloud",
        "one point",
        "one row",
        "one record",
        "one edge, there or not",
        "one directed link, there or not",
        "all rows together",
    }
)


def all_of_one_person(part: str, groups: Any, where: str = "") -> str:
    """Return the privacy unit of people who may have several parts, such as ``"one row"``.

    :func:`kind_of_unit` reads it: ledgers keep units as texts.
    """
    by = f", by {groups!r}" if isinstance(groups, str) else ""
    return f"all {str(part).removeprefix('one ')}s of one person{where}{by}"


def kind_of_unit(unit: str) -> str:
    """Return the kind of a privacy unit. A ledger only adds losses of units of one kind.

    People are one kind. Points, rows and edges together are another. A unit with a name that the
    caller chose, such as one cloud, is a kind of its own.
    """
    if re.match(r"(all \w.* of )?one person(,| in | with |$)", unit):
        return "person"
    return "part" if unit in _PARTS else unit


def curve_of(sums: Sums, law: LossLaw | None) -> Curve:
    """Return the curve of releases with these sums, and with this law if it is known."""
    epsilon, delta, rho = map(_rounded, sums)
    charge = delta_of_charge(epsilon, min(delta, 1.0), rho)

    def curve(losses: FloatArray) -> FloatArray:
        bound = charge(losses)
        return bound if law is None else np.minimum(bound, law.delta(losses))

    return curve


def sum_of_laws(releases: "Iterable[tuple[PrivacyGuarantee, int]]") -> LossLaw | None:
    """Return the law of the losses of several releases together, or None if one is unknown."""
    total = LossLaw()
    for each, count in releases:
        law = each.law
        if law is None and each.delta == 0:
            law = LossLaw((each.epsilon,))
        elif law is None and math.isfinite(each.charge.concentrated):
            law = LossLaw(zcdp=each.charge.concentrated)
        if law is None:
            return None
        total += law * count
    return total


@dataclass(frozen=True)
class PrivacyGuarantee:
    """Privacy guarantee of one release. It prints as a short text.

    Parameters
    ----------
    epsilon : float
        Privacy loss. ``inf`` means that there is no privacy.
    delta : float
        Failure probability of the bound. 0 for a pure guarantee.
    adjacency : {"replace-one", "add-remove"}
        Neighbouring data sets. ``"replace-one"`` (bounded): one privacy unit is
        replaced. ``"add-remove"`` (unbounded): one is added or removed. Under
        ``"add-remove"`` it is public that there is at least one record, or that
        there are at least two people, because smaller inputs are refused.
    unit : str
        The privacy unit, such as ``"one row"`` or ``"all rows of one person"``.
    mechanism : str
        Name of the mechanism that draws the release.
    released : str
        Description of the release.
    seeded : bool
        True if the randomness came from a known seed, with which the noise can be
        undone.
    exact : bool, default=True
        False if the distribution of the release only approximates the one of the
        proof, as for a Markov chain.
    public_parameters : bool, default=True
        False if a parameter that should be public, such as the bounding box, was
        computed from the data.
    rho : float, default=None
        Zero-concentrated privacy loss (zCDP) of the release, if it is better than
        ``epsilon**2 / 2``. Accountants with ``composition="zcdp"`` count it.
    labels : bool, default=False
        True if a record is a row together with its label, so that both are
        protected.
    release_id : str, default=None
        Random name of a release that several steps can share, such as a private box.
        It is ignored when guarantees are compared.
    law : LossLaw, default=None
        Worst law of the privacy loss, from which ``rho`` and :meth:`risk` follow, where more is
        known of it than epsilon and delta.

    Examples
    --------
    >>> from sklearn_dptda.privacy import PrivacyGuarantee
    >>> print(PrivacyGuarantee(1.0, 0.0, "replace-one", "a point of a cloud",
    ...       "exponential mechanism", "one persistence diagram per cloud", False))
    (epsilon=1, delta=0)-differential privacy for replacing a point of a cloud: ...
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    unit: str
    mechanism: str
    released: str
    seeded: bool
    exact: bool = True
    public_parameters: bool = True
    rho: float | None = None
    labels: bool = False
    release_id: str | None = field(default=None, compare=False, repr=False)
    law: LossLaw | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.law is not None:
            object.__setattr__(self, "rho", self.law.rho)
            self._check_law(self.law)
        Charge(self.epsilon, self.delta, self.rho)
        check_adjacency(self.adjacency)
        if not self.unit:
            raise ValueError("unit must name the privacy unit, such as 'one row'.")

    def _check_law(self, law: LossLaw) -> None:
        """Raise ValueError if the law loses more than epsilon and delta say."""
        # The curve of several choices or of mixed parts is an upper bound.
        # Beyond the largest loss, curves are those of this loss.
        if law.mixed or law.zcdp or len(law.choices) > 1 or self.epsilon > LARGEST_LOSS:
            return
        # No pure part loses more than its epsilon. The curve of choices takes much longer.
        if not law.mu and sum(law.pure + law.choices) <= self.epsilon + _LAW_ERROR:
            return
        if law.delta(np.array(self.epsilon)) > self.delta * (1 + _LAW_TOLERANCE) + _LAW_ERROR:
            raise ValueError("the law of the loss is not that of epsilon and delta.")

    def __add__(self, other: object) -> "PrivacyGuarantee":
        """Guarantee of two releases of the same records together, by basic composition."""
        if not isinstance(other, PrivacyGuarantee):
            return NotImplemented
        if (self.adjacency, self.unit) != (other.adjacency, other.unit):
            people = "person" in (kind_of_unit(self.unit), kind_of_unit(other.unit))
            remedy = " Give groups to all steps, so that each protects people." * people
            raise ValueError(
                f"the guarantees have different neighbours and do not add: {self.adjacency} of "
                f"{self.unit}, and {other.adjacency} of {other.unit}.{remedy}"
            )
        return PrivacyGuarantee(
            epsilon=self.epsilon + other.epsilon,
            delta=self.delta + other.delta,
            adjacency=self.adjacency,
            unit=self.unit,
            mechanism=f"{self.mechanism}, after the {other.mechanism}",
            released=f"{self.released}; {other.released}",
            seeded=self.seeded or other.seeded,
            exact=self.exact and other.exact,
            public_parameters=self.public_parameters and other.public_parameters,
            labels=self.labels or other.labels,
            law=sum_of_laws([(self, 1), (other, 1)]),
        )

    @property
    def neighbours(self) -> Neighbours:
        """Adjacency and privacy unit."""
        return Neighbours(self.adjacency, self.unit)

    @property
    def charge(self) -> Charge:
        """Cost of the release, as accountants count it."""
        return Charge(self.epsilon, self.delta, self.rho)

    def risk(self, prior: float = 0.5, fpr: float = 0.01) -> PrivacyRisk:
        """Compute what the release can tell about one record.

        Parameters
        ----------
        prior : float, default=0.5
            Probability, before the release, that an accusation is right.
        fpr : float, default=0.01
            Rate of false accusations.

        Returns
        -------
        PrivacyRisk
            Bounds for every attack by someone who knows all other records.

        Examples
        --------
        >>> from sklearn_dptda.cluster import DPLloyd
        >>> from sklearn_dptda.model_selection import planned_loss
        >>> guarantee = planned_loss(DPLloyd(3, bounds=(0, 1))).releases[0].guarantee
        >>> round(guarantee.risk().advantage, 3)
        0.094
        """
        return PrivacyRisk.of(self._curve(), prior, fpr, self.adjacency)

    def _curve(self) -> Curve:
        return curve_of(Sums.of([(self.charge, 1)]), sum_of_laws([(self, 1)]))

    @property
    def advantage(self) -> float:
        """Largest advantage of an attack on one record, the first number of :meth:`risk`."""
        return advantage_of(self._curve())

    def to_dp_event(self) -> Any:
        """Return the guarantee as an event of the library ``dp_accounting``.

        The event is a ``ZCDpEvent`` with the rho of the guarantee, or with ``epsilon**2 / 2``
        where it is pure. ``dp_accounting.rdp.RdpAccountant`` composes it; ``PLDAccountant`` does
        not. An event does not know its adjacency: give the accountant the
        ``neighboring_relation`` of the guarantee.

        Returns
        -------
        dp_accounting.DpEvent

        Raises
        ------
        ImportError
            If ``dp_accounting`` is not installed.

        Examples
        --------
        >>> from sklearn_dptda.privacy import PrivacyGuarantee
        >>> PrivacyGuarantee(1.0, 0.0, "add-remove", "one row", "Laplace mechanism", "a count",
        ...       seeded=False).to_dp_event()
        ZCDpEvent(rho=0.5, xi=0.0)
        """
        accounting = accounting_library()
        if math.isinf(self.epsilon):
            return accounting.NonPrivateDpEvent()
        rho = self.charge.concentrated
        if math.isinf(rho):
            raise ValueError(
                f"an (epsilon, delta) guarantee with delta={self.delta:g} and no rho has no "
                "dp_accounting event. Add up epsilon and delta instead."
            )
        return accounting.ZCDpEvent(rho)

    @property
    def holds(self) -> bool:
        """Whether you can publish the release as a private one.

        False if epsilon is infinite, if the release is seeded, if its law is not
        exact, or if a parameter was computed from the data.
        """
        return (
            math.isfinite(self.epsilon)
            and self.exact
            and self.public_parameters
            and not self.seeded
        )

    def __str__(self) -> str:
        if math.isinf(self.epsilon):
            return f"No privacy (epsilon=inf): {self.released}, exact."
        verb = {"replace-one": "replacing", "add-remove": "adding or removing"}[self.adjacency]
        # An empty table is refused, so that it is distinguishable from one with a single record.
        people = kind_of_unit(self.unit) == "person"
        least = "are at least two" if people else "is at least one"
        known = f" (it is public that there {least})" * (self.adjacency == "add-remove")
        many = self.unit.startswith("all ")
        labels = ", together with the labels" if many else " together with the label"
        labels *= self.labels
        text = (
            f"(epsilon={self.epsilon:g}, delta={self.delta:g})-differential privacy for {verb} "
            f"{self.unit}{labels}{known}: {self.released}, drawn by the {self.mechanism}. "
            f"{sentence_of(self.advantage, self.adjacency, people)}"
        )
        if not self.exact:
            text += (
                " The distribution of this release only approximates the one of the proof: the"
                " guarantee is nominal."
            )
        if not self.public_parameters:
            text += (
                " A parameter that should be public, such as the bounds or the scale of an earlier "
                "step, was computed from the data. The guarantee does not cover this."
            )
        if self.seeded:
            text += (
                " The draw came from a known seed. It is reproducible, and for tests and study"
                " only, because the noise can be undone with the seed."
            )
        return text

    def _repr_html_(self) -> str:
        colour = "#2a7f62" if self.holds else "#b3541e"
        return (
            f'<div style="border-left:4px solid {colour};padding:.4em .8em;max-width:44em">'
            f"{escape(str(self))}</div>"
        )
