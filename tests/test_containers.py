"""One contract of containers for all estimators of rows.

Arrays, frames, chunks, Dask collections, delayed parts and any object with ``map_reduce`` give the
same release bit for bit, for one payment, also if the rows belong to people. Rows elsewhere are
never gathered: a method maps them, is one paid fit, or refuses them before the payment.
"""

import inspect
import pickle
from functools import reduce
from operator import add

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

from sklearn_dptda import DTMFiltration
from sklearn_dptda.cluster import DPLloyd, DPMoG, DPToMATo, MorseMerging, ToMATo
from sklearn_dptda.decomposition import PrivatePCA
from sklearn_dptda.graph import EdgeFlip
from sklearn_dptda.metric_privacy import KNormMechanism, MetricMeasure, UltrametricMechanism
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import PrivacyAccountant
from sklearn_dptda.rows._rows import Tally
from sklearn_dptda.synthetic import PrivateMeasure
from sklearn_dptda.utils.discovery import all_estimators
from sklearn_dptda.utils.estimator_checks import make_instance
from tests._refusals import refuses, refuses_unpaid
from tests.test_border import options_of

dask = pytest.importorskip("dask")
array = pytest.importorskip("dask.array")
frame = pytest.importorskip("dask.dataframe")
pandas = pytest.importorskip("pandas")
cloudpickle = pytest.importorskip("cloudpickle")

# Fits without a seed may have any result, and warn.
pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.usefixtures("few_public_draws"),
]

BOX = (0.0, 1.0)
X = np.random.default_rng(0).uniform(size=(120, 2))
Y = (X[:, 0] > 0.5).astype(int)
NAMES = ["a", "b"]
# Estimators of rows in parts. The one that takes labels has its own tests of parts.
ROWS = {
    name: kind
    for name, kind in all_estimators(private=True)
    if hasattr(kind, "fit_chunks") and not get_tags(kind()).privacy.labels
}


class Parts:
    """The protocol in a list: parts go through pickles, and come back in another order."""

    def __init__(self, parts):
        self.parts, self.shipped = parts, []

    def map_reduce(self, function):
        self.shipped.append(pickle.dumps(function))
        sums = [pickle.dumps(pickle.loads(self.shipped[-1])(part)) for part in self.parts]
        return reduce(add, map(pickle.loads, reversed(sums)))


def table(X):
    return pandas.DataFrame(X, columns=NAMES[: X.shape[1]])


def pieces(X):
    """Chunks, one of which has a single row, and one none."""
    return [X[:50], X[50:51], X[:0], X[51:]]


# Rows that are not in memory as one table, and how estimators are fitted on chunks in memory.
ELSEWHERE = {
    "array": lambda X: array.from_array(X, chunks=(50, 1)),
    "frame": lambda X: frame.from_pandas(table(X), npartitions=3),
    "delayed": lambda X: [dask.delayed(part) for part in pieces(X)],
    "map_reduce": lambda X: Parts(pieces(X)),
}
CHUNKS = {"list": pieces, "stream": lambda X: lambda: iter(pieces(X))}
CONTAINERS = [*ELSEWHERE, *CHUNKS, "frame in memory"]


def fitted_on(estimator, container, X):
    if container in ELSEWHERE:
        return estimator.fit(ELSEWHERE[container](X))
    if container in CHUNKS:
        return estimator.fit_chunks(CHUNKS[container](X))
    return estimator.fit(table(X))


def pairwise(rows, columns, layer):
    """All pairs, of which the unit layer has one for each column; others are in another layer."""
    return [
        pytest.param(row, column, marks=[] if i == j else [layer])
        for i, row in enumerate(rows)
        for j, column in enumerate(columns)
    ]


def new(name, **options):
    """A small estimator on the unit box, and MorseMerging around a private mixture."""
    if name == "MorseMerging":
        return MorseMerging(new("DPMoG", **options))
    estimator = make_instance(ROWS[name])
    bounds = {"start" if name == "PrivateBounds" else "bounds": BOX}
    known = estimator.get_params(deep=False)
    return estimator.set_params(**{"random_state": 0} | bounds | options) if known else estimator


