"""Commands that pay: ledgers, dry runs, and refusals before a payment."""

import json
import os
import shlex
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from sklearn_dptda.__main__ import main
from sklearn_dptda.model_selection import plan_release
from sklearn_dptda.persistence import PrivatePersistence
from sklearn_dptda.privacy import PrivacyAccountant
from tests._refusals import refuses
from tests.cli._paying import LEDGER_OF_ONE, PAYING, call, failed


@pytest.mark.conformance
@pytest.mark.parametrize("name", PAYING)
def test_paying_command_pays_and_writes_once_unless_forced(name, folder, capsys):
    ledger = ("--ledger", "budget.db", "--budget", "2.5", "1e-5")
    assert call(name, *ledger) == 0
    assert sorted(os.listdir("out")) == sorted(PAYING[name][1])
    printed = capsys.readouterr()
    assert "differential privacy" in printed.out
    assert "left in budget.db: epsilon=1.5" in printed.out and not printed.err
    accountant = PrivacyAccountant.open("budget.db")
    assert len(accountant) == 1 and accountant.total().epsilon == 1.0
    content = json.loads(next(folder.glob("out/*.json")).read_text())
    assert content["guarantee"]["epsilon"] == 1.0 and not content["guarantee"]["seeded"]
    # An earlier release is not overwritten unasked.
    before = {path.name: path.read_bytes() for path in folder.glob("out/*")}
    assert "--force overwrites" in failed(call(name, *ledger), capsys)
    assert {path.name: path.read_bytes() for path in folder.glob("out/*")} == before
    assert len(accountant) == 1
    assert call(name, *ledger, "--force") == 0
    assert len(accountant) == 2


@pytest.mark.parametrize("name", PAYING)
def test_dry_run_option_opens_no_records_and_writes_nothing(name, folder, capsys):
    (folder / "rows.npy").unlink()
    (folder / "graph.npy").unlink()
    assert call(name, "--ledger", "budget.db", "--budget", "1.5", "1e-5", "--dry-run") == 0
    assert os.listdir(".") == []
    printed = capsys.readouterr().out
    assert printed.startswith("1 release: 1 of ") and "together epsilon=1," in printed
    assert "left in budget.db, which would be created: epsilon=1.5, delta=1e-05 before" in printed
    expected = "1e-05" if name != "cluster" else "9e-06"
    assert f"left after the run: epsilon=0.5, delta={expected}" in printed
    assert ("The command plan shows the error" in printed) == (name == "diagram")
    assert "refused" not in printed and "no delta" not in printed
    assert call(name, "--dry-run") == 0
    assert "no ledger" in capsys.readouterr().out


@pytest.mark.parametrize("name", PAYING)
def test_paying_command_over_budget_reads_and_writes_nothing(name, folder, capsys):
    assert call(name, "--ledger", "budget.db", "--budget", "0.5", "1e-5") == 2
    assert not (folder / "budget.db").exists() and not (folder / "out").exists()
    error = capsys.readouterr().err
    assert error.startswith("error: asked for epsilon=1") and error.count("\n") == 1
    PrivacyAccountant(0.5, 1e-5, path="budget.db")
    (folder / "rows.npy").write_text("no numbers")
    assert "asked for epsilon=1" in failed(call(name, "--ledger", "budget.db"), capsys)
    assert len(PrivacyAccountant.open("budget.db")) == 0 and not (folder / "out").exists()
    assert call(name, "--ledger", "budget.db", "--dry-run") == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("error: the run would be refused: asked for epsilon=1")
    assert "left in budget.db: epsilon=0.5" in printed.out and "left after" not in printed.out


@pytest.mark.parametrize("name", PAYING)
def test_paying_command_refuses_bad_records_unpaid(name, folder, capsys):
    for path in ("rows.npy", "graph.npy"):
        np.save(path, np.full((5, 5), np.nan))
    error = failed(call(name, "--ledger", "budget.db", "--budget", "3", "1e-5"), capsys)
    assert error.startswith("error: ") and error.count("\n") == 1
    assert not (folder / "budget.db").exists() and not (folder / "out").exists()


