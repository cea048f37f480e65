"""Private k-means by three methods: budgets, sensitivities of choices, covariances, utility."""

import itertools
import math

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from sklearn_dptda.cluster import DPLloyd, DPTree, MorseMerging
from sklearn_dptda.cluster._dp_tree import BoxTree, grow
from sklearn_dptda.privacy import (
    NoiseSource,
    PrivacyAccountant,
    PrivacyBudgetExceeded,
)
from sklearn_dptda.published import DPCube
from sklearn_dptda.published._dp_cube import (
    LARGEST_COST,
    Candidates,
    CountedRows,
    search,
    set_costs,
    swap_costs,
)
from sklearn_dptda.rows._moments import FitBudget, GaussianBudget
from sklearn_dptda.rows._rows import Rows
from tests._refusals import failing, refuses, refuses_unpaid
from tests.cluster._tables import ODD_TABLES, case

KINDS = [DPLloyd, DPTree, DPCube]
BOX = (-15, 15)


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(5000, centers=5, n_features=3, random_state=3)


@pytest.mark.parametrize("options", [{}, {"covariance_share": 0.5}])
def test_dp_lloyd_counts_its_steps(options, blobs):
    X, _ = blobs
    made = [
        DPLloyd(3, epsilon, bounds=(-15, 15), n_iter=n_iter, random_state=0, **options).fit(X)
        for epsilon, n_iter in ((1.0, 3), (0.05, None), (10.0, None))
    ]
    assert [private.n_iter_ for private in made] == [3, 4, 8]


@pytest.mark.parametrize("kind", KINDS)
def test_private_kmeans_without_noise_is_near_kmeans(kind, blobs):
    X, _ = blobs
    private = kind(5, math.inf, bounds=BOX, random_state=0).fit(X)
    exact = KMeans(5, n_init=10, random_state=0).fit(X)
    nearest = ((X - private.cluster_centers_[private.predict(X)]) ** 2).sum()
    assert nearest < -1.1 * exact.score(X)
    assert private.transform(X).shape == (5000, 5)
    assert np.array_equal(private.transform(X).argmin(axis=1), private.predict(X))


@pytest.mark.laws
@pytest.mark.parametrize("kind", KINDS)
def test_private_kmeans_probabilities_are_those_of_round_clusters(kind, rng):
    # Two clusters of variance 1, at a distance of 6: between them, probabilities are logistic.
    X = rng.normal(size=(20_000, 1)) + np.where(rng.random((20_000, 1)) < 0.5, -3, 3)
    private = kind(2, math.inf, bounds=BOX, random_state=0).fit(X)
    rows = np.linspace(-2, 2, 9)[:, None]
    found = private.predict_proba(rows)
    assert found.sum(axis=1) == pytest.approx(1.0)
    right = int(private.cluster_centers_.argmax())
    assert found[:, right] == pytest.approx(1 / (1 + np.exp(-6 * rows[:, 0])), abs=0.1)
    many = kind(8, 1.0, bounds=BOX, random_state=0).fit(X)
    assert (many.predict_proba(X).argmax(axis=1) == many.predict(X)).all()
    assert np.isfinite(many.predict_proba([[1e200]])).all()


@pytest.mark.parametrize("kind", KINDS)
def test_private_kmeans_ignores_units_of_columns(kind, blobs):
    X = blobs[0][:1000]
    units = np.array([1.0, 1e4, 1e-3])
    bounds = np.full(3, -16.0), np.full(3, 16.0)
    private = kind(5, 2.0, bounds=bounds, random_state=0).fit(X)
    other = kind(5, 2.0, bounds=[b * units for b in bounds], random_state=0).fit(X * units)
    assert other.cluster_centers_ == pytest.approx(private.cluster_centers_ * units, rel=1e-6)
    assert other.transform(X * units) == pytest.approx(private.transform(X), rel=1e-6)
    assert np.array_equal(other.predict(X * units), private.predict(X))
    assert (
        other.units_ == pytest.approx(private.units_ * units) and private.scales_ is private.units_
    )


@pytest.mark.laws
@pytest.mark.parametrize("kind", KINDS)
def test_private_kmeans_covariances_feed_morse_merging(kind, blobs):
    X, y = blobs
    base = kind(8, 5.0, bounds=BOX, covariance_share=0.5, random_state=0)
    morse = MorseMerging(base, n_clusters=5).fit(X)
    assert adjusted_rand_score(y, morse.predict(X)) > 0.8
    assert not hasattr(morse, "labels_")
    again = morse.estimator_.set_params(covariance_share=0.0).fit(X)
    assert not hasattr(again, "covariances_")


def test_morse_merging_refuses_dp_lloyd_without_covariances_unpaid(blobs):
    refuses_unpaid("covariance_share", MorseMerging(DPLloyd(5, bounds=BOX)).fit, blobs[0])


