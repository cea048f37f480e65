"""Privacy per person: which rows count, costs, and that no id is kept."""

import math
import pickle
from uuid import UUID

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from sklearn_dptda.cluster import (
    DPCube,
    DPLandmarkToMATo,
    DPLloyd,
    DPMoG,
    DPMoGMorse,
    DPToMATo,
    DPTree,
    _dp_tomato,
)
from sklearn_dptda.metric_privacy import PrivateMeasure
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import (
    PrivacyAccountant,
    audit_epsilon,
    gaussian_mu,
    zcdp_rho,
)
from sklearn_dptda.rows import _estimator, _rows, _tables
from sklearn_dptda.rows._moments import FitBudget, LaplaceBudget
from sklearn_dptda.rows._rows import MASS
from sklearn_dptda.rows._tables import first_rows
from sklearn_dptda.utils._people import check_ids

BOX = (-6, 6)
PURE = [
    DPLloyd(2, delta=0.0, bounds=BOX),
    DPTree(2, delta=0.0),
    DPCube(2, delta=0.0, bounds={"x": BOX}),
    DPToMATo(2, bounds=BOX),
    PrivateMeasure(bounds={"y": BOX}),
    PrivateBounds(adjacency="add-remove"),
]
GAUSSIAN = [
    DPMoG(2, bounds=BOX),
    DPMoGMorse(2, bounds=BOX),
    DPTree(2, bounds=BOX),
    DPLandmarkToMATo(2, bounds=BOX, n_landmarks=9),
]
ESTIMATORS = [*PURE, *GAUSSIAN]


def some_in_unit(estimators, names):
    """Estimators, of which the unit layer has those of these names, and the laws the others."""
    others = [e for e in estimators if type(e).__name__ not in names]
    return [
        *(e for e in estimators if type(e).__name__ in names),
        *(pytest.param(e, marks=pytest.mark.laws) for e in others),
    ]


def named(estimator):
    return type(estimator).__name__ + ("" if estimator.get_params().get("delta") else "-pure")


def of_people(estimator, most=3, epsilon=3.0, **options):
    return clone(estimator).set_params(
        epsilon=epsilon, groups="patient_id", rows_per_group=most, random_state=0, **options
    )


def visits(n=240, n_people=32, seed=0):
    rng = np.random.default_rng(seed)
    people = rng.integers(n_people, size=n)
    X = rng.normal(4 * (people % 2)[:, None] - 2, 0.5, size=(n, 2))
    ids = np.array([f"person-{i}" for i in range(n_people)])[people]
    return pd.DataFrame({"x": X[:, 0], "patient_id": ids, "y": X[:, 1]})


def bounded(table, most):
    """The same by pandas."""
    first = table.groupby("patient_id").cumcount() < most
    return table[first].drop(columns="patient_id")


def learnt(estimator):
    names = [n for n in vars(estimator) if n.endswith("_") and n != "privacy_guarantee_"]
    # Lists of arrays cannot be compared, but bytes can.
    return {name: pickle.dumps(getattr(estimator, name)) for name in names}


def first_of(tables, most):
    """Rows of people that are kept, together."""
    return pd.concat(first_rows(tables, "patient_id", most))["row"].tolist()


def worst_person(most, seed):
    """Rows by which tables with and without a person differ, at most, and whether others moved."""
    rng = np.random.default_rng(seed)
    n, n_people = rng.integers(1, 40), rng.integers(1, 8)
    table = pd.DataFrame({"row": np.arange(n), "patient_id": rng.integers(n_people, size=n)})
    table = table.sample(frac=1, random_state=rng)
    parts = np.sort(rng.integers(n + 1, size=2))

    def kept(frame):
        return first_of([frame], most)

    rows, worst, others_stay = kept(table), 0, True
    chunks = [table[: parts[0]], table[parts[0] : parts[1]], table[parts[1] :]]
    assert first_of(chunks, most) == rows
    for person in range(n_people):
        theirs = set(table["row"][table["patient_id"] == person])
        worst = max(worst, len(theirs & set(rows)))
        without = kept(table[table["patient_id"] != person])
        others_stay &= without == [row for row in rows if row not in theirs]
    return worst, others_stay


