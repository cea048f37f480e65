"""Extracts of ledgers: every change in one, or since an earlier one, is detected."""

import contextlib
import copy
import itertools
import json
import math
from datetime import datetime, timedelta

import numpy as np
import pytest

from sklearn_dptda.__main__ import main
from sklearn_dptda.cluster import DPLloyd
from sklearn_dptda.privacy import PrivacyAccountant, _ledger
from sklearn_dptda.privacy._ledger_extract import _hash
from tests._refusals import refuses
from tests.cli._paying import failed
from tests.privacy._ledgers import edit

check_extract = PrivacyAccountant.check_extract

X = np.random.default_rng(0).uniform(size=(300, 2))


@pytest.fixture
def budget(tmp_path):
    accountant = PrivacyAccountant(5.0, 1e-3, path=tmp_path / "a.db")
    for epsilon in (0.5, 0.1, 0.7):
        accountant.spend(epsilon, what=f"numbers that cost {epsilon}", adjacency="add-remove")
    DPLloyd(2, 1.0, bounds=(0, 1), accountant=accountant).fit(X)
    return accountant


def as_read(extract):
    return json.loads(json.dumps(extract))


def test_extract_is_the_ledger_without_records(budget):
    extract = budget.extract()
    assert as_read(extract) == extract and check_extract(as_read(extract)) == []
    assert [p["epsilon"] for p in extract["payments"]] == [0.5, 0.1, 0.7, 1.0]
    assert list(extract["releases"]) == [budget.releases()[-1].key]
    assert extract["budget"] == {"epsilon": 5.0, "delta": 1e-3, "composition": "basic"}
    # The same ledger always has the same extract.
    assert PrivacyAccountant.open(budget.path).extract() == extract
    text = json.dumps(extract)
    assert all(repr(float(value)) not in text for value in X.ravel())


@pytest.mark.parametrize(
    "accountant",
    [lambda: PrivacyAccountant(math.inf), lambda: PrivacyAccountant(3.0, 1e-6, composition="zcdp")],
)
def test_check_extract_accepts_other_budgets(accountant):
    budget = accountant()
    for _ in range(3):
        budget.spend(0.3, rho=0.04)
    assert check_extract(as_read(budget.extract())) == []


def leaves(tree, path=()):
    """Paths to all numbers, texts and nothings."""
    if isinstance(tree, dict):
        for name, part in tree.items():
            yield from leaves(part, (*path, name))
    elif isinstance(tree, list):
        for place, part in enumerate(tree):
            yield from leaves(part, (*path, place))
    else:
        yield path


def test_check_extract_sees_each_changed_value(budget):
    extract = budget.extract()
    for path in leaves(extract):
        changed = copy.deepcopy(extract)
        *way, last = path
        part = changed
        for step in way:
            part = part[step]
        part[last] = {"number": 9, "epsilon": 0.25}.get(last, "0123") if last != "rho" else 0.5
        if path == ("format_version",):
            changed["format_version"] = 0
        assert changed != extract
        # A value that is not a number any more makes the extract invalid.
        with contextlib.suppress(ValueError):
            assert check_extract(changed), path


def test_check_extract_sees_removed_and_moved_lines(budget):
    extract = budget.extract()
    for change in (
        lambda lines: lines.pop(1),
        lambda lines: lines.pop(),
        lambda lines: lines.insert(0, lines.pop()),
        lambda lines: lines.append(dict(lines[-1], number=5)),
    ):
        changed = copy.deepcopy(extract)
        change(changed["payments"])
        found = check_extract(changed)
        assert any("add up" in each or "missing" in each or "counted" in each for each in found)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE privacy_spend SET epsilon = .2 WHERE number = 2", "payment 2 was changed"),
        ("UPDATE privacy_spend SET what = 'less' WHERE number = 3", "payment 3 was changed"),
        ("DELETE FROM privacy_spend WHERE number = 4", "payment 4 was changed or removed"),
        ("UPDATE privacy_release SET digest = 'other'", "was changed or removed"),
        ("DELETE FROM privacy_release", "was changed or removed"),
    ],
)
def test_check_extract_sees_changes_since_an_earlier_extract(statement, message, budget):
    earlier = as_read(budget.extract())
    budget.spend(0.2, adjacency="add-remove")
    assert check_extract(budget.extract(), earlier) == []
    edit(budget.path, statement)
    later = as_read(budget.extract())
    assert any(message in each for each in check_extract(later, earlier))
    other = PrivacyAccountant(5.0, 1e-3)
    assert any("two ledgers" in each for each in check_extract(other.extract(), earlier))


