import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
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
from sklearn_dptda.metric_privacy import KNormMechanism, PrivateMeasure
from sklearn_dptda.model_selection import pipeline_guarantee, planned_loss
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyLeakWarning

RNG = np.random.default_rng(0)
CLOUDS = list(RNG.uniform(-1, 1, size=(6, 80, 2)))
ROWS = RNG.uniform(size=(240, 3))
BOX = {"bounds": (0, 1)}
CLUSTERS = DPMoG(2, kmeans_steps=1, mixture_steps=1, covariance_type="spherical", **BOX)


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
        (diagrams(), CLOUDS, 1.0),
        (diagrams(bounds=PrivateBounds(0.5, start=(-9, 9))), CLOUDS, 1.5),
        (FeatureUnion([("a", diagrams()), ("b", diagrams(2.0))]), CLOUDS, 3.0),
        (make_pipeline(diagrams(), StandardScaler(), "passthrough"), CLOUDS, 1.0),
        (make_pipeline(PrivatePCA(2, 0.7, **BOX), CLUSTERS), ROWS, 1.7),
        (make_pipeline(Normalizer(), PrivatePCA(2, 0.7, **BOX)), ROWS, 0.7),
    ],
)
def test_the_sum_is_what_was_paid(pipeline, X, epsilon):
    accountant = PrivacyAccountant(10.0, 0.1)
    with accountant, warnings.catch_warnings(action="error", category=PrivacyLeakWarning):
        (pipeline.fit if hasattr(pipeline, "predict") else pipeline.fit_transform)(X)
        guarantee = pipeline_guarantee(pipeline)
    assert guarantee.holds
    assert guarantee.epsilon == pytest.approx(epsilon)
    total = pytest.approx((guarantee.epsilon, guarantee.delta))
    assert accountant.total() == total and planned_loss(pipeline, X).total() == total


def test_labels_are_said_to_be_public():
    model = make_pipeline(diagrams(), LogisticRegression()).fit(CLOUDS, [0, 1] * 3)
    assert "labels, which count as public" in str(pipeline_guarantee(model))


@pytest.mark.parametrize(
    ("pipeline", "name"),
    [
        (make_pipeline(StandardScaler(), CLUSTERS), "StandardScaler"),
        (make_pipeline(PrivatePCA(2, **BOX), LogisticRegression()), "LogisticRegression"),
    ],
)
def test_what_learns_records_without_privacy_is_named(pipeline, name):
    with warnings.catch_warnings(action="ignore"):
        pipeline.fit(ROWS, np.arange(240) % 2)
    with pytest.warns(PrivacyLeakWarning, match=f"{name} learnt from the records"):
        guarantee = pipeline_guarantee(pipeline)
    assert not guarantee.holds and "should be public" in str(guarantee)


@pytest.mark.parametrize("step", [StandardScaler(), SimpleImputer()])
@pytest.mark.parametrize("around", [lambda model: model, lambda model: make_pipeline(model)])
@pytest.mark.parametrize(
    "private",
    [
        CLUSTERS,
        DPLloyd(2, **BOX),
        PrivatePCA(2, **BOX),
        PrivateMeasure(**BOX),
        PrivateBounds(1.0),
        KNormMechanism(bounds=(0, 1)),
    ],
    ids=lambda kind: type(kind).__name__,
)
def test_what_learnt_before_is_named_where_it_is_fitted(step, around, private):
    name = type(step).__name__
    pipeline = around(make_pipeline(step, clone(private)))
    with pytest.warns(
        PrivacyLeakWarning, match=f"{name} learnt .* before {type(private).__name__}"
    ):
        pipeline.fit(ROWS)
    last = pipeline[-1][-1] if isinstance(pipeline[-1], Pipeline) else pipeline[-1]
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
            ColumnTransformer(
                [("noisy", KNormMechanism(bounds=(0, 1)), [0])], remainder="passthrough"
            ),
            StandardScaler(),
        ),
    ],
)
def test_columns_that_go_on_are_not_public(columns):
    pipeline = make_pipeline(columns, DPLloyd(2, bounds=(-3, 3)))
    with pytest.warns(PrivacyLeakWarning, match="StandardScaler learnt"):
        pipeline.fit(ROWS)
    assert not pipeline[-1].privacy_guarantee_.public_parameters


