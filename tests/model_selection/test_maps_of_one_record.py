"""Steps that treat each cloud separately, so that one cloud is one record of the next step."""

import warnings
from copy import deepcopy

import numpy as np
import pytest
from gudhi import representations
from gudhi.point_cloud.timedelay import TimeDelayEmbedding
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
    TargetEncoder,
)

from sklearn_dptda import CubicalPersistence, DiagramFeatures, DTMFiltration
from sklearn_dptda.cluster import DPLloyd
from sklearn_dptda.datasets import make_loops
from sklearn_dptda.discriminant_analysis import DPLinearDiscriminantAnalysis
from sklearn_dptda.features import SortedLifetimes
from sklearn_dptda.model_selection import pipeline_guarantee
from sklearn_dptda.privacy import PrivacyLeakWarning
from sklearn_dptda.privacy._learning_steps import _OF_ONE_SAMPLE, _RANGES, learns

gudhi_sklearn = pytest.importorskip("gudhi.sklearn")
CLOUDS, LABELS = make_loops(40, 60, random_state=0)


def diagrams(seed, n):
    rng = np.random.default_rng(seed)
    births = [rng.uniform(0, 0.5, size) for size in rng.integers(2, 9, n)]
    return [np.column_stack([b, b + rng.uniform(0.1, 0.5, len(b)) + seed]) for b in births]


def clouds(seed, n):
    return [np.random.default_rng(seed + i).normal(size=(20 + seed, 2)) for i in range(n)]


def series(seed, n):
    return [np.random.default_rng(seed + i).normal(size=30 + seed) for i in range(n)]


def numbers(seed, n):
    return np.random.default_rng(seed).normal(size=(n, 3))


def images(seed, n):
    return [np.random.default_rng(seed + i).normal(size=(5, 5 + seed)) for i in range(n)]


# Each step with suitable input.
ONE_BY_ONE = [
    (representations.BirthPersistenceTransform(), diagrams),
    (representations.Clamping(minimum=0.1, maximum=0.4), numbers),
    (representations.DiagramSelector(use=True, limit=0.4, point_type="finite"), diagrams),
    (representations.PersistenceLengths(3), diagrams),
    (representations.ProminentPoints(use=True, num_pts=2), diagrams),
    (representations.TopologicalVector(threshold=3), diagrams),
    (representations.ComplexPolynomial(threshold=3), diagrams),
    (representations.DiagramScaler(use=False), diagrams),
    (representations.Padding(use=False), diagrams),
    (representations.BettiCurve(resolution=9, sample_range=[0, 1]), diagrams),
    (representations.BettiCurve(predefined_grid=np.linspace(0, 1, 7)), diagrams),
    (representations.Entropy(mode="vector", resolution=9, sample_range=[0, 1]), diagrams),
    (representations.Entropy(mode="scalar"), diagrams),
    (representations.Landscape(2, 9, sample_range=[0, 1]), diagrams),
    (representations.Silhouette(resolution=9, sample_range=[0, 1]), diagrams),
    (representations.PersistenceImage(0.1, resolution=[4, 4], im_range=[0, 1, 0, 1]), diagrams),
    (TimeDelayEmbedding(2, 3, 1), series),
    *(
        (getattr(gudhi_sklearn, name)(homology_dimensions=0), make)
        for name, make in (
            ("CechPersistence", clouds),
            ("CubicalPersistence", images),
            ("RipsPersistence", clouds),
        )
        if hasattr(gudhi_sklearn, name)
    ),
]
# The same without a range, or with a size relative to the largest.
LEARN = [
    representations.BettiCurve(resolution=None),
    representations.BettiCurve(resolution=9),
    representations.Entropy(mode="vector", resolution=9),
    representations.Landscape(2, 9),
    representations.Silhouette(resolution=9),
    representations.PersistenceImage(0.1, resolution=[4, 4]),
    representations.TopologicalVector(threshold=-1),
    representations.DiagramScaler(
        use=True, scalers=[([0], representations.BirthPersistenceTransform())]
    ),
    representations.Padding(use=True),
    representations.Atol(None),
    # With labels, with counts, and with missing values.
    TargetEncoder(categories=[[0.0, 1.0]]),
    OneHotEncoder(categories=[[0.0, 1.0]], min_frequency=5),
    OrdinalEncoder(categories=[[0.0, 1.0]], max_categories=2),
    OneHotEncoder(),
    SimpleImputer(strategy="constant", add_indicator=True),
]


def flat(made):
    return [np.asarray(each, dtype=float) for each in made]


