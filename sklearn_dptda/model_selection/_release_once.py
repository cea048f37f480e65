"""One release in a task that an engine may run more than once."""

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone

from sklearn_dptda.filtration import LatticeHistogram
from sklearn_dptda.filtration._filtration import Filtration
from sklearn_dptda.privacy import PrivateEstimatorMixin, ReleaseKey
from sklearn_dptda.privacy._digest import digest_of
from sklearn_dptda.privacy._release import release
from sklearn_dptda.privacy._release_key import under
from sklearn_dptda.utils._frames import frame_library, parts_elsewhere

_PLAIN_TYPES = {bool, bytes, complex, float, int, str, type(None)}
_ELSEWHERE_MESSAGE = (
    "X must be in memory, since coins are a function of its records: read the part of a task "
    "inside of the task, and pass that."
)


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
        Made before the task is sent, one for each task. A key is good for one
        release: of these records, by these parameters and this code.

    Returns
    -------
    object
        What ``fit_transform`` returns; of estimators that release in ``fit``,
        what they have learnt, by name.

    Raises
    ------
    ValueError
        If ``key`` is none; if X describes records that are elsewhere, such as a
        Dask collection or a function: what the description means could change
        between two runs; if a private step has no accountant, which alone can
        refuse a key that is used twice; or if another step draws at random
        without a ``random_state``. Nothing is spent.
    PrivacyLedgerError
        If the key has paid for a release of other records, other parameters or
        other code. Nothing is spent and nothing is released.

    Notes
    -----
    .. rubric:: Privacy

    That of the estimator. All coins are a function of the key and of a digest
    of the records, the parameters and the code of all steps; the name of the
    payment is a function of the key alone, and the ledger keeps the digest
    beside it. The same task, run again, pays nothing and repeats its draw.
    Anything else under the same key is refused: equal releases of two data
    sets under one key would tell that the data sets are equal. The law of the
    result is that of one release, since it does not depend on how often the
    task has died; with fresh coins in each run it would be the law given that
    the run survived, which can lose twice as much. The proof is in the guide to
    guarantees.

    The digest holds fitted state, the versions of installed packages, the
    sources of this one, and of your own functions and classes their code and
    the global variables that they read. It cannot see what your code reads from
    elsewhere, such as files or the clock: all steps must be functions of their
    input. Steps that draw in threads of their own, which have no key, pay in
    each run.

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
    copy, X, bound = bound_to(key, estimator, X)
    with under(key, bound):
        return release(copy, X)


def bound_to(
    key: ReleaseKey, estimator: BaseEstimator, X: Any
) -> tuple[BaseEstimator, Any, ReleaseKey]:
    """A clone, records in memory, and the key that both decide about with the code they run."""
    if not isinstance(key, ReleaseKey):
        raise ValueError(f"key must be a ReleaseKey; got one of type {type(key).__name__}.")
    X = _in_memory(X)
    copy = clone(estimator)
    _refuse_unrepeatable(copy)
    return copy, X, key.child(digest_of((copy, X)))


def _in_memory(X):
    """A copy of records, which is digested and released: what reads them is read once."""
    if type(X) in _PLAIN_TYPES or isinstance(X, np.generic):
        return X
    if isinstance(X, list | tuple):
        return [_in_memory(part) for part in X]
    if callable(X) or parts_elsewhere(X) is not None:
        raise ValueError(_ELSEWHERE_MESSAGE)
    if frame_library(X) is not None:
        if hasattr(X, "select_dtypes"):
            _check_items(X.select_dtypes(object).to_numpy().ravel())
        elif "Object" in map(str, X.dtypes):
            raise ValueError(_ELSEWHERE_MESSAGE)
        return X.copy() if hasattr(X, "copy") else X
    if hasattr(X, "__array__"):
        # An array that is mapped into memory from a file can change with the file.
        X = np.array(X)
        if X.dtype == object:
            _check_items(X.ravel())
        return X
    graph = hasattr(X, "adjacency") and hasattr(X, "nodes")
    if not (graph or issparse(X) or isinstance(X, Filtration | LatticeHistogram)):
        raise ValueError(_ELSEWHERE_MESSAGE)
    return X.copy() if issparse(X) else X


def _check_items(items):
    """Refuse objects that turn into numbers, which may read them from elsewhere."""
    if not all(type(item) in _PLAIN_TYPES or isinstance(item, np.generic) for item in items):
        raise ValueError(_ELSEWHERE_MESSAGE)


def _refuse_unrepeatable(estimator):
    """Refuse what would not repeat its draw, and what nobody would refuse to use a key again."""
    for step in (estimator, *estimator.get_params(deep=True).values()):
        if isinstance(step, PrivateEstimatorMixin):
            if step._payer() is None:
                raise ValueError(
                    f"{type(step).__name__} has no accountant: release_once needs one, whose "
                    "ledger remembers what a key has been used for."
                )
        elif isinstance(step, BaseEstimator) and getattr(step, "random_state", 0) is None:
            raise ValueError(
                f"{type(step).__name__} has random_state=None, and would make another release "
                "each time its task runs: give it a number."
            )
