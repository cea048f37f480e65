"""Text files as they come: every line is a record, unless an option says otherwise."""

import numpy as np
import pytest

from sklearn_dptda.__main__ import main
from sklearn_dptda._cli._graph_command import read_graph
from sklearn_dptda._cli._read_points import read_table
from tests._refusals import refuses

NUMBERS = [[36.8, 1.5], [37.25, -2.0], [36.0, 0.125]]


def numbers(path, content, encoding="utf-8", **options):
    path.write_bytes(content.encode(encoding))
    return read_table(path, **options).numbers()


def read(path, content, **options):
    """Names and cells of a text, as lists of texts or numbers."""
    path.write_text(content, encoding="utf-8")
    table = read_table(path, **options)
    return table.names, [column.tolist() for column in table.columns]


@pytest.mark.parametrize(
    ("content", "encoding", "options"),
    [
        ("36.8,1.5\n37.25,-2\n36.0,0.125\n", "utf-8", {}),
        ("36,8;1,5\n37,25;-2\n36,0;0,125\n", "utf-8", {}),
        ("36,8\t1,5\n37,25\t-2\n36,0\t0,125\n", "utf-8", {}),
        ("36,8|1,5\n37,25|-2\n36,0|0,125\n", "utf-8", {}),
        ("36.8  1.5\n  37.25 -2\n36.0 0.125\n", "utf-8", {}),
        ("36,8 1,5\n37,25 -2\n36,0 0,125\n", "utf-8", {}),
        ('"36,8","1,5"\n"37,25","-2"\n"36,0","0,125"\n', "utf-8", {}),
        ("36.8,1.5\r37.25,-2\r36.0,0.125\r", "utf-8", {}),
        ("36.8,1.5\r\n\r\n37.25,-2\r\n36.0,0.125", "utf-8-sig", {}),
        ("Größe;Höhe\n36,8;1,5\n37,25;-2\n36,0;0,125\n", "cp1252", {"header": True}),
        ("Größe;Höhe\n36,8;1,5\n37,25;-2\n36,0;0,125\n", "utf-16", {"header": True}),
        ("# a note\n# b\n36.8,1.5\n37.25,-2\n36.0,0.125\n", "utf-8", {"comment": "#"}),
        ("// a\n36.8,1.5\n  // b\n37.25,-2\n36.0,0.125\n// c", "utf-8", {"comment": "//"}),
        ("# x y\n36.8 1.5\n37.25 -2\n36.0 0.125\n", "utf-8", {"header": True}),
        (
            '"Income, yearly";"Age"\n36,8;1,5\n37,25;-2\n36,0;0,125\n',
            "utf-8",
            {"header": True},
        ),
        ("Length;Weight\ncm;kg\n36,8;1,5\n37,25;-2\n36,0;0,125\n", "utf-8", {"skip_lines": 2}),
        (
            "36,8;1,5\n37,25;-2\n36,0;0,125\n\nSource: a study\nsee; the; page\n\n",
            "utf-8",
            {"skip_last": 2},
        ),
        ("36,8;1,5\n37,25;-2\n36,0;0,125\n# a note", "utf-8", {"skip_last": 1}),
        ("sep=;\n36,8;1,5\n37,25;-2\n36,0;0,125\n", "utf-8", {}),
        (
            "A title\n\na;b\n36,8;1,5\n37,25;-2\n36,0;0,125\n",
            "utf-8",
            {"skip_lines": 1, "header": True},
        ),
    ],
)
def test_read_table_takes_formats_as_they_come(tmp_path, capsys, content, encoding, options):
    path = tmp_path / "t.csv"
    assert numbers(path, content, encoding, **options).tolist() == NUMBERS
    notes = capsys.readouterr().err
    assert "3 record(s)" in notes
    assert ("of names" in notes) == ("header" in options)
    assert ("of comments" in notes) == ("comment" in options)
    assert ("skipped" in notes) == (not {"skip_lines", "skip_last"}.isdisjoint(options))
    assert ("decimal commas" in notes) == (";" in content or "36,8" in content)
    assert ("cp1252" in notes) == (encoding == "cp1252")
    assert "Größe" not in notes and "cm" not in notes and "title" not in notes
    if options:
        # Without the option, nothing is left out.
        refuses(r"may contain the names|--skip-|--comment", numbers, path, content, encoding)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x,y\n1,2.5\n3,4\n", "first line .* may contain the names"),
        ("ann,bob\nbob,cleo\n", "first line .* may contain the names"),
        ("ann\nbob\n", "first line .* may contain the names"),
        ("1,x\n2,3.5\n3,4.5\n", "first line .* may contain the names"),
        ("#12,3.5\n//b,5\n14,7\n", "lines that begin with #. Pass --comment '#'"),
        ("1,3.5\n2,5\n%,7\n", "lines that begin with %. Pass --comment '%'"),
        ("1 2\n3 4 5.5\n6 7 8.5\n6 7 9\n", "Pass --skip-lines 1 if the first 1 line"),
        ("2 rows\n3,4,5.5,7\n6,7,8.5,7\n", "first line .* has 1 cell.*Pass --skip-lines 1"),
        ("1,2.5\n3,4\n6,8.5\nmean\n", "Pass --skip-last 1 if the last 1 line"),
        ("1,2.5\n3,4\n6,8.5\nmean,x\n", "Pass --skip-last 1 if the last 1 line"),
        ("1,2.5\n3,4,5\n6,8.5\n", "1 of 3 do not have the 2 cells"),
        ("1,2.5\n3\n6,8.5\n4,5,6\n", "2 of 4 do not have the 2 cells"),
    ],
)
def test_read_table_refuses_lines_that_may_be_no_records(tmp_path, content, message):
    refuses(message, numbers, tmp_path / "t.csv", content)


