"""Files of a project. Each file is read and parsed once, for all rules."""

import ast
from functools import cache

# Folders that a build of the documentation fills.
BUILT = {"generated", "auto_examples", "_build"}


@cache
def text_of(path):
    """Return the text of a file."""
    return path.read_text(encoding="utf-8")


@cache
def nodes_of(path):
    """Return all nodes of the syntax tree of a program, from the top down."""
    return tuple(ast.walk(ast.parse(text_of(path))))


def sources(root):
    """Return the modules of the package."""
    return sorted((root / "sklearn_dptda").rglob("*.py"))


def pages(root):
    """Return the Markdown pages, without those that a build has made."""
    found = [*root.glob("*.md"), *(root / "doc").rglob("*.md")]
    return sorted(path for path in found if not BUILT & {*path.relative_to(root).parts})
