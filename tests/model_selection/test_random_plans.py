"""Random nests of paying estimators: the plan always equals the payments."""

import math
import random
import warnings
from collections import Counter

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, cross_validate
from sklearn.pipeline import FeatureUnion, Pipeline

from sklearn_dptda.model_selection import _dry_run, planned_loss
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyGuarantee, PrivateEstimatorMixin

# Nests contain any steps. Here, their payments are counted.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dptda.privacy.PrivacyLeakWarning")

ROWS = np.random.default_rng(0).normal(size=(24, 2))
LABELS = np.arange(24) % 2
N_PLANS = 80
# Small nests of all kinds, each of which catches a plan that forgets a kind of call.
FEW = (5, 7, 9, 17, 21, 27, 39, 47, 68)


class Payer(TransformerMixin, PrivateEstimatorMixin, BaseEstimator):
    """Pays and passes its input through: a stand-in whose releases nobody reads."""

    _parameter_constraints = {}

    def __init__(self, epsilon=1.0, accountant=None, random_state=None):
        self.epsilon = epsilon
        self.accountant = accountant
        self.random_state = random_state

    def _guarantee(self):
        return PrivacyGuarantee(self.epsilon, 0.0, "replace-one", "a row", "none", "X", False)

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        if self._releasing_method() == "fit":
            self._pay(self._guarantee())
        return self

    def transform(self, X):
        if self._releasing_method() == "transform":
            self._pay(self._guarantee())
        return np.asarray(X)


class FitPayer(Payer):
    pass


class TransformPayer(Payer):
    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.privacy.releases = "transform"
        return tags


def transformer(rng, depth):
    kind = rng.choice(["fit", "transform", "pipeline", "union", "columns", "passthrough", "search"])
    if kind in ("fit", "transform") or depth == 0:
        payer = FitPayer if kind == "fit" else TransformPayer
        return payer(epsilon=rng.choice([0.25, 0.5, 1.0]))
    if kind == "passthrough":
        return "passthrough"
    parts = [(f"s{i}", transformer(rng, depth - 1)) for i in range(rng.randint(1, 2))]
    if kind == "pipeline":
        return Pipeline(parts)
    if kind == "union":
        return FeatureUnion(parts)
    if kind == "columns":
        return ColumnTransformer([(*part, [0, 1]) for part in parts], remainder="drop")
    # A search without scores to compare takes the first candidate.
    return GridSearchCV(
        transformer_that_is_one(rng),
        {"random_state": [0, 1]},
        cv=2,
        scoring=constant,
        return_train_score=rng.random() < 0.5,
        error_score="raise",
    )


def transformer_that_is_one(rng):
    return FitPayer(epsilon=rng.choice([0.25, 0.5]))


def constant(estimator, X, y=None):
    return 0.0


def model(rng):
    steps = [(f"t{i}", transformer(rng, 2)) for i in range(rng.randint(1, 3))]
    pipeline = Pipeline([*steps, ("model", LogisticRegression())])
    kind = rng.choice(["pipeline", "grid", "random"])
    scoring = rng.choice([None, "accuracy", ["accuracy", "roc_auc"], ["accuracy", "f1"]])
    options = {
        "cv": rng.randint(2, 3),
        "scoring": scoring,
        "refit": False if rng.random() < 0.3 else scoring[0] if isinstance(scoring, list) else True,
        "return_train_score": rng.random() < 0.5,
        "error_score": "raise",
    }
    grid = {"model__C": [0.1, 1.0, 10.0][: rng.randint(1, 3)]}
    if kind == "grid":
        return GridSearchCV(pipeline, grid, **options)
    if kind == "random":
        return RandomizedSearchCV(pipeline, grid, n_iter=1, random_state=0, **options)
    return pipeline


def planned_and_paid(seed):
    rng = random.Random(seed)
    one = model(rng)
    folds = rng.random() < 0.4 and getattr(one, "refit", True)
    options = {"cv": 2, "return_train_score": rng.random() < 0.5} if folds else {}
    plan = planned_loss(one, ROWS, **options)
    with PrivacyAccountant(math.inf) as accountant, warnings.catch_warnings(action="ignore"):
        if folds:
            cross_validate(clone(one), ROWS, LABELS, error_score="raise", **options)
        else:
            clone(one).fit(ROWS, LABELS)
    planned = Counter()
    for release in plan.releases:
        planned[release.estimator, release.guarantee.epsilon] += release.count
    return planned, Counter((s.estimator, s.epsilon) for s in accountant.spends())


@pytest.mark.parametrize(
    "seed", [s if s in FEW else pytest.param(s, marks=pytest.mark.laws) for s in range(N_PLANS)]
)
def test_planned_loss_of_random_nests_equals_what_is_paid(seed):
    planned, paid = planned_and_paid(seed)
    assert planned == paid


@pytest.mark.laws
def test_planned_loss_that_forgets_a_call_is_caught_by_nests(monkeypatch):
    """A plan that forgets one kind of call is caught by a third of the nests."""
    methods = dict(_dry_run._METHODS)
    for forgotten in ({"transform": ()}, {"fit_transform": ("fit",)}):
        monkeypatch.setattr(_dry_run, "_METHODS", {**methods, **forgotten})
        caught = sum(a != b for a, b in map(planned_and_paid, range(16)))
        assert caught >= 5
