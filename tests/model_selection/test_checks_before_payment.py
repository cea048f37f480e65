"""What is found before the first payment: mistakes behind a release, and searches too dear."""

import math
import warnings

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier
from sklearn.feature_selection import VarianceThreshold
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures
from sklearn.random_projection import GaussianRandomProjection
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state

from sklearn_dptda import (
    DiagramFeatures,
    DTMFiltration,
    PrivacyAccountant,
    PrivacyBudgetExceeded,
    PrivatePersistence,
)
from sklearn_dptda.cluster import DPLloyd, DPMoG
from sklearn_dptda.decomposition import PrivatePCA
from sklearn_dptda.discriminant_analysis import DPLinearDiscriminantAnalysis
from sklearn_dptda.model_selection import PrivateSearchCV
from sklearn_dptda.model_selection._row_scores import RowScore
from sklearn_dptda.privacy import PrivacyLeakWarning
from tests._refusals import refuses, refuses_unpaid

pytestmark = pytest.mark.filterwarnings("ignore:At epsilon")

ROWS = np.random.default_rng(0).uniform(size=(200, 2))
LABELS = (ROWS[:, 0] > 0.5).astype(int)
CLOUDS = [np.random.default_rng(i).uniform(size=(60, 2)) for i in range(8)]
CLASSES = np.arange(8) % 2


class NeverFitted(ClassifierMixin, BaseEstimator):
    """A classifier that forgets what it has learnt."""

    def fit(self, X, y):
        return self


class OfNoClass(ClassifierMixin, BaseEstimator):
    """A classifier whose fit always fails, with a message about what it was given."""

    def fit(self, X, y):
        raise ZeroDivisionError(f"shape {np.shape(X)}")


def search_of_clouds(last, **options):
    pipeline = make_pipeline(
        DTMFiltration(0.2, bounds=(0, 1), resolution=9),
        PrivatePersistence(1.0),
        DiagramFeatures(value_range=(0, 1)),
        last,
    )
    options = {"cv": 2, "random_state": 0} | options
    return PrivateSearchCV(pipeline, {"dtmfiltration__m": [0.2, 0.4]}, **options)


def search_of_rows(scoring, **options):
    estimator = DPLloyd(2, bounds=(0, 1), delta=0)
    options = {"random_state": 0} | options
    return PrivateSearchCV(estimator, {"n_clusters": [2, 3]}, scoring=scoring, **options)


# Mistakes behind a release.


@pytest.mark.parametrize("last", [NeverFitted(), OfNoClass()])
def test_search_refuses_a_last_step_that_always_fails_unpaid(last):
    search = search_of_clouds(last)
    refuses_unpaid(r"dtmfiltration__m=0\.2 fails on made-up input", search.fit, CLOUDS, CLASSES)
    assert not hasattr(search, "best_params_")


def test_search_refuses_a_score_of_a_release_that_always_fails_unpaid():
    def fails(estimator, X, y):
        raise KeyError("nothing")

    search = search_of_clouds(LogisticRegression(), scoring=fails)
    refuses_unpaid("KeyError: 'nothing'", search.fit, CLOUDS, CLASSES)
    search = search_of_clouds(LogisticRegression(), scoring="accuracy").fit(CLOUDS, CLASSES)
    # A step that does nothing may stand between the functions and their release.
    search.estimator.steps.insert(1, ("nothing", "passthrough"))
    search.fit(CLOUDS, CLASSES)


def test_search_refuses_a_score_of_rows_that_always_fails_unpaid():
    def fails(model, X, y):
        raise KeyError("malady")

    refuses_unpaid("KeyError: 'malady'", search_of_rows((fails, 0, 1)).fit, ROWS)
    one_number = (lambda model, X, y: 0.0, 0, 1)
    refuses_unpaid("one number for each row", search_of_rows(one_number).fit, ROWS)


