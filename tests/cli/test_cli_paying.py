"""Commands that pay: ledgers, dry runs, refusals before a payment, and messages after it."""

import csv
import importlib
import io
import json
import os
import pkgutil
import re
import sqlite3
import subprocess
import sys
import warnings
import zipfile
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import gudhi
import numpy as np
import pytest
from scipy.io import mmwrite
from scipy.sparse import coo_array, load_npz, save_npz

import sklearn_dptda
from sklearn_dptda import _cli
from sklearn_dptda.__main__ import main
from sklearn_dptda._cli._command import Command
from sklearn_dptda._cli._diagram_commands import _summary
from sklearn_dptda._cli._graph_command import read_graph
from sklearn_dptda._cli._main import COMMANDS, REPEATABLE, build_parser, load_command
from sklearn_dptda._cli._output import finite_or_nulls, slow
from sklearn_dptda._cli._paid_run import _check_neighbours
from sklearn_dptda._cli._run_budget import RunBudget
from sklearn_dptda._cli._run_folder import place_of
from sklearn_dptda.model_selection import planned_loss
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyLedgerError
from sklearn_dptda.privacy._stored_release import from_bytes
from tests._fragile import wait_until

RNG = np.random.default_rng(0)
ROWS = RNG.uniform(-1, 1, size=(400, 2))
UPPER = np.triu(RNG.random((30, 30)) < 0.2, 1)
ADJACENCY = (UPPER | UPPER.T).astype(float)