def test_read_table_reads_as_many_records_as_there_are_lines(tmp_path, rng):
    # Made-up files of numbers: no line is lost, whatever the first ones are.
    for i in range(40):
        separator, n = rng.choice([",", ";", "\t", " ", "|"]), int(rng.integers(1, 400))
        cells = rng.integers(-9, 9, (n, 3)) / rng.choice([1, 4])
        lines = [separator.join(map(str, row)) for row in cells.tolist()]
        found = numbers(tmp_path / f"{i}.txt", "\n".join(lines), header=False)
        assert found.tolist() == cells.tolist()


def test_naming_a_column_says_that_the_first_line_contains_names(tmp_path):
    text = "who,x,y\na,1,2.5\nb,3,4\n"
    names, columns = read(tmp_path / "t.csv", text, columns=["x", "y"])
    assert names == ["x", "y"] and columns == [[1, 3], [2.5, 4]]
    refuses("no column 'z'", read, tmp_path / "t.csv", text, columns=["z"])
    refuses("no column 'x'", read, tmp_path / "t.csv", text, columns=["x"], header=False)


def test_read_table_takes_thousands_beside_decimals(tmp_path):
    path = tmp_path / "t.csv"
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
        ("fever\n36,8\n37,2\n36,9\n", {"header": True}, [[36.8], [37.2], [36.9]]),
        ("fever\n36,8\n37,2\n", {"header": True}, [[36.8], [37.2]]),
        ("a,b\n36,8\n37,2\n36,9\n", {"header": True}, [[36, 8], [37, 2], [36, 9]]),
        ("1.234;5.000\n2.345;6.789\n", {"decimal": "."}, [[1.234, 5], [2.345, 6.789]]),
        ("1.234;5.000\n2.345;6.789\n", {"decimal": ","}, [[1234, 5000], [2345, 6789]]),
        ("1.234,5.000\n2.345,6.789\n", {}, [[1.234, 5], [2.345, 6.789]]),
        ("1@2\n3@4\n", {"separator": "@"}, [[1, 2], [3, 4]]),
    ],
)
def test_read_table_takes_what_the_file_cannot_tell(tmp_path, content, options, expected):
    assert numbers(tmp_path / "t.csv", content, **options).tolist() == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"36,8\n37,2\n36,9\n", "may be one number or two. Pass --separator"),
        (b"1.234;5.000\n2.345;6.789\n", "decimal mark or one of the thousands. Pass --decimal"),
        (b"XYZ1\x00\x01\x02", "not a text file. If it is one, pass its encoding"),
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b'1,2.5\n"3,4\n5,6\n', "not numeric|different lengths|quotation mark|first line"),
    ],
)
def test_read_table_asks_for_what_the_file_cannot_tell(tmp_path, content, message):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    refuses(message, lambda: read_table(path).numbers())