# All estimators of rows fit by the same steps, so that one of them shows what these leave.
def test_dp_lloyd_keeps_the_earlier_release_if_a_fit_is_refused(blobs):
    X, accountant = blobs[0][:200], PrivacyAccountant(3.0, 1e-3)
    private = DPLloyd(3, 2.0, bounds=BOX, accountant=accountant).fit(X)
    centres = private.cluster_centers_
    refuses(None, private.set_params(epsilon=1.5).fit, X, error=PrivacyBudgetExceeded)
    assert private.cluster_centers_ is centres and private.privacy_guarantee_.epsilon == 2.0


def test_dp_lloyd_has_no_guarantee_after_a_failed_fit(blobs, monkeypatch):
    private = DPLloyd(3, 2.0, bounds=BOX).fit(blobs[0][:200])
    monkeypatch.setattr(FitBudget, "release", failing(MemoryError("an array of shape (4711, 3)")))
    said = refuses(None, private.fit, blobs[0], error=MemoryError)
    assert "4711" not in said
    assert not [n for n in vars(private) if n.endswith("_") and n != "n_features_in_"]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": 1e-30}, "epsilon"),
        ({"epsilon": 1e300}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"bounds": (1, 0)}, "bounds"),
        ({"bounds": (0, np.nan)}, "bounds"),
        ({"bounds": (0, 5e-324)}, "bounds"),
        ({"bounds": (-1e200, 1e200)}, "bounds"),
        ({"bounds": ([0, 0], [1, 1])}, "bounds"),
        ({"covariance_share": 1.0}, "covariance_share"),
        ({"covariance_share": 1e-300}, "covariance_share"),
    ],
    ids=str,
)
def test_dp_lloyd_refuses_impossible_sizes_unpaid(parameters, message, blobs):
    # Numbers that only their size makes impossible, and bounds, of which all estimators of rows
    # have the same tests.
    private = DPLloyd(3, bounds=BOX).set_params(**parameters)
    refuses_unpaid(message, private.fit, blobs[0])


@pytest.mark.laws
def test_dp_tree_boxes_of_equal_rows_have_a_width():
    X = np.r_[np.full(1000, 0.01), np.zeros(20_000)][:, None]
    private = DPTree(2, 4.0, bounds=(-1, 1), max_depth=60, random_state=0).fit(X)
    assert np.isfinite(private.coreset_).all()


@pytest.mark.laws
def test_dp_lloyd_of_wide_tables_needs_memory_for_a_batch():
    X = np.random.default_rng(0).normal(size=(3000, 300))
    private = DPLloyd(2, math.inf, bounds=(-6, 6), n_iter=1, covariance_share=0.5).fit(X)
    assert private.covariances_.shape[1:] == (300, 300)


def test_box_tree_counts_every_record_once(rng):
    X = rng.normal(size=(4000, 3)) * [3.0, 1.0, 0.2]
    rows = Rows.of_array(X)
    budget = GaussianBudget(math.inf, "add-remove", NoiseSource(0))
    half_widths = np.array([3.0, 1.0, 0.2])
    tree = grow(rows, np.eye(3), half_widths, n_clusters=4, depth=8, budget=budget, share=1.0)
    cells = tree.leaf_of(X)
    assert len(tree.leaves) > 20 and set(cells) <= set(range(len(tree.leaves)))
    leaves = tree.leaves[cells]
    inside = (np.abs(X) < tree.high[0]).all(axis=1)
    assert (X[inside] >= tree.low[leaves[inside]]).all()
    assert (X[inside] <= tree.high[leaves[inside]]).all()
    # The longest sides are cut first.
    sides = (tree.high - tree.low)[tree.leaves]
    assert sides[:, 0].max() < 2 * sides[:, 1].max() + 1e-9


def test_box_tree_of_one_box_is_split():
    tree = BoxTree.root(np.eye(2), np.ones(2))
    assert tree.leaf_of(np.zeros((3, 2))).tolist() == [0, 0, 0]
    tree.split([0])
    assert tree.leaf_of(np.array([[-1.0, 0.0], [9.0, 0.0]])).tolist() == [0, 1]


