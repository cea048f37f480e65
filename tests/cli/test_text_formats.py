"""Text files as they come: separators, decimal marks, encodings, and what no file tells."""

import numpy as np
import pytest

from sklearn_dptda._cli._graph_command import read_graph
from sklearn_dptda._cli._read_points import read_table
from sklearn_dptda._cli._text_table import read_cells
from tests._refusals import refuses
from tests.cli._paying import read_points

NUMBERS = [[36.8, 1.5], [37.25, -2.0], [36.0, 0.125]]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "t.csv"


def numbers(path, content, encoding="utf-8", **options):
    path.write_bytes(content.encode(encoding))
    return read_table(path, **options).numbers()


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        ("36.8,1.5\n37.25,-2\n36.0,0.125\n", "utf-8"),
        ("36,8;1,5\n37,25;-2\n36,0;0,125\n", "utf-8"),
        ("36,8\t1,5\n37,25\t-2\n36,0\t0,125\n", "utf-8"),
        ("36,8|1,5\n37,25|-2\n36,0|0,125\n", "utf-8"),
        ("36.8  1.5\n  37.25 -2\n36.0 0.125\n", "utf-8"),
        ("36,8 1,5\n37,25 -2\n36,0 0,125\n", "utf-8"),
        ('"36,8","1,5"\n"37,25","-2"\n"36,0","0,125"\n', "utf-8"),
        ("36.8,1.5\r37.25,-2\r36.0,0.125\r", "utf-8"),
        ("36.8,1.5\r\n\r\n37.25,-2\r\n36.0,0.125", "utf-8-sig"),
        ("Größe;Höhe\n36,8;1,5\n37,25;-2\n36,0;0,125\n", "cp1252"),
        ("Größe;Höhe\n36,8;1,5\n37,25;-2\n36,0;0,125\n", "utf-16"),
        ("# a note\n% another\n36.8,1.5\n37.25,-2\n36.0,0.125\n", "utf-8"),
        ('"Income, yearly";"Age"\n36,8;1,5\n37,25;-2\n36,0;0,125\n', "utf-8"),
        ("Length;Weight\ncm;kg\n36,8;1,5\n37,25;-2\n36,0;0,125\n", "utf-8"),
        ("sep=;\n36,8;1,5\n37,25;-2\n36,0;0,125\n", "utf-8"),
        ("A title\n\na;b\n36,8;1,5\n37,25;-2\n36,0;0,125\n", "utf-8"),
    ],
)
def test_read_table_takes_formats_as_they_come(path, capsys, content, encoding):
    assert numbers(path, content, encoding).tolist() == NUMBERS
    notes = capsys.readouterr().err
    assert ("decimal commas" in notes) == (";" in content or "36,8" in content)
    assert ("cp1252" in notes) == (encoding == "cp1252")
    assert ("taken as the names" in notes) == ("A" in content or "ö" in content or "cm" in content)
    assert "Größe" not in notes and "cm" not in notes and "title" not in notes


def test_read_table_takes_thousands_beside_decimals(path):
    assert numbers(path, "1.234,56;7\n2.000,1;8\n").tolist() == [[1234.56, 7], [2000.1, 8]]
    assert numbers(path, '"1,234.56";7\n"2,000.1";8\n').tolist() == [[1234.56, 7], [2000.1, 8]]
    assert numbers(path, "1.234;x\n5.678;y\n", decimal=",", columns=["0"])[:, 0].tolist() == [
        1234,
        5678,
    ]


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        ("36,8\n37,2\n36,9\n", {"separator": "none"}, [[36.8], [37.2], [36.9]]),
        ("36,8\n37,2\n36,9\n", {"decimal": ","}, [[36.8], [37.2], [36.9]]),
        ("36,8\n37,2\n36,9\n", {"separator": ","}, [[36, 8], [37, 2], [36, 9]]),
        ("36,8\n37,2\n36,9\n", {"decimal": "."}, [[36, 8], [37, 2], [36, 9]]),
        ("fever\n36,8\n37,2\n36,9\n", {}, [[36.8], [37.2], [36.9]]),
        ("fever\n36,8\n37,2\n", {}, [[36.8], [37.2]]),
        ("a,b\n36,8\n37,2\n36,9\n", {}, [[36, 8], [37, 2], [36, 9]]),
        ("1.234;5.000\n2.345;6.789\n", {"decimal": "."}, [[1.234, 5], [2.345, 6.789]]),
        ("1.234;5.000\n2.345;6.789\n", {"decimal": ","}, [[1234, 5000], [2345, 6789]]),
        ("1.234,5.000\n2.345,6.789\n", {}, [[1.234, 5], [2.345, 6.789]]),
        ("1@2\n3@4\n", {"separator": "@"}, [[1, 2], [3, 4]]),
    ],
)
def test_read_table_takes_what_the_file_cannot_tell(path, content, options, expected):
    assert numbers(path, content, **options).tolist() == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"36,8\n37,2\n36,9\n", "may be one number or two. Pass --separator"),
        (b"1.234;5.000\n2.345;6.789\n", "decimal mark or one of the thousands. Pass --decimal"),
        (b"PAR1\x00\x01\x02", "not a text file. If it is one, pass its encoding"),
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b'1,2.5\n"3,4\n5,6\n', "not numeric|different lengths|quotation mark"),
    ],
)
def test_read_table_asks_for_what_the_file_cannot_tell(path, content, message):
    path.write_bytes(content)
    refuses(message, read_points, path)


