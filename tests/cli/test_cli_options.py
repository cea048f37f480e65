"""Options and help of all commands."""

import importlib
import inspect
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sklearn_dptda
from sklearn_dptda import _cli
from sklearn_dptda.__main__ import main
from sklearn_dptda._cli._command import Command, in_options
from sklearn_dptda._cli._main import COMMANDS, REPEATABLE, build_parser, load_command
from sklearn_dptda._cli._output import slow
from sklearn_dptda.privacy import PrivacyAccountant
from tests._fragile import wait_until
from tests._refusals import refuses
from tests.cli._paying import PAYING, call


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
    refuses(None, main, [name, "--help"], error=SystemExit)
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


@pytest.mark.conformance
def test_commands_import_matplotlib_only_to_draw():
    code = (
        "import sys; from sklearn_dptda._cli._main import COMMANDS, load_command\n"
        "for name in COMMANDS:\n    load_command(name)\n"
        "assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def options_of(name):
    """Return the parser of a command, and its options except --help."""
    subparsers = build_parser(name)._subparsers._group_actions[0]
    parser = subparsers.choices[name]
    return parser, [a for a in parser._actions if a.option_strings and a.dest != "help"]


FLAGS = {"max_points": "--max-points", "m": "--m", "adjacency": "--adjacency"}
FLAGS |= {"directed": "--directed", "DPLloyd": "--kind kmeans"}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("The 'max_points' parameter of Kind must be an int.", "--max-points must be an int."),
        ("m must be positive, and m is a mass.", "--m must be positive, and m is a mass."),
        ("The box is bad: use max_points.", "The box is bad: use --max-points."),
        ("use DPLloyd with delta=0, m=2", "use --kind kmeans with delta=0, m=2"),
        ("pass adjacency='replace-one'", "pass --adjacency replace-one"),
        ("Pass directed=True, or", "Pass --directed, or"),
        ("asked for max_points=3, left", "asked for --max-points 3, left"),
        ("there is no file out/max_points.csv", "there is no file out/max_points.csv"),
        ("max_points.csv is empty", "max_points.csv is empty"),
        ("The 'other' parameter of Kind is 1", "The 'other' parameter of Kind is 1"),
    ],
)
def test_in_options_translates_names_of_parameters(message, expected):
    assert in_options(message, FLAGS) == expected


@pytest.mark.conformance
@pytest.mark.parametrize("name", COMMANDS)
def test_options_of_parameters_have_their_text_and_default(name):
    command = load_command(name)
    assert bool(command.kinds) == (name not in ("demo", "ledger", "look"))
    for kind in command.kinds:
        known = inspect.signature(kind).parameters
        for parameter, option in command.options().items():
            if parameter not in known:
                continue
            default = known[parameter].default
            assert option.is_box == ("LOW" in option.takes.get("metavar", ""))
            assert len(option.takes["help"]) > 20 and "``" not in option.takes["help"]
            # The default, as a user would type it, gives the same value.
            if isinstance(default, str | int | float) and not isinstance(default, bool):
                assert option.takes["type"](f"{default}") == default


@pytest.mark.conformance
def test_options_in_the_documentation_exist():
    root = Path(sklearn_dptda.__file__).parent.parent
    if not (root / "doc").is_dir():
        pytest.skip("the documentation is not beside the tests: an installed package")
    pages = [root / "README.md", *root.glob("doc/**/*.md"), *root.glob("examples/**/*.py")]
    known = {name: {s for a in options_of(name)[1] for s in a.option_strings} for name in COMMANDS}
    found = 0
    for page in pages:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        for name, arguments in re.findall(r"(?:sklearn_dptda|sklearn-dptda) (\w+) ([^`\n]*)", text):
            if name in COMMANDS:
                used = set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", arguments))
                assert used <= known[name], (page.name, name)
                found += len(used)
    guide = (root / "doc" / "guide" / "command_line.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(--[a-z-]+)", guide)) <= {"--help", *set().union(*known.values())}
    assert found >= 40


def test_options_reach_the_estimators(folder, capsys):
    options = ["--kind", "tree", "--max-depth", "3", "--covariance-share", "0.5"]
    assert call("cluster", *options, "--ledger", "l.db", "--budget", "9", "1e-3") == 0
    spend = PrivacyAccountant.open("l.db").spends()[0]
    assert spend.estimator == "DPTree" and spend.parameters["max_depth"] == "3"
    assert spend.parameters["covariance_share"] == "0.5"
    options = ["--dimensions", "0", "--dimensions", "1", "--max-points", "3", "--max-distance"]
    assert call("diagram", *options, "none", "--seed", "0", "--report", "r.html") == 0
    content = json.loads(Path("out/diagram.json").read_text(encoding="utf-8"))
    assert set(content["diagrams"]) == {"H0", "H1"}
    page = Path("r.html").read_text(encoding="utf-8")
    # A parameter is named once.
    assert "<th>max_points</th><td>3</td>" in page and "PrivatePersistence: max_points" not in page


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
            said = refuses(None, parser.parse_args, [*words, "--unknown"])
            assert ("given twice" in said) != isinstance(option, REPEATABLE)


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
    kinds = [value for m in modules for value in vars(m).values() if isinstance(value, type)]
    found = [kind for kind in kinds if issubclass(kind, Command) and hasattr(kind, "name")]
    commands = [load_command(name) for name in COMMANDS]
    assert set(commands) == set(found) and [c.name for c in commands] == list(COMMANDS)


def test_cli_prints_in_one_module_only():
    for path in Path(_cli.__file__).parent.glob("*.py"):
        prints = re.search(r"\bprint\(|sys\.std(out|err)", path.read_text(encoding="utf-8"))
        assert bool(prints) == (path.name == "_terminal.py"), path.name
