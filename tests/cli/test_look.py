"""What a file or a frame contains, and the commands that release it."""

import math
import re
import shlex
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sklearn_dptda.__main__ import main
from sklearn_dptda.rows import look
from tests._refusals import refuses
from tests.cli._paying import failed

PEOPLE = (
    "patient_id;age;weight;job;smokes;born;remark\n"
    + "".join(
        f"P{i % 40};{20 + i % 60};{50 + i / 7:.2f};{('cook', 'nurse', 'smith')[i % 3]};"
        f"{'yes' if i % 4 else 'no'};{1 + i % 28:02}.03.19{50 + i % 40};some words {i}\n"
        for i in range(120)
    ).replace(".", ",").replace(",03,19", ".03.19")
)  # fmt: skip


def printed(capsys, *arguments):
    assert main(["look", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def commands(text):
    """The commands of a text, as lists of arguments."""
    joined = text.replace("\\\n", " ")
    lines = [line for line in joined.split("\n") if line.startswith("python -m sklearn_dptda")]
    return {(words := shlex.split(line)[3:])[0]: words for line in lines}


def chosen(words, lists):
    """A command with public choices in place of the words in capitals."""
    text = " ".join(map(shlex.quote, words)).replace("LOW", "-10").replace("HIGH", "200")
    text = text.replace("HEADER_OR_NO_HEADER", "--header").replace("MISSING_OR_NOTHING", "")
    text = text.replace("INTEGERS_OR_NOTHING", "--integers age" if "synthesize" in words else "")
    for name, values in lists.items():
        text = text.replace(f"{name}=A,B,C", f"{name}={values}")
    return shlex.split(text)


@pytest.fixture
def people(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "people.csv"
    path.write_bytes(PEOPLE.encode("cp1252"))
    return path


def test_look_command_tells_columns_and_format(people, capsys):
    text = printed(capsys, people)
    assert "not private" in text and "120 rows, 7 columns" in text
    facts = dict(re.findall(r"^  (\w+) +(.*)$", text, flags=re.M))
    assert facts["patient_id"].startswith("40 ids")
    assert facts["age"] == "whole numbers from 20 to 79"
    assert facts["weight"] == "numbers from 50 to 67"
    assert facts["job"] == "3 categories: cook, nurse, smith"
    assert facts["smokes"] == "2 categories: yes, no"
    assert facts["born"].startswith("dates") and facts["remark"].startswith("text")
    assert "--separator ';' --decimal ',' --encoding utf-8 HEADER_OR_NO_HEADER" in text


def test_look_command_leads_to_releases(people, capsys):
    found = commands(printed(capsys, people))
    assert set(found) == {"cluster", "diagram", "synthesize"}
    lists = {"job": "cook,nurse,smith,other", "smokes": "yes,no"}
    for name, words in found.items():
        assert words[words.index("--groups") :][:2] == ["--groups", "patient_id"]
        assert main([*chosen(words, lists), "--seed", "0"]) == 0, name
    synthetic = pd.read_csv(people.parent / "synthetic" / "synthetic.csv")
    assert list(synthetic.columns) == ["age", "weight", "job", "smokes"]


def test_look_command_leaves_out_columns_without_information(tmp_path, capsys):
    rows = [f"{i + 5},{i / 7:.3f},2008,{'' if i > 9 else i},{i % 3 or 'x'}" for i in range(60)]
    (tmp_path / "t.csv").write_text("a,b,year,few,code\n" + "\n".join(rows))
    text = printed(capsys, tmp_path / "t.csv")
    assert "the same number in each row, 2008" in text and "3 categories: " in text
    found = commands(text)
    assert found["cluster"][found["cluster"].index("--columns") :][:4] == [
        "--columns",
        "a",
        "b",
        "--bounds",
    ]
    assert {"few", "year", "code=A,B,C"} <= set(found["synthesize"])


def test_look_command_prints_the_same_commands_whatever_one_record_is(tmp_path, capsys):
    rng = np.random.default_rng(0)
    rows = [f"{rng.integers(18, 90)},{rng.normal(70, 9):.1f},{'yn'[i % 2]}" for i in range(300)]
    path, found = tmp_path / "t.csv", []
    for first in ("44,71.5,y", ",71.5,y", "44.5,71.5,y", "44,,y", "44,71.5,"):
        path.write_text("\n".join(["age,weight,smokes", first, *rows]))
        found.append(commands(printed(capsys, path, "--header")))
    assert all(each == found[0] for each in found)
    assert "INTEGERS_OR_NOTHING" in found[0]["synthesize"]
    assert all("MISSING_OR_NOTHING" in words for words in found[0].values())


def test_look_command_leads_to_a_graph(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "edges.txt").write_text("\n".join(f"{i} {(7 * i + 1) % 30}" for i in range(30)))
    found = commands(printed(capsys, "edges.txt"))
    words = " ".join(found["graph"]).replace("NUMBER_OR_FILE", "30").split()
    assert main([*words, "--drop-self-loops"]) == 0


@pytest.mark.parametrize("name", ["", "row"])
def test_look_command_leaves_out_an_index(name, tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text(f"{name},x,-y\n" + "\n".join(f"{i},{i / 7:.3f},{i % 9}" for i in range(60)))
    text = printed(capsys, path)
    assert name == "" or "row     numbers of the rows in their order: leave it out" in text
    words = commands(text)["cluster"]
    assert words[words.index("--columns") :][:4] == ["--columns", "x", "2", "--bounds"]


def test_look_command_lists_many_codes_in_a_file(tmp_path, capsys):
    path = tmp_path / "t.csv"
    rows = [f"{i / 7:.3f},C{i % 200:03},{i % 2 or 'x'}" for i in range(1200)]
    path.write_text("x,code,sex\n" + "\n".join(rows))
    text = printed(capsys, path, "--header")
    assert "200 categories: " in text and "@FILE: @ and a file with the public" in text
    assert {"code=@FILE", "sex=A,B,C"} <= set(commands(text)["synthesize"])


def test_look_command_refuses_what_cannot_be_read(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("36,8\n37,2\n")
    assert "Pass --separator none" in failed(main(["look", str(path)]), capsys)
    assert "numbers from 36.8 to 37.2" in printed(capsys, path, "--separator", "none")


@pytest.mark.parametrize("library", ["pandas", "polars", "array"])
def test_look_tells_types_of_tables(library):
    columns = {
        "n": [1.5, None, 2.5, 3.0],
        "yes": [True, False, True, None],
        "when": [np.datetime64("2024-01-01"), None, None, None],
        "none": [None] * 4,
    }
    if library == "polars":
        table = pl.DataFrame({k: pl.Series(v) for k, v in columns.items() if k != "when"})
    else:
        table = pd.DataFrame(columns)
    facts = look(table.to_numpy() if library == "array" else table)
    kinds = {str(c.name): (c.kind, c.n_missing) for c in facts.columns}
    if library == "array":
        kinds = dict(zip(columns, kinds.values(), strict=True))
    assert kinds["n"] == ("number", 1) and kinds["yes"] == ("boolean", 1)
    assert kinds["none"] == ("empty", 4) and facts.n_rows == 4
    if library != "polars":
        assert kinds["when"] == ("date", 3)
    assert "LOW" in str(facts) and "not private" in repr(facts)


def test_look_refuses_other_shapes():
    refuses("X must have rows and columns; got 1", look, [1, 2])
    assert look(np.empty((0, 2))).columns[0].kind == "empty"


def test_look_command_names_columns_by_number_where_options_take_no_name(tmp_path, capsys):
    rng = np.random.default_rng(0)
    rows = [f"{a},{b},{c},{c}" for a, b, c in rng.integers(0, 50, (60, 3))]
    path = tmp_path / "t.csv"
    path.write_text('"x,y","a=b",",",plain\n' + "\n".join(rows))
    found = commands(printed(capsys, path, "--header"))
    words = " ".join(found["synthesize"])
    assert "--column-bounds 0 LOW HIGH" in words and "--column-bounds plain LOW HIGH" in words
    assert "x,y" not in words and "a=b" not in words
    run = words.replace("LOW HIGH", "0 50").replace("INTEGERS_OR_NOTHING", "--integers 0 plain")
    run = run.replace("MISSING_OR_NOTHING", "").split()
    assert main([*run[:-1], str(tmp_path / "out")]) == 0, capsys.readouterr().err


def test_look_takes_numbers_of_all_types():
    facts = look(
        pd.DataFrame(
            {
                "huge": pd.Series([10**400, 1, 2], dtype=object),
                "money": pd.Series([Decimal("1.5"), Decimal(2), Decimal(3)], dtype=object),
            }
        )
    )
    huge, money = facts.columns
    assert (huge.kind, huge.high) == ("integer", math.inf)
    assert (money.kind, money.low, money.high) == ("number", 1.5, 3.0)


def test_look_tells_dates_in_digits_times_of_half_days_and_percentages():
    table = {
        "day": [20240131, 20240201, 20231231],
        "year": [2024, 2023, 2022],
        "code": [20240199, 20241301, 20231231],
        "time": ["01:15 AM", "12:30 PM", "11:00 pm"],
        "share": ["1.5%", "33 %", "7%"],
        "month": ["2024-01", "2024-02", "2024-03"],
        "name": ["Jan 2024", "February 2024", "Mar-24"],
        "quarter": ["2024Q1", "2024 Q2", "2024-Q3"],
    }
    kinds = {column.name: column.kind for column in look(pd.DataFrame(table)).columns}
    assert kinds == {
        "day": "date",
        "year": "integer",
        "code": "integer",
        "time": "date",
        "share": "percentage",
        "month": "date",
        "name": "date",
        "quarter": "date",
    }