@pytest.mark.parametrize(("step", "make"), ONE_BY_ONE, ids=lambda one: type(one).__name__)
def test_learns_is_false_only_for_steps_that_forget_their_fit(step, make):
    assert not learns(step)
    samples = make(0, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # The embedding is not an estimator, and cannot be cloned.
        fits = [deepcopy(step).fit(make(seed, n)) for seed, n in ((1, 3), (2, 6))]
        together = [flat(fit.transform(samples)) for fit in fits]
        alone = [flat(fits[0].transform([sample]))[0] for sample in samples]
    for made in together:
        assert all(np.array_equal(a, b) for a, b in zip(made, alone, strict=True))


def test_learns_is_true_for_steps_that_learn():
    assert [step for step in LEARN if not learns(step)] == []


@pytest.mark.parametrize(
    "step",
    [
        OneHotEncoder(categories=[[0.0, 1.0]]),
        OrdinalEncoder(categories=[[0.0, 1.0]]),
        SimpleImputer(strategy="constant"),
    ],
)
def test_learns_is_false_for_public_lists_and_constants(step):
    assert not learns(step)


def test_learns_list_of_steps_is_tried_whole():
    tried = {type(step).__name__ for step, _ in ONE_BY_ONE}
    # As above, with weights or a column.
    assert _OF_ONE_SAMPLE - tried == {"DimensionSelector", "WeightedCechPersistence"}
    assert _RANGES.keys() <= tried
    assert learns(StandardScaler())


LIFETIMES = DiagramFeatures(SortedLifetimes(3), value_range=(0, 2))
IMAGE = representations.PersistenceImage(0.1, resolution=[3, 3])
RIPS = gudhi_sklearn.RipsPersistence(homology_dimensions=[0, 1], threshold=1.5)
CECH = gudhi_sklearn.CechPersistence(homology_dimensions=[0, 1])
# Topologies of single clouds, as steps.
TOPOLOGIES = {
    "dtm": (DTMFiltration(0.1, bounds=(-2, 2), resolution=15), CubicalPersistence(), LIFETIMES),
    "rips": (RIPS, LIFETIMES),
    "images": (RIPS, DiagramFeatures(IMAGE, value_range=(0, 2))),
    "series": (TimeDelayEmbedding(2, 3, 1), CECH, LIFETIMES),
}


@pytest.mark.laws
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_pipeline_guarantee_counts_a_cloud_as_a_record(name):
    steps = deepcopy(TOPOLOGIES[name])
    box = (0, 9) if name == "images" else (0, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        warnings.simplefilter("ignore", UserWarning)
        X = [cloud[:, 0] for cloud in CLOUDS] if name == "series" else CLOUDS
        found = make_pipeline(*steps, DPLloyd(2, bounds=box, unit="one cloud")).fit(X)
        guarantee = pipeline_guarantee(found)
        classifier = DPLinearDiscriminantAnalysis([1, 2], bounds=box, unit="one cloud")
        labelled = make_pipeline(*steps, classifier).fit(X, LABELS)
        of_labels = pipeline_guarantee(labelled)
    assert guarantee.unit == "one cloud" and guarantee.holds and guarantee.epsilon == 1.0
    assert "for adding or removing one cloud together with the label" in str(of_labels)
    assert of_labels.holds and "as public" not in of_labels.released


@pytest.mark.laws
@pytest.mark.parametrize(
    "learner",
    [
        DiagramFeatures(SortedLifetimes(3)),
        DiagramFeatures(representations.TopologicalVector(threshold=-1), value_range=(0, 2)),
    ],
)
def test_pipeline_guarantee_names_steps_that_learn_from_clouds(learner):
    first = gudhi_sklearn.RipsPersistence(homology_dimensions=0, threshold=1.5)
    pipeline = make_pipeline(first, learner, DPLloyd(2, bounds=(0, 1)))
    with pytest.warns(PrivacyLeakWarning, match="learnt from the records"):
        pipeline.fit(CLOUDS)
    with pytest.warns(PrivacyLeakWarning):
        assert not pipeline_guarantee(pipeline).public_parameters


def test_pipeline_guarantee_trusts_function_transformers():
    lengths = FunctionTransformer(lambda X: np.array([[len(cloud) / 100] for cloud in X]))
    pipeline = make_pipeline(lengths, DPLloyd(1, bounds=(0, 1), unit="one cloud"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        assert pipeline_guarantee(pipeline.fit(CLOUDS)).public_parameters
