"""Releases that a ledger stores with their payments: formats, bounds, crashes, second draws."""

import hashlib
import io
import json
import os
import pickle
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import warnings
import zipfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse
from sklearn.cluster import KMeans
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from sklearn_dptda import (
    CubicalPersistence,
    DTMFiltration,
    PersistenceProfile,
    PrivatePersistence,
)
from sklearn_dptda.cluster import DPLloyd
from sklearn_dptda.decomposition import PrivatePCA
from sklearn_dptda.graph import EdgeFlip
from sklearn_dptda.model_selection import IncompleteReleases, release_once, release_replicates
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import (
    PrivacyAccountant,
    PrivacyBudgetExceeded,
    PrivacyLedgerError,
    ReleaseKey,
)
from sklearn_dptda.privacy._estimator import is_private
from sklearn_dptda.privacy._release import as_arrays, learnt
from sklearn_dptda.privacy._stored_release import from_bytes, to_bytes
from sklearn_dptda.utils._privacy_checks import make_check_data
from sklearn_dptda.utils._privacy_checks._check_tools import released
from sklearn_dptda.utils.discovery import all_estimators
from sklearn_dptda.utils.estimator_checks import make_instance

X = np.random.default_rng(0).uniform(size=(300, 2))
NOISE = pytest.mark.filterwarnings("ignore:At epsilon")
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


def test_values_come_back_as_they_were():
    content = to_bytes(VALUES)
    assert same(from_bytes(content), VALUES)
    assert to_bytes(VALUES) == content


def test_a_file_of_the_first_format_is_read():
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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "damaged"),
        (to_bytes(VALUES)[:-30], "damaged"),
        (archive({}), "damaged"),
        (archive({"release.json": "{}"}), "damaged"),
        (archive({"release.json": '{"format_version": 1, "release": {"array": 0}}'}), "damaged"),
        (archive({"release.json": '{"format_version": 1, "release": {"unknown": 0}}'}), "damaged"),
        (
            archive(
                {
                    "release.json": '{"format_version": 1, "release": {"array": 0}}',
                    "0.npy": pickled_array(),
                }
            ),
            "damaged",
        ),
        (archive({"release.json": '{"format_version": 2, "release": []}'}), "a newer version"),
        (archive({"release.json": "[" * 100_000}), "damaged"),
        (
            archive({"release.json": '{"format_version": 1, "release": {"array": 1e400}}'}),
            "damaged",
        ),
        (archive({"release.json": _SPARSE, "0.npy": npy(1.0), "1.npy": npy(9**9)}), "damaged"),
        # A megabyte that would expand to a gigabyte.
        (archive({"release.json": "{}"}, zipfile.ZIP_DEFLATED), "damaged"),
    ],
)
def test_what_cannot_be_read_says_so_and_runs_nothing(content, message):
    with pytest.raises(ValueError, match=message):
        from_bytes(content)


@pytest.mark.parametrize("value", [object(), lambda: 0, {1: {2, 3}}, np.zeros(1, dtype="V3")])
def test_what_is_no_number_text_or_array_is_not_stored(value):
    with pytest.raises(TypeError, match="is not a number, string or array"):
        to_bytes(value)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.engines)])
def place(request, tmp_path):
    return (
        tmp_path / "a.db"
        if request.param == "sqlite"
        else request.getfixturevalue("fresh_database")
    )


