"""One release in a task that a computing engine may run more than once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.base import BaseEstimator, clone

from sklearn_dptda.privacy import PrivateEstimatorMixin
from sklearn_dptda.privacy._accountant import NamedAccountant, PrivacyAccountant
from sklearn_dptda.privacy._default_accountant import default_accountant
from sklearn_dptda.privacy._release import release


def release_once(estimator: BaseEstimator, X: Any, name: str) -> Any:
    """Make one release under a name, paid once and drawn once however often it runs.

    Use it in tasks of your own on a cluster, where a task runs again if its
    worker has died, and in scripts that you may have to start again.

    Parameters
    ----------
    estimator : estimator
        A private estimator, or a pipeline. It is cloned. Its private steps need an
        accountant. For tasks on other machines, give it ``budget.under(work)``: the
        key of that name travels with the estimator, and ``name`` is the part of the
        work. The ledger must be accessible there, for example in a database server.
    X : array-like, DataFrame, or list of them
        Input of the estimator. The input of each releasing step must be in memory.
    name : str
        Public name of the release, which the ledger shows. If several steps release,
        the name of each begins with it, such as ``"november/cluster"``.

    Returns
    -------
    object
        Result of ``fit_transform``. For estimators that release in ``fit``, a
        dictionary of the fitted attributes.

    Raises
    ------
    PrivacyLedgerError
        If other records or parameters were released under this name, or if the
        secret of the ledger is that of another user or machine. Nothing is spent
        and nothing is released.

    See Also
    --------
    release_replicates : Make many releases, also under a name.

    Notes
    -----
    .. rubric:: Privacy

    The guarantee is that of the estimator. All random numbers are a function of
    the secret of the ledger, the name, and a digest of the releasing step: its
    class, parameters and records, and the code of this package. The ledger stores a
    code of the digest beside the payment. If the same task runs again, it pays
    nothing and repeats its draw. Anything else under the same name is refused,
    because equal releases of two data sets would reveal that the data sets are
    equal.

    The distribution of the result is that of one release, because it does not
    depend on how often the task has died. With fresh random numbers in each run,
    it would be the distribution given that the run survived, whose privacy loss
    can be twice as large. The proof is in the guide to guarantees.

    Earlier steps are seen through their output, so that they must be functions of
    their input: a step that is random needs a ``random_state``. If you edit an
    estimator of your own between two runs under one name, choose another name.

    Examples
    --------
    >>> from sklearn_dptda.cluster import DPLloyd
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> from sklearn_dptda.model_selection import release_once
    >>> from sklearn_dptda.privacy import PrivacyAccountant
    >>> budget = PrivacyAccountant(1.0, 1e-5)
    >>> model = DPLloyd(2, 0.8, bounds=(-3, 3.5), accountant=budget)
    >>> X = make_two_circles(1000, random_state=0)
    >>> first, again = release_once(model, X, "circles"), release_once(model, X, "circles")
    >>> bool((first["cluster_centers_"] == again["cluster_centers_"]).all())
    True
    >>> budget.total().epsilon
    0.8
    """
    refuse_unrepeatable(estimator)
    copy = paid_by(
        clone(estimator), estimator, lambda payer: payer and payer.under(name), apart=True
    )
    return release(copy, X)


def parameters_named(estimator: BaseEstimator, *names: str) -> dict[str, Any]:
    """Return the parameters with these names, of the estimator and of nested estimators."""
    parameters = estimator.get_params().items()
    return {name: value for name, value in parameters if name.split("__")[-1] in names}


def payers_of(estimator: BaseEstimator) -> dict[str, PrivacyAccountant | None]:
    """Return who pays for each step, by the name of the parameter."""
    accountants = parameters_named(estimator, "accountant").items()
    return {name: value or default_accountant() for name, value in accountants}


def paid_by(
    copy: BaseEstimator,
    estimator: BaseEstimator,
    other: Callable[[Any], Any],
    *,
    apart: bool = False,
) -> BaseEstimator:
    """Let a clone of an estimator pay to other accountants: one for all steps of one payer.

    The steps of one payer take turns under one name, so that no two of them share a key. With
    ``apart``, each of several steps has a name of its own, so that they may run in different
    processes.
    """
    payers, made = payers_of(estimator), {}
    for payer in payers.values():
        if ledger_of(payer) not in made:
            made[ledger_of(payer)] = other(payer)
    new = {name: made[ledger_of(payer)] for name, payer in payers.items()}
    if apart and len(new) > 1:
        # An estimator that contains other private ones keeps the name itself.
        steps = {name: name.rpartition("__")[0] for name in new}
        new = {name: p.under(steps[name]) if p and steps[name] else p for name, p in new.items()}
    return copy.set_params(**new)


def ledger_of(payer: PrivacyAccountant | None) -> Any:
    """Return what accountants of one budget and one name have in common."""
    return None if payer is None else (payer._ledger.id, getattr(payer, "_name", None))


def searches_accountants(estimator: BaseEstimator) -> bool:
    """Whether the candidates of a search have accountants of their own."""
    values = parameters_named(estimator, "param_grid", "param_distributions").values()
    grids = [g for v in values for g in (v if isinstance(v, list | tuple) else [v])]
    return any(
        name.split("__")[-1] == "accountant" or any(map(_has_accountant, _listed(grid[name])))
        for grid in grids
        for name in grid
    )


def _listed(values: Any) -> Any:
    return values if isinstance(values, list | tuple) else [values]


def _has_accountant(candidate: Any) -> bool:
    """Whether a candidate of a search is an estimator that pays by itself."""
    is_estimator = hasattr(candidate, "get_params") and not isinstance(candidate, type)
    return is_estimator and bool(parameters_named(candidate, "accountant"))


@contextmanager
def same_copies(estimator: BaseEstimator) -> Iterator[None]:
    """Let clones that are made in this block and never fitted use up no names."""
    payers = [each for each in payers_of(estimator).values() if isinstance(each, NamedAccountant)]
    counts = [payer._n_copies for payer in payers]
    try:
        yield
    finally:
        for payer, count in zip(payers, counts, strict=True):
            payer._n_copies = count


def refuse_unrepeatable(estimator: BaseEstimator) -> None:
    """Refuse random steps without a seed, and private steps without an accountant."""
    if searches_accountants(estimator):
        raise ValueError(
            "The candidates of a search have accountants, which get no name. Search over other "
            "parameters."
        )
    for step in (estimator, *estimator.get_params(deep=True).values()):
        if isinstance(step, PrivateEstimatorMixin):
            if step._payer() is None:
                raise ValueError(
                    f"{type(step).__name__} has no accountant. A release under a name requires "
                    "an accountant, whose ledger records how the name was used."
                )
        elif isinstance(step, BaseEstimator) and getattr(step, "random_state", 0) is None:
            raise ValueError(
                f"{type(step).__name__} has random_state=None, and its result would differ each "
                "time its task runs. Set random_state to an integer."
            )
