"""Dry runs: the plan equals the payments that the accountant counts, and nothing happens before."""

import math
import warnings
from collections import Counter

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    LeaveOneOut,
    RandomizedSearchCV,
    RepeatedKFold,
    cross_validate,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from sklearn_dptda import CubicalPersistence, DiagramFeatures, DTMFiltration, PrivatePersistence
from sklearn_dptda.cluster import DPLloyd, DPMoG
from sklearn_dptda.decomposition import PrivatePCA
from sklearn_dptda.discriminant_analysis import DPLinearDiscriminantAnalysis
from sklearn_dptda.graph import EdgeFlip
from sklearn_dptda.metric_privacy import KNormMechanism, MetricExponentialMechanism, MetricMeasure
from sklearn_dptda.model_selection import planned_loss
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyBudgetExceeded
from sklearn_dptda.published import DPCube, PublishedPersistence
from sklearn_dptda.synthetic import PrivateMeasure
from tests._refusals import refuses

RNG = np.random.default_rng(0)
CLOUDS = RNG.uniform(-1, 1, size=(12, 60, 2))
LABELS = np.arange(12) % 2
ROWS = RNG.uniform(size=(240, 2))
ROW_LABELS = np.arange(240) % 2
BOX, PUBLIC = {"bounds": (0, 1)}, {"sensitivity": 0.1, "upper": 1.0}
SMALL = DPMoG(2, covariance_type="spherical", **BOX)


def diagrams(**options):
    return make_pipeline(
        DTMFiltration(0.3, bounds=(-1, 1), resolution=7), PrivatePersistence(**options)
    )


def classifier(**options):
    return make_pipeline(
        diagrams(**options), DiagramFeatures(value_range=(0, 1)), LogisticRegression()
    )


def search(estimator, grid, cv=2, **options):
    return GridSearchCV(estimator, grid, cv=cv, error_score="raise", **options)


M = {"pipeline__dtmfiltration__m": [0.3, 0.5]}
EPSILONS = {"pipeline__privatepersistence__epsilon": [0.5, 2.0]}
K = {"n_components": [1, 2, 3]}


def private_box():
    return DTMFiltration(0.3, bounds=PrivateBounds(0.4, start=(-9, 9)), resolution=7)


# For each name: an estimator and a method, beside those of random nests: test_random_plans.py.
CALLS = {
    "fit and predict": (SMALL, "fit_transform"),
    "a transform that pays": (diagrams(), "fit_transform"),
    "its fit, which does not": (diagrams(), "fit"),
    "a private box": (make_pipeline(private_box(), PrivatePersistence(2.0)), "fit_transform"),
    "no release": (make_pipeline(StandardScaler(), LogisticRegression()), "fit"),
    "columns": (ColumnTransformer([("a", PrivatePCA(1, **BOX), [0, 1])]), "fit"),
    "a search over transforms": (search(classifier(), M, return_train_score=True), "fit"),
    "a score by its name": (search(classifier(), M, scoring="neg_log_loss"), "fit"),
    "two grids": (search(SMALL, [K, {"epsilon": [1.0], "n_components": [4]}]), "fit"),
    "many splits": (search(SMALL, K, cv=RepeatedKFold(n_splits=2, n_repeats=3)), "fit"),
    "a search without a seed": (RandomizedSearchCV(SMALL, K, n_iter=2, cv=2), "fit"),
    "a search of a search": (search(search(SMALL, K), {"refit": [True]}), "fit"),
    "leave-one-out": (search(classifier(), M, cv=LeaveOneOut(), scoring="accuracy"), "fit"),
    "no noise": (classifier(epsilon=math.inf), "fit"),
}


def data_for(estimator):
    takes_clouds = "dtmfiltration" in str(sorted(estimator.get_params()))
    return (CLOUDS, LABELS) if takes_clouds else (ROWS, ROW_LABELS)


def counted(accountant):
    return Counter((s.estimator, s.epsilon, s.delta, s.rho) for s in accountant.spends())


