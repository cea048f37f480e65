"""What a guarantee means in words, and the public facts of a release, for reports."""

import math
import platform
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from sklearn_dptda.privacy import PrivacyAccountant, PrivacyGuarantee
from sklearn_dptda.privacy._guarantee import kind_of_unit
from sklearn_dptda.privacy._parameters import public_parameters

_PACKAGES = ("sklearn-dptda", "numpy", "scipy", "scikit-learn", "gudhi")
# The word for one of the privacy units of which a person may have several.
_PART = re.compile(r"(?:one|a) (?:directed )?(point|row|record|edge|link)\b")


def neighbours(guarantee: PrivacyGuarantee) -> str:
    """Return which data sets are neighbours."""
    if "edge" in guarantee.unit or "link" in guarantee.unit:
        return "Graphs are neighbours if they have the same nodes and differ in one link."
    return {
        "replace-one": "Data sets are neighbours if they have equally many records and differ in "
        "one. The number of records is public.",
        "add-remove": "Data sets are neighbours if one of them has one record more. The number of "
        "records is private.",
    }[guarantee.adjacency]


def _part(guarantee: PrivacyGuarantee) -> str | None:
    """Return the word for a privacy unit of which one person may have several, or None."""
    word = _PART.match(guarantee.unit)
    return word[1] if word and kind_of_unit(guarantee.unit) == "part" else None


def meaning_of_epsilon(guarantee: PrivacyGuarantee) -> str:
    """Return one sentence about the odds of outcomes."""
    unit, change = guarantee.unit, "replaced"
    if guarantee.adjacency == "add-remove" or _part(guarantee) in ("edge", "link"):
        unit, change = unit.removesuffix(", there or not"), "added or removed"
    verb = "," * ("," in unit) + (" are" if unit.startswith("all ") else " is")
    beyond = f", up to an additional probability of {guarantee.delta:g}" * (guarantee.delta > 0)
    try:
        factor = f"{math.exp(guarantee.epsilon):.3g}"
    except OverflowError:
        factor = f"e^{guarantee.epsilon:g}"
    return (
        f"If {unit}{verb} {change}, the probability of every outcome of this release changes at "
        f"most by the factor e^epsilon = {factor}{beyond}."
    )


def whom_it_protects(guarantee: PrivacyGuarantee) -> str:
    """Return what the guarantee means for people with several units, or nothing for people."""
    part = _part(guarantee)
    if part is None:
        return ""
    loss = "loss"
    if guarantee.delta > 0:
        loss = "epsilon, and up to k e^((k - 1) epsilon) times this delta"
    return (
        f"The guarantee protects one {part}. A person with k {part}s has up to k times this {loss}."
    )


def public_parameters_of(estimator: BaseEstimator, others: Mapping[str, Any]) -> dict[str, str]:
    """Return other parameters and those of all steps that differ from their defaults."""
    steps = estimator.steps if isinstance(estimator, Pipeline) else [("", estimator)]
    rows = {name: repr(value) for name, value in others.items() if value is not None}
    for _, step in steps:
        for name, value in public_parameters(step).items():
            said = rows.get(name) == repr(value)
            if value is not None and not said and not isinstance(value, PrivacyAccountant):
                rows[f"{type(step).__name__}: {name}"] = repr(value)
    return rows


def versions() -> Iterator[tuple[str, str]]:
    """Yield the names of packages and their versions."""
    yield "Python", f"{platform.python_version()} on {platform.system()}"
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            yield name, version(name)
