"""One release in a task that a computing engine may run more than once."""

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
    "X must be in memory, because the random numbers are a function of its records. Read the data "
    "of a task inside of the task, and pass them."
)


def release_once(estimator: BaseEstimator, X: Any, key: ReleaseKey) -> Any:
    """Make one release in a task that may run again, paid once and drawn once.

    Use it in tasks of your own on a cluster, where a task runs again if its
    worker has died.

    Parameters
    ----------
    estimator : estimator
        A private estimator, or a pipeline. It is cloned. Its accountant must be
        accessible to the workers, for example in a database server.
    X : array-like, DataFrame, or list of them
        Input of the estimator, in memory. Read the data of a task inside of the
        task. ``X`` must be picklable and is read twice.
    key : ReleaseKey
        Key of the task. Create one key for each task before you send the task. A
        key is valid for one release, of these records with these parameters and
        this code.

    Returns
    -------
    object
        Result of ``fit_transform``. For estimators that release in ``fit``, a
        dictionary of the fitted attributes.

    Raises
    ------
    ValueError
        If ``key`` is not a :class:`ReleaseKey`; if the records of X are not in
        memory, as for a Dask collection or a function, because they could change
        between two runs; if a private step has no accountant, because only an
        accountant can refuse a key that is used twice; or if another step is
        random and has no ``random_state``. Nothing is spent.
    PrivacyLedgerError
        If the key has paid for a release of other records, other parameters or
        other code. Nothing is spent and nothing is released.

    See Also
    --------
    release_replicates : Make many releases, also under a key.

    Notes
    -----
    .. rubric:: Privacy

    The guarantee is that of the estimator. All random numbers are a function of
    the key and of a digest of the records, the parameters and the code of all
    steps. The name of the payment is a function of the key alone, and the ledger
    stores the digest beside it. If the same task runs again, it pays nothing and
    repeats its draw. Anything else under the same key is refused, because equal
    releases of two data sets under one key would reveal that the data sets are
    equal.

    The distribution of the result is that of one release, because it does not
    depend on how often the task has died. With fresh random numbers in each run,
    it would be the distribution given that the run survived, whose privacy loss
    can be twice as large. The proof is in the guide to guarantees.

    The digest covers the fitted state, the versions of installed packages, the
    source code of this package, and the code of your own functions and classes
    with the global variables that they read. It cannot cover other input of your
    code, such as files or the clock, so that all steps must be functions of their
    input. Steps that draw in threads of their own, which have no key, pay in each
    run.

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
    """Return a clone, the records in memory, and a key for both and for the code that they run."""
    if not isinstance(key, ReleaseKey):
        raise ValueError(f"key must be a ReleaseKey; got a {type(key).__name__}.")
    X = _in_memory(X)
    copy = clone(estimator)
    _refuse_unrepeatable(copy)
    return copy, X, key.child(digest_of((copy, X)))


def _in_memory(X):
    """Return a copy of the records, so that digest and release use the same values."""
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
        # Copy the array: one that is mapped into memory from a file can change with the file.
        X = np.array(X)
        if X.dtype == object:
            _check_items(X.ravel())
        return X
    graph = hasattr(X, "adjacency") and hasattr(X, "nodes")
    if not (graph or issparse(X) or isinstance(X, Filtration | LatticeHistogram)):
        raise ValueError(_ELSEWHERE_MESSAGE)
    return X.copy() if issparse(X) else X


def _check_items(items):
    """Refuse objects that convert themselves to numbers, because they may read them elsewhere."""
    if not all(type(item) in _PLAIN_TYPES or isinstance(item, np.generic) for item in items):
        raise ValueError(_ELSEWHERE_MESSAGE)


def _refuse_unrepeatable(estimator):
    """Refuse random steps without a seed, and private steps without an accountant."""
    for step in (estimator, *estimator.get_params(deep=True).values()):
        if isinstance(step, PrivateEstimatorMixin):
            if step._payer() is None:
                raise ValueError(
                    f"{type(step).__name__} has no accountant. A release under a key requires "
                    "an accountant, whose ledger records how a key was used."
                )
        elif isinstance(step, BaseEstimator) and getattr(step, "random_state", 0) is None:
            raise ValueError(
                f"{type(step).__name__} has random_state=None, and its result would differ each "
                "time its task runs. Set random_state to an integer."
            )
