"""Every estimator of tables passes all of scikit-learn's checks, without exceptions."""

import re
from pathlib import Path

import pytest
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_dptda.cluster import PrivateLandmarks
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.utils.discovery import all_estimators

TESTS = Path(__file__).parent


# The others are with the tests of their subpackages.
@pytest.mark.conformance
@pytest.mark.usefixtures("few_public_draws")
@parametrize_with_checks(
    [
        PrivateBounds(random_state=0),
        PrivateBounds(1.0, shape="box", random_state=0),
        PrivateLandmarks(n_landmarks=5, random_state=0),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def sources():
    return [path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py")]


def test_no_estimator_of_tables_is_forgotten(sources):
    lists = [
        part
        for source in sources
        for part in re.findall(r"@parametrize_with_checks\((.*?)\)\ndef ", source, flags=re.DOTALL)
        # If a list contains several kinds, their names are elsewhere in the file.
        for part in (part, *re.findall(r"^KINDS = .*$", source if "KINDS" in part else "", re.M))
    ]
    checked = set(re.findall(r"\b[A-Z]\w+", "\n".join(lists)))
    of_tables = {name for name, kind in all_estimators() if takes_tables(kind())}
    assert len(of_tables) >= 13
    assert of_tables <= checked


def takes_tables(estimator):
    return get_tags(estimator).input_tags.two_d_array


def test_no_check_is_expected_to_fail(sources):
    word = "expected_failed" + "_checks"
    assert not [source for source in sources if f"{word}=" in source]