def expected(plan):
    counts = Counter()
    for release in plan.releases:
        g = release.guarantee
        counts[release.estimator, g.epsilon, g.delta, g.rho] += release.count
    return counts


def check_paid_as_planned(plan, run):
    """Run with an accountant without a limit, and compare what it has counted with the plan."""
    accountant = PrivacyAccountant(math.inf, 0.5)
    with accountant, warnings.catch_warnings(action="ignore"):
        run()
    assert counted(accountant) == expected(plan)
    assert len(accountant) == plan.n_releases
    total = plan.total()
    assert total == pytest.approx(accountant.total(), rel=1e-12)
    assert not plan.at_most


@pytest.mark.laws
@pytest.mark.parametrize("name", CALLS)
def test_planned_loss_equals_what_is_paid(name):
    estimator, method = CALLS[name]
    X, y = data_for(estimator)
    plan = planned_loss(estimator, X, y, method=method)
    if isinstance(estimator, ColumnTransformer):
        # An empty selection would not be called.
        assert plan.at_most
        plan = type(plan)(plan.releases)
    if method == "fit" or not hasattr(estimator, "fit_transform"):
        check_paid_as_planned(plan, lambda: clone(estimator).fit(X, y))
    else:
        check_paid_as_planned(plan, lambda: clone(estimator).fit_transform(X, y))


FOLDS = {
    "with two scores": (classifier(), {"scoring": ["accuracy", "roc_auc", "f1"]}),
    "by a scorer": (classifier(), {"scoring": make_scorer(lambda y, p: 0.0)}),
    "diagrams scored by themselves": (diagrams(), {}),
    "of a search": (search(SMALL, K), {}),
    "of a search over transforms": (search(classifier(), M), {"return_train_score": True}),
    "of a search with two scores": (
        search(classifier(), M, scoring=["accuracy", "roc_auc"], refit="roc_auc"),
        {},
    ),
}


@pytest.mark.laws
@pytest.mark.parametrize("name", FOLDS)
def test_planned_loss_equals_what_cross_validate_pays(name):
    estimator, options = FOLDS[name]
    X, y = data_for(estimator)
    plan = planned_loss(estimator, X, y, cv=3, **options)
    check_paid_as_planned(
        plan, lambda: cross_validate(estimator, X, y, cv=3, error_score="raise", **options)
    )


@pytest.mark.laws
@pytest.mark.parametrize(
    "forgotten", [{"return_train_score": False}, {"scoring": ["accuracy", "f1"]}, {"cv": 2}]
)
def test_planned_loss_that_forgets_an_option_is_caught(forgotten):
    options = {"cv": 3, "scoring": ["accuracy", "roc_auc"], "return_train_score": True}
    plan = planned_loss(classifier(), CLOUDS, **{**options, **forgotten})
    with pytest.raises(AssertionError):
        check_paid_as_planned(plan, lambda: cross_validate(classifier(), CLOUDS, LABELS, **options))


@pytest.mark.laws
@pytest.mark.parametrize("method", ["predict", "score"])
@pytest.mark.parametrize(
    "estimator", [classifier(), search(classifier(), M), SMALL], ids=["pipeline", "search", "fit"]
)
def test_planned_loss_of_predict_and_score_equals_what_is_paid(estimator, method):
    X, y = data_for(estimator)
    with warnings.catch_warnings(action="ignore"):
        fitted = clone(estimator).fit(X, y)
    plan = planned_loss(estimator, X, method=method)
    arguments = (X, y) if method == "score" else (X,)
    check_paid_as_planned(plan, lambda: getattr(fitted, method)(*arguments))


