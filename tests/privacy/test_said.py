"""Warnings: their place, what they may depend on, and that they never cost a release."""

import itertools
import warnings

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from sklearn_dptda import DTMFiltration, KernelDistanceFiltration, PrivatePersistence
from sklearn_dptda.cluster import DPLloyd, DPMoG, DPMoGMorse, DPToMATo, DPTree, ToMATo
from sklearn_dptda.metric_privacy import MetricExponentialMechanism
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyLeakWarning
from sklearn_dptda.published import DPCube
from sklearn_dptda.synthetic import PrivateMeasure

# Rows outside given bounds, and beyond private ones.
OUTSIDE = r"lie (beyond|outside)"

X = np.random.default_rng(0).normal(size=(3000, 2))
F = DTMFiltration(m=0.2, bounds=(-3, 3), resolution=9).fit_transform([X[:30]])
NARROW = {"bounds": (-0.3, 0.3), "random_state": 0}
WARNED = {
    "no bounds": lambda: DTMFiltration(resolution=5).fit([X]),
    "no bounds, transformed": lambda: DTMFiltration(resolution=5).fit_transform([X]),
    "in a pipeline": lambda: make_pipeline(DTMFiltration(resolution=5)).fit_transform([X]),
    "unequal sides": lambda: DTMFiltration(bounds=([0, 0], [100, 1]), resolution=5).fit([X]),
    "clipped": lambda: DPMoG(2, **NARROW).fit(X),
    "clipped, predicted": lambda: DPLloyd(2, **NARROW).fit_predict(X),
    "clipped, transformed": lambda: DPLloyd(2, **NARROW).fit_transform(X),
    "clipped, in chunks": lambda: DPMoG(2, **NARROW).fit_chunks([X]),
    "too many clusters": lambda: DPMoGMorse(9, 3, bounds=(-5, 5)).fit(X[:300]),
    "too few peaks": lambda: DPToMATo(10, 100.0, (-5, 5), n_bins=4, random_state=0).fit(X),
    "components": lambda: ToMATo(n_clusters=1, radius=0.001).fit(X[:20]),
    "a private box": lambda: PrivateBounds(1.0, start=(-0.1, 0.1), random_state=0).fit(X),
    "noise": lambda: PrivatePersistence(0.01).fit(F),
    "noise, transformed": lambda: PrivatePersistence(0.01).fit_transform(F),
    "candidates": lambda: MetricExponentialMechanism(1.0).fit(X[:5]),
}


def test_warnings_point_at_the_line_of_the_caller():
    for name, warned in WARNED.items():
        with pytest.warns() as caught:
            warned()
        assert {warning.filename for warning in caught} == {__file__}, name


def test_privacy_leak_warning_is_said_for_each_line():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        DTMFiltration(resolution=5).fit([X])
        DTMFiltration(resolution=5).fit([X])
        DTMFiltration(resolution=5, m=0.3).fit_transform([X])
    lines = [w.lineno for w in caught if issubclass(w.category, PrivacyLeakWarning)]
    assert len(lines) == len(set(lines)) == 3


@pytest.mark.parametrize(
    "private",
    [
        DPLloyd(2, **NARROW),
        DPMoG(2, **NARROW),
        PrivateBounds(1.0, start=(-0.1, 0.1), random_state=0),
    ],
    ids=lambda kind: type(kind).__name__,
)
def test_paid_release_is_there_where_warnings_are_errors(private):
    accountant = PrivacyAccountant(10.0, 1e-3)
    private = clone(private).set_params(accountant=accountant)
    with warnings.catch_warnings(action="error"), pytest.raises(UserWarning, match=OUTSIDE):
        private.fit(X)
    assert len(accountant) == 1
    assert private.privacy_guarantee_.epsilon == 1 and private.clipped_share_ > 0.5


def test_private_bounds_are_there_where_warnings_are_errors():
    accountant = PrivacyAccountant(1000.0)
    narrow = PrivateBounds(50.0, start=(-0.1, 0.1), accountant=accountant, random_state=0)
    outside = DTMFiltration(bounds=narrow, resolution=5)
    with warnings.catch_warnings(action="error"), pytest.raises(UserWarning, match=OUTSIDE):
        outside.fit([X])
    assert len(accountant) == 1 and outside.transform([X])[0].bounds_guarantee.epsilon == 50
    rows = X[:300] * [1000.0, 1.0]
    bounds = PrivateBounds(100.0, shape="box", accountant=accountant, random_state=0)
    filtration = DTMFiltration(bounds=bounds, resolution=5)
    with warnings.catch_warnings(action="error"), pytest.raises(UserWarning, match="sides"):
        filtration.fit([rows])
    assert len(accountant) == 2 and filtration.transform([rows])[0].values.size