# For each name: the arguments after the file, and the written files.
PAYING = {
    "diagram": (
        ["--bounds", "-1", "1", "--resolution", "9", "--m", "0.3"],
        ["diagram.json", "diagram.csv", "diagram.pers", "diagram.png"],
    ),
    "betti": (
        ["--bounds", "-1", "1", "--resolution", "9", "--m", "0.3", "--threshold", "0.1"],
        ["betti.json", "betti.csv"],
    ),
    "cluster": (
        ["--bounds", "-1", "1", "--kind", "kmeans", "--n-clusters", "2"],
        ["clusters.json", "clusters.csv"],
    ),
    "synthesize": (["--bounds", "-1", "1"], ["synthetic.csv", "synthetic.json"]),
    "graph": ([], ["graph.json", "graph.npz"]),
    "bounds": (["--epsilon", "1", "--start", "-9", "9"], ["bounds.json", "bounds.csv"]),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", ROWS)
    np.save("graph.npy", ADJACENCY)
    return tmp_path


def quickly(name, *options):
    """Return options, and those of the options that make a command quick that are not among them.

    No option may be given twice.
    """
    words, quick = PAYING[name][0], []
    starts = [place for place, word in enumerate(words) if word.startswith("--")]
    for start, end in pairwise([*starts, len(words)]):
        quick += [] if words[start] in options else words[start:end]
    return [*quick, *options]


def call(name, *options):
    """Run a command on its file, with the arguments that make it quick."""
    path = "graph.npy" if name == "graph" else "rows.npy"
    return main([name, path, *quickly(name, *options), "-o", "out"])


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
    assert call(name, *ledger) == 2
    assert "--force overwrites" in capsys.readouterr().err
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
    assert call(name, "--ledger", "budget.db") == 2
    assert "asked for epsilon=1" in capsys.readouterr().err
    assert len(PrivacyAccountant.open("budget.db")) == 0 and not (folder / "out").exists()
    assert call(name, "--ledger", "budget.db", "--dry-run") == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("error: the run would be refused: asked for epsilon=1")
    assert "left in budget.db: epsilon=0.5" in printed.out and "left after" not in printed.out


@pytest.mark.parametrize("name", PAYING)
def test_paying_command_refuses_bad_records_unpaid(name, folder, capsys):
    for path in ("rows.npy", "graph.npy"):
        np.save(path, np.full((5, 5), np.nan))
    assert call(name, "--ledger", "budget.db", "--budget", "3", "1e-5") == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1
    assert not (folder / "budget.db").exists() and not (folder / "out").exists()


MISTAKES = [
    ("diagram", ["--ledger", "no.db"], "there is no ledger no.db: pass --budget EPSILON"),
    ("bounds", ["--budget", "3"], "--budget needs a ledger"),
    ("bounds", ["--ledger", "l.db", "--budget", "1", "2", "3"], "--budget takes EPSILON"),
    ("bounds", ["--ledger", "l.db", "--budget", "-1"], "epsilon must be a positive number"),
    ("bounds", ["--ledger", "rows.npy"], "cannot be used"),
    ("bounds", ["--ledger", "known.db", "--budget", "7"], "has the budget epsilon=5"),
    ("bounds", ["--epsilon", "-1"], "--epsilon: must be positive and finite"),
    ("bounds", ["--epsilon", "inf"], "--epsilon: must be positive and finite"),
    ("bounds", ["--shape", "ball"], "invalid choice: 'ball'"),
    ("bounds", ["--start", "1", "2", "3"], "--start takes 2 numbers, or 2 numbers per"),
    ("bounds", ["--start", "1", "-1"], "crossed"),
    ("cluster", ["--bounds", "1", "-1"], "crossed"),
    ("cluster", ["--bounds", "0", "1", "0", "1", "0", "1"], "(2 here)"),
    (
        "cluster",
        ["--kind", "morse", "--delta", "0"],
        "use --kind kmeans, tree or cube with --delta 0",
    ),
    ("cluster", ["--n-clusters", "0"], "at least 1"),
    ("cluster", ["--adjacency", "none"], "invalid choice"),
    ("synthesize", ["--categories", "x"], "--categories takes NAME=A,B,C"),
    ("synthesize", ["--categories", "x=a,a"], "different values"),
    ("synthesize", ["--categories", "z=a,b"], "--categories: there is no column 'z'"),
    ("synthesize", ["--integers", "z"], "--integers: there is no column 'z'"),
    ("synthesize", ["--integers", "0", "--categories", "0=1"], "column of --categories"),
    ("synthesize", ["--column-bounds", "0", "0", "1"], "give one of them"),
    ("synthesize", ["--rows", "0"], "at least 1"),
    ("graph", ["--nodes", "7"], "does not have 7 nodes"),
    ("graph", ["--unknown"], "unrecognized arguments"),
]


def test_paying_command_refuses_mistakes_in_one_line_unpaid(folder, capsys):
    known = PrivacyAccountant(5.0, 1e-3, path="known.db")
    for name, options, message in MISTAKES:
        if "--ledger" not in options and "--budget" not in options:
            options = [*options, "--ledger", "known.db"]
        assert call(name, *options) == 2
        error = capsys.readouterr().err
        assert message in error and error.startswith("error: ") and error.count("\n") == 1
        assert len(known) == 0 and not any(folder.glob("out/*")), message


@pytest.mark.conformance
def test_ledger_option_refuses_another_adjacency_unpaid(folder, capsys):
    ledger = ("--ledger", "budget.db", "--budget", "9", "1e-3")
    assert call("diagram", *ledger) == 0
    assert call("cluster", *ledger) == 2
    error = capsys.readouterr().err
    assert "the ledger budget.db counts losses under replace-one adjacency" in error
    assert "Pass --adjacency replace-one." in error and "estimators" not in error
    assert call("cluster", *ledger, "--adjacency", "replace-one") == 0
    assert len(PrivacyAccountant.open("budget.db")) == 2


def test_ledger_option_refuses_other_units_in_words_of_the_shell(folder, capsys):
    PrivacyAccountant(9.0, 1e-3, path="people.db").spend(1.0, unit="one person")
    PrivacyAccountant(9.0, 1e-3, path="added.db").spend(1.0, adjacency="add-remove")
    for dry in ([], ["--dry-run"]):
        call("diagram", "--ledger", "people.db", *dry)
        assert "Use another ledger for this command." in "".join(capsys.readouterr())
        call("diagram", "--ledger", "added.db", *dry)
        said = "".join(capsys.readouterr())
        assert "Use a ledger in which all runs have this adjacency." in said
        assert "--adjacency" not in said
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


@pytest.mark.conformance
def test_diagram_command_files_agree_and_are_read_by_gudhi(folder):
    options = ("--seed", "1", "--epsilon", "50")
    assert call("diagram", *options) == 0
    content = json.loads((folder / "out" / "diagram.json").read_text())["diagrams"]
    table = np.loadtxt("out/diagram.csv", delimiter=",", skiprows=1, ndmin=2)
    assert sum(map(len, content.values())) == len(table) > 1
    for q, name in enumerate(("H0", "H1")):
        read = gudhi.read_persistence_intervals_in_dimension(
            persistence_file="out/diagram.pers", only_this_dim=q
        )
        expected = np.reshape(content[name], (-1, 2))
        np.testing.assert_array_equal(np.reshape(read, (-1, 2)), expected)
        np.testing.assert_array_equal(table[table[:, 0] == q][:, 1:3], expected)
        flags = json.loads((folder / "out" / "diagram.json").read_text())["beyond_noise"][name]
        assert table[table[:, 0] == q][:, 3].tolist() == flags


def test_finite_or_nulls_makes_infinities_null():
    assert finite_or_nulls([[1.5, np.inf], [np.nan, 0]]) == [[1.5, None], [None, 0.0]]


NEVER = "the component that never dies, which every cloud has"


@pytest.mark.parametrize(
    ("diagram", "flags", "any_feature", "dimension", "expected"),
    [
        ([[0.1, 1]], [True], False, 0, f"1 point, {NEVER}"),
        (
            [[0.1, 1], [0.1, 0.2], [0.1, 0.2]],
            [True, False, False],
            True,
            0,
            f"3 points: {NEVER}, and 2 points that may be noise, but the exact diagram has "
            "another component (confidence 0.95)",
        ),
        (
            [[0.1, 1], [0.1, 0.9]],
            [True, True],
            True,
            0,
            f"2 points, of which 2 beyond noise, including {NEVER}",
        ),
        (
            [[0.1, 0.2]],
            [False],
            True,
            1,
            "1 point; this point may be noise, but the exact diagram has a feature (confidence "
            "0.95)",
        ),
        ([[0.1, 0.2]] * 2, [False] * 2, False, 1, "2 points; each of these points may be noise"),
        ([[0.1, 0.2]] * 2, [True, False], True, 1, "2 points, of which 1 beyond noise"),
        ([], [], False, 1, "0 points, of which 0 beyond noise"),
    ],
)
def test_summary_of_diagrams_is_one_line(diagram, flags, any_feature, dimension, expected):
    assert _summary(diagram, flags, any_feature, dimension=dimension) == expected


@pytest.mark.conformance
def test_clipped_share_option_warns_of_points_outside(folder, capsys):
    options = ("--clipped-share", "--epsilon", "50", "--seed", "0")
    assert call("diagram", *options) == 0
    printed = capsys.readouterr().out
    assert "warning" not in printed and "never dies: counted up to" in printed
    assert call("diagram", *options, "--bounds", "-0.4", "0.4", "--force") == 0
    printed = capsys.readouterr().out
    # The rows are uniform, so that 1 - 0.4 ** 2 of them lie outside.
    (share,) = re.findall(r"warning: about (\d+) % of the points lie outside the bounds", printed)
    assert abs(int(share) - 84) < 8 and "Choose wider bounds." in printed


def test_seed_option_says_that_it_is_for_study(folder, capsys):
    assert call("bounds", "--seed", "0") == 0
    printed = capsys.readouterr()
    assert "for study" in printed.err and "known seed" in printed.out
    assert json.loads((folder / "out" / "bounds.json").read_text())["guarantee"]["seeded"]


@pytest.mark.conformance
def test_bounds_command_prints_options_of_the_diagram_command(folder, capsys):
    assert call("bounds", "--seed", "0") == 0
    line = next(s for s in capsys.readouterr().out.splitlines() if s.startswith("--bounds"))
    options = ["--resolution", "9", "-o", "next", *line.split()]
    assert main(["diagram", "rows.npy", *options]) == 0


@pytest.mark.conformance
@pytest.mark.parametrize("kind", ["morse", "mixture", "kmeans", "tree", "cube"])
def test_cluster_command_of_each_kind_writes_columns_and_noise(kind, folder, capsys):
    np.savetxt("rows.csv", ROWS, delimiter=",", header="age,mass", comments="")
    command = ["cluster", "rows.csv", "--header", *quickly("cluster", "--kind", kind)]
    assert main([*command, "--epsilon", "20", "--seed", "0", "-o", "out"]) == 0
    line = next(s for s in capsys.readouterr().out.splitlines() if s.startswith("standard"))
    assert "(age)" in line and "(mass)" in line and "in the weights" in line
    content = json.loads((folder / "out" / "clusters.json").read_text())
    header = (folder / "out" / "clusters.csv").read_text().splitlines()[0]
    assert header == "component,cluster,weight,mean_age,mean_mass"
    assert content["columns"] == ["age", "mass"] and "labels" not in content
    table = np.loadtxt("out/clusters.csv", delimiter=",", skiprows=1, ndmin=2)
    np.testing.assert_array_equal(table[:, 3:], content["means"])
    np.testing.assert_array_equal(table[:, 1], content["clusters"])
    assert len(np.unique(table[:, 1])) <= 2
    assert ("covariances" in content) == (kind in ("morse", "mixture"))
    assert np.shape(content["means_noise"]) == np.shape(content["means"])
    assert len(content["weights_noise"]) == len(content["within_noise"]) == len(content["weights"])
    assert ("cluster_weights" in content) == (kind == "morse")
    if kind == "morse":
        labels, weights = np.array(content["clusters"]), np.array(content["weights"])
        for label in np.unique(labels):
            own = labels == label
            mean = np.average(np.array(content["means"])[own], axis=0, weights=weights[own])
            np.testing.assert_allclose(content["cluster_means"][label], mean)
            np.testing.assert_allclose(content["cluster_weights"][label], weights[own].sum())


@pytest.mark.conformance
def test_cluster_command_writes_no_names_of_a_guessed_header(folder, capsys):
    np.savetxt("rows.csv", np.c_[ROWS, ROWS], delimiter=",", header="Ann,Bob,c,d", comments="")
    command = ["cluster", "rows.csv", *PAYING["cluster"][0], "--columns", "3", "c", "-o", "out"]
    assert main(command) == 0
    header = (folder / "out" / "clusters.csv").read_text().splitlines()[0]
    # A typed name is public; the name of column 3 may be a record.
    assert header == "component,cluster,weight,mean_3,mean_c"


@pytest.mark.conformance
def test_cluster_command_says_noise_relative_to_the_bounds(folder, capsys):
    np.save("rows.npy", RNG.uniform(-1, 1, size=(400, 6)))
    assert call("cluster", "--epsilon", "20") == 0
    assert "times the width of the bounds" in capsys.readouterr().out


@pytest.mark.conformance
def test_cluster_command_releases_missing_bounds(folder, capsys):
    options = ["--kind", "mixture", "--seed", "0", "--epsilon", "5", "-o", "out"]
    assert main(["cluster", "rows.npy", *options]) == 0
    assert "bounds, the share of rows" in capsys.readouterr().out
    low, high = json.loads((folder / "out" / "clusters.json").read_text())["bounds"]
    assert (np.array(low) < 0).all() and (np.array(high) > 0).all()


@pytest.mark.conformance
def test_synthesize_command_keeps_the_columns_of_the_table(folder, capsys):
    jobs = RNG.choice(["cook", "nurse"], 300)
    ages = RNG.integers(18, 90, 300)
    lines = [f"{age},{job},{age / 7:.3f}" for age, job in zip(ages, jobs, strict=True)]
    (folder / "people.csv").write_text("age,job,x\n" + "\n".join(lines) + "\n")
    options = ["--categories", "job=cook,nurse,smith", "--column-bounds", "age", "0", "120"]
    options += ["--integers", "age", "--rows", "50", "--seed", "0", "-o", "out"]
    assert main(["synthesize", "people.csv", *options]) == 2
    assert "pass --header or --no-header" in capsys.readouterr().err
    assert main(["synthesize", "people.csv", "--header", *options]) == 0
    header, *rows = (folder / "out" / "synthetic.csv").read_text().splitlines()
    assert header == "age,job,x" and len(rows) == 50
    for age, job, x in (row.split(",") for row in rows):
        assert 0 <= int(age) <= 120 and job in ("cook", "nurse", "smith") and abs(float(x)) < 1e9


@pytest.mark.parametrize("text", ["=1+1", "@x", "-2+3", "+ x", "\t=1", "\r@x"])
def test_refuse_formulas_in_columns_and_categories_unpaid(text, folder, capsys):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pandas.DataFrame(ROWS, columns=[text, "b"]).to_parquet("t.parquet")
    for command in (
        ["synthesize", "t.parquet"],
        ["bounds", "t.parquet"],
        ["synthesize", "rows.npy", "--categories", f"0={text}"],
    ):
        assert main([*command, *LEDGER_OF_ONE, "-o", "out"]) == 2
        assert "as a formula" in capsys.readouterr().err
    assert not (folder / "one.db").exists()


@pytest.mark.conformance
def test_cluster_command_writes_columns_that_are_no_formulas(folder):
    np.savetxt("rows.csv", ROWS, delimiter=",", header="=1+1,b", comments="")
    assert main(["cluster", "rows.csv", "--header", *PAYING["cluster"][0], "-o", "out"]) == 0
    header = (folder / "out" / "clusters.csv").read_text(encoding="utf-8").splitlines()[0]
    assert header == "component,cluster,weight,mean_=1+1,mean_b"


@pytest.mark.conformance
def test_synthesize_command_writes_categories_unchanged(folder):
    signs = ["+", "-", "-1", "+2.5e-3", "1=2"]
    with open("t.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["sign"], *([sign] for sign in signs * 60)])
    command = ["--header", "--categories", f"sign={','.join(signs)}", "--seed", "0"]
    assert main(["synthesize", "t.csv", *command, "-o", "out"]) == 0
    with open("out/synthetic.csv", newline="", encoding="utf-8") as file:
        assert {row[0] for row in csv.reader(file)} == {"sign", *signs}
    # The command reads its own output.
    assert main(["synthesize", "out/synthetic.csv", *command, "-o", "again"]) == 0


def test_synthesize_command_quotes_no_value_beyond_its_list(folder, capsys):
    (folder / "people.csv").write_text("job,x\ncook,1\nsecret,2\n")
    options = ["--header", "--categories", "job=cook", "--ledger", "l.db", "--budget", "5"]
    assert main(["synthesize", "people.csv", *options]) == 2
    error = capsys.readouterr().err
    assert "not in its list of categories" in error and "secret" not in error
    assert not (folder / "l.db").exists()


@pytest.mark.conformance
def test_read_graph_of_each_format(folder):
    ends = np.argwhere(UPPER)
    save_npz("sparse.npz", coo_array(ADJACENCY))
    np.savez("dense.npz", ADJACENCY)
    mmwrite("graph.mtx", coo_array(ADJACENCY), symmetry="symmetric")
    np.savetxt("edges.csv", np.r_[ends, ends[:5, ::-1]], fmt="%d", delimiter=",")
    np.savetxt("edges.txt", ends, fmt="%d", header="a b", comments="")
    for name in ("graph.npy", "sparse.npz", "dense.npz", "graph.mtx"):
        np.testing.assert_array_equal(read_graph(name).toarray(), ADJACENCY)
    np.testing.assert_array_equal(read_graph("edges.csv", 30).toarray(), ADJACENCY)
    np.testing.assert_array_equal(read_graph("edges.txt", 30, header=True).toarray(), ADJACENCY)
    assert read_graph("edges.csv", 31, directed=True).sum() == len(ends) + 5
    assert main(["graph", "edges.csv", "--nodes", "30", "--epsilon", "20", "-o", "out"]) == 0
    noisy = load_npz("out/graph.npz")
    # Each of 435 pairs is flipped with probability 2e-9.
    np.testing.assert_array_equal(noisy.toarray(), ADJACENCY)


def test_graph_command_refuses_broken_graphs_in_one_line(folder, capsys):
    broken = {
        "cut.npz": b"PK\x03\x04 secret",
        "cut.mtx": b"%%MatrixMarket secret",
        "far.csv": b"0,1\n1,77\n",
        "half.csv": b"0,1\n1,2.5\n",
        "wide.csv": b"0,1,1\n1,2,1\n",
        "loop.csv": b"0,1\n2,2\n",
    }
    for name, content in broken.items():
        (folder / name).write_bytes(content)
        assert main(["graph", name, "--nodes", "30", "-o", "out"]) == 2
        error = capsys.readouterr().err
        assert error.startswith("error: ") and error.count("\n") == 1
        assert "secret" not in error and "77" not in error and "2.5" not in error
    assert main(["graph", "loop.csv", "--nodes", "30", "-o", "out"]) == 2
    error = capsys.readouterr().err
    assert "Some lines of loop.csv join a node with itself. Remove these lines." in error
    np.save("directed.npy", UPPER.astype(float))
    assert main(["graph", "directed.npy", "-o", "out"]) == 2
    assert "pass --directed" in capsys.readouterr().err
    assert main(["graph", "loop.csv", "-o", "out"]) == 2
    assert "--nodes must be given" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("_paid_run.read_labelled_points", "nothing was spent"),
        (
            "_row_commands.ClusterRelease.content",
            "epsilon=1, delta=1e-06 was spent. Run the same command with --resume to continue; it "
            "pays nothing more",
        ),
    ],
)
def test_paying_command_interrupted_says_what_was_spent(where, said, folder, capsys, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"sklearn_dptda._cli.{where}", interrupt)
    assert call("cluster", "--ledger", "l.db", "--budget", "5", "1e-3") == 130
    assert capsys.readouterr().err == f"interrupted: {said}\n"
    assert (folder / "l.db").exists() == ("was" in said and said[0] == "e")


