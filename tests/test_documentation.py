"""The documentation names what is public, and its links and paths lead somewhere."""

import importlib
import inspect
import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

import sklearn_dptda
from sklearn_dptda.datasets import make_two_circles

ROOT = Path(__file__).parent.parent
DOC = ROOT / "doc"
PACKAGES = (
    "",
    ".cluster",
    ".datasets",
    ".decomposition",
    ".features",
    ".filtration",
    ".graph",
    ".metric_privacy",
    ".model_selection",
    ".persistence",
    ".plotting",
    ".privacy",
)

pytestmark = pytest.mark.skipif(
    not DOC.is_dir(), reason="the documentation is not beside the tests: an installed package"
)


def public_objects():
    """Classes and functions of all ``__all__`` lists, each under its shortest name."""
    found = {}
    for package in PACKAGES:
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


def pages():
    return sorted([*ROOT.glob("*.md"), *DOC.glob("*.md"), *DOC.glob("guide/*.md")])


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_relative_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        if "://" in link or link.startswith("mailto:"):
            continue
        target = page.parent / link
        if "auto_examples" in link:
            # Made from the script of the same name; the index from the folder.
            target = ROOT / link.replace("../", "").replace("auto_examples", "examples")
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


CODE = [
    page
    for page in (ROOT / "README.md", DOC / "get_started.md", *sorted(DOC.glob("guide/*.md")))
    if page.is_file() and "```python" in page.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("page", CODE, ids=lambda page: page.name)
def test_code_of_a_page_runs(page, tmp_path, monkeypatch):
    # In order, as a reader would, with rows of their own called X and X_new.
    monkeypatch.chdir(tmp_path)
    names = {"X": make_two_circles(600, random_state=0), "X_new": make_two_circles(50)}
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    ran = 0
    for block in blocks:
        if "distributed" in block:
            # A cluster is started by its own tests.
            compile(block, page.name, "exec")
            continue
        exec(compile(block, page.name, "exec"), names)
        ran += 1
    plt.close("all")
    assert ran
