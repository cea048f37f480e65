"""What every private estimator, pipeline, union and search does with a hostile record.

The border check compares what enters a draw. This is its twin for what is seen without any draw:
whether a call returns, refuses its input or fails, and with which words. After a payment nothing
may depend on records, and before it, a refusal names public things only. Estimators and their
options are found by discovery. ``python -m tests.test_outcomes`` prints the table.
"""

import math
import re
import sys
import warnings
from collections import Counter
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from sklearn_dptda import DTMFiltration, PrivatePersistence
from sklearn_dptda.cluster import DPLloyd, DPMoG, PrivateLandmarks
from sklearn_dptda.decomposition import PrivatePCA
from sklearn_dptda.discriminant_analysis import DPLinearDiscriminantAnalysis
from sklearn_dptda.features import SortedLifetimes
from sklearn_dptda.model_selection import PrivateSearchCV, _private_search, _rehearsal
from sklearn_dptda.population import private_two_sample_test
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import PrivacyAccountant, _asking, _estimator
from sklearn_dptda.privacy._release import release
from sklearn_dptda.rows import _sizes
from sklearn_dptda.utils.estimator_checks import make_instance
from tests._options import PRIVATE, inherited_by, options_of
from tests._refusals import refuses

pytestmark = [
    pytest.mark.usefixtures("few_public_draws"),
    pytest.mark.filterwarnings("ignore"),
]

# Values of records, no part of which may be in a message. Those of a kind are refused alike.
NUMBERS = 0.7364528190183746, 0.2918374650918273
WORDS = "malady", "ailment"
IDS = 918273645, 546372819
NEW_LABELS = 4711, 9172
CANARIES = ["73645", "29183", "e+308", *map(str, (*IDS, *NEW_LABELS)), *WORDS]


class Outcome(NamedTuple):
    """What is seen of a call: an error or none, and whether something was paid before it."""

    error: str
    message: str
    paid: bool

    @property
    def word(self) -> str:
        if not self.error:
            return "returns"
        return "refused after payment" if self.paid else "refused"


def outcome(compute) -> Outcome:
    """Call a function whose private estimators pay to the accountant of a block."""
    budget = PrivacyAccountant(math.inf, 1 - 1e-9)
    with budget, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            compute()
            error = None
        except Exception as raised:
            error = raised
    said = [str(each.message) for each in caught]
    assert not any(canary in text for canary in CANARIES for text in said), said
    if error is None:
        return Outcome("", "", bool(len(budget)))
    return Outcome(type(error).__name__, str(error), bool(len(budget)))


# Hostile records of tables.


def base_table(n=40):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(size=(n, 2)), columns=["a", "b"])
    people = np.arange(n) // 2
    return frame.assign(kind=np.where(frame["a"] > 0.5, "a", "c"), who=people, y=people % 2)


def with_cell(column, *values):
    """Two neighbours of a table: a value in the first row, and another one in the eighth."""

    def change(table):
        for place, value in zip((0, 7), values, strict=True):
            changed = table.copy()
            cells = changed[column].tolist()
            cells[place] = value
            kind = object if isinstance(value, str | None) else changed[column].dtype
            if isinstance(value, float):
                kind = float
            yield changed.assign(**{column: pd.Series(cells, dtype=kind)})

    return change


def duplicated(table):
    for place in (0, 7):
        changed = table.copy()
        changed.loc[place, ["a", "b"]] = changed.loc[20, ["a", "b"]].to_numpy()
        yield changed


def constant(table):
    """All rows but one have the same values."""
    for place in (0, 7):
        changed = table.assign(a=NUMBERS[0], b=NUMBERS[0])
        changed.loc[place, "b"] = NUMBERS[1]
        yield changed
    yield table.assign(a=NUMBERS[0], b=NUMBERS[0])


def few_rows(n):
    def change(table):
        for start in (0, 10):
            yield table.iloc[start : start + n].reset_index(drop=True)

    return change


