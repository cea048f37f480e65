"""Many independent releases in parallel, with results that do not depend on the number of workers.

All releases are paid for together when the first one is drawn in the calling process. Each of the
other releases then takes its share of this payment, in the process where it is drawn.

Proof: doc/theory/kept_releases.md, "One payment, one release".
"""

import math
import threading
from contextlib import nullcontext
from dataclasses import dataclass, replace
from operator import ge
from typing import Any

from joblib import parallel_config
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline

from sklearn_dptda._typing import RandomStateLike
from sklearn_dptda.model_selection._dry_run import planned_loss
from sklearn_dptda.model_selection._release_once import (
    ledger_of,
    paid_by,
    parameters_named,
    payers_of,
    refuse_unrepeatable,
    searches_accountants,
)
from sklearn_dptda.privacy import PrivateEstimatorMixin
from sklearn_dptda.privacy._accountant import NamedAccountant, PrivacyAccountant, check_name
from sklearn_dptda.privacy._default_accountant import default_accountant
from sklearn_dptda.privacy._estimator import Paid
from sklearn_dptda.privacy._guarantee import Charge, kind_of_unit
from sklearn_dptda.privacy._noise import spawn_seeds
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.privacy._release import digest_of, release, releases_in_transform, seeded_clone
from sklearn_dptda.privacy._release_key import ReleaseKey, Turn
from sklearn_dptda.privacy._warnings import PrivacyBudgetExceeded, PrivacyLedgerError
from sklearn_dptda.utils._tasks import (
    Failed,
    first_error,
    outcomes,
    parts_elsewhere,
    tasks_may_repeat,
)


class _Kept(BaseException):
    """Base of errors that hold the finished releases."""

    # What happened to the other releases, in words.
    _happened: str

    def __init__(self, releases: list[Any]) -> None:
        super().__init__(releases)
        self.releases = releases

    def __str__(self):
        missing = sum(entry is None for entry in self.releases)
        return (
            f"{missing} of {len(self.releases)} releases {self._happened}. The others are in the "
            "attribute 'releases' of this error. If you have passed a name, call "
            "release_replicates again with the same name: it continues as far as the budget allows."
        )


class IncompleteReleases(_Kept, RuntimeError):
    """Error: some of many releases failed. The finished releases are kept.

    All releases stay paid for. The first failure is the ``__cause__``.

    Attributes
    ----------
    releases : list
        One entry for each replicate, None if it failed.

    Examples
    --------
    >>> from sklearn_dptda.model_selection import IncompleteReleases
    >>> try:
    ...     raise IncompleteReleases(["a diagram", None])  # as release_replicates does
    ... except IncompleteReleases as error:
    ...     finished = [release for release in error.releases if release is not None]
    >>> finished
    ['a diagram']
    """

    _happened = "failed"


class InterruptedReleases(_Kept, KeyboardInterrupt):
    """Error: Ctrl-C came before all releases were finished. The finished releases are kept.

    All releases stay paid for. The error is a :class:`KeyboardInterrupt`, so that
    code which continues after errors still stops. At a Python prompt,
    ``sys.last_value.releases`` holds the finished releases afterwards.

    Attributes
    ----------
    releases : list
        One entry for each replicate, None if it was not finished.

    Examples
    --------
    >>> from sklearn_dptda.model_selection import InterruptedReleases
    >>> try:
    ...     raise InterruptedReleases(["a diagram", None])  # as release_replicates does
    ... except InterruptedReleases as error:
    ...     finished = [release for release in error.releases if release is not None]
    >>> finished
    ['a diagram']
    """

    _happened = "were not finished"


