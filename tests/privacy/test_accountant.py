"""One budget, however the handle is passed on."""

import asyncio
import contextvars
import copy
import math
import multiprocessing
import pickle
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta

import joblib
import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from scipy.integrate import trapezoid
from scipy.stats import norm
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from sklearn_dptda import PrivatePersistence
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyBudgetExceeded, zcdp_epsilon, zcdp_rho
from sklearn_dptda.privacy._default_accountant import default_accountant
from sklearn_dptda.privacy._guarantee import Charge, Sums, ZCDPComposition
from tests._refusals import refuses, refuses_unpaid
from tests.privacy._ledgers import needs_fork
from tests.privacy._private_mean import PrivateMean

X = np.random.default_rng(0).uniform(size=(60, 2))
GRID = {"epsilon": [0.1, 0.2]}
# Two functions that are their own filtrations.
FUNCTIONS = [[0.0, 0.5], [0.2, 0.7]]
GIVEN = {"sensitivity": 0.1, "upper": 1.0}


def backends(*one_after_another):
    """Numbers of workers and their backends; workers in processes are engines."""
    serial = [("threading", n_jobs) for n_jobs in one_after_another]
    workers = [("loky", 2), ("multiprocessing", 2)]
    engines = [pytest.param(*each, marks=pytest.mark.engines) for each in workers]
    return pytest.mark.parametrize(("backend", "n_jobs"), [*serial, *engines])


def mean(accountant=None, epsilon=0.1):
    return PrivateMean(epsilon, bounds=(0, 1), accountant=accountant)


def pay(accountant, epsilon):
    accountant.spend(epsilon, what="worker")


@pytest.fixture(params=["memory", "file"])
def accountant(request, tmp_path):
    return PrivacyAccountant(1.0, path=None if request.param == "memory" else tmp_path / "a.db")


def test_accountant_copies_spend_from_one_budget(accountant):
    handles = [
        accountant,
        copy.copy(accountant),
        copy.deepcopy(accountant),
        pickle.loads(pickle.dumps(accountant)),
        clone(mean(accountant)).accountant,
        pickle.loads(pickle.dumps(mean(accountant))).accountant,
        copy.deepcopy({"a": [accountant]})["a"][0],
    ]
    for handle in handles:
        handle.spend(0.1)
    assert [len(handle) for handle in handles] == [7] * 7
    assert accountant.total().epsilon == pytest.approx(0.7)
    assert accountant.remaining().epsilon == pytest.approx(0.3)
    assert joblib.hash(accountant) == joblib.hash(accountant)


@backends(1, 2)
def test_accountant_counts_all_fits_of_a_grid_search(backend, n_jobs, tmp_path):
    # Forked workers use a file, and others what was in memory.
    path = tmp_path / "a.db" if backend == "multiprocessing" else None
    accountant = PrivacyAccountant(10.0, path=path)
    search = GridSearchCV(mean(accountant), GRID, cv=5, error_score="raise")
    with parallel_config(backend, n_jobs=n_jobs):
        search.fit(X)
    best = search.best_params_["epsilon"]
    spent = sorted(accountant.spends()["epsilon"])
    assert spent == sorted([0.1] * 5 + [0.2] * 5 + [best])
    assert len(accountant) == 11


@backends(2)
def test_default_accountant_reaches_workers_of_a_grid_search(backend, n_jobs):
    other = PrivacyAccountant(10.0)
    with PrivacyAccountant(10.0) as default, parallel_config(backend, n_jobs=n_jobs):
        assert default_accountant() is default
        search = GridSearchCV(mean(), GRID, cv=5, error_score="raise").fit(X)
    assert len(default) == 11 and search.estimator.accountant is None
    mean(other).fit(X)
    mean().fit(X)
    assert len(default) == 11 and len(other) == 1


@backends(2)
def test_accountant_in_plain_workers_spends_from_one_budget(backend, n_jobs):
    accountant = PrivacyAccountant(1.0)
    accountant.spend(0.1)
    with parallel_config(backend, n_jobs=n_jobs):
        Parallel()(delayed(pay)(accountant, 0.1) for _ in range(9))
    assert len(accountant) == 10
    refuses(None, accountant.spend, 0.01, error=PrivacyBudgetExceeded)


@backends(2)
def test_default_accountant_is_the_inner_one_when_entered_twice(backend, n_jobs):
    with PrivacyAccountant(math.inf) as a, PrivacyAccountant(math.inf) as b:
        with a:
            mean().fit(X)
        private = mean()
        with parallel_config(backend, n_jobs=n_jobs):
            Parallel()(delayed(private.fit)(X) for _ in range(4))
    assert (len(a), len(b)) == (1, 4)