@pytest.mark.engines
def test_a_release_is_there_on_another_day(place):
    with PrivacyAccountant(9.0, 1e-3, path=place) as budget:
        model = DPLloyd(2, bounds=(0, 1), adjacency="replace-one").fit(X)
        functions = DTMFiltration(bounds=(0, 1), resolution=7).fit_transform([X])
        diagrams = PrivatePersistence(clipped_share=True).fit(functions)
        returned = diagrams.transform(functions)
        profile = PersistenceProfile().fit_transform(functions)
        budget.spend(1.0, what="a number")
    again = PrivacyAccountant.open(place)
    first, second, third, last = again.releases()
    assert [r.number for r in again.releases()] == [1, 2, 3, 4]
    assert (first.estimator, last.what, last.size) == ("DPLloyd", "a number", None)
    stored = again.release(first.key)
    assert same(stored["cluster_centers_"], model.cluster_centers_)
    assert "privacy_guarantee_" not in stored and stored["n_features_in_"] == 2
    stored = again.release(second.key)
    assert same(stored["transform"], returned) and same(stored["cap_"], diagrams.cap_)
    assert same(stored["clipped_share_"], diagrams.clipped_share_)
    assert same(again.release(third.key)["transform"], profile)
    with pytest.raises(LookupError, match="was not stored"):
        again.release(last.key)
    with pytest.raises(LookupError, match="nothing was paid"):
        again.release("0" * 32)
    with pytest.raises(ValueError, match="key must be a string of 32"):
        again.release("short")


PRIVATE = {
    name: make_instance(kind) for name, kind in all_estimators() if is_private(make_instance(kind))
}


@pytest.mark.parametrize("name", PRIVATE)
def test_every_private_estimator_stores_what_it_releases_and_nothing_else(name, tmp_path):
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


def test_graphs_come_back_with_their_probability_of_flips(tmp_path):
    budget = PrivacyAccountant(9.0, path=tmp_path / "a.db")
    A = np.triu(np.random.default_rng(0).integers(0, 2, (40, 40)), 1)
    for storage in ("sparse", "packed"):
        graph = EdgeFlip(2.0, storage=storage, accountant=budget).fit_transform(A + A.T)
        stored = budget.release(budget.releases()[-1].key)["transform"]
        assert type(stored) is type(graph) and stored.flip_probability == graph.flip_probability
        assert same(stored.toarray(), graph.toarray()) and stored.links == graph.links


def test_large_releases_are_files_and_too_large_ones_are_not_kept(tmp_path):
    path = tmp_path / "a.db"
    budget = PrivacyAccountant(9.0, path=path, keep=2)
    small, large, huge = (np.random.default_rng(0).uniform(size=n) for n in (10, 200_000, 300_000))
    for key, array in (("a" * 32, small), ("b" * 32, large), ("c" * 32, large)):
        budget.spend(0.1, key=key)
        budget.store(key, array)
        assert same(budget.release(key), array)
    (file,) = (tmp_path / "a.db.releases").iterdir()
    assert path.stat().st_size < 1e5 < file.stat().st_size
    budget.spend(0.1, key="d" * 32)
    with pytest.raises(ValueError, match=r"2\.29 MiB"):
        budget.store("d" * 32, huge)
    file.write_bytes(b"other")
    with pytest.raises(PrivacyLedgerError, match="damaged"):
        budget.release("b" * 32)
    file.unlink()
    with pytest.raises(PrivacyLedgerError, match="No such file"):
        budget.release("b" * 32)
    assert len(budget) == 4


