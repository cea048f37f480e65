import itertools
import subprocess
import sys
import warnings
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.contour import QuadContourSet
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.mixture import GaussianMixture

from sklearn_dptda.cluster import DPMoG, DPMoGMorse, MorseMerging
from sklearn_dptda.plotting import DendrogramDisplay, MixtureDensityDisplay
from sklearn_dptda.plotting._style import cluster_style
from tests._refusals import refuses

pytestmark = pytest.mark.conformance

BOX = ([-1.5, -1.0], [2.5, 1.5])
# Saddles are at 1 between modes 0 and 1, and at 3 between those and mode 2.
CHAIN = [[0, 1, 1.0, 2], [2, 3, 3.0, 3]]


@pytest.fixture(scope="module")
def moons():
    return make_moons(2000, noise=0.05, random_state=0)[0]


@pytest.fixture(scope="module")
def merged(moons):
    return MorseMerging(GaussianMixture(10, random_state=0), n_clusters=2).fit(moons)


@pytest.fixture(scope="module")
def private(moons):
    return DPMoGMorse(2, 8, epsilon=4.0, bounds=BOX, random_state=0).fit(moons)


@pytest.fixture(scope="module")
def one_mode(moons):
    return MorseMerging(GaussianMixture(1, random_state=0)).fit(moons)


@pytest.fixture(scope="module")
def four_columns():
    X, _ = make_blobs(600, n_features=4, centers=4, random_state=1)
    return MorseMerging(GaussianMixture(5, random_state=0)).fit(X)


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def lines_of(ax, **wanted):
    """Lines with data whose getters return what is wanted."""
    lines = [line for line in ax.lines if len(line.get_xdata())]
    return [
        line
        for line in lines
        if all(getattr(line, f"get_{name}")() == value for name, value in wanted.items())
    ]


def cut_line(ax):
    (line,) = lines_of(ax, label="_cut")
    return line


def segments(ax):
    """Ends of the vertical branches, as (place, low, high)."""
    lines = [line.get_xydata() for line in lines_of(ax) if line.get_marker() == "None"]
    return sorted((x, y, top) for (x, y), (end, top) in lines if x == end)


def boundaries(ax):
    """Contour sets that are lines, not areas."""
    return [c for c in ax.collections if isinstance(c, QuadContourSet) and not c.filled]


# Merge trees.


def test_dendrogram_display_branches_join_modes_and_passes():
    ax = DendrogramDisplay(CHAIN, mode_heights=[5.0, 5.25, 5.5], labels=[0, 0, 1]).plot().ax_
    ends = {(low, high) for _, low, high in segments(ax)}
    assert {(0.0, 1.0), (0.25, 1.0), (0.5, 3.0), (1.0, 3.0)} < ends
    bars = [line.get_ydata() for line in lines_of(ax) if line.get_label() != "_cut"]
    assert {tuple(y) for y in bars if len(y) == 2 and y[0] == y[1]} >= {(1.0, 1.0), (3.0, 3.0)}
    assert ax.get_ylabel().replace("\n", " ") == (
        "height of the saddle above the highest mode (nats)"
    )
    # Without heights of modes, branches start at zero.
    ax = DendrogramDisplay(CHAIN).plot().ax_
    assert sorted(low for _, low, _ in segments(ax)) == [0.0, 0.0, 0.0, 1.0, 3.0]
    assert ax.get_legend() is None and not lines_of(ax, label="_cut")


# For labels of the three modes: the text of the cut, and between which heights it is.
CUTS = {
    (0, 0, 1): ("2 clusters", 2.0, 2.0),
    (0, 1, 2): ("3 clusters", 0.5, 0.5),
    (0, 0, 0): ("1 cluster", np.nextafter(3.0, 4), 4.0),
    # No height gives these.
    (0, 1, 0): None,
    (0, 1, 1): None,
}


