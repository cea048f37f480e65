import copy
import os
import pickle
import sys

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline

from sklearn_dptda import DTMFiltration, PersistenceProfile, PrivatePersistence
from sklearn_dptda.cluster import DPLloyd
from sklearn_dptda.model_selection import (
    IncompleteReleases,
    InterruptedReleases,
    PlannedLoss,
    privacy_utility_curve,
    release_replicates,
)
from sklearn_dptda.model_selection._planned_releases import PlannedRelease
from sklearn_dptda.plotting import plot_privacy_utility
from sklearn_dptda.privacy import NoiseSource, PrivacyAccountant, PrivacyBudgetExceeded
from sklearn_dptda.privacy._noise import spawn_seeds
from sklearn_dptda.privacy._release import seeded_clone
from tests._fragile import Doomed, FailsOnce, Fragile, Interrupted, reported
from tests._refusals import refuses


@pytest.mark.parametrize(
    "backend",
    [
        "sequential",
        *(
            pytest.param(name, marks=pytest.mark.engines)
            for name in ("threading", "multiprocessing", "loky")
        ),
    ],
)
def test_release_replicates_do_not_depend_on_the_backend(filtration, backend):
    accountant = PrivacyAccountant(6.0)

    def run(n_jobs):
        private = PrivatePersistence(0.5, accountant=accountant)
        return release_replicates(private, [filtration], 6, random_state=3, n_jobs=n_jobs)

    serial = run(1)
    with parallel_config(backend=backend):
        parallel = run(2)
    for a, b in zip(serial, parallel, strict=True):
        np.testing.assert_array_equal(a[0][1], b[0][1])
    assert not np.array_equal(serial[0][0][0], serial[1][0][0])
    assert accountant.remaining().epsilon == 0 and len(accountant) == 12


def test_release_replicates_without_a_seed_differ(filtration):
    a, b = release_replicates(PrivatePersistence(), [filtration], 2)
    assert not np.array_equal(a[0][0], b[0][0])
    refuses("n_replicates", release_replicates, PrivatePersistence(), [filtration], 0)


@pytest.mark.laws
def test_privacy_utility_curve_of_a_pipeline_is_that_of_its_step(circles, filtration):
    options = {"param_range": [1.0, 10.0], "n_replicates": 3, "random_state": 0}
    direct = privacy_utility_curve(PrivatePersistence(), [filtration], **options)
    pipeline = make_pipeline(
        DTMFiltration(0.2, bounds=(-3, 3.5), resolution=51), PrivatePersistence()
    )
    through = privacy_utility_curve(pipeline, [circles], **options)
    np.testing.assert_array_equal(direct.errors, through.errors)
    assert direct.errors.shape == (2, 3, 1, 2)
    assert direct.mean()[0].sum() > direct.mean()[1].sum()
    assert direct.slope() < 0
    assert plot_privacy_utility(direct).get_xlabel() == "epsilon"
    columns = direct.to_dict()
    assert list(columns) == ["epsilon", "replicate", "cloud", "homology_dimension", "error"]
    assert {len(column) for column in columns.values()} == {direct.errors.size}


@pytest.mark.laws
def test_privacy_utility_curve_over_a_filtration_parameter(circles):
    pipeline = make_pipeline(
        DTMFiltration(bounds=(-3, 3.5), resolution=21), PrivatePersistence(homology_dimensions=1)
    )
    curve = privacy_utility_curve(
        pipeline,
        [circles],
        param_name="dtmfiltration__m",
        param_range=[0.05, 0.5],
        n_replicates=3,
        random_state=0,
    )
    assert curve.errors.shape == (2, 3, 1, 1)
    refuses("PrivatePersistence", privacy_utility_curve, DTMFiltration(), [circles])


class Shifted(TransformerMixin, BaseEstimator):
    """Adds noise to functions, from a seed as private steps take it."""

    def __init__(self, sign=1, random_state=None):
        self.sign = sign
        self.random_state = random_state

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        (seed,) = spawn_seeds(self.random_state, 1)
        noise = NoiseSource(seed).discrete_laplace(1e6, 4)
        return [np.asarray(x) + self.sign * noise for x in X]