@pytest.mark.parametrize(
    "options", [{"keep": 0, "path": "a.db"}, {}, {"path": "a.db", "composition": "basic"}]
)
def test_what_is_kept_is_chosen_and_exact_results_are_not(options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    budget = PrivacyAccountant(np.inf, **options)
    kept = "composition" in options
    for epsilon in (1.0, np.inf):
        DPLloyd(2, epsilon, bounds=(0, 1), accountant=budget).fit(X)
    sizes = [release.size is not None for release in budget.releases()]
    assert sizes == [kept, False]
    # Handles that were pickled continue in the same way.
    again = pickle.loads(pickle.dumps(budget))
    DPLloyd(2, bounds=(0, 1), accountant=again).fit(X)
    assert (budget.releases()[-1].size is not None) == kept


@pytest.mark.parametrize("keep", [-1, None, "all", float("nan")])
def test_bad_bounds_make_no_ledger(keep, tmp_path):
    with pytest.raises(ValueError, match="keep must be a number of MiB"):
        PrivacyAccountant(1.0, path=tmp_path / "a.db", keep=keep)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("action", ["always", "error"])
def test_a_full_disk_loses_no_release(tmp_path, monkeypatch, action):
    budget = PrivacyAccountant(9.0, 1e-3, path=tmp_path / "a.db")

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sklearn_dptda.privacy._ledger.write_release", full)
    with warnings.catch_warnings(record=True, action=action) as said:
        model = DPLloyd(2, bounds=(0, 1), accountant=budget).fit(X)
    assert model.cluster_centers_.shape == (2, 2) and len(budget) == 1
    assert budget.releases()[0].size is None
    if action == "always":
        assert "could not be stored" in str(said[-1].message)


def test_nothing_is_stored_without_a_payment_or_twice(tmp_path):
    budget = PrivacyAccountant(9.0, path=tmp_path / "a.db")
    with pytest.raises(PrivacyLedgerError, match="Nothing was paid"):
        budget.store("a" * 32, 1.0)
    budget.spend(1.0, key="a" * 32)
    budget.store("a" * 32, 1.0)
    budget.store("a" * 32, 1.0)
    with pytest.raises(PrivacyLedgerError, match="Another release"):
        budget.store("a" * 32, 2.0)
    assert budget.release("a" * 32) == 1.0


def test_equal_releases_have_equal_bytes_and_rounding_is_no_second_draw(tmp_path):
    array = np.random.default_rng(0).uniform(size=(5, 3))
    assert to_bytes(array) == to_bytes(np.asfortranarray(array))
    assert to_bytes(array) == to_bytes(np.repeat(array, 2, axis=0)[::2])
    with pytest.raises(TypeError, match="MaskedArray"):
        to_bytes(np.ma.array([1, 999], mask=[0, 1]))
    budget = PrivacyAccountant(9.0, path=tmp_path / "a.db")
    budget.spend(1.0, key="a" * 32)
    budget.store("a" * 32, {"x": array})
    budget.store("a" * 32, {"x": np.nextafter(array, 2)})
    assert same(budget.release("a" * 32)["x"], array)
    for other in (array + 1e-6, array[:-1], {"x": 1}):
        with pytest.raises(PrivacyLedgerError, match="Another release"):
            budget.store("a" * 32, {"x": other})


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([1e-10, 5e-10], [-7e-10, 2e-10]),
        (np.array([3_000_000_000]), np.array([3_000_000_002])),
        ([1e10, 4.0], [1e10, 5.0]),
    ],
)
def test_draws_of_any_size_are_told_apart(first, second, tmp_path):
    budget = PrivacyAccountant(9.0, path=tmp_path / "a.db")
    budget.spend(1.0, key="a" * 32)
    budget.store("a" * 32, np.asarray(first))
    budget.store("a" * 32, np.asarray(first))
    with pytest.raises(PrivacyLedgerError, match="Another release"):
        budget.store("a" * 32, np.asarray(second))


@pytest.mark.skipif(os.name != "posix", reason="symbolic links and modes of POSIX")
def test_files_beside_a_ledger_are_found_by_all_its_names_and_as_private_as_it_is(
    tmp_path, monkeypatch
):
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


@pytest.mark.engines
def test_replicates_of_people_are_paid_as_people(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["x", "y"]).assign(person=np.arange(len(X)) % 100)
    functions = DTMFiltration(0.2, bounds=(0, 1), resolution=6, groups="person").fit_transform(
        [frame]
    )
    budget = PrivacyAccountant(90.0, path=tmp_path / "a.db")
    private = PrivatePersistence(9.0, accountant=budget)
    release_replicates(private, functions, 3)
    private.fit_transform(functions)
    units = {spend.unit for spend in budget.spends()}
    assert len(budget) == 4 and len(units) == 1 and "one person" in units.pop()