@pytest.mark.parametrize("labels", CUTS)
def test_dendrogram_display_cuts_halfway_between_passes_or_above_all(labels):
    display = DendrogramDisplay(CHAIN, labels=labels).plot()
    ax = display.ax_
    assert legend_of(ax) == [f"cluster {k}" for k in sorted(set(labels))]
    if CUTS[labels] is None:
        assert display.cut is None and all(line.get_label() != "_cut" for line in ax.lines)
        return
    text, least, most = CUTS[labels]
    (height,) = set(cut_line(ax).get_ydata())
    assert least <= height <= most
    assert height < ax.get_ylim()[1] and cut_line(ax).get_linestyle() == "--"
    assert [(t.get_text(), t.xy[1]) for t in ax.texts] == [(text, height)]


def test_dendrogram_display_branches_differ_by_cluster():
    ax = DendrogramDisplay(CHAIN, labels=[0, 0, 1]).plot().ax_
    first, second = ax.get_legend().legend_handles
    assert first.get_color() != second.get_color()
    assert first.get_marker() != second.get_marker()
    # The dashes of the legend. Solid lines have none.
    assert first.is_dashed() != second.is_dashed()
    for k, n_lines in enumerate([4, 1]):
        mine = [
            line
            for line in lines_of(ax, color=cluster_style(k)["color"])
            if line.get_marker() == "None"
        ]
        # Cluster 0: two modes, their bar and the line that leads up from it. Cluster 1: its branch.
        assert len(mine) == n_lines
        assert {line.is_dashed() for line in mine} == {k == 1}


def test_cluster_style_of_neighbours_shares_nothing():
    looks = [cluster_style(k) for k in range(40)]
    for one, other in itertools.pairwise(looks):
        assert all(one[key] != other[key] for key in one)
    assert len({tuple(map(str, look.values())) for look in looks}) == 40


@pytest.mark.parametrize("name", ["merged", "private"])
def test_dendrogram_display_shows_the_tree_of_an_estimator(name, request):
    estimator = request.getfixturevalue(name)
    display = DendrogramDisplay.from_estimator(estimator)
    ax = display.ax_
    n, saddles = len(estimator.modes_), estimator.linkage_[:, 2]
    assert display.figure_ is ax.figure
    # One branch per node of the tree.
    assert len(segments(ax)) == 2 * n - 1
    lows = sorted(low for _, low, _ in segments(ax))
    heights = estimator._mixture().height(estimator.modes_)
    np.testing.assert_allclose(lows, np.sort(np.r_[heights - heights.min(), saddles]))
    assert all(low < high for _, low, high in segments(ax))
    assert saddles[-2] < cut_line(ax).get_ydata()[0] < saddles[-1]
    assert sorted(int(t.get_text()) for t in ax.get_xticklabels()) == list(range(n))
    assert legend_of(ax) == ["cluster 0", "cluster 1"]
    # Leaves have the number of their mode. Branches are sorted, so the lowest comes last.
    low_at = {x: low for x, low, _ in reversed(segments(ax))}
    for place, text in zip(ax.get_xticks(), ax.get_xticklabels(), strict=True):
        mode = int(text.get_text())
        assert low_at[place] == pytest.approx(heights[mode] - heights.min())


def test_dendrogram_display_cuts_at_the_threshold_of_the_estimator(merged, moons):
    threshold = float(merged.linkage_[3, 2]) + 1e-3
    estimator = MorseMerging(merged.estimator, merge_threshold=threshold).fit(moons)
    ax = DendrogramDisplay.from_estimator(estimator).ax_
    assert set(cut_line(ax).get_ydata()) == {threshold}
    assert ax.texts[0].get_text() == f"{estimator.n_clusters_} clusters"


def test_dendrogram_display_leaves_out_a_threshold_that_gives_other_labels(merged, moons):
    # Light clusters were merged across saddles above the threshold.
    estimator = MorseMerging(merged.estimator, merge_threshold=0.3, min_cluster_weight=0.2)
    ax = DendrogramDisplay.from_estimator(estimator.fit(moons)).ax_
    saddles = estimator.linkage_[:, 2]
    assert saddles[0] > 0.3 and estimator.n_clusters_ == 2
    assert set(cut_line(ax).get_ydata()) == {saddles[-2:].mean()}