def two_labels(table):
    """One person has two labels."""
    for place in (0, 7):
        changed = table.copy()
        changed.loc[place, "y"] = 1 - changed.loc[place, "y"]
        yield changed


CELLS = {
    "NaN": with_cell("a", math.nan, math.nan),
    "None": with_cell("b", None, None),
    "infinity": with_cell("a", math.inf, math.inf),
    "minus infinity": with_cell("b", -math.inf, -math.inf),
    "huge": with_cell("a", 1e308, -1e308),
    "tiny": with_cell("b", 5e-324, -0.0),
    "outside": with_cell("a", 1e5 + NUMBERS[0], -1e5 - NUMBERS[1]),
    "text": with_cell("b", *WORDS),
    "duplicate": duplicated,
    "constant column": constant,
    "one row": few_rows(1),
    "two rows": few_rows(2),
}
LABELS = {
    "new label": with_cell("y", *NEW_LABELS),
    "label of text": with_cell("y", *WORDS),
    "missing label": with_cell("y", math.nan, math.nan),
    "label None": with_cell("y", None, None),
    "broken label": with_cell("y", *NUMBERS),
    "two labels of a person": two_labels,
}
CATEGORIES = {
    "new category": with_cell("kind", *WORDS),
    "missing category": with_cell("kind", None, None),
}
PEOPLE = {
    "new id": with_cell("who", *IDS),
    "missing id": with_cell("who", math.nan, math.nan),
    "id None": with_cell("who", None, None),
    "id of text": with_cell("who", *WORDS),
    "one person": few_rows(2),
    "two people": few_rows(4),
}


def tables_of(estimator, *, chunks=False):
    """Names of hostile records, each with the tables that have it, as an estimator takes them."""
    parameters = estimator.get_params()
    given = {name.split("__")[-1] for name, value in parameters.items() if value}
    hostile = dict(CELLS)
    if "groups" in given:
        hostile |= PEOPLE
    if "categories" in given or "target" in given:
        hostile |= CATEGORIES
    if learns_labels(estimator):
        hostile |= LABELS
    for name, change in hostile.items():
        yield name, [as_taken(estimator, given, each) for each in made(change)]


@cache
def made(change):
    return list(change(base_table()))


# Tables that every estimator accepts, and of which a second step does not see what is special.
ACCEPTED = ("tiny", "outside", "duplicate", "two rows", "two people")


def refusable_of(estimator):
    return [(name, tables) for name, tables in tables_of(estimator) if name not in ACCEPTED]


def learns_labels(estimator):
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    last = getattr(last, "estimator", last)
    last = last[-1] if isinstance(last, Pipeline) else last
    private = getattr(get_tags(last), "privacy", None)
    return isinstance(last, LogisticRegression) or bool(private and private.labels)


def as_taken(estimator, given, table):
    columns = ["a", "b"]
    columns += ["kind"] * bool({"categories", "target"} & given) + ["who"] * ("groups" in given)
    X = table[columns]
    if columns == ["a", "b"]:
        X = X.to_numpy()
    return (X, table["y"].to_numpy()) if learns_labels(estimator) else X


def call(estimator, data):
    """Release from a clone."""
    copy = clone(estimator)
    if isinstance(copy, Pipeline | FeatureUnion | ColumnTransformer | PrivateSearchCV):
        return copy.fit(*data) if isinstance(data, tuple) else copy.fit(data)
    return release(copy, data)


def call_in_chunks(estimator, data):
    """Release from chunks, the first of which has the first six rows."""
    if isinstance(data, tuple):
        X, y = data
        return clone(estimator).fit_chunks([(X[:6], y[:6]), (X[6:], y[6:])])
    return clone(estimator).fit_chunks([data[:6], data[6:]])


