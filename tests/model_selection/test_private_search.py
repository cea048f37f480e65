"""Private search: one payment for all runs, only the best run is kept, bad input is unpaid."""

import math
import pickle

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, norm, uniform
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVR
from sklearn.utils import get_tags

from sklearn_dptda import (
    DiagramFeatures,
    DTMFiltration,
    PrivacyAccountant,
    PrivacyBudgetExceeded,
    PrivatePersistence,
)
from sklearn_dptda.cluster import DPLloyd, DPMoG
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.discriminant_analysis import DPLinearDiscriminantAnalysis
from sklearn_dptda.metric_privacy import MetricMeasure
from sklearn_dptda.model_selection import PrivateSearchCV, pipeline_guarantee, planned_loss
from sklearn_dptda.model_selection._row_scores import RowScore, ScoreNoise, row_score
from sklearn_dptda.privacy import (
    NoiseSource,
    NoiseWarning,
    PrivacyGuarantee,
    PrivacyLeakWarning,
    PrivacyLedgerError,
    PrivateEstimatorMixin,
)
from tests._refusals import refuses, refuses_unpaid

pytestmark = pytest.mark.filterwarnings("ignore:At epsilon")

X = make_two_circles(1000, random_state=0)
MIXTURE = DPMoG(bounds=(-2.5, 3))
GRID = {"n_components": [2, 4]}


def search_of_rows(**options):
    options = {"scoring": "log_likelihood", "random_state": 0, "max_runs": 6, **options}
    return PrivateSearchCV(MIXTURE, GRID, **options)


@pytest.fixture(scope="module")
def clouds():
    rng = np.random.default_rng(0)
    shapes = [
        make_two_circles(300, random_state=i) if i % 2 else rng.uniform(-2.5, 3, (300, 2))
        for i in range(12)
    ]
    return shapes, np.arange(12) % 2


def search_of_clouds(**options):
    pipeline = make_pipeline(
        DTMFiltration(0.1, bounds=(-2.5, 3), resolution=8),
        PrivatePersistence(1.0),
        DiagramFeatures(value_range=(0, 2)),
        LogisticRegression(),
    )
    grid = {"dtmfiltration__m": [0.1, 0.4], "logisticregression__C": [0.1, 1.0]}
    return PrivateSearchCV(pipeline, grid, **{"cv": 2, "random_state": 0, "max_runs": 4, **options})


# What it costs, and what it keeps.


def test_search_of_clouds_pays_once_and_keeps_one_run(clouds):
    budget = PrivacyAccountant(10.0)
    search = search_of_clouds(accountant=budget)
    plan = planned_loss(search, clouds[0], method="fit")
    search.fit(*clouds)
    guarantee = search.privacy_guarantee_
    assert len(budget) == 1 and budget.total().epsilon == plan.total().epsilon == guarantee.epsilon
    # A run is one choice by the exponential mechanism, which costs less than two pure runs.
    assert 1 < guarantee.epsilon < 2 and guarantee.delta == 0
    assert guarantee.adjacency == "replace-one" and guarantee.unit == "one point of a cloud"
    assert {len(values) for values in search.cv_results_.values()} == {1}
    assert search.best_params_ == search.cv_results_["params"][0]
    assert search.best_estimator_[0].m == search.best_params_["dtmfiltration__m"]
    assert 0 <= search.best_score_ <= 1 and list(search.classes_) == [0, 1]
    # New clouds are a new release, which the same budget pays for.
    assert search.predict(clouds[0]).shape == (12,)
    assert [spend.estimator for spend in budget.spends()] == [
        "PrivateSearchCV",
        "PrivatePersistence",
    ]
    later = planned_loss(search, clouds[0], method="predict")
    assert later.total().epsilon == 1 and later.releases[0].accountant is budget


