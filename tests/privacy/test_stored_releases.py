"""Releases that a ledger stores with their payments: formats, bounds, crashes, second draws."""

import ast
import hashlib
import io
import json
import os
import pickle
import shutil
import warnings
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config
from scipy.sparse import csr_array, issparse
from sklearn.cluster import KMeans
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from sklearn_dptda import CubicalPersistence, DTMFiltration, PersistenceProfile, PrivatePersistence
from sklearn_dptda.cluster import DPLloyd
from sklearn_dptda.decomposition import PrivatePCA
from sklearn_dptda.graph import EdgeFlip
from sklearn_dptda.model_selection import IncompleteReleases, release_once, release_replicates
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyBudgetExceeded, PrivacyLedgerError
from sklearn_dptda.privacy._estimator import is_private
from sklearn_dptda.privacy._ledger import Ledger
from sklearn_dptda.privacy._ledger_stores import folder_of, last_mark
from sklearn_dptda.privacy._noise import NoiseSource
from sklearn_dptda.privacy._release import as_arrays, learnt
from sklearn_dptda.privacy._release_key import ReleaseKey
from sklearn_dptda.privacy._stored_release import from_bytes, to_bytes
from sklearn_dptda.utils._privacy_checks import make_check_data
from sklearn_dptda.utils._privacy_checks._check_inputs import released
from sklearn_dptda.utils.discovery import all_estimators
from sklearn_dptda.utils.estimator_checks import make_instance
from tests._fragile import KILL
from tests._refusals import failing, refuses
from tests.privacy._forked import Child
from tests.privacy._ledgers import alter, edit

X = np.random.default_rng(0).uniform(size=(300, 2))
NOISE = pytest.mark.filterwarnings("ignore:At epsilon")
# Workers that start with the library loaded, where the system can fork.
BACKEND = "multiprocessing" if hasattr(os, "fork") else "loky"
FORMAT_1 = Path(__file__).parent / "data" / "release_format_1.zip"
VALUES = {
    "numbers": [0, -3, 2**70, 0.1, -0.0, float("inf"), 1e-320, True, None, 2 - 1j],
    "texts": ("a", "", "ä\n", np.str_("b")),
    "nested": {"x": {1: [(2,), []]}, ("t", 0): {}},
    "arrays": [
        np.arange(6.0).reshape(2, 3)[:, ::2],
        np.zeros((0, 2)),
        np.array(3),
        np.array(["p", "qr"]),
        np.array([True, False]),
        np.arange(3, dtype=np.uint8),
        np.array(["2026-01-01"], dtype="M8[D]"),
        np.array([[1, "mixed"], [None, (2.5, "x")]], dtype=object),
    ],
    "scalars": [np.float32(0.1), np.int64(-1), np.bool_(True), np.float64("nan")],
    "sparse": csr_array(np.eye(3)[:, :2]),
}


def lloyd(budget, n_clusters=2):
    return DPLloyd(n_clusters, bounds=(0, 1), accountant=budget)


