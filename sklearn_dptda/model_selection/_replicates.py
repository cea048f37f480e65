"""Many independent releases, in parallel, reproducible whatever the number of workers."""

from typing import Any

from joblib import Parallel, delayed
from sklearn.base import BaseEstimator

from sklearn_dptda._typing import RandomStateLike
from sklearn_dptda.privacy import spawn_seeds
from sklearn_dptda.privacy._release import seeded_clone


def release(estimator, X, seed):
    """Release once, by a clone with a seed of its own."""
    return seeded_clone(estimator, seed).fit_transform(X)


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
        Its input.
    n_replicates : int, default=100
        Number of releases.
    random_state : int, RandomState instance, Generator or None, default=None
        One seed per replicate is drawn before any work starts, so results do
        not depend on ``n_jobs``. None: operating system's entropy.
    n_jobs : int, default=None
        Number of workers; any joblib backend serves.
    verbose : int, default=0
        Progress, as in :class:`joblib.Parallel`.

    Returns
    -------
    list
        What ``fit_transform`` returned, one entry per replicate.

    Notes
    -----
    .. rubric:: Privacy

    Losses add up: ``n_replicates`` releases of a sensitive cloud
    cost ``n_replicates * epsilon``. Meant for simulated or public data.

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
        raise ValueError(f"n_replicates must be at least 1; got {n_replicates!r}.")
    seeds = spawn_seeds(random_state, n_replicates)
    return Parallel(n_jobs=n_jobs, verbose=verbose)(
        delayed(release)(estimator, X, seed) for seed in seeds
    )
