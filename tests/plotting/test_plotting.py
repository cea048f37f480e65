import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from sklearn_dptda import DTMFiltration, PrivatePersistence
from sklearn_dptda.cluster import DPToMATo, ToMATo
from sklearn_dptda.model_selection import plan_release
from sklearn_dptda.plotting import (
    FiltrationDisplay,
    PersistenceDiagramDisplay,
    plot_audit,
    plot_release_plan,
)
from sklearn_dptda.plotting._filtration_display import longest_cycle
from sklearn_dptda.privacy import NoiseSource, audit_epsilon
from tests._refusals import refuses
from tests.plotting.test_displays_of_mixtures import legend_of

pytestmark = pytest.mark.conformance


@pytest.mark.parametrize("d", [1, 2, 3])
def test_filtration_display_shows_each_number_of_coordinates(d, rng):
    X = [rng.uniform(size=(50, d))]
    estimator = DTMFiltration(0.2, bounds=(0, 1), resolution=7)
    display = FiltrationDisplay.from_estimator(estimator, X)
    assert display.figure_ is display.ax_.figure
    if d == 3:
        item = estimator.set_params(resolution=3).fit_transform([rng.random((9, 4))])[0]
        refuses("three dimensions", FiltrationDisplay(item).plot)


@pytest.mark.parametrize("dimensions", [(0, 1), 1])
def test_persistence_diagram_display_names_its_dimensions(filtration, dimensions):
    estimator = PrivatePersistence(homology_dimensions=dimensions, random_state=0)
    display = PersistenceDiagramDisplay.from_estimator(estimator, [filtration], upper=4.0)
    labels = legend_of(display.ax_)
    # The number of probable points follows, of which the essential component is one.
    names = ["H1"] if dimensions == 1 else ["H0", "H1"]
    assert [label.split(",")[0] for label in labels] == names
    assert all(label.endswith("probable") for label in labels)


def test_persistence_diagram_display_takes_references_and_infinity():
    display = PersistenceDiagramDisplay([[[0, np.inf]]], reference=[[[0.1, 1.0]]]).plot()
    assert display.ax_.get_ylim()[1] > 1
    # Below the diagonal there is no point, and a marker there must not look like one.
    legend = display.ax_.get_legend()
    assert legend.get_frame_on() and legend.get_frame().get_alpha() == 1
    PersistenceDiagramDisplay([np.empty((0, 2))]).plot()


def test_persistence_diagram_display_of_an_expected_diagram_has_areas():
    points = [[0.1, 0.8, 1.5], [0.2, 0.5, 0.25], [0.3, np.inf, 1.0]]
    display = PersistenceDiagramDisplay([points], homology_dimensions=[1], upper=1.0).plot()
    circles = display.ax_.collections[1]
    assert_array_equal(circles.get_offsets()[:, 1], [0.8, 0.5, 1.0])
    assert_allclose(circles.get_sizes() / circles.get_sizes()[2], [1.5, 0.25, 1.0])
    assert legend_of(display.ax_) == ["H1, 2.8 points per person"]


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(600, centers=[[0, 0], [4, 0], [0, 4]], cluster_std=0.4, random_state=0)[0]


def drawn(display):
    """Number of faint and of prominent points."""
    faint, prominent = display.ax_.collections[-2:]
    return len(faint.get_offsets()), len(prominent.get_offsets())


def test_persistence_diagram_display_greys_what_may_be_noise():
    loops = [[0.1, 0.9], [0.3, 0.5], [0.2, 0.3]]
    display = PersistenceDiagramDisplay(
        [loops], homology_dimensions=[1], error_bound=0.2, noise_floor=[0.15], upper=1.0
    ).plot()
    grey, points = (c.get_offsets() for c in display.ax_.collections[-2:])
    assert len(grey) == 2 and points.tolist() == [[0.1, 0.9]]
    assert legend_of(display.ax_) == ["may be noise", "H1, 1 beyond noise"]
    for floor, word in ((0.7, "not empty"), (0.9, "may be empty")):
        display = PersistenceDiagramDisplay(
            [loops], homology_dimensions=[1], error_bound=0.5, noise_floor=[floor]
        ).plot()
        assert legend_of(display.ax_)[1] == f"H1, {word}"
    # Without an upper bound of the noise, everything may be noise. Without noise, there is no
    # statement.
    PersistenceDiagramDisplay([loops], error_bound=np.inf, noise_floor=[np.inf]).plot()
    exact = PersistenceDiagramDisplay([loops], error_bound=0.0, noise_floor=[0.0]).plot()
    assert legend_of(exact.ax_) == ["H0"]


def test_persistence_diagram_display_of_private_peaks_is_in_deviations(blobs):
    private = DPToMATo(bounds=(-2, 6), random_state=0).fit(blobs)
    counts = private.counts_.copy()
    display = PersistenceDiagramDisplay.from_estimator(private)
    assert drawn(display) == (len(private.diagram_) - 3, 3)
    assert "standard deviations" in display.ax_.get_xlabel()
    assert np.array_equal(private.counts_, counts)


@pytest.mark.parametrize("n_clusters", [1, 2, 3])
def test_persistence_diagram_display_shows_prominent_peaks(blobs, n_clusters):
    clusters = ToMATo(n_clusters, radius=2.5, density="kde", bandwidth=0.3).fit(blobs)
    display = PersistenceDiagramDisplay.from_estimator(make_pipeline(clusters))
    assert drawn(display) == (len(clusters.diagram_) - n_clusters, n_clusters)
    # Essential classes lie at the lower end, inside the picture.
    lows = np.concatenate([c.get_offsets()[:, 1] for c in display.ax_.collections[-2:]])
    assert np.isfinite(lows).all() and lows.min() >= display.ax_.get_ylim()[0]