@pytest.mark.parametrize("other", ["", ".", "/elsewhere", "../elsewhere", "x" * 64, 5, b"a"])
def test_a_digest_names_a_file_of_the_ledger_or_nothing(other, tmp_path, monkeypatch):
    path, elsewhere = tmp_path / "a.db", tmp_path / "elsewhere"
    elsewhere.write_bytes(b"a file of the reader")
    budget = PrivacyAccountant(9.0, path=path)
    budget.spend(1.0, key="a" * 32)
    budget.store("a" * 32, [1.0])
    other = str(elsewhere) if other == "/elsewhere" else other
    opened = []
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE privacy_release SET digest = ?, content = NULL", (other,))
    module = "sklearn_dptda.privacy._stored_release"
    monkeypatch.setattr(f"{module}.open", lambda *place: opened.append(place), raising=False)
    with pytest.raises(PrivacyLedgerError, match="it is damaged"):
        budget.release("a" * 32)
    assert not opened


@pytest.mark.parametrize("content", ["text", 5, 0.5])
def test_content_that_is_not_bytes_is_damaged(content, tmp_path):
    path = tmp_path / "a.db"
    budget = PrivacyAccountant(9.0, path=path)
    budget.spend(1.0, key="a" * 32)
    budget.store("a" * 32, [1.0])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE privacy_release SET content = ?", (content,))
    with pytest.raises(PrivacyLedgerError, match="it is damaged"):
        budget.release("a" * 32)


@pytest.mark.engines
def test_lost_files_are_written_again(tmp_path, monkeypatch):
    monkeypatch.setattr("sklearn_dptda.privacy._stored_release._LARGE", 100)
    budget, key = PrivacyAccountant(9.0, 1e-3, path=tmp_path / "a.db"), ReleaseKey()
    model = DPLloyd(2, bounds=(0, 1), adjacency="replace-one", accountant=budget)
    first = release_once(model, X, key)
    (file,) = (tmp_path / "a.db.releases").iterdir()
    for damage in (file.unlink, lambda: file.write_bytes(b"")):
        damage()
        with pytest.raises(PrivacyLedgerError, match="cannot be read"):
            budget.release(key)
        release_once(model, X, key)
        assert same(budget.release(key)["weights_"], first["weights_"]) and len(budget) == 1
    replicates = release_replicates(model, X, 3, key=ReleaseKey._of(b"k" * 32))
    shutil.rmtree(tmp_path / "a.db.releases")
    again = release_replicates(model, X, 3, key=ReleaseKey._of(b"k" * 32))
    assert same(replicates, again) and len(budget) == 4
    assert all(budget.release(each.key) for each in budget.releases()[1:])


@pytest.mark.parametrize("error", [MemoryError, RecursionError, ArithmeticError])
def test_whatever_fails_in_storing_loses_no_release(error, tmp_path, monkeypatch):
    def fail(*args):
        raise error("on purpose: nothing was released.")

    monkeypatch.setattr("sklearn_dptda.privacy._accountant.to_bytes", fail)
    budget = PrivacyAccountant(9.0, 1e-3, path=tmp_path / "a.db")
    with pytest.warns(RuntimeWarning, match="could not be stored") as said:
        model = DPLloyd(2, bounds=(0, 1), accountant=budget).fit(X)
    assert len(model.weights_) == 2 and "nothing was released" not in str(said[0].message)


@pytest.mark.engines
@NOISE
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_replicate_that_is_a_second_draw_is_not_returned(n_jobs, tmp_path):
    budget, key = PrivacyAccountant(9.0, path=tmp_path / "a.db"), ReleaseKey()
    release_replicates(pipeline(budget), [X], 3, key=key)
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        content = to_bytes({"transform": "another"})
        connection.execute(
            "UPDATE privacy_release SET content = ?, digest = ?, size = 1 WHERE rowid = 2",
            (content[:-1], hashlib.sha256(content).hexdigest()),
        )
    # A release that cannot be read is drawn again, and differs from the digest in the ledger.
    with pytest.raises(IncompleteReleases) as caught:
        release_replicates(pipeline(budget), [X], 3, key=key, n_jobs=n_jobs)
    assert [release is None for release in caught.value.releases] == [False, True, False]
    assert len(budget) == 3


class PaysItself(DPLloyd):
    """Of somebody else, and older: its payment returns a plain list."""

    def _pay(self, *args, **options):
        return list(super()._pay(*args, **options))