@pytest.mark.parametrize("law", ["reciprocal", "geometric", [3, 2, 1]])
def test_search_of_rows_costs_what_is_planned(law):
    budget = PrivacyAccountant(20.0, 1e-4)
    search = search_of_rows(law=law, accountant=budget)
    plan = planned_loss(search, X)
    search.fit(X)
    (spend,) = budget.spends()
    guarantee = search.privacy_guarantee_
    assert (spend.epsilon, spend.delta) == plan.total() == (guarantee.epsilon, guarantee.delta)
    # A score, and more runs, cost less than another run: noise is Gaussian.
    assert 1.05 < guarantee.epsilon < 1.7 and guarantee.delta == 1e-6
    assert search.best_estimator_.privacy_guarantee_ == guarantee
    assert not hasattr(search, "transform")
    assert search.predict(X).shape == (1000,) and math.isfinite(search.score(X))


def test_score_of_rows_is_paid_as_its_share():
    def delta(mu, epsilon):
        above, below = norm.cdf([mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu])
        return above - math.exp(epsilon) * below

    def cost(estimator, scoring):
        grid = [{"epsilon": [1.0]}]
        search = PrivateSearchCV(estimator, grid, scoring=scoring, law=[1])
        return planned_loss(search, X, method="fit").total()

    # Squares of Gaussian parameters add up, and nine parts of ten are those of the run.
    mu = brentq(lambda mu: delta(mu, 1.0) - 1e-6, 1e-3, 10)
    epsilon = brentq(lambda epsilon: delta(mu / math.sqrt(0.9), epsilon) - 1e-6, 1, 10)
    assert cost(MIXTURE, "log_likelihood") == (pytest.approx(epsilon, rel=2e-3), 1e-6)
    kmeans = DPLloyd(bounds=(-2.5, 3), delta=0)
    assert cost(kmeans, "inertia") == (pytest.approx(1 / 0.9, rel=1e-9), 0.0)


def test_search_of_a_given_epsilon_scales_its_candidates():
    for epsilon in (0.3, 2.0, math.inf):
        search = search_of_rows(epsilon=epsilon).fit(X)
        assert search.privacy_guarantee_.epsilon == epsilon
        own = search.best_estimator_.epsilon
        assert own == math.inf if math.isinf(epsilon) else 0.55 * epsilon < own < 0.9 * epsilon
    # A dearer candidate pays for all of them, whatever is chosen.
    grid = {"epsilon": [0.5, 1.0], "n_components": [2]}
    search = PrivateSearchCV(MIXTURE, grid, scoring="log_likelihood", max_runs=6)
    dear = PrivateSearchCV(MIXTURE, {"n_components": [2]}, scoring="log_likelihood", max_runs=6)
    losses = [planned_loss(each, X).total() for each in (search, dear)]
    assert losses[0] == losses[1]


def test_epsilons_of_steps_without_privacy_are_not_scaled(clouds):
    search = search_of_clouds(epsilon=0.9)
    search.estimator.steps[-1] = ("svr", SVR(epsilon=0.3))
    search.param_grid = {"dtmfiltration__m": [0.1, 0.4]}
    search.fit(clouds[0], clouds[1].astype(float))
    assert search.best_estimator_[-1].epsilon == 0.3 and search.best_estimator_[1].epsilon < 0.8


def test_search_stores_its_release(tmp_path):
    budget = PrivacyAccountant(5.0, 1e-4, path=str(tmp_path / "ledger.db"))
    search = search_of_rows(accountant=budget).fit(X)
    stored = budget.release(budget.releases()[-1].key)
    np.testing.assert_array_equal(stored["means_"], search.best_estimator_.means_)
    assert stored["best_score_"] == search.best_score_
    assert pickle.loads(pickle.dumps(search)).best_params_ == search.best_params_


# Runs.


