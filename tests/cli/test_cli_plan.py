"""The command that plans: it reads nothing, and the printed command keeps its promise."""

import json
import os
import shlex

import numpy as np
import pytest

from sklearn_dptda.__main__ import main
from sklearn_dptda.model_selection import plan_release
from sklearn_dptda.persistence import PrivatePersistence
from tests._refusals import refuses

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
    assert main(["plan", *options]) == 2
    error = capsys.readouterr().err
    assert message in error and error.startswith("error: ") and error.count("\n") == 1


def test_plan_command_help_teaches(capsys):
    refuses(None, main, ["plan", "--help"], error=SystemExit)
    text = capsys.readouterr().out
    assert "choosing the numbers" in text and "nothing is paid" in text
