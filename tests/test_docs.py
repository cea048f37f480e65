"""Shared paragraphs of docstrings."""

import inspect

from sklearn_dptda._docs import FRAGMENTS, fill_doc
from tests._refusals import refuses


def test_fill_doc_indents_a_paragraph_as_its_line():
    @fill_doc
    class Estimator:
        """Fit.

        Parameters
        ----------
        %(epsilon)s
        other : int
        """

    filled = inspect.cleandoc(Estimator.__doc__)
    first, *others = inspect.cleandoc(FRAGMENTS["epsilon"]).splitlines()
    lines = "\n".join([first, *others])
    assert others and f"----------\n{lines}\nother : int" in filled
    assert first.startswith("epsilon : float")
    assert all(line.startswith("    ") for line in others)


def test_fill_doc_refuses_unknown_paragraphs_and_leaves_percent_signs_alone():
    refuses(None, fill_doc, type("Estimator", (), {"__doc__": "%(nothing)s"}), error=KeyError)
    assert fill_doc(type("Estimator", (), {})).__doc__ is None
    kind = type("Estimator", (), {"__doc__": "100 %\nas %(epsilon)s here"})
    assert fill_doc(kind).__doc__ == "100 %\nas %(epsilon)s here"
