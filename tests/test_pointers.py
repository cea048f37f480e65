"""Code names its proofs, proofs name their code and tests, and both exist."""

import re
from pathlib import Path

import pytest

import sklearn_dptda

PACKAGE = Path(sklearn_dptda.__file__).parent
ROOT = Path(__file__).parent.parent
DOC = ROOT / "doc"
THEORY = DOC / "theory"

pytestmark = pytest.mark.skipif(
    not DOC.is_dir(), reason="the documentation is not beside the tests: an installed package"
)

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


def pages():
    return [path for path in sorted(THEORY.glob("*.md")) if path.name != "index.md"]


def sections(text):
    """Headings of the second level and the text below each."""
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, _, body = section.partition("\n")
        yield heading.strip(), body


def proofs_of(source):
    """Pages and headings that a source names; what is no pointer after ``Proof:`` gives None."""
    text = re.sub(r"\s+(# )?", " ", source)
    for rest in text.split("Proof: ")[1:]:
        found = PROOF.match(rest)
        yield found.groups() if found else None


def wrong_proofs(source, headings):
    """Pointers of a source that name no heading of ``headings``, which has a set for each page."""
    return [
        pointer
        for pointer in proofs_of(source)
        if pointer is None or pointer[1] not in headings.get(pointer[0], ())
    ]


def headings_of_pages():
    return {
        path.name: {heading for heading, _ in sections(path.read_text(encoding="utf-8"))}
        | set(re.findall(r"^# (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE))
        for path in pages()
    }


def sources():
    return sorted(PACKAGE.rglob("*.py"))


@pytest.mark.slow
def test_proofs_that_code_names_exist():
    headings, n_pointers = headings_of_pages(), 0
    for path in sources():
        source = path.read_text(encoding="utf-8")
        assert wrong_proofs(source, headings) == [], path
        n_pointers += len(list(proofs_of(source)))
    assert n_pointers > 80


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_each_statement_names_its_code_and_its_test(page):
    for heading, body in sections(page.read_text(encoding="utf-8")):
        lines = [line for line in body.splitlines() if line.startswith(("Code:", "Test:"))]
        if (page.name, heading) in STATE_NOTHING:
            assert lines == [], f"{heading} is in STATE_NOTHING, and names code"
            continue
        assert lines, f"{heading}: say where the code and the test are, or why there are none"
        for line in lines:
            found = POINTERS.fullmatch(line)
            assert found, f"{heading}: {line}"
            code, tests = (LINK.findall(part) for part in found.groups())
            assert code and tests, f"{heading}: {line}"
            for name, link in code:
                assert (page.parent / link).resolve() == (ROOT / "sklearn_dptda" / name).resolve()
                assert (page.parent / link).is_file(), f"{heading}: {link}"
            for name, link in tests:
                assert (page.parent / link).resolve() == (ROOT / name).resolve()
                assert (page.parent / link).is_file(), f"{heading}: {link}"
                assert "def test_" in (ROOT / name).read_text(encoding="utf-8")


def wrong_names(text, folder):
    """Names in brackets after a link that the linked file does not define."""
    return [
        f"{link}: {name}"
        for link, names in NAMED.findall(text)
        for name in re.findall(r"\w+", names)
        if not re.search(
            rf"^ *(?:def|class) {name}\b", (folder / link).read_text("utf-8"), flags=re.MULTILINE
        )
    ]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_functions_and_tests_that_a_proof_names_exist(page):
    assert wrong_names(page.read_text(encoding="utf-8"), page.parent) == []


def test_wrong_names_are_caught(tmp_path):
    (tmp_path / "a.py").write_text("def one():\n    pass\n", encoding="utf-8")
    assert wrong_names("Code: [`a.py`](a.py) (`one`, `two`).", tmp_path) == ["a.py: two"]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_code_that_a_proof_names_points_back(page):
    for heading, body in sections(page.read_text(encoding="utf-8")):
        for code, _ in POINTERS.findall(body):
            for name, _ in LINK.findall(code):
                source = (PACKAGE / name).read_text(encoding="utf-8")
                named = {pointer[0] for pointer in proofs_of(source) if pointer}
                assert page.name in named, f"{name} does not name {page.name}, {heading}"


def test_sections_that_state_nothing_exist():
    headings = headings_of_pages()
    assert [key for key in STATE_NOTHING if key[1] not in headings[key[0]]] == []
    assert all(STATE_NOTHING.values())


@pytest.mark.parametrize(
    "source, expected",
    [
        ('"""Draws.\n\nProof: doc/theory/a.md, "One".\n"""', []),
        ('"""Draws.\n\n    Proof: doc/theory/a.md,\n    "A long one".\n"""', []),
        ('# Proof: doc/theory/a.md, "A long\n# one".', []),
        ('"""Proof: doc/theory/a.md, "one"."""', [("a.md", "one")]),
        ('"""Proof: doc/theory/b.md, "One"."""', [("b.md", "One")]),
        ('"""Proof: doc/theory/a.md, "One"\n"""', [None]),
        ('"""Proof: theory/a.md, "One"."""', [None]),
    ],
)
def test_wrong_pointers_are_caught(source, expected):
    assert wrong_proofs(source, {"a.md": {"One", "A long one"}}) == expected


def wrong_steps(page, package, root):
    """Files that a page names and that do not exist, and names that are not defined in theirs."""
    wrong = [
        path
        for path in re.findall(r"`([\w/]+\.(?:py|md|rst))`", page)
        if not (package / path).is_file() and not (root / path).is_file()
    ]
    for path, names in re.findall(r"^\| `([\w/]+\.py)` \| ([^|]+) \|", page, flags=re.MULTILINE):
        if path in wrong:
            continue
        source = (package / path).read_text(encoding="utf-8")
        wrong += [
            f"{path}: {name}"
            for name in re.findall(r"`(\w+)`", names)
            if not re.search(rf"^ *(?:def|class) {name}\b", source, flags=re.MULTILINE)
        ]
    return wrong


def test_steps_of_a_release_are_those_of_the_code():
    page = (DOC / "step_by_step.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^\| `", page, flags=re.MULTILINE)) > 30
    assert wrong_steps(page, PACKAGE, ROOT) == []


@pytest.mark.parametrize(
    "page, expected",
    [
        ("`rows/_rows.py` and `tests/test_pointers.py`", []),
        ("`rows/_gone.py`", ["rows/_gone.py"]),
        ("| `rows/_rows.py` | `Rows`, `gone` | sums |", ["rows/_rows.py: gone"]),
    ],
)
def test_wrong_steps_are_caught(page, expected):
    assert wrong_steps(page, PACKAGE, ROOT) == expected
