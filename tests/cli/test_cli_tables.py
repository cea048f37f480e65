"""Unusable tables are refused before payment, in one line that says what to do."""

import csv
import json
import os
import signal
import struct
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array, load_npz, save_npz

import sklearn_dptda
from sklearn_dptda.__main__ import main
from sklearn_dptda._cli import _diagram_commands
from sklearn_dptda._cli._graph_command import read_graph
from sklearn_dptda._cli._read_points import read_table
from tests._fragile import wait_until
from tests._refusals import failing, refuses
from tests.cli._paying import read_points


@pytest.fixture
def refused(folder, capsys):
    """What a command says of its table, in one line, after which nothing is paid or made."""

    def call(*command):
        assert main([*command, "--ledger", "l.db", "--budget", "99", "1e-2", "-o", "out"]) == 2
        error = capsys.readouterr().err.splitlines()[-1]
        assert error.startswith("error: ") and not os.path.exists("l.db")
        assert not os.path.exists("out")
        return error

    return call


def write_npy_header(path, shape):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (63 - (len(header) + 10) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + b"1234")


@pytest.mark.parametrize("shape", [(10**30, 2), (2**62, 2), (2**32, 2**32)])
@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_read_points_refuses_shapes_that_no_array_has(shape, suffix, folder, refused):
    write_npy_header(folder / "huge.npy", shape)
    with zipfile.ZipFile("huge.npz", "w") as archive:
        archive.write("huge.npy", "a.npy")
    for command in ("bounds", "graph"):
        error = refused(command, f"huge.{suffix}")
        assert f"huge.{suffix} is not a NumPy " in error


def test_read_points_refuses_an_array_named_as_an_archive(folder, refused, rng):
    np.save("rows.npy", rng.uniform(size=(5, 2)))
    os.rename("rows.npy", "rows.npz")
    assert "rows.npz is not a NumPy archive" in refused("bounds", "rows.npz")


def write_archive(name, members, declared):
    """Archive of a mebibyte of zeros for each member, which says that they become so much."""
    with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as archive:
        for member in members:
            archive.writestr(member, bytes(1 << 20))
        archive.getinfo(members[-1]).file_size += declared - (len(members) << 20)


class Inflated(BaseException):
    """Stands for the first byte that is read."""


@pytest.fixture
def bombs(folder, monkeypatch):
    """Archives that would become more than a gibibyte, of which nobody may read a byte."""
    write_archive("dense.npz", ["a.npy"], (1 << 30) + 1)
    write_archive("sparse.npz", ["format.npy", "a.npy"], (1 << 30) + 1)
    monkeypatch.setattr(zipfile.ZipExtFile, "read", failing(Inflated))


def test_read_points_refuses_archives_that_would_inflate(bombs, refused):
    for command in (("bounds", "dense.npz"), ("graph", "dense.npz"), ("graph", "sparse.npz")):
        error = refused(*command)
        assert "GiB, more than 100 times its size, and is not read" in error and ".npy" in error
    # A gibibyte would be read, at least as far as this test allows it.
    write_archive("largest.npz", ["a.npy"], 1 << 30)
    refuses(None, read_points, "largest.npz", error=Inflated)


def test_read_points_takes_archives_that_are_compressed_well(folder):
    np.savez_compressed("zeros.npz", np.zeros((1000, 1000)))
    assert os.path.getsize("zeros.npz") < 1e-2 * 8e6
    assert read_points("zeros.npz").shape == (1000, 1000)
    save_npz("graph.npz", csr_array(np.eye(4)[::-1]))
    assert read_graph("graph.npz").shape == (4, 4)


@pytest.mark.conformance
def test_read_points_refuses_parquet_files_that_would_inflate(folder, refused, monkeypatch):
    pandas = pytest.importorskip("pandas")
    arrow, parquet = map(pytest.importorskip, ("pyarrow", "pyarrow.parquet"))
    table = arrow.table({"x": np.zeros(1 << 20)})
    with parquet.ParquetWriter("x.parquet", table.schema) as writer:
        for _ in range(129):
            writer.write_table(table)
    assert os.path.getsize("x.parquet") < 1 << 20
    # A text that all rows share is once in the file, and once in memory.
    text = "long " * 100_000
    pandas.DataFrame({"t": [text] * 5000, "x": np.zeros(5000)}).to_parquet("t.parquet")
    table = read_table("t.parquet")
    assert table.columns[0][0] == text and len({id(cell) for cell in table.columns[0]}) == 1
    monkeypatch.setattr(parquet, "read_table", lambda *_, **__: pytest.fail("read"))
    assert "x.parquet would expand to 1.01 GiB" in refused("bounds", "x.parquet")