@pytest.mark.parametrize(
    ("estimator", "X"),
    [
        (PrivateBounds(0.5, shape="box"), ROWS),
        (PrivateBounds(0.5, shape="box", adjacency="add-remove"), ROWS),
        (PrivateBounds(0.5), list(CLOUDS)),
        (MetricMeasure(0.5, BOX["bounds"], alpha=20.0), ROWS),
        (MetricMeasure(0.5, BOX["bounds"]), ROWS),
        (PrivateMeasure(0.5), ROWS),
        (PublishedPersistence(1.0, 1e-6, mechanism="exact", **PUBLIC), [ROWS[:5]]),
        (KNormMechanism(2.0, **BOX), ROWS),
        (MetricExponentialMechanism(2.0, candidates=ROWS[:9]), ROWS),
        (DPCube(2, **BOX), ROWS),
        (DPLloyd(2, delta=0.0), ROWS),
    ],
    ids=repr,
)
def test_planned_loss_follows_parameters_that_change_the_cost(estimator, X):
    call = "fit_transform" if hasattr(estimator, "transform") else "fit"
    check_paid_as_planned(planned_loss(estimator, X), lambda: getattr(clone(estimator), call)(X))


def test_planned_loss_does_not_count_the_column_of_people():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS, columns=["x", "y"]).assign(who=np.arange(240) // 2)
    private = PrivateBounds(0.5, shape="box", adjacency="add-remove", groups="who")
    check_paid_as_planned(planned_loss(private, frame), lambda: clone(private).fit(frame))


def test_planned_loss_takes_graphs():
    networkx = pytest.importorskip("networkx")
    graph = networkx.relabel_nodes(networkx.path_graph(5), str)
    for A in (graph, networkx.to_numpy_array(graph)):
        check_paid_as_planned(planned_loss(EdgeFlip(), A), lambda A=A: EdgeFlip().fit_transform(A))


@pytest.mark.laws
@pytest.mark.parametrize(
    ("estimator", "grid", "n_paid"),
    [
        (classifier(), EPSILONS, 9),
        (SMALL, {"epsilon": [0.5, 1.0, 2.0]}, 7),
        # No candidate has the highest cost in both.
        (SMALL, [{"epsilon": [3.0]}, {"delta": [1e-3]}], 5),
    ],
)
def test_planned_loss_bounds_the_last_fit_of_a_search(estimator, grid, n_paid):
    X, y = data_for(estimator)
    one = search(estimator, grid)
    plan = planned_loss(one, X)
    accountant = PrivacyAccountant(math.inf, 0.5)
    with accountant, warnings.catch_warnings(action="ignore"):
        one.fit(X, y)
    assert plan.at_most and plan.n_releases == len(accountant) == n_paid
    paid, total = accountant.total(), plan.total()
    assert paid.epsilon <= total.epsilon * (1 + 1e-12) and paid.delta <= total.delta * (1 + 1e-12)
    # As much as the last fit with the highest cost.
    epsilons = [s.epsilon for s in accountant.spends()]
    assert total.epsilon == pytest.approx(sum(epsilons[:-1]) + max(epsilons))


def test_planned_loss_counts_drawn_candidates_as_the_dearest():
    one = RandomizedSearchCV(SMALL, {"epsilon": [0.5, 1.0, 2.0]}, n_iter=2, cv=2)
    plan = planned_loss(one)
    assert plan.at_most and plan.n_releases == 5 and plan.total().epsilon == 10.0


def test_check_of_a_plan_refuses_a_small_budget_unpaid():
    one = search(classifier(epsilon=2.0), M, cv=5)
    accountant = PrivacyAccountant(30.0)
    with pytest.raises(PrivacyBudgetExceeded, match="asked for epsilon=42"):
        planned_loss(one, CLOUDS, accountant=accountant).check()
    with accountant, pytest.raises(PrivacyBudgetExceeded):
        planned_loss(one, CLOUDS).check()
    assert len(accountant) == 0
    planned_loss(one, CLOUDS, accountant=PrivacyAccountant(42.0)).check()


@pytest.mark.laws
@pytest.mark.parametrize("epsilon", [10.9, 11.0, 22.0])
@pytest.mark.parametrize("composition", ["basic", "zcdp"])
def test_check_of_a_plan_accepts_exactly_what_the_accountant_does(epsilon, composition):
    """The answer of the check is that of the accountant, on both sides of the edge."""
    one = search(SMALL, {"n_components": [1, 2]}, cv=5)

    def outcome(action):
        accountant = PrivacyAccountant(epsilon, 1.1e-5, composition=composition)
        with accountant, warnings.catch_warnings(action="ignore"):
            try:
                action()
            except PrivacyBudgetExceeded:
                return False, len(accountant)
        return True, len(accountant)

    fits, spent = outcome(lambda: planned_loss(one, ROWS).check())
    assert spent == 0
    # With "raise", a refusal in the middle is raised.
    assert outcome(lambda: one.fit(ROWS))[0] == fits
    assert fits or composition == "basic"


def test_check_of_a_plan_asks_each_accountant_for_its_own():
    rich, poor = PrivacyAccountant(10.0, 0.1), PrivacyAccountant(0.1, 0.1)
    pipeline = make_pipeline(PrivatePCA(2, accountant=rich), DPMoG(2, accountant=poor))
    refuses(r"left: epsilon=0\.1", planned_loss(pipeline, ROWS).check, error=PrivacyBudgetExceeded)
    pipeline.set_params(dpmog__accountant=None)
    refuses("DPMoG has no accountant", planned_loss(pipeline, ROWS).check)
    planned_loss(pipeline, ROWS, accountant=rich).check()
    assert len(rich) == len(poor) == 0


def test_check_of_a_plan_refuses_losses_of_different_neighbours():
    pipeline = make_pipeline(PrivatePCA(2), DPMoG(2, adjacency="replace-one"))
    accountant = PrivacyAccountant(10.0, 0.1)
    refuses("adjacency", planned_loss(pipeline, ROWS, accountant=accountant).check)
    accountant.spend(1.0, adjacency="replace-one")
    refuses("adjacency", planned_loss(PrivatePCA(2), ROWS, accountant=accountant).check)


class Watched(TransformerMixin, BaseEstimator):
    """Fails when it is used."""

    def fit(self, X, y=None):
        raise AssertionError("a dry run has fitted")

    transform = fit


class Hidden:
    """Rows whose shape alone may be asked for."""

    shape = (240, 2)

    def __getattr__(self, name):
        raise AssertionError(f"a dry run has looked at {name}")


@pytest.mark.filterwarnings("ignore::sklearn_dptda.privacy.PrivacyLeakWarning")
def test_planned_loss_fits_nothing_and_looks_at_no_value():
    pipeline = make_pipeline(Watched(), PrivateBounds(shape="box"), memory=None)
    one = search(pipeline, {"privatebounds__epsilon": [1.0]}, cv=LeaveOneOut())
    plan = planned_loss(one, Hidden())
    assert plan.n_releases == 241
    # Behind another step, the columns are not known, and the bound of pure privacy is used.
    assert plan.releases[0].guarantee.rho is None


def test_planned_loss_prints_a_short_text():
    one = search(classifier(epsilon=2.0), M, cv=5)
    assert str(planned_loss(one, CLOUDS)) == (
        "21 releases: 21 of PrivatePersistence (epsilon=2 each); together epsilon=42, delta=0 by "
        "basic composition. An attack on one record, by someone who knows all others, finds out "
        "which of two values it has with an advantage of at most 1 over guessing."
    )
    assert str(planned_loss(StandardScaler())) == "No release: nothing is paid."
    zcdp = PrivacyAccountant(10.0, 1e-5, composition="zcdp")
    text = str(planned_loss(search(SMALL, {"epsilon": [1.0, 2.0]}), accountant=zcdp))
    assert text.startswith("At most 5 releases: 2 of DPMoG (epsilon=1, delta=1e-06 each), 3 of")
    assert "delta=1e-05 by zcdp composition. An attack" in text


def own_score(estimator, X, y=None):
    return float(estimator.predict(X).sum())


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (lambda: planned_loss(BaggingClassifier(classifier())), "BaggingClassifier holds private"),
        (lambda: planned_loss(FunctionTransformer(SMALL.fit)), "FunctionTransformer holds private"),
        (lambda: planned_loss(Nested(SMALL)), "Nested holds private"),
        (lambda: planned_loss(BaggingClassifier(private_box())), "BaggingClassifier holds private"),
        (
            lambda: planned_loss(
                HalvingRandomSearchCV(Pipeline([("a", "passthrough")]), {"a": [SMALL]})
            ),
            "HalvingRandomSearchCV holds",
        ),
        (lambda: planned_loss(HalvingGridSearchCV(SMALL, K)), "HalvingGridSearchCV holds"),
        (lambda: planned_loss(classifier(), cv=2, scoring=own_score), "scoring is a function"),
        (lambda: planned_loss(SMALL, cv=iter([(0, 1)])), "cv is an iterator"),
        (lambda: planned_loss(SMALL, method="guess"), "method must be None or one of"),
        (lambda: planned_loss(SMALL, method="fit", cv=3), "method must be None if cv is given"),
        (lambda: planned_loss(DPMoG(2, epsilon=-1.0)), "'epsilon' parameter"),
        (lambda: planned_loss(DPMoG(2, delta=0.0)), "delta must be positive"),
        (lambda: planned_loss(KNormMechanism(**BOX)), "number of columns"),
        (
            lambda: planned_loss(RandomizedSearchCV(SMALL, {"epsilon": Uniform()})),
            "random_state of the search",
        ),
    ],
)
def test_planned_loss_refuses_what_it_cannot_know(plan, message):
    refuses(message, plan)


