"""Merging along saddles: landscapes compared with dense grids, and the estimator."""

import itertools

import numpy as np
import pytest
from gudhi import CubicalComplex
from scipy.cluster.hierarchy import is_monotonic, is_valid_linkage
from scipy.optimize import approx_fprime
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs, make_moons
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

from sklearn_dptda.cluster import DPMoG, MorseMerging, morse_linkage
from sklearn_dptda.cluster._barriers import BarrierGraph, _Ridgelines, ridgeline_barriers
from sklearn_dptda.cluster._merge_tree import tree_of_barriers
from sklearn_dptda.cluster._mixture_density import (
    MixtureDensity,
    climb,
    find_modes,
    mixture_parameters,
)
from tests._refusals import refuses
from tests.cluster._tables import case


def mixture(k, d, seed, spread=3.0):
    rng = np.random.default_rng(seed)
    roots = 0.5 * rng.normal(size=(k, d, d))
    covariances = roots @ np.swapaxes(roots, 1, 2) + 0.15 * np.eye(d)
    return rng.dirichlet(np.full(k, 3.0)), rng.uniform(-spread, spread, (k, d)), covariances


def heights_on_a_grid(density, modes, size=300):
    """Heights at which the modes' basins meet, by union-find on a grid (GUDHI's).

    The nodes next to the modes are dug deepest, so that the persistent ones are these.
    """
    reach = 5 * np.sqrt(np.einsum("kii->ki", density.covariances))
    low, high = (density.means - reach).min(axis=0), (density.means + reach).max(axis=0)
    axes = [np.linspace(*ends, size) for ends in zip(low, high, strict=True)]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    heights = density.height(nodes).reshape(size, size)
    bottom = heights.min()
    dug = np.rint((modes - low) / (high - low) * (size - 1)).astype(int)
    heights[tuple(dug.T)] = bottom - 1 - np.arange(len(modes))
    grid = CubicalComplex(top_dimensional_cells=heights)
    grid.compute_persistence(homology_coeff_field=2)
    pairs = grid.persistence_intervals_in_dimension(0)
    return np.sort(pairs[np.isfinite(pairs[:, 1]) & (pairs[:, 0] < bottom - 0.5), 1])


def random_planar_mixture(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 13))
    roots = 0.5 * rng.normal(size=(k, 2, 2))
    covariances = roots @ np.swapaxes(roots, 1, 2) + rng.choice([0.08, 0.15]) * np.eye(2)
    return rng.dirichlet(np.full(k, 3.0)), rng.uniform(-2.5, 2.5, (k, 2)), covariances


# The centre of a component that is not a mode was taken for a saddle.
CENTRE_NO_SADDLE = (
    np.array([0.1137, 0.2564, 0.1662, 0.1792, 0.2846]),
    np.array([[-1.033, 1.371], [1.642, 2.927], [-1.383, 0.135], [0.908, 1.728], [2.259, -1.088]]),
    np.array(
        [
            [[1.5849, -0.208], [-0.208, 0.2787]],
            [[0.3209, -0.0654], [-0.0654, 0.2664]],
            [[1.2384, 0.125], [0.125, 0.3679]],
            [[0.3073, 0.0011], [0.0011, 0.3121]],
            [[0.2163, 0.074], [0.074, 0.3149]],
        ]
    ),
)


def linkage_by_strings(*parameters):
    """The merge tree by strings between all pairs of modes, which find more than the usual ones."""
    density = MixtureDensity(*map(np.asarray, parameters))
    graph = BarrierGraph(density, *find_modes(density))
    graph.add_tops_of_strings(None)
    graph.refine()
    return tree_of_barriers(density, graph)