def test_search_rehearses_each_value_once():
    calls = []

    def counting(model, X, y):
        calls.append((model.n_clusters, model.units, len(X)))
        return np.zeros(len(X))

    search = search_of_rows((counting, 0, 1), law=[1], max_runs=1)
    search.set_params(param_grid={"epsilon": [0.5, 1.0, 2.0]}).fit(ROWS)
    # All real numbers are one value, and the last call is that of the run.
    assert [n for *_, n in calls] == [1000, len(ROWS)]
    calls.clear()
    grid = {"n_clusters": [2, 3, 4], "units": ["columns", "bounds"]}
    search.set_params(param_grid=grid).fit(ROWS)
    values = [(2, "columns"), (2, "bounds"), (3, "columns"), (4, "columns")]
    assert [each[:2] for each in calls[:-1]] == values


def test_search_refuses_a_candidate_that_is_impossible_wherever_it_stands():
    search = search_of_clouds(LogisticRegression(), scoring="accuracy")
    search.set_params(param_grid={"privatepersistence__homology_dimensions": [(0, 1), (2,)]})
    refuses_unpaid("homology_dimensions", search.fit, CLOUDS, CLASSES)


def test_search_refuses_no_step_for_the_noise_of_small_clouds():
    last = make_pipeline(VarianceThreshold(), LogisticRegression())
    search = search_of_clouds(last, law=[1]).fit(CLOUDS, CLASSES)
    assert search.best_score_ >= 0


def test_search_of_clouds_takes_people_with_unlike_numbers_of_points():
    clouds = [[each[:20], each[20:50], *each[50:, None]] for each in CLOUDS]
    search = search_of_clouds(LogisticRegression(), law=[1])
    search.estimator.set_params(dtmfiltration__groups=True)
    assert search.fit(clouds, CLASSES).privacy_guarantee_.unit.startswith("all points of one")


def test_search_repeats_a_run_that_failed_by_its_noise_when_it_rehearses():
    calls = []

    def unlucky(model, X, y):
        calls.append(len(X))
        if len(calls) < 3:
            raise ValueError("noise")
        return np.zeros(len(X))

    search_of_rows((unlucky, 0, 1), law=[1]).set_params(param_grid={"epsilon": [1.0]}).fit(ROWS)
    assert calls == [1000, 1000, 1000, len(ROWS)]


def test_errors_of_made_up_input_before_a_payment_are_not_those_of_records():
    def positive(X):
        if np.min(X) < 0.25:
            raise ValueError("below")
        return X

    # Made-up rows are in the box of the private step, and the first step refuses most of them.
    pipeline = make_pipeline(FunctionTransformer(positive), DPLloyd(2, bounds=(0, 1), delta=0))
    options = {"scoring": (lambda model, X, y: np.zeros(len(X)), 0, 1), "law": [1]}
    search = PrivateSearchCV(pipeline, {"dplloyd__n_clusters": [2]}, random_state=0, **options)
    assert search.fit(0.3 + ROWS / 2).best_params_ == {"dplloyd__n_clusters": 2}


def test_error_of_one_row_is_the_lowest_score_of_this_row_alone():
    def strict(model, X, y):
        if (np.asarray(X)[:, 0] > 0.97).any():
            raise ValueError("malady")
        return np.full(len(X), 1.0)

    n_bad = int((ROWS[:, 0] > 0.97).sum())
    assert 0 < n_bad < 20
    # Rows of a rehearsal are made up in the box, which no row that fails is in.
    estimator = DPLloyd(2, bounds=(0, 0.9), delta=0)
    options = {"epsilon": math.inf, "random_state": 0, "scoring": (strict, -1, 1), "law": [1]}
    search = PrivateSearchCV(estimator, {"n_clusters": [2]}, **options).fit(ROWS)
    assert search.best_score_ == len(ROWS) - 2 * n_bad


def test_errors_of_rows_are_found_by_halves():
    calls = []

    def strict(model, X, y):
        calls.append(len(X))
        if (np.asarray(X)[:, 0] == ROWS[77, 0]).any():
            raise ValueError("malady")
        return np.asarray(X)[:, 1]

    score = RowScore(strict, 0.0, 1.0)
    others = np.delete(ROWS, 77, axis=0)
    assert score.total(None, ROWS, None) == score.total(None, others, None) - 2**20
    # 200 rows are halved eight times, and the rows without row 77 are scored at once.
    assert len(calls) <= 1 + 2 * 8 + 1


