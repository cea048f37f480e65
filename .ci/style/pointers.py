"""Code names its proofs, proofs name their code and tests, and both exist."""

import re
from functools import cache

from _project import DOC, PACKAGE, ROOT, shown, sources, text_of, too_few

THEORY = DOC / "theory"
STEPS = DOC / "step_by_step.md"

PROOF = re.compile(r'doc/theory/(\w+\.md), "([^"]+)"\.')
POINTERS = re.compile(r"Code: (.+?)\. Test: (.+)\.")
LINK = re.compile(r"\[`([^`]+)`\]\(([^)]+)\)")
NAMED = re.compile(r"\[`[^`]+`\]\(([^)]+)\) \(((?:`\w+`(?:, )?)+)\)")

# Sections without a theorem, a sensitivity or a mechanism, and their content.
STATE_NOTHING = {
    ("accuracy.md", "How far apart they are"): "measurements",
    ("accuracy.md", "Slips of the text, in short"): "a summary of the sections above",
    ("error_bounds.md", "What it does not say"): "limits of the sections above",
    ("exact_sampler.md", "Limits"): "running times",
    ("graphs.md", "What nodes are"): "a definition",
    ("graphs.md", "Two ends of a pair"): "limits of the sections above",
    ("graphs.md", "References"): "literature",
    ("metric_privacy.md", "Diagrams"): "an application of the sections above",
    ("private_peaks.md", "What it cannot see"): "limits of the sections above",
    ("private_profiles.md", "Measured"): "measurements",
}


@cache
def theory_pages():
    """Return the pages with proofs."""
    return tuple(path for path in sorted(THEORY.glob("*.md")) if path.name != "index.md")


def sections(text):
    """Yield headings of the second level and the text below each."""
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, _, body = section.partition("\n")
        yield heading.strip(), body


@cache
def headings_of_pages():
    """Return the set of headings of each page with proofs."""
    return {
        path.name: {heading for heading, _ in sections(text_of(path))}
        | set(re.findall(r"^# (.+)$", text_of(path), flags=re.MULTILINE))
        for path in theory_pages()
    }


def proofs_of(source):
    """Yield pages and headings that a source names; None for text that is no such pointer."""
    text = re.sub(r"\s+(# )?", " ", source)
    for rest in text.split("Proof: ")[1:]:
        found = PROOF.match(rest)
        yield found.groups() if found else None


def wrong_proofs(source, headings):
    """Return pointers that name no heading of ``headings``, which has a set for each page."""
    return [
        pointer
        for pointer in proofs_of(source)
        if pointer is None or pointer[1] not in headings.get(pointer[0], ())
    ]


def is_defined(name, path):
    """Tell whether a file has a function or a class with this name."""
    return re.search(rf"^ *(?:def|class) {name}\b", text_of(path), flags=re.MULTILINE) is not None


def wrong_names(text, folder):
    """Return names in brackets after a link that the linked file does not define."""
    return [
        f"{link}: {name}"
        for link, names in NAMED.findall(text)
        for name in re.findall(r"\w+", names)
        if (folder / link).is_file() and not is_defined(name, folder / link)
    ]


def wrong_links(line, folder):
    """Yield what is wrong with the links of a line ``Code: ... Test: ...`` on a page of a folder.

    Code is named relative to the package, and tests relative to the project.
    """
    found = POINTERS.fullmatch(line)
    code, tests = (LINK.findall(part) for part in found.groups()) if found else ([], [])
    if not code or not tests:
        yield f"{line!r} is not of the form `Code: [links]. Test: [links].`"
    for base, links in ((PACKAGE, code), (ROOT, tests)):
        for name, link in links:
            target = (folder / link).resolve()
            if target != (base / name).resolve():
                yield f"the link {name} leads to {link}: it must lead to the file that it names"
            elif not target.is_file():
                yield f"{link} does not exist: name the file that has replaced it"
            elif base is ROOT and "def test_" not in text_of(target):
                yield f"{link} has no tests: name the file that has them"


