"""The command that shows a ledger, and the places and passwords of ledgers."""

import io
import json
import re
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from sklearn_dptda.__main__ import main
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyLedgerError
from sklearn_dptda.privacy._stored_release import from_bytes
from tests._refusals import failing
from tests.cli._paying import call, failed


def test_ledger_command_prints_payments_and_what_is_left(folder, capsys):
    assert call("bounds", "--ledger", "l.db", "--budget", "3") == 0
    capsys.readouterr()
    assert main(["ledger", "l.db"]) == 0
    line, total, left, risk, protected = capsys.readouterr().out.splitlines()
    assert protected == "privacy unit and adjacency: one row; replace-one"
    assert line.startswith("1  ") and "epsilon=1, delta=0  PrivateBounds" in line
    assert total == "spent: epsilon=1, delta=0 by basic composition"
    assert left == "left: epsilon=2, delta=0"
    assert risk.startswith("risk: An attack on one record, by someone who knows")
    PrivacyAccountant(1.0, path="new.db")
    assert main(["ledger", "new.db"]) == 0
    assert "open, because the first payment fixes them" in capsys.readouterr().out
    assert failed(main(["ledger", "no.db"]), capsys).startswith("error: ")


@pytest.mark.conformance
def test_ledger_command_tells_extracts_from_ledgers(folder, capsys):
    assert call("bounds", "--ledger", "l.db", "--budget", "2") == 0
    assert main(["ledger", "l.db", "--extract"]) == 0
    capsys.readouterr()
    assert main(["ledger", "extract.json", "--check"]) == 0
    number, seal, total, protected = capsys.readouterr().out.splitlines()
    assert number == "1 payment, no changes found" and seal.startswith("seal: ")
    assert total == "spent: epsilon 1 of 2, delta 0 of 0"
    assert protected == "privacy unit and adjacency: one row; replace-one"
    for command in (["l.db", "--check"], ["extract.json", "--check", "l.db"]):
        error = failed(main(["ledger", *command]), capsys)
        assert error == "error: l.db: --check reads an extract. Write one with --extract.\n"
    assert main(["ledger", "postgresql://nowhere/x", "--check"]) == 2
    assert "--check reads an extract" in capsys.readouterr().err
    assert main(["ledger", "extract.json"]) == 2
    assert capsys.readouterr().err == "error: extract.json: this is an extract: add --check.\n"
    (folder / "other.json").write_text("[]")
    assert "cannot be used" in failed(main(["ledger", "other.json"]), capsys)


@pytest.mark.conformance
def test_ledger_command_draws_what_is_left(folder, capsys):
    with PrivacyAccountant(2.0, 1e-5, "zcdp.db", "zcdp") as budget:
        for _ in range(20):
            budget.spend(0.1, rho=0.001, what="a number")
    assert main(["ledger", "zcdp.db", "--picture"]) == 0
    assert (folder / "budget.png").read_bytes().startswith(b"\x89PNG")
    assert main(["ledger", "zcdp.db", "--picture", "-o", "left.svg"]) == 0
    assert "<svg" in (folder / "left.svg").read_text()
    # Neither a picture nor a budget is overwritten, and nothing is spent.
    assert main(["ledger", "zcdp.db", "--picture"]) == 2 and len(budget) == 20
    PrivacyAccountant(np.inf, path="counts.db")
    capsys.readouterr()
    assert main(["ledger", "counts.db", "--picture", "-o", "no.png"]) == 2
    assert "no limit" in capsys.readouterr().err and not (folder / "no.png").exists()


@pytest.mark.parametrize("secret", ["secret", "se/cr@et", "se?cret", "se cret", "se?cr@et"])
def test_ledger_command_prints_no_password(secret, folder, capsys):
    urls = [f"postgresql://me:{secret}@host/db", f"x://host/db?password={secret.replace(' ', '+')}"]
    for url in urls:
        for command in (["ledger", url, "--check"], ["ledger", "l.db", url], ["ledger", url]):
            said = failed(main(command), capsys)
            assert said.startswith("error: ")
            assert not {"me", "secret", "se", "cret", "cr", "et"} & set(re.split(r"\W+", said))


def test_ledger_command_escapes_control_characters(folder, capsys, monkeypatch):
    with PrivacyAccountant(2.0, path="l.db") as budget:
        budget.spend(0.5, what="\x1b[2J\nleft: epsilon=9 \u202e")
    assert main(["ledger", "l.db"]) == 0
    line, *_, left, _, _ = capsys.readouterr().out.splitlines()
    assert r"\x1b[2J\nleft: epsilon=9 \u202e  not stored" in line and "1.5" in left
    assert main(["diagram", "\x1b[2J.csv", "--bounds", "0", "1"]) == 2
    assert capsys.readouterr().err == "error: there is no file \\x1b[2J.csv.\n"
    # Characters that the terminal cannot show are no error.
    output = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(output, encoding="ascii"))
    budget.spend(0.5, what="\u03bb")
    assert main(["ledger", "l.db"]) == 0 and rb"\u03bb  not stored" in output.getvalue()