def test_persistence_diagram_display_refuses_unfitted_clusters():
    refuses(None, PersistenceDiagramDisplay.from_estimator, ToMATo(), error=NotFittedError)


def test_plot_audit_shows_counts_and_event():
    def laplace(data, random_state=None):
        return sum(data) + NoiseSource(random_state).discrete_laplace(1.0, 1)

    options = {"n_runs": 400, "random_state": 0}
    result = audit_epsilon(laplace, [0], [1], **options)
    ax = plot_audit(result, plt.figure().add_subplot())
    assert len(ax.patches) == 2 and ax.get_xlabel() == result.event
    assert ax.get_title() == f"epsilon ≥ {result.epsilon:.3g}"
    counted = plot_audit(audit_epsilon(laplace, [0], [1], event=np.any, **options))
    assert len(counted.patches) == 2


@pytest.mark.parametrize("n_features", [1, 2, 6])
def test_filtration_display_of_landmarks_shows_the_longest_loop(n_features):
    turns = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    ring = np.zeros((12, n_features))
    ring[:, : min(n_features, 2)] = np.column_stack([np.cos(turns), np.sin(turns)])[:, :n_features]
    cloud = np.repeat(ring, 30, axis=0)
    estimator = DTMFiltration(0.05, landmarks=ring[::-1] if n_features > 1 else ring[:7])
    display = FiltrationDisplay.from_estimator(estimator, [cloud])
    cycle = longest_cycle(display.filtration)
    if n_features > 1:
        # Once around the ring, in short steps in one direction.
        steps = (np.diff([*cycle, cycle[0]]) + 6) % 12 - 6
        assert abs(steps.sum()) == 12 == np.abs(steps).sum() and (np.abs(steps) <= 3).all()
    drawn = sum(len(scatter.get_offsets()) for scatter in display.ax_.collections)
    assert drawn >= len(cloud) and len(display.ax_.lines) == bool(cycle)


def test_points_are_as_opaque_as_probable_with_probabilities_that_do_not_overlap():
    diagrams = [[[0.0, 2.0], [0.1, 0.4]], [[0.2, 0.9], [0.6, 0.8], [0.61, 0.8], [0.9, 0.92]], []]
    stated = [[1.0, 0.7], [0.99, 0.3, 0.2, 0.0], []]
    display = PersistenceDiagramDisplay(diagrams, probability=stated, error_bound=0.2).plot()
    texts = [text.get_text() for text in display.ax_.texts]
    assert texts == [">.99", ".70", ".99", ".30"]
    assert legend_of(display.ax_) == ["H0, 1 probable", "H1, 1 probable", "H2, 0 probable"]
    opacities = [c.get_alpha() for c in display.ax_.collections if np.ndim(c.get_alpha()) == 1]
    assert_allclose(opacities[1], [0.99, 0.3, 0.2, 0.12])
    figure = display.to_plotly()
    assert {trace.name for trace in figure.data if trace.name} == {"H0", "H1", "H2"}


def test_display_without_an_answer_shows_the_band_of_noise():
    stated = [np.array([1.0, np.nan])]
    display = PersistenceDiagramDisplay([[[0, 2], [0.1, 0.4]]], probability=stated, error_bound=0.2)
    assert legend_of(display.plot().ax_) == ["may be noise", "H0, 1 beyond noise"]


# Interactive diagrams.


DIAGRAMS = [np.array([[0.0, np.inf], [0.1, 0.5]]), np.array([[0.2, 0.9]])]


def test_to_plotly_shows_points_reference_and_band():
    pytest.importorskip("plotly")
    display = PersistenceDiagramDisplay(DIAGRAMS, reference=DIAGRAMS, upper=1.0, error_bound=0.05)
    figure = display.to_plotly()
    traces = {trace.name: trace for trace in figure.data if trace.name}
    assert set(traces) == {"may be noise", "H0", "H0 exact", "H1", "H1 exact"}
    # Essential classes are drawn at the upper end.
    assert sorted(traces["H0"].y) == [0.5, 1.0]
    assert list(traces["H1"].customdata) == pytest.approx([0.7])
    plain = PersistenceDiagramDisplay([DIAGRAMS[1]], homology_dimensions=[3]).to_plotly()
    assert [trace.name for trace in plain.data if trace.name] == ["H3"]
    assert plain.data[-1].marker.symbol == "diamond"


def test_to_plotly_without_plotly_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    refuses("interactive", PersistenceDiagramDisplay(DIAGRAMS).to_plotly, error=ImportError)


# Plans of releases.


@pytest.mark.conformance
def test_plot_release_plan_shows_the_curve_of_the_plan():
    private = PrivatePersistence(homology_dimensions=1)
    public = {"loop_radius": 1.0, "spread": 0.1, "m": 0.3, "max_distance": 1.0}
    plan = plan_release(4000, (-1.5, 1.5), private=private, **public)
    epsilons = plan.epsilon * np.array([0.01, 0.5, 1.0, 3.0])
    ax = plt.figure().subplots()
    assert plot_release_plan(plan, ax, epsilons=epsilons) is ax
    thresholds, errors, wanted, point = (line.get_ydata() for line in ax.lines)
    curve = plan.curve(epsilons)
    # If no statement is possible, nothing shorter than the range is flagged.
    assert thresholds[0] == plan.upper < curve.thresholds[0] and np.isnan(errors[0])
    np.testing.assert_array_equal(thresholds[1:], curve.thresholds[1:])
    np.testing.assert_array_equal(errors[2:], curve.error_bounds[2:])
    assert wanted[0] == point[0] == plan.visible_persistence
    assert thresholds[1] > wanted[0] >= thresholds[2]
    assert [text.get_text() for text in ax.texts] == [f"epsilon = {plan.epsilon:g}"]
