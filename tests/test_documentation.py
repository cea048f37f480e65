"""The documentation covers all public names, and its links and paths are valid."""

import ast
import importlib
import inspect
import re
import sys
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

import sklearn_dptda
from sklearn_dptda import PrivatePersistence
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.model_selection import plan_release

ROOT = Path(__file__).parent.parent
DOC = ROOT / "doc"
PACKAGES = (
    "",
    ".cluster",
    ".datasets",
    ".decomposition",
    ".discriminant_analysis",
    ".features",
    ".filtration",
    ".graph",
    ".metric_privacy",
    ".model_selection",
    ".persistence",
    ".plotting",
    ".population",
    ".preprocessing",
    ".privacy",
    ".theory",
)

pytestmark = pytest.mark.skipif(
    not DOC.is_dir(), reason="the documentation is not beside the tests: an installed package"
)


def public_objects(packages=PACKAGES):
    """Classes and functions of all ``__all__`` lists, each under its shortest name."""
    found = {}
    for package in packages:
        module = importlib.import_module(sklearn_dptda.__name__ + package)
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                found.setdefault(value, name)
    return found.values()


def test_api_page_names_all_that_is_public():
    named = set(re.findall(r"[\w.]+", (DOC / "api.rst").read_text(encoding="utf-8")))
    named |= {name.rpartition(".")[2] for name in named}
    names = list(public_objects())
    assert len(names) > 100
    assert sorted(name for name in names if name not in named) == []


def advanced_names():
    """Names in the lists of the API page that are called advanced."""
    lists = re.findall(
        r"^\.\. rubric:: Advanced\n\n\.\. autosummary::\n(?:   :.*\n)*\n((?:   \w+\n)+)",
        (DOC / "api.rst").read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
    return set(" ".join(lists).split())


def test_the_main_surface_is_small_and_shown():
    # Every public name that is not in the papers occurs in an example or on a page, unless the API
    # page calls it advanced.
    names = set(public_objects([package for package in PACKAGES if package != ".theory"]))
    assert len(names) <= 120
    advanced = advanced_names()
    assert len(advanced) > 20 and advanced <= names
    texts = [*(ROOT / "examples").rglob("*.py"), *DOC.glob("guide/*.md"), *DOC.glob("*.md")]
    shown = {word for path in texts for word in re.findall(r"\w+", path.read_text("utf-8"))}
    assert sorted(names - advanced - shown) == []


def pages():
    return sorted([*ROOT.glob("*.md"), *DOC.glob("*.md"), *DOC.glob("*/*.md")])


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_relative_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        if "://" in link or link.startswith("mailto:"):
            continue
        target = page.parent / link
        if "auto_examples" in link:
            # The page is made from the script of the same name, and the index from the folder.
            made = target.resolve().relative_to(DOC.resolve() / "auto_examples")
            target = ROOT / "examples" / made
            target = target.parent if target.stem == "index" else target.with_suffix(".py")
        assert target.exists(), f"{page.name}: {link}"


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_scripts_and_benchmarks_that_are_named_exist(page):
    text = page.read_text(encoding="utf-8")
    known = {path.stem for path in (ROOT / "benchmarks").glob("*.py")}
    for names in re.findall(r"python -m benchmarks ([\w ]+)", text):
        assert set(names.split()) <= known, f"{page.name}: {names}"
    for script in re.findall(r"\bexamples/[\w/]+\.py", text):
        assert (ROOT / script).is_file(), f"{page.name}: {script}"


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_pictures_exist_and_say_what_they_show(page):
    text = page.read_text()
    for alt, link in re.findall(r"!\[([^]]*)\]\(([^)\s]+)\)", text):
        assert alt and (page.parent / link).is_file(), link
    for link, options in re.findall(r"```\{figure\} (\S+)\n((?::.*\n)*)", text):
        assert (page.parent / link).is_file(), link
        assert re.search(r"^:alt: .{20,}", options, flags=re.MULTILINE), link


GUIDE = sorted(DOC.glob("guide/*.md"))


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.name)
def test_a_page_of_the_guide_has_a_picture_and_a_link_to_the_api(page):
    text = page.read_text()
    assert "```{figure}" in text or "```{chooser}" in text
    # A public name in backticks becomes a link to its page.
    literals = {found.partition("(")[0] for found in re.findall(r"`([^`\n]+)`", text)}
    assert "```{chooser}" in text or literals & set(public_objects())


def test_the_map_leads_to_public_names(monkeypatch):
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(str(DOC / "_extensions"))
    try:
        names = importlib.import_module("chooser").names()
    finally:
        sys.modules.pop("chooser", None)
        sys.modules.pop("api_links", None)
    assert len(names) > 15
    assert set(names) <= set(public_objects())


EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))
# Calls at the end of a cell that would show the address of an object.
_DRAWING = {"plot", "from_estimator", "set", "set_title", "scatter", "imshow", "legend", "hist"}


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.name)
def test_an_example_draws_and_prints_no_addresses(script):
    text = script.read_text()
    assert re.search(r"\bplt\.(subplots|figure|show)\(", text) or "sphinx_gallery_thumb" in text
    for cell in re.split(r"^# %%.*$", text, flags=re.MULTILINE):
        last = ast.parse(cell).body[-1:]
        for call in (node.value for node in last if isinstance(node, ast.Expr)):
            name = getattr(getattr(call, "func", None), "attr", "")
            assert name not in _DRAWING, f"a cell ends with {name}: assign it to _"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["walkers", "five_epsilons", "private_pca", "private_graph"])