def test_payments_of_others_return_plain_lists(tmp_path):
    budget = PrivacyAccountant(9.0, 1e-3, path=tmp_path / "a.db")
    assert len(PaysItself(2, bounds=(0, 1), accountant=budget).fit(X).weights_) == 2
    assert budget.releases()[0].size is None


class Fresh(DPLloyd):
    """A broken twin: under a key it draws with coins of its own."""

    def _pay(self, *args, **options):
        paid = super()._pay(*args, **options)
        paid[:] = [None] * len(paid)
        return paid


@pytest.mark.engines
def test_a_second_draw_under_one_key_is_not_released(tmp_path):
    budget, key = PrivacyAccountant(9.0, 1e-3, path=tmp_path / "a.db"), ReleaseKey()
    honest = DPLloyd(2, bounds=(0, 1), accountant=budget)
    assert same(release_once(honest, X, key), release_once(honest, X, key))
    assert same(budget.release(key), budget.release(budget.releases()[0].key))
    broken, key = Fresh(2, bounds=(0, 1), accountant=budget), ReleaseKey()
    first = release_once(broken, X, key)
    with pytest.raises(PrivacyLedgerError, match="Another release"):
        release_once(broken, X, key)
    assert same(budget.release(key)["cluster_centers_"], first["cluster_centers_"])


def test_a_ledger_from_before_learns_to_store(tmp_path):
    path = tmp_path / "a.db"
    PrivacyAccountant(9.0, path=path).spend(1.0)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE privacy_release")
    budget = PrivacyAccountant.open(path)
    DPLloyd(2, delta=0.0, bounds=(0, 1), adjacency="replace-one", accountant=budget).fit(X)
    assert [release.size is None for release in budget.releases()] == [True, False]


def pipeline(budget):
    return make_pipeline(
        DTMFiltration(bounds=(0, 1), resolution=7), PrivatePersistence(1.0, accountant=budget)
    )


@pytest.mark.engines
@NOISE
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_replicates_go_on_where_they_stopped(tmp_path, n_jobs):
    budget, key = PrivacyAccountant(12.0, path=tmp_path / "a.db"), ReleaseKey()
    releases = release_replicates(pipeline(budget), [X], 12, key=key, n_jobs=n_jobs)
    assert len(budget) == 12 and budget.remaining().epsilon == 0
    assert all(release.size for release in budget.releases())
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        connection.execute("DELETE FROM privacy_release WHERE rowid % 2")
    again = release_replicates(pipeline(budget), [X], 12, key=key, n_jobs=n_jobs)
    assert same(again, releases) and len(budget) == 12
    assert all(release.size for release in budget.releases())
    with pytest.raises(PrivacyLedgerError, match="Something else was paid"):
        release_replicates(pipeline(budget), [X + 0.01], 12, key=key)
    with pytest.raises(PrivacyLedgerError, match="Something else was paid"):
        release_replicates(pipeline(budget), [X], 12, key=key, random_state=0)
    with pytest.raises(ValueError, match="no accountant"):
        release_replicates(pipeline(None), [X], 12, key=key)


@pytest.mark.engines
@NOISE
def test_more_replicates_than_the_budget_covers_are_those_that_are_stored(tmp_path):
    budget, key = PrivacyAccountant(5.0, path=tmp_path / "a.db"), ReleaseKey()
    releases = release_replicates(pipeline(budget), [X], 5, key=key)
    with pytest.raises(IncompleteReleases, match="2 of 7 releases") as caught:
        release_replicates(pipeline(budget), [X], 7, key=key)
    assert isinstance(caught.value.__cause__, PrivacyBudgetExceeded) and len(budget) == 5
    assert same(caught.value.releases, [*releases, None, None])
    # With other records, nothing is returned, and the error does not mention the budget.
    with pytest.raises(PrivacyLedgerError, match="Something else was paid"):
        release_replicates(pipeline(budget), [X + 0.01], 7, key=key)
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        connection.execute("DELETE FROM privacy_release")
    with pytest.raises(PrivacyBudgetExceeded):
        release_replicates(pipeline(budget), [X], 7, key=key)