def assert_tree_of_saddles(parameters, search=morse_linkage):
    density, tree = MixtureDensity(*parameters), search(*parameters)
    for saddle, height in zip(tree.saddles, tree.linkage[:, 2], strict=True):
        slope, curvature = density.slope_and_curvature(saddle)
        values = np.linalg.eigvalsh(curvature)
        assert np.abs(slope).max() < 1e-6
        assert values[0] < 0 and (len(values) == 1 or values[1] > 0)
        assert density.height(saddle[None])[0] == pytest.approx(height + tree.mode_heights.min())
    heights = [tree.barriers[i, j] for i, j in tree.edges]
    assert np.array(heights) - tree.mode_heights.min() == pytest.approx(tree.linkage[:, 2])
    return density, tree


def test_morse_linkage_takes_no_centre_for_a_saddle():
    expected = None
    for search in (morse_linkage, linkage_by_strings):
        density, tree = assert_tree_of_saddles(CENTRE_NO_SADDLE, search)
        if expected is None:
            expected = heights_on_a_grid(density, tree.modes)
        assert tree.linkage[1, 2] == pytest.approx(1.61507, abs=1e-5)
        found = tree.linkage[:, 2] + tree.mode_heights.min()
        assert found == pytest.approx(expected, abs=6e-3)


@pytest.mark.parametrize("seeds", [range(1), case(False, range(1, 50))], ids=["few", "many"])
def test_morse_linkage_agrees_with_union_find_on_a_grid(seeds):
    for seed in seeds:
        density, tree = assert_tree_of_saddles(random_planar_mixture(seed))
        found = np.sort(tree.linkage[:, 2]) + tree.mode_heights.min()
        # A grid finds paths that are a little too low or high, across narrow ridges.
        for size in (300, 900, 2500):
            expected = heights_on_a_grid(density, tree.modes, size)
            close = len(expected) == len(found) and np.allclose(found, expected, atol=6e-3)
            if close:
                break
        assert close, (seed, found, expected)


@pytest.mark.laws
@pytest.mark.parametrize("d", [1, 3, 5, 8])
def test_morse_linkage_saddles_have_index_one(d):
    n_saddles = 0
    for seed in range(6):
        rng = np.random.default_rng(1000 * d + seed)
        parameters = mixture(
            int(rng.integers(2, 16)), d, 1000 * d + seed, spread=3.0 if d == 1 else 1.5
        )
        _, tree = assert_tree_of_saddles(parameters)
        n_saddles += len(tree.saddles)
    assert n_saddles >= 4


def test_morse_linkage_finds_the_saddle_of_two_equal_components():
    means = np.array([[-2.0, 0.0], [2.0, 0.0]])
    tree = morse_linkage([0.5, 0.5], means, np.array([np.eye(2)] * 2))
    assert tree.saddles == pytest.approx(np.zeros((1, 2)), abs=1e-9)
    saddle_height = 0.5 * 4 + np.log(2 * np.pi)
    assert tree.linkage[0, 2] + tree.mode_heights.min() == pytest.approx(saddle_height, abs=1e-9)


def test_morse_linkage_gives_close_components_one_mode():
    tree = morse_linkage([0.5, 0.3, 0.2], [[0.0], [0.5], [9.0]], np.ones((3, 1, 1)))
    assert tree.n_modes == 2 and tree.owners.tolist() == [0, 0, 1]
    assert morse_linkage([1.0], [[0.0, 1.0]], [np.eye(2)]).cut().tolist() == [0]


@pytest.mark.parametrize(
    ("k", "d"),
    [(1, 3), (2, 1), (6, 2), (8, 7), *(case(False, *sizes) for sizes in ((12, 9), (20, 5)))],
)
def test_morse_linkage_is_valid_and_monotone(k, d):
    tree = morse_linkage(*mixture(k, d, 0))
    assert tree.linkage.shape == (tree.n_modes - 1, 4)
    assert tree.saddles.shape == (tree.n_modes - 1, d)
    if tree.n_modes > 1:
        assert is_valid_linkage(tree.linkage) and is_monotonic(tree.linkage)
        assert np.isfinite(tree.barriers).all()
        # No saddle lies below the modes that it joins.
        assert (tree.barriers >= np.maximum.outer(tree.mode_heights, tree.mode_heights)).all()
        assert [len(set(tree.cut(c))) for c in range(1, tree.n_modes + 1)] == list(
            range(1, tree.n_modes + 1)
        )


