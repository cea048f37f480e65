"""What the documentation computes is what it says. ``.ci/style`` only reads it."""

import re
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from sklearn_dptda import PrivatePersistence
from sklearn_dptda.model_selection import plan_release

ROOT = Path(__file__).parent.parent
DOC = ROOT / "doc"
pytestmark = pytest.mark.skipif(
    not DOC.is_dir(), reason="the documentation is not beside the tests: an installed package"
)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["walkers", "five_epsilons", "private_pca", "private_graph"])
def test_example_without_published_data_draws_made_up_data(name, tmp_path, monkeypatch, capsys):
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
def test_table_of_needed_data_shows_its_plans():
    page = (DOC / "guide" / "data_needed.md").read_text()
    private = PrivatePersistence(homology_dimensions=1)
    sizes = (300, 1000, 3000, 10_000, 100_000)
    for row, claim, which in (
        ("the same, loops by a bound", "bound", slice(1, 3)),
        ("the loops, as a diagram", "probable", slice(1, 2)),
    ):
        (line,) = re.findall(rf"\| {row} \|.*", page)
        shown = [float(cell) for cell in re.findall(r"\| ([\d.]+) ", line + " ")]
        assert len(shown) == len(sizes)
        for n, epsilon in list(zip(sizes, shown, strict=True))[which]:
            plan = plan_release(
                n, (-1.5, 1.5), loop_radius=1.0, spread=0.1, private=private, claim=claim
            )
            assert f"{plan.epsilon:.2g}" == f"{epsilon:g}"


CODE = [
    page
    for page in (ROOT / "README.md", DOC / "get_started.md", *sorted(DOC.glob("guide/*.md")))
    if page.is_file() and "```python" in page.read_text(encoding="utf-8")
]


# Smaller inputs for pages that would take many seconds. The code is the same.
SMALLER = {
    "parameters.md": {"range(5)": "range(2)", "[1, 2, 4]": "[4]"},
    "populations.md": {"(400, 60,": "(120, 60,", "900": "240", "1800": "480", "300": "120"},
    "records.md": {"10_000": "1_000", "(2000,": "(200,"},
}


def layer_of(page):
    # These pages start workers.
    starts = page.name in ("card.md", "large_data.md")
    return pytest.mark.engines if starts else pytest.mark.conformance


# Code to copy is code whose result noise does not hide. Only this warning follows from public
# numbers alone: others depend on noise that is drawn without a seed.
@pytest.mark.filterwarnings("error:.*the noise hides")
@pytest.mark.usefixtures("few_public_draws")
@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=layer_of(page), id=page.name) for page in CODE]
)
def test_code_of_page_runs(page, tmp_path, monkeypatch):
    # Blocks run in order, as a reader would paste them: each page defines what it uses.
    monkeypatch.chdir(tmp_path)
    names = {}
    text = page.read_text(encoding="utf-8")
    for size, smaller in SMALLER.get(page.name, {}).items():
        assert size in text
        text = text.replace(size, smaller)
    ran = 0
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        if "distributed" in block:
            # A cluster is started by separate tests.
            compile(block, page.name, "exec")
            continue
        exec(compile(block, page.name, "exec"), names)
        ran += 1
    plt.close("all")
    assert ran


def test_guarantee_in_readme_is_what_is_printed(filtration):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    quoted = " ".join(re.findall(r"^> (.*)$", readme, flags=re.MULTILINE))
    assert quoted == str(PrivatePersistence(1.0).fit([filtration]).privacy_guarantee_)
