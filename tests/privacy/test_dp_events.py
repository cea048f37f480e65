"""Losses of other libraries in our ledger, and ours in theirs."""

import math

import numpy as np
import pytest

from sklearn_dptda.cluster import DPLloyd, DPMoG
from sklearn_dptda.privacy import PrivacyAccountant
from tests._refusals import refuses
from tests.privacy._guarantees import guarantee

accounting = pytest.importorskip("dp_accounting")
rdp = pytest.importorskip("dp_accounting.rdp")

X = np.random.default_rng(0).uniform(size=(200, 2))
RELATIONS = {
    "add-remove": accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
    "replace-one": accounting.NeighboringRelation.REPLACE_ONE,
}
LAPLACE, GAUSSIAN = accounting.LaplaceDpEvent(2.0), accounting.GaussianDpEvent(4.0)
NOTHING = accounting.NoOpDpEvent()
composed, repeated = accounting.ComposedDpEvent, accounting.SelfComposedDpEvent
SAMPLED = accounting.PoissonSampledDpEvent(0.01, accounting.GaussianDpEvent(1.0))


def their_epsilon(delta, event, relation=RELATIONS["replace-one"]):
    return rdp.RdpAccountant(neighboring_relation=relation).compose(event).get_epsilon(delta)


@pytest.mark.parametrize("rho", [None, 0.01])
def test_to_dp_event_costs_the_same_in_dp_accounting(rho):
    event = guarantee(0.5, rho=rho).to_dp_event()
    assert event == accounting.ZCDpEvent(0.125 if rho is None else rho)
    # Twenty releases: less than the sum of their epsilons, more than ours by its own conversion.
    theirs = their_epsilon(1e-6, accounting.SelfComposedDpEvent(event, 20))
    ours = PrivacyAccountant(50.0, 1e-6, composition="zcdp")
    for _ in range(20):
        ours.spend(guarantee(0.5, rho=rho))
    assert ours.total().epsilon == pytest.approx(theirs, rel=0.05)


def test_to_dp_event_of_fitted_estimators_is_their_rho():
    private = DPLloyd(2, 1.0, bounds=(0, 1)).fit(X)
    assert private.privacy_guarantee_.to_dp_event().rho <= 0.5
    mixture = DPMoG(2, 1.0, bounds=(0, 1)).fit(X)
    if mixture.privacy_guarantee_.rho is not None:
        assert mixture.privacy_guarantee_.to_dp_event().rho == mixture.privacy_guarantee_.rho


def test_to_dp_event_refuses_a_delta_without_rho():
    assert guarantee(math.inf).to_dp_event() == accounting.NonPrivateDpEvent()
    refuses("has no dp_accounting event", guarantee(1.0, 1e-6).to_dp_event)


def test_accountant_counts_all_that_a_guarantee_says():
    budget = PrivacyAccountant(3.0, 1e-3)
    budget.spend(guarantee(0.5, 1e-6, rho=0.02), what="of another library")
    budget.spend(guarantee(0.25))
    first, second = budget.spends()
    assert (first.epsilon, first.delta, first.rho) == (0.5, 1e-6, 0.02)
    assert (first.unit, first.what, second.what) == ("one row", "of another library", "a number")
    assert budget.total().epsilon == 0.75


@pytest.mark.parametrize(
    ("event", "epsilon", "rho"),
    [
        (NOTHING, 0.0, 0.0),
        (LAPLACE, 0.5, 0.125),
        (repeated(LAPLACE, 3), 1.5, 0.375),
        (repeated(GAUSSIAN, 0), 0.0, 0.0),
        (composed([LAPLACE, NOTHING]), 0.5, 0.125),
    ],
)
def test_accountant_counts_pure_dp_events_by_their_epsilon(event, epsilon, rho):
    budget = PrivacyAccountant(3.0, 1e-3)
    budget.spend(event, 1e-6)
    (spend,) = budget.spends()
    assert (spend.epsilon, spend.delta, spend.rho) == (epsilon, 0.0, rho)
    assert spend.what == type(event).__name__


@pytest.mark.parametrize(
    ("event", "rho"),
    [
        (GAUSSIAN, 1 / 32),
        (accounting.ZCDpEvent(0.02), 0.02),
        (composed([GAUSSIAN, LAPLACE]), 1 / 32 + 0.125),
        # Sampling has no rho: its epsilon counts, under basic composition alone.
        (repeated(SAMPLED, 100), None),
    ],
)
def test_accountant_counts_other_dp_events_as_dp_accounting(event, rho):
    adjacency = "add-remove" if rho is None else "replace-one"
    budget = PrivacyAccountant(9.0, 1e-3)
    budget.spend(event, 1e-6, adjacency=adjacency)
    (spend,) = budget.spends()
    expected = their_epsilon(1e-6, event, relation=RELATIONS[adjacency])
    assert spend.epsilon == expected and spend.delta == 1e-6 and spend.rho == rho
    concentrated = PrivacyAccountant(9.0, 1e-3, composition="zcdp")
    if rho is None:
        refuses("no rho cannot be counted", concentrated.spend, event, 1e-6, adjacency=adjacency)
    else:
        concentrated.spend(event, 1e-6, adjacency=adjacency)
        assert concentrated.remaining().epsilon < 9.0


def test_accountant_refuses_dp_events_that_it_cannot_count():
    budget = PrivacyAccountant(3.0, 1e-3)
    refuses("delta must be above 0", budget.spend, accounting.GaussianDpEvent(1.0))
    with pytest.raises(ValueError, match="cannot be counted under 'replace-one'"):
        budget.spend(accounting.UnsupportedDpEvent(), 1e-6)
    refuses("epsilon must be a number", budget.spend, "1", error=TypeError)
    assert len(budget) == 0 and budget.total().epsilon == 0