def test_mixture_density_derivatives_equal_differences(rng):
    density = MixtureDensity(*mixture(5, 3, 3))
    x = rng.normal(size=3)
    slope, curvature = density.slope_and_curvature(x)
    height = lambda p: density.height(p[None])[0]  # noqa: E731
    assert approx_fprime(x, height, 1e-7) == pytest.approx(slope, abs=1e-4)
    numeric = approx_fprime(x, lambda p: density.slope_and_curvature(p)[0], 1e-7)
    assert numeric == pytest.approx(curvature, abs=1e-4)


def test_merge_tree_cut_stops_at_the_threshold():
    tree = morse_linkage([0.4, 0.3, 0.3], [[0.0], [3.0], [20.0]], np.ones((3, 1, 1)))
    assert tree.cut().tolist() == [0, 0, 1] or len(set(tree.cut())) == 2
    low, high = tree.linkage[:, 2]
    assert len(set(tree.cut(threshold=low - 1e-9))) == 3
    assert len(set(tree.cut(threshold=low + 1e-9))) == 2
    assert len(set(tree.cut(threshold=high + 1e-9))) == 1


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_mixture_density_equals_that_of_scikit_learn(covariance_type):
    X, _ = make_blobs(100, centers=3, random_state=0)
    fitted = GaussianMixture(3, covariance_type=covariance_type, random_state=0).fit(X)
    density = MixtureDensity(*mixture_parameters(fitted))
    assert -density.height(X) == pytest.approx(fitted.score_samples(X))
    assert density.responsibilities(X) == pytest.approx(fitted.predict_proba(X))


@pytest.mark.nightly
@pytest.mark.parametrize("kind", [GaussianMixture, BayesianGaussianMixture])
def test_morse_merging_finds_moons(kind):
    X, y = make_moons(1500, noise=0.06, random_state=0)
    morse = MorseMerging(kind(n_components=10, max_iter=1000, random_state=0), n_clusters=2).fit(X)
    assert adjusted_rand_score(y, morse.predict(X)) > 0.95
    assert np.array_equal(morse.labels_, morse.predict(X))


@pytest.mark.nightly
def test_morse_merging_finds_the_number_of_blobs():
    X, y = make_blobs(600, centers=4, cluster_std=0.6, random_state=3)
    morse = MorseMerging(GaussianMixture(9, random_state=0)).fit(X)
    assert morse.n_clusters_ == 4 and adjusted_rand_score(y, morse.labels_) > 0.98


def test_morse_merging_learns_only_from_the_mixture():
    X, _ = make_blobs(200, centers=3, random_state=0)
    fitted = GaussianMixture(4, random_state=0).fit(X)
    # Two tables with one mixture: everything learnt is the same.
    first, second = (
        MorseMerging(FrozenEstimator(fitted)).fit(table) for table in (X, X[::-1][:50] * 2)
    )
    assert np.array_equal(first.estimator_.means_, fitted.means_)
    for name in ("modes_", "saddles_", "linkage_", "component_labels_"):
        assert np.array_equal(getattr(first, name), getattr(second, name))


def test_morse_merging_probabilities_agree_with_predict():
    X, _ = make_blobs(200, centers=3, random_state=0)
    morse = MorseMerging(GaussianMixture(5, random_state=0), n_clusters=3).fit(X)
    probabilities = morse.predict_proba(X)
    assert probabilities.shape == (200, morse.n_clusters_)
    assert probabilities.sum(axis=1) == pytest.approx(1.0)
    assert np.array_equal(probabilities.argmax(axis=1), morse.predict(X))