def learnt(estimator):
    """What a fit has released, without names of columns, which some containers do not have."""
    estimator = getattr(estimator, "estimator_", estimator)
    kept = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    return {n: v for n, v in kept.items() if n not in ("privacy_guarantee_", "feature_names_in_")}


def same(first, second):
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[n], second[n]) for n in first)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    return np.array_equal(first, second)


# Releases.


@pytest.mark.parametrize(
    ("name", "container"),
    [
        *pairwise([*ROWS], CONTAINERS, pytest.mark.engines),
        *pairwise(["MorseMerging"], [*ELSEWHERE], pytest.mark.engines),
    ],
)
def test_containers_give_the_same_release_for_one_payment(name, container):
    found = {} if name == "PrivateBounds" else {"bounds": None}
    for options in ({}, found):
        accountant = PrivacyAccountant(np.inf)
        found = fitted_on(new(name, accountant=accountant, **options), container, X)
        assert len(accountant) == 1
        assert same(learnt(found), learnt(new(name, **options).fit(X)))


@pytest.mark.parametrize(
    ("name", "container"), pairwise([*ROWS], ["chunks", "dask", "ids beside"], pytest.mark.engines)
)
def test_containers_of_people_give_the_same_release(name, container):
    sizes = np.minimum(1 + (2 * np.random.default_rng(0).pareto(1.1, 40)).astype(int), 30)
    ids = np.repeat([f"person-{i}" for i in range(40)], sizes)
    people = table(np.random.default_rng(1).uniform(size=(len(ids), 2))).assign(who=ids)
    people = people.sample(frac=1, random_state=0, ignore_index=True)
    whole = new(name, groups="who").fit(people)
    if container == "chunks":
        found = new(name, groups="who").fit_chunks([people[:1], people[1:1], people[1:]])
    elif container == "dask":
        shuffled = people.sample(frac=1, random_state=1, ignore_index=True)
        found = new(name, groups="who").fit(frame.from_pandas(shuffled, npartitions=4))
    else:
        found = new(name).fit(people[NAMES], groups=people["who"])
        assert found.privacy_guarantee_.unit == "all rows of one person, by the groups of fit"
    assert same(learnt(found), learnt(whole))


@pytest.mark.laws
@pytest.mark.parametrize("name", ROWS)
def test_map_reduce_gives_the_same_release_with_options(name):
    # Several thousand rows are more than a piece of them.
    rows = np.random.default_rng(1).uniform(size=(9000, 2))
    others = {"groups", "categories", "target"}
    parameters = ROWS[name]().get_params(deep=False).keys() - others
    for option, model in options_of(ROWS[name], parameters):
        found = clone(model).fit(Parts([rows[:5000], rows[5000:5001], rows[5001:]]))
        assert same(learnt(found), learnt(clone(model).fit(rows))), option


@pytest.mark.parametrize("name", [*ROWS, "MorseMerging"])
def test_map_reduce_ships_small_functions_without_noise(name):
    parts = Parts([X])
    new(name).fit(parts)
    assert max(map(len, parts.shipped)) < 30_000
    for secret in (b"NoiseSource", b"Accountant", b"Budget", b"random_state"):
        assert not any(secret in function for function in parts.shipped)


def test_dask_codes_categories_where_the_parts_are():
    people = pandas.DataFrame({"age": np.arange(400) % 70, "smokes": ["no", "yes"] * 200})
    private = PrivateMeasure(bounds=(0, 99), categories={"smokes": ["no", "yes"]}, random_state=0)
    whole = clone(private).fit(people)
    counted = clone(private).fit(frame.from_pandas(people, npartitions=3))
    assert same(learnt(whole)["weights_"], learnt(counted)["weights_"])
    synthetic = counted.sample(50, random_state=0)
    assert synthetic["age"].dtype == np.int64 and set(synthetic["smokes"]) <= {"no", "yes"}
    accountant = PrivacyAccountant(np.inf)
    private.set_params(categories={"smokes": ["no"]}, accountant=accountant)
    said = refuses("not in its list", private.fit, frame.from_pandas(people, npartitions=3))
    assert "yes" not in said and len(accountant) == 0


