"""The display of a private estimator in a notebook."""

import numpy as np
import pytest
from sklearn import config_context

from sklearn_dptda import PersistenceProfile, PrivacyAccountant, PrivatePersistence
from sklearn_dptda.cluster import DPLloyd

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
