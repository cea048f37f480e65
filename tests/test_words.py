"""The style guide is held to: words and phrases that it rules out are in no text of the project."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Without documentation beside them, as in a copy of the tests alone, there is nothing to read.
STYLE = ROOT / "doc" / "style.md"
pytestmark = pytest.mark.skipif(not STYLE.is_file(), reason="the documentation is not here")

# Words that the guide names as subjects to avoid, and its terms that have one clear replacement.
AVOIDED = re.compile(
    r"(?i:\b(whoever|somebody|nobody|mend(s|ed|ing)?|endless(ly)?|in earnest|(its|their|and) kin"
    r"|known beforehand|and the like|purse)\b)"
    # A clause as the subject of a sentence: "Who knows no bounds pays for them."
    r"|(^|[.:;] )Who \w+s\b[^?.]*\."
)
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
PAGES += [path for path in sorted((ROOT / "doc").rglob("*.md")) if path != STYLE]
PAGES = [
    page for page in PAGES if page.is_file() and not {"generated", "auto_examples"} & {*page.parts}
]
SOURCES = sorted((ROOT / "sklearn_dptda").rglob("*.py")) + sorted((ROOT / "examples").rglob("*.py"))


def old_sentences():
    """What stands under "Before" in the guide."""
    text = STYLE.read_text(encoding="utf-8")
    table = text[text.index("## Before and after") :]
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("|")]
    return [row for row in rows[2:] if row]


def plain(text):
    """Text on one line, without code and formulas."""
    text = re.sub(r"```.*?```", " ", text, flags=re.DOTALL)
    return " ".join(re.sub(r"`[^`\n]*`|\$[^$\n]*\$", " ", text).split())


def words_of(path):
    """Docstrings, comments and messages of a program."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    # Parts of one message stand in one tuple of the tree, so that phrases across lines are seen.
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    comments = [
        token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    ]
    return " \n ".join([*texts, " ".join(comments)])


def found_in(text):
    text = plain(text)
    return [match.group() for match in AVOIDED.finditer(text)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_follow_the_style_guide(page):
    text = page.read_text(encoding="utf-8")
    assert found_in(text) == []
    said = " ".join(text.split())
    assert [old for old in old_sentences() if old in said] == []


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_programs_follow_the_style_guide(source):
    assert found_in(words_of(source)) == []


def test_the_guide_has_its_examples_and_the_words_are_found():
    assert len(old_sentences()) >= 20
    for text in (
        "Whoever reads this.",
        "Who knows no bounds pays for them.",
        "It is mended.",
        "`StandardScaler` and its kin",
        "bounds that nobody knows",
    ):
        assert found_in(text)
    for text in ("Who is it for?", "It recommends a fix.", "the kinetic energy", "`whoever`"):
        assert not found_in(text)