def test_swap_costs_of_billions_of_rows_are_exact(rng):
    # Floating-point numbers do not represent all whole numbers from 2**54 on.
    candidates = Candidates(rng.normal(size=(5, 2)), 3.0)
    cells, counts = rng.integers(0, 50, (40, 2)), rng.integers(1, 2**34, 40)
    low, side = np.full(2, -3.0), np.full(2, 0.1)
    rows = CountedRows.in_entries(cells, counts, low, side)
    assert rows.counts.sum() == counts.sum() and rows.counts.max() <= 2**20
    costs = candidates.costs(low + (cells + 0.5) * side).astype(int).astype(object)
    sets = [np.array(s) for s in ([0, 1], [2, 1], [0, 4])]
    expected = [int((counts.astype(object) * costs[:, s].min(axis=1)).sum()) for s in sets]
    assert set_costs(candidates, rows, sets) == expected
    found = swap_costs(candidates, rows, sets[0])
    assert [int(found[0, 2]), int(found[1, 4])] == expected[1:]
    assert max(expected) > 2**54


@pytest.mark.parametrize("k", [1, 2, 4])
def test_swap_costs_equal_set_costs(k, rng):
    candidates = Candidates(rng.normal(size=(9, 2)), 1.5)
    rows = CountedRows(rng.normal(size=(40, 2)), rng.integers(1, 9, 40).astype(float))
    chosen = np.arange(k) * 2
    found = swap_costs(candidates, rows, chosen)
    for out in range(k):
        sets = [np.r_[np.delete(chosen, out), c] for c in range(9)]
        assert found[out].tolist() == set_costs(candidates, rows, sets)


def test_each_choice_of_a_search_declares_the_cost_of_a_record_and_an_equal_share(rng):
    declared = []

    class Budget:
        def choose(self, costs, largest, share):
            declared.append((largest, share))
            return int(np.argmin(costs))

    candidates = Candidates(rng.uniform(-1, 1, (6, 2)), 1.0)
    rows = CountedRows(rng.uniform(-1, 1, (9, 2)), np.ones(9))
    search(candidates, rows, [0, 1], 3, Budget(), 0.8)
    # 1,024 steps to the radius, squared; three swaps and the final choice.
    assert declared == [(1024**2, 0.2)] * 4


def test_swap_costs_move_by_the_cost_of_a_record(rng):
    candidates = Candidates(rng.normal(size=(20, 3)), 1.0)
    X = 3 * rng.normal(size=(60, 3))
    chosen = np.array([1, 5, 7])
    low, high = np.full((2, 3), [[-2.0], [2.0]])
    rows, fewer = (CountedRows.of(Rows.of_array(part), low, high) for part in (X, X[1:]))
    moved = swap_costs(candidates, rows, chosen) - swap_costs(candidates, fewer, chosen)
    assert moved.min() >= 0 and moved.max() == LARGEST_COST
    # Whole numbers are used, so the cost of a record does not depend on other rows.
    whole = candidates.costs(X)
    assert np.array_equal(whole, np.rint(whole)) and whole.max() == LARGEST_COST
    for start in range(10):
        assert np.array_equal(whole[start : 60 - start], candidates.costs(X[start : 60 - start]))
    # A twin whose lattice depends on the rows is caught, because one row changes the cells of
    # others.
    X = rng.normal(size=(200, 3))
    tables = X, np.delete(X, np.abs(X).max(axis=1).argmax(), axis=0)
    twins = [CountedRows.of(Rows.of_array(Y), Y.min(axis=0), Y.max(axis=0)) for Y in tables]
    moved = np.subtract(*(swap_costs(candidates, rows, chosen) for rows in twins))
    assert moved.min() < 0 or moved.max() > LARGEST_COST


def test_candidates_costs_are_squared_distances_cut_off(rng):
    candidates = Candidates(rng.normal(size=(20, 3)), 2.0)
    X = rng.normal(size=(50, 3))
    squared = ((X[:, None] - candidates.points) ** 2).sum(axis=2) / 4
    assert candidates.costs(X) / LARGEST_COST == pytest.approx(np.minimum(squared, 1), abs=0.01)
    far = np.full((1, 3), 1e300)
    assert (candidates.costs(far) == LARGEST_COST).all()


@pytest.mark.parametrize(
    ("kind", "name", "delta", "epsilon"),
    [
        # All pairs of parameters are in the unit layer.
        case(n == (j + 2 * i) % 6, kind, name, delta, epsilon)
        for i, kind in enumerate(KINDS)
        for j, name in enumerate(ODD_TABLES)
        for n, (delta, epsilon) in enumerate(itertools.product([0, 1e-6], [0.01, 10.0, math.inf]))
    ],
)
def test_private_kmeans_fits_odd_tables(kind, name, delta, epsilon, recwarn):
    X = ODD_TABLES[name]
    private = kind(4, epsilon, delta, (-1, 1), covariance_share=0.3, random_state=0).fit(X)
    assert np.isfinite(private.cluster_centers_).all()
    assert (np.linalg.eigvalsh(private.covariances_) > 0).all()
    assert private.predict(X).shape == (len(X),)
    # Noise hides all clusters of some tables.
    assert all("than noise can produce" in str(each.message) for each in recwarn.list)
