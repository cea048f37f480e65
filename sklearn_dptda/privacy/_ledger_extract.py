"""Extracts of ledgers: payments in a chain of hashes, which an auditor can check without a ledger.

Each payment has a hash of its line and of the previous hash. If a line was changed, moved or
removed, the hashes after it do not match. The author of an extract can also write a different one
with valid hashes, and renumber payments. An earlier extract, whose payments must be the first ones
of every later extract, or a recorded seal, the hash of a whole extract, reveals this. Days are not
compared, because an honest clock can be set back.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from sklearn_dptda.privacy._guarantee import (
    Budget,
    Charge,
    PrivacyLoss,
    Sums,
    kind_of_unit,
)
from sklearn_dptda.privacy._ledger import Ledger

FORMAT_VERSION = 1
# Names of the parts of an extract, except for the seal.
_PARTS = ("format_version", "ledger", "budget", "counted", "payments", "releases")
# Names of the texts of each payment.
_TEXTS = ("hash", "key", "time", "unit", "adjacency")


def extract_of(ledger: Ledger) -> dict[str, Any]:
    """Return the contents of a ledger as a dictionary for JSON."""
    state, spends, digests = ledger.extract()
    payments, last = [], ""
    for spend in spends:
        line = {"key": spend.key, **spend.columns()}
        last = _hash([last, line])
        payments.append({**line, "hash": last})
    extract = {
        "format_version": FORMAT_VERSION,
        "ledger": state.id,
        "budget": state.budget._asdict(),
        "counted": {"number": state.number, **dict(zip(_SUMS, state[-3:], strict=True))},
        "payments": payments,
        "releases": digests,
    }
    # An infinite budget is written as text, because JSON has no infinite numbers.
    extract = json.loads(json.dumps(_finite(extract)))
    return {**extract, "seal": _hash(extract)}


def changes_in(extract: Mapping[str, Any], earlier: Mapping[str, Any] | None) -> list[str]:
    """Describe what was changed or removed, or does not add up; ValueError for invalid extracts."""
    found = _changes_within(extract)
    if earlier is None:
        return found
    before = [f"in the earlier extract, {each}" for each in _changes_within(earlier)]
    return found + before + _changed_since(earlier, extract)


def total_of(extract: Mapping[str, Any]) -> tuple[PrivacyLoss, Budget]:
    """Return the total loss of an extract without changes, and its budget."""
    budget, charges = _parsed(extract)
    return budget.rule().total(_sum(charges)), budget


def _changes_within(extract: Mapping[str, Any]) -> list[str]:
    budget, charges = _parsed(extract)
    found = _broken_chain(extract["payments"])
    found += _wrong_sums(extract, budget, _sum(charges)) + _strange_lines(extract, charges)
    if extract["seal"] != _hash({name: extract[name] for name in _PARTS}):
        found.append("the seal does not match the extract")
    return found


def _parsed(extract: Any) -> tuple[Budget, list[Charge | None]]:
    """Return the budget and the loss of each line, None if no payment can have it.

    Raises ValueError if this is not an extract.
    """
    whole = isinstance(extract, Mapping) and {*_PARTS, "seal"} == {*extract}
    version = extract["format_version"] if whole else None
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise ValueError("The extract was made by a newer version of sklearn-dptda.")
    try:
        charges = [_charge(line) for line in extract["payments"]]
        limits = extract["budget"]
        budget = Budget(float(limits["epsilon"]), float(limits["delta"]), limits["composition"])
        budget.rule()
        # Values that are nested too deeply, or that are not valid in JSON, have no hash.
        _hash(extract)
        whole = whole and {"number", *_SUMS} <= {*extract["counted"]}
        if not (whole and isinstance(extract["releases"], dict)):
            raise LookupError("a part is missing")
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError):
        raise ValueError(
            "This is not an extract of a ledger: a part is missing or unknown, or it is not a "
            "number that a ledger can have written."
        ) from None
    return budget, charges


def _charge(line: Mapping[str, Any]) -> Charge | None:
    if not all(isinstance(line[name], str) for name in _TEXTS):
        raise TypeError("texts are missing")
    rho = line["rho"]
    try:
        return Charge(float(line["epsilon"]), float(line["delta"]), rho and float(rho))
    except ValueError:
        return None


def _sum(charges: Iterable[Charge | None]) -> Sums:
    return Sums.of((charge, 1) for charge in charges if charge is not None)


def _strange_lines(extract: Mapping[str, Any], charges: Iterable[Charge | None]) -> list[str]:
    """Describe lines that no accountant writes, although their hashes may be valid."""
    payments, found = extract["payments"], []
    for payment, charge in zip(payments, charges, strict=True):
        if charge is None:
            found.append(f"payment {payment.get('number')} has a privacy loss that is not possible")
    keys = [payment["key"] for payment in payments]
    if len({*keys}) < len(keys):
        found.append("two payments have the same key")
    if not {*extract["releases"]} <= {*keys}:
        found.append("a stored release has no payment")
    kinds = {(kind_of_unit(payment["unit"]), payment["adjacency"]) for payment in payments}
    if len(kinds) > 1:
        found.append("payments are for different units or adjacencies, which cannot be added")
    return found


def _broken_chain(payments: Iterable[Mapping[str, Any]]) -> list[str]:
    found, last = [], ""
    for number, payment in enumerate(payments, 1):
        line = {name: value for name, value in payment.items() if name != "hash"}
        if line.get("number") != number:
            found.append(f"payment {number} is missing or out of order")
        if payment["hash"] != _hash([last, line]):
            found.append(f"payment {number} was changed, or one before it is missing")
        last = payment["hash"]
    return found


def _wrong_sums(extract: Mapping[str, Any], budget: Budget, sums: Sums) -> list[str]:
    """Describe where the lines contradict the sums of the ledger or the budget."""
    counted, payments, found = extract["counted"], extract["payments"], []
    if counted["number"] != len(payments):
        found.append(f"the ledger has counted {counted['number']} payments, not {len(payments)}")
    if sums.to_text() != [counted[name] for name in _SUMS]:
        found.append("the payments do not add up to the sums that the ledger has counted")
    if not budget.rule().fits(sums):
        found.append("the payments exceed the budget")
    return found


def _changed_since(earlier: Mapping[str, Any], extract: Mapping[str, Any]) -> list[str]:
    """Describe where a later extract contradicts an earlier one."""
    found = []
    if earlier["ledger"] != extract["ledger"]:
        found.append("the extracts are of two ledgers")
    if earlier["budget"] != extract["budget"]:
        found.append("the budget changed since the earlier extract")
    before = [payment["hash"] for payment in earlier["payments"]]
    now = [payment["hash"] for payment in extract["payments"]]
    if now[: len(before)] != before:
        same = [one == other for one, other in zip(before, now, strict=False)]
        place = same.index(False) + 1 if False in same else len(now) + 1
        found.append(f"payment {place} was changed or removed since the earlier extract")
    for key, digest in earlier["releases"].items():
        if extract["releases"].get(key) != digest:
            found.append(f"the release {key} was changed or removed since the earlier extract")
    return found


# Names of the sums of a ledger in an extract.
_SUMS = ("epsilon", "delta", "rho")


def _hash(value: object) -> str:
    options: dict[str, Any] = {"sort_keys": True, "separators": (",", ":"), "allow_nan": False}
    try:
        text = json.dumps(value, **options)
    except ValueError:
        # Few lines have an infinite number, and looking for it takes longer than the hash.
        text = json.dumps(_finite(value), **options)
    return hashlib.sha256(text.encode()).hexdigest()


def _finite(value: Any) -> Any:
    """Replace infinite numbers, which JSON does not have, by text."""
    if isinstance(value, float) and value == float("inf"):
        return "inf"
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return value
