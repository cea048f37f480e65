"""Words and phrases that the style guide rules out are in no text of the project.

Texts are the Markdown pages, and the docstrings, messages and comments of the package and of the
examples.
"""

import ast
import io
import re
import tokenize

from files import nodes_of, pages, sources, text_of

# Words that the guide names as subjects to avoid, and its terms that have one clear replacement.
AVOIDED = re.compile(
    r"(?i:\b(whoever|somebody|nobody|mend(s|ed|ing)?|endless(ly)?|in earnest|(its|their|and) kin"
    r"|known beforehand|and the like|purse)\b)"
    # A clause as the subject of a sentence: "Who knows no bounds pays for them."
    r"|(^|[.:;] )Who \w+s\b[^?.]*\."
)
# Folders of one machine, which no reader has. They are ruled out in code as well.
MACHINE = re.compile(r"(?<![\w.~])/(?:home|root|work|Users)/[\w.-]+")


def style_guide(root):
    """Return the page that quotes what it rules out."""
    return root / "doc" / "style.md"


def checked_pages(root):
    """Return all pages except the guide."""
    return [page for page in pages(root) if page != style_guide(root)]


def sentences_before(root):
    """Return what stands under "Before" in the guide."""
    _, _, table = text_of(style_guide(root)).partition("## Before and after")
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("|")]
    return [row for row in rows[2:] if row]


def avoided_in(text):
    """Return the words and phrases of a text that are ruled out."""
    prose = re.sub(r"```.*?```", " ", text, flags=re.DOTALL)
    prose = " ".join(re.sub(r"`[^`\n]*`|\$[^$\n]*\$", " ", prose).split())
    found = [*AVOIDED.finditer(prose), *MACHINE.finditer(text)]
    return [match.group().strip(".:; ") for match in found]


def words_of(path):
    """Return docstrings, messages and comments of a program."""
    # Parts of one message stand in one constant of the tree, so that phrases across lines are seen.
    texts = [
        node.value
        for node in nodes_of(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    comments = [
        token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(text_of(path)).readline)
        if token.type == tokenize.COMMENT
    ]
    return " \n ".join([*texts, " ".join(comments)])


def avoided_words(root):
    """Name words on pages and in programs that are ruled out."""
    programs = [*sources(root), *sorted((root / "examples").rglob("*.py"))]
    texts = [(page, text_of(page)) for page in checked_pages(root)]
    for path, text in [*texts, *((path, words_of(path)) for path in programs)]:
        for found in avoided_in(text):
            yield path, f'"{found}" is ruled out. Use its replacement in doc/style.md, if any'


def old_sentences(root):
    """Name sentences on pages that the guide shows as examples of what to replace."""
    for page in checked_pages(root):
        text = " ".join(text_of(page).split())
        for old in sentences_before(root):
            if old in text:
                yield page, f'"{old}" stands under "Before" in doc/style.md. Replace it'
