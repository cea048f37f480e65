"""Runs that stop in the middle: what they say, and how they go on without a second payment."""

import io
import json
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import sklearn_dptda
from sklearn_dptda.__main__ import main
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyLedgerError
from sklearn_dptda.privacy._ledger import Ledger
from tests._refusals import failing
from tests.cli._paying import (
    ADJACENCY,
    LEDGER_OF_ONE,
    PAYING,
    ROWS,
    call,
    failed,
    interrupt,
    interrupted,
)

WRITING = "_cli._run_folder.RunFolder.write_all"
SPENT = "epsilon=1, delta=1e-06 was spent. Run the same command with --resume to continue; it pays"


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("_paid_run.read_table", "nothing was spent"),
        ("_row_commands.Cluster.release", "nothing was spent"),
        ("_row_commands.Cluster.content", f"{SPENT} nothing more"),
    ],
)
def test_paying_command_interrupted_says_what_was_spent(where, said, folder, capsys, monkeypatch):
    interrupt(monkeypatch, f"_cli.{where}", "cluster", *LEDGER_OF_ONE)
    assert capsys.readouterr().err == f"interrupted: {said}\n"
    # If nothing was paid, nothing is there to resume.
    assert any((folder / "out").glob("*")) == (said[0] == "e")


def test_paying_command_interrupted_in_the_payment_says_so(folder, capsys, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    spend = Ledger.spend
    # Before the transaction, after it, and after it if the ledger cannot be asked.
    for before, ask, said in (
        (interrupt, Ledger.is_paid, "nothing was spent"),
        (spend, Ledger.is_paid, "epsilon=1, delta=1e-06 was spent. Run the same command"),
        (
            spend,
            failing(PrivacyLedgerError("The server is away.")),
            "epsilon=1, delta=1e-06 may have been spent. Run the same command",
        ),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "spend", lambda *a, before=before: interrupt(before(*a)))
            patch.setattr(Ledger, "is_paid", ask)
            assert call("cluster") == 130
        assert said in capsys.readouterr().err
        shutil.rmtree("out")


def test_paying_command_that_fails_after_the_payment_says_so(folder, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(
            "sklearn_dptda._cli._paid_run.write_json",
            failing(OSError(28, "No space left on device", "out/x")),
        )
        assert call("cluster") == 2
    printed = capsys.readouterr()
    # The name of the run still exists, so nothing is published yet.
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
        (True, 1),
        *(pytest.param(*case, marks=pytest.mark.conformance) for case in ((False, 2), (True, 2))),
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

    monkeypatch.setattr("sklearn_dptda._cli._row_commands.Cluster.describe", describe)
    assert call("cluster") == 130
    expected = "interrupted: epsilon=1, delta=1e-06 was spent, and the release is complete\n"
    assert capsys.readouterr().err == expected


def test_paying_command_lets_a_folder_without_key_be_deleted(folder, capsys):
    (folder / "out" / ".clusters.json.part").mkdir(parents=True)
    assert call("cluster") == 2
    assert "delete the folder. It contains no release that was paid" in capsys.readouterr().err


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
    where = {"draw": "privacy.NoiseSource.__init__", "write": WRITING}[moment]
    interrupt(monkeypatch, where, name, *LEDGER_OF_ONE)
    assert "with --resume to continue" in capsys.readouterr().err
    budget = PrivacyAccountant.open("one.db")
    (release,) = budget.releases()
    # The budget is used up, so a new run is refused.
    assert (release.size is None) == (moment == "draw") and budget.remaining().epsilon == 0
    assert call(name, *LEDGER_OF_ONE) == 2
    # With other records, the same name pays nothing.
    kept = {file: Path(file).read_bytes() for file in ("rows.npy", "graph.npy")}
    np.save("rows.npy", ROWS[::-1] / 2)
    np.save("graph.npy", ADJACENCY[::-1, ::-1])
    error = failed(call(name, *LEDGER_OF_ONE, "--resume"), capsys).splitlines()[-1]
    assert error.startswith("error: the interrupted run in out is not continued. It had other ")
    assert "Nothing was charged. Repeat the original command with --resume" in error
    # What was stored already can be had from the ledger.
    stored = "'sklearn-dptda ledger one.db --release 1' writes it" in error
    assert stored == (moment == "write")
    for file, content in kept.items():
        Path(file).write_bytes(content)
    # The run is interrupted again before it has found the payment, and run with another ledger.
    interrupt(monkeypatch, "privacy._accountant.digest_of", name, *LEDGER_OF_ONE, "--resume")
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


def test_resume_option_refuses_other_arguments(folder, capsys, monkeypatch):
    interrupt(monkeypatch, WRITING, "cluster", *LEDGER_OF_ONE)
    capsys.readouterr()
    for other in (["--n-clusters", "3"], ["--epsilon", "0.5"], ["--kind", "tree"]):
        error = failed(call("cluster", *LEDGER_OF_ONE, *other, "--resume"), capsys)
        assert "It had other options or another file" in error and "Nothing was charged" in error
        assert "may have been spent" not in error and "another name" not in error
    # The ledger has nothing left, but the advice is to continue the run.
    error = failed(call("cluster", *LEDGER_OF_ONE, "--force"), capsys)
    assert "continue it with --resume" in error and "asked for" not in error
    assert "forfeits the release if it was paid for" in error
    assert call("cluster", *LEDGER_OF_ONE, "--resume") == 0
    assert len(PrivacyAccountant.open("one.db")) == 1


def test_paying_command_reports_a_ledger_that_fails(folder, capsys, monkeypatch):
    monkeypatch.setattr(
        PrivacyAccountant, "spend", failing(PrivacyLedgerError("The disk is broken."))
    )
    assert "The disk is broken." in failed(call("cluster", *LEDGER_OF_ONE), capsys)


@pytest.mark.skipif(os.name != "posix", reason="no locks of files that end with a process")
def test_resume_option_refuses_a_run_that_lives(folder, capsys, monkeypatch):
    def meanwhile(*_, **__):
        monkeypatch.setattr(f"sklearn_dptda.{WRITING}", write)
        assert call("cluster", *LEDGER_OF_ONE, "--resume") == 2
        assert "another run is making" in capsys.readouterr().err
        return write(*_, **__)

    write = sklearn_dptda._cli._run_folder.RunFolder.write_all
    monkeypatch.setattr(f"sklearn_dptda.{WRITING}", meanwhile)
    assert call("cluster", *LEDGER_OF_ONE) == 0
    assert sorted(os.listdir("out")) == ["clusters.csv", "clusters.json"]


def states(folder):
    """Return the folders of ledgers in the state folder of the user."""
    return list((folder / "state").glob("sklearn_dptda/ledgers/*"))


@pytest.mark.parametrize("paid", [False, True])
def test_paying_command_without_a_ledger_leaves_no_secret(paid, folder, capsys, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    moment = "_row_commands.Cluster.content" if paid else "_row_commands.Cluster.release"
    for failure in (interrupted, lambda *_: 1 / 0):
        with monkeypatch.context() as patch, suppress(ZeroDivisionError):
            patch.setattr(f"sklearn_dptda._cli.{moment}", failure)
            assert call("cluster") == 130
        assert ("delta=1e-06 was spent" in capsys.readouterr().err) == paid
        if not paid:
            assert states(folder) == [] and os.listdir("out") == []
            continue
        # The secret lives as long as the folder of the run, whose other files are deleted.
        assert [path.name for path in states(folder)[0].glob("secret")] == ["secret"]
        (hidden,) = Path("out").iterdir()
        assert sorted(os.listdir(hidden)) == ["ledger.db", "name"]
        assert call("cluster", "--resume") == 0
        assert states(folder) == [] and len(os.listdir("out")) == 2
        shutil.rmtree("out")


@pytest.mark.parametrize("ledger", [LEDGER_OF_ONE, ()])
def test_resume_option_of_another_user_says_what_can_be_done(ledger, folder, capsys, monkeypatch):
    interrupt(monkeypatch, WRITING, "cluster", *ledger)
    # Another user has another state folder, and so another secret.
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    capsys.readouterr()
    error = failed(call("cluster", *ledger, "--resume"), capsys)
    for cause in ("other options", "another file", "another version of", "another user, with an"):
        assert cause in error
    assert "as the same user and with the same version" in error and "Nothing was" in error
    # What is recommended works.
    command = "sklearn-dptda ledger one.db --release 1"
    assert (f"'{command}' writes it" in error) == bool(ledger)
    if ledger:
        assert main(command.split()[1:]) == 0 and Path("release.zip").exists()
    assert "choose another folder with -o" in error
    command = ["cluster", "rows.npy", *PAYING["cluster"][0], "-o", "other"]
    assert main([*command, "--ledger", "two.db", "--budget", "1", "1e-3"]) == 0


def test_resume_option_says_that_nothing_was_paid(folder, capsys):
    # A run was killed after it had chosen its name and before it paid.
    hidden = folder / "out" / ".clusters.json.part"
    hidden.mkdir(parents=True)
    (hidden / "name").write_text("a name")
    PrivacyAccountant(1.0, 1e-3, path="one.db")
    for ledger in (LEDGER_OF_ONE, ()):
        error = failed(call("cluster", *ledger, "--resume"), capsys)
        assert "has paid nothing into this ledger" in error and "Nothing was charged" in error
        assert f"delete {Path('out', hidden.name)}" in error
    assert len(PrivacyAccountant.open("one.db")) == 0 and os.listdir(hidden) == ["name"]
    shutil.rmtree(hidden)
    assert call("cluster", *LEDGER_OF_ONE) == 0