def test_dendrogram_display_shows_one_mode(one_mode):
    ax = DendrogramDisplay.from_estimator(one_mode).ax_
    ((place, low, high),) = segments(ax)
    assert (place, low) == (0.0, 0.0) and high > 0
    assert ax.get_xlim()[0] < 0 < ax.get_xlim()[1]
    assert 0 < cut_line(ax).get_ydata()[0] < high
    assert ax.texts[0].get_text() == "1 cluster"
    assert DendrogramDisplay(np.empty((0, 4)), labels=[0]).cut > 0


def test_dendrogram_display_legend_names_few_of_many_clusters():
    n = 15
    chain = [[0 if i == 0 else n + i - 1, i + 1, i + 1.0, i + 2] for i in range(n - 1)]
    names = legend_of(DendrogramDisplay(chain, labels=range(n)).plot().ax_)
    assert len(names) == 10 and names[-1] == "cluster 9 (of 15)"


# Densities.


def test_mixture_density_display_shows_the_density_of_an_estimator(merged):
    display = MixtureDensityDisplay.from_estimator(merged, grid_resolution=40)
    ax = display.ax_
    mesh = np.stack(np.meshgrid(*display.axes, indexing="ij"), axis=-1).reshape(-1, 2)
    expected = merged.estimator_.score_samples(mesh).reshape(40, 40)
    np.testing.assert_allclose(display.log_density, expected)
    np.testing.assert_array_equal(display.regions, merged.predict(mesh).reshape(40, 40))
    assert legend_of(ax) == [
        "boundary",
        "component (1 sd)",
        "merge tree",
        "saddle",
        "cluster 0",
        "cluster 1",
    ]
    assert ax.get_xlabel() == "feature 0"
    (saddles,) = lines_of(ax, label="saddle")
    np.testing.assert_array_equal(saddles.get_xydata(), merged.saddles_)
    for k in range(2):
        (marks,) = lines_of(ax, label=f"cluster {k}")
        np.testing.assert_array_equal(marks.get_xydata(), merged.modes_[merged.mode_labels_ == k])
    first, second = (lines_of(ax, label=f"cluster {k}")[0] for k in range(2))
    assert first.get_color() != second.get_color() and first.get_marker() != second.get_marker()


def test_mixture_density_display_limits_are_bounds_or_deviations(private, merged, moons):
    def limits(estimator, *bounds):
        show = MixtureDensityDisplay.from_estimator
        ax = show(estimator, *bounds, grid_resolution=20).ax_
        return ax.get_xlim(), ax.get_ylim()

    nested = MorseMerging(DPMoG(8, epsilon=4.0, bounds=BOX, random_state=0)).fit(moons)
    assert limits(private) == limits(nested) == ((-1.5, 2.5), (-1.0, 1.5))
    assert limits(private, (-2, 3)) == ((-2.0, 3.0), (-2.0, 3.0))
    mixture = merged.estimator_
    reach = 3 * np.sqrt(mixture.covariances_[:, [0, 1], [0, 1]])
    low, high = (mixture.means_ - reach).min(axis=0), (mixture.means_ + reach).max(axis=0)
    np.testing.assert_allclose(limits(merged), np.column_stack([low, high]))


def test_mixture_density_display_ellipses_are_one_deviation(private):
    ax = MixtureDensityDisplay.from_estimator(private, grid_resolution=20).ax_
    rings = [line for line in lines_of(ax) if line.get_path_effects()]
    assert len(rings) == len(private.weights_)
    for i, ring in enumerate(rings):
        offsets = ring.get_xydata() - private.means_[i]
        precision = np.linalg.inv(private.covariances_[i])
        np.testing.assert_allclose(np.einsum("ni,ij,nj->n", offsets, precision, offsets), 1.0)
        look = cluster_style(private.component_labels_[i])
        assert ring.get_color() == look["color"]
        assert ring.is_dashed() == (look["linestyle"] != "-")