@pytest.mark.engines
def test_release_replicates_share_no_noise_between_steps():
    # With one seed for both steps, the second would remove what the first adds.
    both = make_pipeline(Shifted(1), Shifted(-1))
    releases = release_replicates(both, [np.zeros(4)], 20, random_state=0)
    assert all((release[0] != 0).all() for release in releases)
    again = release_replicates(both, [np.zeros(4)], 20, random_state=0, n_jobs=2)
    np.testing.assert_array_equal(releases, again)
    steps = [step.random_state for _, step in seeded_clone(both, 7).steps]
    assert len(set(steps)) == 2 and None not in steps
    assert [step.random_state for _, step in seeded_clone(both, None).steps] == [None, None]


def test_release_replicates_pay_ahead_and_all_together(filtration):
    private = PersistenceProfile(0.5, accountant=PrivacyAccountant(2.0))
    refuses(None, release_replicates, private, [filtration], 5, error=PrivacyBudgetExceeded)
    assert private.accountant.total().epsilon == 0
    refuses("X", release_replicates, private, [np.array([np.nan, 1.0])], 3)
    assert private.accountant.total().epsilon == 0
    releases = release_replicates(private, [filtration], 4)
    assert len(releases) == len(private.accountant) == 4
    assert private.accountant.remaining().epsilon == 0
    # Of two profiles of one cloud, one in 10^6 is equal.
    assert len({release.tobytes() for release in releases}) > 1


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.engines)])
def test_release_replicates_in_a_block_pay_from_it(filtration, n_jobs):
    with PrivacyAccountant(10.0) as budget:
        release_replicates(make_pipeline(PrivatePersistence(0.5)), [filtration], 4, n_jobs=n_jobs)
        assert budget.total().epsilon == 2.0


def test_release_replicates_pay_two_budgets_or_none(filtration):
    a, b = PrivacyAccountant(3.0), PrivacyAccountant(30.0)
    X = [filtration]
    union = FeatureUnion(
        [
            ("a", PersistenceProfile(0.5, accountant=a)),
            ("b", PersistenceProfile(2.0, accountant=b)),
            ("nobody", PersistenceProfile(2.0)),
        ]
    )
    release_replicates(union, X, 4)
    assert (a.total().epsilon, b.total().epsilon) == (2.0, 8.0)
    refuses(None, release_replicates, union, X, 3, error=PrivacyBudgetExceeded)
    # The payment of the second is not spent either.
    assert (a.total().epsilon, b.total().epsilon) == (2.0, 8.0)


@pytest.mark.parametrize("number", [0, 1])
def test_release_replicates_keep_the_others_of_a_failure(filtration, tmp_path, number):
    # The second call fails, and the first one is counted already.
    if number == 0:
        (tmp_path / "0").touch()
    accountant = PrivacyAccountant(10.0)
    private = PrivatePersistence(0.5, accountant=accountant)
    with pytest.raises(IncompleteReleases, match="1 of 5") as caught:
        release_replicates(make_pipeline(private, FailsOnce(str(tmp_path))), [filtration], 5)
    assert [release is None for release in caught.value.releases] == [i == number for i in range(5)]
    assert isinstance(caught.value.__cause__, ArithmeticError)
    assert len(accountant) == 5
    again = pickle.loads(pickle.dumps(caught.value))
    assert len(again.releases) == 5


class Spender(TransformerMixin, BaseEstimator):
    """Somebody else, who spends while a replicate is on its way to its payment."""

    def __init__(self, budget, epsilon):
        self.budget = budget
        self.epsilon = epsilon

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        self.budget.spend(self.epsilon, what="something else")
        return X


@pytest.mark.filterwarnings("ignore::sklearn_dptda.privacy.PrivacyLeakWarning")
def test_release_replicates_cost_nothing_if_others_spend_first(filtration):
    budget = PrivacyAccountant(2.0)
    private = PrivatePersistence(0.5, accountant=budget)
    late = make_pipeline(Spender(budget, 0.1), private)
    refuses(None, release_replicates, late, [filtration], 4, error=PrivacyBudgetExceeded)
    assert budget.spends()["what"].tolist() == ["something else"]