@pytest.mark.parametrize(
    ("most", "n_seeds"),
    [
        (2, 8),
        pytest.param(1, 25, marks=pytest.mark.laws),
        pytest.param(5, 50, marks=pytest.mark.laws),
    ],
)
def test_first_rows_keeps_few_rows_of_a_person_and_all_of_others(most, n_seeds, monkeypatch):
    found = [worst_person(most, seed) for seed in range(n_seeds)]
    assert max(worst for worst, _ in found) == most and all(stay for _, stay in found)
    # A rule that keeps all rows, and one that counts the rows of all people, are detected.
    monkeypatch.setattr(_tables, "_first_places", lambda ids, *_: list(range(len(ids))))
    assert max(worst_person(most, seed)[0] for seed in range(n_seeds)) > most
    monkeypatch.setattr(_tables, "_first_places", _first_of_the_table)
    assert not all(worst_person(most, seed)[1] for seed in range(n_seeds))


def _first_of_the_table(ids, most, counts):
    places = [i for i in range(len(ids)) if i + counts["all"] < most]
    counts["all"] += len(ids)
    return places


@pytest.mark.parametrize(
    "estimator", some_in_unit(PURE, {"DPLloyd", "PrivateMeasure", "PrivateBounds"}), ids=named
)
def test_rows_per_group_releases_kept_rows_at_a_part_of_the_loss(estimator):
    table = visits()
    private = of_people(estimator).fit(table)
    alone = clone(estimator).set_params(epsilon=1.0, random_state=0).fit(bounded(table, 3))
    assert learnt(private) == learnt(alone)
    assert private.privacy_guarantee_.epsilon == 3.0


@pytest.mark.parametrize(
    "estimator",
    [PURE[-1], *(pytest.param(kind(2), marks=pytest.mark.laws) for kind in (DPTree, DPToMATo))],
    ids=named,
)
def test_rows_per_group_counts_rows_of_a_person_in_all_chunks(estimator):
    table = visits()
    whole = learnt(of_people(estimator).fit(table))
    chunks = [table[:1], table[1:1], table[1:100], table[100:]]
    assert learnt(of_people(estimator).fit_chunks(chunks)) == whole
    assert learnt(of_people(estimator).fit_chunks(lambda: iter(chunks))) == whole
    with pytest.raises(ValueError, match="only once"):
        of_people(estimator).fit_chunks(iter(chunks))


@pytest.mark.parametrize("most", [1, 4])
@pytest.mark.parametrize(
    ("estimator", "total"),
    [
        (DPMoG(2), gaussian_mu(2.0, 1e-6)),
        (DPMoGMorse(2), gaussian_mu(2.0, 1e-6)),
        (DPLloyd(2), gaussian_mu(2.0, 1e-6)),
        (DPTree(2, delta=0.0), 2.0),
        # Group privacy scales with the square: each of four rows has a sixteenth of rho.
        (DPCube(2), math.sqrt(2 * zcdp_rho(2.0, 1e-6))),
        (DPToMATo(2), 2.0),
    ],
    ids=lambda value: named(value) if hasattr(value, "fit") else "",
)
def test_rows_per_group_divides_the_budget_by_the_rows(estimator, total, most, monkeypatch):
    class Opened(Exception):
        pass

    spent = []

    def watched(kind):
        def spy(of_row, adjacency, noise, mass):
            if noise is None:
                # Scales are checked before the payment.
                return kind(of_row, adjacency, noise, mass)
            spent.append(of_row)
            raise Opened

        return spy

    for name in ("GaussianBudget", "LaplaceBudget"):
        monkeypatch.setattr(_estimator, name, watched(getattr(_estimator, name)))
    accountant = PrivacyAccountant(10.0, 1e-3)
    with pytest.raises(Opened):
        of_people(estimator, most, 2.0, accountant=accountant).fit(visits())
    assert most * spent.pop() == pytest.approx(total, rel=1e-12)
    assert accountant.total().epsilon == 2.0


