"""Checks of the guarantee: it is present, correct and documented."""

import inspect
import math
import pickle
import warnings
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from sklearn_dptda.privacy import NoiseWarning, PrivacyGuarantee, PrivacyLeakWarning
from sklearn_dptda.privacy._release import releases_in_transform
from sklearn_dptda.utils._privacy_checks._check_tools import (
    fitted,
    observed,
    refusal,
    released,
    tags_of,
)
from sklearn_dptda.utils._privacy_checks._data_checks import CheckData


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
    for bad in (-1.0, math.nan, "1", None, *(() if zero else (0, 0.0))):
        error, _ = refusal(clone(estimator).set_params(epsilon=bad), data.X)
        assert isinstance(error, ValueError | TypeError) and "epsilon" in str(error), bad


def check_neighbours_look_alike(estimator: Any, data: CheckData) -> None:
    """No error, warning, attribute or shape distinguishes neighbours."""
    for seed, pair in enumerate(data.neighbours):
        seeded = clone(estimator).set_params(random_state=seed)
        first, second = observed(seeded, pair.first), observed(seeded, pair.second)
        assert first == second, pair.name
        assert first["error"] is None, pair.name


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