def release_replicates(
    estimator: BaseEstimator,
    X: object,
    n_replicates: int = 100,
    *,
    name: str | None = None,
    random_state: RandomStateLike = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> list[Any]:
    """Make many independent releases of the same data.

    Parameters
    ----------
    estimator : transformer
        For example a :class:`PrivatePersistence`, or a pipeline that ends in
        one. It is cloned and stays unfitted.
    X : list
        Input of the estimator. On a cluster, it is sent to each worker once.
    n_replicates : int, default=100
        Number of releases. The total privacy loss is proportional to it.
    name : str, default=None
        Public name, under which you can repeat the call after a crash or on another
        day. Releases that the ledger has stored are returned. Releases that were paid
        for but not stored are drawn again, with the same random numbers. The
        remaining releases are paid for and drawn. Without a name, each call makes new
        releases.
    random_state : int, RandomState instance, Generator or None, default=None
        Source of one seed for each replicate. Results do not depend on ``n_jobs``.
        None uses the operating system's entropy. A seed is for tests and study only.
    n_jobs : int, default=None
        Number of workers. Any joblib backend can be used. Processes of the backend
        ``"multiprocessing"`` are those of ``"loky"``, which survives a killed worker.
    verbose : int, default=0
        Verbosity of the progress messages of :class:`joblib.Parallel`. 0 prints
        nothing.

    Returns
    -------
    list
        One entry for each replicate: the result of ``fit_transform`` or, for
        estimators that release in ``fit``, a dictionary of the fitted attributes.

    Raises
    ------
    PrivacyLedgerError
        If other records or parameters were released under the name.
    IncompleteReleases
        If some replicates failed. Also if, under a ``name``, some replicates were
        stored by an earlier call, and the budget does not cover the others. The
        error holds the finished releases.
    InterruptedReleases
        If Ctrl-C came before all replicates were finished. The error holds the
        finished releases. If none was finished, the error is a plain
        :class:`KeyboardInterrupt`.
    PrivacyBudgetExceeded
        If the budget does not cover all replicates. Nothing is spent if the
        replicates are paid for together (see the notes), even if other programs
        spend from the ledger at the same time.

    Notes
    -----
    .. rubric:: Privacy

    Losses add up: ``n_replicates`` releases of a sensitive cloud cost
    ``n_replicates * epsilon``. The function is meant for simulated or public
    data.

    The accountants are charged in the calling process and not in the workers. The
    first replicate is made in the calling process. When it is about to pay, all
    replicates are paid for in one transaction, and the others are sent to the
    workers. If a worker dies, its task runs again, on the cores of this machine
    and on Dask and Ray. The task then pays nothing and repeats its draw, because
    its random numbers are a function of a secret key that travels with it.

    In two cases, the replicates pay in their own tasks: if the cost of a replicate
    cannot be planned, and if ``n_jobs=1`` leaves the processes to inner loops, such
    as those of a search. Each replicate is still paid for once. If another program
    uses up the budget in the meantime, the replicates that were paid for are in
    :class:`IncompleteReleases`.

    If the estimator ends in a private step, a ledger with a ``path`` stores each
    replicate when it is finished, so that a crash loses none of them.
    :meth:`PrivacyAccountant.releases` lists them. For other estimators, a repeated
    call with a ``name`` draws the replicates again with the same random numbers.
    Under a name, ``X`` must be in memory, and functions and classes among the
    parameters must be defined in a module.

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
    repeats = name is not None or tasks_may_repeat(n_jobs)
    tasks = _tasks(estimator, X, seeds, name)
    plan = _plan(estimator, X)
    if plan is not None and name is None:
        (plan * n_replicates).check()
    pays_ahead = plan is not None and (repeats or _stays_here(estimator))
    shelf = _KeptReplicates(estimator, plan) if pays_ahead else None
    releases: list[Any] = [None] * n_replicates
    if name is not None and shelf is not None and shelf.has_paid(tasks[0]):
        try:
            # This raises an error if other records or parameters were paid for.
            plan._pay_for(task.turn for task in tasks)
        except PrivacyBudgetExceeded as refusal:
            kept = [shelf.stored(task) for task in tasks]
            if all(stored is None for stored in kept):
                raise
            raise IncompleteReleases(kept) from refusal
        releases = [shelf.stored(task) for task in tasks]
    missing = [i for i, stored in enumerate(releases) if stored is None]
    reserved = None
    if shelf is not None and missing:
        reserved = [r.guarantee for r in plan.releases for _ in range(r.count)]
        paid = PaidAhead(reserved, lambda: plan._pay_for(task.turn for task in tasks))
        # The first release is made in this process, so that errors are raised before all are paid
        # for.
        place = missing.pop(0)
        try:
            releases[place] = _replicate(estimator, paid, X, repeats, tasks[place])
            paid.settle()
            shelf.keep(tasks[place], releases[place])
        except Exception as failure:
            if not paid.is_paid:
                raise
            releases[place] = Failed(failure)
    finished = outcomes(
        _replicate,
        [(tasks[i],) for i in missing],
        estimator,
        reserved,
        X,
        repeats,
        n_jobs=n_jobs,
        verbose=verbose,
        then=lambda i, result: shelf is not None and shelf.keep(tasks[missing[i]], result),
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
    """One of many releases: its seed, and the keys of its payments by the ledger that counts them.

    Without a common name, the keys are new.
    """

    seed: int | None
    name: str | None
    digest: bytes
    keys: dict[Any, ReleaseKey]

    def turn(self, payer, number):
        """Return the turn of the release with this number that a payer counts."""
        return Turn.of(self.keys[ledger_of(payer)], self.name, number, self.digest)


def _tasks(estimator, X, seeds, name):
    """Return one task for each seed."""
    payers = {ledger_of(payer): payer for payer in payers_of(estimator).values()}
    if any(isinstance(payer, NamedAccountant) for payer in payers.values()):
        raise ValueError(
            "An accountant under a name is for one piece of work. Pass the budget itself as "
            "accountant=, and name= to release_replicates."
        )
    if name is None:
        return [_Task(seed, None, b"", {place: ReleaseKey() for place in payers}) for seed in seeds]
    refuse_unrepeatable(estimator)
    for part in (X, *(X if isinstance(X, list | tuple) else ())):
        if callable(part) or parts_elsewhere(part) is not None:
            raise ValueError(
                "Under a name, X must be in memory, because the random numbers are a function of "
                "its records. Read the data, and pass them."
            )
    described = digest_of((clone(estimator), X))
    secrets = {
        place: payer._ledger.secret().child(check_name(name))
        for place, payer in payers.items()
        if payer is not None
    }
    return [
        _Task(
            seed,
            f"{name}/{i}",
            described + repr(seed).encode(),
            {place: secret.child(i) for place, secret in secrets.items()},
        )
        for i, seed in enumerate(seeds)
    ]


class _KeptReplicates:
    """Store replicates that were paid for in advance, beside the last of their payments.

    Only private output is stored: results of estimators that end in a private step, whose payment
    is the last one. The output of a step after the private step may contain records.
    """

    def __init__(self, estimator, plan):
        self._accountant = None
        self._in_transform = releases_in_transform(estimator)
        while isinstance(estimator, Pipeline):
            estimator = estimator[-1]
        last = plan.releases[-1]
        self._payer: Any = last.accountant or default_accountant()
        self._number = sum(
            release.count
            for release in plan.releases
            if ledger_of(release.accountant or default_accountant()) == ledger_of(self._payer)
        )
        ends_privately = isinstance(estimator, PrivateEstimatorMixin) and (
            last.estimator == type(estimator).__name__ and estimator._payer() is not None
        )
        if ends_privately and all(math.isfinite(r.guarantee.epsilon) for r in plan.releases):
            self._accountant = self._payer

    def _name(self, task):
        return task.turn(self._payer, self._number).payment

    def has_paid(self, task):
        """Whether the payments of a task have been made."""
        return self._payer._ledger.is_paid(self._name(task))

    def stored(self, task):
        """Return the stored release of a task, or None if there is none or it cannot be read."""
        if self._accountant is None:
            return None
        try:
            release = self._accountant.release(self._name(task))
        except (LookupError, PrivacyLedgerError):
            return None
        return release["transform"] if self._in_transform else release

    def keep(self, task, result):
        """Store the result of a task."""
        if self._accountant is not None:
            release = {"transform": result} if self._in_transform else result
            Paid([], self._accountant, self._name(task)).keep_result(release)


def _plan(estimator, X):
    """Return the planned loss of one replicate; None if it is unknown or not counted."""
    if searches_accountants(estimator):
        return None
    try:
        plan = planned_loss(estimator, X)
    except ValueError:
        # The release itself refuses parameters that are out of range.
        return None
    counted = [r for r in plan.releases if r.accountant or default_accountant()]
    return replace(plan, releases=tuple(counted)) if counted else None


def _stays_here(estimator):
    """Whether no part of the estimator starts processes of its own."""
    return all(value in (None, 1) for value in parameters_named(estimator, "n_jobs").values())


def _replicate(estimator, paid, X, repeats, task):
    """Release once, by a clone with a seed or a key, using the advance payment if there is one."""
    paid = PaidAhead(paid) if isinstance(paid, list) else paid
    copy = seeded_clone(estimator, task.seed)
    if paid is None and not repeats:
        return release(copy, X)

    def accountant(payer):
        counts, pays = payer is not None, paid is None and payer is not None
        named = NamedAccountant(
            payer if counts else PrivacyAccountant(math.inf),
            task.keys.get(ledger_of(payer)) if repeats else None,
            task.name,
            # Copies of this accountant may pay in several processes, each for its own records.
            None if pays else task.digest,
        )
        return named if pays else Reservation(named, paid if counts else None)

    # Steps without an accountant use the default accountant.
    paid_by(copy, copy, accountant, apart=paid is None)
    if paid is None:
        return release(copy, X)
    try:
        # A release in another process would pay again, so that everything runs in this process.
        with parallel_config(backend="sequential"):
            return release(copy, X)
    finally:
        paid.is_open = False


class PaidAhead:
    """Charges that were paid in advance, until they are taken or closed.

    A release takes the cheapest charge that covers it. If ``pay`` is given, the charges are not
    paid yet: ``pay`` is called once, when the first release has passed all checks and takes its
    share.
    """

    def __init__(self, guarantees, pay=None):
        self.is_open = True
        self._pay_all = pay
        self._left = list(guarantees)
        self._lock = threading.RLock()

    def take(self, asked, adjacency, unit):
        """Take a charge that covers a release; PrivacyLedgerError if there is none."""
        with self._lock:
            covering = [
                (_costs(paid.charge), place)
                for place, paid in enumerate(self._left)
                if (paid.adjacency, kind_of_unit(paid.unit)) == (adjacency, kind_of_unit(unit))
                and all(map(ge, _costs(paid.charge), _costs(asked)))
            ]
            if not covering:
                raise PrivacyLedgerError(
                    "A release was not among those that were paid for in advance: nothing was "
                    "released."
                )
            self.settle()
            del self._left[min(covering)[1]]

    @property
    def is_paid(self):
        """Whether the ledger has counted the charges."""
        return self._pay_all is None

    def settle(self):
        """Pay, if it has not happened yet."""
        with self._lock:
            if self._pay_all is not None:
                self._pay_all()
                self._pay_all = None


class Reservation(NamedAccountant):
    """Accountant for the releases of one task, which take charges that were paid in advance.

    After the task, and in a pickle, it behaves like the original accountant. Without ``paid``, the
    releases are not counted.
    """

    def __init__(self, accountant, paid):
        self.__dict__.update(vars(accountant))
        self._paid = paid

    def turn(self, *determines):
        """Yield the turn of the next release, or None if tasks cannot run again."""
        return nullcontext() if self._key is None else super().turn(*determines)

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
        """Take a charge that was paid in advance or, after the task, pay."""
        if self._paid is None:
            return
        if self._paid.is_open:
            self._paid.take(Charge(float(epsilon), float(delta), rho), adjacency, unit)
        else:
            super().spend(epsilon, delta, rho=rho, adjacency=adjacency, unit=unit, **line)

    def store(self, key, release):
        """Store nothing while the task runs, because the calling process stores its result."""
        if self._paid is not None and not self._paid.is_open:
            super().store(key, release)

    def __reduce__(self):
        return (type(None), ()) if self._paid is None else PrivacyAccountant.__reduce__(self)


def _costs(charge):
    return charge.epsilon, charge.delta, charge.concentrated