def wrong_steps(page):
    """Return files that a page names and that do not exist, and names that theirs do not define."""
    wrong = [
        path
        for path in re.findall(r"`([\w./]+\.(?:py|md|rst))`", page)
        if not (PACKAGE / path).is_file() and not (ROOT / path).is_file()
    ]
    for path, names in re.findall(r"^\| `([\w/]+\.py)` \| ([^|]+) \|", page, flags=re.MULTILINE):
        if path not in wrong:
            wrong += [
                f"{path}: {name}"
                for name in re.findall(r"`(\w+)`", names)
                if not is_defined(name, PACKAGE / path)
            ]
    return wrong


def proofs_that_do_not_exist(checked=None):
    """Name pointers from code to sections of the theory that do not exist."""
    for path in sources() if checked is None else checked:
        for pointer in wrong_proofs(text_of(path), headings_of_pages()):
            what = '"Proof: " is not followed by a page and a heading'
            if pointer is not None:
                what = f'doc/theory/{pointer[0]} has no section "{pointer[1]}"'
            yield f'{shown(path)}: {what}. Write `Proof: doc/theory/NAME.md, "Heading".`'


def statements_without_code_and_test(checked=None):
    """Name sections of the theory without valid links to their code and their tests."""
    for page in theory_pages() if checked is None else checked:
        for heading, body in sections(text_of(page)):
            where = f'{shown(page)}, "{heading}"'
            lines = [line for line in body.splitlines() if line.startswith(("Code:", "Test:"))]
            if (page.name, heading) in STATE_NOTHING:
                if lines:
                    yield f"{where}: it names code. Remove it from STATE_NOTHING of pointers.py"
            elif not lines:
                yield f"{where}: say where the code and the test are, or why there are none"
            else:
                for line in lines:
                    for what in wrong_links(line, page.parent):
                        yield f"{where}: {what}"


def names_that_do_not_exist(checked=None):
    """Name functions and tests that the theory names and that their files do not define."""
    for page in theory_pages() if checked is None else checked:
        for wrong in wrong_names(text_of(page), page.parent):
            yield f"{shown(page)}: {wrong} is not defined there. Name what has replaced it"


def code_that_does_not_point_back(checked=None):
    """Name code that a section of the theory links, and that does not name its page."""
    for page in theory_pages() if checked is None else checked:
        for heading, body in sections(text_of(page)):
            for code, _ in POINTERS.findall(body):
                # Links to files that do not exist are named by another rule.
                for path in (PACKAGE / name for name, _ in LINK.findall(code)):
                    if path.is_file() and page.name not in {
                        pointer[0] for pointer in proofs_of(text_of(path)) if pointer
                    }:
                        yield (
                            f"{shown(path)}: {page.name} names this file as the code of "
                            f'"{heading}". Point back: `Proof: doc/theory/{page.name}, "..."`'
                        )


def old_exceptions():
    """Name entries of ``STATE_NOTHING`` whose section does not exist or that give no reason."""
    for (page, heading), reason in STATE_NOTHING.items():
        if heading not in headings_of_pages().get(page, ()) or not reason:
            yield (
                f'.ci/style/pointers.py: "{heading}" of {page} in STATE_NOTHING does not exist, '
                "or has no reason. Remove it or correct it"
            )


def steps_that_are_not_in_the_code(page=STEPS):
    """Name files and functions on the page of a release that do not exist."""
    for wrong in wrong_steps(text_of(page)):
        yield f"{shown(page)}: {wrong} does not exist. Name what has replaced it"


def little_was_read():
    """Report that the pages with proofs, the pointers to them or the steps were not found."""
    where = ".ci/style/pointers.py"
    n_pointers = sum(len(list(proofs_of(text_of(path)))) for path in sources())
    n_steps = len(re.findall(r"^\| `", text_of(STEPS), flags=re.MULTILINE))
    yield from too_few(where, "pages with proofs", len(theory_pages()), 15)
    yield from too_few(where, "pointers to proofs", n_pointers, 81)
    yield from too_few(where, "rows of tables in doc/step_by_step.md", n_steps, 31)


RULES = (
    proofs_that_do_not_exist,
    statements_without_code_and_test,
    names_that_do_not_exist,
    code_that_does_not_point_back,
    old_exceptions,
    steps_that_are_not_in_the_code,
    little_was_read,
)
