"""The only module that imports private names of scikit-learn.

If scikit-learn moves one of these names, only this file must change.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Self, TypeVar

from sklearn.utils import Tags
from sklearn.utils._param_validation import HasMethods, Interval, Options, StrOptions
from sklearn.utils._set_output import _get_output_config

if TYPE_CHECKING:
    _Method = TypeVar("_Method", bound=Callable[..., object])

    def _fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[_Method], _Method]:
        """Declare, for type checkers, that a decorated method keeps its signature."""
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


# The next two classes are for estimators whose input or output is a list of objects and not a
# table.


class ListInputMixin:
    """Mixin for estimators whose input is a list of clouds, functions or diagrams."""

    def __sklearn_tags__(self) -> Tags:
        """State in the tags that the input is not a table."""
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags


class ListOutputMixin:
    """Mixin for estimators whose output is a list, which ``set_output`` does not change.

    A pipeline calls ``set_output`` of each of its steps, but filtrations and diagrams are no
    tables.
    """

    def set_output(self, *, transform: str | None = None) -> Self:
        """Do nothing, because the output is always a list.

        Parameters
        ----------
        transform : Ignored

        Returns
        -------
        self
        """
        return self
