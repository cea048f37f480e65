"""The structure of the package: subpackages import only from lower ones, without cycles."""

import ast
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import sklearn_dptda

ROOT = Path(sklearn_dptda.__file__).parent
# From the bottom up. A subpackage imports from itself and from those in lower rows.
FLOORS = (
    {"_typing", "_docs"},
    {"privacy"},
    {"utils"},
    {"rows"},
    {"preprocessing", "decomposition", "cluster", "discriminant_analysis", "population"},
    {"filtration", "metric_privacy", "graph"},
    {"persistence", "features"},
    {"theory"},
    {"model_selection"},
    {"plotting", "datasets"},
    {"sklearn_dptda"},
    {"_cli"},
    {"__main__"},
)


def module_name(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PATHS = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


@cache
def imports(module):
    """Modules of the package that one imports, also within functions and for types alone."""
    taken = set()
    for node in ast.walk(ast.parse(PATHS[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            taken |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} has a relative import"
            submodules = {f"{node.module}.{alias.name}" for alias in node.names}
            # The names of a package that are not modules come from its __init__.
            taken |= submodules & PATHS.keys() or {node.module}
    return {name for name in taken if name in PATHS}


def room(module):
    return [*module.split("."), "sklearn_dptda"][1]


def floor_of(name, floors):
    return next((i for i, names in enumerate(floors) if name in names), len(floors))


@pytest.mark.parametrize("module", PATHS)
def test_rooms_import_from_below(module):
    mine = floor_of(room(module), FLOORS)
    assert mine < len(FLOORS), "a room that the map does not know"
    for other in imports(module):
        if room(other) != room(module):
            assert floor_of(room(other), FLOORS) < mine, f"{module} imports {other}"


def test_no_circles():
    # Raises CycleError, which names a cycle. Imports from the __init__ of a package are resolved by
    # name.
    TopologicalSorter({module: imports(module) - {module} for module in PATHS}).prepare()


@pytest.mark.parametrize(
    "package", [name for name, path in PATHS.items() if path.name == "__init__.py"]
)
def test_folders_say_what_they_are(package):
    text = ast.get_docstring(ast.parse(PATHS[package].read_text(encoding="utf-8")))
    assert len([part for part in text.replace("\n", " ").split(". ") if part.strip()]) >= 2


def test_the_map_of_contributors_is_this_one():
    text = (ROOT.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block = next(part for part in text.split("```") if "noise, calibration" in part)
    lines = [line.split("  ")[0].split(", ") for line in block.strip().splitlines()]
    assert [set(names) for names in lines] == list(reversed(FLOORS))


def test_a_wrong_import_is_seen(monkeypatch, tmp_path):
    upward = tmp_path / "_upward.py"
    upward.write_text("def late():\n    from sklearn_dptda.cluster import ToMATo\n")
    monkeypatch.setitem(PATHS, "sklearn_dptda.privacy._upward", upward)
    with pytest.raises(AssertionError, match=r"_upward imports sklearn_dptda\.cluster"):
        test_rooms_import_from_below("sklearn_dptda.privacy._upward")


@pytest.mark.slow
def test_what_is_paid_for_is_computed_where_numpy_is_silent():
    # All payments of estimators use the block in which arithmetic warnings reveal nothing of
    # records.
    paying = {
        module
        for module, path in PATHS.items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "self._pay"
    }
    assert paying == {"sklearn_dptda.privacy._estimator"}
