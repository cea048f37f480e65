"""Names, weights, links and metadata, in the manner of scikit-learn."""

import importlib.metadata
import re
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.discovery import all_estimators as all_sklearn_estimators
from sklearn.utils.validation import has_fit_parameter

import sklearn_dptda
from sklearn_dptda import DTMFiltration, PersistenceProfile, PrivatePersistence
from sklearn_dptda.cluster import DPLloyd, DPMoG, ToMATo
from sklearn_dptda.features import DiagramFeatures
from sklearn_dptda.filtration import KernelDistanceFiltration
from sklearn_dptda.graph import AdjacencySpectralEmbedding, EdgeFlip, make_sbm
from sklearn_dptda.model_selection import PrivateSearchCV
from sklearn_dptda.privacy import PrivacyAccountant, _every_estimator
from sklearn_dptda.utils.discovery import all_estimators

FILTRATION = DTMFiltration(0.2, bounds=(0, 1), resolution=9)


def clouds():
    rng = np.random.default_rng(0)
    return [rng.random((60, 2)) for _ in range(3)]


@pytest.mark.parametrize(
    ("steps", "X", "first"),
    [
        ((FILTRATION, PrivatePersistence(random_state=0), DiagramFeatures()), clouds(), None),
        ((FILTRATION, PersistenceProfile(random_state=0)), clouds(), "h0_longest_1"),
        (
            (KernelDistanceFiltration(bounds=(0, 1), resolution=9), PersistenceProfile(1.0)),
            clouds(),
            None,
        ),
        (
            (EdgeFlip(2.0, random_state=0), AdjacencySpectralEmbedding(2)),
            make_sbm([9, 9], [[0.9, 0.1], [0.1, 0.9]], random_state=0)[0],
            "adjacencyspectralembedding0",
        ),
    ],
)
def test_names_come_through_whole_pipelines(steps, X, first):
    pipeline = make_pipeline(*steps)
    out = pipeline.fit_transform(X)
    names = pipeline.get_feature_names_out()
    assert len(names) == np.shape(out)[1] and len(set(names)) == len(names)
    assert first is None or names[0].startswith(first)


def test_lists_stay_lists_where_data_frames_are_asked_for():
    with sklearn.config_context(transform_output="pandas"):
        functions = FILTRATION.fit_transform(clouds())
        diagrams = PrivatePersistence(random_state=0).fit_transform(functions)
    assert type(functions) is type(diagrams) is list
    assert FILTRATION.get_feature_names_out(["a", "b"]).tolist() == ["a", "b"]


def test_noisy_graph_has_the_names_of_its_nodes():
    flip = EdgeFlip(nodes=["ann", "bob", "cy"]).fit([("ann", "bob")])
    assert flip.get_feature_names_out().tolist() == ["ann", "bob", "cy"]
    assert EdgeFlip(nodes=2).fit([(0, 1)]).get_feature_names_out().tolist() == ["x0", "x1"]


def test_search_has_the_names_of_its_best_run():
    X = np.random.default_rng(0).random((300, 2))
    search = PrivateSearchCV(
        DPLloyd(2, bounds=(0, 1)), {"n_clusters": [2]}, scoring="inertia", random_state=0
    )
    assert search.fit(X).get_feature_names_out().tolist() == ["dplloyd0", "dplloyd1"]


@pytest.mark.parametrize("name", dict(all_estimators()))
def test_weights_are_refused_in_words_and_unpaid(name):
    kind = dict(all_estimators())[name]
    estimator, accountant = kind(), PrivacyAccountant(9.0)
    if "accountant" in estimator.get_params():
        estimator.set_params(accountant=accountant)
    X = np.zeros((4, 2))
    if hasattr(estimator, "fit") and not has_fit_parameter(estimator, "sample_weight"):
        with pytest.raises(ValueError, match=f"fit of {name} takes no sample_weight"):
            estimator.fit(X, [0, 0, 1, 1], sample_weight=np.ones(4))
    assert len(accountant) == 0


def test_weights_of_none_are_no_weights():
    assert ToMATo(n_neighbors=2).fit(np.eye(4), sample_weight=None).labels_.shape == (4,)


@pytest.mark.parametrize("address", ["https://docs.example/stable/", None])
def test_html_links_to_the_page_of_an_estimator(address, monkeypatch):
    class Metadata:
        @staticmethod
        def get_all(name):
            other = "Source, https://code.example"
            return [other] if address is None else [other, f"Documentation, {address}"]

    monkeypatch.setattr(_every_estimator, "metadata", lambda name: Metadata)
    _every_estimator.documentation.cache_clear()
    try:
        page = "https://docs.example/stable/generated/sklearn_dptda.cluster.DPMoG.html"
        assert DPMoG()._get_doc_link() == (page if address else "")
        assert (page in DPMoG()._repr_html_()) == (address is not None)

        class Own(DPMoG):
            """An estimator of another project."""

        assert Own()._get_doc_link() == ""
    finally:
        _every_estimator.documentation.cache_clear()


def test_html_of_a_package_without_metadata_has_no_link(monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(_every_estimator, "metadata", missing)
    _every_estimator.documentation.cache_clear()
    assert DPMoG()._get_doc_link() == ""
    _every_estimator.documentation.cache_clear()


def test_groups_are_routed_through_a_pipeline():
    X, ids = np.random.default_rng(0).random((90, 2)), np.arange(90) // 3
    with sklearn.config_context(enable_metadata_routing=True):
        private = DPLloyd(2, bounds=(0, 1), random_state=0).set_fit_request(groups=True)
        pipeline = make_pipeline(FunctionTransformer(), private).fit(X, groups=ids)
    assert "one person" in pipeline[-1].privacy_guarantee_.unit


@pytest.mark.conformance
@pytest.mark.filterwarnings("ignore")
def test_page_says_which_meta_estimators_take_lists_of_clouds():
    page = Path(sklearn_dptda.__file__).parent.parent / "doc" / "guide" / "populations.md"
    if not page.is_file():
        pytest.skip("the documentation is not beside the tests: an installed package")
    (row,) = re.findall(r"^\| (`GridSearchCV`.*) \| (.*) \|$", page.read_text("utf-8"), flags=re.M)
    kinds = dict(all_sklearn_estimators())
    rng = np.random.default_rng(0)
    ragged = [rng.uniform(size=(20 + i % 3, 2)) for i in range(18)]
    labels = np.arange(18) % 2
    # A tuned threshold needs predictions that differ, which noise alone does not promise.
    private = PrivatePersistence(9.0, random_state=0)
    base = make_pipeline(FILTRATION, private, DiagramFeatures(), GaussianNB())
    options = {
        "GridSearchCV": {"param_grid": {}, "cv": 2},
        "VotingClassifier": {"estimators": [("a", base)]},
        "StackingClassifier": {"estimators": [("a", base)], "cv": 2},
        "CalibratedClassifierCV": {"cv": 2},
        "TunedThresholdClassifierCV": {"cv": 2},
    }
    for names, takes in zip(row, (True, False), strict=True):
        for name in re.findall(r"`(\w+)`", names):
            given = options.get(name, {})
            model = kinds[name](**({} if "estimators" in given else {"estimator": base}), **given)
            y = np.column_stack([labels] * 2) if name == "MultiOutputClassifier" else labels
            try:
                model.fit(ragged, y).predict(ragged)
                taken = True
            except ValueError:
                taken = False
            assert taken == takes, name