def outcomes(estimator, kinds, compute=call):
    """Check the outcomes of all hostile records, and count their words by kind of record."""
    found = {}
    for name, inputs in kinds:
        each = [outcome(lambda data=data: compute(estimator, data)) for data in inputs]
        found[name] = Counter(one.word for one in each)
        where = repr(estimator)[:300], name, each
        assert not any(one.error and one.paid for one in each), where
        # Which cloud was refused may be said.
        said = {(one.error, re.sub(r"X\[\d\]|\b[XY] ", "X ", one.message)) for one in each}
        # Records that differ in value and place are refused in the same words.
        assert len(said) == 1 or name in UNLIKE, where
        assert not any(canary in text for canary in CANARIES for _, text in said), where
    return found


# Whether all rows are equal is seen where fewer than two values are refused.
UNLIKE = {"constant column", "huge", "tiny"}


def tried_of(kind):
    return kind._parameter_constraints.keys() - inherited_by(kind)


def taking(kind):
    """Names of the private estimators that take one kind of input."""
    tags = {name: get_tags(make_instance(each)).privacy for name, each in PRIVATE.items()}
    return [name for name, own in tags.items() if own.input == kind]


TABLES = taking("rows")


def cells_of(name):
    kind, found = PRIVATE[name], {}
    for option, estimator in options_of(kind, tried_of(kind)):
        found[option] = outcomes(estimator, tables_of(estimator))
    return found


@pytest.mark.parametrize("name", TABLES)
def test_outcomes_of_estimators_of_tables_are_those_of_any_record(name):
    cells_of(name)


@pytest.mark.parametrize("name", [name for name in TABLES if hasattr(PRIVATE[name], "fit_chunks")])
def test_outcomes_of_chunks_are_those_of_any_record(name):
    estimator = make_instance(PRIVATE[name]).set_params(random_state=0)
    outcomes(estimator, tables_of(estimator), call_in_chunks)


# Columns of many rows. What such a column shows at an epsilon of one, few rows show here.
COLUMNS = {
    "rarely one": lambda u: 1.0 * (u < 0.05),
    "nearly always one": lambda u: 1.0 * (u < 0.95),
    "rarely minus one": lambda u: -1.0 * (u < 0.05),
    "rarely an amount": lambda u: np.where(u < 0.05, np.exp(200 * u), 0.0),
    "amounts": lambda u: np.exp(20 * u),
    "negative amounts": lambda u: -np.exp(20 * u),
    "reciprocals": lambda u: 1 / (u - 0.5),
    "two far values": lambda u: np.where(u < 0.5, 1e-9, 1e9),
    "one far value": lambda u: np.where(u < 0.06, 1e12, u),
    "zero": lambda u: 0.0 * u,
    "minus zero": lambda u: -0.0 * u,
    "one": lambda u: 0.0 * u + 1,
    "denormal": lambda u: 1e-310 * u,
    "huge": lambda u: 1e307 * (u - 0.5),
    "integers": lambda u: np.floor(7 * u),
}


def outcomes_of_columns(name):
    """Check that a fit of any column releases something, without a warning of NumPy."""
    estimator = make_instance(PRIVATE[name])
    given = {option for option, value in estimator.get_params().items() if value}
    options = [{"epsilon": 1e4}]
    if None in PRIVATE[name]._parameter_constraints.get("bounds", ()):
        options += [{"epsilon": 1e4, "bounds": None}]
    for own in options:
        for column, law in COLUMNS.items():
            table = base_table(100)
            table["a"] = law(table["a"].to_numpy())
            data = as_taken(estimator, given, table)
            copy = clone(estimator).set_params(random_state=0, **own)
            with np.errstate(all="raise", under="ignore"):
                seen = outcome(lambda copy=copy, data=data: call(copy, data))
            assert not seen.error, (column, repr(copy), seen)


@pytest.mark.parametrize(
    "name", [n for n in TABLES if "epsilon" in make_instance(PRIVATE[n]).get_params()]
)
def test_no_fit_of_a_column_fails_after_its_payment(name):
    outcomes_of_columns(name)


