"""Versions, bounds and workflows agree in all files."""

import re
import tomllib
from pathlib import Path

import pytest

import sklearn_dptda

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.skipif(
    not (ROOT / "noxfile.py").is_file(), reason="the project is not beside the tests"
)


@pytest.fixture(scope="module")
def project():
    return tomllib.loads(text("pyproject.toml"))["project"]


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def names_and_least(requirements):
    """Names with their lower bounds; those for one platform only are left out."""
    bounds = {}
    for requirement in requirements:
        if ";" not in requirement and ">=" in requirement:
            name, _, rest = requirement.partition(">=")
            bounds[name.strip()] = rest.partition(",")[0].strip()
    return bounds


def test_the_version_stands_in_one_place(project):
    assert project["dynamic"] == ["version"] and "version" not in project
    assert f"\nversion: {sklearn_dptda.__version__}\n" in text("CITATION.cff")
    assert f"\n## {sklearn_dptda.__version__} (" in text("CHANGELOG.md")


def test_the_oldest_session_has_the_lower_bounds(project):
    extras = project["optional-dependencies"]
    bounds = names_and_least([*project["dependencies"], *extras["test"], *extras["pandas"]])
    pinned = dict(re.findall(r'^    "([\w.\[\]-]+)==([\d.]+)\.\*",$', text("noxfile.py"), re.M))
    assert len(bounds) >= 15
    assert pinned == bounds


def test_extras_agree_with_the_dependencies(project):
    bounds = names_and_least(project["dependencies"])
    for requirements in project["optional-dependencies"].values():
        for name, least in names_and_least(requirements).items():
            assert bounds.get(name, least) == least


def test_every_python_that_is_named_is_tested(project):
    named = {c.rpartition(" ")[2] for c in project["classifiers"] if re.search(r":: 3\.\d+$", c)}
    rows = re.search(r"^        python: \[(.*)\]$", text(".github/workflows/tests.yml"), re.M)[1]
    assert set(re.findall(r'"(3\.\d+)"', rows)) == named
    sessions = re.search(r"python=\[(.*)\]\)\ndef latest", text("noxfile.py"))[1]
    assert set(re.findall(r'"(3\.\d+)"', sessions)) == named
    assert f">={min(named, key=lambda v: int(v[2:]))}" == project["requires-python"]


@pytest.mark.parametrize("workflow", ["tests", "release"])
def test_workflows_can_be_read(workflow):
    yaml = pytest.importorskip("yaml")
    content = yaml.safe_load(text(f".github/workflows/{workflow}.yml"))
    assert content["permissions"] == {"contents": "read"}
    for job in content["jobs"].values():
        assert job["runs-on"] and all(("run" in step) != ("uses" in step) for step in job["steps"])


def test_the_notes_of_a_release():
    namespace = {"__file__": str(ROOT / ".ci" / "release_notes.py"), "__name__": "notes"}
    exec(text(".ci/release_notes.py"), namespace)
    assert namespace["version"]() == sklearn_dptda.__version__
    with pytest.raises(SystemExit, match="the tag says 99"):
        namespace["notes"]("99.0.0")
    if f"## {sklearn_dptda.__version__} (unreleased)" in text("CHANGELOG.md"):
        with pytest.raises(SystemExit, match="no dated section"):
            namespace["notes"](sklearn_dptda.__version__)
    else:
        assert namespace["notes"](sklearn_dptda.__version__)
