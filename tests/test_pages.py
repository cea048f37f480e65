"""Numbers that pages state are on their pages, and today's code still gives them."""

from pathlib import Path

import pytest

DOC = Path(__file__).parent.parent / "doc"
pytestmark = pytest.mark.skipif(
    not DOC.is_dir(), reason="the pages are not beside the tests: an installed package"
)


@pytest.mark.conformance
def test_each_claim_has_its_text_once_on_its_page():
    from benchmarks.pages import CLAIMS

    numbers = [claim.printed() for claim in CLAIMS]
    assert sum(map(len, numbers)) > 80
    assert len({claim.page for claim in CLAIMS}) > 10


@pytest.mark.conformance
def test_text_that_left_its_page_is_named():
    from benchmarks.pages import Claim

    with pytest.raises(ValueError, match=r"README.md has the text 'gone \{\}' 0 times"):
        Claim("README.md", "gone {}", lambda: None).printed()


# Ten values 1 to 10: mean 5.5, standard error 0.957, and a median within ranks 1 to 10.
@pytest.mark.conformance
@pytest.mark.parametrize(
    ("printed", "found", "rule", "right"),
    [
        ("8.3", range(1, 11), "mean", True),
        ("8.5", range(1, 11), "mean", False),
        ("2.7", range(1, 11), "mean", True),
        ("2.5", range(1, 11), "mean", False),
        # 100 values have a median within ranks 35 and 65.
        ("64.5", range(1, 101), "median", True),
        ("68", range(1, 101), "median", False),
        ("7", [5.5], "ratio", True),
        ("3.5", [5.5], "ratio", False),
        ("7.5", [5.5], "ratio", False),
        # Four hits of four do not refute a share of 0.9, but one of 0.3.
        ("0.9", [1, 1, 1, 1], "share", True),
        ("0.3", [1, 1, 1, 1], "share", False),
        # What is computed has no error except for its rounding.
        ("0.10", [0.104], "mean", True),
        ("0.12", [0.104], "mean", False),
        ("1e-05", [1.5e-5], "mean", True),
        ("1e-05", [3e-5], "mean", False),
    ],
)
def test_printed_number_is_right_within_three_standard_errors_or_a_third(
    printed, found, rule, right
):
    from benchmarks.pages import verdict

    assert verdict(printed, list(found), rule)[2] is right


@pytest.mark.nightly
def test_no_number_of_the_pages_is_stale():
    from benchmarks.pages import CLAIMS, checked

    # Runs have seeds, so that nothing depends on chance. Times do depend on the machine.
    untimed = [claim for claim in CLAIMS if claim.page != "doc/measured/peers.md"]
    stale = [row for row in checked(untimed) if row[-1] != "right"]
    assert not stale, "\n".join(map(str, stale))
