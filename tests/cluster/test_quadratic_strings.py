"""Quadratic strings, Algorithms 3 and 4 of Byun, Choi and Lee, compared with known saddles."""

import itertools

import numpy as np
import pytest
from scipy.cluster.hierarchy import is_monotonic, is_valid_linkage
from scipy.optimize import brentq
from scipy.sparse.csgraph import connected_components
from sklearn.datasets import make_blobs, make_moons
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from sklearn_dptda.cluster import DPMoG, MorseMerging, morse_linkage
from sklearn_dptda.cluster._mixture_density import MixtureDensity, climb
from sklearn_dptda.plotting import DendrogramDisplay, MixtureDensityDisplay
from sklearn_dptda.published import PublishedMerging
from sklearn_dptda.published import published_linkage as quadratic
from sklearn_dptda.published._published_mixture import (
    CentreGraph,
    _highest_on_parabola,
    transitions,
)


def saddle_heights(tree):
    """Heights of the saddles themselves: trees differ in what they call the highest mode."""
    return tree.linkage[:, 2] + tree.mode_heights.min()


def round_mixture(weights, means, width=1.0):
    means = np.asarray(means, dtype=float)
    return (
        np.asarray(weights),
        means,
        np.repeat(width**2 * np.eye(means.shape[1])[None], len(means), 0),
    )


def random_mixture(k, d, seed):
    rng = np.random.default_rng(seed)
    roots = 0.4 * rng.normal(size=(k, d, d))
    covariances = roots @ np.swapaxes(roots, 1, 2) / d + 0.15 * np.eye(d)
    return rng.dirichlet(np.full(k, 3.0)), rng.uniform(-2, 2, (k, d)), covariances


def saddle_on(density, first, last):
    """Height of the saddle between two points on a line of symmetry, by bisection."""
    first, last = np.asarray(first, dtype=float), np.asarray(last, dtype=float)
    along = last - first
    slope = lambda t: density.slope_and_curvature(first + t * along)[0] @ along  # noqa: E731
    place = first + brentq(slope, 0.05, 0.95, xtol=1e-14) * along
    return density.height(place[None])[0]


@pytest.mark.parametrize(
    ("weight", "distance", "d"),
    [(0.5, 3.0, 1), (0.3, 3.0, 2), (0.05, 3.0, 6), (0.5, 5.0, 2), (0.3, 8.0, 6), (0.05, 8.0, 1)],
)
def test_quadratic_strings_find_the_saddle_of_two_components(weight, distance, d):
    means = np.zeros((2, d))
    means[1, 0] = distance
    parameters = round_mixture([1 - weight, weight], means)
    if len(morse_linkage(*parameters).modes) < 2:
        assert np.isinf(quadratic(*parameters).linkage[0, 2])
        return
    modes = climb(MixtureDensity(*parameters), means)
    expected = saddle_on(MixtureDensity(*parameters), *modes)
    assert saddle_heights(quadratic(*parameters)) == pytest.approx([expected], abs=1e-8)


def test_quadratic_strings_find_three_equal_saddles_of_a_triangle():
    angles = np.pi / 2 + 2 * np.pi / 3 * np.arange(3)
    means = 2.5 * np.c_[np.cos(angles), np.sin(angles)]
    density = MixtureDensity(*round_mixture(np.ones(3), means))
    # From the middle, which is a maximum of the height, down to the saddle opposite to the first
    # corner, and beyond it up again where the density falls.
    expected = saddle_on(density, -0.2 * means[0], -0.9 * means[0])
    graph = CentreGraph(density)
    found = graph.heights[np.triu_indices(3, 1)]
    assert found == pytest.approx(np.full(3, expected), abs=1e-8)
    for (i, j), opposite in zip(((0, 1), (0, 2), (1, 2)), (2, 1, 0), strict=True):
        corner = graph.modes[opposite]
        assert graph.places[i, j] @ corner == pytest.approx(
            -np.linalg.norm(graph.places[i, j]) * np.linalg.norm(corner)
        )


