"""The privacy guarantee of a whole pipeline."""

from dataclasses import replace
from functools import reduce
from operator import add

from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda.filtration._estimator import BaseFiltration
from sklearn_dptda.privacy import PrivacyGuarantee, PrivacyLeakWarning
from sklearn_dptda.privacy._learning_steps import learners_in
from sklearn_dptda.privacy._warnings import warn_caller

# Added to the description of the release if the last step learns from labels without privacy.
OF_LABELS = "; and what was learnt from labels, which count as public"


def pipeline_guarantee(pipeline: BaseEstimator) -> PrivacyGuarantee:
    """Return the privacy guarantee of a fitted pipeline.

    Parameters
    ----------
    pipeline : Pipeline, FeatureUnion or private estimator
        It must be fitted.

    Returns
    -------
    PrivacyGuarantee
        Guarantee of all releases of one ``fit`` or ``fit_transform`` together, by
        basic composition. It prints as a short text.

    Raises
    ------
    ValueError
        If no step is private, or if the steps have different privacy units or
        neighbours. Also for a search, whose best estimator does not show all
        releases.

    Warns
    -----
    PrivacyLeakWarning
        If a step without privacy has learnt from the records. Examples are a scaler
        before the private step, and a classifier of rows that
        :class:`~sklearn_dptda.decomposition.PrivatePCA` has projected. The guarantee
        then says that its parameters are not public.

    See Also
    --------
    planned_loss : The privacy loss of a pipeline before it is fitted.

    Notes
    -----
    .. rubric:: Privacy

    This function releases nothing. Steps after a step that releases in
    ``transform`` are post-processing. Steps before it must treat each record by
    itself, with public parameters. The function assumes this for a
    :class:`~sklearn.preprocessing.FunctionTransformer`. Only a private classifier
    protects labels: any other classifier, even of private features, learns the
    labels without privacy. A later ``transform`` or ``predict`` of a pipeline with
    a step that releases in ``transform`` is another release. A private box that
    two steps share is counted once.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_dptda import DTMFiltration, PrivatePersistence
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> from sklearn_dptda.model_selection import pipeline_guarantee
    >>> from sklearn_dptda.preprocessing import PrivateBounds
    >>> pipeline = make_pipeline(
    ...     DTMFiltration(0.2, bounds=PrivateBounds(0.5)), PrivatePersistence(1.0)
    ... )
    >>> diagrams = pipeline.fit_transform([make_two_circles(4000, random_state=0)])
    >>> print(pipeline_guarantee(pipeline))
    (epsilon=1.5, delta=0)-differential privacy for replacing one point of a cloud: ...
    """
    promised = enumerate(_promised(pipeline))
    # A release that several steps share counts once.
    guarantees = {promise.release_id or place: promise for place, promise in promised}
    if not guarantees:
        raise ValueError(f"no step of this {type(pipeline).__name__} is private.")
    total: PrivacyGuarantee = reduce(add, guarantees.values())
    last = pipeline[-1] if isinstance(pipeline, Pipeline) else pipeline
    if isinstance(last, BaseEstimator) and (is_classifier(last) or is_regressor(last)):
        protected = getattr(getattr(get_tags(last), "privacy", None), "labels", False)
        if not (protected or total.released.endswith(OF_LABELS)):
            total = replace(total, released=total.released + OF_LABELS)
    learners, _ = learners_in([pipeline])
    if learners:
        warn_caller(
            f"{', '.join(learners)} learnt from the records without privacy. The guarantee does "
            "not cover this. Move the step after a step that releases in transform, or fit it to "
            "public data.",
            PrivacyLeakWarning,
        )
        total = replace(total, public_parameters=False)
    return total


def _promised(step):
    """Return the guarantees of all releases within a step, with shared releases repeated."""
    # Transformers of other packages need not be estimators.
    if not hasattr(step, "get_params"):
        return []
    if isinstance(step, Pipeline | FeatureUnion):
        parts = step.steps if isinstance(step, Pipeline) else step.transformer_list
        return [guarantee for _, part in parts for guarantee in _promised(part)]
    if hasattr(step, "accountant") and hasattr(step, "_releases_ahead"):
        check_is_fitted(step, "privacy_guarantee_")
        return step._promises_apart()
    if isinstance(step, BaseFiltration):
        # The loss of a private box or of landmarks is part of the guarantee of the release.
        return []
    if any(hasattr(part, "_releasing_method") for part in step.get_params().values()):
        raise ValueError(
            f"{type(step).__name__} may have made many releases, whose number is unknown here. "
            "accountant.total() returns their loss."
        )
    return []
