"""The risk of a release, compared with another library, closed forms and enumeration."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from sklearn_dptda import PrivacyAccountant, PrivateBettiNumbers, PrivatePersistence
from sklearn_dptda.cluster import DPLloyd
from sklearn_dptda.discriminant_analysis import DPLinearDiscriminantAnalysis
from sklearn_dptda.graph import EdgeFlip
from sklearn_dptda.model_selection import planned_loss
from sklearn_dptda.model_selection._planned_releases import worst
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import _risk, bounded_range_rho, gaussian_mu
from sklearn_dptda.privacy._calibration import bounded_range_delta
from sklearn_dptda.privacy._risk import LossLaw, PrivacyRisk, delta_of_charge, rounded_up
from tests._refusals import refuses
from tests.privacy._guarantees import guarantee

FALSE_RATES = (0.001, 0.01, 0.1, 0.5)


def risk_of_law(law, fpr=0.01, prior=0.5):
    return PrivacyRisk.of(law.delta, prior, fpr, "replace-one")


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_risk_of_releases_equals_that_of_another_library(epsilon):
    analysis = pytest.importorskip("riskcal").analysis
    mu = gaussian_mu(epsilon, 1e-6)
    gaussian = planned_loss(DPLloyd(3, epsilon, 1e-6, bounds=(0, 1)))
    of_mu = analysis.get_advantage_from_gdp, analysis.get_beta_from_gdp, (mu,)
    pure = analysis.get_advantage_from_adp, analysis.get_beta_from_adp, (epsilon, 0.0)
    for planned, (advantage, missed, loss) in (
        (gaussian, of_mu),
        (planned_loss(EdgeFlip(epsilon)), pure),
        (planned_loss(PrivateBettiNumbers(epsilon)), pure),
    ):
        for fpr in FALSE_RATES:
            risk = planned.risk(fpr=fpr)
            assert risk.advantage == pytest.approx(advantage(*loss), abs=1e-6)
            hits = 1 - float(missed(*loss, fpr))
            assert risk.true_positive_rate == pytest.approx(hits, abs=1e-6)
    # Two fits compose exactly, and this is much less than twice the advantage.
    both = (gaussian * 2).risk().advantage
    assert both == pytest.approx(analysis.get_advantage_from_gdp(math.sqrt(2) * mu), abs=1e-6)


@pytest.mark.parametrize(
    ("pure", "choice", "mu"),
    [
        ((), 1.0, 0.0),
        ((0.2,) * 3, 0.0, 0.0),
        pytest.param((0.3, 0.5), 0.0, 0.4, marks=pytest.mark.laws),
        pytest.param((), 0.6, 0.3, marks=pytest.mark.laws),
    ],
)
def test_risk_of_compositions_equals_that_of_another_library(pure, choice, mu):
    analysis = pytest.importorskip("riskcal").analysis
    distributions = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")

    def with_outcomes(log_ratio_high, reach, losses, steps):
        likely = math.expm1(log_ratio_high - reach) / math.expm1(-reach)
        one = {0: math.log(likely), 1: math.log1p(-likely)}
        other = {0: one[0] - log_ratio_high, 1: one[1] - log_ratio_high + reach}
        make = distributions.from_two_probability_mass_functions
        return losses.compose(make(other, one, **steps))

    def losses_with(high):
        # Each part is rounded up by half a step on average.
        steps = {"value_discretization_interval": 1e-6 / max(1, len(pure))}
        losses = distributions.identity(**steps)
        if mu:
            losses = losses.compose(distributions.from_gaussian_mechanism(1 / mu, **steps))
        for epsilon in pure:
            # Randomized response is the choice of range 2 epsilon with equal ends.
            losses = with_outcomes(epsilon, 2 * epsilon, losses, steps)
        return with_outcomes(high, choice, losses, steps) if choice else losses

    law = LossLaw(pure, (choice,) * bool(choice), mu)
    found = risk_of_law(law).advantage
    for high in np.array([0.3, 0.5, 0.7]) * choice if choice else [0.0]:
        advantage = analysis.get_advantage_from_pld(losses_with(high))
        if high == choice / 2:
            assert found == pytest.approx(advantage, abs=1e-6)
        else:
            assert found > advantage


def test_curve_of_choices_equals_the_known_optimum():
    losses = np.array([0.0, 0.1, 0.4, 0.69])
    for rate in (0.7, 2.0):
        expected = [bounded_range_delta(rate, 1, loss) for loss in losses]
        assert_allclose(LossLaw(choices=(rate,)).delta(losses), expected, atol=1e-9)
        # A choice that may depend on an earlier one is worse than independent ones.
        two = LossLaw(choices=(rate, rate)).delta(losses)
        independent = [bounded_range_delta(rate, 2, loss) for loss in losses]
        assert (two >= np.array(independent) - 1e-9).all()
        assert (two <= LossLaw((rate, rate)).delta(losses) + 1e-9).all()
    # In closed form: 1 - exp(-t) at t = rate / 2.
    assert risk_of_law(LossLaw(choices=(1.0,))).advantage == pytest.approx(math.tanh(0.25))


def test_curve_of_two_choices_equals_a_search_over_all_laws():
    def value(loss, reach, rest):
        highs = np.linspace(0, reach, 401)
        likely = np.expm1(highs - reach) / math.expm1(-reach)
        first, second = rest(loss - highs), rest(loss - highs + reach)
        return (likely * first + (1 - likely) * second).max()

    def none(losses):
        return np.maximum(-np.expm1(losses), 0)

    def after(reach):
        return lambda losses: np.array([value(loss, reach, none) for loss in losses])

    # The order of the draws matters, and is unknown.
    expected = max(value(0.2, 0.8, after(0.5)), value(0.2, 0.5, after(0.8)))
    for choices in ((0.5, 0.8), (0.8, 0.5)):
        found = float(LossLaw(choices=choices).delta(np.array([0.2]))[0])
        assert expected - 1e-9 <= found < expected + 1e-4


def test_risk_of_two_choices_is_that_of_a_mechanism_whose_second_choice_depends_on_the_first():
    # Of range 1, then of range 2 whose law depends on the first result: four outcomes in all.
    def outcomes(high, reach):
        likely = math.expm1(high - reach) / math.expm1(-reach)
        return [(likely, high), (1 - likely, high - reach)]

    def distance(first, second, third):
        total = 0.0
        for (p, loss), high in zip(outcomes(first, 1.0), (second, third), strict=True):
            for q, other in outcomes(high, 2.0):
                total += p * q * max(0.0, -math.expm1(-loss - other))
        return total

    grid = np.linspace(0.02, 0.98, 33)
    largest = max(distance(a, 2 * b, 2 * c) for a, b, c in itertools.product(grid, grid, grid))
    found = risk_of_law(LossLaw(choices=(1.0, 2.0))).advantage
    assert 0.487 < largest <= found < largest + 2e-3


def test_curve_of_pure_parts_equals_enumeration():
    pure, losses = (0.3, 0.3, 0.7), np.array([-0.4, 0.0, 0.2, 1.5])
    expected = np.zeros(4)
    for signs in itertools.product((1, -1), repeat=3):
        p = math.prod(1 / (1 + math.exp(-s * e)) for s, e in zip(signs, pure, strict=True))
        loss = sum(s * e for s, e in zip(signs, pure, strict=True))
        expected += p * np.maximum(-np.expm1(losses - loss), 0)
    assert_allclose(LossLaw(pure).delta(losses), expected, atol=1e-12)


def test_equal_releases_count_as_often_as_they_are_planned():
    for private, law in (
        (PrivateBettiNumbers(0.3), LossLaw((0.3,) * 3)),
        (PrivatePersistence(0.3), LossLaw(choices=(0.3,) * 3)),
        (DPLloyd(2, 1.0, bounds=(0, 1)), LossLaw(mu=math.sqrt(3) * gaussian_mu(1.0, 1e-6))),
    ):
        planned = planned_loss(private) * 3
        assert planned.risk().advantage == pytest.approx(risk_of_law(law).advantage)


def test_many_unlike_parts_are_rounded_up(monkeypatch):
    many, losses = LossLaw(tuple(np.sqrt(np.arange(2, 16)) / 200)), np.array([0.0, 0.01, 0.05])
    rounded = many.delta(losses)
    monkeypatch.setattr(_risk, "_MOST_OUTCOMES", 10**6)
    _risk._composed.cache_clear()
    excess = rounded - many.delta(losses)
    _risk._composed.cache_clear()
    assert (excess >= 0).all() and 0 < excess.max() < 1e-4


@pytest.mark.parametrize(
    ("private", "rho"),
    [
        (PrivatePersistence(2.0), bounded_range_rho(2.0)),
        (PrivatePersistence(2.0, clipped_share=True), bounded_range_rho(1.9) + 0.1**2 / 2),
        (DPLloyd(3, 1.0, 0.0, bounds=(0, 1)), 0.5),
        (
            DPLinearDiscriminantAnalysis([0, 1], 1.0, 1e-6, bounds=(0, 1)),
            DPLinearDiscriminantAnalysis([0, 1])._gaussian_loss(1.0, 1e-6)[0] ** 2 / 2,
        ),
    ],
)
def test_rho_of_a_law_is_the_sum_of_its_parts(private, rho):
    stated = planned_loss(private).releases[0].guarantee
    assert stated.law.rho == stated.rho == pytest.approx(rho)
    if stated.law.mixed:
        return
    # The curve passes through the stated point.
    curve = stated.law.delta(np.array([stated.epsilon]))
    assert curve[0] <= stated.delta * (1 + 1e-6) + 1e-12


def test_risk_lies_between_guessing_and_certainty():
    for fpr in FALSE_RATES:
        assert guarantee(math.inf).risk(fpr=fpr).true_positive_rate == 1
        nothing = guarantee(0.0).risk(fpr=fpr)
        assert nothing.advantage == 0 and nothing.true_positive_rate == pytest.approx(fpr)
        assert nothing.posterior == pytest.approx(0.5)
    # The posterior of a pure release has a closed form for rare accusations.
    belief = guarantee(1.0).risk(prior=0.2, fpr=1e-4).posterior
    assert belief == pytest.approx(0.2 * math.e / (0.2 * math.e + 0.8), abs=1e-3)
    for wrong in ({"prior": 0.0}, {"fpr": 1.0}, {"fpr": math.nan}):
        refuses(f"{next(iter(wrong))} must be between 0 and 1", guarantee().risk, **wrong)


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.5])
def test_bounds_of_a_zcdp_loss_hold_for_gaussian_noise(mu):
    losses = np.array([0.0, 0.2, 1.0, 3.0])
    bound = delta_of_charge(math.inf, 0.0, mu**2 / 2)(losses)
    exact = LossLaw(mu=mu).delta(losses)
    assert (bound >= exact).all()
    assert bound[0] < 1.5 * exact[0]
    assert exact[0] == pytest.approx(2 * norm.cdf(mu / 2) - 1)


def test_risk_of_a_ledger_bounds_that_of_its_releases():
    budget = PrivacyAccountant(10.0, 1e-3)
    private = DPLloyd(2, 1.0, 1e-6, bounds=(0, 1), accountant=budget, random_state=0)
    private.fit(np.random.default_rng(0).random((200, 2)))
    own = private.privacy_guarantee_.risk().advantage
    assert own <= budget.risk().advantage < 1.4 * own
    assert PrivacyAccountant(1.0).risk().advantage == 0


def test_sum_of_guarantees_composes_their_laws():
    gauss, chosen = LossLaw(mu=0.3), LossLaw(choices=(0.4,))
    both = guarantee(0.5, 0.1, law=gauss) + guarantee(0.4, law=chosen)
    # A choice after Gaussian noise may depend on it.
    assert both.law == LossLaw((), (0.4,), 0.3, mixed=True)
    assert both.law.delta(np.zeros(1)) == LossLaw((0.4,), (), 0.3).delta(np.zeros(1))
    assert both.rho == pytest.approx(0.4**2 / 8 + 0.3**2 / 2)
    assert (guarantee(0.4, law=chosen) + guarantee(0.5)).law == LossLaw((0.5,), (0.4,))
    unknown = guarantee(0.5, 1e-6) + guarantee(0.4)
    assert unknown.law is None and unknown.risk().advantage > guarantee(0.9).risk().advantage
    box = planned_loss(PrivateBounds(1.0, shape="box"), X=np.zeros((2, 9))).risk()
    # Many small choices add up like noise.
    assert 0.05 < box.advantage < 0.3 * math.tanh(0.5)


def test_advantage_in_a_sentence_is_rounded_up():
    assert [rounded_up(r) for r in (0.0931, 0.09, 0.24491, 1.0, 0.0)] == [
        "0.094",
        "0.09",
        "0.25",
        "1",
        "0",
    ]
    assert str(guarantee(1.0)).endswith("with an advantage of at most 0.47 over guessing.")


def test_risk_of_a_bound_of_several_plans_is_not_below_that_of_one_of_them():
    one = planned_loss(DPLloyd(2, 1.0, 0.0, bounds=(0, 1)))
    others = planned_loss(DPLloyd(2, 0.05, 0.0, bounds=(0, 1))) * 10
    bound = worst([one, others])
    assert bound.at_most
    assert bound.risk().advantage >= max(one.risk().advantage, others.risk().advantage)
    # One with less of everything that is added up may have the larger risk.
    noisy = planned_loss(DPLloyd(2, 5.2, 1e-6, bounds=(0, 1)))
    assert worst([noisy, one]).risk().advantage >= one.risk().advantage > noisy.risk().advantage


def test_risk_of_releases_with_different_neighbours_is_refused():
    rows = planned_loss(DPLloyd(2, 1.0, 0.0, bounds=(0, 1)))
    people = planned_loss(DPLloyd(2, 1.0, 0.0, bounds=(0, 1), groups="id"))
    for mixed in (rows + people, rows + planned_loss(PrivateBounds(1.0))):
        refuses("different neighbours", mixed.risk)
        assert "advantage" not in str(mixed)


def test_law_that_contradicts_its_guarantee_is_refused():
    refuses("not that of epsilon and delta", guarantee, 1.0, law=LossLaw(mu=1.0))
    refuses("not that of epsilon and delta", guarantee, 1.0, law=LossLaw((1.1,)))
    # Laws that can be decided without their curve, within its error: a sum of shares is rounded.
    assert guarantee(0.3, law=LossLaw((0.1,), (0.2,))).law.pure == (0.1,)
    for law in (LossLaw((0.1,), (0.21,)), LossLaw((0.1, 0.2 + 1e-9))):
        refuses("not that of epsilon and delta", guarantee, 0.3, law=law)
    for wrong in ({"mu": -1.0}, {"pure": (math.nan,)}, {"choices": (-0.1,)}):
        refuses("must be non-negative", LossLaw, **wrong)


def test_risk_of_extreme_numbers():
    assert guarantee(1e-170).risk().advantage > 0
    assert LossLaw(choices=(0.0, 1.0)).delta(np.zeros(1)) == LossLaw(choices=(1.0,)).delta(
        np.zeros(1)
    )
    assert LossLaw(zcdp=math.inf).delta(np.zeros(1)) == 1
    assert str(guarantee(1.0).risk(prior=1e-200, fpr=1e-200))
    many = planned_loss(PrivatePersistence(0.001)) * 10_000
    assert 0.02 < many.risk().advantage < 0.03


def test_sentence_says_what_an_attack_finds_out():
    assert "which of two values it has" in str(guarantee(1.0))
    there = planned_loss(DPLloyd(2, bounds=(0, 1)))
    assert "whether it is there" in str(there) and there.risk().adjacency == "add-remove"