def test_accountant_never_overspends_in_threads(accountant):
    def is_paid(_):
        try:
            accountant.spend(0.05)
        except PrivacyBudgetExceeded:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(is_paid, range(40))) == len(accountant) == 20


def test_spends_shows_the_history():
    accountant = PrivacyAccountant(2.0, 1e-5)
    accountant.spend(0.25, 1e-6, rho=0.01, what="counts", estimator="E", parameters={"k": 3})
    mean(accountant, 0.5).fit(X)
    history = accountant.spends()
    assert len(history) == 2 and [s.number for s in history] == [1, 2]
    assert history["epsilon"].tolist() == [0.25, 0.5]
    assert history[1].what == "the mean of the rows" and history[1].estimator == "PrivateMean"
    assert history[1].parameters == {"epsilon": "0.5", "bounds": "(0, 1)"}
    assert history[:1]["delta"].tolist() == [1e-6]
    # A day, because finer times reveal how long a release took.
    assert date.fromisoformat(history[0].time) - datetime.now(UTC).date() >= timedelta(-1)
    assert "counts" in repr(history) and "<td>counts</td>" in history._repr_html_()
    frame = pytest.importorskip("pandas") and history.to_pandas()
    assert list(frame.columns) == list(history.columns) and frame.epsilon.sum() == 0.75
    refuses(None, lambda: history["data"], error=KeyError)


def test_accountant_refuses_what_is_over_budget():
    accountant = PrivacyAccountant(0.25)
    mean(accountant, 0.2).fit(X)
    with pytest.raises(PrivacyBudgetExceeded) as caught:
        estimator = mean(accountant, 0.1)
        estimator.fit(X)
    assert not hasattr(estimator, "mean_") and len(accountant) == 1
    assert str(caught.value) == (
        "asked for epsilon=0.1, delta=0; left: epsilon=0.05, delta=0. "
        "Nothing was released. Use a smaller epsilon or delta, or a larger budget."
    )
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value) and again.asked.epsilon == 0.1


def test_accountant_pays_infinite_epsilon_only_without_a_limit():
    refuses(None, mean(PrivacyAccountant(5.0), math.inf).fit, X, error=PrivacyBudgetExceeded)
    for options in ({}, {"delta": 1e-9, "composition": "zcdp"}):
        unlimited = PrivacyAccountant(math.inf, **options)
        unlimited.spend(1.0, 1e-3, rho=0.5)
        mean(unlimited, math.inf).fit(X)
        assert unlimited.total().epsilon == math.inf and unlimited.remaining() == (math.inf, 1.0)
    # Finite losses whose sum is not.
    huge = PrivacyAccountant(math.inf)
    for _ in range(3):
        huge.spend(1e308)
    assert huge.total().epsilon == math.inf


def test_private_persistence_reads_iterators_once():
    accountant = PrivacyAccountant(math.inf)
    private = PrivatePersistence(1.0, **GIVEN, accountant=accountant).fit(FUNCTIONS)
    assert len(private.transform(iter(FUNCTIONS))) == 2
    assert private.score(iter(FUNCTIONS)) <= 0 and len(accountant) == 2


@pytest.mark.parametrize(
    "bad", [{"n_jobs": 0}, {"n_jobs": "two"}, {"sensitivity": 1e300, "upper": 1e-300}]
)
def test_private_persistence_pays_nothing_where_public_numbers_fail(bad):
    calls = [PrivatePersistence(**{**GIVEN, **bad}).fit_transform]
    if "n_jobs" in bad:
        calls.append(PrivatePersistence(**GIVEN).fit(FUNCTIONS).set_params(**bad).transform)
    for call in calls:
        refuses_unpaid(None, call, FUNCTIONS, error=(ValueError, TypeError))


def test_accountant_fits_equal_shares():
    for parts in (3, 7, 10, 11, 49, 100):
        accountant = PrivacyAccountant(1.0)
        for _ in range(parts):
            accountant.spend(1.0 / parts)
        refuses(None, accountant.spend, 1e-9, error=PrivacyBudgetExceeded)


def test_accountant_counts_delta():
    accountant = PrivacyAccountant(10.0, 1e-5)
    accountant.spend(1.0, 6e-6)
    refuses(None, accountant.spend, 1.0, 6e-6, error=PrivacyBudgetExceeded)
    assert accountant.remaining() == pytest.approx((9.0, 4e-6))


