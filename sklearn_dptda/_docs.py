"""Paragraphs that many docstrings share.

A line ``%(name)s`` in the docstring of what :func:`fill_doc` decorates stands for the paragraph
of that name, at the line's own indentation.
"""

import re
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T", bound=Callable[..., object])

FRAGMENTS = {
    "epsilon": """
        epsilon : float, default=1.0
            Privacy loss of one fit. ``inf`` adds no noise.
    """,
    "privacy_and_accuracy": """
        D1 : array-like of shape (n_points, n_points)
            Distances of privacy.
        D2 : array-like of shape (n_points, n_points), default=None
            Distances of accuracy. None: the same.
        alpha : float, default=1.0
            Privacy loss per unit of ``D1``.
    """,
    "no_metric": """
        Raises
        ------
        ValueError
            If a matrix is no metric, or ``alpha`` is not positive.
    """,
    "out_of_range": """
        Raises
        ------
        ValueError
            If a parameter is out of range.
    """,
    "rate": """
        alpha : float, default=1.0
            Privacy loss per unit of distance.
    """,
    "pays_for_releases": """
        accountant : PrivacyAccountant, default=None
            Charged with ``alpha`` times the diameter of what can be released, the
            ``epsilon`` of the guarantee, for each release.
        random_state : int, RandomState instance, Generator or None, default=None
            None draws from the operating system's entropy; a seed is for tests and
            study only.
    """,
    "promise_of_releases": """
        privacy_guarantee_ : MetricPrivacyGuarantee
            What each release promises.
    """,
    "ignored_y_and_self": """
        y : Ignored

        Returns
        -------
        self
    """,
}


def _paragraph(text: str) -> list[str]:
    lines = text.strip("\n").rstrip().splitlines()
    margin = len(lines[0]) - len(lines[0].lstrip())
    return [line[margin:] for line in lines]


_PARAGRAPHS = {name: _paragraph(text) for name, text in FRAGMENTS.items()}


def fill_doc(documented: _T) -> _T:
    """Put the shared paragraphs into a docstring.

    Raises
    ------
    KeyError
        If there is no paragraph of a name.
    """

    def paragraph(match):
        indentation, name = match.groups()
        return "\n".join((indentation + line).rstrip() for line in _PARAGRAPHS[name])

    if documented.__doc__ is not None:  # as with ``python -OO``
        documented.__doc__ = re.sub(
            r"^( *)%\((\w+)\)s$", paragraph, documented.__doc__, flags=re.MULTILINE
        )
    return documented
