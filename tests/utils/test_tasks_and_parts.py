"""Tasks on foreign engines, and engines for rows that return wrong results."""

import ast
import os
from functools import reduce
from itertools import combinations_with_replacement, product
from operator import add
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config, register_parallel_backend
from joblib.parallel import SequentialBackend
from sklearn.base import clone

import sklearn_dptda
from sklearn_dptda.cluster import DPLloyd, DPToMATo
from sklearn_dptda.decomposition import PrivatePCA
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import PrivacyAccountant
from sklearn_dptda.rows._private_cubes import CellCounts
from sklearn_dptda.rows._rows import CHANGED, Rows, Tally, checksum
from sklearn_dptda.synthetic import PrivateMeasure
from sklearn_dptda.utils._tasks import Failed, outcomes, run, tasks_may_repeat
from tests._fragile import KILL, wait_until
from tests._refusals import refuses, refuses_unpaid

X = np.random.default_rng(0).uniform(size=(300, 2))


class Foreign(SequentialBackend):
    """Runs elsewhere, as far as anybody knows."""


def test_tasks_may_repeat_on_engines_that_are_not_of_joblib():
    register_parallel_backend("foreign", Foreign)
    for known in ("sequential", "threading", "loky", "multiprocessing"):
        with parallel_config(backend=known):
            assert not tasks_may_repeat() and not tasks_may_repeat(1)
            # Processes of this machine may be killed as well.
            assert tasks_may_repeat(2) == (known in ("loky", "multiprocessing"))
    with parallel_config(backend="foreign"):
        assert tasks_may_repeat()
        assert run(_sum, [(i,) for i in range(4)], 10) == [10, 11, 12, 13]


def test_outcomes_has_a_failed_task_beside_the_others():
    found = outcomes(_divide, [(2,), (0,), (4,)], 8)
    assert (found[0], found[2]) == (4, 2) and isinstance(found[1].error, ZeroDivisionError)
    assert isinstance(found[1], Failed)
    refuses(None, run, _divide, [(2,), (0,)], 8, error=ZeroDivisionError)


def _is_on_disk(array):
    return isinstance(array, np.memmap)


@pytest.mark.engines
def test_run_writes_no_large_records_for_workers():
    large = np.zeros(1 << 18)
    with parallel_config(backend="loky", n_jobs=2):
        assert run(_is_on_disk, [(large,), (large,)]) == [False, False]