MISTAKES = [
    ("diagram", ["--ledger", "no.db"], "there is no ledger no.db: pass --budget EPSILON"),
    ("diagram", ["--bounds", "-1", "1", "2"], "--bounds takes 2 numbers"),
    ("diagram", ["--max-distance", "0"], "--max-distance must be"),
    ("diagram", ["--columns", "z"], "no column"),
    ("diagram", ["--dimensions", "0", "0"], "--dimensions has duplicates"),
    ("bounds", ["--budget", "3"], "--budget needs a ledger"),
    ("bounds", ["--ledger", "l.db", "--budget", "1", "2", "3"], "--budget takes EPSILON"),
    ("bounds", ["--ledger", "l.db", "--budget", "-1"], "--budget: epsilon must be a positive"),
    ("bounds", ["--ledger", "rows.npy"], "cannot be used"),
    ("bounds", ["--ledger", "known.db", "--budget", "7"], "has the budget epsilon=5"),
    ("bounds", ["--epsilon", "-1"], "--epsilon must be a float in the range (0.0, inf]"),
    ("bounds", ["--epsilon", "inf"], "--epsilon must be positive and finite"),
    ("bounds", ["--shape", "ball"], "--shape must be a str among {"),
    ("bounds", ["--start", "1", "2", "3"], "--start takes 2 numbers, or 2 numbers per"),
    ("bounds", ["--start", "1", "-1"], "--start are crossed"),
    ("cluster", ["--bounds", "1", "-1"], "--bounds are crossed"),
    ("cluster", ["--bounds", "0", "1", "0", "1", "0", "1"], "(2 here)"),
    (
        "cluster",
        ["--kind", "morse", "--delta", "0"],
        "--delta must be positive, since the noise is Gaussian. For pure differential privacy, use "
        "--kind kmeans or --kind tree with delta=0",
    ),
    ("cluster", ["--n-clusters", "0"], "--n-clusters must be an int in the range [1, inf)"),
    ("cluster", ["--n-clusters", "two"], "argument --n-clusters: invalid int value"),
    ("cluster", ["--max-depth", "4"], "--max-depth is not an option of --kind kmeans"),
    ("cluster", ["--adjacency", "none"], "--adjacency must be a str among"),
    ("synthesize", ["--categories", "x"], "--categories takes NAME=A,B,C"),
    ("synthesize", ["--categories", "x=a,a"], "different values"),
    ("synthesize", ["--categories", "z=a,b"], "--categories: there is no column 'z'"),
    ("synthesize", ["--integers", "z"], "--integers: there is no column 'z'"),
    ("synthesize", ["--integers", "0", "--categories", "0=1"], "column of --categories"),
    ("synthesize", ["--column-bounds", "0", "0", "1"], "give one of them"),
    ("synthesize", ["--rows", "0"], "at least 1"),
    ("graph", ["--nodes", "7"], "--nodes states 7 nodes, but"),
    ("graph", ["--unknown"], "unrecognized arguments"),
]


def test_paying_command_refuses_mistakes_in_one_line_unpaid(folder, capsys):
    known = PrivacyAccountant(5.0, 1e-3, path="known.db")
    for name, options, message in MISTAKES:
        if "--ledger" not in options and "--budget" not in options:
            options = [*options, "--ledger", "known.db"]
        error = failed(call(name, *options), capsys)
        assert message in error and error.startswith("error: ") and error.count("\n") == 1
        assert len(known) == 0 and not any(folder.glob("out/*")), message


@pytest.mark.conformance
def test_ledger_option_refuses_another_adjacency_unpaid(folder, capsys):
    ledger = ("--ledger", "budget.db", "--budget", "9", "1e-3")
    assert call("diagram", *ledger) == 0
    error = failed(call("cluster", *ledger), capsys)
    assert "This ledger counts losses under 'replace-one' adjacency" in error
    assert "--adjacency replace-one is the one that diagrams" in error and "estimators" not in error
    assert call("cluster", *ledger, "--adjacency", "replace-one") == 0
    assert len(PrivacyAccountant.open("budget.db")) == 2


def test_ledger_option_refuses_other_units_in_words_of_the_shell(folder, capsys):
    PrivacyAccountant(9.0, 1e-3, path="people.db").spend(1.0, unit="one person")
    PrivacyAccountant(9.0, 1e-3, path="added.db").spend(1.0, adjacency="add-remove")
    for dry in ([], ["--dry-run"]):
        call("diagram", "--ledger", "people.db", *dry)
        assert "Use a ledger for each unit" in "".join(capsys.readouterr())
        call("diagram", "--ledger", "added.db", *dry)
        said = "".join(capsys.readouterr())
        assert "Use a ledger for each adjacency" in said
        assert "--adjacency" not in said and "estimators" not in said
    assert not (folder / "out").exists()