def said(call):
    """What a call says, with NumPy's settings as they are and as errors."""
    out = []
    for numpy_says in ("warn", "raise"):
        record = warnings.catch_warnings(record=True, action="always")
        with record as caught, np.errstate(all=numpy_says):
            try:
                call()
            except Exception as error:
                out.append(repr(error))
        out += [str(warning.message) for warning in caught]
    return out


@pytest.mark.parametrize(
    ("kind", "method", "n_jobs", "extreme"),
    [
        (DTMFiltration, "lattice", 1, 1e308),
        (KernelDistanceFiltration, "exact", 1, -1e308),
        pytest.param(DTMFiltration, "exact", 1, 1e308, marks=pytest.mark.laws),
        pytest.param(DTMFiltration, "exact", 1, 5e-324, marks=pytest.mark.laws),
        pytest.param(DTMFiltration, "lattice", 1, -0.0, marks=pytest.mark.laws),
        pytest.param(KernelDistanceFiltration, "lattice", 1, 1e308, marks=pytest.mark.laws),
        pytest.param(KernelDistanceFiltration, "lattice", 1, 5e-324, marks=pytest.mark.laws),
        pytest.param(DTMFiltration, "exact", 2, -1e308, marks=pytest.mark.laws),
    ],
)
def test_filtrations_warn_of_no_point(kind, method, n_jobs, extreme):
    clouds = [X[:200], X[200:400]]
    other = [np.vstack([[[extreme, extreme]], X[1:200]]), X[200:400]]
    bounds = PrivateBounds(50.0, start=(-10, 10), random_state=0)
    filtration = kind(bounds=bounds, resolution=5, method=method, n_jobs=n_jobs)
    # Threads warn in this process.
    with parallel_config("threading"):
        calls = [
            said(lambda X=X: clone(filtration).fit(clouds).transform(X)) for X in (clouds, other)
        ] + [said(lambda: clone(filtration).fit(other))]
    assert not any(calls)


@pytest.mark.laws
@pytest.mark.parametrize("start", [(-10.0, 10.0), (0.0, 1e-85), None])
@pytest.mark.parametrize("shape", ["cube", "box"])
def test_private_bounds_warn_of_no_row(start, shape):
    rows = X[:500, :1]
    for epsilon, extreme in itertools.product((0.1, 100.0), (1e308, -1e308, 1e5, 5e-324)):
        other = np.vstack([[[extreme]], rows[1:]])
        kind = PrivateBounds(epsilon, shape=shape, start=start, random_state=0)
        assert said(lambda k=kind, X=other: k.fit(X)) == said(lambda k=kind: k.fit(rows))


@pytest.mark.parametrize(
    ("kind", "extreme"),
    [
        (DPLloyd, 1e308),
        (DPTree, -1e308),
        (DPCube, 5e-324),
        (DPMoG, 1e308),
        (DPMoGMorse, -1e308),
        (DPToMATo, 1e308),
    ],
)
def test_clusterings_lose_no_paid_fit_by_an_extreme_row(kind, extreme):
    # In a box with units below one, so that quotients overflow.
    rows = np.vstack([np.random.default_rng(0).uniform(size=(60, 2)), [[extreme, extreme]]])
    for action in ("warn", "raise"):
        with np.errstate(all=action):
            model = kind(2, bounds=(0, 1), random_state=0)
            assert len(model.fit_predict(rows)) == 61
            for name in ("predict", "score", "transform", "score_samples", "predict_proba"):
                for other in (1e308, -1e308, 5e-324) if hasattr(model, name) else ():
                    found = getattr(model, name)(np.vstack([rows[:20], [[other, other]]]))
                    assert np.isfinite(found).all(), (name, other)


@pytest.mark.laws
def test_private_measure_warns_of_no_row():
    rows = X[:500] / 1000
    other = np.vstack([[[1e308, -1e308]], rows[1:]])
    for seed in range(5):
        measure = PrivateMeasure(1.0, random_state=seed)
        assert said(lambda m=measure: m.fit(other)) == said(lambda m=measure: m.fit(rows))
