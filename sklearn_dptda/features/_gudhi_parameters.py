"""Parameters of GUDHI's vectorisers: weights that pickle, ranges that are not set."""

import inspect
import math
from numbers import Real

import numpy as np


def persistence_weight(point):
    """Weight of a (birth, persistence) point in a persistence image: its persistence."""
    return point[1]


class DefaultParameter:
    """A default of another class's constructor, looked up when it is called.

    GUDHI's weights are anonymous functions, which do not pickle; this stands in for one of them
    and does.
    """

    def __init__(self, owner, name):
        self.owner, self.name = owner, name

    def __call__(self, point):
        """Call the default function."""
        return inspect.signature(self.owner).parameters[self.name].default(point)


def named_defaults(vectorizer):
    """Stand-ins for the anonymous functions among GUDHI's default parameters."""
    return {
        name: DefaultParameter(type(vectorizer), name)
        for name, value in vectorizer.get_params(deep=False).items()
        if getattr(value, "__name__", "") == "<lambda>"
        and getattr(value, "__module__", "").startswith("gudhi.")
    }


def is_unset(value):
    """Whether a range parameter is still GUDHI's default of NaNs."""
    if not isinstance(value, list | tuple | np.ndarray):
        return False
    return all(isinstance(v, Real) and math.isnan(v) for v in value)
