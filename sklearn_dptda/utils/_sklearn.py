"""The only module that imports what scikit-learn keeps private.

When scikit-learn moves one of these, one file changes.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Self, TypeVar

from sklearn.utils import Tags
from sklearn.utils._param_validation import HasMethods, Interval, Options, StrOptions
from sklearn.utils._set_output import _get_output_config

if TYPE_CHECKING:
    _Method = TypeVar("_Method", bound=Callable[..., object])

    def _fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[_Method], _Method]:
        """Say that a decorated method keeps its signature."""
        ...
else:
    from sklearn.base import _fit_context

__all__ = [
    "HasMethods",
    "Interval",
    "ListInputMixin",
    "ListOutputMixin",
    "Options",
    "StrOptions",
    "_fit_context",
    "_get_output_config",
]


# Estimators whose input, or output, is a list of objects rather than a table.


class ListInputMixin:
    """Take lists of clouds, functions or diagrams, no tables."""

    def __sklearn_tags__(self) -> Tags:
        """Describe the input: no table."""
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags


class ListOutputMixin:
    """Accept ``set_output`` and leave the output alone.

    A pipeline passes ``set_output`` on to each of its steps; a step that
    returns filtrations or diagrams has no table to wrap and says yes to any
    choice.
    """

    def set_output(self, *, transform: str | None = None) -> Self:
        """Do nothing: the output is a list, whatever container is asked for.

        Parameters
        ----------
        transform : str or None
            Ignored.

        Returns
        -------
        self
        """
        return self
