"""The only module that imports what scikit-learn keeps private.

When scikit-learn moves one of these, one file changes.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    Options,
    StrOptions,
)
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
    "Options",
    "StrOptions",
    "_fit_context",
    "_get_output_config",
]
