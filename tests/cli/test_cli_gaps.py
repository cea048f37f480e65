"""Missing cells and coordinates in different units, from the command line."""

import csv
import json
import os
import warnings
from pathlib import Path

import numpy as np
import pytest

from sklearn_dptda.__main__ import main
from tests.cli._paying import read_points

BOX = ("--bounds", "-2", "2", "--epsilon", "50", "--resolution", "21", "-o", "out")


@pytest.fixture
def folder(tmp_path, monkeypatch, rng):
    monkeypatch.chdir(tmp_path)
    angles = rng.uniform(0, 2 * np.pi, 600)
    ring = np.c_[np.cos(angles), np.sin(angles)]
    cells = ring.astype(object)
    cells[::30, 0] = ["", "n/a", "NaN", "-", "null"] * 4
    with open("ring.csv", "w", newline="") as file:
        csv.writer(file).writerows([["x", "y"], *cells.tolist()])
    np.save("ring.npy", np.where(np.arange(1200).reshape(600, 2) % 60 == 0, np.nan, ring))
    return ring


@pytest.mark.parametrize("file", ["ring.csv", "ring.npy"])
def test_read_points_drops_or_fills_rows(file, folder):
    kept = np.arange(600) % 30 != 0
    how = {"header": True} if file == "ring.csv" else {}
    np.testing.assert_array_equal(read_points(file, drop_incomplete=True, **how), folder[kept])
    filled = read_points(file, fill=["0=7"], **how)
    np.testing.assert_array_equal(filled[kept], folder[kept])
    np.testing.assert_array_equal(filled[~kept], np.c_[np.full(20, 7.0), folder[~kept, 1]])
    np.testing.assert_array_equal(read_points(file, fill=["7"], **how), filled)
    # One constant for all, and another one for a column; nothing is left to drop.
    np.testing.assert_array_equal(
        read_points(file, fill=["9", "0=7"], drop_incomplete=True, **how), filled
    )


def test_read_points_fills_constants_longer_than_texts(folder):
    np.savez("texts.npz", np.array([["1", "2"], ["na", "4"]]))
    assert read_points("texts.npz", fill=["-12.75"]).tolist() == [[1.0, 2.0], [-12.75, 4.0]]


def test_read_points_fills_a_name_with_an_equals_sign(folder):
    with open("names.csv", "w") as file:
        file.write("a=b,c\n1,2\n,4\n")
    points = read_points("names.csv", fill=["a=b=5"], header=True)
    assert points.tolist() == [[1.0, 2.0], [5.0, 4.0]]


@pytest.mark.conformance
def test_diagram_command_drops_incomplete_rows(folder, capsys):
    assert main(["diagram", "ring.csv", "--header", *BOX, "--drop-incomplete", "--seed", "0"]) == 0
    written = json.loads(Path("out/diagram.json").read_text())
    assert written["parameters"]["n_points"] == 580
    assert len(written["diagrams"]["H1"]) >= 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--fill", "z=1"], "there is no column 'z' among the 2 columns"),
        (["--fill", "1", "2"], "one VALUE for all columns"),
        (["--fill", "x=word"], "is not numeric everywhere"),
        ([], "use --fill with public constants"),
        (["--scale", "0"], "--scale takes positive, finite numbers"),
        (["--scale", "1", "2", "3", "--drop-incomplete"], "--scale takes 1 number, or one for"),
    ],
)
def test_diagram_command_refuses_bad_fill_and_scale_unpaid(options, message, folder, capsys):
    paying = ["--ledger", "l.db", "--budget", "99"]
    assert main(["diagram", "ring.csv", "--header", *BOX, *paying, *options]) == 2
    assert message in capsys.readouterr().err
    assert not os.path.exists("l.db")


def test_diagram_command_refuses_a_file_without_complete_rows(folder, capsys):
    np.save("empty.npy", np.full((5, 2), np.nan))
    assert main(["diagram", "empty.npy", *BOX, "--drop-incomplete"]) == 2
    assert "no row is complete" in capsys.readouterr().err
    assert main(["diagram", "empty.npy", *BOX, "--fill", "word"]) == 2
    assert "the file holds numbers" in capsys.readouterr().err


@pytest.mark.conformance
def test_scale_option_shows_a_ring_in_two_units(folder, capsys):
    angles = np.random.default_rng(0).uniform(0, 2 * np.pi, 4000)
    ring = np.c_[12 * np.cos(angles) + 40, 0.8 * np.sin(angles) + 2.1]
    np.save("units.npy", ring)
    box = ["--bounds", "20", "60", "0", "4", "--epsilon", "5", "--resolution", "31", "--seed", "0"]
    assert main(["diagram", "units.npy", *box, "--scale", "20", "2", "-o", "scaled"]) == 0
    written = json.loads(Path("scaled/diagram.json").read_text())
    assert written["parameters"]["bounds"] == [[1.0, 0.0], [3.0, 2.0]]
    assert written["parameters"]["scale"] == [20.0, 2.0]
    births, deaths = np.transpose(written["diagrams"]["H1"])
    assert (deaths - births).max() > 0.2
    # Without a scale the ring is a segment: no loop of its size is there.
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(["diagram", "units.npy", *box, "-o", "plain"]) == 0
    assert "sides of very different lengths, 40 and 4" in capsys.readouterr().err
    assert main(["diagram", "units.npy", *box, "--dry-run"]) == 0
    assert "sides of very different lengths, 40 and 4" in capsys.readouterr().out
    plain = json.loads(Path("plain/diagram.json").read_text())
    assert sum(plain["beyond_noise"]["H1"]) == 0 < sum(written["beyond_noise"]["H1"])
