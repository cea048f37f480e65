"""Each rule of ``.ci/style`` names what is wrong in a broken twin of a small project."""

import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[1]
STYLE = ROOT / ".ci" / "style"
pytestmark = pytest.mark.skipif(
    not STYLE.is_dir(), reason="the rules of style are not beside the tests: an installed package"
)


@pytest.fixture(scope="module")
def style():
    names = [path.stem for path in STYLE.glob("*.py") if path.stem != "__main__"]
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(STYLE))
        main = runpy.run_path(str(STYLE / "__main__.py"), run_name="style")
    # Their short names are free again for others.
    for name in names:
        del sys.modules[name]
    return SimpleNamespace(**main, rules={rule.__name__: rule for rule in main["RULES"]})


LINKS = (
    "Code: [`rows/_rows.py`](../../sklearn_dptda/rows/_rows.py) (`Rows`). "
    "Test: [`tests/test_rows.py`](../../tests/test_rows.py) (`test_rows`).\n"
)
ROWS = '"""Rows.\n\n    Proof: doc/theory/graphs.md,\n    "Rows of one".\n"""\n\nclass Rows: ...\n'
EXEMPT = "## What nodes are\n\n## Two ends of a pair\n\n## References\n"
# A project without problems. Each case changes one of its files.
RIGHT = {
    "CONTRIBUTING.md": "## Floors\n\n```\ncluster\nrows, graph    tables\nprivacy\n```\n",
    "doc/style.md": "## Before and after\n\n| Old | New |\n|---|---|\n| How near. | Accuracy |\n",
    "doc/step_by_step.md": "| `rows/_rows.py` | `Rows` | sums |\n\n`doc/style.md`\n",
    "doc/theory/graphs.md": f"# Graphs\n\n## Rows of one\n\n{LINKS}\n{EXEMPT}",
    "examples/plot_rows.py": "",
    "sklearn_dptda/cluster/__init__.py": "from sklearn_dptda.rows import _rows\n",
    "sklearn_dptda/privacy/_estimator.py": "self._pay(1)\n",
    "sklearn_dptda/rows/_rows.py": ROWS,
    "tests/mutants/faults.txt": "rows/_rows.py | tests/test_rows.py\n    none :: Rows: >>> Row:\n",
    "tests/test_rows.py": "def test_rows():\n    pass\n",
}
GRAPHS, STEPS, FAULTS = "doc/theory/graphs.md", "doc/step_by_step.md", "tests/mutants/faults.txt"
NEW = "sklearn_dptda/rows/_new.py"
# A rule, a file, its text, and what the rule finds in it.
CASES = [
    ("avoided_words", "a.md", "Whoever reads this.", '"Whoever"'),
    ("avoided_words", "a.md", "Who knows no bounds pays for them.", '"Who knows no bounds pays'),
    ("avoided_words", "a.md", "It is mended.", '"mended"'),
    ("avoided_words", "doc/guide/a.md", "`StandardScaler` and its kin", '"its kin"'),
    ("avoided_words", "a.md", "bounds that nobody\nknows", '"nobody"'),
    ("avoided_words", "a.md", "`cd /home/me/project`", '"/home/me"'),
    ("avoided_words", NEW, 'x = f("a", "and the"\n  " like")\n', '"and the like"'),
    ("avoided_words", "examples/plot_new.py", "x = 1  # Nobody\n", '"Nobody"'),
    ("old_sentences", "a.md", "# A page\n\nHow\nnear. Hm.", '"How near."'),
    (
        "upward_imports",
        "sklearn_dptda/privacy/_new.py",
        "def late():\n    from sklearn_dptda.cluster import ToMATo\n",
        r"imports sklearn_dptda\.cluster,",
    ),
    (
        "upward_imports",
        "sklearn_dptda/graph/_new.py",
        "import sklearn_dptda.rows._rows",
        r"\._rows",
    ),
    ("upward_imports", "sklearn_dptda/attic.py", "", "attic is on no floor"),
    ("cycles", "sklearn_dptda/rows/_rows.py", f"import sklearn_dptda.cluster\n{ROWS}", "_rows, "),
    ("code_that_is_ruled_out", NEW, "from . import _rows\n", r"`from \. import`"),
    ("code_that_is_ruled_out", NEW, "x = self._pay(1)\n", r"`self\._pay\(` .* Pay with"),
    ("proofs_that_do_not_exist", NEW, '"""Proof: doc/theory/graphs.md, "rows"."""', '"rows"'),
    ("proofs_that_do_not_exist", NEW, '# Proof: doc/theory/b.md, "Rows\n# of one".', "b.md has no"),
    ("proofs_that_do_not_exist", NEW, '# Proof: doc/theory/graphs.md, "Graphs"\n', "not followed"),
    ("proofs_that_do_not_exist", NEW, '# Proof: graphs.md, "Graphs".', "not followed"),
    ("statements_without_code_and_test", "doc/theory/b.md", "## A\n\nText.", "say where"),
    ("statements_without_code_and_test", "doc/theory/b.md", "## A\n\nCode: none\n", "of the form"),
    (
        "statements_without_code_and_test",
        "doc/theory/b.md",
        f"## A\n\n{LINKS.replace('(../../tests/test_rows.py)', '(../test_rows.py)')}",
        "must lead to the file",
    ),
    (
        "statements_without_code_and_test",
        "doc/theory/b.md",
        f"## A\n\n{LINKS.replace('_rows.py', '_gone.py', 2)}",
        "_gone.py does not exist",
    ),
    ("statements_without_code_and_test", "tests/test_rows.py", "test_rows = 1\n", "has no tests"),
    (
        "statements_without_code_and_test",
        GRAPHS,
        f"## Rows of one\n\n{LINKS}\n{EXEMPT.replace('## References', '')}",
        'no section "References"',
    ),
    (
        "statements_without_code_and_test",
        GRAPHS,
        f"## Rows of one\n\n{LINKS}\n{EXEMPT}\n{LINKS}",
        "it names code",
    ),
    ("code_that_does_not_point_back", "doc/theory/b.md", f"## A\n\n{LINKS}", r"b\.md names this"),
    ("names_that_do_not_exist", "tests/test_rows.py", "def test_row():\n    pass", "test_rows"),
    (
        "names_that_do_not_exist",
        STEPS,
        "| `rows/_rows.py` | `Rows`, `gone` | sums |",
        "define gone",
    ),
    ("files_that_do_not_exist", STEPS, "`rows/_gone.py`", "rows/_gone.py does not"),
    ("files_that_do_not_exist", STEPS, "`.ci/gone.py`", ".ci/gone.py does not"),
    ("files_that_do_not_exist", "a.md", "[a](gone.md#b), [c](https://c.d), [e](#f)", "gone.md"),
    ("files_that_do_not_exist", "doc/a.md", "`examples/gone.py`, `examples/plot_rows.py`", "gone"),
    ("files_that_do_not_exist", "doc/a.md", "`python -m benchmarks gone --quick`", "ks/gone.py"),
    (
        "faults_that_cannot_be_planted",
        FAULTS,
        "rows/_rows.py | tests/test_rows.py\n    a :: Rows >>> Row\n",
        "3 times",
    ),
    (
        "faults_that_cannot_be_planted",
        FAULTS,
        "rows/_rows.py | tests/test_rows.py\n    a :: gone >>> or\n",
        "0 times",
    ),
    (
        "faults_that_cannot_be_planted",
        FAULTS,
        "rows/_rows.py | tests/gone.py\n    a :: Rows: >>> Row:\n",
        "tests/gone.py",
    ),
]


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize("rule, name, text, problem", CASES)
def test_rule_names_what_is_wrong(style, tmp_path, rule, name, text, problem):
    write(tmp_path, RIGHT | {name: text})
    ((path, found),) = style.rules[rule](tmp_path)
    assert path.is_relative_to(tmp_path) and re.search(problem, found)


