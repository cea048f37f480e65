"""Checks of the guarantee and of the budget.

The guarantee is present, correct and documented. The budget is spent once, before the release, and
is never given back.
"""

import copy
import inspect
import math
import pickle
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
from joblib import Memory
from sklearn.base import clone
from sklearn.utils import get_tags

from sklearn_dptda.privacy import (
    NoiseWarning,
    PrivacyAccountant,
    PrivacyBudgetExceeded,
    PrivacyGuarantee,
    PrivacyLeakWarning,
)
from sklearn_dptda.privacy._guarantee import Charge
from sklearn_dptda.privacy._release import (
    as_arrays,
    protects_labels,
    release,
    releases_in_transform,
    state,
)
from sklearn_dptda.privacy.neighbours import NeighbourPair
from sklearn_dptda.utils._privacy_checks._check_inputs import (
    CheckData,
    equal,
    fitted,
    observed,
    refusal,
    released,
    tags_of,
    watched_noise,
)


def check_guarantee_is_present_and_true(estimator: Any, data: CheckData) -> None:
    """After a release, the guarantee matches the parameters."""
    private = fitted(estimator, data.X, random_state=0)
    guarantee = private.privacy_guarantee_
    assert isinstance(guarantee, PrivacyGuarantee)
    assert guarantee.epsilon == estimator.epsilon
    assert guarantee.delta <= estimator.get_params().get("delta", 0.0)
    assert guarantee.adjacency == tags_of(estimator).adjacency
    assert guarantee.unit and guarantee.mechanism and guarantee.released


def check_guarantee_follows_epsilon(estimator: Any, data: CheckData) -> None:
    """A changed epsilon changes the guarantee, or is refused until the next fit."""
    assert fitted(estimator, data.X, epsilon=0.37).privacy_guarantee_.epsilon == 0.37
    private = fitted(estimator, data.X, epsilon=0.37)
    if not releases_in_transform(private):
        return
    private.set_params(epsilon=2.5)
    try:
        private.transform(data.X)
    except ValueError:
        return
    assert private.privacy_guarantee_.epsilon == 2.5


def check_guarantee_says_whether_it_was_seeded(estimator: Any, data: CheckData) -> None:
    """The guarantee states whether there was a seed, and does not hold with a seed."""
    seeded = fitted(estimator, data.X, random_state=3).privacy_guarantee_
    assert seeded.seeded and not seeded.holds
    assert not fitted(estimator, data.X, random_state=None).privacy_guarantee_.seeded


def check_guarantee_of_infinite_epsilon_promises_nothing(estimator: Any, data: CheckData) -> None:
    """Without noise, there is no guarantee."""
    guarantee = fitted(estimator, data.X, epsilon=math.inf).privacy_guarantee_
    assert guarantee.epsilon == math.inf and not guarantee.holds
    assert str(guarantee).startswith("No privacy")


def check_guarantee_survives_pickling(estimator: Any, data: CheckData) -> None:
    """An unpickled copy has the same guarantee."""
    private = fitted(estimator, data.X)
    again = pickle.loads(pickle.dumps(private))
    assert again.privacy_guarantee_ == private.privacy_guarantee_


def check_clone_has_no_guarantee(estimator: Any, data: CheckData) -> None:
    """A new clone has no guarantee, because it has released nothing."""
    assert not hasattr(clone(fitted(estimator, data.X)), "privacy_guarantee_")


def check_documentation_has_a_privacy_section(estimator: Any, data: CheckData) -> None:
    """The docstring of the class has a section about privacy, with adjacency and epsilon."""
    text = inspect.getdoc(type(estimator)) or ""
    assert ".. rubric:: Privacy" in text or "Privacy\n-------" in text
    section = text[text.index("Privacy\n") :].split("\nReferences\n")[0].split("\nExamples\n")[0]
    section = " ".join(section.split())
    words = {"replace-one": "replac", "add-remove": "add"}
    assert "private" in section and words[tags_of(estimator).adjacency] in section
    assert "epsilon" in section


def check_tags(estimator: Any, data: CheckData) -> None:
    """The tags have valid values."""
    tags = tags_of(estimator)
    assert tags.releases in ("fit", "transform")
    assert tags.adjacency in ("replace-one", "add-remove")
    for name in ("epsilon", "accountant", "random_state"):
        assert name in estimator.get_params(deep=False), f"there is no parameter {name}"
    assert estimator.accountant is None


