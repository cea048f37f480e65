"""Print the section of a version in the changelog, or fail: ``release_notes.py 0.1.0``.

The version stands in ``sklearn_dptda/__init__.py``, from where the build takes it; the citation
must name the same.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def version():
    """Version of the package, read without importing it."""
    source = (ROOT / "sklearn_dptda" / "__init__.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "(.+)"$', source, flags=re.MULTILINE)[1]


def notes(wanted):
    """Section of a version; an error where the release is not ready."""
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    if wanted != version() or f"\nversion: {wanted}\n" not in citation:
        sys.exit(f"the tag says {wanted}; __init__.py says {version()}, or CITATION.cff differs")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    section = re.search(
        rf"^## {re.escape(wanted)} \((.+)\)\n+(.*?)(?=^## |\Z)", changes, re.MULTILINE | re.DOTALL
    )
    if section is None or section[1] == "unreleased":
        sys.exit(f"CHANGELOG.md has no dated section for {wanted}")
    return section[2].strip()


if __name__ == "__main__":
    print(notes(sys.argv[1]))
