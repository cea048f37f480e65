"""A cap that is chosen privately with the diagrams: law, sensitivity, values, bounds."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sklearn_dptda import CubicalPersistence, DTMFiltration, PersistenceProfile, PrivatePersistence
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.persistence import DiagramErrors, bottleneck_distance
from sklearn_dptda.persistence._exact_sampler import (
    BirthBall,
    DiagramBall,
    ExactSampler,
    decay_table,
)
from sklearn_dptda.persistence._mechanisms import make_base_measure, mechanism_of
from sklearn_dptda.persistence._private_cap import CapsBall, ChoiceOfCap, Member, gates_of_caps
from sklearn_dptda.privacy import NoiseSource
from sklearn_dptda.utils._privacy_checks._border_checks import recorded
from tests.persistence._clouds import filtration_of, hostile_pairs
from tests.persistence._oracles import level, p_value, random_diagram, weights_of
from tests.persistence._variants import variant
from tests.privacy._permute_and_flip import permute_and_flip_law_of_many

SHARES = [2.0 ** (-j / 2) for j in range(7)]


def as_array(diagram):
    return np.array(diagram, dtype=int).reshape(-1, 2)


def members_of(family, weights, gates, measure, decay):
    """Members of finite H0, the birth of the undying component, and H1."""
    return [
        Member(
            weight,
            gate,
            [
                DiagramBall(as_array(finite), measure),
                BirthBall(birth, measure.size, decay),
                DiagramBall(as_array(loops), measure),
            ],
        )
        for (finite, birth, loops), weight, gate in zip(family, weights, gates, strict=True)
    ]


def joint_law(family, weights, gates, measure, table, decay):
    """Exact integers for all outputs: the place of a cap, finite H0, a birth, H1."""
    diagrams = weights_of(measure)
    births = [
        round(2**32 * math.exp(-decay * b / measure.size)) if decay else 1
        for b in range(measure.size + 1)
    ]
    law = {}
    for j, ((finite, birth, loops), own, gate) in enumerate(
        zip(family, weights, gates, strict=True)
    ):
        near_finite, near_loops = (
            {key: level(key, exact) for key in diagrams} for exact in (finite, loops)
        )
        for (p, w), (q, v) in itertools.product(diagrams.items(), repeat=2):
            far = max(gate, near_finite[p], near_loops[q])
            for b, weight in enumerate(births):
                mass = own * w * v * weight * table.weight(max(far, abs(b - birth)))
                law[j, p, b, q] = mass
    return law


def random_family(rng, size, most):
    return [
        (
            random_diagram(rng, size, int(rng.integers(most + 1))),
            int(rng.integers(size + 1)),
            random_diagram(rng, size, int(rng.integers(most + 1))),
        )
        for _ in range(3)
    ]


@pytest.mark.laws
@pytest.mark.parametrize(("size", "seed", "decay"), [(3, 0, 5), (4, 1, 0), (4, 3, 5), (5, 2, 0)])
def test_caps_ball_is_drawn_by_the_enumerated_law(size, seed, decay):
    # 20,000 draws each, at a false-alarm rate of 1e-6 each.
    rng, weights = np.random.default_rng(seed), [1, 3, 7]
    measure = make_base_measure("spike-slab", size, 1, spike=0.6)
    family, gates = random_family(rng, size, 2), [0, *rng.integers(0, size + 1, 2).tolist()]
    table, n = decay_table(3, 7, size + 1), 20_000
    law = joint_law(family, weights, gates, measure, table, decay)
    sampler = ExactSampler([CapsBall(members_of(family, weights, gates, measure, decay))], table)
    source, counts = NoiseSource(seed), {}
    for _ in range(n):
        ((place, (finite, birth, loops)),) = sampler.draw(source)[0]
        key = place, tuple(finite), birth[0][0], tuple(loops)
        counts[key] = counts.get(key, 0) + 1
    assert set(counts) <= {key for key, weight in law.items() if weight > 0}
    observed = [counts.get(key, 0) for key in law]

    def expected(law):
        total = sum(law.values())
        return np.array([n * weight / total for weight in law.values()])

    assert (expected(law) > 8).sum() > 20
    assert p_value(observed, expected(law)) > 1e-6
    # Twin: the law without gates differs.
    other = joint_law(family, weights, [0, 0, 0], measure, table, decay)
    assert gates == [0, 0, 0] or p_value(observed, expected(other)) < 1e-6


_FOUND = {}


def diagrams_of(cloud, k):
    """All caps of the function of a cloud, and its diagrams under them."""
    key = cloud.tobytes(), k
    if key not in _FOUND:
        _FOUND[key] = _diagrams_of(filtration_of(cloud, k))
    return _FOUND[key]


def _diagrams_of(filtration):
    caps = [(filtration.sensitivity, filtration.upper), *filtration.smaller_caps]
    values = [filtration.values, *(each.values for each in filtration.smaller)]
    diagrams = [
        CubicalPersistence(upper=upper).fit_transform([each])[0]
        for each, (_, upper) in zip(values, caps, strict=True)
    ]
    return caps, diagrams


# Two pairs that move gates as far as any.
FAR = slice(0, 17, 16)


@pytest.mark.parametrize(
    ("ks", "pairs"), [((6,), FAR), pytest.param((1, 2, 6), slice(None), marks=pytest.mark.laws)]
)
def test_gates_of_caps_move_by_at_most_one_for_one_point(ks, pairs):
    most = twin = 0.0
    for k in ks:
        for pair in list(hostile_pairs(k))[pairs]:
            found = [diagrams_of(cloud, k) for cloud in pair]
            caps = found[0][0]
            gates = [np.array(gates_of_caps(caps, diagrams, (0, 1))) for _, diagrams in found]
            most = max(most, np.abs(gates[0] - gates[1]).max())
            # Twin: differences in units of a quarter of the sensitivities.
            blind = [(sensitivity / 4, upper) for sensitivity, upper in caps]
            gates = [np.array(gates_of_caps(blind, diagrams, (0, 1))) for _, diagrams in found]
            twin = max(twin, np.abs(gates[0] - gates[1]).max())
    assert 0.9 < most <= 1
    assert twin > 1


@pytest.mark.parametrize("sensitivity", [1e-12, 3e-14, 1e-6])
def test_gates_of_caps_of_tiny_sensitivities_move_by_at_most_one(sensitivity):
    # Libraries take distances below 1e-10 of the longest bar for zero, and a gate then jumps.
    caps = [(sensitivity, 2.0), (sensitivity / math.sqrt(2), 1.7)]
    one, other = (
        gates_of_caps(
            caps,
            [[np.array([[0.0, 2.0], [0.5, 1.5]])], [np.array([[0.0, 1.7], [0.5, 1.5 - apart]])]],
            (0,),
        )
        for apart in (1.9999e-10, 1.9999e-10 + 1.7 * sensitivity)
    )
    # What libraries ignore is much more than a tiny sensitivity, and so is the padding.
    assert (0.9 if sensitivity > 1e-7 else 0) <= abs(one[1] - other[1]) <= 1


@pytest.mark.parametrize(
    ("epsilon", "pairs"),
    [
        (200.0, FAR),
        pytest.param(200.0, slice(None), marks=pytest.mark.laws),
        pytest.param(900.0, slice(None), marks=pytest.mark.laws),
    ],
)
def test_choice_of_cap_costs_its_share(epsilon, pairs):
    # Sensitivities are a sixth of the range here, so a large loss is needed to choose a cap.
    most = twin = 0.0
    for pair in list(hostile_pairs(6))[pairs]:
        found = [diagrams_of(cloud, 6) for cloud in pair]
        caps = found[0][0]
        choice = ChoiceOfCap.of(epsilon, caps)
        assert Fraction(choice.choice) + Fraction(choice.rest) <= Fraction(epsilon)

        def loss(caps, pair=found, choice=choice):
            costs = [choice.costs(caps, diagrams, (0, 1)) for _, diagrams in pair]
            laws = [permute_and_flip_law_of_many(each, choice.rate) for each in costs]
            # Probabilities that floating point cannot represent count as zero.
            both = np.minimum(*laws) > 0
            return np.abs(np.log(laws[0][both] / laws[1][both])).max() / choice.choice

        most = max(most, loss(caps))
        # Twin: gates in units of a quarter of the sensitivities.
        twin = max(twin, loss([(sensitivity / 4, upper) for sensitivity, upper in caps]))
    assert 0.4 < most <= 1
    assert twin > 1


def test_persistence_profile_and_choice_of_cap_lose_epsilon_together():
    X = make_two_circles(2000, random_state=0)
    functions = DTMFiltration(0.2, bounds=(-2.5, 3), resolution=15).fit_transform([X])
    private = PersistenceProfile(2.0, random_state=0)
    choice, profile = recorded(lambda: private.fit_transform(functions)).crossings
    assert choice.loss == pytest.approx(0.2 * 2.0) and choice.metric == "range"
    assert profile.loss == pytest.approx(0.8 * 2.0) and profile.metric == "linf"
    assert choice.loss + profile.loss <= 2.0 * (1 + 1e-15)


def test_choice_of_cap_needs_several_caps_and_little_noise():
    caps = [(share / 6, share) for share in SHARES]
    assert ChoiceOfCap.of(28.0, caps) is not None
    assert ChoiceOfCap.of(1.0, caps) is None
    assert ChoiceOfCap.of(28.0, caps[:1]) is None
    assert ChoiceOfCap.of(math.inf, caps) is None


def test_dtm_filtration_of_people_under_all_caps_equals_each_cap():
    rng = np.random.default_rng(0)
    people = [rng.uniform(-1, 1, (int(rng.integers(1, 9)), 2)) for _ in range(60)]
    options = {"m": 0.1, "bounds": (-1, 1), "resolution": 13, "groups": True, "refinement": 2}
    family = DTMFiltration(**options).fit_transform([people])[0]
    for share, own in zip(SHARES[1:], family.smaller, strict=True):
        one = DTMFiltration(**options, max_distance=share).fit_transform([people])[0]
        np.testing.assert_allclose(own.values, one.values, atol=1e-6)
        assert (own.sensitivity, own.upper) == pytest.approx((one.sensitivity, one.upper))
        assert not own.values.flags.writeable


@pytest.mark.parametrize(
    "options", [{"utility": "sum"}, {"upper": 2.0}, {"mechanism": "mcmc", "n_iter": 3}]
)
def test_private_persistence_of_other_draws_keeps_one_cap(options):
    cloud = make_two_circles(500, random_state=0)
    family = DTMFiltration(0.2, bounds=(-2.5, 3), resolution=15).fit_transform([cloud])
    private = variant(epsilon=20.0, max_points=3, random_state=1, **options).fit(family)
    private.transform(family)
    assert private.cap_ == min(family[0].upper, options.get("upper", math.inf))
    # Errors of a Markov chain are not known, except without noise.
    if "mechanism" in options:
        np.testing.assert_array_equal(private.error_bounds_, [math.nan])
        private.set_params(epsilon=math.inf).fit_transform(family)
        np.testing.assert_array_equal(private.error_bounds_, [0.0])


@pytest.mark.laws
@pytest.mark.parametrize("dimensions", [0, 1, (0, 1), (1, 0), (0, 1, 2)])
def test_private_persistence_draws_below_its_cap(dimensions):
    rng = np.random.default_rng(0)
    d = 3 if dimensions == (0, 1, 2) else 2
    cloud = rng.normal(0, 0.3, (2000, d))
    options = {"m": 0.2, "bounds": (-2, 2), "resolution": 15}
    family = DTMFiltration(**options).fit_transform([cloud])
    private = PrivatePersistence(3.0, homology_dimensions=dimensions, random_state=0).fit(family)
    caps = set()
    for seed in range(8):
        (drawn,) = private.set_params(random_state=seed).transform(family)
        (cap,) = private.cap_
        caps.add(cap)
        parts = [drawn] if isinstance(dimensions, int) else drawn
        for q, diagram in zip(np.atleast_1d(dimensions), parts, strict=True):
            undying = diagram[:, 1] == family[0].upper
            assert q > 0 or cap == family[0].upper or undying.sum() == 1
            assert (diagram[~undying] <= cap).all() and (diagram[:, 0] < diagram[:, 1]).all()
    assert caps <= {family[0].upper, *(upper for _, upper in family[0].smaller_caps)}
    assert min(caps) < family[0].upper


@pytest.mark.nightly
def test_private_cap_of_a_wide_box_costs_less_than_one_cap():
    # Means of ten releases. At the fixed cap, the loops are lost.
    cloud, options = make_two_circles(4000, random_state=101), {"m": 0.2, "bounds": (-8.0, 8.5)}
    errors = {}
    for cap in ("private", None):
        family = DTMFiltration(**options, max_distance=cap).fit_transform([cloud])
        (exact,) = CubicalPersistence(1).fit_transform(family)
        private = PrivatePersistence(1.0, homology_dimensions=1, random_state=0).fit(family)
        errors[cap] = np.mean(
            [
                bottleneck_distance(private.set_params(random_state=s).transform(family)[0], exact)
                for s in range(10)
            ]
        )
    assert errors["private"] < 0.4 * errors[None]


@pytest.mark.nightly
def test_error_bound_holds_under_the_cap_that_is_drawn():
    # Each bound is missed with a probability of at most 5 %. More than 22 misses of 100 have a
    # probability below 1e-6.
    cloud, options = make_two_circles(4000, random_state=0), {"m": 0.2, "bounds": (-2.5, 3)}
    family = DTMFiltration(**options).fit_transform([cloud])
    private = PrivatePersistence(1.0, random_state=0).fit(family)
    exact, missed = {}, 0
    for seed in range(100):
        (drawn,) = private.set_params(random_state=seed).transform(family)
        (cap,) = private.cap_
        if cap not in exact:
            under = DTMFiltration(**options, max_distance=cap).fit_transform([cloud])
            exact[cap] = CubicalPersistence(upper=cap).fit_transform(under)[0]
        # The essential component dies at the default cap.
        own = [np.minimum(diagram, cap) for diagram in drawn]
        errors = map(bottleneck_distance, own, exact[cap])
        missed += max(errors) > private.error_bound_
    assert missed <= 22
    assert len(exact) > 1 or cap < family[0].upper


@pytest.mark.laws
def test_error_bounds_and_noise_floors_of_caps_grow_by_little():
    public, caps = (0.004, 2.0), [(0.004 * s, 2.0 * s) for s in SHARES[1:]]
    for epsilon in (0.2, 0.5, 2.0):
        private = PrivatePersistence(epsilon)
        both = (DiagramErrors(private, [public, *c]) for c in ((), caps))
        one, several = ((errors.bound, *errors.noise_floors) for errors in both)
        loss = mechanism_of(private, (0, 1)).loss(*public)
        if loss < 160:
            assert several == one
        else:
            assert all(a < b < 1.5 * a for a, b in zip(one, several, strict=True))
