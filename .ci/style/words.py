"""The style guide is followed: words and phrases that it rules out are in no text of the project.

Texts are the Markdown pages, and the docstrings, messages and comments of the package and of the
examples.
"""

import ast
import io
import re
import tokenize

from _project import DOC, ROOT, nodes_of, pages, shown, sources, text_of, too_few

STYLE = DOC / "style.md"
# Words that the guide names as subjects to avoid, and its terms that have one clear replacement.
AVOIDED = re.compile(
    r"(?i:\b(whoever|somebody|nobody|mend(s|ed|ing)?|endless(ly)?|in earnest|(its|their|and) kin"
    r"|known beforehand|and the like|purse)\b)"
    # A clause as the subject of a sentence: "Who knows no bounds pays for them."
    r"|(^|[.:;] )Who \w+s\b[^?.]*\."
)


def old_sentences():
    """Return what stands under "Before" in the guide."""
    _, _, table = text_of(STYLE).partition("## Before and after")
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("|")]
    return [row for row in rows[2:] if row]


def avoided_in(text):
    """Return the words and phrases of a text that the guide rules out, except in code."""
    text = re.sub(r"```.*?```", " ", text, flags=re.DOTALL)
    text = " ".join(re.sub(r"`[^`\n]*`|\$[^$\n]*\$", " ", text).split())
    return [match.group().strip(".:; ") for match in AVOIDED.finditer(text)]


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


def checked_pages():
    """Return all pages except the guide, which quotes what it rules out."""
    return [page for page in pages() if page != STYLE]


def programs():
    """Return the modules of the package and the examples."""
    return [*sources(), *sorted((ROOT / "examples").rglob("*.py"))]


def avoided_words_on_pages(checked=None):
    """Name words on pages that the style guide rules out."""
    checked = checked_pages() if checked is None else checked
    for page in checked:
        for found in avoided_in(text_of(page)):
            yield f'{shown(page)}: "{found}" is ruled out by doc/style.md. Use its replacement'


def avoided_words_in_programs(checked=None):
    """Name words in docstrings, messages and comments that the style guide rules out."""
    checked = programs() if checked is None else checked
    for path in checked:
        for found in avoided_in(words_of(path)):
            yield f'{shown(path)}: "{found}" is ruled out by doc/style.md. Use its replacement'


def old_sentences_on_pages(checked=None):
    """Name sentences on pages that the style guide shows as examples of what to replace."""
    checked = checked_pages() if checked is None else checked
    for page in checked:
        text = " ".join(text_of(page).split())
        for old in old_sentences():
            if old in text:
                yield f'{shown(page)}: "{old}" stands under "Before" in doc/style.md. Replace it'


def little_was_read():
    """Report that pages, programs or sentences of the guide were not found."""
    where = ".ci/style/words.py"
    yield from too_few(where, 'sentences under "Before" in doc/style.md', len(old_sentences()), 20)
    yield from too_few(where, "pages", len(checked_pages()), 50)
    yield from too_few(where, "programs", len(programs()), 200)


RULES = (
    avoided_words_on_pages,
    avoided_words_in_programs,
    old_sentences_on_pages,
    little_was_read,
)
