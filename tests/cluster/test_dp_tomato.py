"""Private ToMATo: its noise, heights and peaks against their definitions, and utility."""

import math
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score

from sklearn_dptda.cluster import DPToMATo, _dp_tomato, _grid_peaks
from sklearn_dptda.cluster._dp_tomato import _histogram, _variance
from sklearn_dptda.cluster._grid_peaks import (
    SCALES,
    adaptive_heights,
    clearest_peaks,
    count_clusters,
    expected_counts,
    grid_neighbours,
    joined_parts,
    smoothed_heights,
    stabilise,
)
from sklearn_dptda.privacy import NoiseSource
from sklearn_dptda.utils._privacy_checks._border_checks import recorded
from tests._refusals import refuses_unpaid


def box(X):
    margin = 0.05 * (X.max(axis=0) - X.min(axis=0))
    return X.min(axis=0) - margin, X.max(axis=0) + margin


@pytest.fixture
def peaks_at_once(monkeypatch):
    """Hardly any of what follows from the noisy counts, which takes most of the time of a fit."""
    monkeypatch.setattr(_dp_tomato, "count_clusters", lambda *_: 1)
    monkeypatch.setattr(_grid_peaks, "SCALES", SCALES[:1])


@pytest.mark.usefixtures("peaks_at_once")
@pytest.mark.parametrize(("adjacency", "scale"), [("add-remove", 1.0), ("replace-one", 2.0)])
def test_dp_tomato_noise_is_that_of_the_sensitivity(adjacency, scale):
    # 16,384 cells: the variance must be within five standard errors, a false-alarm rate below 1e-6.
    private = DPToMATo(1, 0.5, (0, 1), n_bins=128, adjacency=adjacency, random_state=0)
    counts = private.fit(np.full((1, 2), 0.3)).counts_
    assert counts.dtype == np.int64
    # Bounds take a tenth of the budget, and the share of rows outside them 1.5 % of the rest.
    declared = _variance(scale / (0.5 * 0.9 * 0.985))
    assert counts.var() == pytest.approx(declared, rel=5 * math.sqrt(5 / counts.size))
    exact = DPToMATo(1, math.inf, (0, 1), n_bins=16, adjacency=adjacency)
    assert exact.fit(np.full((3, 2), 0.3)).counts_.sum() == 3


def test_dp_tomato_histogram_counts_a_row_once(rng):
    # Every neighbour changes one cell by one, or two cells for a replaced row, clipped rows
    # included.
    X = rng.uniform(-1.0, 1.0, size=(50, 3))
    X[:8] = [[a, b, c] for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)]
    for bins, starts, rates in (
        ((5, 4, 6), -np.ones(3), np.array([5, 4, 6]) / 2),
        # Cells of integers, which begin and end elsewhere than the cube.
        ((3, 2, 4), np.array([-1.2, -0.8, -1.0]), np.array([1.25, 1.4, 2.2])),
    ):
        count = partial(_histogram, starts=starts, rates=rates, bins=bins)
        whole = count(X)
        assert whole.shape == (math.prod(bins),) and whole.sum() == 50
        for i in range(50):
            moved = whole - count(np.delete(X, i, axis=0))
            assert np.abs(moved).sum() == 1 and moved.min() >= 0


@pytest.mark.parametrize(
    "bounds, n_bins, edges",
    [
        ((0, 8), None, np.arange(10) - 0.5),
        ((-0.5, 8.5), None, np.arange(10) - 0.5),
        # 50 integers in at most 24 cells: three in each, and the last one has one less.
        ((0, 49), 24, 3 * np.arange(18) - 0.5),
        # 91 integers in ten cells of ten would leave nine out at one end.
        ((0, 90), 10, 10 * np.arange(11) - 4.5),
        # Rows are clipped to 0.2 or 4.8, and count with the nearest integer.
        ((0.2, 4.8), None, np.arange(7) - 0.5),
        # Fewer than five integers: cells of the usual kind, in which each may be a cluster.
        ((0, 3), 4, np.linspace(0, 3, 5)),
        ((0.2, 0.4), 4, np.linspace(0.2, 0.4, 5)),
    ],
)
def test_cells_of_integers_contain_equally_many(bounds, n_bins, edges):
    X = np.random.default_rng(0).integers(0, 50, (200, 2))
    private = DPToMATo(None, math.inf, bounds, n_bins=n_bins).fit(X)
    # Without noise, the bounds that are found are the given ones.
    for found in private.edges_:
        assert found == pytest.approx(edges)
    assert private.counts_.sum() == 200
    assert private.units_ == pytest.approx(np.diff(edges)[:2])
    floats = DPToMATo(None, math.inf, (0, 8), n_bins=4).fit(X.astype(float))
    assert floats.edges_[0] == pytest.approx(np.linspace(0, 8, 5))