class Nested(DPLloyd):
    """A private estimator that forgets to speak for another, which it would fit as well."""

    def __init__(self, first=None, epsilon=1.0, delta=1e-6, accountant=None, random_state=None):
        super().__init__(2, epsilon, delta, accountant=accountant, random_state=random_state)
        self.first = first


class Uniform:
    def rvs(self, random_state=None):
        return 1.0


def test_planned_loss_of_public_composites_and_scores_is_free():
    public = make_pipeline(DTMFiltration(0.3, bounds=(-1, 1)), CubicalPersistence())
    assert planned_loss(BaggingClassifier(public)).n_releases == 0
    # Scoring reads no records of a model that pays in fit.
    assert planned_loss(SMALL, cv=4, scoring=own_score).n_releases == 4
    free = HalvingGridSearchCV(LogisticRegression(), {"C": [1, 2]}, resource="max_iter")
    assert planned_loss(free, np.zeros((600, 2))).n_releases == 0


@pytest.mark.filterwarnings("ignore:.*without privacy")
@pytest.mark.parametrize(
    "make",
    [
        lambda lda: BaggingClassifier(lda, n_estimators=3),
        lambda lda: VotingClassifier([("one", lda), ("two", clone(lda).set_params(epsilon=0.3))]),
        lambda lda: GridSearchCV(lda, {"epsilon": [0.1, 0.2]}, cv=2, refit=False),
        lambda lda: HalvingGridSearchCV(lda, {"adjacency": ["add-remove"]}, cv=2, random_state=0),
    ],
    ids=["bagging", "voting", "search", "halving"],
)
def test_rehearsed_loss_is_what_the_call_pays(make):
    rng, budget = np.random.default_rng(0), PrivacyAccountant(99.0, 1e-3)
    X, y = rng.uniform(size=(60, 2)), np.arange(60) % 2
    lda = DPLinearDiscriminantAnalysis([0, 1], 0.4, bounds=(0, 1), accountant=budget)
    model = make(lda)
    plan = planned_loss(model, rehearse=(rng.uniform(size=(60, 2)), y))
    assert len(budget) == 0 and "in a rehearsal" in str(plan) and not plan.at_most
    plan.check()
    model.fit(X, y)
    assert len(budget) == plan.n_releases > 1
    assert budget.total() == pytest.approx(plan.total())
    refuses("rehearse plans one fit", planned_loss, model, rehearse=(X, y), cv=3)
