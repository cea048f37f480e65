"""Estimated numbers of clusters."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from sklearn_dptda.cluster import DPMoGMorse, morse_linkage


def of_unlike_density(seed):
    """Five normal clusters, three of them far from two, of unlike size and weight."""
    rng = np.random.default_rng(seed)
    y = np.sort(rng.choice(5, 5000, p=[0.4, 0.25, 0.15, 0.12, 0.08]))
    centres = np.array([[0, 0], [7, 1], [3, 6], [30, 25], [36, 25]])
    return centres[y] + np.array([1, 1.2, 0.6, 0.5, 1.0])[y][:, None] * rng.normal(
        size=(5000, 2)
    ), y


def private(seed, **options):
    return DPMoGMorse(epsilon=2.0, delta=1e-5, random_state=seed, **options)


@pytest.mark.nightly
def test_dp_mog_morse_takes_far_groups_for_several_clusters():
    # Ten seeded fits. The largest gap of the merge tree is between the two far groups, and gives
    # 0.55.
    scores = []
    for seed in range(10):
        X, y = of_unlike_density(seed)
        found = private(seed, bounds=(-10, 45)).fit(X)
        scores.append(adjusted_rand_score(y, found.predict(X)))
    assert np.median(scores) > 0.95 and min(scores) > 0.7


@pytest.mark.nightly
@pytest.mark.parametrize("rows", ["normal", "uniform"])
def test_dp_mog_morse_takes_a_single_cluster_for_one(rows):
    # Five seeded fits. Eight components have ripples of up to a nat where the density is flat, and
    # larger ones in two of the five fits.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 2)) if rows == "normal" else rng.uniform(-1, 1, (4000, 2))
    numbers = [private(seed, bounds=(-4, 4)).fit(X).n_clusters_ for seed in range(5)]
    assert np.median(numbers) == 1 and (rows == "uniform" or max(numbers) == 1)


def test_merge_tree_cut_by_prominence_merges_light_dense_modes():
    # A narrow peak of three rows in a hundred is the higher one.
    tree = morse_linkage([0.03, 0.97], [[6.0], [0.0]], [[[1e-4]], [[4.0]]])
    assert tree.cut_by_prominence(1.25).tolist() == [0, 1]
    assert tree.cut_by_prominence(1.25, min_weight=0.1).tolist() == [0, 0]