def test_read_table_refuses_wrong_encodings(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("Größe;b\n1,5;2\n".encode("cp1252"))
    refuses("not a text file in the encoding utf-8", read_table, path, encoding="utf-8")
    refuses("there is no encoding 'latin-77'", read_table, path, encoding="latin-77")


def test_read_table_keeps_ids_and_categories_as_they_are_written(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("who;x;level\n1.000;1,5;1,5\n1000;2,5;2,5\n")
    table = read_table(path, groups="who", header=True)
    assert table.ids.tolist() == ["1.000", "1000"]
    assert table.numbers().tolist() == [[1.5, 1.5], [2.5, 2.5]]
    codes = "code;x\n007;1,5\n7;2,5\nTrue;1\n"
    _, columns = read(path, codes, texts=["code"])
    assert columns == [["007", "7", "True"], [1.5, 2.5, 1]]
    assert read(path, "a,b\nTRUE,x\ntrue,\n", header=True)[1] == [["TRUE", "true"], ["x", ""]]


def test_read_table_asks_for_separators_of_texts(tmp_path):
    text = "a;b,c\n" + "x" * 100_000 + ";y,z\nu;v,w\n"
    refuses(r"the separator of .* is not clear", read, tmp_path / "t.csv", text, header=True)
    assert read(tmp_path / "t.csv", text, header=True, separator=";")[0] == ["a", "b,c"]


def test_read_table_takes_headers_without_the_name_of_the_rows(tmp_path):
    text = '"x" "y"\n"1" 2.5 3.5\n"2" 4.5 5.5\n"3" 1 2\n"4" 2 1\n'
    names, columns = read(tmp_path / "t.csv", text, columns=["x", "y"])
    assert names == ["x", "y"] and columns[0] == [2.5, 4.5, 1, 2]


def test_read_graph_takes_pairs_and_leaves_out_weights(tmp_path, capsys):
    path = tmp_path / "e.csv"
    path.write_text("0,1\n1,2\n")
    assert read_graph(path, 3) == [(0, 1), (1, 2)]
    path.write_text("0 1 0.5\n1 2 0.25\n")
    assert read_graph(path, 3) == [(0, 1), (1, 2)]
    assert "such as weights, are left out" in capsys.readouterr().err


def test_formats_print_as_the_options_that_state_them(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a note\n# b\n1,5;2\n3,5;4\n")
    found = read_table(path, skip_lines=1, comment="#").form
    stated = "--separator ';' --decimal ',' --encoding utf-8 --skip-lines 1 --comment '#'"
    assert str(found) == stated
    assert np.isfinite(numbers(path, "1\t2\n3\t4\n")).all()


def test_read_table_keeps_records_that_look_like_comments(tmp_path):
    text = "% one\n\n# two\nid,x\n#12,3.5\n//b,5\n14,7\n"
    names, columns = read(tmp_path / "t.csv", text, skip_lines=3, header=True, comment="none")
    assert names == ["id", "x"] and columns[0] == ["#12", "//b", "14"]


@pytest.mark.parametrize(
    "content", ["a,b\n1,2.5,\n3,4,\n", "a,b,\n1,2.5\n3,4\n", "a,b,\n1,2.5,\n3,4,\n"]
)
def test_read_table_takes_separators_behind_the_last_cell(tmp_path, content):
    names, columns = read(tmp_path / "t.csv", content, header=True)
    assert names[:2] == ["a", "b"] and columns[:2] == [[1, 3], [2.5, 4]]


def test_read_table_never_takes_a_record_for_stated_names(tmp_path):
    # Names are published.
    for content in ("age,income,more\n28,282.5\n30,19\n31,20\n", "x\n1,5.5,\n2,5,\n3,4,\n"):
        refuses("cannot contain the names", read, tmp_path / "t.csv", content, header=True)
    names, columns = read(tmp_path / "t.csv", "# age income\n28 282.5\n30 19\n", header=True)
    assert names == ["age", "income"] and columns == [[28, 30], [282.5, 19]]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a;b\n0,123;2\n0,456;4\n", [[0.123, 2], [0.456, 4]]),
        ("a;b\n3;1\n" + "3;1\n" * 300 + "3,25;2\n", [[3.25, 2]]),
    ],
)
def test_read_table_takes_decimals_for_decimals(tmp_path, content, expected):
    if "3,25" in content:
        refuses("not numeric everywhere", numbers, tmp_path / "t.csv", content, header=True)
        with pytest.raises(ValueError, match="decimal mark or one of the thousands"):
            numbers(tmp_path / "t.csv", content.replace("3,25;", "3,250;"), header=True)
    else:
        assert numbers(tmp_path / "t.csv", content, header=True).tolist() == expected


def test_read_table_takes_the_last_of_several_lines_of_names(tmp_path, capsys):
    path, content = tmp_path / "t.csv", "size;weight;who\nx;y;z\n36,8;1,5;a\n37,25;-2;b\n36,5;0;c\n"
    chosen = {"header": True, "columns": ["0", "1"]}
    refuses("Pass --skip-lines 1 if there are 2 lines of names", numbers, path, content, **chosen)
    assert read(path, content, skip_lines=1, **chosen)[0] == ["x", "y"]
    assert main(["look", str(path), "--header"]) == 0
    assert "--skip-lines 1 if there are 2 lines of names" in capsys.readouterr().err


def test_look_proposes_to_skip_notes_at_the_end(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("x;y\n36,8;1,5\n37,25;-2\n36;0,125\nSource: a study\n")
    assert main(["look", str(tmp_path / "t.csv")]) == 0
    said = capsys.readouterr()
    assert "--skip-last 1" in said.out and "3 rows, 2 columns" in said.out


def test_read_table_keeps_rows_of_empty_cells(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1.5,2\n,\n3,4\n,\n\n")
    assert len(read_table(path, header=True).columns[0]) == 4
    assert len(read_table(path, header=True, drop_incomplete=True).columns[0]) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"separator": "::"}, "takes one character"),
        ({"skip_lines": -1}, "--skip-lines and --skip-last take a number of lines"),
        ({"comment": ""}, "--comment a mark, or none"),
        ({"skip_lines": 9}, "is empty"),
        ({"skip_last": -1}, "--skip-last take a number of lines"),
        ({"skip_last": 9}, "is empty"),
        ({"encoding": "punycode"}, "not a text file in"),
    ],
)
def test_read_table_refuses_unusable_options(tmp_path, options, message):
    path = tmp_path / "t.csv"
    path.write_bytes("Größe;b\n1,5;2\n".encode())
    refuses(message, read_table, path, **options)


