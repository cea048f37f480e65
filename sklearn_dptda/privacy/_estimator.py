"""What every private estimator shares: its accountant and its tags."""

import copy
import inspect
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from sklearn.base import BaseEstimator
from sklearn.utils import Tags

from sklearn_dptda._typing import Adjacency
from sklearn_dptda.privacy._accountant import default_accountant

FRESH = "_differs_in_every_pickle"
# Public, but of no use in a ledger, or a secret.
_NOT_RECORDED = {"accountant", "random_state", "n_jobs", "verbose"}


@dataclass(slots=True)
class PrivacyTags:
    """What the privacy checks need to know about an estimator.

    Attributes
    ----------
    input : {"functions", "clouds", "rows", "graph"}
        What ``X`` is: a list of functions on a public grid, a list of point
        clouds, a table with one record per row, an adjacency matrix.
    releases : {"fit", "transform"}
        Which method draws the release.
    adjacency : {"replace-one", "add-remove"}
        Neighbours that the guarantee speaks of.
    ragged : bool
        Whether the number of rows of what is released is private output
        itself, as that of a diagram or of clusters found.
    exact_sibling : callable or None
        Takes the estimator and returns the non-private one that equals it at
        ``epsilon=inf``.
    distance : callable or None
        Takes two releases and returns how far they are apart, where the mean
        change of their numbers would not tell: where the numbers of rows
        differ. None compares numbers, and (n, 2) arrays of different length as
        diagrams.
    """

    input: Literal["functions", "clouds", "rows", "graph"] = "rows"
    releases: Literal["fit", "transform"] = "fit"
    adjacency: Adjacency = "replace-one"
    ragged: bool = False
    exact_sibling: Callable[[Any], BaseEstimator] | None = None
    distance: Callable[[Any, Any], float] | None = None


@dataclass(slots=True)
class PrivateTags(Tags):
    """scikit-learn's tags and those of privacy."""

    privacy: PrivacyTags = field(default_factory=PrivacyTags)


class AccountedMixin:
    """Mixin for estimators that pay from a budget, wherever they are copied to.

    The estimator has the parameters ``accountant`` and ``random_state``. Two
    pickles of an estimator that takes its noise from the operating system
    differ, so that ``Pipeline(memory=...)`` and :class:`joblib.Memory` never
    return an old release for a new one.
    """

    def _spend(self, guarantee):
        """Pay for what the guarantee promises, if anybody keeps count.

        Raises
        ------
        PrivacyBudgetExceeded, PrivacyLedgerError
        """
        accountant = self.accountant if self.accountant is not None else default_accountant()
        if accountant is None:
            return
        accountant.spend(
            guarantee.epsilon,
            guarantee.delta,
            rho=guarantee.rho,
            adjacency=guarantee.adjacency,
            what=guarantee.released,
            estimator=type(self).__name__,
            parameters=_public_parameters(self),
        )

    def __getstate__(self):
        state = dict(super().__getstate__())
        # A worker process has no ``with`` block around it: the default travels along.
        if self.accountant is None and default_accountant() is not None:
            state["accountant"] = default_accountant()
        if self.random_state is None:
            # Caches know estimators by their pickles, and would replay a release for nothing:
            # whoever sees that two are equal sees that their records are.
            state[FRESH] = secrets.token_hex(16)
        return state

    def __setstate__(self, state):
        super().__setstate__({name: value for name, value in state.items() if name != FRESH})

    def __copy__(self):
        # Copies stay in this process: the default is still there when they are fitted.
        return self._with_state(self.__dict__)

    def __deepcopy__(self, memo):
        return self._with_state(copy.deepcopy(self.__dict__, memo))

    def _with_state(self, state):
        twin = object.__new__(type(self))
        twin.__dict__.update(state)
        return twin


class PrivateEstimatorMixin(AccountedMixin):
    """Mixin for estimators that release under differential privacy.

    The estimator has the parameters ``epsilon``, ``accountant`` and
    ``random_state``, and takes all its noise from
    :class:`~sklearn_dptda.privacy.NoiseSource`. Before it computes anything
    from the records that it releases, it calls ``self._spend(guarantee)``;
    after that, nothing gives the budget back. It sets ``privacy_guarantee_``.

    See Also
    --------
    sklearn_dptda.utils.estimator_checks : What it is held to.
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        return PrivateTags(**{f.name: getattr(tags, f.name) for f in fields(tags)})


def _public_parameters(estimator):
    """Parameters that differ from their defaults."""
    signature = inspect.signature(type(estimator)).parameters
    return {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if name not in _NOT_RECORDED
        and (name not in signature or repr(value) != repr(signature[name].default))
    }
