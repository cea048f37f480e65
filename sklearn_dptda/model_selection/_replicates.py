"""Many independent releases, in parallel, reproducible whatever the number of workers.

They are paid for ahead, all at once, where the first one is drawn; the others take their shares
wherever they are drawn later.

Proof: doc/theory/kept_releases.md, "One payment, one release".
"""

import math
import threading
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from joblib import parallel_config
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from sklearn_dptda._typing import RandomStateLike
from sklearn_dptda.model_selection._dry_run import planned_loss
from sklearn_dptda.model_selection._release_once import bound_to
from sklearn_dptda.privacy import PrivateEstimatorMixin, ReleaseKey
from sklearn_dptda.privacy._accountant import PrivacyAccountant
from sklearn_dptda.privacy._default_accountant import default_accountant
from sklearn_dptda.privacy._estimator import Paid
from sklearn_dptda.privacy._guarantee import Charge, kind_of_unit
from sklearn_dptda.privacy._noise import spawn_seeds
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.privacy._release import release, releases_in_transform, seeded_clone
from sklearn_dptda.privacy._release_key import Attempt, names_under, under
from sklearn_dptda.privacy._warnings import PrivacyBudgetExceeded, PrivacyLedgerError
from sklearn_dptda.utils._tasks import Failed, first_error, outcomes, tasks_may_repeat


class _Kept(BaseException):
    """What is common to errors that hold the releases that were finished."""

    # What became of the other releases, in words.
    _happened: str

    def __init__(self, releases: list[Any]) -> None:
        super().__init__(releases)
        self.releases = releases

    def __str__(self):
        missing = sum(entry is None for entry in self.releases)
        return (
            f"{missing} of {len(self.releases)} releases {self._happened}. The others are in the "
            "attribute 'releases' of this error. If you call release_replicates again with the "
            "same key, it continues with the missing ones, as far as the budget covers them."
        )


class IncompleteReleases(_Kept, RuntimeError):
    """Some of many releases failed; those that were finished are kept.

    Everything stays paid for. What failed is the cause of this error.

    Attributes
    ----------
    releases : list
        One entry per replicate; None where it failed.
    """

    _happened = "failed"


class InterruptedReleases(_Kept, KeyboardInterrupt):
    """Ctrl-C came before all releases were finished; those that were are kept.

    Everything stays paid for. It is a :class:`KeyboardInterrupt`, and no
    :class:`Exception`, so that code which goes on after errors still stops.
    At a prompt, ``sys.last_value.releases`` has the releases afterwards.

    Attributes
    ----------
    releases : list
        One entry per replicate; None where it was not finished.
    """

    _happened = "were not finished"


