"""What the commands release: files, tables, and what is printed about them."""

import csv
import json
import math
import re
import warnings
from pathlib import Path

import gudhi
import numpy as np
import pytest

import sklearn_dptda
from sklearn_dptda.__main__ import main
from sklearn_dptda._cli._diagram_commands import _summary
from sklearn_dptda._cli._main import COMMANDS
from sklearn_dptda._cli._output import write_json
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyGuarantee
from tests.cli._paying import LEDGER_OF_ONE, PAYING, ROWS, UPPER, call, failed, quickly


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
        written = json.loads((folder / "out" / "diagram.json").read_text())
        flags = written["beyond_noise"][name]
        assert table[table[:, 0] == q][:, 4].tolist() == flags
        stated = written["probability"][name]
        assert table[table[:, 0] == q][:, 3].tolist() == stated


def test_write_json_makes_infinities_null(tmp_path):
    guarantee = PrivacyGuarantee(1.0, 0.0, "replace-one", "one row", "none", "x", seeded=False)
    content = {"x": np.array([[1.5, np.inf], [np.nan, 0]]), "y": (np.float64(-np.inf), 2)}
    write_json(tmp_path / "x.json", guarantee, **content)
    written = json.loads((tmp_path / "x.json").read_text())
    assert written["x"] == [[1.5, None], [None, 0.0]] and written["y"] == [None, 2]


@pytest.mark.parametrize(
    ("probability", "dimension", "expected"),
    [
        ([1.0], 0, "1 point, 1 with a probability of at least 0.95, including the component that"),
        ([1.0, 0.3, 0.97], 1, "3 points, 2 with a probability of at least 0.95"),
        ([], 1, "0 points, 0 with a probability of at least 0.95"),
        ([1.0, np.nan], 0, "2 points"),
    ],
)
def test_summary_of_diagrams_counts_probable_points(probability, dimension, expected):
    summary = _summary(np.array(probability), dimension=dimension)
    assert summary.startswith(expected)
    assert ("never dies" in summary) == (dimension == 0 and len(probability) == 1)


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
@pytest.mark.parametrize(
    ("header", "options", "expected"),
    [
        # A typed name says that the first line contains names, which are public.
        ("Ann,Bob,c,d", ["--columns", "3", "c"], "component,cluster,weight,mean_d,mean_c"),
        # Behind the prefix, a sign begins no formula.
        ("=1+1,b,c,d", ["--header"], "component,cluster,weight,mean_=1+1,mean_b,mean_c,mean_d"),
    ],
)
def test_cluster_command_writes_the_names_of_columns(header, options, expected, folder):
    np.savetxt("rows.csv", np.c_[ROWS, ROWS], delimiter=",", header=header, comments="")
    assert main(["cluster", "rows.csv", *PAYING["cluster"][0], *options, "-o", "out"]) == 0
    assert (folder / "out" / "clusters.csv").read_text().splitlines()[0] == expected


@pytest.mark.conformance
def test_cluster_command_says_noise_relative_to_the_bounds(folder, capsys, rng):
    np.save("rows.npy", rng.uniform(-1, 1, size=(400, 6)))
    assert call("cluster", "--epsilon", "20") == 0
    assert "times the width of the bounds" in capsys.readouterr().out


@pytest.mark.conformance
def test_cluster_command_releases_missing_bounds(folder, capsys):
    options = ["--kind", "mixture", "--seed", "0", "--epsilon", "5", "-o", "out"]
    assert main(["cluster", "rows.npy", *options]) == 0
    assert (
        "bounds, units and logarithms of columns, the number of rows, " in capsys.readouterr().out
    )
    low, high = json.loads((folder / "out" / "clusters.json").read_text())["bounds"]
    assert (np.array(low) < 0).all() and (np.array(high) > 0).all()


@pytest.mark.conformance
def test_synthesize_command_keeps_the_columns_of_the_table(folder, capsys, rng):
    jobs = rng.choice(["cook", "nurse"], 300)
    ages = rng.integers(18, 90, 300)
    lines = [f"{age},{job},{age / 7:.3f}" for age, job in zip(ages, jobs, strict=True)]
    (folder / "people.csv").write_text("age,job,x\n" + "\n".join(lines) + "\n")
    options = ["--categories", "job=cook,nurse,smith", "--column-bounds", "age", "0", "120"]
    options += ["--integers", "age", "--rows", "50", "--seed", "0", "-o", "out"]
    said = failed(main(["synthesize", "people.csv", "-o", "out"]), capsys)
    assert "Pass --header if it does, or --no-header" in said
    assert main(["synthesize", "people.csv", "--header", *options]) == 0
    header, *rows = (folder / "out" / "synthetic.csv").read_text().splitlines()
    assert header == "age,job,x" and len(rows) == 50
    for age, job, x in (row.split(",") for row in rows):
        assert 0 <= int(age) <= 120 and job in ("cook", "nurse", "smith")
        # With so few rows, noise hides the bounds of x, which is said.
        assert math.isfinite(float(x))