@pytest.mark.parametrize("n_bins", [18, 24, 48, 96])
@pytest.mark.parametrize("kind", [int, float])
def test_rows_on_edges_are_counted_where_predict_finds_them(kind, n_bins):
    X = np.random.default_rng(0).integers(0, 9, (3000, 2)).astype(kind)
    private = DPToMATo(None, math.inf, (0, 8), n_bins=n_bins).fit(X)
    counts, _ = np.histogramdd(X.astype(float), private.edges_)
    np.testing.assert_array_equal(private.counts_, counts)


def test_clusters_of_neighbouring_flags_and_codes_are_kept():
    rng = np.random.default_rng(0)
    flags, codes = rng.integers(0, 2, (4000, 2)), rng.integers(0, 3, (4000, 1))
    for X, y, k in ((flags, 2 * flags[:, 0] + flags[:, 1], 4), (codes, codes[:, 0], 3)):
        private = DPToMATo(k, bounds=(0, X.max()), random_state=0)
        assert adjusted_rand_score(y, private.fit_predict(X)) == 1


def test_integers_do_not_make_more_cells_than_wanted():
    X = np.random.default_rng(0).integers(1, 6, (50, 12))
    private = DPToMATo(None, 1.0, (1, 5), random_state=0)
    size = private.fit(X).counts_.size
    assert size <= private.fit(X.astype(float)).counts_.size


def test_chunks_of_unlike_integers_have_cells_of_integers():
    X = np.random.default_rng(0).integers(0, 9, (400, 2))
    private = DPToMATo(None, math.inf, (0, 8), random_state=0)
    both = private.fit_chunks([X[:200].astype(np.int32), X[200:]]).counts_
    np.testing.assert_array_equal(both, private.fit(X).counts_)


@pytest.mark.parametrize("n_clusters", [3, None])
def test_few_integers_have_no_peaks_of_their_own(n_clusters):
    # Answers from 0 to 8. In cells of another width, each of them is a peak of its own.
    scores = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        y = rng.choice(3, 4000)
        centres = np.array([[1.5, 1.5], [6.5, 3], [3, 6.5]])
        X = np.clip(np.round(centres[y] + 0.7 * rng.standard_normal((4000, 2))), 0, 8)
        private = DPToMATo(n_clusters, bounds=(0, 8), random_state=seed)
        scores.append(adjusted_rand_score(y, private.fit_predict(X.astype(int))))
    assert min(scores) > 0.95


def test_smoothed_heights_have_unit_variance():
    # Flat counts with noise have standard normal scores at each scale, except at the border. The
    # tolerance is five standard errors, a false-alarm rate below 1e-6.
    noise, rng = NoiseSource(0), np.random.default_rng(0)
    noisy = rng.poisson(20, size=(300, 300)) + noise.discrete_laplace(2.0, (300, 300))
    for scale in (0.5, 1.0, 2.0):
        heights, sizes = smoothed_heights(noisy, scale, _variance(2.0))
        scores = (heights * np.sqrt(sizes))[20:-20, 20:-20]
        error = math.sqrt(sizes[150, 150] / (2 * scores.size))
        assert scores.std() == pytest.approx(1.0, abs=5 * error)


def test_stabilise_and_expected_counts_are_inverse():
    counts = np.linspace(-30.0, 300.0, 1000)
    heights = stabilise(counts, _variance(5.0))
    assert (np.diff(heights) > 0).all()
    assert expected_counts(heights, _variance(5.0)) == pytest.approx(counts)


def test_adaptive_heights_fill_what_is_flat_and_stop_at_edges(rng):
    # A step from 3 to 30 counts is smoothed away from the step, and remains as steep.
    expected = np.where(np.arange(60) < 30, 3.0, 30.0)[:, None] * np.ones(60)
    noisy = rng.poisson(expected) + NoiseSource(0).discrete_laplace(1.0, expected.shape)
    variance = _variance(1.0)
    heights, sizes = adaptive_heights(noisy, 1, variance)
    counts = expected_counts(heights, variance)
    assert np.median(sizes) > 40
    assert np.median(np.abs(counts / expected - 1)) < 0.1
    assert np.median(counts[29]) < 4 and np.median(counts[30]) > 27


