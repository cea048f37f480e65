"""One release in a task that an engine may run more than once."""

from typing import Any

from sklearn.base import BaseEstimator, clone

from sklearn_dptda.privacy import ReleaseKey
from sklearn_dptda.privacy._release import release
from sklearn_dptda.privacy._release_key import under
from sklearn_dptda.utils._dask_parts import parts_elsewhere

_NOT_BOUND = {"accountant", "n_jobs", "verbose"}


def release_once(estimator: BaseEstimator, X: Any, key: ReleaseKey) -> Any:
    """Release in a task of your own that may run again: paid once, drawn once.

    Parameters
    ----------
    estimator : estimator
        Private, or a pipeline. It is cloned. Give it an accountant that workers
        can reach, such as one in a database server.
    X : array-like, DataFrame, or list of them
        Its input, in memory: read the part of a task inside of the task. It
        must pickle, and is read twice.
    key : ReleaseKey
        Made before the task is sent, one for each task.

    Returns
    -------
    object
        What ``fit_transform`` returns; of estimators that release in ``fit``,
        what they have learnt, by name.

    Raises
    ------
    ValueError
        If ``key`` is none, or X describes records that are elsewhere, such as a Dask collection or
        a function: what the description means could change between two runs.

    Notes
    -----
    .. rubric:: Privacy

    That of the estimator. Coins and the name of the payment are functions of
    the key, of the input and of the parameters: the same task, run again, pays
    nothing and repeats its draw, and whatever differs is another release, with other
    coins and a payment of its own. The law of the result is that of one
    release, since it does not depend on how often the task has died; with
    fresh coins in each run it would be the law given that the run survived,
    which can lose twice as much. The proof is in the guide to guarantees. Steps that draw in
    threads of their own, which have no key, pay in each run.

    Examples
    --------
    >>> from sklearn_dptda.cluster import DPLloyd
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> from sklearn_dptda.model_selection import release_once
    >>> from sklearn_dptda.privacy import PrivacyAccountant, ReleaseKey
    >>> budget, key = PrivacyAccountant(1.0, 1e-5), ReleaseKey()
    >>> model = DPLloyd(2, 0.8, bounds=(-3, 3.5), accountant=budget)
    >>> X = make_two_circles(1000, random_state=0)
    >>> first, again = release_once(model, X, key), release_once(model, X, key)
    >>> bool((first["cluster_centers_"] == again["cluster_centers_"]).all())
    True
    >>> budget.total().epsilon
    0.8
    """
    if not isinstance(key, ReleaseKey):
        raise ValueError(f"key must be a ReleaseKey; got one of type {type(key).__name__}.")
    for part in (X, *X) if isinstance(X, list | tuple) else (X,):
        if callable(part) or parts_elsewhere(part) is not None:
            raise ValueError(
                "X must be in memory, since coins are a function of its records: read the part of "
                "a task inside of the task, and pass that."
            )
    copy = clone(estimator)
    with under(key.child((_described(copy), X))):
        return release(copy, X)


def _described(value):
    """What decides about a release, in parts that pickle alike in every process."""
    if hasattr(value, "get_params") and not isinstance(value, type):
        kind, parameters = type(value), value.get_params(deep=False)
        bound = {name: parameters[name] for name in sorted(parameters.keys() - _NOT_BOUND)}
        return kind.__module__, kind.__qualname__, _described(bound)
    if isinstance(value, dict):
        return [(name, _described(part)) for name, part in value.items()]
    if isinstance(value, list | tuple):
        return [_described(part) for part in value]
    return value