class Bit(PrivateEstimatorMixin):
    """Releases one bit by randomized response, or fails by chance. Even records count as 1."""

    def __init__(self, epsilon=1.0, fails=False, accountant=None, random_state=None):
        self.epsilon = epsilon
        self.fails = fails
        self.accountant = accountant
        self.random_state = random_state

    def fit(self, X, y=None):
        with self._paid(self._guarantee_ahead(None)) as seeds:
            noise = NoiseSource(*seeds)
            if self.fails and noise.below(2):
                raise ZeroDivisionError("a message about records")
            truth = int(np.asarray(X)[0, 0] % 2 == 0)
            lies = noise.below(2**40) >= 2**40 * math.exp(self.epsilon) / (
                1 + math.exp(self.epsilon)
            )
            self.bit_ = truth ^ lies
        self.privacy_guarantee_ = self._guarantee_ahead(None)
        return self


class BitScore(ClassifierMixin, BaseEstimator):
    """Scores the bit that it was given, whatever the labels are."""

    def fit(self, X, y=None):
        self.classes_ = np.array([0, 1])
        self.bit_ = float(np.ravel(X)[0])
        return self

    def score(self, X, y=None):
        return float(np.ravel(X)[0])


class ReleasedBit(Bit):
    """Releases the bit in ``transform``."""

    def fit(self, X, y=None):
        self._promise(self._guarantee_ahead(None))
        return self

    def fit_transform(self, X, y=None):
        return self.fit(X).transform(X)

    def transform(self, X):
        bit = Bit.fit(clone_to_bit(self), X).bit_
        return np.full((len(X), 1), float(bit))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.privacy.releases = "transform"
        return tags


def clone_to_bit(released):
    return Bit(**released.get_params())


@pytest.mark.laws
def test_best_of_the_runs_has_the_law_of_the_proof():
    # 600 searches, with two tests at a false-alarm rate of 1e-6 each. Fewer runs are detected.
    pipeline, n = make_pipeline(ReleasedBit(1.0), BitScore()), 600
    rows, y = np.ones((4, 1)), np.array([0, 1, 0, 1])
    law = [4, 3, 2, 1]
    search = PrivateSearchCV(pipeline, {"bitscore": [BitScore()]}, law=law, cv=2)
    found = [search.set_params(random_state=i).fit(rows, y).best_score_ for i in range(n)]
    high = 1 / (1 + math.e)
    weights = np.array(law) / 10
    expected = 1 - (weights * (1 - high) ** np.arange(1, 5)).sum()
    low, most = binom.ppf([5e-7, 1 - 5e-7], n, expected)
    assert low <= sum(found) <= most
    assert not low <= n * high <= most


def test_runs_that_fail_have_the_lowest_score_and_no_message():
    scoring = (lambda model, X, y: np.ones(len(X)), 0.0, 1.0)
    budget = PrivacyAccountant(math.inf)
    search = PrivateSearchCV(Bit(), {"fails": [True]}, scoring=scoring, accountant=budget)
    # With eight runs, all fail in one search of 256.
    search.set_params(law=[1] + [0] * 6 + [10**9], max_runs=8, random_state=1).fit(X)
    assert search.best_params_ == {"fails": True} and math.isfinite(search.best_score_)
    failed = 0
    for seed in range(8):
        search.set_params(law=[1], random_state=seed)
        try:
            search.fit(X)
        except RuntimeError as error:
            failed += 1
            assert "The best run failed" in str(error) and "records" not in str(error)
            assert error.__cause__ is None and error.__context__ is None
    assert 0 < failed < 8 and len(budget) == 9
    # Scores that are not numbers are the lowest ones of a row.
    undefined = (lambda model, X, y: np.full(len(X), np.nan), 0.0, 1.0)
    assert math.isfinite(search.set_params(scoring=undefined).fit(X).best_score_)