def release_replicates(
    estimator: BaseEstimator,
    X: object,
    n_replicates: int = 100,
    *,
    key: ReleaseKey | None = None,
    random_state: RandomStateLike = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> list[Any]:
    """Release the same data many times, independently.

    Parameters
    ----------
    estimator : transformer
        For example a :class:`PrivatePersistence`, or a pipeline that ends in
        one. It is cloned, never fitted itself.
    X : list
        Its input; on a cluster it is shipped to each worker once.
    n_replicates : int, default=100
        Number of releases.
    key : ReleaseKey, default=None
        Makes this a call that can be made again, after a crash or on another
        day: what its ledger has stored is returned, what was paid for and not
        stored is drawn again with the same coins, and the rest is paid for and
        drawn. :meth:`ReleaseKey.open` keeps one in a file. Without a key a call
        is new each time.
    random_state : int, RandomState instance, Generator or None, default=None
        One seed per replicate is drawn before any work starts, so results do
        not depend on ``n_jobs``. None: operating system's entropy.
    n_jobs : int, default=None
        Number of workers; any joblib backend serves. Ray runs as many tasks at
        once as it has processors.
    verbose : int, default=0
        Progress, as in :class:`joblib.Parallel`.

    Returns
    -------
    list
        What ``fit_transform`` returned, one entry per replicate.

    Raises
    ------
    ValueError
        If there is a ``key``, and X is not in memory, a private step has no
        accountant, or another step draws at random without a ``random_state``.
    PrivacyLedgerError
        If the key has paid for releases of other records, parameters or code.
    IncompleteReleases
        If some replicates failed, or if the budget covers more replicates under
        a ``key`` than were paid for and fewer than were asked for; it holds the
        others.
    InterruptedReleases
        If Ctrl-C came before all were finished; it holds those that were, and
        where none was, the error is a plain :class:`KeyboardInterrupt`.
    PrivacyBudgetExceeded
        If the budget does not cover all replicates. Nothing is spent where
        they are paid for ahead, see below, whoever else spends meanwhile.

    Notes
    -----
    .. rubric:: Privacy

    Losses add up: ``n_replicates`` releases of a sensitive cloud
    cost ``n_replicates * epsilon``. Meant for simulated or public data.

    Accountants are charged here, not in workers: the first replicate is made
    here, and when it is about to pay, all replicates are paid for in one transaction.
    The others are sent to the workers. A task runs again whose worker has died, on
    the cores of this machine as on Dask and Ray; it pays nothing and repeats
    its draw: its coins come from a :class:`~sklearn_dptda.privacy.ReleaseKey`.
    Where it cannot be planned what a replicate will cost, or ``n_jobs=1`` leaves
    processes to loops inside, such as those of a search, replicates pay in their tasks,
    under keys where tasks run again, and so once each as well. If somebody
    else uses up the budget meanwhile, those that were paid for are kept in
    :class:`IncompleteReleases`.

    Where the estimator ends in a private step, a ledger with a ``path`` stores
    replicates as they are finished, so that a crash loses none of them:
    :meth:`PrivacyAccountant.releases` lists them. Under a ``key`` those of
    other estimators are drawn again with the same coins.

    Examples
    --------
    >>> from sklearn_dptda import DTMFiltration, PrivatePersistence
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> from sklearn_dptda.model_selection import release_replicates
    >>> X = DTMFiltration(0.2, bounds=(-3, 3.5)).fit_transform([make_two_circles(1000)])
    >>> releases = release_replicates(PrivatePersistence(2.0), X, 5, random_state=0)
    >>> len(releases), len(releases[0]), len(releases[0][0])
    (5, 1, 2)
    """
    if n_replicates < 1:
        raise ValueError(f"n_replicates must be at least 1; got {quoted(n_replicates)}.")
    seeds = spawn_seeds(random_state, n_replicates)
    bound = None
    if key is not None:
        estimator, X, bound = bound_to(key, estimator, X)
    repeats = key is not None or tasks_may_repeat(n_jobs)
    tasks = [_Task.of(i, seed, key, bound, repeats) for i, seed in enumerate(seeds)]
    plan = _plan(estimator, X)
    if plan is not None and key is None:
        (plan * n_replicates).check()
    pays_ahead = plan is not None and (repeats or _stays_here(estimator))
    shelf = _Shelf(estimator, plan if pays_ahead else None)
    releases: list[Any] = [None] * n_replicates
    if key is not None and shelf.has_paid(tasks[0]):
        try:
            # Refused where other records, parameters or code were paid for.
            plan._pay_for(task.attempt() for task in tasks)
        except PrivacyBudgetExceeded as refusal:
            kept = [shelf.stored(task) for task in tasks]
            if all(stored is None for stored in kept):
                raise
            raise IncompleteReleases(kept) from refusal
        releases = [shelf.stored(task) for task in tasks]
    missing = [i for i, stored in enumerate(releases) if stored is None]
    reserved = None
    if pays_ahead and missing:
        reserved = [r.guarantee for r in plan.releases for _ in range(r.count)]
        paid = PaidAhead(reserved, lambda: plan._pay_for(task.attempt() for task in tasks))
        place = missing.pop(0)
        releases[place] = _first(paid, estimator, X, tasks[place])
        try:
            shelf.keep(tasks[place], releases[place])
        except PrivacyLedgerError as refusal:
            releases[place] = Failed(refusal)
    finished = outcomes(
        _replicate,
        [(tasks[i],) for i in missing],
        estimator,
        reserved,
        X,
        n_jobs=n_jobs,
        verbose=verbose,
        then=lambda i, result: shelf.keep(tasks[missing[i]], result),
    )
    for i, result in zip(missing, finished, strict=True):
        releases[i] = result
    error = first_error(releases)
    if error is None:
        return releases
    kept = [None if isinstance(r, Failed) else r for r in releases]
    if all(isinstance(r, Failed) for r in releases):
        raise error
    interrupted = isinstance(error, KeyboardInterrupt)
    raise (InterruptedReleases if interrupted else IncompleteReleases)(kept) from error


@dataclass(frozen=True)
class _Task:
    """One of many releases: its seed, and the key and digest that its payments have.

    Where the task may run again, its coins come from the key as well.
    """

    seed: int | None
    key: ReleaseKey
    bound: ReleaseKey | None
    repeats: bool

    @classmethod
    def of(cls, number, seed, key, bound, repeats):
        """The task of that number; with a key of its own, if there is none for all of them."""
        own = ReleaseKey() if key is None else key.child(number)
        return cls(seed, own, None if bound is None else bound.child((number, seed)), repeats)

    def attempt(self):
        """Turns of its payments."""
        return Attempt(self.key, self.bound)

    def coins(self):
        """A block in which its releases take their turns, if it may run again."""
        return under(self.key if self.repeats else None, self.bound)


class _Shelf:
    """Stores replicates that were paid for ahead, beside the last of their payments.

    It stores nothing but private output: results of estimators that end in a private step, whose
    payment is the last one. What comes after such a step may be given records.
    """

    def __init__(self, estimator, plan):
        self._plan, self._accountant = plan, None
        self._in_transform = releases_in_transform(estimator)
        while isinstance(estimator, Pipeline):
            estimator = estimator[-1]
        if plan is None:
            return
        self._number, last = sum(release.count for release in plan.releases), plan.releases[-1]
        self._payer: Any = last.accountant or default_accountant()
        ends_privately = isinstance(estimator, PrivateEstimatorMixin) and (
            last.estimator == type(estimator).__name__ and estimator._payer() is not None
        )
        if ends_privately and all(math.isfinite(r.guarantee.epsilon) for r in plan.releases):
            self._accountant = self._payer

    def _name(self, task):
        return next(islice(names_under(task.key), self._number - 1, None))

    def has_paid(self, task):
        """Whether the payments of a task have been made."""
        return self._plan is not None and self._payer._ledger.is_paid(self._name(task))

    def stored(self, task):
        """What is stored of a task, or None where that is nothing, or cannot be read."""
        if self._accountant is None:
            return None
        try:
            release = self._accountant.release(self._name(task))
        except (LookupError, PrivacyLedgerError):
            return None
        return release["transform"] if self._in_transform else release

    def keep(self, task, result):
        """Store the result of a task, if it has one."""
        if self._accountant is not None and not isinstance(result, Failed):
            release = {"transform": result} if self._in_transform else result
            Paid([], self._accountant, self._name(task)).keep_result(release)


def _plan(estimator, X):
    """What accountants will pay for one replicate; None where nobody knows, or nobody counts."""
    if _searches_accountants(estimator):
        return None
    try:
        plan = planned_loss(estimator, X)
    except ValueError:
        # Parameters out of range are refused by the release.
        return None
    counted = [r for r in plan.releases if r.accountant or default_accountant()]
    return replace(plan, releases=tuple(counted)) if counted else None


def _stays_here(estimator):
    """Whether nothing inside makes processes of its own, which would share what one has paid."""
    return all(value in (None, 1) for value in _named(estimator, "n_jobs").values())


def _searches_accountants(estimator):
    """Whether candidates of a search bring accountants of their own, which nothing can replace."""
    values = _named(estimator, "param_grid", "param_distributions").values()
    grids = [g for v in values for g in (v if isinstance(v, list | tuple) else [v])]
    return any(name.split("__")[-1] == "accountant" for grid in grids for name in grid)


def _named(estimator, *names):
    """Parameters of these names, of the estimator and of what it holds."""
    parameters = estimator.get_params().items()
    return {name: value for name, value in parameters if name.split("__")[-1] in names}


def _first(paid, estimator, X, task):
    """Release here, so that what is refused is refused before all replicates are paid for."""
    try:
        with task.coins():
            result = _release_from(paid, estimator, X, task.seed)
    except Exception as error:
        if not paid.is_paid:
            raise
        result = Failed(error)
    paid.settle()
    return result


def _replicate(estimator, reserved, X, task):
    """Release once, by a clone with a seed or a key, from what was paid for ahead, if anything."""
    paid = None if reserved is None else PaidAhead(reserved)
    with task.coins():
        return _release_from(paid, estimator, X, task.seed)


def _release_from(paid, estimator, X, seed):
    copy = seeded_clone(estimator, seed)
    if paid is None:
        return release(copy, X)
    # Where an accountant is missing, the default would serve.
    accountants = _named(copy, "accountant").items()
    payers = {name: value or default_accountant() for name, value in accountants}
    copy.set_params(**{name: Reservation(p, paid) for name, p in payers.items() if p is not None})
    try:
        # Whatever would leave this process would pay for itself, so all of it runs here.
        with parallel_config(backend="sequential"):
            return release(copy, X)
    finally:
        paid.is_open = False


class PaidAhead:
    """Charges that a ledger has counted already, until they are taken or closed.

    Of what covers a release the cheapest is taken. Where ``pay`` is given, nothing is counted yet:
    it is called once, when the first release has passed all checks and asks for its share.
    """

    def __init__(self, guarantees, pay=None):
        self.is_open = True
        self._pay_all = pay
        self._left = list(guarantees)
        self._lock = threading.RLock()

    def take(self, asked, adjacency, unit):
        """Take what was paid for such a release; PrivacyLedgerError if nothing is left for it."""
        with self._lock:
            covering = [
                (_costs(paid.charge), place)
                for place, paid in enumerate(self._left)
                if paid.adjacency == adjacency
                and kind_of_unit(paid.unit) == kind_of_unit(unit)
                and _covers(paid.charge, asked)
            ]
            if not covering:
                raise PrivacyLedgerError(
                    "A release was not among those that were paid for ahead: nothing was released."
                )
            self.settle()
            del self._left[min(covering)[1]]

    @property
    def is_paid(self):
        """Whether the ledger has counted the charges."""
        return self._pay_all is None

    def settle(self):
        """Pay, if nobody has asked for a share so far."""
        with self._lock:
            if self._pay_all is not None:
                self._pay_all()
                self._pay_all = None


class Reservation(PrivacyAccountant):
    """An accountant of which releases of one task take what was paid for ahead, and nothing else.

    What has left the task, as a pickle or when the task is over, is the accountant itself again.
    """

    def __init__(self, accountant, paid):
        self.__dict__.update(vars(accountant))
        self._paid = paid

    def spend(
        self,
        epsilon,
        delta=0.0,
        *,
        rho=None,
        adjacency="replace-one",
        unit="one record",
        **line: Any,
    ) -> None:
        """Take what was paid for, or, when the task is over, pay."""
        if self._paid.is_open:
            self._paid.take(Charge(float(epsilon), float(delta), rho), adjacency, unit)
        else:
            super().spend(epsilon, delta, rho=rho, adjacency=adjacency, unit=unit, **line)

    def store(self, key, release):
        """Store nothing while the task runs: whoever has sent it stores its result."""
        if not self._paid.is_open:
            super().store(key, release)


def _costs(charge):
    return charge.epsilon, charge.delta, charge.concentrated


def _covers(paid, asked):
    return all(has >= costs for has, costs in zip(_costs(paid), _costs(asked), strict=True))
