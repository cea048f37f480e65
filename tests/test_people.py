"""Privacy per person: which rows count, costs, and that no id is kept."""

import math
import pickle
from uuid import UUID

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from sklearn_dptda.cluster import (
    DPLandmarkToMATo,
    DPLloyd,
    DPMoG,
    DPMoGMorse,
    DPToMATo,
    DPTree,
    _dp_tomato,
)
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import audit_epsilon
from sklearn_dptda.published import DPCube
from sklearn_dptda.rows import _rows
from sklearn_dptda.rows._moments import FitBudget, LaplaceBudget
from sklearn_dptda.rows._rows import MASS
from sklearn_dptda.synthetic import PrivateMeasure
from sklearn_dptda.utils._people import check_ids, split_people
from tests._refusals import refuses, refuses_unpaid

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


def of_people(estimator, epsilon=3.0, **options):
    return clone(estimator).set_params(
        epsilon=epsilon, groups="patient_id", random_state=0, **options
    )


def visits(n=240, n_people=32, seed=0):
    rng = np.random.default_rng(seed)
    people = rng.integers(n_people, size=n)
    X = rng.normal(4 * (people % 2)[:, None] - 2, 0.5, size=(n, 2))
    ids = np.array([f"person-{i}" for i in range(n_people)])[people]
    return pd.DataFrame({"x": X[:, 0], "patient_id": ids, "y": X[:, 1]})


def learnt(estimator):
    names = [n for n in vars(estimator) if n.endswith("_") and n != "privacy_guarantee_"]
    # Lists of arrays cannot be compared, but bytes can.
    return {name: pickle.dumps(getattr(estimator, name)) for name in names}


@pytest.mark.laws
@pytest.mark.usefixtures("few_public_draws")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
def test_groups_column_is_no_feature_and_is_in_the_guarantee(estimator):
    table = visits()
    private = of_people(estimator).fit(table)
    assert private.feature_names_in_.tolist() == ["x", "y"] and private.n_features_in_ == 2
    assert private.get_params()["groups"] == "patient_id"
    guarantee = private.privacy_guarantee_
    assert guarantee.unit == "all rows of one person, by 'patient_id'"
    assert "An attack on one person" in str(guarantee)
    assert guarantee.adjacency == "add-remove"
    rows = clone(estimator).set_params(random_state=0).fit(table[["x", "y"]]).privacy_guarantee_
    assert rows.unit == "one row"
    refuses("do not add", lambda: guarantee + rows)
    if hasattr(private, "predict"):
        labels = private.predict(table)
        assert np.array_equal(labels, private.predict(table[["x", "y"]]))
        assert np.array_equal(labels, of_people(estimator).fit_predict(table))
    if hasattr(private, "sample"):
        assert list(private.sample(5).columns) == ["x", "y"]


@pytest.mark.parametrize("make", ["polars.DataFrame", "pyarrow.table"])
def test_private_estimator_takes_people_of_other_libraries(make):
    library, _, name = make.partition(".")
    table = visits()
    columns = {name: table[name].tolist() for name in table}
    frame = getattr(pytest.importorskip(library), name)(columns)
    private = of_people(DPMoG(2, bounds=BOX))
    assert learnt(clone(private).fit(frame)) == learnt(clone(private).fit(table))
    private.fit_chunks([frame[:9], frame[9:]]).predict(frame)
    assert type(private.sample(3)) is type(frame)


@pytest.mark.usefixtures("few_public_draws")
@pytest.mark.parametrize(
    "estimator", some_in_unit(ESTIMATORS, {"DPCube", "DPMoG", "PrivateBounds"}), ids=named
)
def test_private_estimator_keeps_neither_ids_nor_their_number(estimator):
    sizes = []
    for n_people in (20, 200):
        # The type of the column contains the names of all people.
        table = visits(n_people=n_people).astype({"patient_id": "category"})
        private = of_people(estimator, 0.5).fit(table)
        dumped = pickle.dumps(private, protocol=4)
        assert b"person-" not in dumped and "person-" not in repr(private)
        # A release may have more rows or fewer.
        sizes.append(len(dumped) - sum(map(len, learnt(private).values())))
    assert abs(sizes[0] - sizes[1]) <= 64