def test_read_points_refuses_more_than_a_thousand_columns(folder, refused):
    np.save("wide.npy", np.zeros((2, 1001)))
    for command in ("cluster", "synthesize", "bounds"):
        error = refused(command, "wide.npy")
        assert "wide.npy has 1,001 columns, and at most 1,000" in error
        assert "choose --columns" in error
    assert read_points("wide.npy", columns=["0", "1000"]).shape == (2, 2)
    # A matrix of a graph has as many columns as nodes.
    np.save("graph.npy", np.zeros((1001,) * 2))
    assert read_graph("graph.npy").shape == (1001,) * 2


@pytest.mark.engines
@pytest.mark.skipif(os.name == "nt", reason="needs signals of POSIX")
def test_cluster_command_of_a_thousand_columns_ends_at_ctrl_c(folder, rng):
    np.save("wide.npy", rng.normal(size=(200, 1000)))
    root = os.path.dirname(os.path.dirname(sklearn_dptda.__file__))
    # Draws begin after the payment, and there are a million of them. Tests that run in the
    # background of a shell inherit that Ctrl-C is ignored.
    code = (
        "import signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from sklearn_dptda._cli import main\n"
        "from sklearn_dptda.privacy import NoiseSource\n"
        "draw = NoiseSource.discrete_gaussian\n"
        "def told(*arguments):\n"
        "    print('draws', file=sys.stderr, flush=True)\n"
        "    return draw(*arguments)\n"
        "NoiseSource.discrete_gaussian = told\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", code, "cluster", "wide.npy", "--bounds", "-5", "5"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1"},
    )
    try:
        while (line := run.stderr.readline()) != "draws\n":
            assert line, "the run ended before it drew"
        run.send_signal(signal.SIGINT)
        _, error = run.communicate(timeout=300)
    finally:
        run.kill()
    assert run.returncode == 130
    assert error.splitlines()[-1] == (
        "interrupted: epsilon=1, delta=1e-06 was spent. Run the same command with --resume to "
        "continue; it pays nothing more"
    )


def wide(n, d=250):
    np.save("wide.npy", np.random.default_rng(n).normal(size=(n, d)))
    return ("cluster", "wide.npy")


@pytest.mark.conformance
def test_cluster_command_refuses_private_bounds_of_many_columns(folder, refused):
    error = refused(*wide(300))
    assert "private bounds of 250 columns at --epsilon 1 need about 11,134 rows" in error
    assert all(word in error for word in ("--bounds", "--columns", "--adjacency replace-one"))
    # The number of rows is private, so it has no influence.
    assert refused(*wide(20_000)) == error
    # Here, the number of rows is public.
    error = refused(*wide(300), "--adjacency", "replace-one")
    assert "need about 15,745 rows" in error and "pass --adjacency" not in error


@pytest.mark.conformance
@pytest.mark.parametrize(
    ("n", "d", "options"),
    [
        (300, 250, ["--bounds", "-5", "5"]),
        (300, 250, ["--columns", "0", "7"]),
        (300, 100, ["--epsilon", "9"]),
        (16_000, 250, ["--adjacency", "replace-one"]),
    ],
)
@pytest.mark.filterwarnings("ignore:.*lie outside the bounds")
def test_cluster_command_accepts_what_its_refusal_recommends(n, d, options, folder):
    command = [*wide(n, d), "--kind", "kmeans", "--n-clusters", "2", "--seed", "0", *options]
    assert main(command) == 0


PATIENTS = (
    "id,age,mass,note\n"
    + "\n".join(f"P{j},{30 + j},{'' if j % 4 else 70},{'ok' if j % 5 else 1}" for j in range(40))
    + "\n"
)