def test_fit_chunks_takes_names_of_the_first_chunk():
    private = DPLloyd(2, bounds=BOX, random_state=0).fit_chunks([table(X[:40]), table(X[40:])])
    assert private.feature_names_in_.tolist() == NAMES
    refuses("names", private.fit_chunks, [table(X[:40]), table(X[40:])[NAMES[::-1]]])


# Methods on rows elsewhere.

MAPPED = {"predict", "predict_proba", "score_samples", "transform", "inverse_transform"}
FITS = {"fit": None, "fit_chunks": None, "fit_predict": "predict", "fit_transform": "transform"}
NO_ROWS = {"sample", "error_bound"}
PLUMBING = {
    "get_params",
    "set_params",
    "set_output",
    "get_feature_names_out",
    "get_metadata_routing",
    "set_fit_request",
    "set_callbacks",
}


def methods(estimator):
    kind = type(estimator)
    return {
        name for name in dir(kind) if name[0] != "_" and inspect.isfunction(getattr(kind, name))
    }


def sums_alone(graph, keys, **options):
    """A scheduler of Dask that computes nothing but sums over parts."""
    found = dask.get(graph, keys)
    sums = found
    while not isinstance(sums, Tally):
        (sums,) = sums
    return found


def never(graph, keys, **options):
    raise AssertionError("gathered")


def nothing_gathered(scheduler=sums_alone):
    return dask.config.set(scheduler=scheduler)


def computed(lazy):
    with nothing_gathered("synchronous"):
        parts = dask.compute(*lazy) if isinstance(lazy, list) else [lazy.compute()]
    return np.concatenate(parts)


def test_containers_know_every_method_of_rows():
    known = MAPPED | FITS.keys() | NO_ROWS | PLUMBING | {"score"}
    assert len(ROWS) >= 12
    assert set.union(*(methods(new(name)) for name in [*ROWS, "MorseMerging"])) <= known


@pytest.mark.parametrize(
    ("name", "kind"), pairwise([*ROWS, "MorseMerging"], [*ELSEWHERE], pytest.mark.engines)
)
def test_methods_elsewhere_are_lazy_or_one_paid_fit_or_refused(name, kind):
    # Estimators without a seed must map what they have released, too.
    budget = PrivacyAccountant(np.inf)
    options = {"accountant": budget, "random_state": None}
    here = table if kind == "frame" else np.asarray
    fitted = new(name, **options).fit(here(X))
    for method in methods(fitted) - NO_ROWS - PLUMBING:
        n_columns = fitted.transform(here(X)).shape[1] if method == "inverse_transform" else 2
        rows = np.ones((120, n_columns)) if method == "inverse_transform" else X
        elsewhere, paid = ELSEWHERE[kind](rows), len(budget)
        if kind == "map_reduce" and method not in {"fit", "fit_chunks", "score"}:
            with pytest.raises(ValueError, match=r"X (only )?gives sums over its parts"):
                getattr(new(name, **options) if method in FITS else fitted, method)(elsewhere)
            assert len(budget) == paid
        elif method in FITS:
            again = new(name, **options)
            with nothing_gathered():
                found = getattr(again, method)(elsewhere)
            assert len(budget) == paid + 1
            if FITS[method] is None:
                assert found is again
            else:
                expected = getattr(again, FITS[method])(here(rows))
                assert np.allclose(computed(found), expected, rtol=1e-9)
        elif method == "score":
            with nothing_gathered():
                assert fitted.score(elsewhere) == pytest.approx(fitted.score(here(rows)))
            assert len(budget) == paid
        else:
            with nothing_gathered(never):
                lazy = getattr(fitted, method)(elsewhere)
            expected = getattr(fitted, method)(here(rows))
            assert np.allclose(computed(lazy), expected, rtol=1e-9)
            assert len(budget) == paid


