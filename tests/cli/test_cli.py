"""What is read from a file and refused in it, and the demonstration."""

import re
from functools import partial

import numpy as np
import pytest

from sklearn_dptda import DTMFiltration
from sklearn_dptda.__main__ import main
from tests._refusals import failing, refuses
from tests.cli._paying import failed, read_points

POINTS = np.random.default_rng(0).uniform(-1, 1, size=(300, 2))


@pytest.mark.conformance
def test_demo_command_writes_a_picture(tmp_path, capsys, monkeypatch):
    # On the grid of the command, this takes ten seconds.
    coarse = partial(DTMFiltration, resolution=15)
    monkeypatch.setattr("sklearn_dptda._cli._demo_command.DTMFiltration", coarse)
    assert main(["demo", "-o", str(tmp_path), "--releases", "2", "--seed", "0"]) == 0
    (few,) = re.findall(r"^circles, few points .*", capsys.readouterr().out, flags=re.MULTILINE)
    # The noise hides the loops.
    assert few.endswith("none")
    assert (tmp_path / "demo.png").stat().st_size > 20_000


def test_read_points_takes_tables_of_pandas(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(POINTS, columns=["lon", "lat"])
    path = tmp_path / "table.csv"
    frame.to_csv(path)
    refuses("number the rows: choose --columns among the other 2", read_points, path, header=True)
    np.testing.assert_allclose(read_points(path, columns=["lon", "lat"]), POINTS)
    frame.to_csv(path, index=False)
    np.testing.assert_allclose(read_points(path, header=True), POINTS)
    frame.assign(name="a").to_csv(path, index=False)
    refuses(r"not numeric everywhere.*choose --columns", read_points, path, header=True)


@pytest.mark.parametrize(
    ("first", "columns"),
    [
        ("Alice Smith,NA,NA", None),
        (",Alice Smith,positive", ["z"]),
        ("Alice Smith,F,x", ["0"]),
        ("Alice Smith,F,x", ["z"]),
    ],
)
def test_read_points_quotes_no_first_row(tmp_path, first, columns):
    path = tmp_path / "people.csv"
    path.write_text(f"{first}\nbob,1,2\n")
    said = refuses(None, read_points, path, columns=columns)
    assert not any(cell in said for cell in ("Alice", "positive", "bob"))


@pytest.mark.conformance
def test_diagram_command_refuses_broken_files_in_one_line(tmp_path, capsys):
    broken = {
        "quote.csv": b'1,2\n"3,4\n' + b"5" * 200_000,
        "cut.npz": b"PK\x03\x04 cut off",
        "empty.npy": b"",
        "empty.npz": b"",
        "garbage.npy": b"no numbers",
        "garbage.parquet": b"no table",
        "nan.csv": b"1,2\nNaN,3\n",
        "inf.txt": b"1 2\n3 inf\n",
    }
    for name, content in broken.items():
        (tmp_path / name).write_bytes(content)
    np.save(tmp_path / "complex.npy", POINTS + 1j)
    np.save(tmp_path / "dates.npy", np.array([["2020-01-01"] * 2], dtype="M8[D]"))
    np.savez(tmp_path / "objects.npz", np.array([[None, "secret"]], dtype=object))
    (tmp_path / "folder").mkdir()
    for name in (*broken, "complex.npy", "dates.npy", "objects.npz", "folder"):
        said = failed(main(["diagram", str(tmp_path / name), "--bounds", "0", "1"]), capsys)
        # What was read is said before.
        *_, error = said.splitlines()
        assert error.startswith(f"error: {tmp_path / name}")
        assert "secret" not in error and "X[0]" not in error


def test_read_points_names_no_array_of_an_archive(tmp_path, capsys):
    path = tmp_path / "people.npz"
    np.savez(path, Alice=POINTS, Bob=POINTS[:50])
    for key in (None, "Carol", "2", "-1"):
        said = refuses("one of the 2 arrays", read_points, path, key=key)
        assert "Alice" not in said
    assert len(read_points(path, key="Bob")) == len(read_points(path, key="1")) == 50


def test_read_points_asks_whether_a_first_line_contains_names(tmp_path, capsys):
    path = tmp_path / "p.csv"
    for gaps in ("NA,NA", "?,-", "null,n/a", "nan,missing"):
        path.write_text(f"{gaps}\n1.5,2\n3,4\n")
        refuses("has gaps", read_points, path)
    path.write_text("Alice,Bob\n1.5,2\n3,4\n")
    with pytest.raises(ValueError, match="--no-header if it is a record") as caught:
        read_points(path)
    assert "Alice" not in str(caught.value)
    refuses("not numeric", read_points, path, header=False)
    path.write_text("5,6.5\n1,2\n")
    assert len(read_points(path)) == 2 and len(read_points(path, header=True)) == 1
    notes = capsys.readouterr().err.splitlines()
    assert [note.split(": ")[-1] for note in notes[-2:]] == [
        "2 line(s), 2 record(s).",
        "2 line(s), 1 record(s), 1 of names.",
    ]


def test_output_folder_refuses_what_cannot_be_written(tmp_path, capsys, monkeypatch):
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "out"):
        assert main(["demo", "-o", str(out)]) == 2
        assert capsys.readouterr().err.startswith("error: --out: cannot create the folder")
    monkeypatch.setattr("os.access", lambda *_: False)
    assert "cannot be written to" in failed(main(["demo", "-o", str(tmp_path)]), capsys)


@pytest.mark.parametrize("count", ["0", "-1", "two"])
def test_demo_command_refuses_bad_numbers_of_releases(count, capsys):
    assert "at least 1" in failed(main(["demo", "--releases", count]), capsys)


def test_main_says_that_it_was_interrupted(capsys, monkeypatch):
    monkeypatch.setattr(
        "sklearn_dptda._cli._demo_command.output_folder", failing(KeyboardInterrupt)
    )
    assert main(["demo"]) == 130
    assert capsys.readouterr().err == "interrupted\n"
