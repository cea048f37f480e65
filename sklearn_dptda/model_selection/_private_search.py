"""Private search over any grid: a random number of runs, of which the best one is published.

Proof: doc/theory/private_search.md, "The best of a random number of runs".
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    MetaEstimatorMixin,
    clone,
    is_classifier,
)
from sklearn.model_selection import check_cv
from sklearn.utils import check_consistent_length, column_or_1d, get_tags
from sklearn.utils._set_output import _safe_set_output
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._typing import RandomStateLike
from sklearn_dptda.filtration import reuse_functions
from sklearn_dptda.model_selection._dry_run import _METHODS, _paid_by, _PublicShape
from sklearn_dptda.model_selection._planned_releases import (
    PlannedLoss,
    PlannedRelease,
    together,
    worst,
)
from sklearn_dptda.model_selection._rehearsal import check_input, rehearse
from sklearn_dptda.model_selection._release_once import parameters_named
from sklearn_dptda.model_selection._search_runs import (
    Run,
    SearchPlan,
    candidates_of,
    leaves_of,
    one_run,
    part_of,
    predicts,
    steps_of,
)
from sklearn_dptda.privacy import (
    NoiseSource,
    PrivacyAccountant,
    PrivacyGuarantee,
    PrivacyLeakWarning,
    PrivacyTags,
    PrivateEstimatorMixin,
)
from sklearn_dptda.privacy._asking import ask_later, check_lengths
from sklearn_dptda.privacy._estimator import is_private, refused_without_trace
from sklearn_dptda.privacy._guarantee import kind_of_unit
from sklearn_dptda.privacy._release import learnt
from sklearn_dptda.privacy._warnings import warn_caller
from sklearn_dptda.utils._people import split_people
from sklearn_dptda.utils._sklearn import HasMethods, Interval, StrOptions, _fit_context
from sklearn_dptda.utils._tasks import run, tasks_may_repeat
from sklearn_dptda.utils._validation import refuse_dask


def _best_has(name: str) -> Any:
    """Make a method available if the estimator, or the best one, has it."""

    def check(search: Any) -> bool:
        getattr(getattr(search, "best_estimator_", search.estimator), name)
        return True

    return available_if(check)


class PrivateSearchCV(MetaEstimatorMixin, PrivateEstimatorMixin):
    """Search over parameters of a private estimator that costs about two fits.

    A candidate is drawn from the grid, fitted once, and scored. This is repeated a random
    number of times, and only the best run is published. The cost does not depend on the number
    of candidates: about twice that of one run, whereas
    :class:`~sklearn.model_selection.GridSearchCV` pays for each candidate and fold.

    Parameters
    ----------
    estimator : estimator
        A private estimator, or a pipeline with private steps. Set ``accountant`` and
        ``random_state`` of the search, not of its steps.
    param_grid : dict or list of dict
        Parameters to try, as in :class:`~sklearn.model_selection.GridSearchCV`.
    epsilon : float, default=None
        Privacy loss of the whole search. The epsilons of all candidates are scaled by one factor,
        so that the search costs this much. None leaves them as they are.
    law : {"reciprocal", "geometric"} or array-like of int, default="reciprocal"
        Public law of the number of runs. ``"reciprocal"`` has weights of 1, 1/2, 1/3, ... and
        costs at most two pure runs. ``"geometric"`` has the mean 10 before it is cut, and makes
        single runs rare; it is good for Gaussian noise. Whole numbers are the weights of 1, 2,
        3, ... runs.
    max_runs : int, default=30
        Largest number of runs, up to 100.
    scoring : str, callable, tuple or None, default=None
        If a step releases in ``transform``, and only steps without privacy follow, labels are
        public, and the score is the cross-validation of the later steps on the release: a score
        of scikit-learn, or None for their own.

        Otherwise, the score is a private sum over rows: ``"accuracy"``, ``"log_likelihood"`` (of
        a mixture), ``"inertia"`` (of k-means), or a tuple of a function of (estimator, X, y), and
        the lowest and the highest score. The function returns one score for each row, which must
        depend on the fitted estimator and on this row alone. A row for which it raises an error
        has the lowest score. It costs a tenth of the loss of a run.
    cv : int, cross-validation generator or iterable, default=5
        Splits of the cross-validation on a release.
    pad : bool, default=False
        Whether ``max_runs`` runs are always made, so that time does not tell their number.
    accountant : PrivacyAccountant, default=None
        Privacy budget from which each fit spends, before anything is computed.
        None uses the accountant of the surrounding ``with`` block. Without such a
        block, losses are not counted.
    random_state : int, RandomState instance, Generator or None, default=None
        Source of the noise. None draws from the operating system's entropy. A seed is
        for tests and study only, because the noise can be undone with it.
    n_jobs : int, default=None
        Number of runs at the same time. See the glossary of scikit-learn.

    Attributes
    ----------
    best_estimator_ : estimator
        The best run. It is not fitted again.
    best_params_ : dict
        Its parameters in the grid.
    best_score_ : float
        Its score: mean of the cross-validation, or private sum over rows, to which the middle of
        the range of scores counts as 0. It is that of the best of several runs, and therefore too
        high on average.
    cv_results_ : dict
        One row, that of the best run.
    privacy_guarantee_ : PrivacyGuarantee
        Guarantee of the whole search.

    See Also
    --------
    PrivateMassSearch : Chooses the mass of a distance-to-measure, at a smaller cost.
    planned_loss : The cost of a search before it runs.

    Notes
    -----
    All runs have the cost of the dearest candidate, so that a smaller epsilon in the grid saves
    nothing. Where utility rises steeply with epsilon, one run of a sensible default is better
    than a search.

    Predictions for new clouds are new releases, which pay for themselves: steps that release in
    ``transform`` state the guarantee of one of them, not that of the search. ``score`` is not
    private. People are recognised by a column, the ``groups`` of the estimator. A ledger with
    ``composition="zcdp"`` cannot pay for a search that has a delta.

    .. rubric:: Privacy

    One fit releases the best run: its parameters, its fitted estimator and its score. It is
    (epsilon, delta)-differentially private for the neighbours and the unit of its candidates,
    for which one record is replaced, or added or removed. The loss follows from the curve of
    the loss of one run and from the law of their number. Nothing is said about other runs, not
    even whether they failed. What any candidate refuses is refused before the payment, which is
    visible. The time of a fit depends on the number of runs, unless ``pad`` is True: given
    ``k`` runs, the loss is at most that of ``k`` runs together.

    References
    ----------
    J. Liu, K. Talwar, "Private selection from private candidates", STOC 2019.

    N. Papernot, T. Steinke, "Hyperparameter tuning with Renyi differential privacy", ICLR 2022.

    Examples
    --------
    >>> from sklearn_dptda.cluster import DPLloyd
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> from sklearn_dptda.model_selection import PrivateSearchCV
    >>> X = make_two_circles(4000, random_state=0)
    >>> search = PrivateSearchCV(
    ...     DPLloyd(bounds=(-2.5, 3)), {"n_clusters": [2, 4, 8]}, epsilon=1.0,
    ...     scoring="inertia", random_state=0,
    ... )
    >>> search.fit(X).privacy_guarantee_.epsilon
    1.0
    """

    _parameter_constraints = {
        "estimator": [HasMethods("fit"), None],
        "param_grid": [dict, list, tuple, None],
        "epsilon": [Interval(Real, 0, None, closed="right"), None],
        "law": [StrOptions({"reciprocal", "geometric"}), "array-like"],
        "max_runs": [Interval(Integral, 1, 100, closed="both")],
        "scoring": [str, callable, tuple, list, None],
        "cv": ["cv_object"],
        "pad": ["boolean"],
        "accountant": [PrivacyAccountant, None],
        "random_state": ["random_state", np.random.Generator],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        param_grid: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        *,
        epsilon: float | None = None,
        law: str | Sequence[int] = "reciprocal",
        max_runs: int = 30,
        scoring: Any = None,
        cv: Any = 5,
        pad: bool = False,
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.law = law
        self.max_runs = max_runs
        self.scoring = scoring
        self.cv = cv
        self.pad = pad
        self.accountant = accountant
        self.random_state = random_state
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)
    @refused_without_trace
    def fit(self, X: Any, y: Any = None) -> Self:
        """Spend the cost of the search, and keep the best run.

        Parameters
        ----------
        X : array-like, DataFrame, or list of clouds
            Input of the estimator.
        y : array-like, default=None
            Labels.

        Returns
        -------
        self

        Raises
        ------
        PrivacyBudgetExceeded
            If the accountant's budget does not cover the search. Nothing is spent.
        ValueError
            If a candidate is not private, if candidates protect different units, if the score is
            not private, if a candidate refuses the input, or if it fails on made-up input. Nothing
            is spent.
        """
        refuse_dask(X)
        plan = SearchPlan.of(self, _PublicShape.of(X))
        if not plan.guarantee.public_parameters:
            warn_caller(
                "A step of the candidates learns from the records without privacy. The privacy "
                "guarantee does not cover this. Replace the step by public constants, or fit it to "
                "public data.",
                PrivacyLeakWarning,
            )
        rows, ids = self._people(plan, X)
        splits = self._splits(plan, X, y)
        data = X, y, rows, ids, splits
        # Many candidates release from the same functions.
        with reuse_functions():
            check_input(plan, X, y)
            rehearse(plan, X, y, splits)
            guarantee = self._after_steps(plan.guarantee)
            repeat = tasks_may_repeat(self.n_jobs)
            with (
                self._paid(guarantee, may_repeat=repeat, records=(X, y, splits)) as seeds,
                warnings.catch_warnings(action="ignore"),
            ):
                n_runs = plan.number.draw(NoiseSource(part_of(seeds[0], 0)))
                n_made = len(plan.number.weights) if self.pad else n_runs
                parts = [(part_of(seeds[0], i),) for i in range(1, n_made + 1)]
                found = run(one_run, parts, plan, data, n_jobs=self.n_jobs)[:n_runs]
                best = max(found, key=lambda each: (each.score, each.tie))
                del found
        if best.model is None:
            raise RuntimeError(
                "The best run failed, so the search has no result. Its cost stays spent. Fit one "
                "candidate to public data to see why."
            )
        self._keep(plan, best, guarantee)
        seeds.keep_result(self._result())
        return self

    def _refuse_later(self, X: Any, y: Any = None, groups: Any = None) -> None:
        """Refuse ids and labels that a candidate would refuse, before an earlier step is paid."""
        check_lengths(X, y)
        for candidate in candidates_of(self)[1]:
            ask_later([("candidate", candidate)], X, y, {})

    def _people(self, plan: SearchPlan, X: Any) -> tuple[Any, Any]:
        """Return rows for a private score, and the id of the person of each of them, if any."""
        if plan.score is None or kind_of_unit(plan.guarantee.unit) != "person":
            return X, None
        (column,) = set(parameters_named(plan.candidates[0], "groups").values()) - {None}
        return split_people(X, column, None)

    def _splits(self, plan: SearchPlan, X: Any, y: Any) -> Any:
        """Return the splits of all cross-validations, which are public like labels and sizes."""
        if y is not None:
            check_consistent_length(X, y)
        if plan.n_front is None:
            if self.scoring == "accuracy" and y is None:
                raise ValueError("y must be given, because scoring='accuracy' needs the labels.")
            if self.scoring == "accuracy":
                column_or_1d(y)
            return None
        last = plan.candidates[0][-1]
        if y is None and predicts(last):
            raise ValueError("y must be given, because the last step predicts it.")
        splitter = check_cv(self.cv, y, classifier=is_classifier(last))
        return list(splitter.split(np.empty((len(X), 0)), y))

    def _keep(self, plan: SearchPlan, best: Run, guarantee: PrivacyGuarantee) -> None:
        """Set the attributes of the best run. What other runs were is not kept."""
        self.best_params_ = plan.settings[best.place]
        self.best_score_ = best.score
        self.best_estimator_ = best.model
        # Later releases of new records pay from the budget of the search.
        names = parameters_named(best.model, "accountant")
        best.model.set_params(**dict.fromkeys(names, self.accountant))
        steps = [step for step in leaves_of(best.model) if is_private(step)]
        known = [step.privacy_guarantee_ for step in steps]
        guarantee = replace(
            guarantee,
            public_parameters=guarantee.public_parameters
            and all(k.public_parameters for k in known),
            exact=guarantee.exact and all(each.exact for each in known),
        )
        for step in steps:
            if get_tags(step).privacy.releases == "fit":
                step.privacy_guarantee_ = guarantee
        self.cv_results_ = {
            "params": [self.best_params_],
            "mean_test_score": np.array([self.best_score_]),
            "rank_test_score": np.array([1], dtype=np.int32),
        }
        self.privacy_guarantee_ = guarantee

    def _result(self) -> dict[str, Any]:
        """Return what the ledger stores: the best parameters, the score, and what was learnt."""
        last = learnt(self.best_estimator_).items()
        plain = {name: value for name, value in last if not isinstance(value, BaseEstimator)}
        params = {name: repr(value) for name, value in self.best_params_.items()}
        return {**plain, "best_params_": params, "best_score_": self.best_score_}

    @_best_has("predict")
    def predict(self, X: Any) -> Any:
        """Predict with the best run.

        Parameters
        ----------
        X : array-like, DataFrame, or list of clouds
            New input. If a step releases in ``transform``, this is a new release.

        Returns
        -------
        ndarray
        """
        return self._best().predict(X)

    @_best_has("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        """Predict probabilities of classes or clusters with the best run.

        Parameters
        ----------
        X : array-like, DataFrame, or list of clouds
            New input.

        Returns
        -------
        ndarray
        """
        return self._best().predict_proba(X)

    @_best_has("predict_log_proba")
    def predict_log_proba(self, X: Any) -> Any:
        """Predict logarithms of probabilities of classes with the best run.

        Parameters
        ----------
        X : array-like, DataFrame, or list of clouds
            New input.

        Returns
        -------
        ndarray
        """
        return self._best().predict_log_proba(X)

    @_best_has("decision_function")
    def decision_function(self, X: Any) -> Any:
        """Compute the decision function of the best run.

        Parameters
        ----------
        X : array-like, DataFrame, or list of clouds
            New input.

        Returns
        -------
        ndarray
        """
        return self._best().decision_function(X)

    @_best_has("transform")
    def transform(self, X: Any) -> Any:
        """Transform with the best run.

        Parameters
        ----------
        X : array-like, DataFrame, or list of clouds
            New input.

        Returns
        -------
        ndarray, DataFrame or list
        """
        return self._best().transform(X)

    @_best_has("get_feature_names_out")
    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the output of the best run.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the input.

        Returns
        -------
        ndarray of str
        """
        return self._best().get_feature_names_out(input_features)

    @_best_has("transform")
    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Spend the cost of the search, and transform with the best run.

        Parameters
        ----------
        X : array-like, DataFrame, or list of clouds
            Input. If a step releases in ``transform``, the result is another release.
        y : array-like, default=None
            Labels.

        Returns
        -------
        ndarray, DataFrame or list
        """
        return self.fit(X, y).transform(X)

    @_best_has("score_samples")
    def score_samples(self, X: Any) -> Any:
        """Compute the log-likelihood of rows under the best run.

        Parameters
        ----------
        X : array-like or DataFrame
            New rows.

        Returns
        -------
        ndarray
        """
        return self._best().score_samples(X)

    @_best_has("score")
    def score(self, X: Any, y: Any = None) -> float:
        """Score the best run by its own method. The result is not private.

        Parameters
        ----------
        X : array-like, DataFrame, or list of clouds
            Input.
        y : array-like, default=None
            Labels.

        Returns
        -------
        float
        """
        return float(self._best().score(X) if y is None else self._best().score(X, y))

    def _best(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    @property
    def classes_(self) -> Any:
        """Class labels of the best run."""
        return self.best_estimator_.classes_

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the input."""
        return int(self.best_estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> Any:
        """Names of the columns of the input."""
        return self.best_estimator_.feature_names_in_

    @_best_has("transform")
    def set_output(self, *, transform: str | None = None) -> Self:
        """Set the container of what ``transform`` returns.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, default=None
            None changes nothing.

        Returns
        -------
        self
        """
        for estimator in (self.estimator, getattr(self, "best_estimator_", None)):
            if estimator is not None:
                _safe_set_output(estimator, transform=transform)
        return self

    def _guarantee_ahead(self, n_features: int | None) -> PrivacyGuarantee:
        return SearchPlan.of(self, _PublicShape(n_features=n_features)).guarantee

    @staticmethod
    def _parameters_for_checks() -> dict[str, Any]:
        """Parameters for the privacy checks, whose rows are in the unit box."""
        # Estimators of rows import this package.
        from sklearn_dptda.cluster import DPLloyd

        # Together, all runs draw more than a search costs: one run is checked.
        return {
            "estimator": DPLloyd(bounds=(0, 1), delta=0),
            "param_grid": {"n_clusters": [2, 3]},
            "epsilon": 1.0,
            "law": [1],
            "scoring": "inertia",
        }

    def __sklearn_tags__(self) -> Any:
        """Describe the search like its estimator."""
        tags = super().__sklearn_tags__()
        if not hasattr(self.estimator, "__sklearn_tags__"):
            return tags
        inner = get_tags(self.estimator)
        for name in (
            "estimator_type",
            "target_tags",
            "transformer_tags",
            "classifier_tags",
            "regressor_tags",
            "input_tags",
            "requires_fit",
        ):
            setattr(tags, name, getattr(inner, name))
        tags.no_validation = True
        private = [get_tags(each).privacy for each in steps_of(self.estimator) if is_private(each)]
        if private:
            tags.privacy = PrivacyTags(
                input=private[0].input, adjacency=private[0].adjacency, labels=private[-1].labels
            )
        return tags


def _paid_to(candidate: Any, accountant: PrivacyAccountant | None) -> Any:
    names = parameters_named(candidate, "accountant")
    return clone(candidate).set_params(**dict.fromkeys(names, accountant))


@_paid_by.register
def _(search: PrivateSearchCV, call: str, shape: _PublicShape) -> PlannedLoss:
    plan = SearchPlan.of(search, shape)
    plans = []
    if "fit" in _METHODS[call]:
        kind = type(search).__name__
        release = PlannedRelease(kind, plan.guarantee, accountant=search.accountant)
        plans.append(PlannedLoss((release,)))
    if call != "fit":
        after = "transform" if call == "fit_transform" else call
        later = [_paid_to(each, search.accountant) for each in plan.candidates]
        plans.append(worst(_paid_by(each, after, shape) for each in later))
    return together(plans)