@pytest.mark.parametrize(
    "pipeline",
    [
        make_pipeline(Normalizer(), CLUSTERS),
        make_pipeline(PolynomialFeatures(2), DPLloyd(2, bounds=(-1, 1))),
        make_pipeline(SimpleImputer(strategy="constant", fill_value=0), CLUSTERS),
        make_pipeline(FrozenEstimator(StandardScaler().fit([[0.0] * 3, [1.0] * 3])), CLUSTERS),
        make_pipeline(clone(CLUSTERS), StandardScaler(), "passthrough")[:1],
        make_pipeline(FunctionTransformer(), PrivatePCA(2, **BOX), CLUSTERS),
    ],
)
def test_what_learns_nothing_is_not_named(pipeline):
    with warnings.catch_warnings(action="error", category=PrivacyLeakWarning):
        # In a second fit, later steps are already fitted.
        assert pipeline.fit(ROWS).fit(ROWS) is pipeline
        planned_loss(pipeline, ROWS)


@pytest.mark.laws
def test_clouds_as_records_leak_nothing():
    features = make_pipeline(
        DTMFiltration(0.3, bounds=(-1, 1), resolution=5),
        CubicalPersistence(),
        DiagramFeatures(value_range=(0, 1)),
    )
    pipeline = make_pipeline(features, DPLloyd(2, bounds=(0, 1)))
    with warnings.catch_warnings(action="error", category=PrivacyLeakWarning):
        assert pipeline_guarantee(pipeline.fit(CLOUDS)).holds
    features.set_params(diagramfeatures__value_range=None)
    with pytest.warns(PrivacyLeakWarning, match="DiagramFeatures learnt"):
        pipeline.fit(CLOUDS)


@pytest.mark.laws
def test_a_box_that_two_steps_share_is_one_release():
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


def test_equal_boxes_are_two_releases():
    # The same seed gives the same box, but the ledger has been charged twice.
    def functions(X):
        bounds = PrivateBounds(1.0, start=(-9, 9), random_state=0)
        return DTMFiltration(0.3, bounds=bounds, resolution=7).fit(CLOUDS).transform([X])[0]

    first, second = functions(CLOUDS[0]), functions(CLOUDS[1])
    assert np.array_equal(first.axes, second.axes)
    assert first.bounds_guarantee == second.bounds_guarantee
    with pytest.raises(ValueError, match="several boxes"):
        PrivatePersistence(1.0).fit([first, second])
    with pytest.raises(ValueError, match="another private box"):
        PrivatePersistence(1.0).fit([first]).transform([second])


@pytest.mark.laws
def test_a_box_of_the_data_is_no_public_box():
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
def test_where_there_is_no_sum(pipeline, X, message):
    with pytest.raises(ValueError, match=message):
        pipeline_guarantee(pipeline.fit(X))


def test_before_fit_nothing_is_promised():
    with pytest.raises(ValueError, match="not fitted"):
        pipeline_guarantee(diagrams())


@pytest.mark.parametrize("kind", [PrivatePersistence, PrivateBettiNumbers, PersistenceProfile])
def test_a_refused_refit_leaves_the_earlier_promise(kind):
    public = DTMFiltration(0.3, bounds=(-1, 1), resolution=7).fit_transform(CLOUDS[:2])
    boxed = DTMFiltration(0.3, bounds=PrivateBounds(2.0), resolution=7).fit_transform(CLOUDS[:2])
    private = kind(5.0, homology_dimensions=1).fit(public)
    before = dict(vars(private))
    private.set_params(epsilon=0.1, homology_dimensions=(0, 1))
    with pytest.raises(ValueError, match="several boxes"):
        private.fit([public[0], boxed[1]])
    private.set_params(epsilon=5.0, homology_dimensions=1)
    # Nothing of the other parameters remains: H1 alone was promised, and is released.
    assert vars(private) == before and private.homology_dimensions_ == (1,)
    private.transform(public)
    assert pipeline_guarantee(make_pipeline(private)).epsilon == 5.0
    assert private.privacy_guarantee_.epsilon == 5.0


def test_a_refused_refit_leaves_the_box_that_records_are_clipped_to():
    mechanism = KNormMechanism(alpha=50.0, bounds=(0, 1), random_state=0).fit([[0.5, 0.5]])
    with pytest.raises(ValueError, match="crossed"):
        mechanism.set_params(bounds=(2, 1)).fit([[0.5, 0.5]])
    mechanism.set_params(bounds=(0, 1))
    assert np.abs(mechanism.transform([[1000.0, 1000.0]])).max() < 5