def test_search_under_a_name_pays_and_draws_once(tmp_path, clouds):
    budget = PrivacyAccountant(9.0, 1e-4, path=str(tmp_path / "ledger.db"))
    for make, data in ((search_of_rows, (X,)), (search_of_clouds, clouds)):
        if make is search_of_clouds:
            budget = PrivacyAccountant(9.0, path=str(tmp_path / "clouds.db"))
        found = [
            make(random_state=None, accountant=budget.under("work")).fit(*data) for _ in range(2)
        ]
        assert len(budget) == 1
        assert found[0].best_score_ == found[1].best_score_
        assert found[0].best_params_ == found[1].best_params_


def test_padded_search_makes_all_runs():
    calls = []

    def rows_of(model, X, y):
        calls.append(1)
        return np.zeros(len(X))

    search = PrivateSearchCV(Bit(), {"fails": [False]}, scoring=(rows_of, 0, 1), max_runs=5)
    search.set_params(pad=True).fit(X)
    # The rehearsal on made-up rows comes first.
    assert len(calls) == 1 + 5
    search.set_params(pad=False, law=[1]).fit(X)
    assert len(calls) == 6 + 1 + 1


def test_padded_search_publishes_none_of_the_other_runs():
    # Each run has a higher score than the one before, in the order in which they are made.
    calls = []

    def rising(model, X, y):
        calls.append(1)
        return np.full(len(X), float(len(calls)))

    for n_runs in (1, 3, 5):
        calls.clear()
        law = [1] + [0] * 4
        law[n_runs - 1] = 10**12
        search = PrivateSearchCV(
            Bit(math.inf), {"fails": [False]}, scoring=(rising, -9, 9), law=law, pad=True
        ).fit(X)
        # The middle of the range counts as 0, and the first call is the rehearsal.
        assert len(calls) == 6 and search.best_score_ == pytest.approx(len(X) * (1 + n_runs))


# Scores.


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_total_of_scores_moves_within_its_sensitivity(adjacency, rng):
    score = RowScore(lambda model, X, y: X[:, 0], -1.0, 3.0)
    moved = []
    for _ in range(300):
        rows = rng.normal(1, 5, (20, 1)) if rng.random() < 0.5 else rng.choice([-9.0, 9.0], (20, 1))
        ids = rng.integers(0, 6, 20)
        person = ids == ids[0]
        others = rows.copy()
        if adjacency == "add-remove":
            pair = (rows, ids), (rows[~person], ids[~person])
        else:
            others[person] = rng.choice([-1e300, 1e300, np.nan], (person.sum(), 1))
            pair = (rows, ids), (others, ids)
        first, second = (score.total(None, each, None, codes) for each, codes in pair)
        moved.append(abs(first - second))
        alone = (
            (rows, rows[1:])
            if adjacency == "add-remove"
            else (rows, np.vstack([[[9.0]], rows[1:]]))
        )
        moved.append(abs(score.total(None, alone[0], None) - score.total(None, alone[1], None)))
    most = 2**20 if adjacency == "add-remove" else 2**21
    assert 0.9 * most < max(moved) <= most
    assert ScoreNoise("pure", 1.0, adjacency).sensitivity == most


def test_scores_by_name_are_bounded_and_prefer_better_models():
    model = DPMoG(4, epsilon=math.inf, bounds=(-2.5, 3), random_state=0).fit(X)
    worse = DPMoG(1, epsilon=math.inf, bounds=(-2.5, 3), random_state=0).fit(X)
    score = row_score("log_likelihood", model, 2)
    assert score.total(model, X, None) > score.total(worse, X, None)
    assert score.low == pytest.approx(math.log(0.05) - 2 * math.log(5.5))
    centres = DPLloyd(8, epsilon=math.inf, delta=0, bounds=(-2.5, 3), random_state=0).fit(X)
    few = DPLloyd(1, epsilon=math.inf, delta=0, bounds=(-2.5, 3), random_state=0).fit(X)
    score = row_score("inertia", centres, 2)
    total = score.total(centres, X, None)
    assert total > score.total(few, X, None) and score.low == -0.5
    # The score has the units of the box, not those that a run has found.
    scaled = row_score("inertia", centres.set_params(bounds=([-2.5, -25], [3, 30])), 2)
    columns = np.array([1.0, 10.0])
    centres.cluster_centers_, centres.units_ = centres.cluster_centers_ * columns, np.ones(2)
    assert scaled.total(centres, X * columns, None) == pytest.approx(total)