def test_search_refuses_code_of_the_user_between_private_steps():
    pipeline = make_pipeline(
        PrivatePCA(2, bounds=(0, 1), delta=0),
        FunctionTransformer(np.abs),
        DPLinearDiscriminantAnalysis([0, 1], bounds=([-2, -2], [2, 2]), delta=0),
    )
    grid = {"privatepca__epsilon": [1.0]}
    search = PrivateSearchCV(pipeline, grid, scoring="accuracy", law=[1])
    # Finite rows may become infinite there, too.
    columns = ColumnTransformer([("f", FunctionTransformer(), [0])])
    for step in (FunctionTransformer(np.abs), PolynomialFeatures(7), columns):
        pipeline.set_params(functiontransformer=step)
        message = f"{type(step).__name__} stands after a private step"
        refuses_unpaid(message, search.fit, ROWS, LABELS)
    pipeline.steps = [("first", FunctionTransformer()), pipeline.steps[0], pipeline.steps[2]]
    search.fit(ROWS, LABELS)


@pytest.mark.filterwarnings("ignore:A step of the candidates learns")
def test_search_refuses_random_steps_before_a_private_one():
    pipeline = make_pipeline(
        GaussianRandomProjection(2), DPLloyd(2, bounds=([-9, -9], [9, 9]), delta=0)
    )
    search = PrivateSearchCV(pipeline, {"dplloyd__n_clusters": [2]}, scoring="inertia", law=[1])
    refuses("GaussianRandomProjection is random", search.fit, ROWS)
    search.set_params(estimator__gaussianrandomprojection__random_state=0).fit(ROWS)


def test_search_asks_all_candidates_for_statistics_that_a_step_may_refuse():
    def logarithms(functions):
        found = [np.log(each.values) for each in functions]
        if not all(np.isfinite(each).all() for each in found):
            raise ValueError("malady")
        return found

    def values(functions):
        return [each.values for each in functions]

    pipeline = make_pipeline(
        DTMFiltration(0.01, bounds=(0, 1), resolution=9),
        FunctionTransformer(values),
        PrivatePersistence(1.0, 1, sensitivity=0.5, upper=1.0),
        DiagramFeatures(value_range=(0, 1)),
        LogisticRegression(),
    )
    clouds = [*CLOUDS]
    clouds[0] = np.vstack([[[0.0, 0.0]], clouds[0][1:]])
    grid = {"functiontransformer__func": [values, logarithms]}
    refuses_unpaid("malady", PrivateSearchCV(pipeline, grid, cv=2).fit, clouds, CLASSES)


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.engines)])
def test_asking_pays_nothing_in_other_workers(backend):
    budget = PrivacyAccountant(math.inf)
    parts = [
        ("x", PrivatePCA(1, bounds=(0, 1), accountant=budget), [0, 1]),
        ("l", DPLloyd(2, bounds=(0, 1), accountant=budget), [0]),
    ]
    columns = ColumnTransformer(parts, n_jobs=2)
    union = make_union(PrivatePCA(1, bounds=(0, 1), accountant=budget), columns)
    with parallel_config(backend=backend):
        union.fit_transform(ROWS)
    assert len(budget) == 3


# Warnings of candidates.