def test_dry_run_option_and_extracts_repeat_no_payments(folder, capsys, monkeypatch):
    # A ledger may have hundreds of thousands of payments.
    PrivacyAccountant(3.0, path="l.db").spend(0.5, unit="one row")
    rich = PrivacyAccountant(9.0, 1e-3, path="zcdp.db", composition="zcdp")
    rich.spend(0.5, rho=0.01, unit="one row")
    assert main(["ledger", "l.db", "--extract"]) == 0

    def repeated(*arguments, **options):
        raise AssertionError

    monkeypatch.setattr(PrivacyAccountant, "spend", repeated)
    monkeypatch.setattr(PrivacyAccountant, "spends", repeated)
    capsys.readouterr()
    assert main(["ledger", "extract.json", "--check"]) == 0
    assert "spent: epsilon 0.5 of 3, delta 0 of 0" in capsys.readouterr().out
    assert call("bounds", "--ledger", "l.db", "--dry-run") == 0
    assert "left after the run: epsilon=1.5, delta=0" in capsys.readouterr().out
    assert call("bounds", "--ledger", "l.db", "--dry-run", "--adjacency", "add-remove") == 2
    assert "counts losses under 'replace-one' adjacency" in capsys.readouterr().err
    assert call("bounds", "--ledger", "zcdp.db", "--dry-run") == 0


def test_ledger_option_prints_no_password_of_its_ledger(folder, monkeypatch, capsys):
    pytest.importorskip("psycopg")
    url = "postgresql://me:secret@host/db?password=secret"
    with monkeypatch.context() as patch:
        patch.setattr(PrivacyAccountant, "open", failing(PrivacyLedgerError("It is away.")))
        assert call("bounds", "--ledger", url, "--budget", "1", "--dry-run") == 0
    said = capsys.readouterr().out
    assert "left in postgresql://host/db which would be created" in said
    assert "secret" not in said
    for command in (["bounds", "rows.npy", "--ledger", url], ["ledger", url, "--check"]):
        error = failed(main(command), capsys)
        assert "//host/db" in error and "secret" not in error


@pytest.mark.conformance
def test_ledger_command_gives_releases_back(folder, capsys):
    assert call("cluster", "--ledger", "l.db", "--budget", "5", "1e-3") == 0
    capsys.readouterr()
    assert main(["ledger", "l.db"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert re.fullmatch(r"1  \S+  epsilon=1, delta=1e-06  DPLloyd  \d+ bytes", first)
    assert main(["ledger", "l.db", "--release", "1"]) == 0
    with zipfile.ZipFile("release.zip") as archive:
        document = json.loads(archive.read("release.json"))
        names = [pair[0] for pair in document["release"]["dict"]]
        place = dict(document["release"]["dict"])["cluster_centers_"]["array"]
        with archive.open(f"{place}.npy") as file:
            centers = np.load(io.BytesIO(file.read()), allow_pickle=False)
        payment = json.loads(archive.read("payment.json"))
    assert document["format_version"] == 1 and "weights_" in names
    assert payment["estimator"] == "DPLloyd" and payment["adjacency"] == "add-remove"
    assert payment["parameters"]["n_clusters"] == "2" and "digest" not in payment["parameters"]
    printed = capsys.readouterr().out
    assert (
        "payment 1 by DPLloyd: bounds, units and logarithms of columns, the number of rows, "
        in printed
    )
    assert "guarantee: epsilon=1, delta=1e-06, add-remove, one row" in printed
    # The archive is still a release that can be stored and read.
    release = from_bytes(Path("release.zip").read_bytes())
    np.testing.assert_array_equal(release["cluster_centers_"], centers)
    released = json.loads(Path("out/clusters.json").read_text(encoding="utf-8"))
    assert np.array_equal(centers, released["means"])
    # No file is overwritten, and a payment that does not exist is refused.
    assert main(["ledger", "l.db", "--release", "1"]) == 2
    assert main(["ledger", "l.db", "--release", "2", "-o", "two.zip"]) == 2
    assert (
        "no payment with the number 2" in capsys.readouterr().err and not Path("two.zip").exists()
    )
    PrivacyAccountant.open("l.db").spend(0.1, adjacency="add-remove")
    assert main(["ledger", "l.db", "--release", "2", "-o", "two.zip"]) == 2
    assert "was not stored" in capsys.readouterr().err
