"""Progress of fits in the callbacks of scikit-learn, which receive no records."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

from sklearn_dptda.cluster import DPLloyd, DPMoGMorse, MorseMerging
from sklearn_dptda.discriminant_analysis import DPLinearDiscriminantAnalysis
from sklearn_dptda.graph import EdgeFlip
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyBudgetExceeded, PrivacyLeakWarning
from sklearn_dptda.synthetic import PrivateMeasure
from sklearn_dptda.utils._privacy_checks._check_inputs import make_check_data, release
from sklearn_dptda.utils.discovery import all_estimators
from sklearn_dptda.utils.estimator_checks import make_instance
from tests._refusals import refuses

callback = pytest.importorskip("sklearn.callback", reason="callbacks need scikit-learn 1.9")


class Recorder:
    """A callback that records what it receives."""

    def __init__(self):
        self.events, self.given = [], []

    def setup(self, estimator, context):
        self.events.append(("setup", type(estimator).__name__))

    def teardown(self, estimator, context):
        self.events.append(("teardown", type(estimator).__name__))

    def on_fit_task_begin(
        self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None
    ):
        self.events.append(("begin", context.task_name))
        self.given += [X, y, metadata, fitted_estimator]

    def on_fit_task_end(
        self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None
    ):
        self.events.append(("end", context.task_name))
        self.given += [X, y, metadata, fitted_estimator]


def rows(n=200):
    return np.random.default_rng(0).normal(size=(n, 2))


@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        (DPLloyd(3, bounds=(-4, 4), random_state=0), None),
        (DPMoGMorse(2, bounds=(-4, 4), random_state=0), None),
        (PrivateMeasure(bounds=(-4, 4), random_state=0), None),
        (PrivateBounds(random_state=0), None),
        (DPLinearDiscriminantAnalysis([0, 1], bounds=(-4, 4), random_state=0), np.arange(200) % 2),
        (MorseMerging(DPMoGMorse(2, bounds=(-4, 4), random_state=0)), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_fit_reports_passes_over_rows_and_no_records(estimator, y):
    X, recorder = rows(), Recorder()
    plain = clone(estimator).fit(X, y)
    reported = clone(estimator).set_callbacks(recorder).fit(X, y)
    name, kinds = type(estimator).__name__, [kind for kind, _ in recorder.events]
    assert recorder.events[:2] == [("setup", name), ("begin", "fit")]
    assert recorder.events[-2:] == [("end", "fit"), ("teardown", name)]
    assert ("begin", "pass over the rows") in recorder.events
    assert kinds.count("begin") == kinds.count("end")
    assert all(given is None for given in recorder.given)
    # A callback changes nothing that is released, and is not kept in a release.
    if hasattr(plain, "predict"):
        np.testing.assert_array_equal(plain.predict(X), reported.predict(X))
    assert not [key for key in vars(reported) if "context" in key or "ctx" in key]


@pytest.mark.parametrize("name", dict(all_estimators(private=True)))
def test_every_private_estimator_reports_its_fit(name):
    estimator, recorder = make_instance(dict(all_estimators())[name]), Recorder()
    data = make_check_data(get_tags(estimator).privacy, 2.0, 0.1)
    with warnings.catch_warnings(action="ignore"):
        release(estimator.set_params(random_state=0).set_callbacks(recorder), data.X)
    assert ("setup", name) in recorder.events and ("teardown", name) in recorder.events
    assert all(given is None for given in recorder.given)


def test_every_estimator_takes_callbacks():
    kinds = dict(all_estimators()).values()
    assert not [kind.__name__ for kind in kinds if not hasattr(kind, "set_callbacks")]


def test_pipeline_shows_the_progress_of_its_steps():
    pytest.importorskip("rich", reason="the progress bar of scikit-learn needs rich")
    X = rows(500)
    pipeline = make_pipeline(
        DPLloyd(3, bounds=(-4, 4), random_state=0), PrivateBounds(random_state=0)
    )
    with warnings.catch_warnings(action="ignore", category=PrivacyLeakWarning):
        pipeline.set_callbacks(callback.ProgressBar()).fit(X)
    assert pipeline[0].cluster_centers_.shape == (3, 2)


def test_scores_of_callbacks_on_private_rows_are_warned_of():
    X, y = rows(), np.arange(200) % 2
    private = DPLinearDiscriminantAnalysis([0, 1], bounds=(-4, 4), random_state=0)
    monitor = callback.ScoringMonitor(scoring="accuracy")
    with pytest.warns(PrivacyLeakWarning, match="ScoringMonitor may receive the records"):
        make_pipeline(private).set_callbacks(monitor).fit(X, y)
    # The private fit by itself gives a monitor nothing to score.
    alone = callback.ScoringMonitor(scoring="accuracy")
    clone(private).set_callbacks(alone).fit(X, y)
    refuses("No scores were computed", alone.get_logs)
    graph = np.ones((5, 5)) - np.eye(5)
    with pytest.warns(PrivacyLeakWarning, match="Recorder may receive"):
        make_pipeline(EdgeFlip()).set_callbacks(Recorder()).fit(graph)


def test_failed_fit_is_reported_and_leaves_no_trace():
    recorder, accountant = Recorder(), PrivacyAccountant(0.5)
    private = DPLloyd(2, bounds=(-4, 4), accountant=accountant).set_callbacks(recorder)
    refuses(None, private.fit, rows(), error=PrivacyBudgetExceeded)
    assert recorder.events[-1] == ("teardown", "DPLloyd")
    private.set_params(accountant=None, random_state=0).fit(rows())
    assert recorder.events[-2] == ("end", "fit")


def test_error_of_a_callback_leaves_the_budget_spent_and_nothing_released():
    class Broken(Recorder):
        def on_fit_task_end(self, estimator, context):
            raise RuntimeError("broken")

    accountant = PrivacyAccountant(5.0, 1e-3)
    private = DPLloyd(2, bounds=(-4, 4), accountant=accountant).set_callbacks(Broken())
    refuses("broken", private.fit, rows(), error=RuntimeError)
    assert len(accountant) == 1 and not hasattr(private, "cluster_centers_")
