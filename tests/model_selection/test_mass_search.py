"""The private choice of a mass: its sensitivity, its law, and refusals."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import chi2
from sklearn.base import clone

from sklearn_dptda import DTMFiltration, PersistenceProfile
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.filtration import LatticeHistogram
from sklearn_dptda.model_selection import PrivateMassSearch, _mass_search
from sklearn_dptda.model_selection._mass_search import _SCORE_SENSITIVITY
from sklearn_dptda.persistence._lifetimes import make_lattice
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import NoiseSource, private_choice
from sklearn_dptda.privacy._noise import spawn_seeds
from sklearn_dptda.privacy.neighbours import cloud_neighbours
from sklearn_dptda.published import dtm_worst_case, dtm_worst_case_loop
from tests._refusals import refuses_unpaid
from tests.privacy._permute_and_flip import permute_and_flip_law

FALSE_ALARM = 1e-6
BOX = DTMFiltration(bounds=(-3, 3.5), resolution=15)


def scores(search, clouds):
    """Scores of all candidates, in the unit that one record moves them by."""
    fitted = search._fitted_candidates(clouds)
    functions = [each.transform(clouds) for each in fitted]
    return (
        np.array(
            [
                sum(search._score(f, make_lattice(f.sensitivity, f.upper)) for f in each)
                for each in functions
            ]
        )
        / _SCORE_SENSITIVITY
    )


@pytest.mark.laws
def test_private_mass_search_scores_move_by_one_at_most(rng):
    # For every mass, dimension and rank.
    worst = 0.0
    box = DTMFiltration(bounds=(0, 1), resolution=9)
    pairs = [(pair.first, pair.second) for pair in cloud_neighbours(20, ([0, 0], [1, 1]))]
    pairs += [dtm_worst_case_loop(n, [0, 0], [1, 1]) for n in (8, 20)]
    pairs += [dtm_worst_case(m, 20, [0, 0], [1, 1]) for m in (0.1, 0.3, 0.5)]
    for _ in range(10):
        cloud = rng.choice([0.0, 0.25, 0.5, 1.0], (20, 2))
        other = cloud.copy()
        other[0] = rng.uniform(0, 1, 2)
        pairs.append((cloud, other))
    for q in (0, 1):
        for rank in (1, 2):
            search = PrivateMassSearch(
                box, (0.05, 0.1, 0.3, 0.5, 1.0), homology_dimension=q, rank=rank
            )
            for first, second in pairs:
                moves = np.abs(scores(search, [first]) - scores(search, [second]))
                assert moves.max() <= 1.0
                worst = max(worst, moves.max())
    # The score is half the persistence over the sensitivity. A component that appears changes it by
    # half.
    assert worst > 0.4


@pytest.mark.laws
def test_private_mass_search_draws_from_the_enumerated_law(monkeypatch):
    n, masses = 4000, (0.05, 0.1, 0.2)
    cloud = make_two_circles(400, random_state=0)
    search, draws = PrivateMassSearch(BOX, masses, 2.0, random_state=0), []
    chosen = []

    def draw_often(*law, **options):
        *asked, _ = law
        draws.extend(private_choice(*asked, NoiseSource(i), **options) for i in range(n))
        # What fits with these seeds choose.
        seeds = [spawn_seeds(seed, 1) for seed in range(20)]
        chosen.extend(private_choice(*asked, NoiseSource(*each), **options) for each in seeds)
        return draws[-1]

    # One fit prepares all draws, because preparing them takes nearly all of the time.
    monkeypatch.setattr(_mass_search, "private_choice", draw_often)
    assert search.fit([cloud]).m_ == masses[draws[-1]]
    monkeypatch.undo()
    found = [clone(search).set_params(random_state=seed).fit([cloud]).m_ for seed in range(20)]
    assert found == [masses[i] for i in chosen] and len(set(found)) > 1
    observed = np.bincount(draws, minlength=len(masses))
    values = scores(search, [cloud])
    for factor in (1.0, 0.5, 2.0):
        expected = n * permute_and_flip_law(-values, factor * 2.0 / 2)
        statistic = ((observed - expected) ** 2 / expected).sum()
        assert (statistic > chi2.isf(FALSE_ALARM, 2)) == (factor != 1.0)


@pytest.mark.nightly
def test_private_mass_search_chooses_well():
    clouds = [make_two_circles(2000, random_state=0)]
    search = PrivateMassSearch(
        DTMFiltration(bounds=(-2.5, 3), resolution=51),
        epsilon=1.0,
        random_state=np.random.default_rng(0),
    )
    values = scores(search, clouds)
    best = PrivateMassSearch(search.filtration, epsilon=np.inf).fit(clouds)
    assert best.m_ == search.candidates[values.argmax()]
    by_mass = dict(zip(search.candidates, values, strict=True))
    reached = np.mean([by_mass[search.fit(clouds).m_] for _ in range(20)])
    assert reached > 0.85 * values.max() > 1.5 * values.mean() * 0.85


def test_private_mass_search_adds_scores_of_clouds():
    clouds = [make_two_circles(200, random_state=seed) for seed in range(3)]
    search = PrivateMassSearch(BOX, (0.1, 0.3))
    apart = sum(scores(search, [cloud]) for cloud in clouds)
    np.testing.assert_allclose(scores(search, clouds), apart)


def test_private_mass_search_makes_an_unfitted_filtration(circles):
    search = PrivateMassSearch(BOX, random_state=0).fit([circles])
    assert search.filtration_ is not BOX and not hasattr(search.filtration_, "axes_")
    assert search.filtration_.m == search.m_ and search.filtration_.resolution == 15
    profile = PersistenceProfile(0.8).fit(search.filtration_.fit_transform([circles]))
    both = search.privacy_guarantee_ + profile.privacy_guarantee_
    assert both.epsilon == pytest.approx(1.0)
    assert "which of 7 masses shows H1 best" in str(both)


def test_private_mass_search_takes_histograms_for_clouds(circles):
    lattice = DTMFiltration(bounds=(-3, 3.5), resolution=15, method="lattice").fit([circles])
    histogram = lattice.make_histogram(circles)
    options = {"candidates": (0.1, 0.3), "epsilon": np.inf}
    chosen = [PrivateMassSearch(lattice, **options).fit([X]).m_ for X in (circles, histogram)]
    assert chosen[0] == chosen[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"filtration": DTMFiltration()}, "filtration must have bounds in numbers"),
        ({"filtration": DTMFiltration(bounds=PrivateBounds())}, "filtration must have bounds"),
        ({"filtration": DTMFiltration(bounds=(3, -3))}, "bounds"),
        ({"candidates": (0.1, 0.0)}, "candidates"),
        ({"candidates": (0.1, 1.5)}, "candidates"),
        ({"candidates": (0.1, np.nan)}, "candidates"),
        ({"candidates": (0.1, "a")}, "candidates"),
        ({"candidates": (0.1, 0.1)}, "candidates has duplicates"),
        ({"homology_dimension": 2}, "homology_dimension=2"),
    ],
)
def test_private_mass_search_refuses_bad_parameters_unpaid(circles, options, message):
    refuses_unpaid(message, PrivateMassSearch(**{"filtration": BOX, **options}).fit, [circles])


def test_private_mass_search_refuses_one_cloud_twice(circles):
    search = PrivateMassSearch(BOX)
    refuses_unpaid("one object several times", search.fit, [circles, circles])
    search.fit([circles, copy.deepcopy(circles)])


@pytest.mark.laws
def test_private_mass_search_refuses_unusable_lattices_unpaid():
    cloud = np.random.default_rng(0).uniform(size=(50, 2))
    histogram = LatticeHistogram((0, 1), (11, 11)).update(cloud)
    small = {"resolution": 101, "method": "lattice", "memory": 1.0}
    for options, given in ((small, cloud), ({"resolution": 9}, histogram)):
        search = PrivateMassSearch(DTMFiltration(bounds=(0, 1), **options))
        refuses_unpaid("lattice|histogram", search.fit, [given])


def test_score_moves_by_its_sensitivity_at_most():
    # The birth and the death of a lifetime part by one sensitivity each.
    search, lattice = PrivateMassSearch(homology_dimension=0), make_lattice(0.1, 1.0)
    first, second = (
        search._score(SimpleNamespace(values=np.array(values), upper=1.0), lattice)
        for values in ([0.0, 0.9, 0.1], [0.0, 0.8, 0.2])
    )
    assert 0.99 * _SCORE_SENSITIVITY < first - second <= _SCORE_SENSITIVITY