@pytest.mark.parametrize("seed", [case(seed < 2, seed) for seed in range(6)])
def test_morse_linkage_by_strings_equals_ridgelines(seed):
    parameters = mixture(6, 2, seed)
    ridge = morse_linkage(*parameters)
    string = linkage_by_strings(*parameters)
    assert string.linkage[:, 2] == pytest.approx(ridge.linkage[:, 2], abs=1e-6)


@pytest.mark.laws
def test_morse_linkage_joins_modes_that_strings_leave_apart():
    # In nine dimensions, many searches fail, but every barrier is finite.
    tree = linkage_by_strings(*mixture(12, 9, 0))
    assert np.isfinite(tree.barriers).all() and is_monotonic(tree.linkage)
    assert len(set(tree.cut(2))) == 2


def test_merge_tree_cut_merges_light_modes_first():
    # A light component far away is one of two clusters, unless light components are removed first.
    weights = [0.5, 0.49, 0.01]
    tree = morse_linkage(weights, [[0.0], [6.0], [40.0]], np.ones((3, 1, 1)))
    assert tree.mode_weights == pytest.approx(weights)
    assert tree.cut(2).tolist() == [0, 0, 1]
    assert tree.cut(2, min_weight=0.02).tolist() == [0, 1, 1]
    assert tree.cut(3, min_weight=0.02).tolist() == [0, 1, 2]
    assert tree.cut(min_weight=1.0).tolist() == [0, 0, 0]
    assert tree.cut(threshold=0.0, min_weight=0.02).tolist() == [0, 1, 1]


@pytest.mark.laws
@pytest.mark.parametrize("d", [2, 5])
def test_barrier_graph_strings_settle_most_barriers(d):
    # Where two components decide about a barrier, the saddle is the top of their ridgeline. It is
    # above the highest sampled point, which must not make it look like a detour.
    settled = total = 0
    for seed in range(10):
        density = MixtureDensity(*mixture(5, d, seed))
        graph = BarrierGraph(density, *find_modes(density))
        graph.add_tops_of_strings(None)
        for edge in graph.edges():
            total += 1
            settled += edge in graph.settled
            if edge in graph.settled:
                slope, curvature = density.slope_and_curvature(graph.places[edge])
                assert np.abs(slope).max() < 1e-7
                assert (np.linalg.eigvalsh(curvature) < 0).sum() == 1
    assert settled >= 0.85 * total


def test_barrier_graph_ignores_saddles_above_a_ceiling():
    density = MixtureDensity(np.full(2, 0.5), np.array([[-2.0, 0.0], [2.0, 0.0]]), [np.eye(2)] * 2)
    graph = BarrierGraph(density, *find_modes(density))
    start = np.array([0.1, 0.1])
    (height,) = density.height(np.zeros((1, 2)))
    assert graph.add_saddle(start, height - 0.01) is None and graph.settled == set()
    assert graph.add_saddle(start, height) == (0, 1) and graph.settled == {(0, 1)}
    assert graph.places[0, 1] == pytest.approx(np.zeros(2), abs=1e-9)


@pytest.mark.laws
@pytest.mark.parametrize("seed", [0, 5])
def test_morse_linkage_has_no_barrier_above_a_ridgeline(seed):
    # A search that drifts to another saddle must not raise a known height.
    X, _ = make_blobs(5000, n_features=8, centers=5, random_state=0)
    private = DPMoG(10, 10.0, 1e-5, (X.min(axis=0), X.max(axis=0)), random_state=seed).fit(X)
    parameters = private.weights_, private.means_, private.covariances_
    density, tree = MixtureDensity(*parameters), morse_linkage(*parameters)
    pairs, tops, _ = ridgeline_barriers(density, n_zooms=2)
    for (i, j), top in zip(tree.owners[pairs], tops, strict=True):
        if i != j:
            assert tree.barriers[i, j] <= top + 1e-6 * max(1.0, abs(top))


