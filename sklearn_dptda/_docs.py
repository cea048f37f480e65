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
    # Data sets.
    "data_home": """
        data_home : str or path, default=None
            Folder that holds the file, an ``.npz`` of the loader's name. None: the
            folder named by the environment variable ``SKLEARN_DPTDA_DATA``, else
            scikit-learn's data folder. Nothing is downloaded.
    """,
    "table_parameters": """
        Parameters
        ----------
        data_home : str or path, default=None
            Folder that holds the file, an ``.npz`` of the loader's name. None: the
            folder named by the environment variable ``SKLEARN_DPTDA_DATA``, else
            scikit-learn's data folder. Nothing is downloaded.
        return_X_y : bool, default=False
            Whether to return ``(data, target)`` alone.
    """,
    "file_errors": """
        Raises
        ------
        FileNotFoundError
            If the file is not there; the message says where to get it.
        ValueError
            If the file does not hold the expected arrays.

        Warns
        -----
        UserWarning
            If the numbers in the file are not the published ones, by their sha256.
    """,
    "noise_and_seed": """
        noise : float, default=0.0
            Standard deviation of Gaussian noise on each coordinate.
        random_state : int, RandomState instance or None, default=None
            Seeds the generator. This is simulated data: no privacy is at stake.
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