@pytest.mark.parametrize("kind", ELSEWHERE)
def test_pipelines_elsewhere_pay_for_all_steps_or_for_none(kind):
    budget = PrivacyAccountant(np.inf)
    steps = [new(name, accountant=budget) for name in ("PrivatePCA", "DPLloyd")]
    chain, elsewhere = make_pipeline(*steps), ELSEWHERE[kind](X)
    with nothing_gathered():
        if kind == "map_reduce":
            refuses(r"X (only )?gives sums over its parts", chain.fit, elsewhere)
            assert len(budget) == 0
            return
        chain.fit(elsewhere)
        assert np.isfinite(chain.score(elsewhere))
    with nothing_gathered(never):
        labels = chain.predict(elsewhere)
    assert computed(labels).shape == (120,) and len(budget) == 2
    whole = clone(chain).fit(X)
    assert same(chain[-1].cluster_centers_, whole[-1].cluster_centers_)


@pytest.mark.parametrize("kind", ELSEWHERE)
def test_set_output_elsewhere_is_refused_before_the_payment(kind):
    budget = PrivacyAccountant(np.inf)
    for name in ("PrivatePCA", "DPLloyd"):
        framed = new(name, accountant=budget).set_output(transform="pandas")
        with pytest.raises(ValueError, match=r"set_output makes data frames|sums over its parts"):
            make_pipeline(framed).fit_transform(ELSEWHERE[kind](X))
    assert len(budget) == 0


@pytest.mark.parametrize("kind", ELSEWHERE)
def test_cross_validation_elsewhere_counts_folds_or_pays_nothing(kind):
    budget = PrivacyAccountant(np.inf)
    private = new("DPLloyd", accountant=budget)
    with nothing_gathered():
        if kind in ("array", "delayed"):
            scores = cross_val_score(private, ELSEWHERE[kind](X), cv=2, error_score="raise")
            assert np.isfinite(scores).all() and len(budget) == 2
            return
        # scikit-learn does not select rows of these.
        with pytest.raises((AttributeError, TypeError, ValueError)):
            cross_val_score(private, ELSEWHERE[kind](X), cv=2, error_score="raise")
    assert len(budget) == 0


@pytest.mark.parametrize("seed", [0, None], ids=["seeded", "unseeded"])
def test_dask_graphs_know_released_values_alone(seed):
    budget, rows = PrivacyAccountant(np.inf), ELSEWHERE["frame"](X)
    for name in ("DPLloyd", "MorseMerging"):
        state = np.random.RandomState(0) if seed == 0 else None
        model = new(name, random_state=state, accountant=budget).fit(rows)
        with PrivacyAccountant(1.0):
            labels = model.predict(rows)
            # The same release gives the same labels, which may come from a cache.
            assert labels.name == model.predict(rows).name
        shipped = cloudpickle.dumps(dict(labels.dask))
        for secret in (b"Accountant", b"RandomState", b"Budget"):
            assert secret not in shipped
        # Another release gives other labels.
        assert seed == 0 or model.fit(rows).predict(rows).name != labels.name


def test_dask_caches_know_no_unseeded_estimator_again():
    keys = set()
    for model in (new("DPLloyd", random_state=None), new("DPLloyd", random_state=None).fit(X)):
        for _ in range(2):
            keys.add(dask.base.tokenize(model))
            keys.add(dask.delayed(lambda model: model.fit(X), pure=True)(model).key)
    assert len(keys) == 8


def test_dask_maps_parts_without_rows():
    few = ELSEWHERE["frame"](X)
    few = few[few["a"] > np.sort(X[:, 0])[-3]]
    model = new("DPLloyd").fit(table(X))
    assert len(computed(model.predict(few))) == 2
    assert computed(model.transform(few)).shape == (2, 2)
    assert computed(model.predict(dask.delayed(X))).shape == (120,)
    parts = [dask.delayed(X[:0]), dask.delayed(X)]
    assert computed(model.fit(X).predict(parts)).shape == (120,)
    assert model.score(parts) == pytest.approx(model.score(X))