@pytest.mark.laws
def test_morse_merging_flow_agrees_with_responsibilities():
    X, _ = make_moons(20_000, noise=0.06, random_state=0)
    morse = MorseMerging(GaussianMixture(8, random_state=0), n_clusters=2).fit(X[:2000])
    ends = climb(morse._mixture(), X, polish=False)
    modes = cdist(ends, morse.modes_).argmin(axis=1)
    assert np.mean(morse.mode_labels_[modes] == morse.predict(X)) > 0.97


def test_morse_merging_refuses_what_cannot_be_merged():
    X, _ = make_blobs(100, centers=3, random_state=0)
    with pytest.warns(UserWarning, match="n_clusters=9"):
        MorseMerging(GaussianMixture(3, random_state=0), n_clusters=9).fit(X)
    refuses("exclude", MorseMerging(n_clusters=2, merge_threshold=1.0).fit, X)
    refuses("KMeans has no weights_", MorseMerging(KMeans(3)).fit, X)
    refuses("matching shapes", morse_linkage, [1.0], [[0.0, 0.0]], [[1.0]])
    refuses("positive definite", morse_linkage, [1.0], [[0.0]], [[[0.0]]])
    refuses("weights", morse_linkage, [0.0, 1.0], [[0.0], [1.0]], np.ones((2, 1, 1)))


@pytest.mark.laws
@pytest.mark.parametrize(("separation", "d"), [(20, 1), (60, 2), (100, 1), (200, 2)])
def test_morse_linkage_finds_saddles_of_far_clusters(separation, d):
    rng = np.random.default_rng(separation)
    for _ in range(8):
        means = np.zeros((3, d))
        means[1, 0], means[2, 0] = separation, 2.5 * separation
        covariances = rng.uniform(0.8, 1.25, 3)[:, None, None] * np.eye(d)
        parameters = (
            rng.dirichlet(np.full(3, 5.0)),
            means + 0.1 * rng.normal(size=(3, d)),
            covariances,
        )
        _, tree = assert_tree_of_saddles(parameters)
        assert tree.n_modes == 3 and len(tree.saddles) == len(tree.edges) == 2
        assert np.isfinite(tree.barriers).all()
        assert sorted(np.bincount(tree.cut(2)[tree.owners])) == [1, 2]


@pytest.mark.laws
@pytest.mark.parametrize("ratio", [10, 30])
def test_morse_linkage_equals_maxima_on_a_line(ratio):
    # On a line, every maximum of the height between two modes is a saddle.
    rng = np.random.default_rng(ratio)
    for _ in range(10):
        k = int(rng.integers(2, 9))
        stds = 0.2 * np.exp(rng.uniform(0, np.log(ratio), k)) / ratio**0.5
        parameters = (
            rng.dirichlet(np.full(k, 3.0)),
            rng.uniform(-3, 3, (k, 1)),
            stds[:, None, None] ** 2,
        )
        density, tree = assert_tree_of_saddles(parameters)
        places = np.sort(tree.modes[:, 0])
        fine = [np.linspace(a, b, 20_001)[:, None] for a, b in itertools.pairwise(places)]
        tops = np.sort([density.height(points).max() for points in fine])
        found = np.sort(tree.linkage[:, 2]) + tree.mode_heights.min()
        assert found == pytest.approx(tops, abs=1e-4)


@pytest.mark.laws
def test_morse_linkage_of_equal_components_has_equal_saddles():
    # By symmetry, ridgelines between modes that are not neighbours are as high as between
    # neighbours.
    row = np.c_[4.0 * np.arange(14), np.zeros(14)]
    square = 4.0 * np.stack(np.meshgrid(np.arange(4), np.arange(4)), axis=-1).reshape(-1, 2)
    for means in (row, square):
        parameters = np.ones(len(means)), means, np.repeat(np.eye(2)[None], len(means), 0)
        _, tree = assert_tree_of_saddles(parameters)
        assert tree.n_modes == len(means) == len(tree.saddles) + 1
        assert np.ptp(tree.linkage[:, 2]) < 1e-3


