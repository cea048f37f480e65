import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    PolynomialFeatures,
    StandardScaler,
)

from sklearn_dptda import (
    CubicalPersistence,
    DiagramFeatures,
    DTMFiltration,
    PersistenceProfile,
    PrivateBettiNumbers,
    PrivatePersistence,
)
from sklearn_dptda.cluster import DPLloyd, DPMoG
from sklearn_dptda.decomposition import PrivatePCA
from sklearn_dptda.metric_privacy import KNormMechanism
from sklearn_dptda.model_selection import pipeline_guarantee, planned_loss
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyLeakWarning
from sklearn_dptda.synthetic import PrivateMeasure
from tests._refusals import refuses

RNG = np.random.default_rng(0)
CLOUDS = list(RNG.uniform(-1, 1, size=(6, 80, 2)))
ROWS = RNG.uniform(size=(240, 3))
BOX = {"bounds": (0, 1)}
CLUSTERS = DPMoG(2, covariance_type="spherical", **BOX)


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning)
        yield


def diagrams(epsilon=1.0, bounds=(-1, 1)):
    return make_pipeline(
        DTMFiltration(0.3, bounds=bounds, resolution=7),
        PrivatePersistence(epsilon),
        DiagramFeatures(value_range=(0, 1)),
    )


@pytest.mark.parametrize(
    ("pipeline", "X", "epsilon"),
    [
        (diagrams(bounds=PrivateBounds(0.5, start=(-9, 9))), CLOUDS, 1.5),
        (FeatureUnion([("a", diagrams()), ("b", diagrams(2.0))]), CLOUDS, 3.0),
        (make_pipeline(diagrams(), StandardScaler(), "passthrough"), CLOUDS, 1.0),
        (make_pipeline(Normalizer(), PrivatePCA(2, 0.7, **BOX), CLUSTERS), ROWS, 1.7),
        # Equal releases that are made twice.
        (FeatureUnion([(name, PrivatePCA(1, 0.7, **BOX)) for name in "ab"]), ROWS, 1.4),
    ],
)
def test_pipeline_guarantee_is_the_sum_that_was_paid(pipeline, X, epsilon):
    accountant = PrivacyAccountant(10.0, 0.1)
    with accountant, warnings.catch_warnings(action="error", category=PrivacyLeakWarning):
        (pipeline.fit if hasattr(pipeline, "predict") else pipeline.fit_transform)(X)
        guarantee = pipeline_guarantee(pipeline)
    assert guarantee.holds
    assert guarantee.epsilon == pytest.approx(epsilon)
    total = pytest.approx((guarantee.epsilon, guarantee.delta))
    assert accountant.total() == total and planned_loss(pipeline, X).total() == total


def test_pipeline_guarantee_says_that_labels_are_public():
    model = make_pipeline(diagrams(), LogisticRegression()).fit(CLOUDS, [0, 1] * 3)
    assert "labels, which count as public" in str(pipeline_guarantee(model))


@pytest.mark.parametrize(
    ("pipeline", "name"),
    [
        (make_pipeline(StandardScaler(), CLUSTERS), "StandardScaler"),
        (make_pipeline(PrivatePCA(2, **BOX), LogisticRegression()), "LogisticRegression"),
    ],
)
def test_pipeline_guarantee_names_steps_that_learn_records(pipeline, name):
    with warnings.catch_warnings(action="ignore"):
        pipeline.fit(ROWS, np.arange(240) % 2)
    with pytest.warns(PrivacyLeakWarning, match=f"{name} learnt from the records"):
        guarantee = pipeline_guarantee(pipeline)
    assert not guarantee.holds and "should be public" in str(guarantee)