def test_map_reduce_may_be_the_name_of_a_column():
    named = pandas.DataFrame(X, columns=["a", "map_reduce"])
    assert new("DPLloyd").fit_predict(named).shape == (120,)


# Refusals.


@pytest.mark.parametrize("kind", ELSEWHERE)
@pytest.mark.parametrize("bad", ["NaN", "bounds of more columns", "empty", "bounds of a name"])
def test_containers_with_bad_parts_cost_nothing(kind, bad):
    rows = {"NaN": np.where(np.arange(120)[:, None] == 119, np.nan, X), "empty": X[:0]}.get(bad, X)
    bounds = {"bounds of more columns": ([-9.0] * 4, [9.0] * 4), "bounds of a name": {"d": (0, 1)}}
    for kind_of in (DPLloyd, PrivateMeasure, DPToMATo):
        accountant = PrivacyAccountant(np.inf)
        private = kind_of(bounds=bounds.get(bad), accountant=accountant)
        # An empty table has no parts, and Dask no array of none.
        data = Parts([rows]) if bad == "empty" else ELSEWHERE[kind](rows)
        refuses(r"NaN|bounds|empty|0 sample", private.fit, data)
        assert len(accountant) == 0


def test_dask_columns_are_checked_before_a_job_starts():
    def unread(block):
        raise AssertionError("a job was started")

    rows = array.from_array(X, chunks=(50, 2)).map_blocks(unread, dtype=float, meta=X[:0])
    people = ELSEWHERE["frame"](X)
    for private in (
        DPMoG(bounds=([0] * 4, [1] * 4)),
        DPToMATo(n_bins=20_000),
        PrivatePCA(7),
        PrivateMeasure(bounds=([0] * 4, [1] * 4)),
        PrivateBounds(start=([0] * 4, [1] * 4)),
    ):
        for each in (rows, people.map_partitions(unread, meta=people._meta)):
            refuses(None, private.fit, each)


def test_containers_with_other_columns_are_refused():
    accountant = PrivacyAccountant(np.inf)
    private = DPLloyd(2, accountant=accountant)
    for parts in ([X, X[:, :1]], [X, table(X)]):
        refuses("number or the names", private.fit, Parts(parts))
    with pytest.raises(ValueError, match="is a Dask collection"), nothing_gathered(never):
        MetricMeasure(alpha=1.0, bounds=(0, 1)).fit(ELSEWHERE["array"](X))
    for nothing in (array.zeros(5), array.zeros((5, 2, 2)), frame.from_array(X)[0]):
        refuses("not a table", private.fit, nothing)
    with pytest.raises(ValueError, match="is a Dask collection"), nothing_gathered(never):
        private.fit([X, ELSEWHERE["array"](X)])
    assert len(accountant) == 0


ONCE = iter([X])


@pytest.mark.parametrize(
    ("chunks", "bounds", "message"),
    [
        (iter([X]), BOX, "only once"),
        (lambda: ONCE, BOX, "only once"),
        ([], BOX, "empty"),
        ([X[:0]], BOX, "empty"),
        ([X, X[:, :1]], BOX, "columns"),
        ([X, np.full((3, 2), np.nan)], BOX, "NaN"),
        ([X], {"c": (0, 1)}, "'c'"),
        ([X[:, 0]], BOX, "2D"),
    ],
)
def test_fit_chunks_of_bad_chunks_costs_nothing(chunks, bounds, message):
    refuses_unpaid(message, DPLloyd(2, bounds=bounds).fit_chunks, chunks)


# A person has seven rows, and others have two or one.
VISITS = table(X[:20]).assign(who=[0] * 7 + [1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 9])
# The rows are the same, and people have as many of them, but others.
OTHER_VISITS = VISITS.assign(who=VISITS["who"].to_numpy()[::-1])