@pytest.mark.filterwarnings("ignore::sklearn_dptda.privacy.PrivacyLeakWarning")
@pytest.mark.parametrize("late", [0, 1])
def test_release_replicates_pay_none_of_two_budgets_if_one_lacks(filtration, late):
    budgets = [PrivacyAccountant(2.0), PrivacyAccountant(2.0)]
    union = FeatureUnion(
        [(str(i), PersistenceProfile(0.5, accountant=budget)) for i, budget in enumerate(budgets)]
    )
    with pytest.raises(PrivacyBudgetExceeded):
        release_replicates(make_pipeline(Spender(budgets[late], 0.1), union), [filtration], 4)
    assert [len(budget) for budget in budgets] == [late == 0, late == 1]


def test_planned_loss_of_two_handles_of_a_ledger_is_added(filtration, tmp_path):
    one = PrivacyAccountant(2.0, path=tmp_path / "ledger.db")
    other = PrivacyAccountant.open(tmp_path / "ledger.db")
    guarantee = PersistenceProfile(0.5).fit([filtration]).privacy_guarantee_
    plan = PlannedLoss(tuple(PlannedRelease("A", guarantee, 2, a) for a in (one, other)))
    for too_much in ((plan * 2).check, (plan * 2).pay):
        refuses(None, too_much, error=PrivacyBudgetExceeded)
    assert len(one) == 0
    plan.pay()
    assert len(one) == 4 and other.remaining().epsilon == 0


@pytest.mark.engines
def test_release_replicates_pay_once_in_processes_that_are_killed(filtration, tmp_path):
    accountant = PrivacyAccountant(6.0, path=tmp_path / "ledger.db")
    hidden = Hidden(PrivatePersistence(0.5, accountant=accountant))
    dying = make_pipeline(hidden, Fragile(str(tmp_path), os.getpid()))
    with parallel_config(backend="multiprocessing"):
        assert len(release_replicates(dying, [filtration], 12, n_jobs=2)) == 12
    assert len(accountant) == 12 and (tmp_path / "seen.pickle").exists()


# Numbers of the calls in which workers die: before the draw, after it, and while the result leaves.
DEATHS = [
    ("multiprocessing", ((), (0,), ()), pytest.mark.engines),
    ("loky", ((), (2,), (5,)), pytest.mark.engines),
    ("multiprocessing", ((0,), (), ()), pytest.mark.nightly),
    ("multiprocessing", ((), (), (0,)), pytest.mark.nightly),
    # The last release, and the last but one.
    ("multiprocessing", ((9,), (9,), (9,)), pytest.mark.nightly),
    # Again and again, but not so often that the engine is given up.
    ("multiprocessing", ((0, 1, 2), (), ()), pytest.mark.nightly),
    ("multiprocessing", ((), (3, 4, 5), (6,)), pytest.mark.nightly),
]


@pytest.mark.filterwarnings("ignore::sklearn_dptda.privacy.PrivacyLeakWarning")
@pytest.mark.parametrize(
    ("backend", "deaths"), [pytest.param(*case, marks=layer) for *case, layer in DEATHS]
)
def test_release_replicates_lose_nothing_to_any_death(filtration, tmp_path, backend, deaths):
    folders = [tmp_path / place for place in ("before", "after", "leaving")]
    for folder in folders:
        folder.mkdir()
    steps = [
        Doomed(str(folder), os.getpid(), calls, leaving=folder is folders[-1])
        for folder, calls in zip(folders, deaths, strict=True)
    ]
    accountant = PrivacyAccountant(6.0)
    steps[1:1] = [PersistenceProfile(0.5, accountant=accountant)]
    X = [filtration, copy.deepcopy(filtration)]
    with parallel_config(backend=backend):
        releases = release_replicates(make_pipeline(*steps), X, 12, n_jobs=2)
    assert len(releases) == len(accountant) == 12 and accountant.remaining().epsilon == 0
    for folder, calls in zip(folders, deaths, strict=True):
        assert {file.name for file in folder.glob("died-*")} == {f"died-{i}" for i in calls}
    # The successors release what the dead processes had drawn. Of two profiles of one cloud, one in
    # 10^6 is equal, and of two pairs, one in 10^12.
    for file in (file for folder in folders[1:] for file in folder.glob("died-*")):
        drawn = pickle.loads(file.read_bytes())
        assert sum(np.array_equal(drawn, release) for release in releases) == 1