def test_check_extract_accepts_a_clock_that_was_set_back(budget, monkeypatch):
    class Earlier(datetime):
        @classmethod
        def now(cls, zone=None):
            return datetime.now(zone) - timedelta(days=1)

    monkeypatch.setattr(_ledger, "datetime", Earlier)
    budget.spend(0.1, adjacency="add-remove")
    days = budget.spends()["time"]
    assert days[-1] < days[-2]
    extract = as_read(budget.extract())
    assert check_extract(extract) == []
    # Lines in another order are still seen, even if their hashes are made again.
    extract["payments"][-2:] = extract["payments"][:-3:-1]
    assert any("out of order" in each for each in check_extract(resealed(extract)))


def test_check_extract_refuses_what_no_ledger_can_write(budget):
    def changed(name, value):
        extract = copy.deepcopy(budget.extract())
        extract["payments"][1][name] = value
        return extract

    deep = []
    for _ in range(20_000):
        deep = [deep]
    texts = itertools.product(("hash", "key", "time", "unit", "adjacency"), (None, 5, [], [[]], {}))
    numbers = itertools.product(["epsilon"], (10**400, float("nan")))
    more = [budget.extract() | part for part in ({"more": 1}, {"releases": deep})]
    nothing = ({}, [], {"payments": []}, None, {"payments": [{}]})
    for wrong in (*nothing, *more, *itertools.starmap(changed, [*texts, *numbers])):
        refuses("not an extract", check_extract, wrong)
    refuses("newer version", check_extract, budget.extract() | {"format_version": 2})


def resealed(extract):
    """An extract whose chain and seal fit to its lines, as one who changes it can make it."""
    changed, last = copy.deepcopy(extract), ""
    for payment in changed["payments"]:
        del payment["hash"]
        last = payment["hash"] = _hash([last, payment])
    del changed["seal"]
    return {**changed, "seal": _hash(changed)}


IMPOSSIBLE = (
    (lambda e: e["payments"][1].update(epsilon=-3.0), "a privacy loss that is not possible"),
    (lambda e: e["payments"][1].update(unit="one person"), "different units or adjacencies"),
    (lambda e: e["payments"][1].update(adjacency="replace-one"), "different units or adjac"),
    (lambda e: e["payments"][1].update(key=e["payments"][0]["key"]), "the same key"),
    (lambda e: e["releases"].update(no="0" * 64), "has no payment"),
)


def test_check_extract_sees_impossible_lines_in_a_new_chain(budget):
    extract = as_read(budget.extract())
    assert check_extract(resealed(extract)) == []
    for change, message in IMPOSSIBLE:
        changed = copy.deepcopy(extract)
        change(changed)
        assert any(message in each for each in check_extract(resealed(changed)))


def test_check_extract_checks_the_earlier_extract(budget):
    earlier = as_read(budget.extract())
    earlier["payments"][0]["hash"] = "0" * 64
    found = check_extract(budget.extract(), earlier)
    assert any(each.startswith("in the earlier extract, payment 1 was changed") for each in found)


@pytest.mark.conformance
def test_ledger_command_makes_and_checks_extracts(budget, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["ledger", "a.db", "--extract", "-o", "one.json"]) == 0
    budget.spend(0.2, adjacency="add-remove")
    assert main(["ledger", "a.db", "--extract"]) == 0
    capsys.readouterr()
    assert main(["ledger", "extract.json", "--check"]) == 0
    assert capsys.readouterr().out.startswith("5 payments, no changes found\nseal: ")
    assert main(["ledger", "extract.json", "--check", "one.json"]) == 0
    assert main(["ledger", "one.json", "--check", "extract.json"]) == 2
    assert "payment 5 was changed or removed" in capsys.readouterr().err
    (tmp_path / "no.json").write_text("no")
    assert main(["ledger", "no.json", "--check"]) == 2
    assert capsys.readouterr().err == "error: no.json is not a JSON file.\n"
    (tmp_path / "twice.json").write_text('{"seal": 1, "seal": 2}')
    assert "contains a name twice" in failed(main(["ledger", "twice.json", "--check"]), capsys)
    assert main(["ledger", "extract.json", "--check", ""]) == 2
    assert "name of the earlier extract is empty" in capsys.readouterr().err
