"""Mistakes of new users: each message names the object and says what to do.

Nothing is paid for a mistake, and no message quotes a record.
"""

import re
import warnings

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_dptda import CubicalPersistence, DiagramFeatures, DTMFiltration, PrivatePersistence
from sklearn_dptda._cli._main import main
from sklearn_dptda.cluster import DPLloyd, DPMoG, DPMoGMorse, DPToMATo, MorseMerging
from sklearn_dptda.datasets import load_table, make_two_circles
from sklearn_dptda.graph import EdgeFlip
from sklearn_dptda.metric_privacy import KNormMechanism, MetricExponentialMechanism
from sklearn_dptda.persistence import bottleneck_distance
from sklearn_dptda.plotting import PersistenceDiagramDisplay
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyBudgetExceeded
from sklearn_dptda.published import DPCube
from sklearn_dptda.synthetic import PrivateMeasure
from sklearn_dptda.utils._people import remark_on_ids
from tests._refusals import refuses

BOX = (-3, 3.5)
CANARY = 2.7182818


@pytest.fixture(scope="module")
def cloud():
    X = make_two_circles(200, random_state=0)
    X[7] = CANARY
    return X


def filtration(cloud):
    return DTMFiltration(0.2, bounds=BOX, resolution=9).fit_transform([cloud])


def ledger():
    return PrivacyAccountant(10.0, 1e-3)


