"""Starts: where steps start, how many starts there are, and the estimated number of clusters."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score

from sklearn_dptda.cluster import DPMoG, DPMoGMorse, morse_linkage
from sklearn_dptda.cluster._noisy_steps import (
    clear_clusters,
    mixture_steps,
    moved_centres,
    steps_and_floor,
    worthwhile_steps,
)
from sklearn_dptda.cluster._standardise import Standardised, standardise
from sklearn_dptda.privacy import NoiseSource
from sklearn_dptda.rows._moments import GaussianBudget, Moments
from sklearn_dptda.rows._rows import Rows
from sklearn_dptda.utils._privacy_checks._border_checks import recorded
from tests.cluster._tables import seeded, share_of


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_moved_centres_spend_their_share_from_cells_and_from_points(norm, rng):
    X = np.clip(rng.normal(scale=0.3, size=(5000, 2)), -1, 1)
    # With many rows, the first half of the steps moves six cells for each centre, and with few
    # rows, two. A single step moves the centres themselves.
    for n_rows, n_steps, sizes in (
        (5000, 6, [18, 18, 18, 3, 3, 3]),
        (15, 5, [6, 6, 3, 3, 3]),
        (5000, 1, [3]),
        (5000, None, [18] * 4 + [3] * 4),
        (15, 4, [6, 6, 3, 3]),
    ):
        data = standardise(Rows.of_array(X[:n_rows]), seeded(norm, 0, total=5.0))
        n_steps = n_steps or worthwhile_steps(data, 3, 0.3)
        compute = partial(moved_centres, data, 3, n_steps, share=0.3, rng=rng)
        draws = recorded(compute).crossings
        assert [len(draw.statistic[0]) for draw in draws] == sizes
        assert share_of(draws, data.budget) == pytest.approx(0.3, rel=1e-9)


@pytest.mark.parametrize(("norm", "noise"), [("l1", 2**0.5 / 0.15), ("l2", 0.15**-0.5)])
def test_few_rows_of_the_plane_are_counted_on_a_lattice_first(norm, noise, rng):
    # Half of a share of .3 of a budget of one is for the lattice, whose cells have as many rows as
    # their noise has standard deviations, within the rounding of its two sides.
    X = np.clip(rng.normal(scale=0.3, size=(400, 2)), -1, 1)
    data = standardise(Rows.of_array(X), seeded(norm, 0, total=1.0))
    data = replace(data, budget=replace(data.budget, total=1.0))
    n_steps = worthwhile_steps(data, 12, 0.3)
    assert n_steps == 3
    compute = partial(moved_centres, data, 12, n_steps, share=0.3, rng=rng)
    lattice, *steps = recorded(compute).crossings
    assert len(lattice.statistic[0]) == pytest.approx(max(data.n_rows / noise, 24), rel=0.35)
    assert [len(draw.statistic[0]) for draw in steps] == [12, 12]
    assert share_of([lattice, *steps], data.budget) == pytest.approx(0.3, rel=1e-9)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("n_steps", [1, 2, 5])
def test_mixture_steps_spend_their_share_and_half_of_it_at_the_end(norm, n_steps):
    rng = np.random.default_rng(0)
    X = np.clip(rng.normal(scale=0.3, size=(500, 2)), -1, 1)
    data = standardise(Rows.of_array(X), seeded(norm, 0, total=5.0))
    compute = partial(mixture_steps, data, np.eye(2), n_steps, share=0.3)
    draws = recorded(compute).crossings
    assert len(draws) == n_steps
    assert share_of(draws, data.budget) == pytest.approx(0.3, rel=1e-9)
    last = 0.3 if n_steps == 1 else 0.15
    assert share_of(draws[-1:], data.budget) == pytest.approx(last, rel=1e-9)


def test_number_of_steps_follows_the_noise_of_a_count():
    # One of eight steps with half of a budget of mu = 1 has mu = 1/4. Counts get 0.3 of the squared
    # weights, so their noise has the standard deviation 4 / sqrt(0.3), and six steps begin at five
    # of these for each of ten clusters.
    noise = 4 / math.sqrt(0.3)
    for rows, n_steps in ((4.9, 4), (5.1, 6), (9.9, 6), (10.1, 8), (1e9, 8)):
        data = standardised(10 * rows * noise, 5, 1.0)
        assert worthwhile_steps(data, 10, 0.5) == n_steps
    assert worthwhile_steps(standardised(100, 5, math.inf), 10, 0.5) == 8


@pytest.mark.nightly
def test_dp_mog_morse_finds_numbers_beyond_eight():
    centres = [(4.0 * i, 4.0 * j) for i in range(5) for j in range(3)]
    X, y = make_blobs(5000, centers=centres, cluster_std=0.5, random_state=0)
    private = DPMoGMorse(epsilon=2.0, delta=1e-5, random_state=0).fit(X)
    assert private.n_clusters_ == 15 and private.n_clusters_stability_ > 0.7
    assert adjusted_rand_score(y, private.predict(X)) > 0.97
    assert len(DPMoG(None, 2.0, random_state=0).fit(X).weights_) == 15
    # A given number has no stability.
    assert not hasattr(DPMoGMorse(15, random_state=0).fit(X), "n_clusters_stability_")


@pytest.mark.laws
def test_dp_mog_morse_public_seed_follows_the_state():
    X, _ = make_moons(2000, noise=0.1, random_state=0)
    first, again, other = (
        DPMoGMorse(2, epsilon=math.inf, bounds=(-3, 3), random_state=seed).fit(X)
        for seed in (0, 0, 1)
    )
    assert np.array_equal(first.means_, again.means_)
    assert not np.array_equal(first.means_, other.means_)


@pytest.mark.parametrize("k", [9, 15, 40])
def test_clear_clusters_counts_groups_of_cells(k):
    rng = np.random.default_rng(0)
    centres = 10.0 * np.stack(np.divmod(np.arange(k), 7), axis=1)
    cells = np.repeat(centres, 4, axis=0) + 0.5 * rng.standard_normal((4 * k, 2))
    assert clear_clusters(cells) == k
    # There are few rows and few cells, and none that are far apart.
    assert clear_clusters(cells[: 4 * 5]) is None and clear_clusters(cells[:8]) is None
    assert clear_clusters(rng.standard_normal((200, 2))) is None


def standardised(n_rows, d, total):
    budget = GaussianBudget(total, "add-remove", NoiseSource(0))
    rows = Rows.of_array(np.random.default_rng(0).standard_normal((100, d)))
    ones = np.ones(d)
    return Standardised(rows, 0 * ones, ones, np.eye(d), n_rows, budget, ones / d)


def test_steps_and_floor_grow_with_rows_and_budget():
    steps = [steps_and_floor(standardised(n, 5, 1.0), 4, 0.5) for n in (10, 1e4, 1e9)]
    numbers, floors = zip(*steps, strict=True)
    assert numbers[0] == 2 < numbers[1] < numbers[2] == 20
    assert floors[0] == 0.02 and floors[2] == 0.005


def test_moved_centres_ignore_signs_of_axes():
    data = standardised(100.0, 4, math.inf)
    turned = replace(data, axes=data.axes * [1, -1, 1, -1])
    rng = np.random.default_rng(0)
    found = [moved_centres(d, 6, 1, share=1.0, rng=rng, merged=True).means for d in (data, turned)]
    first, second = (centres[np.lexsort(centres.T)] for centres in found)
    assert first == pytest.approx(second)


def test_shrunk_covariances_are_equal_if_all_is_noise():
    # Ten cells of one distribution: with noise of the known size, no cell differs. Without noise,
    # all cells differ.
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((10, 3, 3))
    noise = (noise + np.swapaxes(noise, 1, 2)) / 2
    second = 1000 * 0.1 * np.eye(3) + 5 * noise
    moments = Moments(np.full(10, 1000.0), np.zeros((10, 3)), second, 1.0, 1.0, 6 * 25.0, 3 * 25.0)
    covariances, differing = moments.shrunk_covariances(np.zeros((10, 3)), 0.01)
    assert differing < 0.3 and np.ptp(covariances, axis=0).max() < 0.3 * np.ptp(second / 1000)
    exact = replace(moments, var_second_moment=0.0, var_trace=0.0)
    assert exact.shrunk_covariances(np.zeros((10, 3)), 0.01)[1] == pytest.approx(1.0)


def test_moments_redrawn_have_the_noise_once_more():
    # 40,000 counts: standard deviations are known to 2 % with a false-alarm rate of 1e-6.
    shape = 40_000
    moments = Moments(np.zeros(shape), np.zeros((shape, 2)), np.ones((shape, 2, 2)), 3.0, 2.0, 4.0)
    again = moments.redrawn(np.random.default_rng(0))
    assert again.counts.std() == pytest.approx(3.0, rel=0.02)
    assert again.sums.std() == pytest.approx(2.0, rel=0.02)
    moved = again.second_moments - 1.0
    assert (moved**2).sum(axis=(1, 2)).mean() == pytest.approx(4.0, rel=0.022)
    assert np.array_equal(moved, np.swapaxes(moved, 1, 2))


def test_merge_tree_cut_by_prominence_merges_shallow_saddles():
    tree = morse_linkage([0.5, 0.3, 0.19, 0.01], [[0.0], [3.0], [12.0], [30.0]], np.ones((4, 1, 1)))
    assert tree.cut_by_prominence(0.0).tolist() == [0, 1, 2, 3]
    # The saddle between the first two is shallow. The last one is far away and light.
    assert tree.cut_by_prominence(1.0).tolist() == [0, 0, 1, 2]
    assert tree.cut_by_prominence(1.0, min_weight=0.05).tolist() == [0, 0, 1, 1]
    assert tree.cut_by_prominence(1e6).tolist() == [0, 0, 0, 0]


def test_merge_tree_cut_by_prominence_merges_light_dense_modes():
    # A narrow peak of three rows in a hundred is the higher one.
    tree = morse_linkage([0.03, 0.97], [[6.0], [0.0]], [[[1e-4]], [[4.0]]])
    assert tree.cut_by_prominence(1.25).tolist() == [0, 1]
    assert tree.cut_by_prominence(1.25, min_weight=0.1).tolist() == [0, 0]
