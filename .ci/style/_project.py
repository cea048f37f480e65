"""Files of the project. Each file is read and parsed once, for all rules."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "sklearn_dptda"
DOC = ROOT / "doc"
# Folders that a build of the documentation fills.
BUILT = {"generated", "auto_examples", "_build"}


@cache
def text_of(path):
    """Return the text of a file."""
    return path.read_text(encoding="utf-8")


@cache
def tree_of(path):
    """Return the syntax tree of a program."""
    return ast.parse(text_of(path))


@cache
def nodes_of(path):
    """Return all nodes of the syntax tree of a program, from the top down."""
    return tuple(ast.walk(tree_of(path)))


def shown(path):
    """Return a path as problems name it: relative to the project, with slashes."""
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name


@cache
def sources():
    """Return the modules of the package."""
    return tuple(sorted(PACKAGE.rglob("*.py")))


@cache
def pages():
    """Return the Markdown pages of the project, without those that a build has made."""
    found = [*ROOT.glob("*.md"), *DOC.rglob("*.md")]
    return tuple(sorted(path for path in found if not BUILT & {*path.relative_to(ROOT).parts}))


def too_few(where, what, count, least):
    """Yield a problem if a rule has seen less than the project has, because it is then broken."""
    if count < least:
        yield (
            f"{where}: this rule sees {count} {what}, and expects at least {least}. Correct the "
            "rule if it does not find them any more, or its number if they were removed"
        )