def points_after(*steps):
    """A pipeline that is given records behind its private step."""
    return make_pipeline(*steps, FunctionTransformer())


@pytest.mark.engines
@pytest.mark.filterwarnings("ignore:KMeans")
@pytest.mark.parametrize(
    "make",
    [
        lambda budget: points_after(DPLloyd(3, bounds=(0, 1), accountant=budget)),
        lambda budget: points_after(PrivatePCA(2, bounds=(0, 1), accountant=budget)),
        lambda budget: make_pipeline(DPLloyd(3, bounds=(0, 1), accountant=budget), KMeans(2)),
        lambda budget: FeatureUnion(
            [
                ("one", DPLloyd(3, bounds=(0, 1), accountant=budget)),
                ("two", DPLloyd(2, bounds=(0, 1), accountant=budget)),
            ]
        ),
        lambda budget: GridSearchCV(
            DPLloyd(2, bounds=(0, 1), accountant=budget), {"n_clusters": [2, 3]}, cv=2
        ),
    ],
    ids=["distances", "projections", "clusters of distances", "union", "search"],
)
@pytest.mark.parametrize("keyed", [True, False])
def test_what_is_no_release_is_not_stored(make, keyed, tmp_path):
    budget = PrivacyAccountant(1e3, 0.1, path=tmp_path / "a.db")
    key = ReleaseKey() if keyed else None
    estimator = make(budget)
    if keyed and "kmeans" in str(estimator.get_params()):
        estimator.set_params(kmeans__random_state=0)
    release_replicates(estimator, X, 2, key=key)
    for release in budget.releases():
        if release.size is not None:
            stored = budget.release(release.key)
            # No array has as many rows as there are records.
            assert all(300 not in np.shape(part) for part in as_arrays(stored))
            assert set(stored) <= set(learnt(DPLloyd(2, bounds=(0, 1)).fit(X))) | {"n_samples_"}


@pytest.mark.engines
@NOISE
def test_exact_diagrams_in_a_private_box_are_not_stored(tmp_path):
    budget = PrivacyAccountant(1e3, path=tmp_path / "a.db")
    box = PrivateBounds(1.0, start=(0, 1), accountant=budget)
    exact = make_pipeline(DTMFiltration(bounds=box, resolution=5), CubicalPersistence())
    release_replicates(exact, [X], 2)
    partly = make_pipeline(
        DTMFiltration(bounds=PrivateBounds(np.inf, accountant=PrivacyAccountant(np.inf))),
        PersistenceProfile(1.0, accountant=budget),
    )
    release_replicates(partly, [X], 2)
    assert len(budget) == 4 and all(release.size is None for release in budget.releases())


@NOISE
def test_replicates_without_a_key_are_stored_as_well(tmp_path):
    budget = PrivacyAccountant(12.0, path=tmp_path / "a.db")
    releases = release_replicates(pipeline(budget), [X], 4)
    stored = [budget.release(each.key)["transform"] for each in budget.releases()]
    assert same(stored, releases)


# A process that ends at some moment of a release, as in a power failure.
DIES = """
import os, sys
import numpy as np
from sklearn_dptda.cluster import DPLloyd
from sklearn_dptda.model_selection import release_once
from sklearn_dptda.privacy import PrivacyAccountant, ReleaseKey, _ledger, _noise

moment, folder = sys.argv[1:]
spend, keep, noise = _ledger.Ledger.spend, _ledger.Ledger.keep, _noise.NoiseSource.__init__

def die(*args, **kwargs):
    os._exit(7)

def then_die(function):
    def call(*args, **kwargs):
        function(*args, **kwargs)
        os._exit(7)
    return call

budget = PrivacyAccountant.open(os.path.join(folder, "a.db"))
key = ReleaseKey.open(os.path.join(folder, "release.key"))
if moment == "before the payment":
    _ledger.Ledger.spend = die
elif moment == "between payment and draw":
    _ledger.Ledger.spend = then_die(spend)
elif moment == "in the draw":
    _noise.NoiseSource.__init__ = then_die(noise)
elif moment == "between draw and store":
    _ledger.Ledger.keep = die
elif moment == "after the store":
    _ledger.Ledger.keep = then_die(keep)
X = np.random.default_rng(0).uniform(size=(300, 2))
release_once(DPLloyd(2, bounds=(0, 1), accountant=budget), X, key)
"""
MOMENTS = {
    "before the payment": (0, 0),
    "between payment and draw": (1, 0),
    "in the draw": (1, 0),
    "between draw and store": (1, 0),
    "after the store": (1, 1),
}