def same(one, other):
    """Whether two values agree in types, shapes and numbers, bit by bit."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if issparse(one):
        return one.shape == other.shape and same(one.toarray(), other.toarray())
    if isinstance(one, np.ndarray) and one.dtype == object:
        return one.shape == other.shape and same(one.ravel().tolist(), other.ravel().tolist())
    if isinstance(one, np.ndarray | np.generic):
        return (
            one.dtype == other.dtype
            and one.shape == other.shape
            and one.tobytes() == other.tobytes()
        )
    return repr(one) == repr(other)


def test_from_bytes_restores_all_values():
    content = to_bytes(VALUES)
    assert same(from_bytes(content), VALUES)
    assert to_bytes(VALUES) == content
    # A file of the first format.
    assert same(from_bytes(FORMAT_1.read_bytes()), VALUES)


def archive(entries, compression=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as made:
        for name, text in entries.items():
            made.writestr(name, text)
    return buffer.getvalue()


def pickled_array():
    """An array whose file would run code where pickles were allowed."""

    class Runs:
        def __reduce__(self):
            return os.abort, ()

    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.array([Runs()], dtype=object))
    return buffer.getvalue()


def npy(*numbers):
    buffer = io.BytesIO()
    np.save(buffer, np.array(numbers))
    return buffer.getvalue()


# A sparse matrix, whose index is in the array 1.
_SPARSE = json.dumps(
    {"format_version": 1, "release": {"sparse": [[1, 2], [{"array": 0}, {"array": 1}, [0, 1]]]}}
)


def of_release(text):
    return '{"format_version": 1, "release": ' + text + "}"


UNREADABLE = {
    "damaged": [
        b"",
        to_bytes(VALUES)[:-30],
        archive({}),
        archive({"release.json": "{}"}),
        archive({"release.json": of_release('{"array": 0}')}),
        archive({"release.json": of_release('{"unknown": 0}')}),
        archive({"release.json": of_release('{"array": 0}'), "0.npy": pickled_array()}),
        archive({"release.json": "[" * 100_000}),
        archive({"release.json": of_release('{"array": 1e400}')}),
        archive({"release.json": _SPARSE, "0.npy": npy(1.0), "1.npy": npy(9**9)}),
        # A megabyte that would expand to a gigabyte.
        archive({"release.json": "{}"}, zipfile.ZIP_DEFLATED),
    ],
    "a newer version": [archive({"release.json": '{"format_version": 2, "release": []}'})],
}


@pytest.mark.parametrize("message", UNREADABLE)
def test_from_bytes_refuses_damage_and_runs_nothing(message):
    for content in UNREADABLE[message]:
        refuses(message, from_bytes, content)


KEY = "a" * 32


def stored(path, release, **options):
    """A ledger with one payment, whose release is stored."""
    budget = PrivacyAccountant(9.0, path=path, **options)
    budget.spend(1.0, key=KEY)
    budget.store(KEY, release)
    return budget


def test_to_bytes_refuses_other_objects():
    for value in (object(), lambda: 0, {1: {2, 3}}, np.zeros(1, dtype="V3")):
        refuses("is not a number, string or array", to_bytes, value, error=TypeError)


def test_ledger_returns_releases_on_another_day(ledger_path):
    with PrivacyAccountant(9.0, 1e-3, path=ledger_path) as budget:
        model = DPLloyd(2, bounds=(0, 1), adjacency="replace-one").fit(X)
        functions = DTMFiltration(bounds=(0, 1), resolution=7).fit_transform([X])
        diagrams = PrivatePersistence(clipped_share=True).fit(functions)
        returned = diagrams.transform(functions)
        budget.spend(1.0, what="a number")
    again = PrivacyAccountant.open(ledger_path)
    first, second, last = again.releases()
    assert [r.number for r in again.releases()] == [1, 2, 3]
    assert (first.estimator, last.what, last.size) == ("DPLloyd", "a number", None)
    stored = again.release(first.key)
    assert same(stored["cluster_centers_"], model.cluster_centers_)
    assert "privacy_guarantee_" not in stored and stored["n_features_in_"] == 2
    stored = again.release(second.key)
    assert same(stored["transform"], returned) and same(stored["cap_"], diagrams.cap_)
    assert same(stored["clipped_share_"], diagrams.clipped_share_)
    refuses("was not stored", again.release, last.key, error=LookupError)
    refuses("nothing was paid", again.release, "0" * 32, error=LookupError)
    refuses("nothing was paid", again.release, "a name", error=LookupError)
    refuses("name must be a string", again.release, "")


PRIVATE = {
    name: make_instance(kind)
    for name, kind in all_estimators()
    # A search stores what its best run has learnt: tests/model_selection/test_private_search.py.
    if is_private(make_instance(kind)) and name != "PrivateSearchCV"
}
# One that releases in fit, and one in transform.
STORED_ANYWAY = ("DPLloyd", "PrivatePersistence")


@pytest.mark.parametrize(
    "name",
    [
        name if name in STORED_ANYWAY else pytest.param(name, marks=pytest.mark.conformance)
        for name in PRIVATE
    ],
)
def test_private_estimators_store_their_release_alone(name, tmp_path):
    estimator = PRIVATE[name]
    data = make_check_data(get_tags(estimator).privacy)
    budget = PrivacyAccountant(1e9, 0.5, path=tmp_path / "a.db")
    result = released(estimator, data.X, accountant=budget)
    *_, last = budget.releases()
    stored = budget.release(last.key)
    if get_tags(estimator).privacy.releases == "transform":
        assert same(as_arrays(stored["transform"]), as_arrays(result))
    else:
        assert set(stored) >= set(result) - {"filtration_"}
        assert all(same(as_arrays(stored[k]), as_arrays(result[k])) for k in stored)


def test_edge_flip_stores_its_probability_of_flips_and_names(path):
    budget, names = PrivacyAccountant(9.0, path=path), [f"node {i}" for i in range(40)]
    A = np.triu(np.random.default_rng(0).integers(0, 2, (40, 40)), 1)
    for storage in ("sparse", "packed"):
        flip = EdgeFlip(2.0, nodes=names, storage=storage, accountant=budget)
        graph = flip.fit_transform(A + A.T)
        stored = budget.release(budget.releases()[-1].key)["transform"]
        assert type(stored) is type(graph) and stored.flip_probability == graph.flip_probability
        assert stored.nodes.tolist() == names
        assert same(stored.toarray(), graph.toarray()) and stored.links == graph.links


def test_accountant_store_writes_large_releases_to_files(path, tmp_path):
    budget = PrivacyAccountant(9.0, path=path, keep=2)
    small, large, huge = (np.random.default_rng(0).uniform(size=n) for n in (10, 200_000, 300_000))
    for key, array in (("a" * 32, small), ("b" * 32, large), ("c" * 32, large)):
        budget.spend(0.1, key=key)
        budget.store(key, array)
        assert same(budget.release(key), array)
    (file,) = (tmp_path / "a.db.releases").iterdir()
    assert path.stat().st_size < 1e5 < file.stat().st_size
    budget.spend(0.1, key="d" * 32)
    refuses(r"2\.29 MiB", budget.store, "d" * 32, huge)
    file.write_bytes(b"other")
    refuses("damaged", budget.release, "b" * 32, error=PrivacyLedgerError)
    file.unlink()
    refuses("No such file", budget.release, "b" * 32, error=PrivacyLedgerError)
    assert len(budget) == 4


@pytest.mark.parametrize(
    "options", [{"keep": 0, "path": "a.db"}, {}, {"path": "a.db", "composition": "basic"}]
)
def test_accountant_keep_chooses_what_is_stored(options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    budget = PrivacyAccountant(np.inf, **options)
    kept = "composition" in options
    for epsilon in (1.0, np.inf):
        DPLloyd(2, epsilon, bounds=(0, 1), accountant=budget).fit(X)
    sizes = [release.size is not None for release in budget.releases()]
    assert sizes == [kept, False]
    # Handles that were pickled continue in the same way.
    again = pickle.loads(pickle.dumps(budget))
    lloyd(again).fit(X)
    assert (budget.releases()[-1].size is not None) == kept
    for keep in (-1, None, "all", float("nan")):
        refuses("keep must be a number of MiB", PrivacyAccountant, 1.0, path="b.db", keep=keep)
    assert not os.path.exists("b.db")


@pytest.mark.parametrize("action", ["always", "error"])
@pytest.mark.parametrize(
    ("place", "error"),
    [
        ("_ledger.write_release", OSError(28, "No space left on device")),
        ("_accountant.to_bytes", MemoryError("on purpose: nothing was released.")),
        ("_accountant.to_bytes", ArithmeticError("on purpose: nothing was released.")),
    ],
    ids=repr,
)
def test_fit_loses_no_release_that_cannot_be_stored(place, error, action, path, monkeypatch):
    budget = PrivacyAccountant(9.0, 1e-3, path=path)
    monkeypatch.setattr(f"sklearn_dptda.privacy.{place}", failing(error))
    with warnings.catch_warnings(record=True, action=action) as said:
        model = lloyd(budget).fit(X)
    assert model.cluster_centers_.shape == (2, 2) and len(budget) == 1
    assert budget.releases()[0].size is None
    if action == "always":
        assert "could not be stored" in (text := str(said[-1].message))
        assert "nothing was released" not in text


def test_accountant_store_takes_rounding_for_no_second_draw(path):
    array = np.random.default_rng(0).uniform(size=(5, 3))
    assert to_bytes(array) == to_bytes(np.asfortranarray(array))
    assert to_bytes(array) == to_bytes(np.repeat(array, 2, axis=0)[::2])
    refuses("MaskedArray", to_bytes, np.ma.array([1, 999], mask=[0, 1]), error=TypeError)
    budget = stored(path, {"x": array})
    refuses("Nothing was paid", budget.store, "b" * 32, array, error=PrivacyLedgerError)
    budget.store(KEY, {"x": np.nextafter(array, 2)})
    assert same(budget.release(KEY)["x"], array)
    for other in (array + 1e-6, array[:-1], {"x": 1}):
        refuses("Another release", budget.store, KEY, {"x": other}, error=PrivacyLedgerError)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([1e-10, 5e-10], [-7e-10, 2e-10]),
        ([3_000_000_000], [3_000_000_002]),
        ([1e10, 4.0], [1e10, 5.0]),
    ],
)
def test_accountant_store_tells_apart_draws_of_any_size(first, second, path):
    budget = stored(path, np.asarray(first))
    budget.store(KEY, np.asarray(first))
    refuses("Another release", budget.store, KEY, np.asarray(second), error=PrivacyLedgerError)


@pytest.mark.skipif(os.name != "posix", reason="symbolic links and modes of POSIX")
def test_release_files_are_as_private_as_their_ledger(tmp_path, monkeypatch):
    monkeypatch.setattr("sklearn_dptda.privacy._stored_release._LARGE", 100)
    path, link = tmp_path / "a.db", tmp_path / "link.db"
    PrivacyAccountant(9.0, path=path)
    path.chmod(0o600)
    link.symlink_to(path)
    budget = PrivacyAccountant.open(link)
    budget.spend(1.0, key="a" * 32)
    budget.store("a" * 32, np.arange(99.0))
    assert same(PrivacyAccountant.open(path).release("a" * 32), np.arange(99.0))
    (file,) = (tmp_path / "a.db.releases").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_accountant_release_refuses_damage_and_opens_no_other_file(path, tmp_path, monkeypatch):
    elsewhere, opened = tmp_path / "elsewhere", []
    elsewhere.write_bytes(b"a file of the reader")
    budget = stored(path, [1.0])
    module = "sklearn_dptda.privacy._stored_release"
    monkeypatch.setattr(f"{module}.open", lambda *place: opened.append(place), raising=False)
    digests = ("", ".", str(elsewhere), "../elsewhere", "x" * 64, 5, b"a")
    for column, values in {"content": ("text", 5, 0.5), "content = NULL, digest": digests}.items():
        for value in values:
            edit(path, (f"UPDATE privacy_release SET {column} = ?", (value,)))
            refuses("it is damaged", budget.release, KEY, error=PrivacyLedgerError)
    assert not opened


def test_release_once_writes_lost_files_again(tmp_path, monkeypatch):
    monkeypatch.setattr("sklearn_dptda.privacy._stored_release._LARGE", 100)
    budget = PrivacyAccountant(9.0, 1e-3, path=tmp_path / "a.db")
    model = DPLloyd(2, bounds=(0, 1), adjacency="replace-one", accountant=budget)
    first = release_once(model, X, "one")
    (file,) = (tmp_path / "a.db.releases").iterdir()
    for damage in (file.unlink, lambda: file.write_bytes(b"")):
        damage()
        refuses("cannot be read", budget.release, "one", error=PrivacyLedgerError)
        release_once(model, X, "one")
        assert same(budget.release("one")["weights_"], first["weights_"]) and len(budget) == 1
    replicates = release_replicates(model, X, 3, name="three")
    shutil.rmtree(tmp_path / "a.db.releases")
    again = release_replicates(model, X, 3, name="three")
    assert same(replicates, again) and len(budget) == 4
    assert all(budget.release(each.key) for each in budget.releases()[1:])


@pytest.mark.engines
@NOISE
def test_release_replicates_returns_no_second_draw(path):
    budget = PrivacyAccountant(9.0, path=path)
    release_replicates(pipeline(budget), [X], 3, name="all")
    content = to_bytes({"transform": "another"})
    change = "UPDATE privacy_release SET content = ?, digest = ?, size = 1 WHERE rowid = 2"
    edit(path, (change, (content[:-1], hashlib.sha256(content).hexdigest())))
    # A release that cannot be read is drawn again, and differs from the digest in the ledger.
    with parallel_config(BACKEND), pytest.raises(IncompleteReleases) as caught:
        release_replicates(pipeline(budget), [X], 3, name="all", n_jobs=2)
    assert [release is None for release in caught.value.releases] == [False, True, False]
    assert len(budget) == 3


class PaysItself(DPLloyd):
    """Of somebody else, and older: its payment returns a plain list."""

    def _pay(self, *args, **options):
        return list(super()._pay(*args, **options))


def test_fit_stores_nothing_where_payments_are_plain_lists(tmp_path):
    budget = PrivacyAccountant(9.0, 1e-3, path=tmp_path / "a.db")
    assert len(PaysItself(2, bounds=(0, 1), accountant=budget).fit(X).weights_) == 2
    assert budget.releases()[0].size is None


class Fresh(DPLloyd):
    """A broken twin: under a name it draws with coins of its own."""

    def _pay(self, *args, **options):
        paid = super()._pay(*args, **options)
        paid[:] = [None] * len(paid)
        return paid


def test_release_once_returns_no_second_draw(tmp_path):
    budget = PrivacyAccountant(9.0, 1e-3, path=tmp_path / "a.db")
    honest = lloyd(budget)
    assert same(release_once(honest, X, "honest"), release_once(honest, X, "honest"))
    assert same(budget.release("honest"), budget.release(budget.releases()[0].key))
    broken = Fresh(2, bounds=(0, 1), accountant=budget)
    first = release_once(broken, X, "broken")
    refuses("Another release", release_once, broken, X, "broken", error=PrivacyLedgerError)
    assert same(budget.release("broken")["cluster_centers_"], first["cluster_centers_"])


def test_ledger_from_before_learns_units_and_to_store(ledger_path):
    made = PrivacyAccountant(9.0, path=ledger_path)
    made.spend(0.5, what="before")
    # Nor did the mark of the user know units.
    mark = Path(ast.literal_eval(last_mark(made._ledger.id)[0]))
    seen = json.loads(mark.read_text())
    mark.write_text(json.dumps({name: value for name, value in seen.items() if name != "unit"}))
    columns = [f"ALTER TABLE privacy_{name} DROP COLUMN unit" for name in ("budget", "spend")]
    alter(ledger_path, "DROP TABLE privacy_release", *columns)
    old = PrivacyAccountant.open(ledger_path)
    assert old.total().epsilon == 0.5 and old.spends()["unit"].tolist() == [""]
    old.spend(0.25, unit="one person", key=KEY)
    old.store(KEY, 5.0)
    assert old.release(KEY) == 5.0 and old._ledger.id == made._ledger.id
    assert [release.size is None for release in old.releases()] == [True, False]
    refuses("counts losses of one person", PrivacyAccountant.open(ledger_path).spend, 0.1)
    assert old.spends()["unit"].tolist() == ["", "one person"] and old.remaining().epsilon == 8.25


def pipeline(budget):
    return make_pipeline(
        DTMFiltration(bounds=(0, 1), resolution=7), PrivatePersistence(1.0, accountant=budget)
    )


@NOISE
@pytest.mark.engines
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_release_replicates_goes_on_where_it_stopped(path, n_jobs):
    def replicates(X=X, budget=None, **options):
        return release_replicates(pipeline(budget or of), [X], 6, name="all", **options)

    of = PrivacyAccountant(6.0, path=path)
    with parallel_config(BACKEND):
        releases = replicates(n_jobs=n_jobs)
    assert len(of) == 6 and of.remaining().epsilon == 0
    assert all(release.size for release in of.releases())
    edit(path, "DELETE FROM privacy_release WHERE rowid % 2")
    with parallel_config(BACKEND):
        again = replicates(n_jobs=n_jobs)
    assert same(again, releases) and len(of) == 6
    assert all(release.size for release in of.releases())
    refuses("Something else was paid", replicates, X + 0.01, error=PrivacyLedgerError)
    refuses("Something else was paid", replicates, random_state=0, error=PrivacyLedgerError)
    refuses("no accountant", release_replicates, pipeline(None), [X], 6, name="all")


@NOISE
def test_release_replicates_over_budget_returns_what_is_stored(path):
    def replicates(n, X=X):
        return release_replicates(pipeline(budget), [X], n, name="all")

    budget = PrivacyAccountant(5.0, path=path)
    releases = replicates(5)
    with pytest.raises(IncompleteReleases, match="2 of 7 releases") as caught:
        replicates(7)
    assert isinstance(caught.value.__cause__, PrivacyBudgetExceeded) and len(budget) == 5
    assert same(caught.value.releases, [*releases, None, None])
    # With other records, nothing is returned, and the error does not mention the budget.
    refuses("Something else was paid", replicates, 7, X + 0.01, error=PrivacyLedgerError)
    edit(path, "DELETE FROM privacy_release")
    refuses(None, replicates, 7, error=PrivacyBudgetExceeded)


def points_after(*steps):
    """A pipeline that is given records behind its private step."""
    return make_pipeline(*steps, FunctionTransformer())


OF_POINTS = {
    "distances": lambda budget: points_after(lloyd(budget, 3)),
    "projections": lambda budget: points_after(PrivatePCA(2, bounds=(0, 1), accountant=budget)),
    "clusters": lambda budget: make_pipeline(lloyd(budget, 3), KMeans(2, random_state=0)),
    "search": lambda budget: GridSearchCV(lloyd(budget), {"n_clusters": [2, 3]}, cv=2),
    "union": lambda budget: FeatureUnion([("one", lloyd(budget, 3)), ("two", lloyd(budget))]),
}


@pytest.mark.filterwarnings("ignore:KMeans")
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.laws if n != "distances" else ()) for n in OF_POINTS]
)
def test_release_replicates_stores_no_results_with_records(name, path):
    budget = PrivacyAccountant(1e3, 0.1, path=path)
    for under in (None, "two"):
        release_replicates(OF_POINTS[name](budget), X, 2, name=under)
    for release in budget.releases():
        if release.size is not None:
            stored = budget.release(release.key)
            # No array has as many rows as there are records.
            assert all(300 not in np.shape(part) for part in as_arrays(stored))
            assert set(stored) <= set(learnt(DPLloyd(2, bounds=(0, 1)).fit(X))) | {"n_samples_"}


@NOISE
def test_release_replicates_stores_no_exact_diagrams(tmp_path):
    budget = PrivacyAccountant(1e3, path=tmp_path / "a.db")
    box = PrivateBounds(1.0, start=(0, 1), accountant=budget, random_state=0)
    exact = make_pipeline(DTMFiltration(bounds=box, resolution=5), CubicalPersistence())
    release_replicates(exact, [X], 2)
    partly = make_pipeline(
        DTMFiltration(bounds=PrivateBounds(np.inf, accountant=PrivacyAccountant(np.inf))),
        PersistenceProfile(1.0, accountant=budget),
    )
    release_replicates(partly, [X], 2)
    assert len(budget) == 4 and all(release.size is None for release in budget.releases())


@NOISE
def test_release_replicates_stores_releases_without_a_name(tmp_path):
    budget = PrivacyAccountant(12.0, path=tmp_path / "a.db")
    releases = release_replicates(pipeline(budget), [X], 4)
    stored = [budget.release(each.key)["transform"] for each in budget.releases()]
    assert same(stored, releases)


# A process dies instead of a call or after it, as in a power failure. The last two are the numbers
# of payments and of stored releases after the death.
MOMENTS = {
    "before the payment": (Ledger, "spend", False, 0, 0),
    "between payment and draw": (Ledger, "spend", True, 1, 0),
    "in the draw": (NoiseSource, "__init__", True, 1, 0),
    "between draw and store": (Ledger, "keep", False, 1, 0),
    "after the store": (Ledger, "keep", True, 1, 1),
}


def release_and_die(say, moment, folder):
    kind, name, afterwards, *_ = MOMENTS[moment]
    function = getattr(kind, name)

    def die(*arguments, **options):
        if afterwards:
            function(*arguments, **options)
        os._exit(7)

    budget = PrivacyAccountant.open(folder / "a.db")
    setattr(kind, name, die)
    release_once(lloyd(budget), X, "one")


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param(moment, marks=() if "draw and" in moment else pytest.mark.engines)
        for moment in MOMENTS
    ],
)
def test_release_once_pays_once_whenever_a_process_dies(moment, tmp_path):
    budget = PrivacyAccountant(2.0, 1e-3, path=tmp_path / "a.db")
    budget.under("one")
    Child(release_and_die, moment, tmp_path).go().words(exit_code=7)
    *_, n_paid, n_stored = MOMENTS[moment]
    assert [r.size is not None for r in budget.releases()] == [bool(n_stored)] * n_paid
    # The release that the same task would have made without dying, with the same secret.
    other = PrivacyAccountant(2.0, 1e-3, path=tmp_path / "b.db")
    secrets = [os.path.join(folder_of(each._ledger.id), "secret") for each in (budget, other)]
    shutil.copy(*secrets)
    expected = release_once(lloyd(other), X, "one")
    if n_stored:
        assert same(budget.release("one")["cluster_centers_"], expected["cluster_centers_"])
    found = release_once(lloyd(budget), X, "one")
    assert same(found, expected)
    assert same(budget.release("one")["cluster_centers_"], expected["cluster_centers_"])
    (release,) = budget.releases()
    assert release.size and budget.total().epsilon == 1.0


def replicate_and_die(say, folder):
    """Die when two releases are stored."""
    keep, kept = Ledger.keep, []

    def keep_and_die(*arguments):
        keep(*arguments)
        kept.append(1)
        if len(kept) == 2:
            os.kill(os.getpid(), KILL)

    Ledger.keep = keep_and_die
    budget = PrivacyAccountant.open(folder / "a.db")
    release_replicates(pipeline(budget), [X], 9, name="all")


@pytest.mark.engines
@NOISE
def test_release_replicates_loses_nothing_when_killed_again(tmp_path):
    budget = PrivacyAccountant(9.0, path=tmp_path / "a.db")
    seen = {}
    for _ in range(3):
        Child(replicate_and_die, tmp_path).go().words(exit_code=-KILL)
        stored = {r.key: budget.release(r.key) for r in budget.releases() if r.size is not None}
        # A release that was seen is never drawn again.
        assert len(stored) == len(seen) + 2
        assert all(same(stored[name], release) for name, release in seen.items())
        seen = stored
    releases = release_replicates(pipeline(budget), [X], 9, name="all")
    assert len(budget) == 9 and all(r.size is not None for r in budget.releases())
    assert same([budget.release(r.key)["transform"] for r in budget.releases()], releases)
    assert not all(same(release, releases[0]) for release in releases)


def test_secret_of_a_ledger_is_for_its_owner_alone(tmp_path):
    path, left = tmp_path / "secret", tmp_path / f".sklearn_dptda-{'a' * 32}"
    key = ReleaseKey.open(path)
    # Its creator was killed before the file lost its temporary name.
    os.link(path, left)
    assert ReleaseKey.open(path).tag() == key.tag() != ReleaseKey().tag()
    assert not left.exists()
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600
        path.chmod(0o640)
        refuses("Other users may read", ReleaseKey.open, path)
        path.chmod(0o600)
    path.write_text("no key")
    refuses("does not hold the secret of a ledger", ReleaseKey.open, path)


def test_secret_of_a_ledger_is_one_for_processes_that_race(tmp_path, monkeypatch):
    path, original, others = tmp_path / "secret", os.open, []

    def opened(*arguments, **options):
        descriptor = original(*arguments, **options)
        if not others:
            others.append(None)
            others.append(ReleaseKey.open(path))
        return descriptor

    monkeypatch.setattr(os, "open", opened)
    assert ReleaseKey.open(path).tag() == others[1].tag()
    assert [file.name for file in tmp_path.iterdir()] == ["secret"]


def test_named_releases_need_the_secret_of_their_ledger(path):
    budget = PrivacyAccountant(9.0, 1e-3, path=path)
    model = lloyd(budget)
    first = release_once(model, X, "one")
    folder = Path(folder_of(budget._ledger.id))
    secret = (folder / "secret").read_bytes().strip()
    if os.name == "posix":
        assert (folder / "secret").stat().st_mode & 0o777 == 0o600
    # A reader of the ledger, an extract or the released estimator finds no part of it.
    model.set_params(accountant=budget.under("two")).fit(X)
    for key in (secret, bytes.fromhex(secret.decode()), model.accountant._key._secret):
        for place in (path.read_bytes(), pickle.dumps(model), pickle.dumps(budget)):
            assert key not in place and key.hex().encode() not in place
        assert (
            key.hex() not in (text := json.dumps(budget.extract())) and str(key)[2:-1] not in text
        )
    # Of another user or on another machine: what is stored is read, and nothing is drawn afresh.
    (folder / "secret").unlink()
    assert same(budget.release("one")["cluster_centers_"], first["cluster_centers_"])
    model.set_params(accountant=budget)
    refuses("the secret of another user", release_once, model, X, "one", error=PrivacyLedgerError)
    assert len(budget) == 2
    release_once(model, X, "three")
    shutil.rmtree(folder)
    with pytest.raises(PrivacyLedgerError, match="has created or opened the budget"):
        pickle.loads(pickle.dumps(budget)).under("four")
    assert len(budget) == 3


GRANTS = """
CREATE ROLE looker LOGIN; CREATE ROLE payer LOGIN;
GRANT SELECT ON privacy_budget, privacy_spend, privacy_release TO looker, payer;
GRANT INSERT ON privacy_spend, privacy_release TO payer;
GRANT UPDATE (number, spent_epsilon, spent_delta, spent_rho) ON privacy_budget TO payer;
"""


@pytest.mark.engines
def test_ledger_server_grants_the_documented_roles(fresh_database):
    errors = pytest.importorskip("sqlalchemy").exc
    owner = PrivacyAccountant(3.0, 1e-3, path=fresh_database)
    # States permanently whose losses are counted.
    owner.spend(0.25, adjacency="add-remove", unit="one row")
    alter(fresh_database, *filter(str.strip, GRANTS.split(";")))
    payer, looker = (fresh_database.replace("postgres@", f"{who}@") for who in ("payer", "looker"))
    try:
        model = lloyd(PrivacyAccountant.open(payer)).fit(X)
        reader = PrivacyAccountant.open(looker)
        _, release = reader.releases()
        assert same(reader.release(release.key)["cluster_centers_"], model.cluster_centers_)
        assert reader.remaining().epsilon == 1.75
        pay = partial(reader.spend, 0.1, adjacency="add-remove")
        refuses("permission denied", pay, error=PrivacyLedgerError)
        changes = [
            f"UPDATE privacy_budget SET {column} = NULL"
            for column in ("epsilon", "home", "unit", "adjacency")
        ]
        for change in (*changes, "DELETE FROM privacy_release"):
            refuses("permission denied", alter, payer, change, error=errors.ProgrammingError)
        negative = (
            "INSERT INTO privacy_spend SELECT 'other', 3, time, -3, delta, rho, adjacency, "
            "unit, what, estimator, parameters FROM privacy_spend WHERE number = 1"
        )
        refuses("check constraint", alter, payer, negative, error=errors.IntegrityError)
        assert len(owner) == 2
    finally:
        alter(fresh_database, "DROP OWNED BY looker, payer", "DROP ROLE looker", "DROP ROLE payer")