def test_a_fit_that_fails_after_its_payment_is_noticed(monkeypatch):
    monkeypatch.setattr(_sizes, "_skewness", lambda quantiles: math.log2(quantiles[0]))
    with pytest.raises(AssertionError, match="ValueError"):
        outcomes_of_columns("DPLloyd")


# Clouds, functions and graphs.


def clouds_with(change, usual=lambda cloud, place: cloud):
    """Two clouds, one of which is hostile."""
    rng = np.random.default_rng(0)
    for place in (0, 1):
        pair = [rng.uniform(size=(30, 2)) for _ in range(2)]
        yield [(change if i == place else usual)(cloud, i) for i, cloud in enumerate(pair)]


def point_of(value):
    def change(cloud, place):
        changed = cloud.astype(object if isinstance(value, tuple | None) else float)
        changed[3 * place, 1] = value[place] if isinstance(value, tuple) else value
        return changed

    return change


CLOUDS = {
    "NaN": point_of(math.nan),
    "None": point_of(None),
    "infinity": point_of(math.inf),
    "huge": point_of(1e308),
    "tiny": point_of(5e-324),
    "outside": point_of(1e5 + NUMBERS[0]),
    "text": point_of(WORDS),
    "duplicate point": lambda cloud, place: np.vstack([cloud[[9]], cloud[1:]]),
    "copies of a point": lambda cloud, place: np.tile(cloud[place], (30, 1)),
    "one point": lambda cloud, place: cloud[place : place + 1],
    "two points": lambda cloud, place: cloud[place : place + 2],
}


def of_people(cloud, place):
    ids = np.arange(len(cloud)) // 3
    return pd.DataFrame(np.asarray(cloud), columns=["a", "b"]).assign(who=ids)


def framed(change):
    return lambda cloud, place: of_people(change(cloud, place), place)


def with_id(values):
    def change(cloud, place):
        frame = of_people(cloud, place)
        ids = frame["who"].tolist()
        ids[5 * place] = values[place]
        kind = object if isinstance(values[0], str | None) else None
        return frame.assign(who=pd.Series(ids, dtype=kind))

    return change


CLOUDS_OF_PEOPLE = {
    **{name: framed(change) for name, change in CLOUDS.items()},
    "new id": with_id(IDS),
    "missing id": with_id((math.nan, math.nan)),
    "id of text": with_id(WORDS),
}


def listed(change):
    """Clouds as lists of arrays, one for each person."""

    def changed(cloud, place):
        people = [cloud[3 * i : 3 * i + 3] for i in range(10)]
        people[4 * place] = change(people[4 * place])
        return people

    return changed


LISTS_OF_PEOPLE = {
    "empty group": listed(lambda own: own[:0]),
    "NaN": listed(lambda own: own * math.nan),
    "text": listed(lambda own: np.full(own.shape, WORDS[0])),
    "person of one point": listed(lambda own: own[:1]),
    "person of many points": listed(lambda own: np.tile(own, (50, 1))),
}
GRID = {"bounds": (0, 1), "resolution": 7}
FILTRATIONS = {
    "grid": DTMFiltration(0.3, **GRID),
    "exact": DTMFiltration(0.3, **GRID, method="exact"),
    "lattice": DTMFiltration(0.3, **GRID, method="lattice"),
    "private box": DTMFiltration(0.3, bounds=PrivateBounds(1.0, random_state=0), resolution=7),
    "landmarks": DTMFiltration(0.3, landmarks=np.eye(3, 2)),
    "private landmarks": DTMFiltration(
        0.3, landmarks=PrivateLandmarks(4, bounds=(0, 1), random_state=0)
    ),
}
FUNCTIONS = [
    n for n, k in PRIVATE.items() if get_tags(make_instance(k)).privacy.input == "functions"
]


def with_own_sensitivity(name):
    carried = {"sensitivity": None, "upper": None, "random_state": 0}
    return make_instance(PRIVATE[name]).set_params(**carried)


