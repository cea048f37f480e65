"""Planned releases and the sums of their privacy losses."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any, Self

import numpy as np

from sklearn_dptda._typing import Adjacency, FloatArray
from sklearn_dptda.privacy import (
    PrivacyAccountant,
    PrivacyGuarantee,
    PrivacyLoss,
)
from sklearn_dptda.privacy._default_accountant import default_accountant
from sklearn_dptda.privacy._guarantee import (
    Budget,
    Sums,
    curve_of,
    kind_of_unit,
    sum_of_laws,
)
from sklearn_dptda.privacy._ledger import Payment
from sklearn_dptda.privacy._release_key import Turn
from sklearn_dptda.privacy._risk import Curve, PrivacyRisk, advantage_of, sentence_of


@dataclass(frozen=True)
class PlannedRelease:
    """A number of planned releases of one estimator with the same guarantee.

    :func:`planned_loss` makes these objects.

    Parameters
    ----------
    estimator : str
        Name of the class of the estimator.
    guarantee : PrivacyGuarantee
        Guarantee of each release.
    count : int, default=1
        Number of releases.
    accountant : PrivacyAccountant, default=None
        Accountant of the estimator, if it has one of its own.

    Examples
    --------
    >>> from sklearn_dptda.cluster import DPMoG
    >>> from sklearn_dptda.model_selection import planned_loss
    >>> print(planned_loss(DPMoG(bounds=(0, 1))).releases[0])
    1 of DPMoG (epsilon=1, delta=1e-06 each)
    """

    estimator: str
    guarantee: PrivacyGuarantee
    count: int = 1
    accountant: PrivacyAccountant | None = field(default=None, repr=False)

    def __str__(self):
        delta = f", delta={self.guarantee.delta:g}" if self.guarantee.delta else ""
        return f"{self.count} of {self.estimator} (epsilon={self.guarantee.epsilon:g}{delta} each)"


@dataclass(frozen=True)
class PlannedLoss:
    """Privacy loss of planned calls. :func:`planned_loss` makes it; it prints as a short text.

    Parameters
    ----------
    releases : tuple of PlannedRelease, default=()
        The releases, in the order of their first occurrence.
    at_most : bool, default=False
        Whether the loss is an upper bound, because fewer or cheaper releases are
        possible. An example is the last fit of a search over ``epsilon``.
    accountant : PrivacyAccountant, default=None
        Accountant of the estimators without one of their own. Its composition
        rule is used to add the losses. None uses the accountant of the surrounding
        ``with`` block, if any.
    rehearsed : bool, default=False
        Whether the releases were counted in a fit to made-up data.

    Attributes
    ----------
    n_releases : int
        Number of releases.

    Examples
    --------
    >>> from sklearn_dptda.cluster import DPMoG
    >>> from sklearn_dptda.model_selection import planned_loss
    >>> plan = planned_loss(DPMoG(bounds=(0, 1)), cv=5)
    >>> plan.n_releases, plan.total().epsilon
    (5, 5.0)
    """

    releases: tuple[PlannedRelease, ...] = ()
    at_most: bool = False
    accountant: PrivacyAccountant | None = field(default=None, repr=False, compare=False)
    rehearsed: bool = False

    @property
    def n_releases(self) -> int:
        """Number of releases."""
        return sum(release.count for release in self.releases)

    def total(self) -> PrivacyLoss:
        """Return the loss of all releases together.

        Returns
        -------
        PrivacyLoss
            Sum by the composition rule of ``accountant``, or of the surrounding
            ``with`` block. Without an accountant, epsilons and deltas are added.
        """
        charges = [(release.guarantee.charge, release.count) for release in self.releases]
        loss: PrivacyLoss = self._rule().total(Sums.of(charges))
        return loss

    def risk(self, prior: float = 0.5, fpr: float = 0.01) -> PrivacyRisk:
        """Compute what all releases together can tell about one record.

        Parameters
        ----------
        prior : float, default=0.5
            Probability, before the releases, that an accusation is right.
        fpr : float, default=0.01
            Rate of false accusations.

        Returns
        -------
        PrivacyRisk
            Bounds for every attack by someone who knows all other records.

        Raises
        ------
        ValueError
            If the releases have different adjacencies or privacy units, so that no
            record has a common risk.
        """
        adjacency = self._adjacency()
        if adjacency is None:
            raise ValueError(
                "the releases have different neighbours, so their risks do not add. Give the same "
                "adjacency to all steps, and groups to all or none of them."
            )
        return PrivacyRisk.of(self._curve(), prior, fpr, adjacency)

    def _adjacency(self) -> Adjacency | None:
        """Return the adjacency of all releases, or None if their neighbours differ in kind."""
        neighbours = {
            (each.guarantee.adjacency, kind_of_unit(each.guarantee.unit)) for each in self.releases
        }
        if len(neighbours) > 1:
            return None
        return next(iter(neighbours))[0] if neighbours else "replace-one"

    def _curve(self) -> Curve:
        charges = [(release.guarantee.charge, release.count) for release in self.releases]
        # A bound of several plans is one of their sums, but not of their laws.
        releases = [(release.guarantee, release.count) for release in self.releases]
        return curve_of(Sums.of(charges), None if self.at_most else sum_of_laws(releases))

    def check(self) -> None:
        """Check whether the budgets cover the releases. Nothing is spent.

        Without this check, a search that exceeds its budget may stop in the middle, and the
        releases that it has paid for are lost. No budget is reserved: another program can spend
        from the ledger before your call.

        Raises
        ------
        PrivacyBudgetExceeded
            If the releases do not fit a budget.
        ValueError
            If a private estimator has no accountant, or if losses of different adjacencies would
            be counted in one ledger.

        Examples
        --------
        >>> from sklearn.model_selection import GridSearchCV
        >>> from sklearn_dptda import PrivacyAccountant
        >>> from sklearn_dptda.cluster import DPMoG
        >>> from sklearn_dptda.model_selection import planned_loss
        >>> search = GridSearchCV(DPMoG(bounds=(0, 1)), {"n_components": [2, 3, 4]})
        >>> planned_loss(search, accountant=PrivacyAccountant(10.0, 1e-3)).check()
        Traceback (most recent call last):
        ...
        sklearn_dptda.privacy._warnings.PrivacyBudgetExceeded: asked for epsilon=16, ...
        """
        for accountant, releases in self._by_payer():
            if accountant is None:
                raise ValueError(
                    f"{releases[0].estimator} has no accountant, so there is no budget to check. "
                    "Pass an accountant as accountant=."
                )
            accountant.check((release.guarantee, release.count) for release in releases)

    def pay(self) -> None:
        """Spend the loss of all releases now, or spend nothing.

        This is one transaction, even with several budgets: each budget commits
        inside of the transaction of the previous one.

        Raises
        ------
        PrivacyBudgetExceeded
            If the releases do not fit a budget. Nothing is spent.
        """
        self._pay_for([lambda payer, number: None])

    def _pay_for(self, tasks: Iterable[Callable[[PrivacyAccountant, int], Turn | None]]) -> None:
        """Pay for the releases of each task, except for those already paid under its name.

        A task returns the turn of its first, second, ... release that a payer counts.
        """
        payers: dict[str, tuple[PrivacyAccountant, list[Payment]]] = {}
        for turn_of in tasks:
            numbers: Counter[str] = Counter()
            for release in self.releases:
                payer = release.accountant or self._payer()
                if payer is None:
                    continue
                identity = payer._ledger.id
                _, due = payers.setdefault(identity, (payer, []))
                for _ in range(release.count):
                    numbers[identity] += 1
                    turn = turn_of(payer, numbers[identity])
                    due.append(Payment.of(release.guarantee, release.estimator, turn))
        # Budgets are locked in one order in all programs, which avoids deadlocks.
        _pay_in_turn([payers[identity] for identity in sorted(payers)])

    def as_bound(self) -> "PlannedLoss":
        """Return this loss as an upper bound, with ``at_most=True``.

        Returns
        -------
        PlannedLoss
        """
        return replace(self, at_most=bool(self.releases))

    def _by_payer(self):
        payers: dict[Any, tuple[PrivacyAccountant | None, list[PlannedRelease]]] = {}
        for release in self.releases:
            payer = release.accountant or self._payer()
            # Two handles of one ledger share its budget.
            _, releases = payers.setdefault(payer and payer._ledger.id, (payer, []))
            releases.append(release)
        return payers.values()

    def _payer(self):
        return self.accountant or default_accountant()

    def _rule(self):
        payer = self._payer()
        unlimited = Budget(np.inf, 0.0, "basic")
        budget = Budget(payer.epsilon, payer.delta, payer.composition) if payer else unlimited
        return budget.rule()

    def __add__(self, other: "PlannedLoss") -> "PlannedLoss":
        """Return the loss of both plans, one after the other."""
        merged: dict[object, PlannedRelease] = {}
        for release in self.releases + other.releases:
            key = release.estimator, release.guarantee, release.accountant
            known = merged.get(key)
            merged[key] = (
                release if known is None else replace(known, count=known.count + release.count)
            )
        return replace(self, releases=tuple(merged.values()), at_most=self.at_most or other.at_most)

    def __mul__(self, times: int) -> Self:
        """Return the loss of several repetitions, one after the other."""
        releases = tuple(replace(r, count=times * r.count) for r in self.releases if times)
        return replace(self, releases=releases)

    def __str__(self):
        if not self.releases:
            return "No release: nothing is paid."
        loss, payer = self.total(), self._payer()
        rule = "basic" if payer is None else payer.composition
        adjacency, risk = self._adjacency(), ""
        if adjacency is not None:
            risk = f" {sentence_of(advantage_of(self._curve()), adjacency)}"
        count = f"{'At most ' * self.at_most}{self.n_releases} release{'s' * (self.n_releases > 1)}"
        count += " in a rehearsal" * self.rehearsed
        return (
            f"{count}: {', '.join(map(str, self.releases))}; together epsilon={loss.epsilon:g}, "
            f"delta={loss.delta:g} by {rule} composition.{risk}"
        )


def _pay_in_turn(payers):
    if payers:
        (payer, due), *others = payers
        payer._ledger.spend(due, lambda: _pay_in_turn(others))


def together(plans):
    """Return the sum of several plans."""
    return reduce(add, plans, PlannedLoss())


def worst(plans):
    """Return an upper bound of several plans, of which only one will be carried out."""
    plans = list(dict.fromkeys(plans))
    if len(plans) < 2:
        return together(plans)
    sums = [_sums(plan) for plan in plans]
    payers = {payer: release for each in sums for payer, (release, _) in each.items()}
    tops = {
        payer: np.max([s[payer][1] if payer in s else np.zeros(4) for s in sums], axis=0)
        for payer in payers
    }
    for plan, mine in zip(plans, sums, strict=True):
        if all(p in mine and (mine[p][1] == top).all() for p, top in tops.items()):
            return replace(plan, at_most=True)
    return PlannedLoss(tuple(_even(payers[p], top) for p, top in tops.items()), at_most=True)


def _sums(plan):
    """For each payer and adjacency, a release and the sums of number, epsilon, delta and rho."""
    sums: dict[Any, tuple[PlannedRelease, FloatArray]] = {}
    for release in plan.releases:
        guarantee, charge = release.guarantee, release.guarantee.charge
        key = release.accountant, guarantee.adjacency
        _, so_far = sums.get(key, (release, np.zeros(4)))
        each = np.array([1.0, charge.epsilon, charge.delta, charge.concentrated])
        sums[key] = release, so_far + release.count * each
    return sums


def _even(release, sums):
    """Return equal releases that together have these sums."""
    count, *losses = sums
    epsilon, delta, rho = (float(loss / count) for loss in losses)
    stated = replace(
        release.guarantee,
        epsilon=epsilon,
        delta=delta,
        rho=None if np.isinf(rho) else rho,
        law=None,
    )
    return replace(release, guarantee=stated, count=int(count))