def test_paying_command_interrupted_in_the_payment_says_so(folder, capsys, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(PrivacyAccountant, "spend", interrupt)
    assert call("cluster") == 130
    assert "epsilon=1, delta=1e-06 may have been spent" in capsys.readouterr().err


def test_paying_command_that_fails_after_the_payment_says_so(folder, capsys, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device", "out/x")

    with monkeypatch.context() as patch:
        patch.setattr("sklearn_dptda._cli._paid_run.write_json", fail)
        assert call("cluster") == 2
    printed = capsys.readouterr()
    # The key of the run still exists, so nothing is published yet.
    assert not printed.out
    note, error = printed.err.splitlines()
    assert note.startswith("note: epsilon=1, delta=1e-06 was spent")
    assert error == "error: out/x: No space left on device"
    assert call("cluster", "--resume") == 0
    assert "2 cluster(s) of weight" in capsys.readouterr().out


class Killed(BaseException):
    """Stands for a signal that cannot be caught: nothing is moved afterwards."""


def killed_after(number):
    """Return a replacement of os.replace that fails after so many moves of released files."""
    moved, replace = [], os.replace

    def move(source, target):
        is_release = Path(target).name.startswith("clusters")
        if len(moved) < number or not is_release:
            replace(source, target)
        moved.extend([target] * is_release)
        if len(moved) >= number:
            raise Killed

    return move


@pytest.mark.parametrize(
    ("force", "moves"),
    [
        (False, 1),
        (True, 2),
        *(
            pytest.param(*case, marks=pytest.mark.conformance)
            for case in ((False, 2), (True, 1), (True, 3), (True, 4))
        ),
    ],
)
def test_resume_option_goes_on_after_death_between_moves(force, moves, folder, capsys, monkeypatch):
    options = ("--ledger", "l.db", "--budget", "9", "1e-3", *["--force"] * force)
    if force:
        assert call("cluster", "--seed", "0") == 0
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(os, "replace", killed_after(moves))
        call("cluster", *options)
    capsys.readouterr()
    # A file of other origin is not overwritten.
    if not force:
        kept = (folder / "out" / "clusters.json").read_bytes()
        (folder / "out" / "clusters.json").write_text("{}")
        assert call("cluster", *options, "--resume") == 2
        assert "contains an earlier release" in capsys.readouterr().err
        (folder / "out" / "clusters.json").write_bytes(kept)
    # A resumed run that fails leaves all as it was.
    before = {path.name: path.read_bytes() for path in folder.glob("out/clusters.*")}
    assert call("cluster", *options, "--resume", "--epsilon", "2") == 2
    after = {path.name: path.read_bytes() for path in folder.glob("out/clusters.*")}
    assert before.items() <= after.items()
    # Of each file, the earlier or the new version is in its place.
    assert len(after) == (2 if force else moves)
    assert call("cluster", *options, "--resume") == 0
    assert sorted(os.listdir("out")) == ["clusters.csv", "clusters.json"]
    budget = PrivacyAccountant.open("l.db")
    (release,) = budget.releases()
    written = json.loads((folder / "out" / "clusters.json").read_text(encoding="utf-8"))
    assert np.array_equal(budget.release(release.key)["cluster_centers_"], written["means"])


class Broken(io.StringIO):
    """A stream to a pipe that nobody reads."""

    def write(self, text):
        raise BrokenPipeError(32, "Broken pipe")


def test_paying_command_is_complete_if_it_cannot_be_printed(folder, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Broken())
        assert call("cluster", "--report", "out/r.html", *LEDGER_OF_ONE) == 0
    assert sorted(os.listdir("out")) == ["clusters.csv", "clusters.json", "r.html"]
    (note,) = capsys.readouterr().err.splitlines()
    assert note.startswith("note: the release is complete and written to out") and note.endswith(
        "but the output could not be printed (Broken pipe)"
    )
    # Nothing but the output is of use in other commands, so that they fail.
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Broken())
        assert main(["ledger", "one.db"]) == 2
    assert "error: the output could not be printed" in capsys.readouterr().err
    # A message that cannot be printed ends no run.
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", Broken())
        assert call("cluster", "--seed", "0", "--force") == 0


def test_paying_command_deletes_its_key_before_it_prints(folder, capsys, monkeypatch):
    def describe(*_):
        assert sorted(os.listdir("out")) == ["clusters.csv", "clusters.json"]
        raise KeyboardInterrupt

    monkeypatch.setattr("sklearn_dptda._cli._row_commands.ClusterRelease.describe", describe)
    assert call("cluster") == 130
    expected = "interrupted: epsilon=1, delta=1e-06 was spent, and the release is complete\n"
    assert capsys.readouterr().err == expected


def test_paying_command_lets_a_folder_without_key_be_deleted(folder, capsys):
    (folder / "out" / ".clusters.json.part").mkdir(parents=True)
    assert call("cluster") == 2
    assert "delete the folder. It contains no release that was paid" in capsys.readouterr().err


def test_paying_command_refuses_files_used_twice_unpaid(folder, capsys):
    ledger = ("--ledger", "one.db", "--budget", "1", "1e-3")
    for options, message in (
        (("--ledger", "out/clusters.csv", "--budget", "1"), "--ledger: out/clusters.csv is a file"),
        ((*ledger, "--report", "rows.npy"), "--report: rows.npy is the file of the records"),
        ((*ledger, "--report", "./one.db"), "--report: ./one.db is the file of --ledger"),
        ((*ledger, "--report", "out/clusters.csv"), "out/clusters.csv is a file of the release"),
    ):
        assert call("cluster", *options, "--force") == 2
        assert message in capsys.readouterr().err
    assert os.listdir(".") and not {"one.db", "out"} & set(os.listdir("."))


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_paying_command_follows_no_links_to_nowhere(folder, capsys):
    options = ("--report", "r.html", *LEDGER_OF_ONE)
    (folder / "r.html").symlink_to("target.html")
    assert call("cluster", *options) == 2
    assert "--report: r.html is there already" in capsys.readouterr().err
    (folder / "out").mkdir()
    (folder / "out" / "clusters.csv").symlink_to("target.csv")
    assert call("cluster", *options, "--force") == 2
    assert "is not a file" in capsys.readouterr().err
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
def test_slow_prints_progress_of_what_takes_long(capsys, monkeypatch):
    monkeypatch.setattr("sklearn_dptda._cli._output._FIRST_LINE_SECONDS", 0.0)
    monkeypatch.setattr("sklearn_dptda._cli._output._NEXT_LINE_SECONDS", 60.0)
    printed = ""

    def read():
        nonlocal printed
        printed += capsys.readouterr().err
        return printed

    with slow("counting sheep"):
        # The block ends when the line is there, however slow the machine is.
        wait_until(lambda: read().endswith("\n"), "the line is there")
    assert printed == "counting sheep ...\n"
    monkeypatch.setattr("sklearn_dptda._cli._output._FIRST_LINE_SECONDS", 60.0)
    with slow("counting sheep"):
        pass
    assert capsys.readouterr().err == ""


@pytest.mark.conformance
def test_diagram_command_prints_a_warning_in_one_line(folder, capsys):
    options = ["--bounds", "-1", "1", "--resolution", "9", "--m", "0.01", "--epsilon", "0.01"]
    # These are the settings of a user's Python. In the tests, warnings are errors.
    with warnings.catch_warnings():
        warnings.resetwarnings()
        assert main(["diagram", "rows.npy", *options]) == 0
    (warned,) = capsys.readouterr().err.splitlines()
    assert warned.startswith("warning: At epsilon=0.01, the noise hides")


@pytest.mark.conformance
def test_ledger_option_takes_a_url(folder, capsys):
    ledger = ("--ledger", "sqlite:///l.db")
    assert call("bounds", *ledger) == 2
    assert "l.db' cannot be used" in capsys.readouterr().err
    assert call("bounds", *ledger, "--budget", "3", "--dry-run") == 0
    assert not (folder / "l.db").exists()
    assert call("bounds", *ledger, "--budget", "3") == 0
    assert call("bounds", *ledger, "--force") == 0
    assert len(PrivacyAccountant.open("l.db")) == 2


def test_ledger_command_prints_payments_and_what_is_left(folder, capsys):
    assert call("bounds", "--ledger", "l.db", "--budget", "3") == 0
    capsys.readouterr()
    assert main(["ledger", "l.db"]) == 0
    line, total, left, protected = capsys.readouterr().out.splitlines()
    assert protected == "privacy unit and adjacency: one row; replace-one"
    assert line.startswith("1  ") and "epsilon=1, delta=0  PrivateBounds" in line
    assert total == "spent: epsilon=1, delta=0 by basic composition"
    assert left == "left: epsilon=2, delta=0"
    PrivacyAccountant(1.0, path="new.db")
    assert main(["ledger", "new.db"]) == 0
    assert "open, because the first payment fixes them" in capsys.readouterr().out
    assert main(["ledger", "no.db"]) == 2
    assert capsys.readouterr().err.startswith("error: ")


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
        assert main(["ledger", *command]) == 2
        error = capsys.readouterr().err
        assert error == "error: l.db: --check reads an extract. Write one with --extract.\n"
    assert main(["ledger", "postgresql://nowhere/x", "--check"]) == 2
    assert "--check reads an extract" in capsys.readouterr().err
    assert main(["ledger", "extract.json"]) == 2
    assert capsys.readouterr().err == "error: extract.json: this is an extract: add --check.\n"
    (folder / "other.json").write_text("[]")
    assert main(["ledger", "other.json"]) == 2
    assert "cannot be used" in capsys.readouterr().err


@pytest.mark.conformance
def test_version_option_prints_the_version(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"sklearn_dptda {sklearn_dptda.__version__}\n"


@pytest.mark.conformance
@pytest.mark.parametrize("name", PAYING)
def test_help_of_paying_commands_says_unit_and_release(name, capsys):
    with pytest.raises(SystemExit):
        main([name, "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "The privacy unit is one" in text and "Release" in text
    assert f"example: python -m sklearn_dptda {name} " in text and "what is written" in text
    assert "--dry-run" in text and "for study" in text


@pytest.mark.conformance
@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_and_version_options_import_nothing_slow(argument):
    code = (
        "import sys; from sklearn_dptda._cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "assert not {'numpy', 'sklearn', 'scipy', 'opendp'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code, argument], check=True, stdout=subprocess.PIPE)


def options_of(name):
    """Return the parser of a command, and its options except --help."""
    subparsers = build_parser(name)._subparsers._group_actions[0]
    parser = subparsers.choices[name]
    return parser, [a for a in parser._actions if a.option_strings and a.dest != "help"]


@pytest.mark.conformance
@pytest.mark.parametrize("name", COMMANDS)
def test_parser_drops_no_repeated_option(name):
    parser, options = options_of(name)
    assert len(options) >= 4
    for option in options:
        value = option.choices[0] if option.choices else "1"
        number = option.nargs if isinstance(option.nargs, int) else 1
        # The last spelling of a flag is its negation, if it has one.
        for again in (option.option_strings[0], option.option_strings[-1]):
            words = [option.option_strings[0], *[value] * number, again, *[value] * number]
            with pytest.raises(ValueError) as caught:
                # A positional argument or another option is missing as well.
                parser.parse_args([*words, "--unknown"])
            assert ("given twice" in str(caught.value)) != isinstance(option, REPEATABLE)


@pytest.mark.conformance
def test_repeated_options_add_to_lists_or_are_refused_unpaid(folder, capsys):
    (folder / "t.csv").write_text("a,b,c,d\n" + "0,1,,2\n1,2,7,3\n" * 150)
    lists = ["--categories", "a=0,1", "--categories", "b=1,2", "--integers", "c"]
    lists += ["--integers", "d", "--fill", "c=5", "--fill", "d=6", "--column-bounds", "c", "0"]
    lists += ["9", "--column-bounds", "d", "0", "9", "--columns", "a", "b", "--columns", "c", "d"]
    assert main(["synthesize", "t.csv", "--header", *lists, "--rows", "20", "-o", "out"]) == 0
    header, *rows = (folder / "out" / "synthetic.csv").read_text().splitlines()
    assert header == "a,b,c,d" and all(re.fullmatch(r"[01],[12],\d,\d", row) for row in rows)
    ledger = ("--ledger", "l.db", "--budget", "9")
    assert main(["diagram", "t.csv", "--bounds", "0", "1", "--bounds", "1", "2", *ledger]) == 2
    error = capsys.readouterr().err
    assert "--bounds: given twice; give it once, with all of its values (see" in error
    for options, message in (
        (["--categories", "a=0,1", "0=2,3"], "--categories names the column '0' twice"),
        (["--column-bounds", "a", "0", "1", "--column-bounds", "a", "0", "2"], "column 'a' twice"),
        (["--fill", "a=1", "a=2"], "--fill names the column 'a' twice"),
        (["--columns", "a", "a"], "--columns names the column 'a' twice"),
    ):
        assert main(["synthesize", "t.csv", "--header", *options, *ledger]) == 2
        assert message in capsys.readouterr().err
    (folder / "t.csv").write_text("a,a\n1,2\n")
    assert main(["synthesize", "t.csv", "--header", "--columns", "a", *ledger]) == 2
    assert "several columns are named 'a': give a number from 0" in capsys.readouterr().err
    assert not (folder / "l.db").exists()


@pytest.mark.conformance
def test_commands_registry_contains_every_command():
    names = [module.name for module in pkgutil.iter_modules(_cli.__path__)]
    modules = [importlib.import_module(f"sklearn_dptda._cli.{name}") for name in names]
    found = [value for m in modules for value in vars(m).values() if isinstance(value, Command)]
    commands = [load_command(name) for name in COMMANDS]
    assert set(commands) >= set(found) and [c.name for c in commands] == list(COMMANDS)


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


@pytest.mark.conformance
def test_command_line_page_runs(folder, capsys):
    page = Path(sklearn_dptda.__file__).parent.parent / "doc" / "guide" / "command_line.md"
    if not page.is_file():
        pytest.skip("the documentation is not beside the tests: an installed package")
    np.savetxt("points.csv", ROWS, delimiter=",")
    people = ["age,job", *(f"{30 + j % 40},{('cook', 'nurse')[j % 2]}" for j in range(300))]
    (folder / "people.csv").write_text("\n".join(people))
    np.savetxt("edges.csv", np.argwhere(UPPER), fmt="%d", delimiter=",")
    visits = np.column_stack([np.arange(400) % 100, ROWS])
    np.savetxt("visits.csv", visits, delimiter=",", header="patient_id,pulse,weight", comments="")
    lines = re.findall(r"^python -m sklearn_dptda (.*)$", page.read_text(), flags=re.MULTILINE)
    assert len(lines) >= 7
    for line in lines:
        assert main(line.split()) == 0, capsys.readouterr().err
    assert len(PrivacyAccountant.open("budget.db")) == 3
    named = re.findall(r"^\| `(\w+)` ", page.read_text(), flags=re.MULTILINE)
    assert set(named) == set(COMMANDS)


@pytest.mark.conformance
def test_betti_command_prints_and_writes_counts(folder, capsys):
    angle = RNG.uniform(0, 2 * np.pi, 2000)
    np.save("rows.npy", np.c_[np.cos(angle), np.sin(angle)])
    assert call("betti", "--epsilon", "2", "--seed", "0", "--m", "0.2", "--resolution", "31") == 0
    printed = capsys.readouterr().out
    assert "H0: 1" in printed and "H1: 1" in printed and "confidence 0.95" in printed
    content = json.loads((folder / "out" / "betti.json").read_text())
    assert content["counts"] == {"H0": 1, "H1": 1} and content["statement"] in printed
    parameters = content["parameters"]
    assert parameters["m"] == 0.2 and parameters["bounds"] == [[-1, -1], [1, 1]]
    assert content["cap"] == parameters["upper"] > 0
    rows = np.loadtxt("out/betti.csv", delimiter=",", skiprows=1)
    assert rows.tolist() == [[0, 1], [1, 1]]
    assert call("betti", "--force", "--dimensions", "1", "--max-count", "0") == 2
    assert "max_count" in capsys.readouterr().err


def test_paying_command_writes_elsewhere_if_the_disk_fails(folder, capsys, monkeypatch):
    # A folder in place of a file is refused. If the disk fails later, the release is not lost.
    (folder / "out" / "synthetic.csv").mkdir(parents=True)
    options = ("--ledger", "budget.db", "--budget", "2", "--force")
    assert call("synthesize", *options) == 2 and not (folder / "budget.db").exists()
    assert "is not a file" in capsys.readouterr().err
    (folder / "out" / "synthetic.csv").rmdir()
    written = Path.open

    def full(path, *arguments, **named):
        if "out" in path.parts and path.suffix == ".csv":
            raise OSError("No space left on device")
        return written(path, *arguments, **named)

    monkeypatch.setattr(Path, "open", full)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert call("synthesize", *options) == 0
    assert "No space left" in capsys.readouterr().err
    assert len(list(folder.glob("dptda-out-*/synthetic.csv"))) == 1


def interrupted(*_, **__):
    raise KeyboardInterrupt


LEDGER_OF_ONE = ("--ledger", "one.db", "--budget", "1", "1e-3")


@pytest.mark.conformance
@pytest.mark.parametrize(
    ("name", "moment"),
    [
        ("diagram", "draw"),
        ("betti", "write"),
        ("cluster", "draw"),
        ("cluster", "write"),
        ("synthesize", "write"),
        ("graph", "draw"),
        ("bounds", "write"),
    ],
)
def test_resume_option_goes_on_and_pays_once(name, moment, folder, capsys, monkeypatch):
    where = {
        "draw": "sklearn_dptda.privacy.NoiseSource.__init__",
        "write": "sklearn_dptda._cli._paid_run.write_all",
    }[moment]
    with monkeypatch.context() as patch:
        patch.setattr(where, interrupted)
        assert call(name, *LEDGER_OF_ONE) == 130
    assert "with --resume to continue" in capsys.readouterr().err
    budget = PrivacyAccountant.open("one.db")
    (release,) = budget.releases()
    # The budget is used up, so a new run is refused.
    assert (release.size is None) == (moment == "draw") and budget.remaining().epsilon == 0
    assert call(name, *LEDGER_OF_ONE) == 2
    # With other records, the same key pays nothing.
    kept = {file: Path(file).read_bytes() for file in ("rows.npy", "graph.npy")}
    np.save("rows.npy", ROWS[::-1] / 2)
    np.save("graph.npy", ADJACENCY[::-1, ::-1])
    assert call(name, *LEDGER_OF_ONE, "--resume") == 2
    assert capsys.readouterr().err.endswith(
        "error: the interrupted run in out had other arguments or another file. Nothing was "
        "charged. Repeat the original command with --resume.\n"
    )
    for file, content in kept.items():
        Path(file).write_bytes(content)
    # The run is interrupted again before it has found the payment, and run with another ledger.
    with monkeypatch.context() as patch:
        patch.setattr("sklearn_dptda._cli._paid_run.digest_of", interrupted)
        assert call(name, *LEDGER_OF_ONE, "--resume") == 130
    for other in (("--ledger", "mistyped.db", "--budget", "9", "1e-3"), ()):
        capsys.readouterr()
        assert call(name, *other, "--resume") == 2
        assert "had another ledger, or none. Nothing was charged." in capsys.readouterr().err
    assert not Path("mistyped.db").exists()
    # A second draw that differs from the stored release would be refused.
    assert call(name, *LEDGER_OF_ONE, "--resume") == 0
    assert sorted(os.listdir("out")) == sorted(PAYING[name][1])
    assert len(budget) == 1 and budget.releases()[0].size
    assert call(name, *LEDGER_OF_ONE, "--force", "--resume") == 2
    assert "there is no interrupted run in out that has paid" in capsys.readouterr().err


@pytest.mark.parametrize("secret", ["secret", "se/cr@et", "se?cret", "se cret", "se?cr@et"])
def test_ledger_command_prints_no_password(secret, folder, capsys):
    urls = [f"postgresql://me:{secret}@host/db", f"x://host/db?password={secret.replace(' ', '+')}"]
    for url in urls:
        for command in (["ledger", url, "--check"], ["ledger", "l.db", url], ["ledger", url]):
            assert main(command) == 2
            said = capsys.readouterr().err
            assert said.startswith("error: ")
            assert not {"me", "secret", "se", "cret", "cr", "et"} & set(re.split(r"\W+", said))


def test_ledger_command_escapes_control_characters(folder, capsys, monkeypatch):
    with PrivacyAccountant(2.0, path="l.db") as budget:
        budget.spend(0.5, what="\x1b[2J\nleft: epsilon=9 \u202e")
    assert main(["ledger", "l.db"]) == 0
    line, *_, left, _ = capsys.readouterr().out.splitlines()
    assert r"\x1b[2J\nleft: epsilon=9 \u202e  not stored" in line and "1.5" in left
    assert main(["diagram", "\x1b[2J.csv", "--bounds", "0", "1"]) == 2
    assert capsys.readouterr().err == "error: there is no file \\x1b[2J.csv.\n"
    # Characters that the terminal cannot show are no error.
    output = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(output, encoding="ascii"))
    budget.spend(0.5, what="\u03bb")
    assert main(["ledger", "l.db"]) == 0 and rb"\u03bb  not stored" in output.getvalue()


def test_cli_prints_in_one_module_only():
    for path in Path(_cli.__file__).parent.glob("*.py"):
        prints = re.search(r"\bprint\(|sys\.std(out|err)", path.read_text(encoding="utf-8"))
        assert bool(prints) == (path.name == "_terminal.py"), path.name


def test_place_of_a_ledger_contains_no_password(folder):
    pytest.importorskip("sqlalchemy")
    place = place_of("postgresql://me:secret@host:5432/db?password=secret")
    assert place == place_of("postgresql://host:5432/db") == "postgresql://host:5432/db"
    # SQLAlchemy allows this password without quoting.
    assert place_of("postgresql://me:se/cr?et@host/db") == "postgresql://host/db"
    assert place_of("l.db") == place_of("./l.db") == str(folder.resolve() / "l.db")
    assert place_of(None) != place_of("no ledger")


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
    assert "counts losses under replace-one adjacency" in capsys.readouterr().err
    assert call("bounds", "--ledger", "zcdp.db", "--dry-run") == 0


def test_run_budget_says_no_password_of_its_ledger(monkeypatch, capsys):
    pytest.importorskip("psycopg")
    url = "postgresql://me:secret@host/db?password=secret"
    monkeypatch.setattr(RunBudget, "_exists", lambda self: False)
    budget = RunBudget(url, [1.0])
    assert budget.left(budget.plan_with).startswith("left in postgresql://me:***@host/db, which")
    guarantee = planned_loss(PrivateBounds(1.0)).releases[0].guarantee
    for counted in (
        replace(guarantee, unit="one person"),
        replace(guarantee, adjacency="add-remove"),
    ):
        with pytest.raises(ValueError, match=r"the ledger postgresql://me:\*\*\*@host/db counts"):
            _check_neighbours(budget.shown, counted, guarantee, True)
    with pytest.raises(ValueError, match="there is no ledger") as caught:
        RunBudget(url, None)
    assert "secret" not in str(caught.value)
    assert main(["ledger", url, "--check"]) == 2
    assert "secret" not in capsys.readouterr().err


def test_resume_option_refuses_other_arguments(folder, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("sklearn_dptda._cli._paid_run.write_all", interrupted)
        assert call("cluster", *LEDGER_OF_ONE) == 130
    capsys.readouterr()
    for other in (["--n-clusters", "3"], ["--epsilon", "0.5"], ["--kind", "tree"]):
        assert call("cluster", *LEDGER_OF_ONE, *other, "--resume") == 2
        error = capsys.readouterr().err
        assert "had other arguments or another file. Nothing was charged." in error
        assert "may have been spent" not in error and "ReleaseKey" not in error
    # The ledger has nothing left, but the advice is to continue the run.
    assert call("cluster", *LEDGER_OF_ONE, "--force") == 2
    error = capsys.readouterr().err
    assert "continue it with --resume" in error and "asked for" not in error
    assert "forfeits the release if it was paid for" in error
    assert call("cluster", *LEDGER_OF_ONE, "--resume") == 0
    assert len(PrivacyAccountant.open("one.db")) == 1


def test_paying_command_reports_a_ledger_that_fails(folder, capsys, monkeypatch):
    def fail(*_, **__):
        raise PrivacyLedgerError("The disk is broken.")

    monkeypatch.setattr(PrivacyAccountant, "spend", fail)
    assert call("cluster", *LEDGER_OF_ONE) == 2
    assert "The disk is broken." in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="no locks of files that end with a process")
def test_resume_option_refuses_a_run_that_lives(folder, capsys, monkeypatch):
    def meanwhile(*_, **__):
        monkeypatch.setattr("sklearn_dptda._cli._paid_run.write_all", write)
        assert call("cluster", *LEDGER_OF_ONE, "--resume") == 2
        assert "another run is making" in capsys.readouterr().err
        return write(*_, **__)

    write = sklearn_dptda._cli._paid_run.write_all
    monkeypatch.setattr("sklearn_dptda._cli._paid_run.write_all", meanwhile)
    assert call("cluster", *LEDGER_OF_ONE) == 0
    assert sorted(os.listdir("out")) == ["clusters.csv", "clusters.json"]


def test_paying_command_leaves_nothing_to_resume_if_unpaid(folder, capsys, monkeypatch):
    monkeypatch.setattr("sklearn_dptda._cli._row_commands.ClusterRelease.release", interrupted)
    assert call("cluster", *LEDGER_OF_ONE) == 130
    assert capsys.readouterr().err == "interrupted: nothing was spent\n"
    assert not list(Path("out").iterdir())


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
    assert "payment 1 by DPLloyd: bounds, the share of rows" in printed
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