@pytest.mark.parametrize("cell", ["1_000", "١٢", "１２"])
def test_read_table_takes_no_number_that_only_python_reads(tmp_path, cell):
    path = tmp_path / "t.csv"
    path.write_text(f"a,b\n1,{cell}\n2,3\n", encoding="utf-8")
    refuses("do not contain a real number", read_table(path, header=True).numbers)


def test_look_proposes_lines_to_skip_one_after_the_other_and_ends(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("a title\n1,2\n3,4,5.5\n6,7,8.5\n6,7,9\n")
    assert main(["look", str(path)]) == 0
    said = capsys.readouterr()
    assert "--skip-lines 2" in said.out and "3 rows, 3 columns" in said.out
    # With names, no number of lines to skip is proposed, and look says what is wrong.
    path.write_text("x,y,z\n1,2\n3,4,5.5\n6,7,8.5\n6,7,9\n")
    assert main(["look", str(path), "--header"]) == 2
    assert "1 of 4 do not have the 3 cells" in capsys.readouterr().err


def test_texts_that_begin_as_other_files_are_texts(tmp_path):
    for start in ("PAR1", "BZhang", "ARROW1"):
        columns = read(tmp_path / "t.csv", f"{start},1\nx,2\n", header=False)[1]
        assert columns == [[start, "x"], [1, 2]]
