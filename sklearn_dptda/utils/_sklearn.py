"""The only module that imports private names of scikit-learn.

If scikit-learn moves one of these names, only this file must change.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils._param_validation import HasMethods, Interval, Options, StrOptions
from sklearn.utils._set_output import _get_output_config

from sklearn_dptda.privacy._every_estimator import with_progress, without_weights

_Method = TypeVar("_Method", bound=Callable[..., Any])

if TYPE_CHECKING:

    def _fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[_Method], _Method]:
        """Declare, for type checkers, that a decorated method keeps its signature."""
        ...
else:
    from sklearn.base import _fit_context as _context_of_fit

    def _fit_context(*, prefer_skip_nested_validation):
        """Decorate a fit as scikit-learn does, and such that callbacks follow its progress."""
        decorate = _context_of_fit(prefer_skip_nested_validation=prefer_skip_nested_validation)
        return lambda fit: without_weights(decorate(with_progress(fit)))


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
    """Mixin for estimators whose output is no table, which ``set_output`` does not change.

    A pipeline calls ``set_output`` and ``get_feature_names_out`` of each of its steps, but
    filtrations, diagrams and graphs have no columns.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # Otherwise a configuration that asks for data frames would apply, as there are names.
        super().__init_subclass__(auto_wrap_output_keys=None, **kwargs)  # type: ignore[call-arg]

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Names for the steps before and after this one; the output itself has no columns.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names that are passed on.

        Returns
        -------
        ndarray of str
            The given names, or none.
        """
        names = () if input_features is None else input_features
        return np.asarray(names, dtype=object)

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