@pytest.mark.parametrize("text", ["=1+1", "@x", "-2+3", "+ x", "\t=1", "\r@x"])
def test_refuse_formulas_in_columns_and_categories_unpaid(text, folder, capsys):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pandas.DataFrame(ROWS, columns=[text, "b"]).to_parquet("t.parquet")
    for command in (
        ["synthesize", "t.parquet"],
        ["bounds", "t.parquet"],
        *([["synthesize", "rows.npy", "--categories", f"0={text}"]] * (text[0] != "@")),
    ):
        assert "as a formula" in failed(main([*command, *LEDGER_OF_ONE, "-o", "out"]), capsys)
    assert not (folder / "one.db").exists()


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


def test_graph_command_refuses_broken_graphs_in_one_line(folder, capsys):
    broken = {
        "cut.npz": b"PK\x03\x04 secret",
        "cut.mtx": b"%%MatrixMarket secret",
        "far.csv": b"0,1\n1,77\n",
        "half.csv": b"0,1\n1,2.5\n",
        "loop.csv": b"0,1\n2,2\n",
    }
    for name, content in broken.items():
        (folder / name).write_bytes(content)
        error = failed(main(["graph", name, "--nodes", "30", "-o", "out"]), capsys).splitlines()[-1]
        assert error.startswith("error: ")
        assert "secret" not in error and "77" not in error and "2.5" not in error
    error = failed(main(["graph", "loop.csv", "--nodes", "30", "-o", "out"]), capsys)
    assert "some edges join a node with itself. Leave them out, or" in error
    assert "let EdgeFlip drop them: --drop-self-loops" in error
    np.save("directed.npy", UPPER.astype(float))
    assert "Pass --directed" in failed(main(["graph", "directed.npy", "-o", "out"]), capsys)
    assert "--nodes must be given" in failed(main(["graph", "loop.csv", "-o", "out"]), capsys)


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


@pytest.mark.parametrize("bounds", [["--bounds", "8", "12"], []])
def test_cloud_command_writes_outlines_in_the_units_of_the_file(bounds, folder, capsys, rng):
    angle = rng.uniform(0, 2 * np.pi, 4000)
    np.save("rows.npy", 10 + np.c_[np.cos(angle), np.sin(angle)])
    path = ["rows.npy", "--scale", "2", "-o", "out", "--seed", "0", "--m", "0.1"]
    assert main(["cloud", *path, *bounds, "--resolution", "41", "--epsilon", "4"]) == 0
    assert "in 100% of resamples" in capsys.readouterr().out
    first, *_ = json.loads(Path("out/regions.geojson").read_text())["features"]
    (ring, *_) = map(np.array, first["geometry"]["coordinates"])
    assert np.linalg.norm(ring.mean(axis=0) - 10) < 0.5 and ring[0].tolist() == ring[-1].tolist()
    assert first["properties"]["share_of_resamples"] == 1
    cells = np.loadtxt("out/cloud.csv", delimiter=",", skiprows=1)
    assert cells[:, -1].sum() == pytest.approx(4000)
    middle = np.average(cells[:, :2], axis=0, weights=cells[:, 2])
    np.testing.assert_allclose(middle, 10, atol=0.2)


def test_cloud_command_finds_voids_in_space(folder, rng):
    points = rng.normal(size=(6000, 3))
    np.save("rows.npy", points / np.linalg.norm(points, axis=1)[:, None])
    options = ["--bounds", "-1.5", "1.5", "--epsilon", "5", "--m", "0.1", "--resolution", "21"]
    assert main(["cloud", "rows.npy", *options, "-o", "out", "--seed", "0"]) == 0
    first, *_ = json.loads(Path("out/regions.geojson").read_text())["features"]
    assert first["geometry"]["type"] == "Point"
    assert np.abs(first["geometry"]["coordinates"]).max() < 0.5


def test_cloud_command_refuses_other_numbers_of_columns(folder, capsys):
    np.save("rows.npy", np.zeros((9, 4)))
    said = failed(main(["cloud", "rows.npy", "--bounds", "0", "1", "-o", "out"]), capsys)
    assert "2 or 3 coordinates; got 4" in said


@pytest.mark.conformance
def test_betti_command_prints_and_writes_counts(folder, capsys, rng):
    angle = rng.uniform(0, 2 * np.pi, 2000)
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
    assert rows[:, :2].tolist() == [[0, 1], [1, 1]]
    stated = [content["probability"][name][1] for name in ("H0", "H1")]
    np.testing.assert_allclose(rows[:, 2], stated)
    assert min(stated) > 0.9 and printed.count("probability") >= 2
    assert call("betti", "--force", "--dimensions", "1", "--max-count", "0") == 2
    assert "--max-count must be" in capsys.readouterr().err
