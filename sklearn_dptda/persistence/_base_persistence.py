"""What persistence estimators share: reading filtrations and dimensions."""

from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from sklearn_dptda.filtration import GridFiltration
from sklearn_dptda.privacy._parameters import QuotedParametersMixin, quoted
from sklearn_dptda.utils import check_collection, refuse_lossy


def check_dimensions(homology_dimensions):
    """Return homology dimensions as a tuple, and whether a single one was given."""
    single = isinstance(homology_dimensions, Integral)
    dimensions = (homology_dimensions,) if single else tuple(homology_dimensions)
    if not dimensions:
        raise ValueError("homology_dimensions is empty.")
    if any(not isinstance(q, Integral) or q < 0 for q in dimensions):
        raise ValueError(
            f"homology_dimensions must be non-negative integers; got {quoted(homology_dimensions)}."
        )
    if len(set(dimensions)) < len(dimensions):
        raise ValueError(f"homology_dimensions has duplicates: {quoted(homology_dimensions)}.")
    return tuple(int(q) for q in dimensions), single


class BaseGridPersistence(QuotedParametersMixin, TransformerMixin, BaseEstimator):
    """What persistence estimators share: reading filtrations, shaping the output."""

    def _read(self, X):
        """Return a list of (values, sensitivity, upper), sensitivity None if not known."""
        stated = None if self.upper is None else float(self.upper)
        read = []
        for i, item in enumerate(check_collection(X)):
            if isinstance(item, GridFiltration):
                # A bound that the caller states applies on top of the one that travels along.
                upper = item.upper if stated is None else min(stated, item.upper)
                read.append((item.values, item.sensitivity, upper))
            else:
                read.append((_bare_values(item, f"X[{i}]"), None, stated))
        return read

    def _learns_records(self):
        return False

    def _shape(self, releases):
        return [diagrams[0] for diagrams in releases] if self.single_ else releases

    def __sklearn_tags__(self):
        """Describe the input: filtrations, no tables."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags


def _bare_values(item, name):
    refuse_lossy(item, name)
    try:
        values = np.asarray(item, dtype=float)
    except Exception:
        raise ValueError(f"{name} is neither a GridFiltration nor an array.") from None
    if values.ndim == 0 or values.size == 0:
        raise ValueError(f"{name} is empty or no array.")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} contains NaN or infinity.")
    return values