@pytest.mark.nightly
@pytest.mark.parametrize("moment", MOMENTS)
def test_whenever_a_process_dies_one_payment_gives_one_release(moment, tmp_path):
    budget = PrivacyAccountant(2.0, 1e-3, path=tmp_path / "a.db")
    key = ReleaseKey.open(tmp_path / "release.key")
    script = tmp_path / "dies.py"
    script.write_text(textwrap.dedent(DIES), encoding="utf-8")
    run = subprocess.run([sys.executable, script, moment, tmp_path], capture_output=True, text=True)
    assert run.returncode == 7, run.stderr
    releases = budget.releases()
    assert (len(releases), sum(r.size is not None for r in releases)) == MOMENTS[moment]
    # The release that the same task would have made without dying: the coins follow from the key.
    other = PrivacyAccountant(2.0, 1e-3, path=tmp_path / "b.db")
    expected = release_once(DPLloyd(2, bounds=(0, 1), accountant=other), X, key)
    if MOMENTS[moment][1]:
        assert same(budget.release(key)["cluster_centers_"], expected["cluster_centers_"])
    found = release_once(DPLloyd(2, bounds=(0, 1), accountant=budget), X, key)
    assert same(found, expected) and same(budget.release(key), budget.release(key))
    (release,) = budget.releases()
    assert release.size and budget.total().epsilon == 1.0


KILLED = """
import os, signal, sys
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn_dptda import DTMFiltration, PrivatePersistence
from sklearn_dptda.model_selection import release_replicates
from sklearn_dptda.privacy import PrivacyAccountant, ReleaseKey, _ledger

folder, after = sys.argv[1], int(sys.argv[2])
budget = PrivacyAccountant.open(os.path.join(folder, "a.db"))
key = ReleaseKey.open(os.path.join(folder, "release.key"))
keep, kept = _ledger.Ledger.keep, []

def killed(*args):
    keep(*args)
    kept.append(1)
    if len(kept) == after:
        os.kill(os.getpid(), signal.SIGKILL)

_ledger.Ledger.keep = killed
X = np.random.default_rng(0).uniform(size=(300, 2))
pipeline = make_pipeline(
    DTMFiltration(bounds=(0, 1), resolution=7), PrivatePersistence(1.0, accountant=budget)
)
release_replicates(pipeline, [X], 9, key=key)
"""


@NOISE
@pytest.mark.nightly
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no signal that cannot be caught")
def test_a_main_process_that_is_killed_again_and_again_loses_nothing(tmp_path):
    budget = PrivacyAccountant(9.0, path=tmp_path / "a.db")
    key = ReleaseKey.open(tmp_path / "release.key")
    script = tmp_path / "killed.py"
    script.write_text(textwrap.dedent(KILLED), encoding="utf-8")
    seen = {}
    for _ in range(3):
        run = subprocess.run([sys.executable, script, tmp_path, "2"], capture_output=True)
        assert run.returncode == -signal.SIGKILL
        stored = {r.key: budget.release(r.key) for r in budget.releases() if r.size is not None}
        # A release that was seen is never drawn again.
        assert len(stored) == len(seen) + 2
        assert all(same(stored[name], release) for name, release in seen.items())
        seen = stored
    releases = release_replicates(pipeline(budget), [X], 9, key=key)
    assert len(budget) == 9 and all(r.size is not None for r in budget.releases())
    assert same([budget.release(r.key)["transform"] for r in budget.releases()], releases)
    assert not all(same(release, releases[0]) for release in releases)


