"""Landmarks of a filtration: public, from a fitted private model, or private and fitted here.

Proof: doc/theory/landmarks.md, "Private landmarks".
"""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator

from sklearn_dptda.cluster import PrivateLandmarks
from sklearn_dptda.cluster._private_landmarks import N_DRAWN, distances_to, on_ridges
from sklearn_dptda.filtration._cloud import Cloud
from sklearn_dptda.filtration._complex import LandmarkComplex
from sklearn_dptda.filtration._estimator import AnyCloud
from sklearn_dptda.privacy import PrivacyGuarantee
from sklearn_dptda.privacy._guarantee import kind_of_unit
from sklearn_dptda.utils._validation import check_cloud


def find_landmarks(
    given: ArrayLike | LandmarkComplex | BaseEstimator, clouds: list[AnyCloud], unit: str
) -> tuple[LandmarkComplex, PrivacyGuarantee | None, list[str]]:
    """Return the complex, the guarantee of private landmarks, and warnings to issue.

    Private landmarks are fitted to clouds of ``unit`` records, which spends privacy budget.
    """
    n_features = clouds[0].n_features
    if isinstance(given, PrivateLandmarks):
        _check_adjacency(given.adjacency)
        in_memory = [cloud for cloud in clouds if isinstance(cloud, Cloud)]
        if len(in_memory) < len(clouds):
            raise ValueError(
                "landmarks=PrivateLandmarks() is fitted to points, which a histogram does not "
                "have. Fit it where the points are, and pass the fitted object in a "
                "FrozenEstimator."
            )
        private = clone(given)
        ids = [cloud.ids for cloud in in_memory] if in_memory[0].of_people else None
        remarks = private._fit_clouds([cloud.points for cloud in in_memory], ids, unit)
        return _complex_of(private), private.privacy_guarantee_, remarks
    guarantee = None
    if isinstance(given, BaseEstimator):
        given, guarantee = _of_fitted(given, unit)
    if not isinstance(given, LandmarkComplex):
        given = LandmarkComplex(check_cloud(given, "landmarks"))
        if not np.ptp(given.landmarks, axis=0).any():
            raise ValueError("landmarks are all at one place. Pass at least two different places.")
    if given.landmarks.shape[1] != n_features:
        raise ValueError(
            f"landmarks has {given.landmarks.shape[1]} columns, but the point clouds have "
            f"{n_features}. Both must have the same columns."
        )
    return given, guarantee, []


def _of_fitted(model: BaseEstimator, unit: str) -> tuple[LandmarkComplex, PrivacyGuarantee]:
    """Return the complex on the landmarks of a fitted private model, and the model's guarantee."""
    model = model.estimator if isinstance(model, FrozenEstimator) else model
    guarantee = getattr(model, "privacy_guarantee_", None)
    if guarantee is None:
        raise ValueError(
            f"landmarks is a {type(model).__name__} without privacy_guarantee_. Pass "
            "PrivateLandmarks, or a fitted private estimator in a FrozenEstimator, which cloning "
            "leaves fitted."
        )
    _check_adjacency(guarantee.adjacency)
    if kind_of_unit(guarantee.unit) != kind_of_unit(unit):
        raise ValueError(
            f"landmarks protects {guarantee.unit}, but the filtration protects {unit}. Pass groups "
            "to both, or to neither."
        )
    if hasattr(model, "landmarks_"):
        complex = _complex_of(model)
    elif hasattr(model, "cluster_centers_"):
        complex = LandmarkComplex(model.cluster_centers_)
    elif hasattr(model, "sample"):
        # Rows that are sampled from a private model are post-processing, so the seed is public.
        drawn = np.asarray(model.sample(N_DRAWN, random_state=0), dtype=float)
        landmarks = on_ridges(drawn, PrivateLandmarks().n_landmarks)
        reach = float(distances_to(landmarks, drawn).max())
        complex = LandmarkComplex(landmarks, reach=reach)
    else:
        raise ValueError(
            f"landmarks is a {type(model).__name__}, which has neither sample nor "
            "cluster_centers_. Pass an estimator that has one of them."
        )
    return complex, replace(guarantee, unit=unit)


def _complex_of(fitted: PrivateLandmarks) -> LandmarkComplex:
    return LandmarkComplex(fitted.landmarks_, int(fitted.dimension), fitted.reach_)


def _check_adjacency(adjacency: str) -> None:
    if adjacency != "replace-one":
        raise ValueError(
            "landmarks must have adjacency='replace-one', because filtrations treat the number of "
            "points as public."
        )
