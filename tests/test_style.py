"""The rules of ``.ci/style`` name what is wrong in broken inputs."""

import importlib
import re
import runpy
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests._refusals import refuses

ROOT = Path(__file__).parents[1]
STYLE = ROOT / ".ci" / "style"
WORKFLOW = ".github/workflows/tests.yml"
pytestmark = pytest.mark.skipif(
    not STYLE.is_dir(), reason="the rules of style are not beside the tests: an installed package"
)


@pytest.fixture(scope="module")
def style():
    names = [path.stem for path in STYLE.glob("*.py") if path.stem != "__main__"]
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(STYLE))
        modules = {name: importlib.import_module(name) for name in names}
    # Their short names are free again for others.
    for name in names:
        del sys.modules[name]
    return SimpleNamespace(**modules)


@pytest.fixture
def written(tmp_path):
    def write(text, name="a.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write


def changed(name, old, new):
    """Text of a file of the project, with one change."""
    text = (ROOT / name).read_text(encoding="utf-8")
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize(
    "text, found",
    [
        ("Whoever reads this.", ["Whoever"]),
        ("Who knows no bounds pays for them.", ["Who knows no bounds pays for them"]),
        ("It is mended.", ["mended"]),
        ("`StandardScaler` and its kin", ["its kin"]),
        ("bounds that nobody\nknows", ["nobody"]),
        ("Who is it for?", []),
        ("It recommends a fix.", []),
        ("the kinetic energy", []),
        ("`whoever`", []),
    ],
)
def test_words_names_what_the_guide_rules_out(style, text, found):
    assert style.words.avoided_in(text) == found


def test_words_reads_pages_and_programs(style, written):
    page = written("# A page\n\nTables as people have\nthem, for whoever asks.")
    program = written('x = f("a", "and the"\n  " like")  # Nobody\n', "a.py")
    assert len([*style.words.avoided_words_on_pages([page])]) == 1
    assert len([*style.words.old_sentences_on_pages([page])]) == 1
    assert len([*style.words.avoided_words_in_programs([program])]) == 2


@pytest.mark.parametrize(
    "rule, module, source, problem",
    [
        (
            "upward_imports",
            "privacy._new",
            "def late():\n    from sklearn_dptda.cluster import ToMATo\n",
            r"_new\.py: it imports sklearn_dptda\.cluster,",
        ),
        ("unknown_packages", "attic", "", r"attic is on no floor"),
        ("relative_imports", "rows._new", "from . import _rows\n", r"_new\.py:1: .* relative"),
        (
            "cycles",
            "_typing",
            "import sklearn_dptda.privacy._estimator\n",
            r"cycle: .*sklearn_dptda\._typing",
        ),
        ("folders_without_description", "rows", '"""Rows."""\n', "less than two sentences"),
        ("payments_elsewhere", "rows._new", "self._pay(1)\n", r"_new\.py: it calls self\._pay"),
    ],
)
def test_house_names_a_broken_module(style, written, rule, module, source, problem):
    name = "__init__.py" if rule == "folders_without_description" else "_new.py"
    # A few modules are enough, and are parsed quickly.
    known = {f"sklearn_dptda.{m}" for m in ("_docs", "cluster", "privacy._estimator")}
    paths = {key: path for key, path in style.house.modules().items() if key in known}
    paths[f"sklearn_dptda.{module}"] = written(source, name)
    (found,) = getattr(style.house, rule)(paths)
    assert re.search(problem, found)


def test_house_names_an_old_map(style, written):
    page = written(changed("CONTRIBUTING.md", "persistence, features ", "persistence "))
    assert len([*style.house.old_map_of_contributors(page)]) == 1


@pytest.mark.parametrize(
    "source, expected",
    [
        ('"""Draws.\n\nProof: doc/theory/a.md, "One".\n"""', []),
        ('"""Draws.\n\n    Proof: doc/theory/a.md,\n    "A long one".\n"""', []),
        ('# Proof: doc/theory/a.md, "A long\n# one".', []),
        ('"""Proof: doc/theory/a.md, "one"."""', [("a.md", "one")]),
        ('"""Proof: doc/theory/b.md, "One"."""', [("b.md", "One")]),
        ('"""Proof: doc/theory/a.md, "One"\n"""', [None]),
        ('"""Proof: theory/a.md, "One"."""', [None]),
    ],
)
def test_pointers_names_a_wrong_proof(style, source, expected):
    assert style.pointers.wrong_proofs(source, {"a.md": {"One", "A long one"}}) == expected


def test_pointers_names_a_function_that_is_gone(style, written):
    folder = written("def one():\n    pass\n", "a.py").parent
    text = "Code: [`a.py`](a.py) (`one`, `two`)."
    assert style.pointers.wrong_names(text, folder) == ["a.py: two"]


@pytest.mark.parametrize(
    "page, expected",
    [
        ("`rows/_rows.py` and `.ci/style/pointers.py`", []),
        ("`rows/_gone.py`", ["rows/_gone.py"]),
        ("`.ci/gone.py`", [".ci/gone.py"]),
        ("| `rows/_rows.py` | `Rows`, `gone` | sums |", ["rows/_rows.py: gone"]),
    ],
)
def test_pointers_names_a_wrong_step(style, page, expected):
    assert style.pointers.wrong_steps(page) == expected


def test_pointers_names_a_statement_without_code(style, written):
    links = "Code: [`_docs.py`](gone.py). Test: [`tests/test_docs.py`](tests/test_docs.py).\n"
    page = written(f"## One\n\nA theorem.\n\n## Two\n\nCode: none\n\n## Three\n\n{links}")
    problems = [*style.pointers.statements_without_code_and_test([page])]
    assert [re.search('"(One|Two|Three)"', problem)[1] for problem in problems] == [
        "One",
        "Two",
        "Three",
        "Three",
    ]
    (problem,) = style.pointers.code_that_does_not_point_back([page])
    assert problem.startswith("sklearn_dptda/_docs.py")


def test_hints_names_what_has_none_or_fails(style):
    def half(self, X, y: int = 0, *more, **options: "Gone"):  # noqa: F821
        return X

    assert list(style.hints.missing_hints(half)) == ["X", "more", "return"]
    assert len([*style.hints.functions_without_hints({"half": half})]) == 1
    (problem,) = style.hints.hints_that_fail({"half": half})
    assert "'Gone' is not defined" in problem
    assert len([*style.hints.forgotten_functions({"half": half})]) > 1


@pytest.mark.parametrize(
    "rule, text, problem",
    [
        ("dead_links", "[a](gone.md)", "gone.md leads nowhere"),
        ("scripts_that_do_not_exist", "python -m benchmarks speed gone", "no benchmark gone"),
        ("scripts_that_do_not_exist", "`examples/gone.py`", "examples/gone.py does not exist"),
        ("pictures_without_file_or_description", "![what](gone.png)", "gone.png does not exist"),
        ("pictures_without_file_or_description", "![](a.md)", "a.md has no text"),
        ("pictures_without_file_or_description", "```{figure} a.md\n:alt: A\n```", "has no text"),
        ("guide_pages_without_picture_or_api", "About `ToMATo`.", "no picture"),
        ("guide_pages_without_picture_or_api", "```{figure} a.md\n```", "names no public name"),
        ("examples_that_draw_nothing_or_print_addresses", "print(1)\n", "draws nothing"),
        (
            "examples_that_draw_nothing_or_print_addresses",
            "plt.figure()\nax.plot(1)\n# %%\nprint(1)\n",
            "value of plot",
        ),
    ],
)
def test_pages_names_what_is_missing(style, written, rule, text, problem):
    (found,) = getattr(style.pages, rule)([written(text)])
    assert found.startswith("a.md: ") and problem in found


def test_pages_names_public_names_that_are_not_listed(style, written):
    api = written(changed("doc/api.rst", "   DTMFiltration\n", ""), "api.rst")
    assert any("name DTMFiltration " in p for p in style.pages.names_missing_from_the_api_page(api))
    api = written(changed("doc/api.rst", "\n   GridFiltration\n", "\n   Gone\n"), "b.rst")
    assert any("name Gone is not" in p for p in style.pages.names_that_are_not_shown(api))
    path = "doc/_extensions/chooser.py"
    chooser = written(changed(path, '"DPMoG"', '"Gone"'), "chooser.py")
    assert len([*style.pages.names_of_the_map_that_are_not_public(chooser)]) == 1


@pytest.mark.parametrize(
    "rule, old, new",
    [
        ("wrong_counts_of_items", "35 items: 20 faithful", "35 items: 21 faithful"),
        ("wrong_counts_of_items", "| 35 | 20 |", "| 35 | 21 |"),
        ("wrong_verdicts", "tests | different:", "tests | it differs:"),
        ("wrong_verdicts", "three are answered", "two are answered"),
        ("wrong_verdicts_of_table_2", "above: .780", "below: .780"),
        ("wrong_verdicts_of_table_2", "| pulsar | 10 | 6 |", "pulsar, 10, 6"),
        ("wrong_sums_of_table_2", "beats 9 of the 32", "beats 8 of the 32"),
    ],
)
def test_verdicts_names_a_wrong_count(style, written, rule, old, new):
    page = written(changed("doc/reproduction.md", old, new))
    assert len([*getattr(style.verdicts, rule)(page)]) == 1


@pytest.fixture
def copy(tmp_path):
    """Copy of the files that the rules about the project read."""
    for name in (
        "CHANGELOG.md",
        "CITATION.cff",
        "noxfile.py",
        "pyproject.toml",
        "recipe/recipe.yaml",
        ".ci/release_notes.py",
        ".github/workflows/nightly.yml",
        ".github/workflows/release.yml",
        WORKFLOW,
        "sklearn_dptda/__init__.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize(
    "rule, name, old, new",
    [
        ("versions_that_differ", "CITATION.cff", "\nversion: ", "\nversion: 9"),
        ("versions_that_differ", "pyproject.toml", 'dynamic = ["version"]', 'version = "9"'),
        ("recipes_that_differ", "recipe/recipe.yaml", 'version: "0', 'version: "9'),
        ("recipes_that_differ", "recipe/recipe.yaml", "scipy >=1.12", "scipy >=1.11"),
        ("recipes_that_differ", "recipe/recipe.yaml", "    - scipy >=1.12\n", ""),
        ("recipes_that_differ", "recipe/recipe.yaml", "python >=3.11", "python >=3.12"),
        ("bounds_that_are_not_tested", "pyproject.toml", "numpy>=1.26", "numpy>=1.27"),
        ("extras_with_other_bounds", "pyproject.toml", '"matplotlib>=3.8"]', '"matplotlib>=3.9"]'),
        ("pythons_that_are_not_tested", "noxfile.py", '"3.12", ', ""),
        ("pythons_that_are_not_tested", "pyproject.toml", ">=3.11", ">=3.10"),
        (
            "unreadable_workflows",
            ".github/workflows/tests.yml",
            "contents: read",
            "contents: write",
        ),
        ("unreadable_workflows", WORKFLOW, "jobs:", "jobs: ["),
        ("unreadable_workflows", WORKFLOW, "- uses:", "- name:"),
        ("release_notes_that_fail", "CITATION.cff", "\nversion: ", "\nversion: 9"),
    ],
)
def test_project_names_what_differs(style, copy, rule, name, old, new):
    if rule == "unreadable_workflows":
        pytest.importorskip("yaml")
    # The notes are refused in any case while a version has no date.
    changes = re.sub(r"\(unreleased\)", "(2026-12-01)", (copy / "CHANGELOG.md").read_text("utf-8"))
    (copy / "CHANGELOG.md").write_text(changes, encoding="utf-8")
    (copy / name).write_text(changed(name, old, new), encoding="utf-8")
    assert len([*getattr(style.project, rule)(copy)]) == 1


def test_project_names_faults_that_the_code_has_outgrown(style, written, tmp_path):
    runner = (ROOT / "tests" / "mutants" / "__main__.py").read_text(encoding="utf-8")
    written(runner, "tests/mutants/__main__.py")
    written("right and right", "sklearn_dptda/a.py")
    faults = "a.py | tests/gone.py\n    some fault :: right >>> wrong\n    other :: and >>> or\n"
    written(faults, "tests/mutants/faults.txt")
    problems = [*style.project.faults_that_cannot_be_planted(tmp_path)]
    assert ["2 times" in problem for problem in problems] == [True, False, False]
    assert all("tests/gone.py" in problem for problem in problems[1:])


def test_notes_of_a_release_need_its_version_and_a_date(copy):
    script = runpy.run_path(str(copy / ".ci" / "release_notes.py"))
    refuses("the tag says 99", script["notes"], "99.0.0", error=SystemExit)
    title = f"## {script['version']()} ("
    for date, refused in (("unreleased", True), ("2026-12-01", False)):
        (copy / "CHANGELOG.md").write_text(f"# Changes\n\n{title}{date})\n\nAll.\n", "utf-8")
        if refused:
            refuses("no dated section", script["notes"], script["version"](), error=SystemExit)
        else:
            assert script["notes"](script["version"]()) == "All."
