"""Code names its proofs, proofs name their code and tests, and both exist."""

import re
import runpy
from pathlib import Path

from files import pages, sources, text_of

PROOF = re.compile(r'doc/theory/(\w+\.md), "([^"]+)"\.')
POINTERS = re.compile(r"Code: (.+?)\. Test: (.+)\.")
LINK = re.compile(r"\[`([^`]+)`\]\(([^)]+)\)")
# A file in backticks, which may be a link.
FILE = r"`([\w./]+\.(?:py|md|rst))`(?:\]\([^)]*\))?"
# Names in brackets after a file, or in the next cell of a table.
NAMED = re.compile(FILE + r" (?:\(([^)]+)\)|\| ([^|]+) \|)")

# Sections without a theorem, a sensitivity or a mechanism.
STATE_NOTHING = {
    # Measurements, and a summary of other sections.
    "accuracy.md": {"How far apart they are", "Slips of the text, in short"},
    # Limits of other sections.
    "error_bounds.md": {"What it does not say"},
    # Running times.
    "exact_sampler.md": {"Limits"},
    # A definition, limits of other sections, and literature.
    "graphs.md": {"What nodes are", "Two ends of a pair", "References"},
    # An application of other sections.
    "metric_privacy.md": {"Diagrams"},
    # Limits of other sections.
    "private_peaks.md": {"What it cannot see"},
    # Measurements.
    "private_profiles.md": {"Measured"},
}
# The faults of the project are read by the command that plants them.
MUTANTS = Path(__file__).resolve().parents[2] / "tests" / "mutants" / "__main__.py"


def theory_pages(root):
    """Return the pages with proofs."""
    found = sorted((root / "doc" / "theory").glob("*.md"))
    return [path for path in found if path.name != "index.md"]


def sections(page):
    """Return headings of the second level, and the text below each."""
    return re.findall(r"^## (.+)\n((?:(?!## ).*\n?)*)", text_of(page), flags=re.MULTILINE)


def proofs_of(source):
    """Yield pages and headings that a source names; None for text that is no such pointer."""
    text = re.sub(r"\s+(# )?", " ", source)
    for rest in text.split("Proof: ")[1:]:
        found = PROOF.match(rest)
        yield found.groups() if found else None


def wrong_links(line, folder, root):
    """Yield what is wrong with the links of a line ``Code: ... Test: ...`` on a page of a folder.

    Code is named relative to the package, and tests relative to the project.
    """
    found = POINTERS.fullmatch(line)
    code, tests = (LINK.findall(part) for part in found.groups()) if found else ([], [])
    if not code or not tests:
        yield f"{line!r} is not of the form `Code: [links]. Test: [links].`"
    for base, links in ((root / "sklearn_dptda", code), (root, tests)):
        for name, link in links:
            target = (folder / link).resolve()
            if target != (base / name).resolve():
                yield f"the link {name} leads to {link}: it must lead to the file that it names"
            elif not target.is_file():
                yield f"{link} does not exist: name the file that has replaced it"
            elif base is root and "def test_" not in text_of(target):
                yield f"{link} has no tests: name the file that has them"


def proofs_that_do_not_exist(root):
    """Name pointers from code to sections of the theory that do not exist."""
    headings = {
        page.name: {heading for heading, _ in sections(page)}
        | set(re.findall(r"^# (.+)$", text_of(page), flags=re.MULTILINE))
        for page in theory_pages(root)
    }
    form = 'Write `Proof: doc/theory/NAME.md, "Heading".`'
    for path in sources(root):
        for pointer in proofs_of(text_of(path)):
            if pointer is None:
                yield path, f'"Proof: " is not followed by a page and a heading. {form}'
            elif pointer[1] not in headings.get(pointer[0], ()):
                yield path, f'doc/theory/{pointer[0]} has no section "{pointer[1]}". {form}'


def statements_without_code_and_test(root):
    """Name sections of the theory without valid links to their code and their tests."""
    for page in theory_pages(root):
        exempt = STATE_NOTHING.get(page.name, set())
        for heading in sorted(exempt - {heading for heading, _ in sections(page)}):
            yield page, f'it has no section "{heading}". Remove it from STATE_NOTHING'
        for heading, body in sections(page):
            lines = [line for line in body.splitlines() if line.startswith(("Code:", "Test:"))]
            if heading in exempt and lines:
                yield page, f'"{heading}": it names code. Remove it from STATE_NOTHING'
            elif heading not in exempt and not lines:
                yield page, f'"{heading}": say where the code and the test are'
            for line in lines:
                for what in wrong_links(line, page.parent, root):
                    yield page, f'"{heading}": {what}'


def code_that_does_not_point_back(root):
    """Name code that a section of the theory links, and that does not name its page."""
    for page in theory_pages(root):
        for heading, body in sections(page):
            for name, _ in LINK.findall(" ".join(code for code, _ in POINTERS.findall(body))):
                path = root / "sklearn_dptda" / name
                # Links to files that do not exist are named by another rule.
                if path.is_file() and page.name not in {
                    pointer[0] for pointer in proofs_of(text_of(path)) if pointer
                }:
                    yield (
                        path,
                        f'{page.name} names this file as the code of "{heading}". Point back: '
                        f'`Proof: doc/theory/{page.name}, "..."`',
                    )


def pointing_pages(root):
    """Return the pages that name files, and functions and tests in them."""
    pages = (root / "doc" / name for name in ("guarantees.md", "step_by_step.md"))
    return [*theory_pages(root), *(page for page in pages if page.exists())]


def file_of(name, root):
    """Return a file that is named relative to the package or to the project; None without it."""
    found = [root / "sklearn_dptda" / name, root / name]
    return next((path for path in found if path.is_file()), None)


def names_of(page):
    """Return files, and the names that a page gives for them."""
    return [
        (file, name)
        for file, bracket, cell in NAMED.findall(text_of(page))
        for name in re.findall(r"`(\w+)`", bracket + cell)
    ]


def names_that_do_not_exist(root):
    """Name functions and tests that pages name and that their files do not define."""
    for page in pointing_pages(root):
        for file, name in names_of(page):
            path = file_of(file, root)
            definition = rf"^ *(?:def|class) {name}\b"
            if path and not re.search(definition, text_of(path), flags=re.MULTILINE):
                yield page, f"{file} does not define {name}. Name what has replaced it"


def files_that_do_not_exist(root):
    """Name files that pages name and that do not exist.

    Sphinx follows the links of all pages in ``doc``, but not those of pages beside it.
    """
    for page in pages(root):
        text = text_of(page)
        named = re.findall(r"\bexamples/[\w/]+\.py", text)
        for names in re.findall(r"python -m benchmarks ([\w ]+)", text):
            named += [f"benchmarks/{name}.py" for name in names.split()]
        if page.parent == root:
            links = re.findall(r"\]\(([^)#\s]+)", text)
            named += [link for link in links if not re.match(r"\w+:", link)]
        if page in pointing_pages(root):
            named += re.findall(FILE, text)
        for name in sorted({*named}):
            if not (root / name).exists() and file_of(name, root) is None:
                yield page, f"{name} does not exist. Name what has replaced it"


def faults_that_cannot_be_planted(root):
    """Name faults of ``tests/mutants`` that the code has outgrown."""
    runner = runpy.run_path(str(MUTANTS), run_name="runner")
    for problem in runner["faults_that_cannot_be_planted"](root):
        where, _, what = problem.partition(": ")
        yield root / where, what
