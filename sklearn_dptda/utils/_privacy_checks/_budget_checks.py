"""Checks of the budget: it is spent once, before the release, and never given back."""

import copy
import math
import pickle
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from joblib import Memory
from sklearn.base import clone
from sklearn.utils import get_tags

from sklearn_dptda.privacy import PrivacyAccountant, PrivacyBudgetExceeded
from sklearn_dptda.privacy._guarantee import Charge
from sklearn_dptda.privacy._release import (
    as_arrays,
    protects_labels,
    release,
    releases_in_transform,
    state,
)
from sklearn_dptda.privacy.neighbours import NeighbourPair
from sklearn_dptda.utils._privacy_checks._check_tools import equal, refusal, watched_noise
from sklearn_dptda.utils._privacy_checks._data_checks import CheckData


class _NoEntropy(Exception):
    """An error in the middle of a release, for tests."""


def _with_budget(
    estimator: Any, epsilon: float = math.inf, delta: float = 0.5
) -> tuple[Any, PrivacyAccountant]:
    accountant = PrivacyAccountant(epsilon, delta)
    return clone(estimator).set_params(accountant=accountant), accountant


def check_each_release_is_paid_once(estimator: Any, data: CheckData) -> None:
    """Each release makes one payment, with the loss of the guarantee."""
    private, accountant = _with_budget(estimator)
    for count in (1, 2):
        release(private, data.X)
        assert len(accountant) == count
    guarantee, (_, spend) = private.privacy_guarantee_, accountant.spends()
    assert (spend.epsilon, spend.delta) == (guarantee.epsilon, guarantee.delta)
    assert (spend.rho, spend.adjacency) == (guarantee.rho, guarantee.adjacency)
    assert spend.what == guarantee.released
    assert spend.estimator == type(estimator).__name__
    assert "random_state" not in spend.parameters


def check_cost_is_known_before_fit(estimator: Any, data: CheckData) -> None:
    """The cost that an estimator states before its first call is at least what the call spends."""
    private, accountant = _with_budget(estimator)
    table = data.X[0] if protects_labels(private) else data.X
    width = np.shape(table)[-1] if get_tags(private).privacy.input == "rows" else None
    method = get_tags(private).privacy.releases
    ahead = [guarantee for _, guarantee in private._releases_ahead(method, width)]
    release(private, data.X)
    for guarantee, spend in zip(ahead, accountant.spends(), strict=True):
        paid = Charge(spend.epsilon, spend.delta, spend.rho)
        assert guarantee.epsilon >= paid.epsilon and guarantee.delta >= paid.delta
        assert guarantee.charge.concentrated >= paid.concentrated
        assert guarantee.adjacency == spend.adjacency


def check_each_transform_is_a_release(estimator: Any, data: CheckData) -> None:
    """Each transform pays, and fit alone does not."""
    if not releases_in_transform(estimator):
        return
    private, accountant = _with_budget(estimator)
    private.fit(data.X)
    assert len(accountant) == 0
    private.transform(data.X)
    private.transform(data.X)
    assert len(accountant) == 2


def check_budget_is_spent_before_noise_is_drawn(estimator: Any, data: CheckData) -> None:
    """When the first noise is drawn, the payment is in the ledger already."""
    private, accountant = _with_budget(estimator)
    seen = []
    with watched_noise(lambda: seen.append(len(accountant))):
        release(private, data.X)
    assert seen, "no NoiseSource was used: all noise must come from a NoiseSource."
    assert all(count == 1 for count in seen)


def _failed_alike(
    estimator: Any, pair: NeighbourPair, accountant: PrivacyAccountant, action: Callable[[], object]
) -> list[Exception | None]:
    """Return the errors of releases of neighbours; check that the estimators then are equal."""
    errors, states = [], []
    for X in (pair.first, pair.second):
        private = clone(estimator).set_params(accountant=accountant, random_state=0)
        with watched_noise(action):
            errors.append(refusal(private, X)[0])
        states.append(as_arrays(state(private)))
    assert equal(*states), pair.name
    return errors


def check_budget_stays_spent_when_the_release_fails(estimator: Any, data: CheckData) -> None:
    """A failure after the payment does not refund it and reveals nothing about the records."""

    def fail() -> None:
        raise _NoEntropy

    for pair in data.neighbours:
        accountant = PrivacyAccountant(math.inf)
        for error in _failed_alike(estimator, pair, accountant, fail):
            assert isinstance(error, _NoEntropy)
        assert len(accountant) == 2


def check_over_budget_releases_nothing(estimator: Any, data: CheckData) -> None:
    """A release that exceeds the budget is refused before any noise is drawn."""
    for pair in data.neighbours:
        accountant = PrivacyAccountant(estimator.epsilon / 2, 0.5)
        drawn: list[int] = []
        for error in _failed_alike(estimator, pair, accountant, partial(drawn.append, 1)):
            assert isinstance(error, PrivacyBudgetExceeded)
        assert not drawn and len(accountant) == 0


def check_a_cache_replays_no_release(estimator: Any, data: CheckData) -> None:
    """A cache never returns an old release for equal input, because it would not be paid for."""
    private, accountant = _with_budget(estimator)
    with tempfile.TemporaryDirectory() as folder:
        cached = Memory(folder, verbose=0).cache(release)
        for count in (1, 2):
            cached(clone(private), data.X)
            assert len(accountant) == count


def check_nothing_is_spent_on_bad_parameters(estimator: Any, data: CheckData) -> None:
    """An invalid parameter is refused before anything is spent."""
    for name in estimator.get_params(deep=False):
        private, accountant = _with_budget(estimator)
        private.set_params(**{name: object()})
        assert refusal(private, data.X)[0] is not None, name
        assert len(accountant) == 0, name


def check_nothing_is_spent_on_bad_input(estimator: Any, data: CheckData) -> None:
    """Invalid input is refused before anything is spent."""
    for name, bad in data.invalid.items():
        private, accountant = _with_budget(estimator)
        error, _ = refusal(private, bad)
        assert isinstance(error, ValueError | TypeError), name
        assert len(accountant) == 0, name


def check_default_accountant_is_used(estimator: Any, data: CheckData) -> None:
    """The accountant of a ``with`` block counts the releases of estimators without accountant."""
    with PrivacyAccountant(math.inf) as accountant:
        release(clone(estimator), data.X)
    assert len(accountant) == 1
    release(clone(estimator), data.X)
    assert len(accountant) == 1


def check_copies_share_the_budget(estimator: Any, data: CheckData) -> None:
    """Clones, copies and pickles spend from one ledger."""
    private, accountant = _with_budget(estimator)
    copies = [
        clone(private),
        copy.copy(private),
        copy.deepcopy(private),
        pickle.loads(pickle.dumps(private)),
    ]
    for count, one in enumerate(copies, start=1):
        release(one, data.X)
        assert len(accountant) == count


def check_default_accountant_travels_with_pickles(estimator: Any, data: CheckData) -> None:
    """An unpickled estimator still uses the accountant of the ``with`` block."""
    with PrivacyAccountant(math.inf) as accountant:
        dumped = pickle.dumps(clone(estimator))
    release(pickle.loads(dumped), data.X)
    assert len(accountant) == 1 and estimator.accountant is None
