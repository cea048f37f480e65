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