@pytest.mark.laws
@pytest.mark.parametrize("d", [2, 5])
def test_quadratic_strings_agree_with_ridgelines_on_three_components(d):
    n_found = 0
    for seed in range(16):
        rng = np.random.default_rng(seed)
        means = rng.normal(size=(3, d))
        means *= 4.5 / np.linalg.norm(means, axis=1)[:, None]
        width = rng.uniform(0.8, 1.2, 3)[:, None, None]
        parameters = rng.dirichlet(np.full(3, 5.0)), means, width * np.eye(d)
        exact = morse_linkage(*parameters)
        if exact.n_modes == 3:
            n_found += 1
            assert saddle_heights(quadratic(*parameters)) == pytest.approx(
                saddle_heights(exact), abs=1e-8
            )
    assert n_found >= 8


@pytest.mark.laws
@pytest.mark.parametrize(("k", "d"), [(6, 2), (12, 3), (10, 8)])
def test_transitions_are_index_one_points_between_two_centres(k, d):
    n_edges = 0
    for seed in range(5):
        density = MixtureDensity(*random_mixture(k, d, seed))
        for pair, place in zip(*transitions(density), strict=True):
            slope, curvature = density.slope_and_curvature(place)
            values, vectors = np.linalg.eigh(curvature)
            assert np.abs(slope).max() < 1e-6 and (values < 0).sum() == 1
            ends = climb(density, place + 0.05 * np.array([[1], [-1]]) * vectors[:, 0])
            nearest = ((ends[:, None] - density.means) ** 2).sum(axis=2).argmin(axis=1)
            assert sorted(nearest) == pair.tolist()
            # A transition point is higher than both ends of its descents.
            assert density.height(place[None])[0] > density.height(ends).max()
            n_edges += 1
    assert n_edges >= 12


@pytest.mark.parametrize("seed", range(3))
def test_quadratic_strings_trees_are_monotone_and_reach_any_number(seed):
    k = 9
    tree = quadratic(*random_mixture(k, 3, seed))
    assert tree.n_modes == k and tree.linkage.shape == (k - 1, 4)
    assert is_valid_linkage(tree.linkage) and is_monotonic(tree.linkage)
    cuts = [tree.cut(n) for n in range(k, 0, -1)]
    assert [len(set(labels)) for labels in cuts] == list(range(k, 0, -1))
    for finer, coarser in itertools.pairwise(cuts):
        assert all(len(set(coarser[finer == label])) == 1 for label in set(finer))
    # Without a number of clusters, no saddle is crossed that was not found.
    known = np.isfinite(tree.linkage[:, 2]).sum()
    assert len(set(tree.cut())) >= k - known
    assert (
        np.isnan(tree.saddles).all(axis=1).tolist() == (~np.isfinite(tree.linkage[:, 2])).tolist()
    )


@pytest.mark.parametrize("seed", range(3))
def test_quadratic_strings_cuts_are_components_of_the_graph(seed):
    # Theorem 5.5 and the graph of Proposition 5.2.
    parameters = random_mixture(8, 2, seed)
    graph, tree = CentreGraph(MixtureDensity(*parameters)), quadratic(*parameters)
    # The linkage stores differences of heights. A level is therefore above its saddle by more than
    # the rounding of a difference, which depends on the processor.
    for level in (*(saddle_heights(tree) + 1e-9), np.inf):
        finite = np.isfinite(graph.heights) & (graph.heights <= level)
        expected = connected_components(finite, directed=False)[1]
        threshold = min(level - tree.mode_heights.min(), 1e6)
        assert adjusted_rand_score(expected, tree.cut(threshold=threshold)) == 1.0


def test_highest_on_parabola_passes_both_centres_and_the_vertex():
    class Recorder:
        n_features = 3

        def height(self, points):
            self.points = points
            return np.arange(len(points), dtype=float)

    recorder, rng = Recorder(), np.random.default_rng(0)
    first, across, vertex = rng.normal(size=(3, 1, 3))
    assert _highest_on_parabola(recorder, first, across, vertex).shape == (1, 3)
    assert len(recorder.points) == 20
    # Second differences of a parabola are constant, and it has 22 points with the centres.
    points = np.vstack([first, recorder.points, first + across])
    second = np.diff(points, 2, axis=0)
    assert second == pytest.approx(np.repeat(second[:1], len(second), 0))
    fit = np.polyfit(np.arange(22) / 21, points, 2)
    assert fit[0] / 4 + fit[1] / 2 + fit[2] == pytest.approx(first[0] + vertex[0])


