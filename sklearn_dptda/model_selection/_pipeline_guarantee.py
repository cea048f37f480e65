"""What a whole pipeline promises, in one guarantee."""

from dataclasses import replace
from functools import reduce
from operator import add

from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda.filtration._estimator import BaseFiltration
from sklearn_dptda.privacy import PrivacyGuarantee, PrivacyLeakWarning
from sklearn_dptda.privacy._estimator import learners_in
from sklearn_dptda.privacy._warnings import warn_caller

_OF_LABELS = "; and what was learnt from labels, which count as public"


def pipeline_guarantee(pipeline: BaseEstimator) -> PrivacyGuarantee:
    """Add up what the steps of a fitted pipeline promise.

    Parameters
    ----------
    pipeline : Pipeline, FeatureUnion or private estimator
        Fitted.

    Returns
    -------
    PrivacyGuarantee
        Of everything that one ``fit``, or ``fit_transform``, lets out: its
        losses added by basic composition. Prints as one sentence.

    Raises
    ------
    ValueError
        If no step is private; if steps speak of different records or
        neighbours; of a search, which has made more releases than its best
        estimator shows.

    Warns
    -----
    PrivacyLeakWarning
        If a step without privacy has learnt from the records, such as a scaler
        before the private step, or a classifier of rows that
        :class:`~sklearn_dptda.decomposition.PrivatePCA` has projected. The
        guarantee then says that its parameters are not public.

    Notes
    -----
    .. rubric:: Privacy

    Nothing is released here. What follows a step that releases in
    ``transform`` is post-processing. What comes before must treat each record
    by itself, with public parameters; of functions in a
    :class:`~sklearn.preprocessing.FunctionTransformer` that is taken for
    granted. Labels are covered by a private classifier alone: another one, of
    private features, learns them as they are. A later ``transform`` or
    ``predict`` of a pipeline with such a step is a release of its own. A private
    box that two steps share is counted once.

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
    # A release that several steps share is one release.
    guarantees = {promise.release_id or place: promise for place, promise in promised}
    if not guarantees:
        raise ValueError(f"no step of this {type(pipeline).__name__} is private.")
    total: PrivacyGuarantee = reduce(add, guarantees.values())
    last = pipeline[-1] if isinstance(pipeline, Pipeline) else pipeline
    if isinstance(last, BaseEstimator) and (is_classifier(last) or is_regressor(last)):
        protected = getattr(getattr(get_tags(last), "privacy", None), "labels", False)
        learnt = _OF_LABELS * (not protected)
        total = replace(total, released=total.released + learnt)
    learners, _ = learners_in([pipeline])
    if learners:
        warn_caller(
            f"{', '.join(learners)} learnt from the records without privacy, which the guarantee "
            "does not cover: put it behind a step that releases in transform, or fit it to public "
            "data.",
            PrivacyLeakWarning,
        )
        total = replace(total, public_parameters=False)
    return total


def _promised(step):
    """Guarantees of all releases within a step, those that several steps share as often."""
    # Transformers of others may be no estimators.
    if not hasattr(step, "get_params"):
        return []
    if isinstance(step, Pipeline | FeatureUnion):
        parts = step.steps if isinstance(step, Pipeline) else step.transformer_list
        return [guarantee for _, part in parts for guarantee in _promised(part)]
    if hasattr(step, "accountant") and hasattr(step, "_releases_ahead"):
        check_is_fitted(step, "privacy_guarantee_")
        return step._promises_apart()
    if isinstance(step, BaseFiltration):
        # What is paid for a box or for landmarks is promised by what is released there.
        return []
    if any(hasattr(part, "_releasing_method") for part in step.get_params().values()):
        raise ValueError(
            f"{type(step).__name__} may have made many releases: its accountant knows their loss."
        )
    return []
