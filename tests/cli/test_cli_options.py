"""Options and help of all commands."""

import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sklearn_dptda
from sklearn_dptda import _cli
from sklearn_dptda.__main__ import main
from sklearn_dptda._cli._command import Command
from sklearn_dptda._cli._main import COMMANDS, REPEATABLE, build_parser, load_command
from sklearn_dptda._cli._output import slow
from tests._fragile import wait_until
from tests.cli._paying import PAYING


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


def test_cli_prints_in_one_module_only():
    for path in Path(_cli.__file__).parent.glob("*.py"):
        prints = re.search(r"\bprint\(|sys\.std(out|err)", path.read_text(encoding="utf-8"))
        assert bool(prints) == (path.name == "_terminal.py"), path.name
