"""Many independent releases, in parallel, reproducible whatever the number of workers."""

from dataclasses import replace
from typing import Any

from sklearn.base import BaseEstimator

from sklearn_dptda._typing import RandomStateLike
from sklearn_dptda.model_selection._dry_run import planned_loss
from sklearn_dptda.privacy import ReleaseKey, default_accountant, spawn_seeds
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.privacy._release import release, seeded_clone
from sklearn_dptda.privacy._release_key import under
from sklearn_dptda.privacy._reservation import PaidAhead, Reservation
from sklearn_dptda.utils._tasks import Failed, outcomes, tasks_may_repeat


class IncompleteReleases(RuntimeError):
    """Some of many releases failed; those that were finished are kept.

    Everything stays paid for. What failed is the cause of this error.

    Attributes
    ----------
    releases : list
        One entry per replicate; None where it failed.
    """

    def __init__(self, releases: list[Any]) -> None:
        super().__init__(releases)
        self.releases = releases

    def __str__(self):
        failed = sum(entry is None for entry in self.releases)
        return (
            f"{failed} of {len(self.releases)} releases failed. The others are in the attribute "
            "'releases' of this error."
        )


def release_replicates(
    estimator: BaseEstimator,
    X: object,
    n_replicates: int = 100,
    *,
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
    IncompleteReleases
        If some replicates failed; it holds the others.
    PrivacyBudgetExceeded
        If the budget does not cover all replicates. Nothing is spent.

    Notes
    -----
    .. rubric:: Privacy

    Losses add up: ``n_replicates`` releases of a sensitive cloud
    cost ``n_replicates * epsilon``. Meant for simulated or public data.

    Accountants are charged here, not in workers: the first replicate is made
    and paid for here, then all others are paid for in one transaction, and sent
    to the workers. A task that an engine runs again, as Dask and Ray do when a
    worker dies, pays nothing and repeats its draw: its coins come from a
    :class:`~sklearn_dptda.privacy.ReleaseKey`.
    Where it cannot be planned what a replicate will cost, or processes of its
    own share it (``n_jobs`` of a search inside, on this machine), replicates pay in the
    workers, under keys where tasks run again, and so once each as well.

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
    keys = [ReleaseKey() if tasks_may_repeat() else None for _ in seeds]
    first, reserved = [], None
    plan = _plan(estimator, X)
    if plan is not None:
        (plan * n_replicates).check()
    if plan is not None and (tasks_may_repeat() or _stays_here(estimator)):
        # What an estimator refuses, it refuses here, and nothing is spent.
        first.append(_replicate(estimator, None, X, seeds[0], None))
        (plan * (n_replicates - 1)).pay()
        reserved = [r.guarantee for r in plan.releases for _ in range(r.count)]
    rest = list(zip(seeds, keys, strict=True))[len(first) :]
    releases = first + outcomes(
        _replicate, rest, estimator, reserved, X, n_jobs=n_jobs, verbose=verbose
    )
    errors = [r.error for r in releases if isinstance(r, Failed)]
    if len(errors) == n_replicates:
        raise errors[0]
    if errors:
        kept = [None if isinstance(r, Failed) else r for r in releases]
        raise IncompleteReleases(kept) from errors[0]
    return releases


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
    jobs = (v for n, v in estimator.get_params().items() if n.split("__")[-1] == "n_jobs")
    return all(value in (None, 1) for value in jobs)


def _searches_accountants(estimator):
    """Whether candidates of a search bring accountants of their own, which nothing can replace."""
    grids = [
        grid
        for name, value in estimator.get_params().items()
        if name.split("__")[-1] in ("param_grid", "param_distributions")
        for grid in (value if isinstance(value, list | tuple) else [value])
    ]
    return any(name.split("__")[-1] == "accountant" for grid in grids for name in grid)


def _replicate(estimator, reserved, X, seed, key):
    """Release once, by a clone with a seed or a key, from what was paid for ahead, if anything."""
    copy = seeded_clone(estimator, seed)
    paid = PaidAhead(reserved or [])
    if reserved is not None:
        payers = _payers(copy).items()
        copy.set_params(**{name: Reservation(payer, paid) for name, payer in payers})
    try:
        with under(key):
            return release(copy, X)
    finally:
        paid.is_open = False


def _payers(estimator):
    """Accountants by the names of parameters, with the default where it would serve."""
    names = {n: v for n, v in estimator.get_params().items() if n.split("__")[-1] == "accountant"}
    payers = {name: value or default_accountant() for name, value in names.items()}
    return {name: payer for name, payer in payers.items() if payer is not None}