def cloud_cells(filtration, name):
    pipeline = make_pipeline(clone(FILTRATIONS[filtration]), with_own_sensitivity(name))
    first, found = pipeline[0], {}
    found["points"] = outcomes(pipeline, [(n, clouds_with(c)) for n, c in CLOUDS.items()], fit_all)
    if filtration == "exact":
        return found
    people = ("who", CLOUDS_OF_PEOPLE, of_people), (True, LISTS_OF_PEOPLE, listed(lambda own: own))
    for groups, kinds, usual in people:
        first.set_params(groups=groups)
        for part in (first.bounds, first.landmarks):
            if hasattr(part, "get_params"):
                part.set_params(groups=None)
        found[f"groups={groups!r}"] = outcomes(
            pipeline, [(n, clouds_with(c, usual)) for n, c in kinds.items()], fit_all
        )
    return found


def fit_all(pipeline, clouds):
    return clone(pipeline).fit_transform(clouds)


@pytest.mark.parametrize("filtration", FILTRATIONS)
def test_outcomes_of_clouds_are_those_of_any_point(filtration):
    cloud_cells(filtration, "PrivatePersistence")


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "PrivatePersistence"])
def test_outcomes_of_releases_of_functions_are_those_of_any_point(name):
    cloud_cells("grid", name)


def function_cells(name):
    estimator = make_instance(PRIVATE[name]).set_params(random_state=0)
    upper = estimator.upper or 1.0

    def inputs(value):
        for place in (0, 1):
            pair = [np.random.default_rng(i).uniform(0, upper, (5, 4)) for i in range(2)]
            pair[place][place, 2] = value
            yield pair

    values = {
        "NaN": math.nan,
        "infinity": math.inf,
        "above": (9 + NUMBERS[0]) * upper,
        "negative": -9.0 - NUMBERS[0],
        "huge": 1e308,
    }
    found = {"": outcomes(estimator, [(n, inputs(v)) for n, v in values.items()])}
    return found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_outcomes_of_functions_are_those_of_any_value(name):
    function_cells(name)


GRAPHS = [
    n for n, kind in PRIVATE.items() if get_tags(make_instance(kind)).privacy.input == "graph"
]


def graph_cells(name):
    found = {}
    for option, estimator in options_of(PRIVATE[name], tried_of(PRIVATE[name])):
        edges = bool(estimator.nodes)
        values = {
            "NaN": math.nan,
            "weight": 0.5,
            "two": 2.0,
            "negative": -1.0,
            "infinity": math.inf,
        }

        def matrices(value, of_one_side=False):
            for i, j in ((1, 2), (5, 7)):
                graph = (np.ones((20, 20)) - np.eye(20)) * 1.0
                graph[i, j] = value
                graph[j, i] = graph[j, i] if of_one_side else value
                yield graph

        def lists(*extra):
            pairs = np.argwhere(np.triu(np.ones((20, 20)), 1))
            for each in extra:
                yield np.vstack([each, pairs.astype(type(each[0]))])

        if edges:
            kinds = {
                "repeated edge": lists((0, 1), (3, 4)),
                "self-loop": lists((2, 2), (5, 5)),
                "unknown node": lists((0, IDS[0]), (3, IDS[1])),
                "negative node": lists((-1, 3), (-1, 5)),
                "missing node": lists((math.nan, 3.0), (math.nan, 5.0)),
                "node of text": lists(("malady", "3"), ("ailment", "5")),
            }
        else:
            kinds = {n: matrices(v) for n, v in values.items()}
            kinds |= {"one side": matrices(0.0, of_one_side=True), "self-loop": loops()}
        found[option] = outcomes(estimator, kinds.items())
    return found


def loops():
    for i in (1, 5):
        graph = np.ones((20, 20)) - np.eye(20)
        graph[i, i] = 1
        yield graph


@pytest.mark.parametrize("name", GRAPHS)
def test_outcomes_of_graphs_are_those_of_any_edge(name):
    graph_cells(name)