def test_merge_tree_cut_joins_a_light_bump_before_a_heavy_mode():
    weights, means = [0.60, 0.399, 0.001], [[0.0], [4.5], [9.5]]
    tree = morse_linkage(weights, means, np.ones((3, 1, 1)))
    assert tree.cut(2, rule="height")[tree.owners].tolist() == [0, 0, 1]
    assert tree.cut(2)[tree.owners].tolist() == [0, 1, 1]


def test_merge_tree_cut_ignores_linear_maps(rng):
    weights, means = rng.dirichlet(np.full(8, 2.0)), rng.normal(size=(8, 3)) * 4
    roots = rng.normal(size=(8, 3, 3))
    covariances = roots @ roots.transpose(0, 2, 1) + np.eye(3)
    turn = rng.normal(size=(3, 3))
    tree = morse_linkage(weights, means, covariances)
    other = morse_linkage(weights, means @ turn.T, turn @ covariances @ turn.T)
    for n_clusters in range(1, tree.n_modes + 1):
        labels = tree.cut(n_clusters)[tree.owners]
        assert len(set(labels)) == n_clusters
        assert adjusted_rand_score(labels, other.cut(n_clusters)[other.owners]) == 1.0


@pytest.mark.parametrize(("d", "spread"), [(1, 9), (2, 0), (2, 9), (5, 3), (10, 9)])
def test_ridgelines_join_centres_along_opposite_gradients(d, spread, rng):
    k, covariances = 6, []
    for _ in range(k):
        axes = np.linalg.qr(rng.normal(size=(d, d)))[0]
        covariances.append((axes * 10.0 ** rng.uniform(-spread, 0, d)) @ axes.T)
    density = MixtureDensity(
        np.full(k, 1 / k), 100 + rng.normal(size=(k, d)), np.array(covariances)
    )
    pairs = np.column_stack(np.triu_indices(k, 1))
    points = _Ridgelines(density, pairs).points(np.tile(np.linspace(0, 1, 9), (len(pairs), 1)))
    np.testing.assert_allclose(points[:, 0], density.means[pairs[:, 0]], atol=1e-9)
    np.testing.assert_allclose(points[:, -1], density.means[pairs[:, 1]], atol=1e-12)
    # At a point of a ridgeline, the gradients of the two components have opposite directions.
    first, second = (
        np.einsum("pij,ptj->pti", density.precisions[own], points - density.means[own][:, None])
        for own in pairs.T
    )
    for one, other in zip(
        first[:, 1:-1].reshape(-1, d), second[:, 1:-1].reshape(-1, d), strict=True
    ):
        lengths = np.linalg.norm(one) * np.linalg.norm(other)
        assert one @ other == pytest.approx(-lengths, rel=1e-3 if spread == 9 else 1e-6)


def test_morse_linkage_does_not_depend_on_units_and_offsets():
    rng = np.random.default_rng(3)
    weights, means = rng.dirichlet(np.ones(8)), rng.normal(0, 2, (8, 4))
    roots = rng.normal(size=(8, 4, 4)) / 2
    covariances = roots @ np.swapaxes(roots, 1, 2) + 0.05 * np.eye(4)
    tree = morse_linkage(weights, means, covariances)
    # Columns like a year that hardly varies, beside sums of money.
    units, offsets = np.array([1e-7, 1.0, 1e5, 3e-3]), np.array([2008.0, 0.0, 1e6, -1.0])
    # The means beside 2008 are rounded to 2e-6 units.
    other = morse_linkage(weights, offsets + units * means, covariances * np.outer(units, units))
    higher = np.log(units).sum()
    assert other.owners.tolist() == tree.owners.tolist()
    np.testing.assert_allclose(other.mode_heights - higher, tree.mode_heights, atol=1e-5)
    np.testing.assert_allclose(other.barriers - higher, tree.barriers, atol=1e-5)
    np.testing.assert_allclose((other.modes - offsets) / units, tree.modes, atol=1e-4)
    np.testing.assert_allclose((other.saddles - offsets) / units, tree.saddles, atol=1e-4)