def test_without_published_data_an_example_has_pictures_of_made_up_ones(
    name, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("SKLEARN_DPTDA_DATA", str(tmp_path))
    monkeypatch.setenv("SKLEARN_DPTDA_QUICK", "1")
    monkeypatch.setattr(plt, "show", lambda: None)
    plt.close("all")
    script = ROOT / "examples" / f"plot_{name}.py"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(script.read_text(), script.name, "exec"), {"__name__": "__main__"})
    assert "not at hand" in capsys.readouterr().out
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert figures
    for figure in figures:
        assert all(ax.has_data() or not ax.axison for ax in figure.axes)
    plt.close("all")


@pytest.mark.slow
def test_the_table_of_needed_data_is_that_of_its_plans():
    row = re.search(r"the loops, as a diagram \|.*", (DOC / "guide" / "data_needed.md").read_text())
    shown = [float(cell) for cell in re.findall(r"\| ([\d.]+) ", row[0] + " ")]
    private = PrivatePersistence(homology_dimensions=1)
    sizes = (300, 1000, 3000, 10_000, 100_000)
    assert len(shown) == len(sizes)
    for n, epsilon in list(zip(sizes, shown, strict=True))[1:3]:
        plan = plan_release(n, (-1.5, 1.5), loop_radius=1.0, spread=0.1, private=private)
        assert f"{plan.epsilon:.2g}" == f"{epsilon:g}"


CODE = [
    page
    for page in (ROOT / "README.md", DOC / "get_started.md", *sorted(DOC.glob("guide/*.md")))
    if page.is_file() and "```python" in page.read_text(encoding="utf-8")
]


@pytest.mark.slow
@pytest.mark.parametrize("page", CODE, ids=lambda page: page.name)
def test_code_of_a_page_runs(page, tmp_path, monkeypatch):
    # Blocks run in order, as a reader would run them, with rows called X and X_new.
    monkeypatch.chdir(tmp_path)
    names = {"X": make_two_circles(600, random_state=0), "X_new": make_two_circles(50)}
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    ran = 0
    for block in blocks:
        if "distributed" in block:
            # A cluster is started by separate tests.
            compile(block, page.name, "exec")
            continue
        exec(compile(block, page.name, "exec"), names)
        ran += 1
    plt.close("all")
    assert ran


VERDICTS = {"faithful", "different", "impossible", "answered", "partly", "open", "ours"}
PAPERS = ("Kang", "Byun", "Vishwanath", "Boedihardjo")


def reproduced():
    """Rows of the tables of each section of the page of papers, by the section's first word."""
    text = (DOC / "reproduction.md").read_text(encoding="utf-8")
    for section in re.split(r"^#+ ", text, flags=re.MULTILINE)[1:]:
        lines = [line for line in section.splitlines() if line.startswith("|")]
        rows = [[c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
        # The rows below the names of columns and a rule.
        yield section.split()[0].rstrip(",:"), rows[2:], section


def test_counts_of_verdicts_can_be_recounted():
    found, claimed = {}, {}
    for name, rows, section in reproduced():
        if name in PAPERS:
            words = [re.match(r"\w+", row[-1])[0] for row in rows]
            assert set(words) <= VERDICTS, (name, set(words) - VERDICTS)
            counts = [words.count(word) for word in ("faithful", "different", "impossible")]
            found[name] = [sum(counts), *counts]
            questions = [words.count(word) for word in ("answered", "partly", "open")]
            printed = r"(\d+) items: (\d+) faithful, (\d+) different[^|]*?, (\d+) impossible"
            numbers = re.search(printed, section).groups()
            assert [int(number) for number in numbers] == found[name], name
            if name == "Kang":
                assert questions == [3, 4, 0] and "three are answered and four in part" in section
            if name == "Boedihardjo":
                assert questions == [1, 1, 1]
        elif rows and name == "Papers":
            claimed = {row[0].split(",")[0]: [int(number) for number in row[1:]] for row in rows}
    assert claimed == found and set(found) == set(PAPERS)


def test_the_guarantee_in_readme_is_what_is_printed(filtration):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    quoted = " ".join(re.findall(r"^> (.*)$", readme, flags=re.MULTILINE))
    assert quoted == str(PrivatePersistence(1.0).fit([filtration]).privacy_guarantee_)


def test_verdicts_of_table_2_follow_from_its_numbers():
    ((rows, section),) = ((rows, text) for name, rows, text in reproduced() if name == "Table")
    assert len(rows) == 32
    counts = {}
    for kind in (-2, -1):
        for row in rows:
            word, mean, error = re.fullmatch(r"(\w+): (\S+) ± (\S+)", row[kind]).groups()
            # The standard deviation of a run: two standard errors of the difference.
            apart = (float(mean) - float(row[3])) / (float(error) * 20**0.5)
            if abs(abs(apart) - 1) > 0.1:
                assert word == ("above" if apart > 1 else "below" if apart < -1 else "unclear")
            counts[kind, row[2] == "6", word] = counts.get((kind, row[2] == "6", word), 0) + 1
    above, below, unclear = (
        [sum(counts.get((kind, six, word), 0) for six in (True, False)) for kind in (-2, -1)]
        for word in ("above", "below", "unclear")
    )
    assert (
        f"Under replace-one, `DPMoGMorse` beats {above[0]} of the 32 published results, is worse "
        f"than {below[0]}, and {unclear[0]} are unclear. Under add-remove, it beats {above[1]}, is "
        f"worse than {below[1]}, and {unclear[1]} are unclear." in " ".join(section.split())
    )
    of_many = [[counts[kind, False, word] for kind in (-2, -1)] for word in ("above", "below")]
    assert [counts[kind, True, "above"] for kind in (-2, -1)] == [5, 5]
    assert of_many == [[7, 4], [9, 10]]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = (
        f"beats {above[0]} of the 32 results published for two tables (pulsar and MAGIC), is worse "
    )
    assert shown + f"than {below[0]}, and {unclear[0]} are within noise" in " ".join(readme.split())