def test_keys_in_files_are_for_their_owner_alone(tmp_path):
    path = tmp_path / "release.key"
    key = ReleaseKey.open(path)
    assert ReleaseKey.open(path).name() == key.name() != ReleaseKey().name()
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600
        path.chmod(0o640)
        with pytest.raises(ValueError, match="Other users may read"):
            ReleaseKey.open(path)
        path.chmod(0o600)
    path.write_text("no key")
    with pytest.raises(ValueError, match="does not hold a key"):
        ReleaseKey.open(path)


def test_processes_that_open_a_new_key_at_once_get_one_key(tmp_path, monkeypatch):
    path, original, others = tmp_path / "release.key", os.open, []

    def opened(*arguments, **options):
        descriptor = original(*arguments, **options)
        if not others:
            others.append(None)
            others.append(ReleaseKey.open(path))
        return descriptor

    monkeypatch.setattr(os, "open", opened)
    assert ReleaseKey.open(path).name() == others[1].name()
    assert [file.name for file in tmp_path.iterdir()] == ["release.key"]


def test_a_full_disk_leaves_no_part_of_a_key(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            ReleaseKey.open(tmp_path / "release.key")
    assert not list(tmp_path.iterdir())
    ReleaseKey.open(tmp_path / "release.key")


def test_a_key_does_not_stay_under_its_temporary_name(tmp_path):
    path, left = tmp_path / "release.key", tmp_path / f".sklearn_dptda-{'a' * 32}"
    key = ReleaseKey.open(path)
    os.link(path, left)
    assert ReleaseKey.open(path).name() == key.name()
    assert not left.exists()


GRANTS = """
CREATE ROLE looker LOGIN; CREATE ROLE payer LOGIN;
GRANT SELECT ON privacy_budget, privacy_spend, privacy_release TO looker, payer;
GRANT INSERT ON privacy_spend, privacy_release TO payer;
GRANT UPDATE (number, spent_epsilon, spent_delta, spent_rho) ON privacy_budget TO payer;
"""


@pytest.mark.engines
def test_roles_of_a_team(fresh_database):
    import sqlalchemy

    owner = PrivacyAccountant(3.0, 1e-3, path=fresh_database)
    # States permanently whose losses are counted.
    owner.spend(0.25, adjacency="add-remove", unit="one row")
    url = sqlalchemy.engine.make_url(fresh_database)

    def run(statements, role=None):
        named = url.set(drivername="postgresql+psycopg", **({"username": role} if role else {}))
        with sqlalchemy.create_engine(named, poolclass=sqlalchemy.NullPool).begin() as connection:
            for statement in filter(str.strip, statements.split(";")):
                connection.execute(sqlalchemy.text(statement))

    def opened(role):
        return PrivacyAccountant.open(url.set(username=role).render_as_string(False))

    run(GRANTS)
    try:
        model = DPLloyd(2, bounds=(0, 1), accountant=opened("payer")).fit(X)
        _, release = opened("looker").releases()
        stored = opened("looker").release(release.key)
        assert same(stored["cluster_centers_"], model.cluster_centers_)
        assert opened("looker").remaining().epsilon == 1.75
        with pytest.raises(PrivacyLedgerError, match="permission denied"):
            opened("looker").spend(0.1, adjacency="add-remove")
        for column in ("epsilon", "home", "unit", "adjacency"):
            with pytest.raises(sqlalchemy.exc.ProgrammingError, match="permission denied"):
                run(f"UPDATE privacy_budget SET {column} = NULL", "payer")
        with pytest.raises(sqlalchemy.exc.ProgrammingError, match="permission denied"):
            run("DELETE FROM privacy_release", "payer")
        with pytest.raises(sqlalchemy.exc.IntegrityError, match="check constraint"):
            run(
                "INSERT INTO privacy_spend SELECT 'other', 3, time, -3, delta, rho, adjacency, "
                "unit, what, estimator, parameters FROM privacy_spend WHERE number = 1",
                "payer",
            )
        assert len(owner) == 2
    finally:
        run("DROP OWNED BY looker, payer; DROP ROLE looker; DROP ROLE payer")