def test_check_ids_takes_numbers_strings_and_uuids():
    uuids = [UUID(int=i) for i in (1, 2, 1, 2)]
    for ids in ([1, 2, 1, 2], [1.5, 2.5] * 2, ["a", "b"] * 2, [b"a", b"b"] * 2, uuids):
        table = pd.DataFrame({"row": range(4), "patient_id": ids})
        _, found = split_people(table, "patient_id", None)
        assert [*found[:2]] == [*found[2:]] and len({*found}) == 2
    for bad in (None, math.nan, pd.NA, pd.NaT, ["a"], ("a", math.nan), np.zeros(2), {}):
        refuses("a number or a string for each row", check_ids, ["a", bad])
    refuses("all numbers or all strings", check_ids, ["a", 1])
    refuses("or all UUIDs", check_ids, [*uuids, str(uuids[0])])


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
    "two columns": (lambda t: pd.concat([t, t[["patient_id"]]], axis=1), {}, "2 columns with"),
    "two features": (lambda t: pd.concat([t, t[["x"]]], axis=1), {}, "2 columns with the name 'x'"),
    "a missing id": (lambda t: t.assign(patient_id=[SECRET, None] * 120), {}, "number or a string"),
    "lists": (lambda t: t.assign(patient_id=[[SECRET]] * 240), {}, "number or a string"),
    "no feature": (lambda t: t[["patient_id"]], {}, "must also have other columns"),
    "noise of no end": (None, {"epsilon": 2e-7}, "epsilon must be between 1e-06"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_groups_refuse_mistakes_unpaid_and_quote_nobody(mistake):
    # Each mistake with one of three kinds of fits.
    estimator = (DPTree(2), *PURE[-2:])[list(MISTAKES).index(mistake) % 3]
    change, options, message = MISTAKES[mistake]
    table = visits() if change is None else change(visits())
    private = of_people(estimator).set_params(**options)
    said = refuses_unpaid(message, private.fit, table)
    assert SECRET not in said
    assert not hasattr(private, "privacy_guarantee_")


def test_groups_column_is_refused_for_clouds():
    refuses("name of one column", of_people(PURE[-1]).fit, [np.zeros((9, 2)), np.ones((9, 2))])


@pytest.mark.nightly
def test_audit_of_a_person_passes_and_refutes_broken_twins(monkeypatch):
    # 2,000 runs per side, and 500 of twins; false alarms below 1e-6. A person with thirty rows at
    # an end of the box, which are all in the first cell: 1.0 is attained.
    others = pd.DataFrame({"x": [0.0, 0.0], "patient_id": ["one", "other"]})
    somebody = pd.DataFrame({"x": [0.0] * 30, "patient_id": "somebody"})
    person = pd.concat([others, somebody], ignore_index=True)
    # Clusters follow from the released counts, and are not observed.
    monkeypatch.setattr(_dp_tomato, "count_clusters", lambda *_: 1)
    private = DPToMATo(1, 1.0, (0, 1), n_bins=2, groups="patient_id")

    def audit(n_runs):
        return audit_epsilon(
            lambda X, random_state: clone(private).set_params(random_state=random_state).fit(X),
            person,
            others,
            event=lambda fitted: fitted.counts_[0] >= 3,
            n_runs=n_runs,
            confidence=1 - 1e-6,
            random_state=0,
        )

    honest = audit(2000)
    assert honest.epsilon > 0.5 and not honest.refutes(1.0), honest
    with monkeypatch.context() as patch:
        patch.setattr(_rows, "weighted", lambda rows, *_: iter([_rows.Batch(rows, MASS)]))
        assert audit(500).refutes(1.0)
    monkeypatch.setattr(FitBudget, "scale_of_counts", lambda *_: 1e-3)
    monkeypatch.setattr(LaplaceBudget, "scale", lambda self, sensitivity, share: 0.1)
    assert audit(500).refutes(1.0)
