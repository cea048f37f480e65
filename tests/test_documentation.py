"""What the documentation computes is what it says. ``.ci/style/pages.py`` only reads it."""

import re
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from sklearn_dptda import PrivatePersistence
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.model_selection import plan_release

ROOT = Path(__file__).parent.parent
DOC = ROOT / "doc"
pytestmark = pytest.mark.skipif(
    not DOC.is_dir(), reason="the documentation is not beside the tests: an installed package"
)


@pytest.mark.nightly
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


@pytest.mark.nightly
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


@pytest.mark.conformance
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


def test_the_guarantee_in_readme_is_what_is_printed(filtration):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    quoted = " ".join(re.findall(r"^> (.*)$", readme, flags=re.MULTILINE))
    assert quoted == str(PrivatePersistence(1.0).fit([filtration]).privacy_guarantee_)
