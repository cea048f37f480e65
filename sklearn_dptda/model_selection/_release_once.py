"""One release in a task that an engine may run more than once."""

from typing import Any

from sklearn.base import BaseEstimator, clone

from sklearn_dptda.privacy import ReleaseKey
from sklearn_dptda.privacy._estimator import comparable
from sklearn_dptda.privacy._release import release
from sklearn_dptda.privacy._release_key import under

_NOT_BOUND = {"accountant", "n_jobs", "verbose"}


def release_once(estimator: BaseEstimator, X: Any, key: ReleaseKey) -> Any:
    """Release in a task of your own that may run again: paid once, drawn once.

    Parameters
    ----------
    estimator : estimator
        Private, or a pipeline. It is cloned. Give it an accountant that workers
        can reach, such as one in a database server.
    X : object
        Its input. It must pickle; it is read twice and copied never.
    key : ReleaseKey
        Made before the task is sent, one for each task.

    Returns
    -------
    object
        What ``fit_transform`` returns; of estimators that release in ``fit``,
        what they have learnt, by name.

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
    copy = clone(estimator)
    parameters = {
        name: comparable(value)
        for name, value in copy.get_params().items()
        if name.split("__")[-1] not in _NOT_BOUND and not hasattr(value, "get_params")
    }
    with under(key.child((type(copy).__name__, sorted(parameters.items()), X))):
        return release(copy, X)