def check_no_warnings_with_public_parameters(estimator: Any, data: CheckData) -> None:
    """If all public parameters are given, there are no warnings except about noise."""
    # A warning about a release may depend on its noise, so that the seed is fixed.
    seeded = clone(estimator).set_params(random_state=0)
    with warnings.catch_warnings(record=True, action="always") as caught:
        released(seeded, data.X)
    assert all(issubclass(warning.category, NoiseWarning) for warning in caught)


def check_missing_bounds_warn(estimator: Any, data: CheckData) -> None:
    """Missing bounds are refused, paid for, or cause a warning and a note in the guarantee."""
    if "bounds" not in estimator.get_params(deep=False):
        return
    error, _ = refusal(clone(estimator).set_params(bounds=None), data.X)
    if isinstance(error, ValueError) and "bounds" in str(error):
        return
    with warnings.catch_warnings(record=True, action="always") as caught:
        private = fitted(estimator, data.X, bounds=None)
    guarantee = private.privacy_guarantee_
    leaks = any(issubclass(w.category, PrivacyLeakWarning) for w in caught)
    assert leaks != guarantee.public_parameters
    assert leaks or "bounds" in guarantee.released


def check_bad_parameters_are_named(estimator: Any, data: CheckData) -> None:
    """Each parameter is validated, and the error names it."""
    for name in estimator.get_params(deep=False):
        error, _ = refusal(clone(estimator).set_params(**{name: object()}), data.X)
        assert isinstance(error, ValueError | TypeError) and name in str(error), name


def check_epsilon_must_be_positive(estimator: Any, data: CheckData) -> None:
    """Negative and undefined epsilons are refused by name. Zero is refused or means no loss."""
    zero = tags_of(estimator).zero_epsilon
    if zero:
        assert fitted(estimator, data.X, epsilon=0.0).privacy_guarantee_.epsilon == 0
    # The default of a search is None: its candidates keep their own.
    undefined = () if type(estimator)().epsilon is None else (None,)
    for bad in (-1.0, math.nan, "1", *undefined, *(() if zero else (0, 0.0))):
        error, _ = refusal(clone(estimator).set_params(epsilon=bad), data.X)
        assert isinstance(error, ValueError | TypeError) and "epsilon" in str(error), bad


def check_neighbours_look_alike(estimator: Any, data: CheckData) -> None:
    """No error, warning, attribute or shape distinguishes neighbours.

    Warnings about noise are left out if ``within_noise_`` or ``n_clusters_`` is released, which
    they may repeat.
    """
    for seed, pair in enumerate(data.neighbours):
        seeded = clone(estimator).set_params(random_state=seed)
        first, second = (_without_noise(observed(seeded, X)) for X in (pair.first, pair.second))
        assert first == second, pair.name
        assert first["error"] is None, pair.name


# Released attributes that warnings about noise repeat.
_SAY_AS_MUCH = {"within_noise_", "n_clusters_"}


def _without_noise(seen: dict[str, Any]) -> dict[str, Any]:
    if not _SAY_AS_MUCH & seen["attributes"].keys():
        return seen
    said = [each for each in seen["warnings"] if each[0] != NoiseWarning.__name__]
    return seen | {"warnings": said}


def check_extreme_records_look_alike(estimator: Any, data: CheckData) -> None:
    """Records at the limits of floating point cause no other errors and warnings than others do.

    This is checked with the current settings of NumPy, and with warnings of NumPy or all warnings
    as errors. It is checked with bounds and without, unless missing bounds are computed from the
    data, which causes a warning.
    """
    # With a large epsilon, private boxes are as small as the other records require.
    kinds = [clone(estimator).set_params(epsilon=50.0, random_state=0)]
    if estimator.get_params(deep=False).get("bounds") is not None:
        kinds.append(clone(kinds[0]).set_params(bounds=None))
    for seeded in kinds:
        settings: list[tuple[Literal["warn", "raise"], Literal["always", "error"]]]
        settings = [("warn", "always"), ("raise", "always"), ("warn", "error")]
        for numpy_says, action in settings:
            with np.errstate(all=numpy_says):
                ordinary = observed(seeded, data.X, action)
                if any(name == PrivacyLeakWarning.__name__ for name, _ in ordinary["warnings"]):
                    break
                for name, neighbour in data.extremes.items():
                    assert observed(seeded, neighbour, action) == ordinary, name


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