def test_read_points_names_and_counts_unusable_columns(folder, refused):
    (folder / "patients.csv").write_text(PATIENTS)
    error = refused("bounds", "patients.csv", "--header")
    assert (
        "column 0 ('id'): 40 of 40 rows do not contain a real number; "
        "column 2 ('mass'): 30 of 40 rows have a gap; "
        "column 3 ('note'): 32 of 40 rows do not contain a real number. "
    ) in error
    assert "choose the other column by --columns" in error and "public constant" in error
    assert "P1" not in error and "ok" not in error.replace("patients", "")
    # The first line may be a record, but a name that the user typed is public.
    error = refused("bounds", "patients.csv", "--columns", "1", "2")
    assert "may contain the names" in error and "mass" not in error
    error = refused("bounds", "patients.csv", "--columns", "age", "mass")
    assert "column 2 ('mass'): 30 of 40 rows have a gap" in error and "--header" not in error
    # A column that only has gaps need not be left out.
    assert "use --fill" in error and "--drop-incomplete" in error and "choose" not in error
    assert "not numeric" not in error and "decimal points" not in error
    error = refused("bounds", "patients.csv", "--header", "--columns", "0")
    assert "To continue, fix the file" in error and "other 0" not in error
    error = refused("synthesize", "patients.csv", "--header", "--categories", "id=P1,P2")
    assert "column 2 ('mass')" in error and "('id')" not in error
    error = refused(
        *("synthesize", "patients.csv", "--header", "--columns", "age", "note"),
        *("--categories", "note=ok,good"),
    )
    assert "column 3 ('note'): 8 of 40 rows contain a value that is not in its list" in error


def test_read_points_names_few_of_many_unusable_columns(folder, refused):
    (folder / "t.csv").write_text(",".join("abcdefgh") + "\n" + ",".join("x" * 8) + "\n")
    error = refused("bounds", "t.csv", "--header")
    assert "column 4 ('e'): 1 of 1 rows" in error and "; 3 more columns. " in error
    assert "gaps" not in error and "--fill" not in error
    error = refused("bounds", "t.csv", "--header", "--columns", *"abcdef")
    assert "; 1 more column. " in error


def test_read_points_counts_rows_of_different_lengths(folder, refused):
    (folder / "t.csv").write_text("a,b\n1,2\n3,4,5\n6\n7,8\n")
    error = refused("bounds", "t.csv", "--header")
    assert "2 of 4 do not have the 2 cells of the others" in error


EDGES = [("ann", "bob"), ("bob", "cy"), ("cy", "ann"), ("ann", "bob")]


def test_graph_command_takes_edges_between_ids(folder, refused, capsys):
    (folder / "edges.csv").write_text("from,to\n" + "".join(f"{a},{b}\n" for a, b in EDGES))
    # Dan has no edge. The list is public and is not made from the edges.
    (folder / "ids.txt").write_text("dan\nann\n\ncy\nbob\n")
    options = ["--nodes", "ids.txt", "--header"]
    ids = ["dan", "ann", "cy", "bob"]
    error = refused("graph", "edges.csv", "--nodes", "ids.txt")
    assert "--nodes is a list of strings in which some ends of edges are missing" in error
    assert "If the first line names the columns, pass --header." in error
    assert "from," not in error
    (folder / "few.txt").write_text("ann\nbob\n")
    error = refused("graph", "edges.csv", "--nodes", "few.txt", "--header")
    assert "Add them to this public list, or leave out these edges." in error
    assert "pass --header" not in error and "cy" not in error
    error = refused("graph", "edges.csv", "--nodes", "4", "--header")
    assert "--nodes is 4, but some ends of edges are not whole numbers from 0 to 3" in error
    assert "public list of the names of all nodes" in error
    (folder / "twice.txt").write_text("ann\nbob\nann\n")
    error = refused("graph", "edges.csv", "--nodes", "twice.txt", "--header")
    assert "list of different ids" in error and "ann" not in error
    assert "there is no file no.txt" in refused("graph", "edges.csv", "--nodes", "no.txt")
    (folder / "latin.txt").write_bytes("Bébé\n".encode("latin-1"))
    assert "UTF-8" in refused("graph", "edges.csv", "--nodes", "latin.txt")
    assert main(["graph", "edges.csv", *options, "--epsilon", "20", "-o", "out"]) == 0
    content = json.loads((folder / "out" / "graph.json").read_text())
    assert content["nodes"] == ids and content["n_nodes"] == 4
    # Each of 6 pairs is flipped with probability 2e-9.
    expected = np.zeros((4, 4))
    expected[1:, 1:] = 1 - np.eye(3)
    np.testing.assert_array_equal(load_npz("out/graph.npz").toarray(), expected)
    assert np.load("out/graph.npz")["nodes"].tolist() == ids