def test_search_warns_as_its_candidates_do_and_once():
    lda = DPLinearDiscriminantAnalysis(bounds=(0, 1), delta=0)
    grid = {"epsilon": [0.5, 1.0, 2.0], "adjacency": ["add-remove"]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search = PrivateSearchCV(lda, grid, scoring="accuracy").fit(ROWS, LABELS)
    assert [each.category for each in caught] == [PrivacyLeakWarning]
    assert "was given no classes" in str(caught[0].message)
    assert not search.privacy_guarantee_.public_parameters


def test_searches_of_scikit_learn_repeat_no_warning():
    pipeline = make_pipeline(
        DTMFiltration(0.2, resolution=9),
        PrivatePersistence(1.0),
        DiagramFeatures(value_range=(0, 1)),
        DecisionTreeClassifier(),
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        GridSearchCV(pipeline, {"dtmfiltration__m": [0.2, 0.3, 0.4]}, cv=2).fit(CLOUDS, CLASSES)
    texts = [str(each.message) for each in caught]
    assert len(texts) == len(set(texts)) and any("no bounds" in text for text in texts)


def test_parts_that_are_asked_warn_once_and_draw_the_same_numbers():
    seen = []

    def noisy(X):
        seen.append(check_random_state(None).normal(size=3))
        return X

    first = DPLloyd(2, bounds=(0, 1), delta=0, adjacency="replace-one")
    lda = DPLinearDiscriminantAnalysis(bounds=([-9, -9], [9, 9]), delta=0, adjacency="replace-one")
    pipeline = make_pipeline(make_union(first, FunctionTransformer(noisy)), lda)
    pipeline[-1].set_params(bounds=([-9] * 4, [9] * 4))
    check_random_state(None).seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pipeline.fit(ROWS, LABELS)
    assert [str(each.message)[:40] for each in caught if "classes" in str(each.message)] == [
        "DPLinearDiscriminantAnalysis was given n"
    ]
    # The first call was asked before the payment of its neighbour.
    assert len(seen) == 2 and (seen[0] == seen[1]).all()


def test_pipeline_whose_first_step_reads_a_file_is_asked_about_labels_alone():
    budget = PrivacyAccountant(math.inf)
    options = {"delta": 0, "adjacency": "replace-one", "accountant": budget}
    lda = DPLinearDiscriminantAnalysis([0, 1], bounds=([-9, -9], [9, 9]), **options)
    read = FunctionTransformer(lambda name: ROWS)
    pipeline = make_pipeline(read, PrivatePCA(2, bounds=(0, 1), **options), lda)
    pipeline.fit("table.csv", LABELS)
    assert len(budget) == 2
    refuses("not in classes", pipeline.fit, "table.csv", LABELS + 1)
    search = PrivateSearchCV(
        DPLloyd(2, bounds=([-9, -9], [9, 9]), **options), {"n_clusters": [2]}, scoring="inertia"
    )
    behind = make_pipeline(PrivatePCA(2, bounds=(0, 1), **options), search)
    refuses("inconsistent numbers of samples", behind.fit, ROWS, LABELS[:-1])
    assert len(budget) == 2


# Costs of whole searches.


@pytest.mark.parametrize("n_jobs", [None, pytest.param(2, marks=pytest.mark.engines)])
@pytest.mark.parametrize("kind", [GridSearchCV, RandomizedSearchCV])
def test_search_of_scikit_learn_is_refused_before_its_first_payment(kind, n_jobs):
    budget = PrivacyAccountant(5.0, 1e-3)
    options = {"n_iter": 3, "random_state": 0} if kind is RandomizedSearchCV else {}
    estimator = DPMoG(bounds=(0, 1), accountant=budget)
    search = kind(estimator, {"n_components": [1, 2, 3]}, n_jobs=n_jobs, **options)
    with pytest.raises(PrivacyBudgetExceeded, match="asked for epsilon=16") as refused:
        search.fit(ROWS)
    assert len(budget) == 0 and "planned_loss" in refused.value.__notes__[0]
    enough = PrivacyAccountant(16.0, 1e-3)
    search.set_params(estimator__accountant=enough).fit(ROWS)
    assert len(enough) == 16


def test_cross_validation_is_refused_before_its_first_payment():
    budget = PrivacyAccountant(3.0, 1e-3)
    estimator = make_pipeline(FunctionTransformer(), DPMoG(1, bounds=(0, 1), accountant=budget))
    for call in (cross_val_score, cross_validate):
        refuses("asked for epsilon=5", call, estimator, ROWS, error=PrivacyBudgetExceeded)
    assert len(budget) == 0
    cross_val_score(estimator, ROWS, cv=3)
    assert len(budget) == 3


def test_search_whose_cost_is_unknown_pays_while_the_budget_lasts():
    budget = PrivacyAccountant(2.0)
    lda = DPLinearDiscriminantAnalysis([0, 1], delta=0, bounds=(0, 1), accountant=budget)
    ensemble = BaggingClassifier(lda, n_estimators=1, random_state=0)
    search = GridSearchCV(ensemble, {"estimator__epsilon": [1.0]}, cv=3, error_score="raise")
    refuses("left: epsilon=0", search.fit, ROWS, LABELS, error=PrivacyBudgetExceeded)
    assert len(budget) == 2
