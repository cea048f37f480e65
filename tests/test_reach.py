"""Private names that tests share are imported in only one file."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent
REACH = ROOT / "_reach.py"


def imported(path):
    """Names that a file imports from private modules of the package, each with its module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        module = getattr(node, "module", None) or ""
        if re.match(r"sklearn_dptda\b.*\._[^_]", module):
            yield from ((module, alias.name) for alias in node.names)


def test_what_is_shared_is_imported_in_one_file():
    shared = set(imported(REACH))
    assert len(shared) > 30
    others = [path for path in ROOT.rglob("*.py") if path != REACH]
    assert {str(p): shared & set(imported(p)) for p in others if shared & set(imported(p))} == {}


def test_what_two_tests_need_is_shared():
    seen = {}
    for path in ROOT.rglob("*.py"):
        for name in set(imported(path)):
            seen.setdefault(name, []).append(path.name)
    assert {name: paths for name, paths in seen.items() if len(paths) > 1} == {}


def test_nothing_is_shared_that_nobody_needs():
    names = {name for _, name in imported(REACH)}
    used = set()
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "tests._reach":
                used |= {alias.name for alias in node.names}
    assert used == names