def test_accountant_composes_by_zcdp():
    accountant = PrivacyAccountant(1.0, 1e-6, composition="zcdp")
    assert accountant.total() == (0, 0)
    budget = zcdp_rho(1.0, 1e-6)
    assert accountant.remaining().epsilon == pytest.approx(math.sqrt(2 * budget))
    for _ in range(50):
        accountant.spend(0.02)
    # With basic composition, the budget would be used up.
    assert accountant.total().epsilon == pytest.approx(zcdp_epsilon(50 * 0.0002, 1e-6))
    assert accountant.total().epsilon < 0.7
    accountant.spend(0.5, 1e-7, rho=1e-4)
    rho = 50 * 0.0002 + 1e-4
    assert accountant.total() == pytest.approx((zcdp_epsilon(rho, 1e-6), 1e-6))
    with pytest.raises(PrivacyBudgetExceeded):
        accountant.spend(accountant.remaining().epsilon * 1.001)
    accountant.spend(accountant.remaining().epsilon)
    assert accountant.total().epsilon == pytest.approx(1.0, rel=1e-9)


def test_accountant_under_zcdp_refuses_a_delta_of_a_release():
    # First a Gaussian release. If its loss was large, a failure follows with the rest of delta that
    # a union bound leaves, and otherwise another Gaussian release. Each branch fits its own split
    # of delta.
    epsilon, delta = 1.0, 1e-5
    first, rest = zcdp_rho(epsilon, 0.01 * delta), 0.99 * delta
    accountant = PrivacyAccountant(epsilon, delta, composition="zcdp")
    accountant.spend(math.inf, rho=first)
    refuses("state rho", accountant.spend, 0.0, rest)
    accountant.spend(accountant.remaining().epsilon)
    # Such lines in an old ledger leave no budget.
    rule, lines = ZCDPComposition(epsilon, delta), Sums.of([(Charge(0.1, rest), 1)])
    assert rule.total(lines).epsilon == math.inf and rule.remaining(lines).epsilon == 0
    assert not rule.fits(lines)
    # The cost of the refused choice: the larger delta of the two, loss by loss.
    mu, more = math.sqrt(2 * first), math.sqrt(2 * (zcdp_rho(epsilon, delta) - first))
    loss = mu**2 / 2 + mu * np.linspace(-9, 9, 40_001)
    density, left = norm.pdf(loss, mu**2 / 2, mu), epsilon - loss
    failed = rest + (1 - rest) * np.maximum(-np.expm1(left), 0)
    both = norm.cdf(more / 2 - left / more) - np.exp(left) * norm.cdf(-more / 2 - left / more)
    assert trapezoid(density * np.maximum(failed, both), loss) > 1.2 * delta
    assert trapezoid(density * both, loss) < delta


def test_accountant_under_zcdp_counts_bounded_range():
    accountant = PrivacyAccountant(2.0, 1e-6, composition="zcdp")
    private = PrivatePersistence(0.1, **GIVEN, accountant=accountant)
    for _ in range(10):
        private.fit_transform(FUNCTIONS)
    assert accountant.total().epsilon == pytest.approx(zcdp_epsilon(10 * 0.01 / 8, 1e-6))


def test_accountant_mixes_no_adjacencies():
    accountant = PrivacyAccountant(math.inf)
    accountant.spend(1.0, adjacency="add-remove")
    refuses("adjacency", mean(accountant).fit, X)
    refuses("adjacency", accountant.spend, 1.0, adjacency="both")
    assert len(accountant) == 1


def in_thread(function, *arguments):
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(function, *arguments).result()


def test_default_accountant_nests_and_refuses_threads_of_two_blocks():
    with PrivacyAccountant(math.inf) as outer, ThreadPoolExecutor(1) as thread:
        with PrivacyAccountant(math.inf) as inner:
            mean().fit(X)
        mean().fit(X)
        # A worker thread without its own block belongs to the only existing block.
        in_thread(mean().fit, X)
        assert len(outer) == 2
        other = PrivacyAccountant(math.inf)
        thread.submit(other.__enter__).result()
        thread.submit(mean().fit, X).result()
        mean().fit(X)
        refuses("pass accountant=", in_thread, mean().fit, X, error=RuntimeError)
        thread.submit(mean().fit, X).result()
        thread.submit(other.__exit__).result()
    assert (len(inner), len(outer), len(other)) == (1, 3, 2) and default_accountant() is None