def test_ledger_option_takes_a_ledger_without_units(folder, monkeypatch):
    PrivacyAccountant(9.0, path="l.db").spend(1.0, unit="one person")
    with closing(sqlite3.connect("l.db")) as old, old:
        old.execute("ALTER TABLE privacy_budget DROP COLUMN unit")
        old.execute("ALTER TABLE privacy_spend DROP COLUMN unit")
    # Without the mark, which contains the unit.
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    assert call("bounds", "--ledger", "l.db", "--dry-run") == 0


@pytest.mark.conformance
def test_dry_run_option_says_what_the_run_leaves(folder, capsys):
    ledger = ("--ledger", "l.db", "--budget", "9", "1e-3")
    assert call("diagram", *ledger) == 0
    assert call("betti", *ledger, "--epsilon", "0.25", "--dry-run") == 0
    line = next(s for s in capsys.readouterr().out.splitlines() if "left after the run" in s)
    assert call("betti", *ledger, "--epsilon", "0.25") == 0
    assert capsys.readouterr().out.splitlines()[-1] == line.replace("after the run", "in l.db")
    assert len(PrivacyAccountant.open("l.db")) == 2


@pytest.mark.conformance
def test_ledger_option_notes_a_new_ledger_without_delta_once(folder, capsys):
    ledger = ("--ledger", "l.db", "--budget", "9")
    assert call("bounds", *ledger, "--dry-run") == 0
    assert "note: the new ledger has no delta" in capsys.readouterr().out
    assert call("bounds", *ledger) == 0
    assert "note: the new ledger has no delta" in capsys.readouterr().err
    assert call("bounds", *ledger, "--force") == 0
    assert "no delta" not in "".join(capsys.readouterr())


def test_seed_option_says_that_it_is_for_study(folder, capsys):
    assert call("bounds", "--seed", "0") == 0
    printed = capsys.readouterr()
    assert "for study" in printed.err and "known seed" in printed.out
    assert json.loads((folder / "out" / "bounds.json").read_text())["guarantee"]["seeded"]


def test_paying_command_refuses_files_used_twice_unpaid(folder, capsys):
    ledger = ("--ledger", "one.db", "--budget", "1", "1e-3")
    for options, message in (
        (("--ledger", "out/clusters.csv", "--budget", "1"), "--ledger: out/clusters.csv is a file"),
        ((*ledger, "--report", "rows.npy"), "--report: rows.npy is the file of the records"),
        ((*ledger, "--report", "./one.db"), "--report: ./one.db is the file of --ledger"),
        ((*ledger, "--report", "out/clusters.csv"), "out/clusters.csv is a file of the release"),
    ):
        assert message in failed(call("cluster", *options, "--force"), capsys)
    assert os.listdir(".") and not {"one.db", "out"} & set(os.listdir("."))


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_paying_command_follows_no_links_to_nowhere(folder, capsys):
    options = ("--report", "r.html", *LEDGER_OF_ONE)
    (folder / "r.html").symlink_to("target.html")
    assert "--report: r.html is there already" in failed(call("cluster", *options), capsys)
    (folder / "out").mkdir()
    (folder / "out" / "clusters.csv").symlink_to("target.csv")
    assert "is not a file" in failed(call("cluster", *options, "--force"), capsys)
    (folder / "out" / "clusters.csv").unlink()
    (folder / "link.db").symlink_to("target.db")
    assert call("cluster", "--ledger", "link.db", "--budget", "1", "1e-3") == 2
    assert not (folder / "one.db").exists() and not any(folder.glob("**/target*"))
    assert call("cluster", *options, "--force") == 0
    assert not (folder / "r.html").is_symlink() and not any(folder.glob("**/target*"))


@pytest.mark.conformance
def test_report_option_notes_a_report_that_fails(folder, capsys, monkeypatch):
    monkeypatch.setattr("sklearn_dptda._cli._paid_run.release_report", lambda *_, **__: 1 / 0)
    assert call("cluster", "--report", "r.html") == 0
    printed = capsys.readouterr()
    assert printed.err == "note: the report was not written: division by zero\n"
    assert "no ledger" in printed.out


@pytest.mark.conformance
def test_ledger_option_takes_a_url(folder, capsys):
    ledger = ("--ledger", "sqlite:///l.db")
    assert "l.db' cannot be used" in failed(call("bounds", *ledger), capsys)
    assert call("bounds", *ledger, "--budget", "3", "--dry-run") == 0
    assert not (folder / "l.db").exists()
    assert call("bounds", *ledger, "--budget", "3") == 0
    assert call("bounds", *ledger, "--force") == 0
    assert len(PrivacyAccountant.open("l.db")) == 2