def test_inertia_of_a_row_with_gaps_is_that_of_its_known_values():
    model = DPLloyd(2, epsilon=math.inf, delta=0, bounds=(0, 1), missing=True, random_state=0)
    model.fit(np.tile([[0.1, 0.1, 0.1], [0.9, 0.9, 0.9]], (20, 1)))
    centres = np.array([[0.1, 0.2, 0.3], [0.9, 0.8, 0.7]])
    model.cluster_centers_ = centres
    score = row_score("inertia", model, 3)
    rows = np.array([[0.1, 0.2, 0.3], [0.3, np.nan, 0.3], [np.nan, np.nan, 0.8], [np.nan] * 3])
    # In half widths of the box: (2 * 0.2)**2 and (2 * 0.1)**2.
    steps = [0.0, 0.16, 0.04, 0.0]
    found = score.in_units(1) * (score.steps(model, rows, None) - 2**20)
    assert -found == pytest.approx(steps, abs=1e-5)


@pytest.mark.parametrize("offset", [0.0, 1e7])
def test_inertia_of_a_row_depends_on_this_row_alone(offset, rng):
    # The rounding of a product of matrices moved the sum of the others by a whole row.
    rows = offset + rng.random((600, 3))
    model = DPLloyd(4, bounds=(offset, offset + 1), random_state=0).fit(rows)
    score = row_score("inertia", model, 3)
    total = score.total(model, rows, None)
    for place in (0, 17, 599):
        others = score.total(model, np.delete(rows, place, axis=0), None)
        assert total - others == score.total(model, rows[place : place + 1], None)


def test_people_of_a_search_of_kmeans_have_their_bounds():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(id=np.arange(1000) // 2)
    for bounds in ((-2.5, 3), ([-2.5, -2.5], [3, 3])):
        kmeans = DPLloyd(2, bounds=bounds, groups="id")
        search = PrivateSearchCV(kmeans, {"n_clusters": [2, 3]}, epsilon=4.0, scoring="inertia")
        assert math.isfinite(search.fit(frame).best_score_)


def test_search_of_a_private_classifier_is_scored_by_noisy_hits():
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (3000, 2))
    y = (rows[:, 0] > 0).astype(int)
    square = FunctionTransformer(np.square)
    classifier = DPLinearDiscriminantAnalysis(classes=[0, 1], bounds=(-1, 1), epsilon=2.0)
    search = PrivateSearchCV(
        make_pipeline(FunctionTransformer(), classifier),
        {"functiontransformer": [FunctionTransformer(), square]},
        scoring="accuracy",
        law=[1] * 6,
        random_state=0,
    ).fit(rows, y)
    assert search.best_params_["functiontransformer"].func is None
    assert (search.predict(rows) == y).mean() > 0.9 and is_classifier(search)
    # The score is a sum of hits, each of which counts a half.
    assert search.best_score_ == pytest.approx(((search.predict(rows) == y) - 0.5).sum(), abs=60)
    assert get_tags(search).privacy.labels


def test_people_count_as_one_row_in_a_score():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b"]).assign(person=np.arange(1000) // 5)
    search = PrivateSearchCV(
        DPMoG(bounds=(-2.5, 3), groups="person", epsilon=5.0),
        GRID,
        scoring="log_likelihood",
        random_state=0,
    ).fit(frame)
    assert "one person" in search.privacy_guarantee_.unit
    # 200 people, each of whom counts as much as half the range.
    most = 100 * (3 + 2 * math.log(2) - math.log(0.05))
    assert abs(search.best_score_) < most + 50