@pytest.mark.laws
@pytest.mark.usefixtures("few_public_draws")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
def test_groups_column_is_no_feature_and_is_in_the_guarantee(estimator):
    table = visits()
    private = of_people(estimator).fit(table)
    assert private.feature_names_in_.tolist() == ["x", "y"] and private.n_features_in_ == 2
    assert private.get_params()["groups"] == "patient_id" and "rows_per_group=3" in repr(private)
    guarantee = private.privacy_guarantee_
    assert guarantee.unit == "all rows of one person, by 'patient_id' with rows_per_group=3"
    assert guarantee.adjacency == "add-remove"
    rows = clone(estimator).set_params(random_state=0).fit(table[["x", "y"]]).privacy_guarantee_
    assert rows.unit == "one row"
    with pytest.raises(ValueError, match="do not add"):
        guarantee + rows
    if hasattr(private, "predict"):
        labels = private.predict(table)
        assert np.array_equal(labels, private.predict(table[["x", "y"]]))
        assert np.array_equal(labels, of_people(estimator).fit_predict(table))
    if hasattr(private, "sample"):
        assert list(private.sample(5).columns) == ["x", "y"]


def test_private_estimator_takes_people_of_polars():
    polars = pytest.importorskip("polars")
    table = visits()
    frame = polars.DataFrame({name: table[name].tolist() for name in table})
    private = of_people(DPMoG(2, bounds=BOX))
    assert learnt(clone(private).fit(frame)) == learnt(clone(private).fit(table))
    private.fit_chunks([frame[:9], frame[9:]]).predict(frame)


@pytest.mark.usefixtures("few_public_draws")
@pytest.mark.parametrize(
    "estimator", some_in_unit(ESTIMATORS, {"DPCube", "DPMoG", "PrivateBounds"}), ids=named
)
def test_private_estimator_keeps_neither_ids_nor_their_number(estimator):
    sizes = []
    for n_people in (20, 200):
        # The type of the column contains the names of all people.
        table = visits(n_people=n_people).astype({"patient_id": "category"})
        private = of_people(estimator, 1, 0.5).fit(table)
        dumped = pickle.dumps(private, protocol=4)
        assert b"person-" not in dumped and "person-" not in repr(private)
        # A release may have more rows or fewer.
        sizes.append(len(dumped) - sum(map(len, learnt(private).values())))
    assert abs(sizes[0] - sizes[1]) <= 64


def test_check_ids_takes_numbers_strings_and_uuids():
    uuids = [UUID(int=i) for i in (1, 2, 1, 2)]
    for ids in ([1, 2, 1, 2], [1.5, 2.5] * 2, ["a", "b"] * 2, [b"a", b"b"] * 2, uuids):
        table = pd.DataFrame({"row": range(4), "patient_id": ids})
        assert first_of([table], 1) == [0, 1]
    for bad in (None, math.nan, pd.NA, pd.NaT, ["a"], ("a", math.nan), np.zeros(2), {}):
        with pytest.raises(ValueError, match="a number or a string for each row"):
            check_ids(["a", bad])
    with pytest.raises(ValueError, match="all numbers or all strings"):
        check_ids(["a", 1])
    with pytest.raises(ValueError, match="or all UUIDs"):
        check_ids([*uuids, str(uuids[0])])


def test_groups_of_uuids_are_those_of_numbers():
    table = visits()
    numbers = pd.factorize(table["patient_id"])[0]
    uuids = [UUID(int=int(number)) for number in numbers]
    expected, X = learnt(of_people(DPTree(2)).fit(table)), table[["x", "y"]]
    assert learnt(of_people(DPTree(2)).fit(table.assign(patient_id=uuids))) == expected
    private = of_people(DPTree(2)).set_params(groups=None)
    for groups in (uuids, np.array(uuids, dtype=object), pd.Series(uuids)):
        assert learnt(clone(private).fit(X, groups=groups)) == expected