@pytest.mark.parametrize("name", ["merged", "private", "four_columns"])
def test_mixture_density_display_paths_join_passes_and_modes(name, request):
    estimator = request.getfixturevalue(name)
    display = MixtureDensityDisplay.from_estimator(estimator, grid_resolution=5)
    modes, saddles = estimator.modes_[:, :2], estimator.saddles_[:, :2]
    below = [{mode} for mode in range(len(modes))]
    for i, (left, right) in enumerate(estimator.linkage_[:, :2].astype(int)):
        below.append(below[left] | below[right])
        for path, side in zip(display.paths[2 * i : 2 * i + 2], (left, right), strict=True):
            np.testing.assert_array_equal(path[0], saddles[i])
            assert (modes[sorted(below[side])] == path[-1]).all(axis=1).any()
    assert len(display.paths) == 2 * len(saddles)
    for path in display.paths if name == "merged" else ():
        # They climb, and three points would form a straight line.
        assert len(path) > 3 and (np.diff(estimator._mixture().height(path)) < 1e-6).all()


def test_mixture_density_display_is_dark_at_modes_and_has_the_boundary_of_predict(merged):
    ax = MixtureDensityDisplay.from_estimator(merged).ax_
    (image,) = (c for c in ax.collections if isinstance(c, QuadContourSet) and c.filled)
    high = image.get_paths()[-3:]
    for mode in merged.modes_:
        assert any(path.contains_point(mode) for path in high)
    assert not any(path.contains_point([0.5, 0.25]) for path in high)
    # The prediction takes both values within two cells of the boundary.
    (boundary,) = boundaries(ax)
    line = np.concatenate([p.vertices for p in boundary.get_paths()])
    cell = np.array([np.ptp(ax.get_xlim()), np.ptp(ax.get_ylim())]) / 199
    turn = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    around = 2 * cell * np.column_stack([np.cos(turn), np.sin(turn)])
    found = merged.predict((line[:, None] + around).reshape(-1, 2)).reshape(len(line), -1)
    assert (found.min(axis=1) < found.max(axis=1)).mean() > 0.98


def test_mixture_density_display_leaves_out_what_is_not_wanted(merged):
    ax = MixtureDensityDisplay.from_estimator(
        merged,
        grid_resolution=20,
        show_components=False,
        show_tree=False,
        show_regions=False,
        colorbar=False,
    ).ax_
    assert legend_of(ax) == ["saddle", "cluster 0", "cluster 1"]
    assert not boundaries(ax) and len(ax.figure.axes) == 1 and len(lines_of(ax)) == 3


def test_mixture_density_display_colours_reach_the_lowest_pass():
    tree = MorseMerging(GaussianMixture(2, random_state=0))
    X, _ = make_blobs(400, centers=[[0, 0], [0, 12]], random_state=0)
    display = MixtureDensityDisplay.from_estimator(tree.fit(X))
    (image,) = (c for c in display.ax_.collections if isinstance(c, QuadContourSet) and c.filled)
    assert image.levels[0] < -tree._mixture().height(tree.saddles_)[0]
    assert image.levels[-1] >= display.log_density.max()


def test_mixture_density_display_has_a_line_around_each_of_several_clusters(one_mode):
    display = MixtureDensityDisplay.from_estimator(one_mode, grid_resolution=20)
    assert legend_of(display.ax_) == ["component (1 sd)", "cluster 0"]
    assert not boundaries(display.ax_) and not display.paths
    frame = pytest.importorskip("pandas").DataFrame(
        make_blobs(600, centers=[[0, 0], [8, 0], [0, 8]], random_state=0)[0],
        columns=["age", "income"],
    )
    estimator = MorseMerging(GaussianMixture(3, random_state=0), n_clusters=3).fit(frame)
    # Names of columns cause no warning.
    with warnings.catch_warnings(action="error"):
        ax = MixtureDensityDisplay.from_estimator(estimator, grid_resolution=40).ax_
    assert len(boundaries(ax)) == 3 and (ax.get_xlabel(), ax.get_ylabel()) == ("age", "income")


