"""Which steps of a pipeline learn from records without privacy."""

import sys
from collections.abc import Iterable
from types import FrameType
from typing import Any

import sklearn.pipeline
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils import get_tags


def learners_in(steps: Iterable[Any], public: bool = False) -> tuple[list[str], bool]:
    """Names of the steps that learn records without privacy, and whether the output is public.

    ``public`` says so of the input. What follows a release in ``transform`` is post-processing.
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
        # What is in no column of the list goes through the remainder.
        parts.append(getattr(step, "remainder", "drop"))
        each = [_learners(part, public) for part in parts if part != "drop"]
        names = [name for found, _ in each for name in found]
        return names, all(after for _, after in each) and (public or len(each) > 0)
    if isinstance(step, BaseSearchCV):
        return _learners(step.estimator, public)
    if hasattr(step, "_releasing_method"):
        return [], public or step._releasing_method() == "transform"
    return [type(step).__name__] * (not public and _learns(step)), public


def _learns(step: Any) -> bool:
    """Whether ``fit`` keeps what records say; estimators of this package know it themselves."""
    if hasattr(step, "_learns_records"):
        return bool(step._learns_records())
    # Constants are the caller's, and a frozen step has learnt before.
    constant = isinstance(step, SimpleImputer) and step.strategy == "constant"
    # A public list of categories teaches nothing either, nor does the number of columns.
    listed = not isinstance(getattr(step, "categories", "auto"), str)
    quiet = constant or listed or isinstance(step, FrozenEstimator | PolynomialFeatures)
    return bool(get_tags(step).requires_fit and not quiet)


def learners_before(estimator: Any) -> list[str]:
    """Names of what has learnt records in the pipelines that are fitting this estimator now.

    An estimator does not know its pipeline: the calls that lead here do. Where a step is fitted in
    a thread or process of its own, nothing is found.
    """
    names: list[str] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == sklearn.pipeline.__file__:
            pipeline = frame.f_locals.get("self")
            if isinstance(pipeline, Pipeline) and frame.f_code.co_name.startswith("fit"):
                names = learners_in(_before(pipeline, estimator))[0] + names
        frame = frame.f_back
    return names


def _before(pipeline: Pipeline, estimator: Any) -> list[Any]:
    """Steps before the one that is the estimator, or holds it, or a copy where fits are cached."""
    steps = [part for _, part in pipeline.steps]
    held = [[part, *_values(part)] for part in steps]
    for same in (lambda part: part is estimator, lambda part: type(part) is type(estimator)):
        for place, parts in enumerate(held):
            if any(map(same, parts)):
                return steps[:place]
    return []


def _values(part: Any) -> Iterable[Any]:
    return part.get_params(deep=True).values() if hasattr(part, "get_params") else ()
