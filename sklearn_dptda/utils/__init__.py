"""Validation, containers, the privacy checks, the door to scikit-learn's private helpers.

Everything above uses it; it uses ``privacy`` alone.
"""

from sklearn_dptda.utils._bounds import bounds_from_data, check_bounds, diameter
from sklearn_dptda.utils._box import Box
from sklearn_dptda.utils._clouds import (
    check_cloud,
    check_collection,
    first_places,
    refuse_repeated,
)
from sklearn_dptda.utils._diagrams import as_diagram
from sklearn_dptda.utils._lossy import refuse_lossy
from sklearn_dptda.utils._output import ListOutputMixin

__all__ = [
    "Box",
    "ListOutputMixin",
    "as_diagram",
    "bounds_from_data",
    "check_bounds",
    "check_cloud",
    "check_collection",
    "diameter",
    "first_places",
    "refuse_lossy",
    "refuse_repeated",
]