def test_mixture_density_display_shows_mixtures_without_modes(moons):
    for mixture in (DPMoG(4, bounds=BOX, random_state=0), GaussianMixture(4, random_state=0)):
        ax = MixtureDensityDisplay.from_estimator(mixture.fit(moons), grid_resolution=20).ax_
        assert legend_of(ax) == ["component (1 sd)"]
        assert len(lines_of(ax)) == len(mixture.weights_)


def test_mixture_density_display_shows_the_exact_marginal(four_columns):
    display = MixtureDensityDisplay.from_estimator(
        four_columns, features=(3, 1), grid_resolution=40
    )
    mixture = four_columns.estimator_
    marginal = GaussianMixture(5)
    marginal.weights_, marginal.means_ = mixture.weights_, mixture.means_[:, [3, 1]]
    covariances = mixture.covariances_[:, [3, 1]][:, :, [3, 1]]
    marginal.precisions_cholesky_ = np.linalg.cholesky(np.linalg.inv(covariances))
    mesh = np.stack(np.meshgrid(*display.axes, indexing="ij"), axis=-1).reshape(-1, 2)
    np.testing.assert_allclose(display.log_density.ravel(), marginal.score_samples(mesh))
    np.testing.assert_array_equal(display.modes, four_columns.modes_[:, [3, 1]])
    assert display.regions is None and not boundaries(display.ax_)
    assert display.ax_.get_xlabel() == "feature 3" and display.ax_.get_ylabel() == "feature 1"


def test_mixture_density_display_of_swapped_columns_is_transposed(private):
    plain = MixtureDensityDisplay.from_estimator(private, grid_resolution=20)
    swapped = MixtureDensityDisplay.from_estimator(private, features=(1, 0), grid_resolution=20)
    np.testing.assert_allclose(swapped.log_density, plain.log_density.T)
    np.testing.assert_array_equal(swapped.regions, plain.regions.T)
    assert swapped.ax_.get_xlim() == (-1.0, 1.5)


def test_displays_of_mixtures_refuse_and_use_axes_of_a_fit(merged, moons):
    _, (left, right) = plt.subplots(1, 2)
    assert MixtureDensityDisplay.from_estimator(merged, grid_resolution=20, ax=left).ax_ is left
    assert DendrogramDisplay.from_estimator(merged, ax=right).ax_ is right
    show = partial(MixtureDensityDisplay.from_estimator, merged)
    for features in ((0, 2), (-1, 0), (0, 0), (0,), (0.0, 1.0), "ab"):
        refuses(r"features=.*columns 0 to 1", show, features=features)
    refuses("grid_resolution", show, grid_resolution=1)
    refuses("bounds", show, bounds=(1, 0))
    refuses("mode_heights", DendrogramDisplay, CHAIN, mode_heights=[0.0, 1.0])
    refuses("labels", DendrogramDisplay, CHAIN, labels=[0, 1])
    for unfitted in (DPMoG(), DPMoGMorse(), MorseMerging(), GaussianMixture()):
        refuses(None, MixtureDensityDisplay.from_estimator, unfitted, error=NotFittedError)
    for unfitted in (DPMoG(), MorseMerging()):
        refuses(None, DendrogramDisplay.from_estimator, unfitted, error=NotFittedError)
    mixture = DPMoG(3, bounds=BOX, random_state=0).fit(moons)
    refuses("DPMoG has no linkage_", DendrogramDisplay.from_estimator, mixture)


def test_plotting_import_leaves_matplotlib_alone():
    code = "import sys, sklearn_dptda.plotting; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