def test_outcomes_of_searches_for_a_mass_are_those_of_any_point():
    estimator = make_instance(PRIVATE["PrivateMassSearch"]).set_params(random_state=0)
    outcomes(estimator, [(n, clouds_with(c)) for n, c in CLOUDS.items()])


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("bounds", [(0, 1), None])
def test_outcomes_of_private_clouds_are_those_of_any_point(adjacency, bounds):
    kinds = (
        (None, CLOUDS, lambda cloud, place: cloud),
        ("who", CLOUDS_OF_PEOPLE, of_people),
        (True, LISTS_OF_PEOPLE, listed(lambda own: own)),
    )
    for groups, changes, usual in kinds:
        private = make_instance(PRIVATE["PrivateCloud"])
        private.set_params(adjacency=adjacency, groups=groups, bounds=bounds, random_state=0)
        outcomes(private, [(n, clouds_with(c, usual)) for n, c in changes.items()], fit_all)


def test_outcomes_of_two_sample_tests_are_those_of_any_point():
    def compute(_, groups):
        return private_two_sample_test(*groups, bounds=(0, 1), epsilon=2.0, random_state=0)

    outcomes(None, [(n, clouds_with(c)) for n, c in CLOUDS.items()], compute)


# Pipelines, unions and column transformers: what a later part refuses is refused before the first
# payment.

FIRST = [n for n in TABLES if hasattr(PRIVATE[n], "transform") and n != "PrivateSearchCV"]
LAST = [n for n in TABLES if n not in ("PrivateSearchCV", "PrivateMassSearch")]


def instance(name, **options):
    estimator = make_instance(PRIVATE[name]).set_params(random_state=0)
    own = estimator.get_params(deep=False)
    known = {key: value for key, value in options.items() if key in own}
    return estimator.set_params(**known)


def composites_of(first):
    """Pipelines, a union and column transformers of a private transformer, with all others."""
    # One ledger counts the losses of one adjacency, and a tree may find a single cluster.
    common = {"adjacency": "replace-one", "n_components": 1}
    for last in LAST:
        yield make_pipeline(instance(first, **common), instance(last, bounds=(-9, 9), **common))
    for last in [name for name in LAST if hasattr(PRIVATE[name], "transform")]:
        tolerant = instance(first, missing=True)
        yield make_union(tolerant, instance(last))
        yield ColumnTransformer([("some", tolerant, [0, 1]), ("others", instance(last), [0, 1])])


def composite_cells(first):
    return {
        type(each).__name__ + str(i): outcomes(each, refusable_of(each))
        for i, each in enumerate(composites_of(first))
    }


@pytest.mark.parametrize("first", FIRST)
def test_outcomes_of_composites_are_those_of_any_record(first):
    composite_cells(first)


def composites_with_public_parts():
    """Unions and column transformers in which parts without privacy refuse what others take."""
    first, strict = instance("DPLloyd", missing=True), FunctionTransformer(validate=True)
    yield make_union(first, strict)
    yield make_union("passthrough", first, make_pipeline("passthrough", strict))
    columns = ColumnTransformer([("some", first, [0])], remainder=strict)
    yield ColumnTransformer([("some", first, [0, 1]), ("others", strict, [0, 1])])
    yield make_union(make_pipeline("passthrough", first), columns)
    yield make_pipeline(make_union(first, columns), instance("DPLloyd"))
    nested = ColumnTransformer([("some", first, [0]), ("last", instance("DPLloyd"), [0, 1])])
    yield make_union(clone(first), nested)


def test_outcomes_of_composites_with_public_parts_are_those_of_any_record():
    for each in composites_with_public_parts():
        outcomes(each, refusable_of(each))