def test_default_accountant_is_that_of_each_asyncio_task():
    async def task(accountant, first, second, paid):
        with accountant:
            first.set()
            await second.wait()
            mean().fit(X)
            await asyncio.sleep(0)
            await asyncio.gather(asyncio.to_thread(mean().fit, X), child())
            # Such a worker inherits no context, and two tasks of this loop have blocks.
            with pytest.raises(RuntimeError, match="pass accountant="):
                await asyncio.get_running_loop().run_in_executor(None, mean().fit, X)
            # Neither block ends before both tasks have paid.
            await paid.wait()

    async def bystander(first, second):
        await first.wait()
        # It has no block, and the block of another task does not apply.
        refuses("pass accountant=", mean().fit, X, error=RuntimeError)
        mean(free).fit(X)
        second.set()

    async def child():
        mean().fit(X)

    async def run():
        a, b, c, paid = *(asyncio.Event() for _ in range(3)), asyncio.Barrier(2)
        await asyncio.gather(task(one, a, b, paid), task(two, b, c, paid), bystander(a, c))
        mean().fit(X)

    one, two, free = (PrivacyAccountant(math.inf) for _ in range(3))
    asyncio.run(run())
    assert len(one) == len(two) == 3 and len(free) == 1 and default_accountant() is None


def test_default_accountant_refuses_a_context_without_the_block():
    with PrivacyAccountant(math.inf) as accountant:
        refuses("pass accountant=", contextvars.Context().run, mean().fit, X, error=RuntimeError)
        mean().fit(X)
    assert len(accountant) == 1


def test_default_accountant_counts_in_a_block_that_nobody_closed():
    left = PrivacyAccountant(math.inf)
    in_thread(left.__enter__)
    mean().fit(X)
    assert len(left) == 1
    left.__exit__()
    assert default_accountant() is None
    # A block also remains for a context if another thread has closed it.
    left.__enter__()
    in_thread(left.__exit__)
    mean().fit(X)
    assert len(left) == 1 and default_accountant() is None


def pays(_):
    mean().fit(X)


@pytest.mark.engines
@needs_fork
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_default_accountant_reaches_workers_forked_by_a_thread(tmp_path):
    # A pool replaces its workers from a separate thread.
    with PrivacyAccountant(math.inf, path=tmp_path / "a.db") as accountant:
        context = multiprocessing.get_context("fork")
        with context.Pool(2, maxtasksperchild=1) as pool:
            pool.map(pays, range(8), chunksize=1)
    assert len(accountant) == 8


def test_default_accountant_ends_when_the_block_fails():
    with pytest.raises(ZeroDivisionError), PrivacyAccountant(math.inf):
        raise ZeroDivisionError
    assert default_accountant() is None


def test_default_accountant_is_not_kept_by_copies():
    with PrivacyAccountant(math.inf) as accountant:
        copies = [copy.copy(mean()), copy.deepcopy(mean())]
    for one in copies:
        assert one.accountant is None and one.get_params() == mean().get_params()
        one.fit(X)
    assert len(accountant) == 0


def test_accountant_repr_and_truth():
    accountant = PrivacyAccountant(1.0, 1e-6, composition="zcdp")
    assert repr(accountant) == "PrivacyAccountant(epsilon=1.0, delta=1e-06, composition='zcdp')"
    assert accountant and len(accountant) == 0
    assert "PrivacyAccountant(epsilon=1.0" in repr(mean(accountant))
    assert "PrivacyAccountant" in mean(accountant)._repr_html_()
    with pytest.raises(AttributeError):
        accountant.epsilon = 100.0


def test_accountant_refuses_bad_budgets(tmp_path):
    for bad, name in (
        ({}, "epsilon"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta"),
        ({"epsilon": 1.0, "delta": -0.1}, "delta"),
        ({"epsilon": 1.0, "composition": "moments"}, "composition"),
        ({"epsilon": 1.0, "composition": "zcdp"}, "delta"),
    ):
        for path in (None, tmp_path / "a.db"):
            refuses(name, PrivacyAccountant, **bad, path=path, error=(TypeError, ValueError))
    assert not list(tmp_path.iterdir())


def test_accountant_refuses_bad_losses():
    accountant = PrivacyAccountant(1.0)
    for bad in ({"epsilon": -0.1}, {"epsilon": math.nan}, {"epsilon": 0.1, "delta": -1e-9}):
        refuses(list(bad)[-1], accountant.spend, **bad)
    assert len(accountant) == 0


def test_ledger_file_contains_no_records(path):
    accountant = PrivacyAccountant(10.0, path=path)
    canary = 0.7364528190183746
    rows = np.vstack([X, [canary, canary]])
    mean(accountant).fit(rows)
    accountant.spend(0.1, parameters={"long": rows.tolist()})
    content = path.read_bytes()
    assert b"73645281" not in content and np.float64(canary).tobytes() not in content
