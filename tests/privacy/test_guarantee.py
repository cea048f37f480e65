"""The statement of a guarantee: how it reads, and what it refuses."""

import pickle

import numpy as np
import pytest
from sklearn import config_context

from sklearn_dptda import PersistenceProfile, PrivacyAccountant, PrivatePersistence
from sklearn_dptda.cluster import DPLloyd
from tests._refusals import refuses
from tests.privacy._guarantees import guarantee


def test_guarantee_reads_as_two_sentences():
    good = guarantee(1.0, 1e-6)
    assert str(good).startswith("(epsilon=1, delta=1e-06)-differential privacy for replacing")
    assert str(good).count(". ") == 1 and str(good).endswith(" over guessing.")
    assert good.holds and "#2a7f62" in good._repr_html_()
    added = guarantee(1.0, 1e-6, adjacency="add-remove")
    assert "adding or removing one row" in str(added)


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ({"seeded": True}, "known seed"),
        ({"exact": False}, "nominal"),
        ({"public_parameters": False}, "computed from the data"),
    ],
)
def test_guarantee_says_what_spoils_it(flag, words):
    bad = guarantee(**flag)
    assert not bad.holds and words in str(bad) and "#b3541e" in bad._repr_html_()


def test_guarantee_says_plainly_that_there_is_no_privacy():
    none = guarantee(float("inf"))
    assert not none.holds and str(none).startswith("No privacy")


def test_guarantee_is_frozen_and_pickles():
    good = guarantee(rho=0.125)
    with pytest.raises(AttributeError):
        good.epsilon = 2.0
    assert pickle.loads(pickle.dumps(good)) == good


@pytest.mark.parametrize(
    "bad", [{"epsilon": -1.0}, {"epsilon": float("nan")}, {"delta": 1.0}, {"adjacency": "both"}]
)
def test_guarantee_refuses_impossible_numbers(bad):
    refuses(next(iter(bad)), guarantee, **bad)


def test_guarantee_sum_adds_epsilon_delta_and_rho():
    first = guarantee(1.0, 1e-6, rho=0.25)
    # A pure loss of 2 is 2-zCDP.
    both = first + guarantee(2.0, seeded=True)
    assert (both.epsilon, both.delta, both.rho) == (3.0, 1e-6, 2.25)
    assert (first + first).delta == 2e-6
    assert both.seeded and both.released == "a number; a number"
    words = "do not add: replace-one of one row, and replace-one"
    refuses(words, lambda: first + guarantee(unit="one point"))


# The display of a private estimator in a notebook.


X = np.random.default_rng(0).uniform(0, 1, (500, 2))


def shown(estimator):
    """The same page through both doors."""
    page = estimator._repr_mimebundle_()["text/html"]
    assert estimator._repr_html_().count("<div") == page.count("<div")
    return page


def test_html_shows_only_the_budget_before_fit():
    page = shown(DPLloyd(2, bounds=(0, 1)))
    assert "losses are not counted" in page and "differential privacy" not in page
    page = shown(DPLloyd(2, bounds=(0, 1), accountant=PrivacyAccountant(3.0)))
    assert "Privacy budget: epsilon=3" in page and "not counted" not in page


def test_html_shows_the_guarantee_and_what_remains_after_fit():
    budget = PrivacyAccountant(3.0)
    private = DPLloyd(2, 1.0, 0.0, bounds=(0, 1), accountant=budget, random_state=0)
    page = shown(private.fit(X))
    assert str(private.privacy_guarantee_) in page
    assert "Remaining: epsilon=2, delta=0" in page


@pytest.mark.conformance
def test_html_states_errors(filtration):
    private = PrivatePersistence(5.0).fit([filtration])
    assert private.error_statement_ in shown(private)
    profile = PersistenceProfile(1.0).fit([filtration])
    assert f"at most {profile.half_widths_[0]:.3g}" in shown(profile)


def test_html_names_a_ledger_that_is_gone(tmp_path):
    path = tmp_path / "budget.db"
    accountant = PrivacyAccountant(1.0, path=path)
    path.unlink()
    assert "cannot be read" in shown(DPLloyd(2, bounds=(0, 1), accountant=accountant))


def test_html_is_absent_where_the_display_is_text():
    with config_context(display="text"):
        assert not hasattr(DPLloyd(2), "_repr_html_")
        assert list(DPLloyd(2)._repr_mimebundle_()) == ["text/plain"]
