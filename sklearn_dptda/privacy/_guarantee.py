"""What one release promises, which data sets are neighbours, and how promises add up.

Proof: doc/theory/noise_and_calibration.md, "Adjacency".
Proof: doc/theory/noise_and_calibration.md, "The ledger's filters".
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from html import escape
from typing import Any, NamedTuple, Self, TypeAlias

from sklearn_dptda._typing import Adjacency
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
    """Return a known adjacency, or raise ValueError."""
    if adjacency not in ADJACENCIES:
        raise ValueError(f"adjacency must be one of {ADJACENCIES}; got {quoted(adjacency)}.")
    return adjacency


class Neighbours(NamedTuple):
    """Which data sets a loss is about: how they differ, and in what."""

    adjacency: Adjacency
    unit: str


# Records of which one person may have any number, as the estimators here call them.
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


def kind_of_unit(unit: str) -> str:
    """Units of one kind have losses that add up in a ledger.

    People count with people; points, rows and edges with each other; and what somebody has given a
    name of its own, such as one cloud, with its like.
    """
    if re.match(r"(all \w[^,]* of )?one person(,| in | with |$)", unit):
        return "person"
    return "part" if unit in _PARTS else unit


@dataclass(frozen=True)
class PrivacyGuarantee:
    """The promise that one release makes.

    Parameters
    ----------
    epsilon : float
        Privacy loss; ``inf`` means that nothing is promised.
    delta : float
        Failure probability of the bound; 0 for a pure guarantee.
    adjacency : {"replace-one", "add-remove"}
        Which data sets count as neighbours. That there is at least one record,
        or that there are at least two people, is public: less is refused.
    unit : str
        What one record is.
    mechanism : str
        The mechanism that draws the release.
    released : str
        What leaves the data curator's hands.
    seeded : bool
        True when the randomness came from a known seed. With the
        seed, the noise can be undone: such a release is for tests and study only.
    exact : bool, default=True
        False when the law of the release only approximates the one that the
        proof is about (a Markov chain that is stopped, say).
    public_parameters : bool, default=True
        False when a parameter that should be public, such as the bounding
        box, was computed from the data.
    rho : float, default=None
        Zero-concentrated privacy loss (zCDP) of the release where the
        mechanism has a better one than ``epsilon**2 / 2``; what an accountant
        with ``composition="zcdp"`` counts.
    labels : bool, default=False
        True where a record is a row together with its label, and both are
        protected.
    release_id : str, default=None
        Random name of the release, where several steps may share it, as
        filtrations share a private box. Equal promises of two releases differ
        in it, and compare equal.

    Raises
    ------
    ValueError
        If epsilon, delta, rho or the adjacency is out of its range.

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

    def __post_init__(self) -> None:
        Charge(self.epsilon, self.delta, self.rho)
        check_adjacency(self.adjacency)
        if not self.unit:
            raise ValueError("unit must say what one record is.")

    def __add__(self, other: object) -> "PrivacyGuarantee":
        """Promise of two releases of the same records together, by basic composition.

        Raises
        ------
        ValueError
            If the two speak of other neighbours or of other records.
        """
        if not isinstance(other, PrivacyGuarantee):
            return NotImplemented
        if (self.adjacency, self.unit) != (other.adjacency, other.unit):
            people = "person" in (kind_of_unit(self.unit), kind_of_unit(other.unit))
            remedy = " Give groups to all steps, so that each protects people." * people
            raise ValueError(
                f"guarantees for {self.adjacency} of {self.unit} and for {other.adjacency} of "
                f"{other.unit} do not add.{remedy}"
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
            rho=self.charge.concentrated + other.charge.concentrated,
            labels=self.labels or other.labels,
        )

    @property
    def neighbours(self) -> Neighbours:
        """Which data sets it is about."""
        return Neighbours(self.adjacency, self.unit)

    @property
    def charge(self) -> Charge:
        """What an accountant adds up."""
        return Charge(self.epsilon, self.delta, self.rho)

    def to_dp_event(self) -> Any:
        """Return the guarantee as an event of the library ``dp_accounting``.

        Use it to count releases of this library in the accountant of another one. The event is a
        ``ZCDpEvent`` with the rho of the guarantee, or with ``epsilon**2 / 2`` where it is pure.
        ``dp_accounting.rdp.RdpAccountant`` composes it; ``PLDAccountant`` does not. An event does
        not know its adjacency: give the accountant the ``neighboring_relation`` of the guarantee.

        Returns
        -------
        dp_accounting.DpEvent

        Raises
        ------
        ImportError
            If ``dp_accounting`` is not installed.
        ValueError
            If the guarantee has a delta and no rho. Such losses add up by basic composition.

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
        """Whether the release is fit to be handed on as private."""
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
        # An empty table is refused, which tells it from one with a single record.
        people = kind_of_unit(self.unit) == "person"
        least = "are at least two" if people else "is at least one"
        known = f" (that there {least} is public)" * (self.adjacency == "add-remove")
        many = self.unit.startswith("all ")
        labels = (", with their labels" if many else " with its label") * self.labels
        text = (
            f"(epsilon={self.epsilon:g}, delta={self.delta:g})-differential privacy for {verb} "
            f"{self.unit}{labels}{known}: {self.released}, drawn by the {self.mechanism}."
        )
        if not self.exact:
            text += (
                " The law of this release only approximates the one that the bound is proved for:"
                " the guarantee is nominal."
            )
        if not self.public_parameters:
            text += (
                " A parameter that should be public, such as the bounds or the scale of an earlier "
                "step, was computed from the data, which the bound does not cover."
            )
        if self.seeded:
            text += (
                " The draw came from a known seed: reproducible, for tests and study only, and"
                " not private towards anyone who knows the seed."
            )
        return text

    def _repr_html_(self) -> str:
        colour = "#2a7f62" if self.holds else "#b3541e"
        return (
            f'<div style="border-left:4px solid {colour};padding:.4em .8em;max-width:44em">'
            f"{escape(str(self))}</div>"
        )