def test_union_of_releases_is_one_run_in_one_process(clouds):
    def branch(m):
        pipeline = search_of_clouds().estimator[:3]
        return pipeline.set_params(dtmfiltration__m=m)

    union = make_union(branch(0.1), branch(0.4), n_jobs=2)
    grid = {"logisticregression__C": [0.1, 1.0]}
    budget = PrivacyAccountant(10.0)
    search = PrivateSearchCV(
        make_pipeline(union, LogisticRegression()), grid, cv=2, accountant=budget.under("union")
    )
    plan = planned_loss(search, clouds[0], method="fit")
    search.fit(*clouds)
    # A run is two choices, whose search costs less than two runs of 2.
    assert len(budget) == 1 and 2 < budget.total().epsilon == plan.total().epsilon < 3.5
    assert search.best_estimator_[0].n_jobs == 1
    # New clouds are two releases, from the same budget.
    search.predict(clouds[0])
    assert budget.total().epsilon == pytest.approx(plan.total().epsilon + 2)


def test_whole_steps_are_candidates(clouds):
    budget = PrivacyAccountant(10.0)
    search = search_of_clouds(accountant=budget)
    dimensions = [PrivatePersistence(homology_dimensions=each) for each in ((0,), (0, 1))]
    search.param_grid = {"privatepersistence": dimensions}
    search.fit(*clouds)
    assert search.best_estimator_[1].homology_dimensions in ((0,), (0, 1))
    assert len(budget) == 1 and dimensions[0].accountant is None
    # Labels are public, and the guarantee says so, once.
    guarantees = search.privacy_guarantee_, pipeline_guarantee(make_pipeline(search))
    assert [str(each).count("labels, which count as public") for each in guarantees] == [1, 1]


def test_search_warns_of_noise_before_it_pays(clouds):
    search = search_of_clouds(accountant=PrivacyAccountant(1e-9), epsilon=0.01)
    with pytest.warns(NoiseWarning), pytest.raises(PrivacyBudgetExceeded):
        search.fit(*clouds)


# Refusals.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scoring": None}, "scoring=None is not private"),
        ({"scoring": "f1"}, "scoring='f1' is not private"),
        ({"scoring": (np.sum, 1.0, 1.0)}, "is not private"),
        ({"scoring": "accuracy", "law": [0, 1]}, "law=.* must be"),
        ({"law": [1.5, 1]}, "law=.* must be"),
        ({"law": [1] * 7}, "law=.* must be"),
        ({"max_runs": 101}, "max_runs"),
        ({"estimator": None}, "estimator and param_grid must be given"),
        ({"estimator": DPMoG()}, "needs bounds in numbers"),
        ({"estimator": DPMoG(bounds=(0, 1), random_state=0)}, "random_state must be None"),
        (
            {"estimator": LogisticRegression(), "param_grid": {"C": [1.0]}, "scoring": "accuracy"},
            "must have a private step",
        ),
        ({"param_grid": {"n_components": [2, -1]}}, "n_components"),
        ({"param_grid": {"accountant": [PrivacyAccountant(1.0)]}}, "must be None"),
        ({"param_grid": {"epsilon": [1.0, math.inf]}, "epsilon": 1.0}, "cannot be scaled"),
        ({"epsilon": 1e-7}, "epsilon=1e-07 is too small"),
        ({"param_grid": {"adjacency": ["add-remove", "replace-one"]}}, "have the same adjacency"),
        ({"estimator": search_of_rows(), "param_grid": {"max_runs": [2]}}, "cannot contain other"),
        ({"scoring": "inertia"}, "inertia"),
    ],
)
def test_search_refuses_what_has_no_guarantee_unpaid(options, message):
    refuses_unpaid(message, search_of_rows().set_params(**options).fit, X)