# For each mistake: the call with the accountant, what the message must say, and rare errors.
MISTAKES = {
    "mass in points, not as a share": (
        lambda X, a: DTMFiltration(20, bounds=BOX).fit_transform([X]),
        r"'m' parameter of DTMFiltration must be a float in the range \(0\.0, 1\.0\]",
    ),
    "bounds in the wrong order": (
        lambda X, a: DPLloyd(2, bounds=(3, -3), accountant=a).fit(X),
        r"bounds are crossed: they are \(low, high\).*got \(3, -3\)",
    ),
    "bounds by column instead of by end": (
        lambda X, a: DPLloyd(2, bounds=[(-3, 3), (0, 1), (0, 1)], accountant=a).fit(X),
        r"bounds must be a pair \(low, high\).*one number per coordinate \(2 here\)",
    ),
    "one cloud where a list is expected": (
        lambda X, a: DTMFiltration(0.2, bounds=BOX).fit_transform(X),
        r"a list of arrays.* is expected\. Pass \[X\]",
    ),
    "points where filtrations are expected": (
        lambda X, a: PrivatePersistence(accountant=a).fit_transform([X]),
        "Pass filtrations from DTMFiltration, or set sensitivity and upper",
    ),
    "steps in the wrong order": (
        lambda X, a: make_pipeline(
            PrivatePersistence(accountant=a), DTMFiltration(0.2, bounds=BOX)
        ).fit_transform([X]),
        "Pass filtrations from DTMFiltration",
    ),
    "a missing value": (
        lambda X, a: DPLloyd(2, bounds=BOX, accountant=a).fit(np.where(X > 2.9, np.nan, X)),
        "X contains NaN or infinity. Pass missing=True where the estimator has it, or fill missing",
    ),
    "release before fit": (
        lambda X, a: DPMoGMorse(2, accountant=a).predict(X),
        "DPMoGMorse instance is not fitted yet. Call 'fit'",
    ),
    "rows where a graph is expected": (
        lambda X, a: EdgeFlip(1.0, accountant=a).fit_transform(X),
        r"X must be an adjacency matrix; got numbers of shape \(200, 2\)",
    ),
    "one pair of bounds per column": (
        lambda X, a: DPLloyd(2, bounds=[(-3, 3), (-3, 3)], accountant=a).fit(X),
        r"bounds are crossed.*pass bounds=\(all lows, all highs\)",
    ),
    "points taken for diagrams": (
        lambda X, a: DiagramFeatures(value_range=(0, 2)).fit_transform([X, X]),
        r"X\[0\] has deaths before births. X must consist of diagrams, such as those of Private",
    ),
    "no release before the features": (
        lambda X, a: make_pipeline(
            DTMFiltration(0.2, bounds=BOX, resolution=9), DiagramFeatures(value_range=(0, 2))
        ).fit_transform([X]),
        "Put PrivatePersistence before DiagramFeatures",
    ),
    "voids of a plane": (
        lambda X, a: PrivatePersistence(homology_dimensions=2, accountant=a).fit(filtration(X)),
        "homology_dimensions=2 is too high: the functions in X have no H2",
    ),
    "a table where chunks are expected": (
        lambda X, a: DPLloyd(2, bounds=BOX, accountant=a).fit_chunks(X),
        r"pass it to fit, or as the list \[X\] to fit_chunks",
    ),
    "a directed graph, unannounced": (
        lambda X, a: EdgeFlip(1.0, accountant=a).fit_transform(np.triu(np.ones((5, 5)), 1)),
        "not symmetric. Pass directed=True, or pass the elementwise maximum of the matrix and its ",
    ),
    "a data set that is not there": (
        lambda X, a: load_table("pulsar", data_home="no/such/folder"),
        "Save it as pulsar.npz .* pass the folder as data_home",
        FileNotFoundError,
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_error_message_names_the_mistake_and_a_remedy(mistake, cloud):
    do, message, *error = MISTAKES[mistake]
    accountant = ledger()
    said = refuses(message, do, cloud, accountant, error=(*error, ValueError)[0])
    assert len(accountant) == 0 and "2.718" not in said


def test_dp_mog_morse_warns_of_more_clusters_than_components(cloud):
    with pytest.warns(UserWarning, match="n_clusters=9 is larger than n_components=4"):
        DPMoGMorse(9, 4, bounds=BOX, random_state=0).fit(cloud)


def test_budget_without_delta_refuses_delta(cloud):
    with pytest.raises(PrivacyBudgetExceeded, match="no delta left: use a budget with a delta"):
        DPLloyd(2, 1.0, 1e-6, bounds=BOX, accountant=PrivacyAccountant(3.0)).fit(cloud)


def test_budget_refuses_a_second_adjacency(cloud):
    budget = ledger()
    PrivatePersistence(accountant=budget).fit_transform(filtration(cloud))
    with pytest.raises(ValueError, match="adjacency='replace-one' is the one that diagrams"):
        DPLloyd(2, bounds=BOX, accountant=budget).fit(cloud)
    DPLloyd(2, bounds=BOX, adjacency="replace-one", accountant=budget).fit(cloud)
    assert len(budget) == 2


@pytest.mark.parametrize("private", [DPMoGMorse(2, bounds=BOX), PrivateMeasure(bounds=BOX)])
def test_sample_refuses_numbers_that_count_nothing(private, cloud):
    fitted = clone(private).fit(cloud)
    for n in (0, -1, 2.5, "5"):
        refuses("n_samples", fitted.sample, n, error=(TypeError, ValueError))


def test_pipeline_html_shows_epsilon(cloud):
    chain = make_pipeline(
        DTMFiltration(0.2, bounds=BOX, resolution=9), PrivatePersistence(0.625, random_state=0)
    )
    for state in (chain, chain.fit([cloud])):
        assert re.search(r"epsilon(<[^>]*>|[\s=])*0\.625", state._repr_html_())


def test_dtm_filtration_reports_progress_through_joblib(cloud, capfd):
    # Loops use joblib, so its configuration turns progress messages on.
    with parallel_config(n_jobs=1, verbose=60):
        DTMFiltration(0.2, bounds=BOX, resolution=9).fit_transform(
            [cloud, cloud + 0.1, cloud + 0.2]
        )
    seen = capfd.readouterr()
    assert re.search(r"Done +3 (out of +3|tasks)", seen.out + seen.err)


def masked(X):
    return np.ma.masked_greater(X, 0.5)


@pytest.mark.parametrize(
    "release",
    [
        lambda X: DTMFiltration(bounds=(-2, 2)).fit_transform([X]),
        lambda X: PrivatePersistence(sensitivity=0.1, upper=1.0).fit_transform([X]),
        lambda X: DPLloyd(bounds=(-2, 2)).fit(X),
        lambda X: DPLloyd(bounds=(-2, 2)).fit_chunks([X]),
        lambda X: PrivateMeasure(bounds=(-2, 2)).fit(X),
        lambda X: KNormMechanism(bounds=(-2, 2)).fit(X),
        lambda X: EdgeFlip().fit(X[:2]),
        lambda X: bottleneck_distance(X, X),
    ],
)
def test_fit_refuses_masked_and_complex_numbers(cloud, release):
    refuses("masked entries", release, masked(cloud))
    refuses(r"(?i)complex|real numbers", release, cloud + 1j)


def test_edge_flip_does_not_quote_weights():
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph()
    graph.add_edge("Alice", "Bob", weight="met 1983-03-17")
    fitted = EdgeFlip().fit(np.ones((2, 2)) - np.eye(2))
    for refused in (EdgeFlip().fit, fitted.transform, fitted.transform_links):
        said = refuses("weights that are not numbers", refused, graph)
        assert "1983" not in said and "Alice" not in said


def test_empty_table_is_refused_and_the_guarantee_says_so(cloud):
    accountant = PrivacyAccountant(np.inf)
    for private in (DPMoG(2, bounds=(-2, 2)), DPCube(2, bounds=(-2, 2)), PrivateMeasure()):
        private.set_params(accountant=accountant)
        refuses(None, private.fit, cloud[:0])
        if hasattr(private, "fit_chunks"):
            refuses("empty", private.fit_chunks, [cloud[:0]])
        assert not accountant.spends()
        said = str(clone(private).set_params(accountant=None).fit(cloud[:1]).privacy_guarantee_)
        assert "adding or removing one row (it is public that there is at least one)" in said
        replaced = clone(private).set_params(accountant=None, adjacency="replace-one")
        assert "at least one" not in str(replaced.fit(cloud[:1]).privacy_guarantee_)


@pytest.mark.parametrize(
    "base",
    [
        DPToMATo(bounds=(-2, 2)),
        PrivateMeasure(bounds=(-2, 2)),
        make_pipeline(StandardScaler(), DPMoG(4, bounds=(-2, 2))),
    ],
)
def test_morse_merging_refuses_what_is_no_mixture_unpaid(cloud, base):
    with (
        PrivacyAccountant(np.inf) as accountant,
        pytest.raises(ValueError, match="is not a mixture"),
    ):
        MorseMerging(base).fit(cloud)
    assert not accountant.spends()


@pytest.mark.parametrize(
    "merging",
    [
        MorseMerging(DPMoG(2, bounds=(-2, 2)), n_clusters=3),
        MorseMerging(DPLloyd(2, bounds=(-2, 2), covariance_share=0.5), n_clusters=3),
        DPMoGMorse(n_clusters=3, n_components=2, bounds=(-2, 2)),
    ],
)
def test_morse_merging_warns_of_too_many_clusters_before_paying(cloud, merging):
    with PrivacyAccountant(np.inf) as accountant, warnings.catch_warnings():
        warnings.simplefilter("error")
        refuses("n_clusters=3", merging.fit, cloud, error=UserWarning)
    assert not accountant.spends()


def test_dtm_filtration_warns_of_boxes_of_unequal_sides(cloud):
    ring = np.random.default_rng(0).normal(size=(400, 2))
    ring /= np.linalg.norm(ring, axis=1, keepdims=True)
    stretch = np.array([100.0, 1.0])

    def longest(X, high):
        functions = DTMFiltration(0.1, bounds=(-high, high)).fit_transform([X])
        loops = CubicalPersistence(1).fit_transform(functions)[0]
        return np.max(loops[:, 1] - loops[:, 0], initial=0.0)

    assert longest(ring, np.full(2, 1.5)) > 0.5
    with pytest.warns(UserWarning, match="sides of very different lengths, 300 and 3"):
        assert longest(ring * stretch, 1.5 * stretch) < 0.02


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_fit_names_columns_of_text(library, cloud):
    frames = pytest.importorskip(library)
    table = frames.DataFrame({"x": cloud[:, 0], "sex": ["f", "m"] * (len(cloud) // 2)})
    said = refuses("not numeric: 'sex'", DPMoG(2, 1.0, bounds=(-3, 4)).fit, table)
    assert "'f'" not in said


def test_fit_names_columns_of_intervals(cloud):
    pandas = pytest.importorskip("pandas")
    ages = pandas.interval_range(0, len(cloud))
    table = pandas.DataFrame({"x": cloud[:, 0], "age": ages, "more": ages.astype("object")})
    for private in (PrivateMeasure(bounds=(-3, 4)), DPMoG(2, 1.0, bounds=(-3, 4))):
        refuses("'age'.* not numeric|not numeric: 'age', 'more'", private.fit, table)


def test_remark_on_ids_knows_names_of_identifiers():
    for name in ("id", "patient_id", "subjectID", "Person", "customer number"):
        assert name in remark_on_ids(["x", name])
    for name in ("grid", "acid", "humid", "person_years", "idle", "users"):
        assert remark_on_ids(["x", name]) is None, name


@pytest.mark.parametrize(
    ("name", "is_seen"), [("patient_id", True), pytest.param("grid", False, marks=pytest.mark.laws)]
)
def test_fit_warns_of_forgotten_ids(name, is_seen, cloud):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(cloud, columns=["x", "y"])
    frame[name] = np.arange(len(cloud))

    def seen(fit):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            fit()
        return any("identify people or rows" in str(each.message) for each in found)

    model = DPMoG(2, 1.0, bounds=(-3, 400), random_state=0)
    assert seen(lambda: model.fit(frame)) == is_seen
    assert seen(lambda: DTMFiltration(bounds=(-3, 400), resolution=5).fit([frame])) == is_seen
    parts = [frame[:100], frame[100:]]
    assert seen(lambda: model.fit_chunks(parts)) == is_seen
    protected = clone(model).set_params(groups=name)
    assert not seen(lambda: protected.fit(frame))
    assert not seen(lambda: protected.fit_chunks(parts))
    assert not seen(lambda: model.fit(cloud))
    if is_seen:
        refuses("and would count as a coordinate", model.fit, frame, groups=frame[name])


@pytest.mark.conformance
@pytest.mark.parametrize(("name", "is_seen"), [("patient_id", True), ("grid", False)])
def test_command_line_warns_of_forgotten_ids(name, is_seen, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = "\n".join(f"{i % 7},{i % 5},{i}" for i in range(200))
    (tmp_path / "points.csv").write_text(f"x,y,{name}\n{rows}\n")
    box = ["--bounds", "-3", "400", "--resolution", "5", "--epsilon", "1"]
    assert main(["diagram", "points.csv", "--header", *box]) == 0
    assert ("identify people or rows" in capsys.readouterr().err) == is_seen


@pytest.mark.conformance
def test_persistence_diagram_display_of_private_estimator_needs_input(cloud):
    functions = DTMFiltration(bounds=(-2, 2), resolution=9).fit_transform([cloud])
    private = PrivatePersistence().fit(functions)
    refuses("X must be given", PersistenceDiagramDisplay.from_estimator, private)


def test_dtm_filtration_does_not_confuse_tables_in_one_place():
    # Their values are short-lived arrays, one after the other in the same place.
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    tables = [
        pandas.DataFrame({"a": rng.integers(0, 10, 60), "b": rng.uniform(0, 10, 60)})
        for _ in range(4)
    ]
    functions = DTMFiltration(0.2, bounds=(0, 10), resolution=9).fit_transform(tables)
    assert len({f.values.tobytes() for f in functions}) == 4
    again = DTMFiltration(0.2, bounds=(0, 10), resolution=9).fit_transform([*tables, tables[0]])
    assert again[4] is again[0] and again[1] is not again[0]


def test_transform_releases_equal_constants_twice():
    private = PrivatePersistence(1.0, sensitivity=0.1, upper=1.0)
    assert len(private.fit_transform([(0.0, 0.5, 0.25), (0.0, 0.5, 0.25)])) == 2
    diagrams = MetricExponentialMechanism(1.0, "bottleneck", [[[0.0, 1.0]], []]).fit()
    empty = np.empty((0, 2))
    assert len(diagrams.transform([empty, empty, ()])) == 3


def test_fit_refuses_masks_in_lists_and_dates(cloud):
    rows = [np.ma.masked_array(row, mask=[False, True]) for row in cloud]
    dates = np.array([["2020-01-01", "2020-01-02"]] * 5, dtype="M8[D]")
    for release in (
        DPLloyd(bounds=(-2, 2)).fit,
        PrivateMeasure(bounds=(-2, 2)).fit,
        lambda X: DTMFiltration(bounds=(-2, 2)).fit_transform([X]),
    ):
        refuses("masked entries", release, rows)
        refuses("dates or times", release, dates)
        refuses("dates or times", release, list(dates))
        refuses(r"(?i)numeric|inhomogeneous", release, [[1.0, 2.0], [3.0]])


@pytest.mark.parametrize(
    "private",
    [
        DPMoG(2, bounds=BOX),
        DPToMATo(bounds=BOX),
        PrivateMeasure(bounds=BOX),
        KNormMechanism(bounds=BOX),
        PrivateBounds(1.0),
    ],
    ids=lambda private: type(private).__name__,
)
def test_fit_names_columns_of_dates_and_the_remedy(private):
    pandas = pytest.importorskip("pandas")
    days = pandas.date_range("1983-03-17", periods=30)
    tables = {
        "born": pandas.DataFrame({"a": np.arange(30.0), "born": days}),
        "since": pandas.DataFrame({"a": np.arange(30.0), "since": days - days[0]}),
        "there": pandas.DataFrame({"there": days.tz_localize("UTC"), "a": 1.0}),
        "month": pandas.DataFrame({"month": days.to_period("M")}),
        "X": np.array([[day.date(), 1.0] for day in days], dtype=object),
    }
    with PrivacyAccountant(np.inf) as accountant:
        for name, table in tables.items():
            said = "X holds dates" if name == "X" else f"column '{name}' holds dates"
            fits = [private.fit]
            if hasattr(private, "fit_chunks") and name != "X":
                fits.append(lambda table: private.fit_chunks([table]))
            for fit in fits:
                with pytest.raises(ValueError, match=f"{said}.*days since a public day") as caught:
                    fit(table)
                assert "1983" not in str(caught.value)
    assert not accountant.spends()