@pytest.mark.parametrize(
    ("first", "later"),
    [(X, X[1:]), (X, X[:, 1:]), (X, X[:0]), (VISITS, OTHER_VISITS)],
    ids=["fewer rows", "fewer columns", "no rows", "other people"],
)
def test_containers_that_change_between_passes_are_noticed(first, later):
    # Chunks are opened twice to compare the iterators, and read once to check them, after another
    # pass that counts the rows of each person.
    opened, groups = [], "who" if first is VISITS else None
    before = 3 if groups is None else 4

    def read():
        opened.append(1)
        return iter([first if len(opened) <= before else later])

    class Changing(Parts):
        def map_reduce(self, function):
            self.parts = [first if len(self.shipped) < before - 2 else later]
            return super().map_reduce(function)

    for fit in (lambda one: one.fit_chunks(read), lambda one: one.fit(Changing([first]))):
        private = DPLloyd(2, bounds=BOX, groups=groups, random_state=0)
        refuses("changed between two passes", fit, private)
        assert not hasattr(private, "privacy_guarantee_")


def test_fit_chunks_reads_a_stream_anew_for_every_pass():
    passes = []

    def read():
        passes.append(1)
        yield from np.array_split(blobs, 7)

    blobs = make_blobs(3000, centers=3, n_features=4, random_state=0)[0]
    DPLloyd(3, bounds=(-15, 15), n_iter=5, random_state=0).fit_chunks(read)
    # A generator starts when it is read: once for its first chunk, once for checks, four to eight
    # times for bounds within the given ones, once to count rows outside the bounds, twice for each
    # of one to five stages of localisation, once for centre and scale, and once for each step.
    assert 1 + 1 + 4 + 1 + 2 + 1 + 5 <= len(passes) <= 1 + 1 + 8 + 1 + 10 + 1 + 5


OTHERS = [
    (name, kind)
    for name, kind in all_estimators()
    if not hasattr(kind, "fit_chunks") and kind is not MorseMerging
]


@pytest.mark.filterwarnings("ignore::sklearn_dptda.privacy.PrivacyLeakWarning")
@pytest.mark.parametrize(("name", "kind"), OTHERS, ids=[name for name, _ in OTHERS])
def test_dask_collections_are_never_gathered_in_silence(name, kind):
    estimator = kind()
    if name == "PrivateMassSearch":
        estimator.set_params(filtration=DTMFiltration(bounds=(-15, 15), resolution=5))
    if name == "MetricMeasure":
        estimator.set_params(bounds=BOX)
    if name == "PrivateSearchCV":
        estimator = make_instance(kind)
    graph = array.from_array(np.arange(36).reshape(6, 6) % 2, chunks=3)
    tables = [ELSEWHERE["array"](X[:60]), ELSEWHERE["frame"](X[:60]), graph]
    with nothing_gathered(never):
        for given in [*tables, *([one, one] for one in tables), ELSEWHERE["delayed"](X)]:
            if name == "UltrametricMechanism":
                # It has only public parameters, and ignores X.
                estimator.fit(given)
                continue
            refuses("Dask collection", estimator.fit, given)


def test_dask_collections_are_refused_where_nothing_maps_them():
    for fitted in (ToMATo().fit(X), KNormMechanism(bounds=(-20, 20)).fit(X)):
        method = fitted.predict if hasattr(fitted, "predict") else fitted.transform
        for kind in ("array", "frame", "delayed"):
            refuses_unpaid("is a Dask collection", method, ELSEWHERE[kind](X))
    places = array.from_array(np.array([0, 1, 1]), chunks=2)
    for method, given in (
        (MorseMerging(GaussianMixture(3)).fit, ELSEWHERE["array"](X)),
        (UltrametricMechanism().fit().release, places),
        (UltrametricMechanism().fit().release, [dask.delayed(0)]),
        (EdgeFlip().fit, dask.delayed(np.eye(3))),
    ):
        refuses_unpaid("is a Dask collection", method, given)
    refuses_unpaid("by map_reduce", MorseMerging(GaussianMixture(3)).fit, Parts([X]))
    filtration = DTMFiltration(bounds=(-15, 15), resolution=5).fit([X])
    refuses_unpaid("is a Dask collection", filtration.transform, [ELSEWHERE["array"](X)])
    counted = filtration.make_histogram(ELSEWHERE["delayed"](X))
    assert same(counted.counts, filtration.make_histogram(X).counts)