@pytest.mark.engines
@pytest.mark.skipif(sys.platform == "win32", reason="no other process can send Ctrl-C there")
# If the signal comes while a result is put aside, joblib says that it drops the next ones.
@pytest.mark.filterwarnings("ignore:.* tasks (have been successfully|which were still)")
@pytest.mark.parametrize(
    ("backend", "n_kept"),
    # The tasks of a batch of loky return together. The first batches are small.
    [("sequential", 29), ("threading", 29), ("loky", 10)],
)
def test_release_replicates_keep_what_is_finished_at_ctrl_c(
    filtration, tmp_path, monkeypatch, backend, n_kept
):
    accountant = PrivacyAccountant(30.0)
    private = PrivatePersistence(0.5, accountant=accountant)
    stopped = make_pipeline(private, Interrupted(str(tmp_path), 30, n_kept, os.getpid()))
    with (
        pytest.raises(InterruptedReleases, match="of 60 releases were not finished") as caught,
        parallel_config(backend=backend),
        reported(tmp_path, monkeypatch),
    ):
        release_replicates(stopped, [filtration], 60, n_jobs=2)
    # Thirty releases were made before the signal, and no other one comes after it.
    kept = sum(release is not None for release in caught.value.releases)
    assert n_kept <= kept <= 30 and len(accountant) == 60
    # A search that continues after errors is stopped.
    assert isinstance(caught.value, KeyboardInterrupt) and not isinstance(caught.value, Exception)
    again = pickle.loads(pickle.dumps(caught.value))
    assert sum(release is not None for release in again.releases) == kept


def test_release_replicates_pay_in_tasks_what_cannot_be_planned(filtration):
    accountant = PrivacyAccountant(10.0)
    hidden = Hidden(PrivatePersistence(0.5, accountant=accountant))
    assert len(release_replicates(hidden, [filtration], 3)) == 3
    assert accountant.total().epsilon == 1.5


class Hidden(TransformerMixin, BaseEstimator):
    """Holds a private estimator in a way that no plan knows."""

    def __init__(self, inside):
        self.inside = inside

    def fit(self, X, y=None):
        self.inside.fit(X)
        return self

    def transform(self, X):
        return self.inside.transform(X)


@pytest.mark.laws
def test_release_replicates_of_searches_bound_the_last_fit(circles):
    budget = PrivacyAccountant(200.0, 1e-2)
    search = GridSearchCV(
        DPLloyd(2, bounds=(-3, 3.5), accountant=budget), {"epsilon": [8.0, 0.05]}, cv=2
    )
    assert len(release_replicates(search, circles, 3)) == 3
    # The first one unchanged, and two with the last fit of the highest cost.
    assert budget.total().epsilon <= 3 * 24.1 + 1e-9


@pytest.mark.laws
def test_release_replicates_of_searches_over_accountants_pay_once(circles):
    a, b = PrivacyAccountant(100.0, 1e-2), PrivacyAccountant(100.0, 1e-2)
    search = GridSearchCV(DPLloyd(2, bounds=(-3, 3.5), accountant=a), {"accountant": [a, b]}, cv=2)
    release_replicates(search, circles, 3)
    assert len(a) + len(b) == 3 * 5


@pytest.mark.engines
@pytest.mark.parametrize(("outer", "inner"), [(1, 2), (2, 2)])
def test_release_replicates_of_searches_pay_once_in_any_process(circles, outer, inner):
    budget = PrivacyAccountant(30.0, 1e-2)
    search = GridSearchCV(
        DPLloyd(2, bounds=(-3, 3.5), accountant=budget),
        {"epsilon": [1.0]},
        cv=2,
        n_jobs=inner,
    )
    with pytest.raises(PrivacyBudgetExceeded):
        release_replicates(search, circles, 11, n_jobs=outer)
    assert len(budget) == 0
    releases = release_replicates(search, circles, 3, n_jobs=outer)
    assert len(releases) == 3 and len(budget) == 9
    # The estimators that a replicate keeps pay from the same budget.
    releases[-1]["best_estimator_"].fit(circles)
    assert len(budget) == 10