def heights_by_definition(noisy, width, variance):
    """Adaptive heights, cell by cell."""
    windows = np.lib.stride_tricks.sliding_window_view(noisy, (width,) * noisy.ndim)
    blocks = windows.mean(axis=tuple(range(noisy.ndim, 2 * noisy.ndim)))
    cells = np.stack(np.unravel_index(np.arange(blocks.size), blocks.shape), axis=1)
    own = blocks.ravel()
    means, sizes = own, np.full(own.shape, float(width**noisy.ndim))
    for radius in _grid_peaks._radii(noisy.ndim):
        heights = stabilise(means, variance)
        near = 1 - ((cells[:, None] - cells) ** 2).sum(axis=2) / radius**2
        ratio = 0.5 * sizes[:, None] * (heights[:, None] - heights) ** 2
        weights = np.maximum(near, 0) * np.clip(2 - 2 * ratio / _grid_peaks._UNLIKE, 0, 1)
        means = weights @ own / weights.sum(axis=1)
        cells_behind = weights.sum(axis=1) ** 2 / (weights**2).sum(axis=1)
        spread = width**2 + cells_behind ** (2 / noisy.ndim) - 1
        sizes = spread ** (noisy.ndim / 2)
    return [x.reshape(blocks.shape) for x in (stabilise(means, variance), sizes)]


@pytest.mark.parametrize(
    ("shape", "width"),
    [((1,), 1), ((40,), 2), ((3, 12), 2), ((13, 12), 1), ((4, 5, 6), 2), ((3, 4, 3, 4), 1)],
)
def test_adaptive_heights_equal_their_definition(shape, width, rng, monkeypatch):
    # High counts, so that zeros beyond an edge would be far from all cells, and low ones.
    monkeypatch.setattr(_grid_peaks, "_BATCH", 300)
    for expected in (0.5, 200.0):
        noisy = rng.poisson(expected, shape) + rng.integers(-2, 3, shape)
        found = adaptive_heights(noisy, width, 2.0)
        for a, b in zip(found, heights_by_definition(noisy, width, 2.0), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_clearest_peaks_have_the_scale_that_separates_them_best(rng, monkeypatch):
    best = set()
    for width in (1.0, 2.5):
        cells = rng.normal([[[8, 8], [8, 22], [22, 14]]] * 400, width).round().astype(int)
        cells = np.clip(cells.reshape(-1, 2), 0, 29)
        noisy = np.zeros((30, 30), dtype=int)
        np.add.at(noisy, tuple(cells.T), 1)
        noisy += NoiseSource(0).discrete_laplace(2.0, noisy.shape)
        found = [clearest_peaks(noisy, _variance(2.0), n) for n in (1, 3)]
        for n, peaks in zip((1, 3), found, strict=True):
            alone = []
            for scale in SCALES:
                with monkeypatch.context() as patch:
                    patch.setattr(_grid_peaks, "SCALES", (scale,))
                    alone.append(clearest_peaks(noisy, _variance(2.0), n).weakest(n))
            assert peaks.weakest(n) == max(alone)
            assert peaks.scale == SCALES[int(np.argmax(alone))]
            best.add(peaks.scale)
    assert len(best) > 2


@pytest.mark.parametrize("shape", [(5,), (3, 4), (3, 3, 3), (2, 3, 2, 2, 2)])
def test_grid_neighbours_are_cells_that_touch(shape):
    neighbours = grid_neighbours(shape)
    cells = np.stack(np.unravel_index(np.arange(math.prod(shape)), shape), axis=1)
    for cell, row in zip(cells, neighbours, strict=True):
        apart = np.abs(cells - cell)
        near = (apart.max(axis=1) if len(shape) <= 4 else apart.sum(axis=1)) <= 1
        assert set(row) | {np.ravel_multi_index(tuple(cell), shape)} == set(np.flatnonzero(near))


@pytest.mark.laws
def test_dp_tomato_predicts_labels_of_cells():
    X, _ = make_moons(5000, noise=0.07, random_state=0)
    private = DPToMATo(2, 2.0, ([-1.5, -1], [2.5, 1.5]), random_state=0).fit(X)
    assert private.cell_labels_.shape == (77, 48) == private.counts_.shape
    centres = [(edges[:-1] + edges[1:]) / 2 for edges in private.edges_]
    nodes = np.stack(np.meshgrid(*centres, indexing="ij"), axis=-1).reshape(-1, 2)
    assert np.array_equal(private.predict(nodes), private.cell_labels_.ravel())
    assert private.predict(private.cluster_centers_).tolist() == [0, 1]
    far = np.array([[100.0, -100.0]])
    assert private.predict(far) == private.cell_labels_[-1, 0]


def under_noise(rng, n_noise=800):
    """Three discs of unequal density and a bar beside them, under uniform noise."""
    angles, radii = rng.uniform(0, 2 * np.pi, 6000), np.sqrt(rng.uniform(size=6000))
    which = np.repeat([0, 1, 2], [1000, 2000, 3000])
    disc = radii[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])
    centers, sizes = np.array([[2.5, 2.5], [7.5, 7.5], [2.5, 7.5]]), np.array([1.8, 1.6, 1.2])
    discs = centers[which] + sizes[which, None] * disc
    bar = rng.uniform([6.0, 0.5], [6.8, 5.5], size=(1200, 2))
    noise = rng.uniform(0, 10, size=(n_noise, 2))
    y = np.r_[which, np.full(1200, 3), np.full(n_noise, -1)]
    return np.vstack([discs, bar, noise]), y


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(3))
def test_dp_tomato_finds_clusters_under_noise(seed):
    X, y = under_noise(np.random.default_rng(seed))
    private = DPToMATo(epsilon=1.0, bounds=(0, 10), random_state=seed).fit(X)
    assert private.n_clusters_ == 4
    assert adjusted_rand_score(y[y >= 0], private.predict(X[y >= 0])) >= 0.98
    assert (private.cell_labels_ >= 0).all()
    found = private.set_params(noise="auto").fit(X).predict(X)
    assert private.n_clusters_ == 4 == found.max() + 1
    # A third of the background noise lies on clusters.
    assert (found[y < 0] == -1).mean() >= 0.6
    assert (found[y >= 0] == -1).mean() <= 0.1
    assert private.predict(private.cluster_centers_).tolist() == [0, 1, 2, 3]