def test_search_refuses_public_errors_unpaid(clouds):
    shapes, classes = clouds
    gap = [np.where(shapes[0] > 2, np.nan, shapes[0]), *shapes[1:]]
    for options, X, y, message in (
        ({}, shapes, None, "y must be given"),
        ({}, shapes, classes[:5], "inconsistent"),
        ({}, gap, classes, "NaN"),
        ({"scoring": "no such score"}, shapes, classes, "scoring"),
        ({"cv": 50}, shapes, classes, "n_splits=50"),
    ):
        refuses_unpaid(message, search_of_clouds(**options).fit, X, y)
    rows = search_of_rows(scoring="accuracy")
    refuses_unpaid(None, rows.fit, shapes[0], shapes[0])
    refuses_unpaid("y must be given, because scoring", rows.fit, shapes[0])


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (MetricMeasure(1.0, bounds=(-3, 4)), "metric privacy"),
        (DPMoG(bounds=(0, 1), accountant=PrivacyAccountant(1.0)), "must be None"),
        (make_pipeline(FunctionTransformer(), MIXTURE, memory="cache"), "memory"),
        (make_pipeline(ColumnTransformer([("a", MIXTURE, [0])]), MIXTURE), "inside of"),
        (make_pipeline(ReleasedBit(), MIXTURE), "After a step that releases in transform"),
        (make_pipeline(ReleasedBit()), "After a step that releases in transform"),
        (
            make_pipeline(make_union(ReleasedBit(), FunctionTransformer()), LogisticRegression()),
            "Each part of a union must release",
        ),
    ],
)
def test_search_refuses_steps_that_it_cannot_count(estimator, message):
    scoring = (lambda model, X, y: np.zeros(len(X)), 0.0, 1.0)
    refuses(message, PrivateSearchCV(estimator, [{}], scoring=scoring).fit, X)


def test_search_refuses_distributions_and_other_splits_under_a_name(clouds, tmp_path):
    search = search_of_clouds()
    search.param_grid = {"dtmfiltration__m": uniform(0.05, 0.4)}
    refuses("must have lists", search.fit, *clouds)
    budget = PrivacyAccountant(9.0, path=str(tmp_path / "clouds.db"))
    options = {"random_state": None, "cv": KFold(2, shuffle=True)}
    search_of_clouds(accountant=budget.under("work"), **options).fit(*clouds)
    with pytest.raises(PrivacyLedgerError):
        search_of_clouds(accountant=budget.under("work"), **options).fit(*clouds)
    assert len(budget) == 1


def test_runs_of_a_search_print_nothing(clouds, capsys):
    search = search_of_clouds(law=[1, 1, 1])
    search.estimator.set_params(verbose=True)
    search.fit(*clouds)
    assert capsys.readouterr().out == ""


def test_search_warns_of_steps_that_learn_without_privacy():
    leaking = make_pipeline(StandardScaler(), DPMoG(bounds=[[-3, -3], [3, 3]]))
    search = PrivateSearchCV(leaking, {"dpmog__n_components": [2]}, scoring="log_likelihood")
    with pytest.warns(PrivacyLeakWarning, match="learns from the records"):
        search.fit(X)
    assert not search.privacy_guarantee_.public_parameters


# scikit-learn.


def test_search_behaves_like_a_search_of_scikit_learn():
    pytest.importorskip("pandas")
    kmeans = DPLloyd(3, bounds=(-2.5, 3))
    search = PrivateSearchCV(kmeans, {"n_clusters": [2, 3]}, scoring="inertia", random_state=0)
    again = clone(search)
    assert again.get_params()["estimator__n_clusters"] == 3 and not hasattr(again, "best_params_")
    assert not hasattr(search, "decision_function") and hasattr(search, "predict_proba")
    search.set_output(transform="pandas").fit(X)
    assert list(search.transform(X).columns) and search.n_features_in_ == 2
    assert not hasattr(search, "score_samples") and get_tags(search).privacy.releases == "fit"
    guarantee = pipeline_guarantee(make_pipeline(FunctionTransformer(), search).fit(X))
    assert isinstance(guarantee, PrivacyGuarantee) and guarantee.epsilon > 1
