"""Releases that are yet to be paid for, added up without making any."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any, Self

import numpy as np

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.privacy import (
    PrivacyAccountant,
    PrivacyGuarantee,
    PrivacyLoss,
    ReleaseKey,
)
from sklearn_dptda.privacy._default_accountant import default_accountant
from sklearn_dptda.privacy._guarantee import Budget, Sums
from sklearn_dptda.privacy._ledger import Payment
from sklearn_dptda.privacy._release_key import Attempt


@dataclass(frozen=True)
class PlannedRelease:
    """Some equal releases of one estimator.

    Parameters
    ----------
    estimator : str
        Name of its class.
    guarantee : PrivacyGuarantee
        What each of them will promise.
    count : int
        How many there will be.
    accountant : PrivacyAccountant or None
        That of the estimator.
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
    """What some calls will pay; made by :func:`planned_loss`, prints as one sentence.

    Parameters
    ----------
    releases : tuple of PlannedRelease
        In the order in which they come up first.
    at_most : bool, default=False
        Whether fewer or cheaper releases are possible, such as those of the
        last fit of a search over ``epsilon``.
    accountant : PrivacyAccountant or None, default=None
        Pays for estimators that have none; by its rule losses add up.

    Attributes
    ----------
    n_releases : int
        Their number.
    """

    releases: tuple[PlannedRelease, ...] = ()
    at_most: bool = False
    accountant: PrivacyAccountant | None = field(default=None, repr=False, compare=False)

    @property
    def n_releases(self) -> int:
        """Number of releases."""
        return sum(release.count for release in self.releases)

    def total(self) -> PrivacyLoss:
        """Loss of all releases together.

        Returns
        -------
        PrivacyLoss
            By the rule of the accountant that pays for estimators without one
            of their own, where there is none, sums of epsilons and deltas.
        """
        charges = [(release.guarantee.charge, release.count) for release in self.releases]
        loss: PrivacyLoss = self._rule().total(Sums.of(charges))
        return loss

    def check(self) -> None:
        """Refuse what the budgets that have to pay do not cover; spend nothing.

        Raises
        ------
        PrivacyBudgetExceeded
            If the releases do not fit a budget.
        ValueError
            If nobody keeps count, or losses do not add up.
        """
        for accountant, releases in self._by_payer():
            if accountant is None:
                raise ValueError(
                    f"{releases[0].estimator} has no accountant, so there is no budget to check: "
                    "pass accountant=."
                )
            accountant.check((release.guarantee, release.count) for release in releases)

    def pay(self) -> None:
        """Pay for all releases now, or for none, whoever else spends meanwhile.

        Each budget commits inside of the transaction of the one before.

        Raises
        ------
        PrivacyBudgetExceeded
            If the releases do not fit a budget. Nothing is spent.
        """
        self._pay_for([Attempt(ReleaseKey())])

    def _pay_for(self, attempts: Iterable[Attempt]) -> None:
        """Pay once for each task, but not for what was paid for under its key before."""
        payers: dict[str, tuple[PrivacyAccountant, list[Payment]]] = {}
        for attempt in attempts:
            for release in self.releases:
                payer = release.accountant or self._payer()
                # Each release takes its turn, whoever counts it.
                turns = [attempt.next() for _ in range(release.count)]
                if payer is not None:
                    _, due = payers.setdefault(payer._ledger.id, (payer, []))
                    due += [Payment.of(release.guarantee, release.estimator, t) for t in turns]
        # All programs take several budgets in one order, so that none waits for another in a ring.
        _pay_in_turn([payers[identity] for identity in sorted(payers)])

    def as_bound(self) -> "PlannedLoss":
        """The same, of which less may come true."""
        return replace(self, at_most=bool(self.releases))

    def paid_from(self, accountant: PrivacyAccountant | None) -> "PlannedLoss":
        """The same, with another accountant for estimators that have none."""
        return replace(self, accountant=accountant)

    def _by_payer(self):
        payers: dict[Any, tuple[PrivacyAccountant | None, list[PlannedRelease]]] = {}
        for release in self.releases:
            payer = release.accountant or self._payer()
            # Two handles of one ledger have one budget.
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
        """Both, one after the other."""
        merged: dict[object, PlannedRelease] = {}
        for release in self.releases + other.releases:
            key = release.estimator, release.guarantee, release.accountant
            known = merged.get(key)
            merged[key] = (
                release if known is None else replace(known, count=known.count + release.count)
            )
        return replace(self, releases=tuple(merged.values()), at_most=self.at_most or other.at_most)

    def __mul__(self, times: int) -> Self:
        """As many times, one after the other."""
        releases = tuple(replace(r, count=times * r.count) for r in self.releases if times)
        return replace(self, releases=releases)

    def __str__(self):
        if not self.releases:
            return "No release: nothing is paid."
        loss, payer = self.total(), self._payer()
        rule = "basic" if payer is None else payer.composition
        count = f"{'At most ' * self.at_most}{self.n_releases} release{'s' * (self.n_releases > 1)}"
        return (
            f"{count}: {', '.join(map(str, self.releases))}; together epsilon={loss.epsilon:g}, "
            f"delta={loss.delta:g} by {rule} composition."
        )


def _pay_in_turn(payers):
    if payers:
        (payer, due), *others = payers
        payer._ledger.spend(due, lambda: _pay_in_turn(others))


def together(plans):
    """All of some plans."""
    return reduce(add, plans, PlannedLoss())


def worst(plans):
    """As much as any of several plans can cost, whichever of them comes true."""
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
    """For each payer and adjacency a release, and sums: number, epsilon, delta, zCDP."""
    sums: dict[Any, tuple[PlannedRelease, FloatArray]] = {}
    for release in plan.releases:
        guarantee, charge = release.guarantee, release.guarantee.charge
        key = release.accountant, guarantee.adjacency
        _, so_far = sums.get(key, (release, np.zeros(4)))
        each = np.array([1.0, charge.epsilon, charge.delta, charge.concentrated])
        sums[key] = release, so_far + release.count * each
    return sums


def _even(release, sums):
    """As many equal releases as together have these sums."""
    count, *losses = sums
    epsilon, delta, rho = (float(loss / count) for loss in losses)
    stated = replace(
        release.guarantee, epsilon=epsilon, delta=delta, rho=None if np.isinf(rho) else rho
    )
    return replace(release, guarantee=stated, count=int(count))