# Plans.


# With a given mass, the plan is fast, and faster under a given cap and without components.
PUBLIC = ("--n", "2000", "--bounds", "-1.5", "1.5", "--m", "0.25")
LOOP = (*PUBLIC, "--loop-radius", "1", "--spread", "0.1")
QUICK = ("--dimensions", "1", "--max-distance", "1")


def next_command(text):
    line = next(line for line in text.splitlines() if "sklearn_dptda diagram" in line)
    return shlex.split(line)[3:]


@pytest.mark.conformance
def test_plan_command_prints_the_command_of_the_release(tmp_path, capsys):
    rng = np.random.default_rng(0)
    angle, radius = rng.uniform(0, 2 * np.pi, 2000), rng.normal(1, 0.1, 2000)
    np.savetxt(tmp_path / "points.csv", np.c_[radius * np.cos(angle), radius * np.sin(angle)])
    options = ("--dimensions", "1", "--max-distance", "1.4", "--max-points", "5")
    assert main(["plan", *LOOP, *options]) == 0
    command = next_command(capsys.readouterr().out)
    command[1] = str(tmp_path / "points.csv")
    assert main([*command, "-o", str(tmp_path), "--seed", "0"]) == 0
    content = json.loads((tmp_path / "diagram.json").read_text())
    private = PrivatePersistence(homology_dimensions=1, max_points=5)
    public = {"loop_radius": 1.0, "spread": 0.1, "m": 0.25, "max_distance": 1.4}
    plan = plan_release(2000, (-1.5, 1.5), private=private, **public)
    assert content["guarantee"]["epsilon"] == plan.epsilon
    assert content["parameters"]["sensitivity"] == plan.sensitivity
    assert content["parameters"]["upper"] == plan.upper
    assert content["parameters"]["resolution"] == [plan.resolution] * 2
    lengths = [death - birth for birth, death in content["diagrams"]["H1"]]
    assert max(lengths) > plan.noise_floor


@pytest.mark.conformance
def test_plan_command_prints_the_sentence_of_the_plan(tmp_path, capsys):
    assert main(["plan", *LOOP, "-o", str(tmp_path / "out")]) == 0
    plan = plan_release(2000, (-1.5, 1.5), loop_radius=1.0, spread=0.1, m=0.25)
    text = capsys.readouterr().out
    assert text.startswith(str(plan))
    command = next_command(text)
    assert command[command.index("--max-distance") + 1] == repr(plan.max_distance) == "1.0"
    assert "--dimensions" not in command and "--max-points" not in command
    assert (tmp_path / "out" / "plan.png").stat().st_size > 10_000


def test_plan_command_writes_nothing_without_a_folder(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ("--persistence", "0.5", "--feature", "0", "--coordinates", "3")
    cap = ("--dimensions", "0", "--max-distance", "1")
    assert main(["plan", *PUBLIC, *options, *cap]) == 0
    assert "shows a component" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.conformance
@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_plan_command_replaces_a_link_by_its_picture(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.png").symlink_to("target.png")
    assert main(["plan", *LOOP, *QUICK, "-o", "."]) == 0
    assert (tmp_path / "plan.png").is_file() and not (tmp_path / "target.png").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((*PUBLIC,), "--loop-radius"),
        ((*LOOP, "--persistence", "1"), "give either --loop-radius, or persistence"),
        (("--bounds", "0", "1", "--loop-radius", "0.3"), "--n"),
        (("--n", "0", "--bounds", "0", "1", "--loop-radius", "0.3"), "--n must be an integer"),
        (("--n", "800", "--bounds", "0", "1", "--persistence", "0.3"), "--m must be one number"),
        ((*PUBLIC, "--loop-radius", "nan"), "--loop-radius must be a positive number"),
        ((*LOOP, "--confidence", "2"), "--confidence must be"),
        ((*LOOP, "--dimensions", "0"), "--feature 1 is not one of"),
        ((*LOOP, "--max-points", "0"), "--max-points must be"),
    ],
)
def test_plan_command_refuses_mistakes_in_one_line(capsys, options, message):
    error = failed(main(["plan", *options]), capsys)
    assert message in error and error.startswith("error: ") and error.count("\n") == 1


def test_plan_command_help_teaches(capsys):
    refuses(None, main, ["plan", "--help"], error=SystemExit)
    text = capsys.readouterr().out
    assert "choosing the numbers" in text and "nothing is paid" in text