def test_column_transformer_asks_its_remainder():
    table = base_table()
    remainder = FunctionTransformer(validate=True)
    columns = ColumnTransformer([("some", instance("DPLloyd"), ["a"])], remainder=remainder)
    found = [
        outcome(lambda part=part: clone(columns).fit(part))
        for part in (table[["a", "b"]], *(each[["a", "b"]] for each in CELLS["None"](table)))
    ]
    assert [each.word for each in found] == ["returns", "refused", "refused"]


def pipelines_of_people():
    common = {"adjacency": "replace-one", "groups": "who"}
    first = instance("PrivatePCA", n_components=2, **common)
    for last in [n for n in LAST if "groups" in PRIVATE[n]().get_params()]:
        yield make_pipeline(first, instance(last, bounds=(-9, 9), **common))


def test_outcomes_of_pipelines_of_people_are_those_of_any_person():
    for pipeline in pipelines_of_people():
        outcomes(pipeline, refusable_of(pipeline))


def other_pipelines():
    lda = DPLinearDiscriminantAnalysis([0, 1], bounds=(-9, 9), random_state=0)
    pca = PrivatePCA(2, bounds=(0, 1), random_state=0)
    yield make_pipeline(make_pipeline(pca), make_pipeline("passthrough", lda))
    yield make_pipeline(make_union(pca, instance("DPLloyd")), lda)
    grid = {"classes": [[0, 1, *NEW_LABELS], [0, 1]]}
    yield make_pipeline(
        pca, PrivateSearchCV(clone(lda).set_params(random_state=None), grid, scoring="accuracy")
    )
    yield make_pipeline(pca, LogisticRegression())
    yield make_pipeline(SimpleImputer(strategy="constant", fill_value=0.5), pca, lda)


def test_outcomes_of_nested_pipelines_are_those_of_any_record():
    for pipeline in other_pipelines():
        kinds = refusable_of(pipeline)
        if isinstance(pipeline[-1], LogisticRegression):
            # It is public that all labels are equal, and not every classifier refuses them.
            kinds = [(name, data) for name, data in kinds if not name.endswith(("row", "rows"))]
        outcomes(pipeline, kinds)


def test_outcomes_of_private_classifiers_of_clouds_are_those_of_any_label():
    rng = np.random.default_rng(0)
    clouds = [rng.uniform(size=(30, 2)) for _ in range(6)]
    pipeline = make_pipeline(
        DTMFiltration(0.3, **GRID),
        PrivatePersistence(1.0, 1, random_state=0),
        SortedLifetimes(1),
        DPLinearDiscriminantAnalysis(
            [0, 1], bounds=(0, 1), adjacency="replace-one", random_state=0
        ),
    )
    labels = {"usual": [0, 1] * 3, "new": [0, 7] * 3, "missing": [0, math.nan] * 3, "few": [0, 1]}
    found = outcomes(pipeline, [(n, [(clouds, np.array(y))]) for n, y in labels.items()])
    assert [dict(each) for each in found.values()] == [{"returns": 1}] + [{"refused": 1}] * 3


# Searches, of which it is also seen whether runs fail.


def searches():
    options = {"random_state": 0, "law": [1, 1], "epsilon": 1.0}
    lloyd = instance("DPLloyd")
    inertia = {"scoring": "inertia", **options}
    yield PrivateSearchCV(lloyd, {"missing": [True, False]}, **inertia)
    yield PrivateSearchCV(lloyd, {"n_clusters": [2, 3]}, **inertia)
    people = instance("DPLloyd", groups="who", missing=True)
    yield PrivateSearchCV(people, {"missing": [True, False]}, **inertia)
    mixture = DPMoG(2, bounds=(0, 1), random_state=None)
    yield PrivateSearchCV(mixture, {"missing": [True, False]}, scoring="log_likelihood", **options)
    fill = FunctionTransformer(np.nan_to_num)
    filled = Pipeline([("fill", fill), ("km", DPLloyd(2, bounds=([0, 0], [1, 1])))])
    yield PrivateSearchCV(filled, {"fill": [fill, "passthrough"]}, **inertia)
    lda = DPLinearDiscriminantAnalysis(bounds=(-9, 9))
    accuracy = {"scoring": "accuracy", **options}
    yield PrivateSearchCV(lda, {"classes": [[0, 1, *NEW_LABELS], [0, 1]]}, **accuracy)
    yield PrivateSearchCV(
        make_pipeline(PrivatePCA(2, bounds=(0, 1)), clone(lda)),
        {"dplineardiscriminantanalysis__classes": [[0, 1, *NEW_LABELS], [0, 1]]},
        **accuracy,
    )