def test_rules_find_nothing_in_a_right_project(style, tmp_path):
    text = "Who is it for? It recommends a fix: `whoever`.\n\nThe kinetic energy of a/home/b.\n"
    write(tmp_path, RIGHT | {"a.md": text})
    assert [problem for rule in style.RULES for problem in rule(tmp_path)] == []


def test_each_rule_has_a_broken_twin(style):
    assert {rule for rule, *_ in CASES} == style.rules.keys()


def test_rules_read_the_whole_project(style):
    # Lower bounds of what the project has: a rule that reads nothing finds nothing.
    house, pointers, words = style.house, style.pointers, style.words
    known = house.modules(ROOT)
    sources = {path: words.text_of(path) for path in known.values()}
    assert len(known) > 150 and {*house.floors(ROOT)} >= {"privacy", "rows", "__main__"}
    assert len(house.imports(known["sklearn_dptda.cluster._dp_mog"], known)) > 3
    assert len(words.checked_pages(ROOT)) > 50 and len(words.sentences_before(ROOT)) > 19
    assert len(pointers.theory_pages(ROOT)) > 15
    assert sum(len([*pointers.proofs_of(text)]) for text in sources.values()) > 80
    assert sum(len(pointers.names_of(page)) for page in pointers.pointing_pages(ROOT)) > 50
    # The only file that may pay does so under this name.
    (paying,) = (path for path, text in sources.items() if re.search(r"\bself\._pay\(", text))
    assert paying.match("privacy/_estimator.py")


def test_notes_of_a_release_need_its_version_and_a_date(tmp_path):
    names = (".ci/release_notes.py", "CITATION.cff", "CHANGELOG.md", "sklearn_dptda/__init__.py")
    write(tmp_path, {name: (ROOT / name).read_text(encoding="utf-8") for name in names})
    script = runpy.run_path(str(tmp_path / ".ci" / "release_notes.py"))
    version, changes = script["version"](), tmp_path / "CHANGELOG.md"
    with pytest.raises(SystemExit, match="the tag says 99"):
        script["notes"]("99.0.0")
    title = rf"(?<=\n## {re.escape(version)} \().+(?=\))"
    undated, n_titles = re.subn(title, "unreleased", changes.read_text(encoding="utf-8"))
    assert n_titles == 1
    changes.write_text(undated, encoding="utf-8")
    with pytest.raises(SystemExit, match="no dated section"):
        script["notes"](version)
    changes.write_text(re.sub(title, "2026-12-01", undated), encoding="utf-8")
    assert script["notes"](version)