def test_quadratic_strings_leave_a_centre_of_a_shared_mode_alone():
    # So the agglomeration of centres differs from that of modes, to which Theorem 5.5 refers.
    parameters = round_mixture([0.4, 0.1, 0.5], [[0.0, 0.0], [0.6, 0.0], [6.0, 0.0]])
    tree = quadratic(*parameters)
    assert morse_linkage(*parameters).n_modes == 2
    assert np.isfinite(tree.linkage[:, 2]).tolist() == [True, False]
    assert tree.cut(2)[tree.owners].tolist() == [0, 1, 0]
    assert len(set(tree.cut())) == 2 and len(set(tree.cut(1))) == 1
    # With two clusters, the cluster of its own is that of the lone centre.
    assert morse_linkage(*parameters).cut(2)[morse_linkage(*parameters).owners].tolist() == [
        1,
        1,
        0,
    ]


@pytest.mark.parametrize("linkage", [quadratic, morse_linkage])
def test_linkages_ignore_units_and_order(linkage, rng):
    weights, means, covariances = random_mixture(7, 3, 2)
    tree, units = linkage(weights, means, covariances), np.array([1024.0, 1.0, 2.0**-12])
    scaled = linkage(weights, means * units, covariances * np.outer(units, units))
    assert scaled.linkage[:, 2] == pytest.approx(tree.linkage[:, 2], abs=1e-8)
    assert scaled.saddles == pytest.approx(tree.saddles * units, abs=1e-6, nan_ok=True)
    order = rng.permutation(7)
    other = linkage(weights[order], means[order], covariances[order])
    assert other.linkage[:, 2] == pytest.approx(tree.linkage[:, 2], abs=1e-8)
    assert np.array_equal(other.cut(3)[other.owners], tree.cut(3)[tree.owners][order])


def test_published_linkage_of_one_component_is_a_leaf():
    assert quadratic([1.0], [[0.0, 1.0]], [np.eye(2)]).cut().tolist() == [0]


@pytest.fixture(scope="module")
def moons():
    return make_moons(1500, noise=0.06, random_state=0)


@pytest.mark.laws
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_morse_merging_finds_moons_along_quadratic_strings(moons):
    X, y = moons
    base = GaussianMixture(10, random_state=0)
    morse = PublishedMerging(base, 2).fit(X)
    assert morse.modes_.shape == (10, 2) and sorted(morse.component_labels_)[0] == 0
    # Rows belong to the centres that they climb to.
    assert adjusted_rand_score(y, morse.labels_) > 0.9
    assert adjusted_rand_score(y, morse.predict_proba(X).argmax(axis=1)) > 0.95
    private = DPMoG(8, 10.0, bounds=(-2, 3), random_state=0)
    merged = PublishedMerging(private, 2).fit(X)
    assert len(merged.modes_) == len(merged.estimator_.weights_) and merged.n_clusters_ == 2
    assert not hasattr(merged, "labels_")


@pytest.mark.laws
def test_dendrogram_display_draws_trees_with_missing_saddles():
    pytest.importorskip("matplotlib").use("Agg")
    X, _ = make_blobs(900, centers=3, cluster_std=0.5, random_state=0)
    base = GaussianMixture(6, random_state=0)
    morse = PublishedMerging(base, 3).fit(X)
    assert np.isinf(morse.linkage_[:, 2]).any()
    top = DendrogramDisplay.from_estimator(morse).ax_.get_ylim()[1]
    assert np.isfinite(top)
    assert np.isfinite(MixtureDensityDisplay.from_estimator(morse).saddles).all()


def test_quadratic_strings_of_shared_modes_spoil_clear_clusters():
    # The vertices of the theory are modes, but those of Algorithm 3 are centres.
    X, y = make_blobs(900, centers=3, cluster_std=0.5, random_state=0)
    base = FrozenEstimator(GaussianMixture(6, random_state=0).fit(X))
    modes, centres = (merging(base, 3).fit(X) for merging in (MorseMerging, PublishedMerging))
    assert len(modes.modes_) == 3 and len(centres.modes_) == 6
    assert adjusted_rand_score(y, modes.predict(X)) > 0.99
    assert adjusted_rand_score(y, centres.predict(X)) < 0.5
