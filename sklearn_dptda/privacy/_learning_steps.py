"""Steps of pipelines that learn from records without privacy, or protect another unit.

A private estimator looks for them among the steps before it, in the fits of pipelines in the call
stack, and :func:`learners_in` lists them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import sklearn.compose._column_transformer
import sklearn.pipeline
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, PolynomialFeatures
from sklearn.utils import get_tags

from sklearn_dptda.privacy._guarantee import kind_of_unit
from sklearn_dptda.privacy._warnings import frames


def learners_in(steps: Iterable[Any], public: bool = False) -> tuple[list[str], bool]:
    """Names of the steps that learn from records without privacy, and whether the output is public.

    ``public`` tells whether the input is public. Steps after a release in ``transform`` are
    post-processing.
    """
    names: list[str] = []
    for step in steps:
        found, public = _learners(step, public)
        names += found
    return names, public


def _learners(step: Any, public: bool) -> tuple[list[str], bool]:
    if step is None or isinstance(step, str):
        return [], public
    if isinstance(step, Pipeline):
        return learners_in([part for _, part in step.steps], public)
    if isinstance(step, FeatureUnion | ColumnTransformer):
        listed = getattr(step, "transformers", None) or step.transformer_list
        parts = [part for _, part, *_ in listed]
        # Columns that are not in the list go through the remainder.
        parts.append(getattr(step, "remainder", "drop"))
        each = [_learners(part, public) for part in parts if part != "drop"]
        names = [name for found, _ in each for name in found]
        return names, all(after for _, after in each) and (public or len(each) > 0)
    if isinstance(step, BaseSearchCV):
        return _learners(step.estimator, public)
    if hasattr(step, "_releasing_method"):
        return [], public or step._releasing_method() == "transform"
    return [type(step).__name__] * (not public and learns(step)), public


# Transformers of GUDHI that treat each sample by itself, for all values of their parameters.
_OF_ONE_SAMPLE = frozenset(
    {
        "BirthPersistenceTransform",
        "CechPersistence",
        "Clamping",
        "CubicalPersistence",
        "DiagramSelector",
        "DimensionSelector",
        "PersistenceLengths",
        "ProminentPoints",
        "RipsPersistence",
        "TimeDelayEmbedding",
        "WeightedCechPersistence",
    }
)
# Transformers of GUDHI that do so if a range is given, and the parameter that gives the range.
_RANGES = {
    "BettiCurve": "sample_range",
    "Entropy": "sample_range",
    "Landscape": "sample_range",
    "PersistenceImage": "im_range",
    "Silhouette": "sample_range",
}


def _learns_in_gudhi(step: Any) -> bool:
    """Whether the output of a GUDHI transformer for one sample depends on other samples."""
    name = type(step).__name__
    if name in ("TopologicalVector", "ComplexPolynomial"):
        # Without a threshold, the length of their output is determined by the largest diagram.
        return bool(step.threshold <= 0)
    if name == "Entropy" and step.mode == "scalar":
        return False
    if name in ("DiagramScaler", "Padding"):
        return bool(step.use)
    if name == "BettiCurve" and (step.predefined_grid is not None or step.resolution is None):
        return step.predefined_grid is None
    if name in _RANGES:
        return bool(np.isnan(np.asarray(getattr(step, _RANGES[name]), dtype=float)).any())
    return name not in _OF_ONE_SAMPLE


def learns(step: Any) -> bool:
    """Whether ``fit`` learns from the records. Estimators of this package say so themselves.

    Proof: doc/theory/people.md, "Maps of one record".
    """
    if hasattr(step, "_learns_records"):
        return bool(step._learns_records())
    if type(step).__module__.startswith("gudhi."):
        return _learns_in_gudhi(step)
    # The caller gives the constants of an imputer, and a frozen step was fitted before.
    constant = isinstance(step, SimpleImputer) and step.strategy == "constant"
    constant = constant and not step.add_indicator
    # An encoder with a public list of categories does not learn either, unless it counts them.
    # PolynomialFeatures only learns the number of columns.
    listed = isinstance(step, OneHotEncoder | OrdinalEncoder) and not (
        isinstance(step.categories, str) or step.min_frequency or step.max_categories
    )
    quiet = constant or listed or isinstance(step, FrozenEstimator | PolynomialFeatures)
    return bool(get_tags(step).requires_fit and not quiet)


# Composites in the call stack.

_COMPOSITES = {
    sklearn.pipeline.__file__: (Pipeline, FeatureUnion),
    sklearn.compose._column_transformer.__file__: (ColumnTransformer,),
}


def fits_around(
    within: Callable[..., Any] | None = None,
) -> Iterator[tuple[Any, Any, Any, Mapping[str, Any]]]:
    """Yield pipelines, unions and column transformers that are being fitted, and their arguments.

    Those around the innermost call of the function ``within`` are left out. If a part is fitted in
    a thread or process of its own, the composite is not found.
    """
    for frame in frames():
        if within is not None and frame.f_code is within.__code__:
            return
        kinds = _COMPOSITES.get(frame.f_code.co_filename)
        if kinds is None or not frame.f_code.co_name.startswith("fit"):
            continue
        found = frame.f_locals
        if isinstance(found.get("self"), kinds) and "X" in found:
            params = found.get("params", found.get("fit_params"))
            yield found["self"], found["X"], found.get("y"), params or {}


def place_of(estimator: Any, parts: Sequence[Any]) -> int | None:
    """Return the place of the part that is or holds an estimator, or a copy if fits are cached."""
    held = [[part, *nested(part)] for part in parts]
    for same in (lambda part: part is estimator, lambda part: type(part) is type(estimator)):
        for place, each in enumerate(held):
            if any(map(same, each)):
                return place
    return None


def nested(part: Any) -> list[Any]:
    """Return the values of the parameters of an estimator and of those that it holds."""
    known = hasattr(part, "get_params") and not isinstance(part, type)
    return list(part.get_params(deep=True).values()) if known else []


def _before(estimator: Any) -> Iterator[list[Any]]:
    """Yield the steps before an estimator in each pipeline that is being fitted."""
    for pipeline, *_ in fits_around():
        if isinstance(pipeline, Pipeline):
            steps = [part for _, part in pipeline.steps]
            place = place_of(estimator, steps)
            yield steps[: place or 0]


def learners_before(estimator: Any) -> list[str]:
    """Names of steps that learnt from records, in the pipelines that are fitting this estimator."""
    names: list[str] = []
    for steps in _before(estimator):
        names = learners_in(steps)[0] + names
    return names


def other_units_before(estimator: Any, unit: str) -> list[tuple[str, str]]:
    """Earlier steps that protect people while this one protects rows, or the other way round."""
    found = []
    for step in [step for steps in _before(estimator) for step in steps]:
        other = getattr(getattr(step, "privacy_guarantee_", None), "unit", unit)
        if (kind_of_unit(other) == "person") != (kind_of_unit(unit) == "person"):
            found.append((type(step).__name__, other))
    return found