@pytest.mark.conformance
def test_plan_command_prints_its_progress(capsys, monkeypatch):
    monkeypatch.setattr("sklearn_dptda._cli._output._FIRST_LINE_SECONDS", 0.0)
    monkeypatch.setattr("sklearn_dptda._cli._output._NEXT_LINE_SECONDS", 0.05)
    search, said = _diagram_commands.plan_release, []

    def told(*arguments, **options):
        # The search ends when two lines are there, however fast the machine is.
        wait_until(lambda: "".join(said).count("\n") > 1 or read(), "two lines are there")
        return search(*arguments, **options)

    def read():
        said.append(capsys.readouterr().err)

    monkeypatch.setattr(_diagram_commands, "plan_release", told)
    options = ("--n", "2000", "--bounds", "-1.5", "1.5", "--m", "0.25", "--loop-radius", "1")
    options += ("--dimensions", "1", "--max-distance", "1")
    assert main(["plan", *options]) == 0
    read()
    lines = "".join(said).splitlines()
    assert lines[0] == "searching for the smallest epsilon ..." and len(lines) > 1
    assert lines[-1].endswith(" s")


# Missing cells, and coordinates in different units.


BOX = ("--bounds", "-2", "2", "--epsilon", "50", "--resolution", "21", "-o", "out")


@pytest.fixture
def rings(folder, rng):
    angles = rng.uniform(0, 2 * np.pi, 600)
    ring = np.c_[np.cos(angles), np.sin(angles)]
    cells = ring.astype(object)
    cells[::30, 0] = ["", "n/a", "NaN", "-", "null"] * 4
    with open("ring.csv", "w", newline="") as file:
        csv.writer(file).writerows([["x", "y"], *cells.tolist()])
    np.save("ring.npy", np.where(np.arange(1200).reshape(600, 2) % 60 == 0, np.nan, ring))
    return ring


@pytest.mark.parametrize("file", ["ring.csv", "ring.npy"])
def test_read_points_drops_or_fills_rows(file, rings):
    kept = np.arange(600) % 30 != 0
    how = {"header": True} if file == "ring.csv" else {}
    np.testing.assert_array_equal(read_points(file, drop_incomplete=True, **how), rings[kept])
    filled = read_points(file, fill=["0=7"], **how)
    np.testing.assert_array_equal(filled[kept], rings[kept])
    np.testing.assert_array_equal(filled[~kept], np.c_[np.full(20, 7.0), rings[~kept, 1]])
    np.testing.assert_array_equal(read_points(file, fill=["7"], **how), filled)
    # One constant for all, and another one for a column; nothing is left to drop.
    np.testing.assert_array_equal(
        read_points(file, fill=["9", "0=7"], drop_incomplete=True, **how), filled
    )


def test_read_points_fills_constants_longer_than_texts(rings):
    np.savez("texts.npz", np.array([["1", "2"], ["na", "4"]]))
    assert read_points("texts.npz", fill=["-12.75"]).tolist() == [[1.0, 2.0], [-12.75, 4.0]]


def test_read_points_fills_a_name_with_an_equals_sign(rings):
    with open("names.csv", "w") as file:
        file.write("a=b,c\n1,2\n,4\n")
    points = read_points("names.csv", fill=["a=b=5"], header=True)
    assert points.tolist() == [[1.0, 2.0], [5.0, 4.0]]


@pytest.mark.conformance
def test_diagram_command_drops_incomplete_rows(rings, capsys):
    assert main(["diagram", "ring.csv", "--header", *BOX, "--drop-incomplete", "--seed", "0"]) == 0
    written = json.loads(Path("out/diagram.json").read_text())
    assert written["parameters"]["n_points"] == 580
    assert len(written["diagrams"]["H1"]) >= 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("ring.csv --header --fill z=1", "there is no column 'z' among the 2 columns"),
        ("ring.csv --header --fill 1 2", "one VALUE for all columns"),
        ("ring.csv --header --fill x=word", "is not numeric everywhere"),
        ("ring.csv --header", "use --fill with public constants"),
        ("ring.csv --header --scale 0", "--scale takes positive, finite numbers"),
        ("ring.csv --header --scale 1 2 3 --fill 0", "--scale takes 1 number, or one for"),
        ("empty.npy --drop-incomplete", "no row is complete"),
        ("empty.npy --fill word", "the file holds numbers"),
    ],
)
def test_diagram_command_refuses_bad_fill_and_scale_unpaid(words, message, rings, refused):
    np.save("empty.npy", np.full((5, 2), np.nan))
    assert message in refused("diagram", *words.split(), *BOX[:-2])


@pytest.mark.conformance
def test_scale_option_shows_a_ring_in_two_units(rings, capsys):
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
