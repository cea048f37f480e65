"""Validation, containers, the privacy checks, the door to scikit-learn's private helpers.

Everything above uses it; it uses ``privacy`` alone.
"""

from sklearn_dptda.utils._bounds import bounds_from_data, check_bounds, diameter
from sklearn_dptda.utils._clouds import (
    check_cloud,
    check_collection,
    first_places,
    refuse_repeated,
)
from sklearn_dptda.utils._distances import as_diagram
from sklearn_dptda.utils._frames import refuse_lossy
from sklearn_dptda.utils._sklearn import ListOutputMixin

__all__ = [
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
