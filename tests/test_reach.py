"""Private names that tests share are imported in only one file."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent
REACH = ROOT / "_reach.py"


@cache
def from_imports(path):
    """All names that a file imports from modules, each with its module."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    imports = (node for node in nodes if isinstance(node, ast.ImportFrom))
    return [(node.module or "", alias.name) for node in imports for alias in node.names]


def imported(path):
    """Names that a file imports from private modules of the package, each with its module."""
    private = re.compile(r"sklearn_dptda\b.*\._[^_]")
    return {pair for pair in from_imports(path) if private.match(pair[0])}


def test_what_is_shared_is_imported_in_one_file():
    shared = imported(REACH)
    assert len(shared) > 30
    others = [path for path in ROOT.rglob("*.py") if path != REACH]
    assert {str(p): shared & imported(p) for p in others if shared & imported(p)} == {}


def test_what_two_tests_need_is_shared():
    seen = {}
    for path in ROOT.rglob("*.py"):
        for name in imported(path):
            seen.setdefault(name, []).append(path.name)
    assert {name: paths for name, paths in seen.items() if len(paths) > 1} == {}


def test_nothing_is_shared_that_nobody_needs():
    names = {name for _, name in imported(REACH)}
    pairs = (pair for path in ROOT.rglob("*.py") for pair in from_imports(path))
    used = {name for module, name in pairs if module == "tests._reach"}
    assert used == names