SECRET = "person-73645"
MISTAKES = {
    "an array": (lambda t: t[["x", "y"]].to_numpy(), {}, "name of one column of a data frame"),
    "another name": (lambda t: t.rename(columns={"patient_id": "p"}), {}, "name of one column"),
    "two columns": (lambda t: pd.concat([t, t[["patient_id"]]], axis=1), {}, "name of one column"),
    "two features": (lambda t: pd.concat([t, t[["x"]]], axis=1), {}, "2 columns with the name 'x'"),
    "a missing id": (lambda t: t.assign(patient_id=[SECRET, None] * 120), {}, "number or a string"),
    "lists": (lambda t: t.assign(patient_id=[[SECRET]] * 240), {}, "number or a string"),
    "no feature": (lambda t: t[["patient_id"]], {}, "must also have other columns"),
    "no rows of a person": (None, {"rows_per_group": 0}, "'rows_per_group' parameter"),
    "a limit of nobody": (None, {"groups": None}, "rows_per_group needs groups"),
    "replaced people": (
        None,
        {"adjacency": "replace-one"},
        "rows_per_group needs adjacency='add-remove'",
    ),
    "noise of no end": (None, {"epsilon": 2e-6}, "epsilon must be between 3e-06"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_rows_per_group_refuses_mistakes_unpaid_and_quotes_nobody(mistake):
    # Each mistake with one of three kinds of fits.
    estimator = (DPTree(2), *PURE[-2:])[list(MISTAKES).index(mistake) % 3]
    change, options, message = MISTAKES[mistake]
    table = visits() if change is None else change(visits())
    accountant = PrivacyAccountant(10.0, 1e-3)
    private = of_people(estimator, accountant=accountant).set_params(**options)
    with pytest.raises(ValueError, match=message) as caught:
        private.fit(table)
    assert SECRET not in str(caught.value) and len(accountant) == 0
    assert not hasattr(private, "privacy_guarantee_")


def test_groups_column_is_refused_for_metric_privacy_and_clouds():
    table = visits()
    with pytest.raises(ValueError, match="groups requires method='hierarchical'"):
        of_people(PrivateMeasure(bounds=BOX, method="metric", alpha=9.0)).fit(table)
    with pytest.raises(ValueError, match="name of one column"):
        of_people(PURE[-1]).fit([np.zeros((9, 2)), np.ones((9, 2))])


@pytest.mark.nightly
@pytest.mark.parametrize("most", [3, None])
@pytest.mark.filterwarnings("ignore:.*lie outside the bounds")
def test_audit_of_a_person_passes_and_refutes_broken_twins(most, monkeypatch):
    # 2,000 runs per side, and 500 of twins; false alarms below 1e-6. A person with thirty rows at
    # an end of the box, which are all in the first cell: 1.0 is attained.
    others = pd.DataFrame({"x": [0.0, 0.0], "patient_id": ["one", "other"]})
    somebody = pd.DataFrame({"x": [0.0] * 30, "patient_id": "somebody"})
    person = pd.concat([others, somebody], ignore_index=True)
    # Clusters follow from the released counts, and are not observed.
    monkeypatch.setattr(_dp_tomato, "count_clusters", lambda *_: 1)
    private = DPToMATo(1, 1.0, (0, 1), bounds_share=0.01, n_bins=2, groups="patient_id")
    private.set_params(rows_per_group=most)

    def audit(n_runs):
        return audit_epsilon(
            lambda X, random_state: clone(private).set_params(random_state=random_state).fit(X),
            person,
            others,
            event=lambda fitted: fitted.counts_[0] >= (5 if most else 3),
            n_runs=n_runs,
            confidence=1 - 1e-6,
            random_state=0,
        )

    honest = audit(2000)
    assert honest.epsilon > 0.5 and not honest.refutes(1.0), honest
    with monkeypatch.context() as patch:
        if most is None:
            patch.setattr(_rows, "weighted", lambda rows, *_: iter([_rows.Batch(rows, MASS)]))
        else:
            patch.setattr(_tables, "_first_places", lambda ids, *_: list(range(len(ids))))
        assert audit(500).refutes(1.0)
    monkeypatch.setattr(FitBudget, "scale_of_counts", lambda *_: 1e-3)
    monkeypatch.setattr(LaplaceBudget, "scale", lambda self, sensitivity, share: 0.1)
    assert audit(500).refutes(1.0)