def test_parallel_loops_write_no_records_for_workers():
    found = []
    for path in Path(sklearn_dptda.__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "Parallel(" in text else ():
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "Parallel":
                found.append([k.value.value for k in node.keywords if k.arg == "max_nbytes"])
    assert found and all(values == [None] for values in found)


# One kind of death in each backend: what follows a death does not depend on the backend, and
# repeated deaths take long in loky.
@pytest.mark.engines
def test_run_repeats_tasks_of_a_killed_process(tmp_path):
    with parallel_config(backend="loky", n_jobs=2):
        assert run(_dies, [(i,) for i in range(20)], tmp_path, False, 10) == list(range(20))
    assert (tmp_path / "dying").exists()


@pytest.mark.engines
def test_outcomes_has_the_others_if_a_task_kills_each_process(tmp_path):
    with parallel_config(backend="multiprocessing", n_jobs=2):
        found = outcomes(_dies, [(i,) for i in range(20)], tmp_path, True, 0)
    assert isinstance(found[0], Failed) and "terminated" in str(found[0].error)
    assert found[1:] == list(range(1, 20))


@pytest.mark.engines
def test_run_shows_progress_of_processes(capfd):
    with parallel_config(backend="multiprocessing"):
        run(_sum, [(i,) for i in range(4)], 10, n_jobs=2, verbose=50)
    seen = capfd.readouterr()
    assert "Done   4" in seen.out + seen.err


def test_outcomes_keeps_what_is_finished_at_ctrl_c():
    items = [(i,) for i in range(6)]
    found = outcomes(_interrupts, items)
    assert found[:3] == [0, 1, 2]
    assert all(isinstance(each.error, KeyboardInterrupt) for each in found[3:])
    refuses(None, run, _interrupts, items, error=KeyboardInterrupt)


class Strange:
    """Sums over the parts of rows, and hands over something else from some pass on."""

    def __init__(self, result, sound):
        self.result, self.sound = result, sound

    def map_reduce(self, function):
        self.sound -= 1
        return function(X) if self.sound >= 0 else self.result


@pytest.mark.parametrize("sound", [0, 1, 2])
def test_fit_refuses_a_map_reduce_without_sums(sound):
    with pytest.raises(ValueError, match=r"map_reduce must|chunks are empty"):
        DPLloyd(2, bounds=(0, 1)).fit(Strange(None, sound))


def test_tally_quotes_nothing_of_errors_in_parts():
    def spoils(part):
        raise KeyError(f"secret {part}")

    tally = Tally.of(spoils, "row") + Tally(3, 1)
    with pytest.raises(ValueError, match=r"could not be read \(KeyError\)") as caught:
        tally.checked()
    assert "secret" not in str(caught.value) and caught.value.__cause__ is None


def test_fit_of_an_unreadable_part_costs_nothing():
    refuses_unpaid(None, DPLloyd(2, 0.5, bounds=(0, 1)).fit, Strange(Tally(0), 0))


class Passes:
    """Rows in two parts, as ``rows()`` has them when they are read."""

    def __init__(self, rows):
        self.rows = rows

    def map_reduce(self, function):
        return sum(map(function, np.array_split(self.rows(), 2)))


def _stream(rows):
    return lambda: iter(np.array_split(rows(), 2))


def _delayed(rows):
    dask = pytest.importorskip("dask")
    return [dask.delayed(lambda: rows()[:100])(), dask.delayed(lambda: rows()[100:])()]


def _next_number(Y):
    Y[7, 1] = np.nextafter(Y[7, 1], 1)


def _two_places(Y):
    Y[[3, 60], 0] = Y[[60, 3], 0]


def _another_row(Y):
    Y[9] = Y[10]


def _same_sums(Y):
    Y[:2] = Y[:2].mean(axis=0)


OF_ROWS = [
    DPLloyd(2, bounds=(0, 1), random_state=0),
    DPToMATo(bounds=(0, 1), random_state=0),
    PrivatePCA(1, bounds=(0, 1), random_state=0),
    PrivateMeasure(random_state=0),
    PrivateBounds(1.0, random_state=0),
]


CHANGES = [_next_number, _two_places, _another_row, _same_sums]
# Each container with each change, for one estimator after the other.
CHANGING = [
    pytest.param(
        OF_ROWS[i % len(OF_ROWS)],
        given,
        change,
        marks=[pytest.mark.engines] if given is _delayed else [],
    )
    for i, (given, change) in enumerate(product((Passes, _stream, _delayed), CHANGES))
]


@pytest.mark.parametrize(("private", "given", "change"), CHANGING)
def test_fit_notices_rows_that_change_between_passes(private, given, change):
    budget = PrivacyAccountant(np.inf)

    def rows():
        Y = X.copy()
        if len(budget):
            change(Y)
        return Y

    fitted = clone(private).set_params(accountant=budget)
    said = refuses(None, fitted.fit_chunks, given(rows))
    assert said == CHANGED and len(budget) == 1
    assert not hasattr(fitted, "privacy_guarantee_")


@pytest.mark.parametrize(
    "private",
    [OF_ROWS[0], *(pytest.param(kind, marks=pytest.mark.laws) for kind in OF_ROWS[1:])],
    ids=lambda private: type(private).__name__,
)
def test_fit_takes_rows_in_another_order_at_each_pass(private):
    rng = np.random.default_rng(0)

    def rows():
        Y = X[rng.permutation(len(X))]
        return np.asfortranarray(Y) if rng.random() < 0.5 else Y

    clone(private).fit(Passes(rows))


def test_checksum_depends_on_rows_alone():
    rng = np.random.default_rng(0)
    for table in (rng.normal(size=(5000, 3)), rng.integers(0, 2, size=(5000, 70)).astype(float)):
        parts = np.array_split(table[rng.permutation(len(table))], [0, 1, 4000])
        assert checksum(table) == sum(map(checksum, parts)) % 2**64
        with np.errstate(all="raise"):
            assert checksum(np.asfortranarray(table)) == checksum(table)
    # All tables of three rows of two truth values have different codes.
    rows = list(product((0.0, 1.0), repeat=2))
    tables = list(combinations_with_replacement(rows, 3))
    assert len({checksum(np.array(table)) for table in tables}) == len(tables)


def _sum(common, i):
    return common + i


def _interrupts(i):
    if i == 3:
        raise KeyboardInterrupt
    return i


def _dies(folder, always, victim, i):
    """The victim dies, once or ``always``; the first time, a later task runs beside it.

    That task waits for the victim, and ends with its process, because engines end all processes if
    one has died. Otherwise, all tasks might have finished before the engine notices the death.
    """
    begun, beside, dying = (folder / name for name in ("begun", "beside", "dying"))
    if i > victim and not dying.exists():
        wait_until(begun.exists, "the victim has begun")
        beside.touch()
        wait_until(lambda: False, "this process is ended")
    if i == victim:
        begun.touch()
        wait_until(beside.exists, "a task is running in the other process")
        if always or not dying.exists():
            dying.touch()
            os.kill(os.getpid(), KILL)
    return i


def _divide(common, i):
    return common // i


# Counts of cells.


@pytest.mark.parametrize(("d", "n_parts"), [(1, 2), (1, 60), (3, 1), (3, 9)])
def test_cell_counts_add_up_in_any_order(d, n_parts, rng):
    cells = rng.integers(0, 7, size=(500, d))
    expected = np.unique(cells, axis=0, return_counts=True)
    parts = [CellCounts.of(part) for part in np.array_split(cells, n_parts)]
    for order in (parts, parts[::-1]):
        assert all(map(np.array_equal, reduce(add, order).merged(), expected))
    coarse = reduce(add, parts).coarser(1).merged()
    assert all(map(np.array_equal, coarse, np.unique(cells >> 1, axis=0, return_counts=True)))


def test_cell_counts_merge_small_pieces_in_time(rng):
    total = CellCounts.of(np.arange(1000)[:, None])
    for _ in range(200):
        total += CellCounts.of(rng.integers(0, 1000, size=(50, 1)))
        assert sum(len(counts) for _, counts in total.pieces) < 2 * 1000 + 50


def test_tally_says_what_was_refused_and_adds_to_nothing():
    good, bad = Tally(3, (np.ones(2), 1)), Tally.of(int, "no number")
    assert (good + 0).n_rows == (0 + good).n_rows == 3
    both = good + good
    assert both.n_rows == 6 and both.total[0].tolist() == [2, 2] and both.total[1] == 2
    for mixed in (good + bad, bad + good, sum([good, bad, good])):
        refuses("values that are not numbers", mixed.checked)
    # Counts that do not add up are refused too, by value.
    assert (good + Tally(1, (np.ones(3), 1))).refused is not None


def test_rows_sum_mapped_and_selected_columns(rng):
    # Two batches.
    X = rng.normal(size=(40_000, 3))
    rows = Rows.of_array(X).map(np.sign).selected([2, 0])
    assert rows.n_features == 2
    assert (
        rows.sum(lambda part: (part > 0).sum(axis=0)).tolist()
        == (X > 0).sum(axis=0)[[2, 0]].tolist()
    )