def test_read_table_refuses_wrong_encodings(path):
    path.write_bytes("Größe;b\n1,5;2\n".encode("cp1252"))
    refuses("not a text file in the encoding utf-8", read_table, path, encoding="utf-8")
    refuses("there is no encoding 'latin-77'", read_table, path, encoding="latin-77")


def test_read_table_keeps_ids_and_categories_as_they_are_written(path):
    path.write_text("who;x;level\n1.000;1,5;1,5\n1000;2,5;2,5\n")
    table = read_table(path, groups="who", header=True)
    assert table.ids.tolist() == ["1.000", "1000"]
    assert table.cells.tolist() == [["1,5", "1,5"], ["2,5", "2,5"]]
    assert table.numbers().tolist() == [[1.5, 1.5], [2.5, 2.5]]


def test_read_cells_ends_with_cells_of_any_length(path):
    # clevercsv takes the square of the length of a cell.
    path.write_text("a;b,c\n" + "x" * 100_000 + ";y,z\nu;v,w\n")
    refuses(r"the separator of .* is not clear", read_cells, path)
    assert read_cells(path, separator=";")[1].shape == (2, 2)


def test_read_cells_takes_headers_without_the_name_of_the_rows(path):
    path.write_text('"x" "y"\n"1" 2.5 3.5\n"2" 4.5 5.5\n"3" 1 2\n"4" 2 1\n')
    names, cells, found, _ = read_cells(path)
    assert names == ["", "x", "y"] and cells.shape == (4, 3) and found.n_headers == 1


def test_read_graph_takes_pairs_and_leaves_out_weights(path, capsys):
    path.write_text("0,1\n1,2\n")
    assert read_graph(path, 3) == [(0, 1), (1, 2)]
    path.write_text("0 1 0.5\n1 2 0.25\n")
    assert read_graph(path, 3) == [(0, 1), (1, 2)]
    assert "such as weights, are left out" in capsys.readouterr().err


def test_formats_print_as_the_options_that_state_them(path):
    path.write_text("a;b\n1,5;2\n3,5;4\n")
    *_, found, _ = read_cells(path)
    assert str(found) == "--separator ';' --decimal ',' --encoding utf-8"
    assert np.isfinite(numbers(path, "1\t2\n3\t4\n")).all()


def test_read_cells_keeps_records_that_look_like_comments(path):
    path.write_text("% one\n\n# two\nid,x\n#12,3.5\n//b,5\n14,7\n")
    names, cells, _, notes = read_cells(path)
    assert names == ["id", "x"] and cells[:, 0].tolist() == ["#12", "//b", "14"]
    assert notes[0].startswith("2 line(s) of comments")


@pytest.mark.parametrize(
    "content", ["a,b\n1,2.5,\n3,4,\n", "a,b,\n1,2.5\n3,4\n", "a,b,\n1,2.5,\n3,4,\n"]
)
def test_read_cells_takes_separators_behind_the_last_cell(path, content):
    path.write_text(content)
    names, cells, *_ = read_cells(path)
    assert names[:2] == ["a", "b"] and cells[:, :2].tolist() == [["1", "2.5"], ["3", "4"]]


def test_read_cells_never_takes_a_record_for_stated_names(path):
    # Names are published.
    for content in ("age,income,more\n28,282.5\n30,19\n31,20\n", "x\n1,5.5\n2,5\n3,4\n"):
        path.write_text(content)
        refuses("cannot contain the names", read_cells, path, header=True)
    path.write_text("# age income\n28 282.5\n30 19\n31 20\n")
    names, cells, *_ = read_cells(path, header=True)
    assert names == ["age", "income"] and len(cells) == 3


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a;b\n0,123;2\n0,456;4\n", [[0.123, 2], [0.456, 4]]),
        ("a;b\n3;1\n" + "3;1\n" * 300 + "3,25;2\n", [[3.25, 2]]),
    ],
)
def test_read_table_takes_decimals_for_decimals(path, content, expected):
    if "3,25" in content:
        refuses("not numeric everywhere", numbers, path, content)
        with pytest.raises(ValueError, match="decimal mark or one of the thousands"):
            numbers(path, content.replace("3,25;", "3,250;"))
    else:
        assert numbers(path, content).tolist() == expected


def test_read_table_keeps_rows_of_empty_cells(path):
    path.write_text("a,b\n1.5,2\n,\n3,4\n,\n\n")
    assert len(read_table(path, header=True).cells) == 4
    assert len(read_table(path, header=True, drop_incomplete=True).cells) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"separator": "::"}, "takes one character"),
        ({"encoding": "punycode"}, "not a text file in"),
    ],
)
def test_read_table_refuses_unusable_options(path, options, message):
    path.write_bytes("Größe;b\n1,5;2\n".encode())
    refuses(message, read_table, path, **options)


def test_read_cells_says_that_a_row_below_stated_names_is_left_out(path):
    path.write_text("length,weight\ncm,kg\n1.5,2\n3,4\n5,6\n")
    *_, notes = read_cells(path, header=True)
    assert len(notes) == 1 and "and 1 more are left out" in notes[0]


@pytest.mark.parametrize("cell", ["1_000", "١٢", "１２"])
def test_read_table_takes_no_number_that_only_python_reads(path, cell):
    path.write_text(f"a,b\n1,{cell}\n2,3\n", encoding="utf-8")
    refuses("do not contain a real number", read_points, path, header=True)