def without_seeds(search):
    names = [n for n in search.estimator.get_params() if n.split("__")[-1] == "random_state"]
    search.estimator.set_params(**dict.fromkeys(names))
    return search


@pytest.fixture
def failures(monkeypatch):
    """The runs of searches that failed."""
    found, honest = [], _private_search.one_run

    def watched(*args):
        run = honest(*args)
        found.extend([run] * (run.model is None))
        return run

    monkeypatch.setattr(_private_search, "one_run", watched)
    return found


def search_cells():
    return {
        str(i): outcomes(without_seeds(each), refusable_of(each))
        for i, each in enumerate(searches())
    }


def test_outcomes_of_searches_are_those_of_any_record_and_no_run_fails(failures):
    search_cells()
    assert failures == []


# Broken twins.


def _of_first_candidate(plan, X, y):
    honest = _rehearsal.check_input
    honest(plan.__class__(**{**vars(plan), "candidates": plan.candidates[:1]}), X, y)


@pytest.mark.parametrize("place", [0, 4, 5])
def test_search_that_asks_one_candidate_is_detected(place, failures, monkeypatch):
    monkeypatch.setattr(_private_search, "check_input", _of_first_candidate)
    search = without_seeds(list(searches())[place]).set_params(law=[1] * 8)
    outcomes(search, refusable_of(search))
    assert failures


def test_pipeline_that_asks_no_later_step_is_detected(monkeypatch):
    monkeypatch.setattr(_estimator, "ask_before", lambda estimator: None)
    of_people = [each for each in pipelines_of_people() if learns_labels(each)]
    for pipeline in (*list(other_pipelines())[:2], *of_people):
        refuses(None, outcomes, pipeline, refusable_of(pipeline), error=AssertionError)


@pytest.mark.parametrize("place", range(6))
def test_composite_that_asks_no_other_part_is_detected(place, monkeypatch):
    monkeypatch.setattr(_asking, "output_if_unpaid", lambda *args: None)
    composite = list(composites_with_public_parts())[place]
    refuses(None, outcomes, composite, refusable_of(composite), error=AssertionError)


def main():
    """Print how often what is seen, by estimator, option and kind of record."""
    warnings.simplefilter("ignore")
    rows = {name: cells_of(name) for name in TABLES}
    rows |= {f"{n}, {f}": cloud_cells(f, n) for f, n in product(FILTRATIONS, FUNCTIONS)}
    rows |= {f"{name}, arrays": function_cells(name) for name in FUNCTIONS}
    rows |= {name: graph_cells(name) for name in GRAPHS}
    rows |= {f"after {first}": composite_cells(first) for first in FIRST}
    rows["with public parts"] = {
        str(i): outcomes(each, refusable_of(each))
        for i, each in enumerate(composites_with_public_parts())
    }
    rows["searches"] = search_cells()
    total = Counter()
    for name, options in rows.items():
        words = Counter()
        refused = {}
        for kinds in options.values():
            for kind, found in kinds.items():
                words += found
                refused[kind] = refused.get(kind, 0) + found["refused"]
        total += words
        kinds = ", ".join(f"{kind} {n}" for kind, n in refused.items() if n)
        print(f"{name} ({len(options)} options): {dict(words)}; refused: {kinds or 'none'}")
    print(f"{sum(total.values())} cells: {dict(total)}")


if __name__ == "__main__":
    sys.exit(main())