@pytest.mark.parametrize(
    ("step", "private", "nested"),
    [
        (StandardScaler(), CLUSTERS, False),
        (SimpleImputer(), CLUSTERS, True),
        (StandardScaler(), DPLloyd(2, **BOX), True),
        (SimpleImputer(), PrivatePCA(2, **BOX), False),
        (StandardScaler(), PrivateMeasure(**BOX), True),
        (SimpleImputer(), PrivateBounds(1.0), True),
        (StandardScaler(), KNormMechanism(**BOX), False),
        (SimpleImputer(), KNormMechanism(**BOX), True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_private_fit_in_a_pipeline_names_steps_that_learnt_before(step, private, nested):
    name = type(step).__name__
    pipeline = make_pipeline(step, clone(private))
    if nested:
        pipeline = make_pipeline(pipeline)
    with pytest.warns(
        PrivacyLeakWarning, match=f"{name} learnt .* before {type(private).__name__}"
    ):
        pipeline.fit(ROWS)
    last = pipeline[-1][-1] if nested else pipeline[-1]
    assert not last.privacy_guarantee_.holds
    if type(private) is not KNormMechanism:
        with pytest.warns(PrivacyLeakWarning, match=f"{name} will learn"):
            planned_loss(pipeline, ROWS)


@pytest.mark.parametrize(
    "columns",
    [
        ColumnTransformer([("dropped", "drop", [0])], remainder=StandardScaler()),
        ColumnTransformer([("one", "passthrough", [0])], remainder=StandardScaler()),
        make_pipeline(
            ColumnTransformer([("dropped", "drop", [0])], remainder="passthrough"),
            StandardScaler(),
        ),
        make_pipeline(
            ColumnTransformer([("noisy", KNormMechanism(**BOX), [0])], remainder="passthrough"),
            StandardScaler(),
        ),
    ],
)
def test_private_fit_behind_columns_that_go_on_names_learners(columns):
    pipeline = make_pipeline(columns, DPLloyd(2, bounds=(-3, 3)))
    with pytest.warns(PrivacyLeakWarning, match="StandardScaler learnt"):
        pipeline.fit(ROWS)
    assert not pipeline[-1].privacy_guarantee_.public_parameters


@pytest.mark.parametrize(
    "pipeline",
    [
        make_pipeline(Normalizer(), DPLloyd(2, bounds=(-1, 1))),
        make_pipeline(PolynomialFeatures(2), DPLloyd(2, bounds=(-1, 1))),
        make_pipeline(SimpleImputer(strategy="constant", fill_value=0), DPLloyd(2, **BOX)),
        make_pipeline(
            FrozenEstimator(StandardScaler().fit([[0.0] * 3, [1.0] * 3])), DPLloyd(2, **BOX)
        ),
        make_pipeline(clone(CLUSTERS), StandardScaler(), "passthrough")[:1],
        make_pipeline(FunctionTransformer(), PrivatePCA(2, **BOX), CLUSTERS),
    ],
)
def test_pipeline_guarantee_names_no_step_that_learns_nothing(pipeline):
    with warnings.catch_warnings(action="error", category=PrivacyLeakWarning):
        # In a second fit, later steps are already fitted.
        assert pipeline.fit(ROWS).fit(ROWS) is pipeline
        planned_loss(pipeline, ROWS)


@pytest.mark.laws
def test_pipeline_guarantee_counts_a_shared_box_once():
    accountant = PrivacyAccountant(10.0)
    both = FeatureUnion([(str(e), PrivatePersistence(e)) for e in (1.0, 2.0)])
    with accountant:
        pipeline = make_pipeline(
            DTMFiltration(0.3, bounds=PrivateBounds(0.5, start=(-9, 9)), resolution=7), both
        )
        functions = pipeline[0].fit_transform(CLOUDS)
        for _, step in both.transformer_list:
            step.fit_transform(functions)
        assert pipeline_guarantee(pipeline).epsilon == accountant.total().epsilon == 3.5


def test_private_persistence_refuses_equal_boxes_of_two_releases():
    # The same seed gives the same box, but the ledger has been charged twice.
    def functions(X):
        bounds = PrivateBounds(1.0, start=(-9, 9), random_state=0)
        return DTMFiltration(0.3, bounds=bounds, resolution=7).fit(CLOUDS).transform([X])[0]

    first, second = functions(CLOUDS[0]), functions(CLOUDS[1])
    assert np.array_equal(first.axes, second.axes)
    assert first.bounds_guarantee == second.bounds_guarantee
    refuses("several boxes", PrivatePersistence(1.0).fit, [first, second])
    refuses("another private box", PrivatePersistence(1.0).fit([first]).transform, [second])


@pytest.mark.laws
def test_pipeline_guarantee_names_a_box_of_the_data():
    pipeline = diagrams(bounds=None)
    with pytest.warns(PrivacyLeakWarning, match="bounds"):
        pipeline.fit_transform(CLOUDS)
    with pytest.warns(PrivacyLeakWarning, match="DTMFiltration learnt"):
        assert not pipeline_guarantee(pipeline).public_parameters


@pytest.mark.parametrize(
    ("pipeline", "X", "message"),
    [
        (make_pipeline(DTMFiltration(bounds=(-1, 1)), CubicalPersistence()), CLOUDS, "no step"),
        (make_pipeline(PrivatePCA(2), DPMoG(2, adjacency="replace-one")), ROWS, "do not add"),
        (GridSearchCV(CLUSTERS, {"epsilon": [1.0]}, cv=2), ROWS, "made many releases"),
    ],
)
def test_pipeline_guarantee_refuses_what_has_no_sum(pipeline, X, message):
    refuses(message, pipeline_guarantee, pipeline.fit(X))


def test_pipeline_guarantee_refuses_an_unfitted_pipeline():
    refuses("not fitted", pipeline_guarantee, diagrams())


@pytest.mark.parametrize("kind", [PrivatePersistence, PrivateBettiNumbers, PersistenceProfile])
def test_private_diagrams_keep_their_promise_if_a_refit_is_refused(kind):
    public = DTMFiltration(0.3, bounds=(-1, 1), resolution=7).fit_transform(CLOUDS[:2])
    boxed = DTMFiltration(0.3, bounds=PrivateBounds(2.0), resolution=7).fit_transform(CLOUDS[:2])
    private = kind(5.0, homology_dimensions=1).fit(public)
    before = dict(vars(private))
    private.set_params(epsilon=0.1, homology_dimensions=(0, 1))
    refuses("several boxes", private.fit, [public[0], boxed[1]])
    private.set_params(epsilon=5.0, homology_dimensions=1)
    # Nothing of the other parameters remains: H1 alone was promised, and is released.
    assert vars(private) == before and private.homology_dimensions_ == (1,)
    private.transform(public)
    assert pipeline_guarantee(make_pipeline(private)).epsilon == 5.0
    assert private.privacy_guarantee_.epsilon == 5.0


def test_k_norm_mechanism_keeps_its_box_if_a_refit_is_refused():
    mechanism = KNormMechanism(alpha=50.0, bounds=(0, 1), random_state=0).fit([[0.5, 0.5]])
    refuses("crossed", mechanism.set_params(bounds=(2, 1)).fit, [[0.5, 0.5]])
    mechanism.set_params(bounds=(0, 1))
    assert np.abs(mechanism.transform([[1000.0, 1000.0]])).max() < 5