@pytest.mark.laws
def test_dp_tomato_labels_no_noise_without_background(rng):
    X = rng.uniform(size=(20_000, 2))
    found = DPToMATo(epsilon=1.0, bounds=(0, 1), noise="auto", random_state=0).fit_predict(X)
    assert (found == 0).all()


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(3))
def test_dp_tomato_labels_no_fringes_as_background(seed):
    X, _ = make_moons(2000, noise=0.06, random_state=seed)
    private = DPToMATo(epsilon=0.5, bounds=box(X), noise="auto", random_state=seed)
    assert (private.fit_predict(X) == -1).mean() <= 0.02
    # Rows everywhere form one cluster, even if each cell contains few of them.
    rng = np.random.default_rng(seed)
    X = np.vstack([X, rng.uniform(*box(X), size=(500, 2))])
    found = private.set_params(epsilon=2.0).fit_predict(X)
    assert (found[2000:] == -1).mean() >= 0.5
    assert (found[:2000] == -1).mean() <= 0.1


@pytest.mark.laws
def test_dp_tomato_depends_on_the_counts_alone(rng):
    X, _ = make_moons(3000, noise=0.07, random_state=0)
    options = {"epsilon": 1.0, "bounds": ([-1.5, -1], [2.5, 1.5]), "noise": "auto"}
    private = DPToMATo(**options, random_state=0).fit(X)
    # Other rows of the same cells, in another order.
    low, high = (np.array([edges[i] for edges in private.edges_]) for i in (0, -1))
    n_bins = np.array(private.counts_.shape)
    side = (high - low) / n_bins
    cells = np.minimum((np.clip(X, low, high) - low) // side, n_bins - 1)
    moved = low + side * (cells + rng.uniform(0.1, 0.9, size=X.shape))
    same = DPToMATo(**options, random_state=0).fit(rng.permutation(moved))
    for name in ("counts_", "diagram_", "cell_labels_", "cluster_centers_", "scale_"):
        assert np.array_equal(getattr(private, name), getattr(same, name))
    variance = _variance(1.0)
    n_clusters = count_clusters(private.counts_, variance, private.threshold)
    peaks = clearest_peaks(private.counts_, variance, n_clusters)
    assert (private.n_clusters_, private.scale_) == (n_clusters, peaks.scale)
    kept = private.cell_labels_ >= 0
    assert np.array_equal(private.cell_labels_[kept], peaks.cut(n_clusters)[kept])


@pytest.mark.laws
def test_dp_tomato_diagram_is_in_the_order_of_clusters():
    X, _ = make_blobs(5000, centers=5, cluster_std=0.8, random_state=3)
    private = DPToMATo(bounds=box(X), random_state=0).fit(X)
    lengths = private.diagram_[:, 0] - private.diagram_[:, 1]
    assert (np.diff(lengths) <= 0).all() and lengths[-1] >= 0
    assert lengths[private.n_clusters_ - 1] > 2 * lengths[private.n_clusters_]


@pytest.mark.parametrize(
    ("options", "X", "message"),
    [
        ({"n_bins": 5000}, np.zeros((5, 2)), "Lower n_bins"),
        ({"n_bins": 4, "n_clusters": 17}, np.zeros((5, 2)), "Raise n_bins"),
        ({}, np.zeros((5, 13)), "at most 12 columns.*PrivatePCA"),
    ],
)
def test_dp_tomato_refuses_grids_with_a_remedy_unpaid(options, X, message):
    private = DPToMATo(bounds=(-1, 1)).set_params(**options)
    refuses_unpaid(message, private.fit, X)


def test_joined_parts_have_the_widest_border():
    counts, labels = np.zeros((2, 10, 12), dtype=int)
    counts[5:9, 1:11] = 40
    labels[:, 6:] = 1
    # The third part touches both others only across empty cells.
    labels[:3] = 2
    counts[0, 2:8] = 60
    joined = joined_parts(counts, labels, 2)
    assert joined[6, 3] == joined[6, 8] != joined[0, 4]
    assert np.array_equal(joined_parts(counts, labels, 3), labels)
    assert (joined_parts(counts, labels, 1) == 0).all()
    # There is no row to assign and no weight.
    assert joined_parts(np.zeros_like(counts), labels, 2).max() == 1


def strokes_across_noise(seed, n=8000):
    """Lines, arcs, rings and hooks of unlike density in uniform noise, crossed by a wave of it."""
    rng = np.random.default_rng(100 + seed)
    n_strokes = int(rng.integers(4, 9))
    weights = rng.dirichlet(np.full(n_strokes, 3.0))
    columns = math.ceil(math.sqrt(2 * n_strokes))
    places = rng.permutation(columns * math.ceil(n_strokes / columns))[:n_strokes]
    share, wave = rng.uniform(0.08, 0.15), rng.uniform(0.03, 0.06)
    parts, labels = [], []
    for k, (place, weight) in enumerate(zip(places, weights, strict=True)):
        m = int(n * weight * (1 - share - wave))
        t, kind, width = rng.uniform(0, 1, m), rng.integers(4), rng.uniform(0.15, 0.35)
        flat, late = np.zeros(m), t >= 0.5
        stroke = np.column_stack(
            [
                ((t - 0.5) * 3.4, flat),
                (1.4 * np.cos(np.pi * t), 1.4 * np.sin(np.pi * t)),
                (1.1 * np.cos(2 * np.pi * t), 1.1 * np.sin(2 * np.pi * t)),
                (np.where(late, -1.3, 5.2 * t - 1.3), np.where(late, 5.2 * t - 3.9, 0.0)),
            ][kind]
        )
        angle = rng.uniform(0, 2 * np.pi)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        centre = 4.0 * np.array([place % columns, place // columns])
        parts.append(centre + stroke @ turn.T + rng.uniform(-width, width, (m, 2)))
        labels.append(np.full(m, k))
    low, high = np.vstack(parts).min(axis=0) - 1, np.vstack(parts).max(axis=0) + 1
    parts.append(rng.uniform(low, high, (int(n * share), 2)))
    across = rng.uniform(low[0], high[0], int(n * wave))
    up = (low[1] + high[1]) / 2 + 0.3 * (high[1] - low[1]) * np.sin(across * rng.uniform(0.5, 1))
    parts.append(np.column_stack([across, up + rng.normal(0, 0.08, len(across))]))
    labels.append(np.full(len(parts[-2]) + len(parts[-1]), -1))
    return np.vstack(parts), np.concatenate(labels)


@pytest.mark.nightly
def test_dp_tomato_of_a_given_number_is_no_worse():
    given, unknown = [], []
    for seed in (0, 1, 3, 5, 9):
        X, y = strokes_across_noise(seed)
        ends, kept = (X.min(axis=0), X.max(axis=0)), y >= 0
        for n_clusters, scores in ((y.max() + 1, given), (None, unknown)):
            model = DPToMATo(n_clusters, epsilon=5.0, bounds=ends, random_state=seed).fit(X)
            assert len(np.unique(model.cell_labels_)) == model.n_clusters_
            scores.append(adjusted_rand_score(y[kept], model.predict(X)[kept]))
    # Ranking peaks by prominence, all of which are real, gives 0.88 to 0.94 in three of these
    # cases.
    assert min(given) > 0.98
    assert (np.array(given) >= np.array(unknown) - 0.02).all()


@pytest.mark.laws
@pytest.mark.parametrize(
    ("wide", "n", "n_clusters", "n_bins"),
    [
        (1, 8000, None, 32),
        (1, 8000, 2, 48),
        (1, 2500, 2, 32),
        (8, 2500, None, 48),
        (None, 2500, None, 48),
        (8, 400, None, 24),
        (1, 400, 2, 24),
    ],
)
def test_dp_tomato_cells_follow_from_rows_and_found_bounds(wide, n, n_clusters, n_bins, rng):
    # Estimated bounds are wider than the rows. The rows must not have fewer cells because of that,
    # as far as the noise allows it.
    X = np.concatenate([rng.normal(0, 0.3, (n // 2, 2)), rng.uniform(-1, 1, (n // 2, 2))])
    bounds = None if wide is None else (-wide, wide)
    private = DPToMATo(n_clusters, 1.0, bounds, random_state=0).fit(X.clip(-1, 1))
    assert private.counts_.size == pytest.approx(n_bins**2, rel=0.05)
    given = DPToMATo(n_clusters, 1.0, bounds, n_bins=20, random_state=0).fit(X.clip(-1, 1))
    assert given.counts_.shape == (20, 20)


@pytest.mark.laws
@pytest.mark.parametrize(("longer", "shape"), [(1.0, (32, 32)), (2.0, (64, 32)), (8.1, (32, 32))])
def test_dp_tomato_cells_are_cubes_if_sides_may_have_one_unit(longer, shape):
    private = DPToMATo(epsilon=1.0, bounds=([0, 0], [longer, 1]), random_state=0)
    # No narrower bounds are estimated if rows lie at both ends.
    X = np.tile([[0.0, 0.0], [longer, 1.0]], (2000, 1))
    assert private.fit(X).counts_.shape == shape
    assert [len(edges) - 1 for edges in private.edges_] == list(shape)
    assert private.predict(X[:2]).tolist() == [
        private.cell_labels_[0, 0],
        private.cell_labels_[-1, -1],
    ]
    # Lengths of the caller decide, if there are any.
    by_lengths = clone(private).set_params(units=[4.0 * longer, 1.0]).fit(X)
    assert by_lengths.counts_.shape == (23, 91)
    assert by_lengths.units_[0] / by_lengths.units_[1] == pytest.approx(4 * longer, rel=0.03)
    by_bounds = clone(private).set_params(units="bounds").fit(X)
    assert by_bounds.counts_.shape == (32, 32)


def test_dp_tomato_has_cells_in_columns_that_are_nearly_constant(rng):
    x = np.concatenate([rng.normal(-0.5, 0.1, 2000), rng.normal(0.5, 0.1, 2000)])
    for other in (np.full(4000, 0.3), 1e-3 * x, rng.random(4000) < 0.001):
        private = DPToMATo(bounds=(-1, 1), random_state=0).fit(np.c_[x, other])
        assert private.n_clusters_ == 2 and min(private.counts_.shape) >= 12
    wide = DPToMATo(units=[1e-9, 1], bounds=(-1, 1), random_state=0).fit(np.c_[x, x])
    assert wide.counts_.size <= 2 * 48**2
    four_to_one = DPToMATo(n_bins=8, units=[0.25, 1], bounds=(-1, 1), random_state=0)
    assert four_to_one.fit(np.c_[x, x]).counts_.shape == (16, 4)


@pytest.mark.usefixtures("peaks_at_once")
def test_dp_tomato_pays_for_the_row_count_that_chooses_cells(rng):
    # It costs a fiftieth of the budget of the histogram if the cells are given: not more, and not
    # less.
    X, losses = rng.normal(0, 0.3, (4000, 2)), []
    for n_bins in (48, None):
        private = DPToMATo(epsilon=1.0, bounds=(-8, 8), n_bins=n_bins, random_state=0)
        losses.append([draw.loss for draw in recorded(lambda p=private: p.fit(X)).crossings])
    *before, whole = losses[0]
    assert losses[1] == pytest.approx([*before, 0.02 * whole, 0.98 * whole], rel=1e-9)
