"""Audits detect broken mechanisms and pass correct ones. False alarms below 1e-6 each."""

import math
import os
from functools import partial

import numpy as np
import pytest
from joblib import parallel_config
from scipy.sparse import csr_array
from scipy.sparse.linalg import aslinearoperator
from scipy.stats import binomtest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_dptda.privacy import NoiseSource, PrivacyAccountant, Sensitivity, audit_epsilon
from sklearn_dptda.privacy._audit import _bound_of_event, lower_bound
from sklearn_dptda.privacy.neighbours import (
    cloud_neighbours,
    function_neighbours,
    graph_neighbours,
    row_neighbours,
)
from tests._refusals import refuses
from tests.privacy._calibrated import gaussian_scale
from tests.privacy._private_mean import PrivateMean
from tests.privacy._randomized_response import randomized_response

N_RUNS = 10_000
audit = partial(audit_epsilon, confidence=1 - 1e-6, random_state=0)


def laplace(data, random_state=None, scale=1.0):
    return int(np.sum(data)) + NoiseSource(random_state).discrete_laplace(scale, 1)


def gaussian(data, random_state=None, factor=1.0):
    lattice = 1000
    scale = factor * gaussian_scale(Sensitivity(1.0, "l2", "add-remove"), 1.0, 1e-2)
    noise = NoiseSource(random_state).discrete_gaussian(lattice * scale, 2)
    return (lattice * np.asarray(data, dtype=float).sum(axis=0) + noise) / lattice


def response(data, random_state=None, epsilon=1.0):
    return randomized_response(NoiseSource(random_state), data, 3, epsilon)


def counts_points(data, random_state=None):
    """Ragged: the number of rows betrays the data set."""
    n = len(data) + NoiseSource(random_state).below(3)
    return np.zeros((n, 2))


class NoisyColumn(TransformerMixin, BaseEstimator):
    """Sum of one column, one unit of Laplace noise."""

    def __init__(self, column=0, random_state=None):
        self.column = column
        self.random_state = random_state

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        noise = NoiseSource(self.random_state).discrete_laplace(1.0, (1, 1))
        return X[:, self.column].sum() + noise


half_laplace, half_gaussian = partial(laplace, scale=0.5), partial(gaussian, factor=0.5)
MECHANISMS = [
    (laplace, half_laplace, ([0], [1]), 1.0, 0.0, 4000),
    (gaussian, half_gaussian, ([[0.0, 0.0]], [[0.6, 0.8]]), 1.0, 1e-2, N_RUNS),
    (response, partial(response, epsilon=2.0), ([0, 1], [2, 1]), 1.0, 0.0, 4000),
]


@pytest.mark.nightly
@pytest.mark.parametrize(("honest", "twin", "data", "epsilon", "delta", "n_runs"), MECHANISMS)
def test_audit_epsilon_passes_laws_and_refutes_their_twins(
    honest, twin, data, epsilon, delta, n_runs
):
    options = {"delta": delta, "n_runs": n_runs}
    good = audit(honest, *data, **options)
    assert not good.refutes(epsilon) and good.epsilon > 0.25
    # Either order of the data sets will do.
    for each in (data, data[::-1]):
        assert audit(twin, *each, **options).refutes(epsilon)


@pytest.mark.nightly
@pytest.mark.parametrize(("factor", "caught"), [(1.0, False), (2.0, True)])
def test_audit_epsilon_refutes_an_estimator_with_half_the_noise(factor, caught):
    pair = np.zeros((4, 1)), np.array([[0.0], [0.0], [0.0], [1.0]])
    assert audit(PrivateMean(factor, bounds=(0, 1)), *pair, n_runs=1200).refutes(1.0) == caught


@pytest.mark.nightly
def test_audit_epsilon_refutes_releases_without_a_seed():
    assert audit(half_laplace, [0], [1], n_runs=4000, random_state=None).refutes(1.0)


@pytest.mark.nightly
def test_audit_epsilon_counts_all_runs_of_a_given_event():
    def positive(output):
        return output[0] > 0

    options = {"event": positive, "n_runs": N_RUNS}
    good = audit(laplace, [0], [1], **options)
    assert good.n_runs == N_RUNS and good.event == "positive" and 0.7 < good.epsilon <= 1
    assert audit(half_laplace, [0], [1], **options).refutes(1.0)
    # The complement, in the other direction, is tested too.
    options["event"] = lambda output: output[0] <= 0
    assert audit(laplace, [0], [1], **options).epsilon == pytest.approx(good.epsilon)


@pytest.mark.nightly
def test_audit_epsilon_sees_the_number_of_rows():
    assert audit(counts_points, [0], [0, 1], n_runs=1000).epsilon > 2


def test_audit_epsilon_counts_the_same_with_workers():
    options = {"n_runs": 40, "random_state": 0}
    serial = audit_epsilon(laplace, [0], [1], **options)
    with parallel_config("threading"):
        assert audit_epsilon(laplace, [0], [1], n_jobs=2, **options).counts == serial.counts


def test_audit_epsilon_pays_for_each_run():
    accountant = PrivacyAccountant(math.inf)
    mean = PrivateMean(1.0, bounds=(0, 1), accountant=accountant)
    audit_epsilon(mean, np.zeros((2, 1)), np.ones((2, 1)), n_runs=5, random_state=0)
    assert len(accountant) == 10


def clopper_pearson(n, confidence):
    """Low end of the interval for 300 hits, and high end of that for 100."""
    of = [binomtest(k, n).proportion_ci(confidence, method="exact") for k in (300, 100)]
    return of[0].low, of[1].high


def test_lower_bound_is_clopper_pearson():
    n, confidence = 500, 0.98
    p, q = clopper_pearson(n, confidence)
    assert lower_bound(300, 100, n, 0.0, confidence) == pytest.approx(math.log(p / q))
    assert lower_bound(300, 100, n, 0.1, confidence) == pytest.approx(math.log((p - 0.1) / q))
    assert lower_bound(0, 0, n, 0.0, confidence) == -math.inf
    assert np.isfinite(lower_bound(n, 0, n, 0.0, confidence))


def test_bound_of_event_is_clopper_pearson():
    n, confidence, delta = 500, 0.98, 0.05
    # Four one-sided bounds hold at once, so two-sided intervals have half the error probability.
    low_a, high_b = clopper_pearson(n, 1 - 0.02 / 2)
    expected = max(math.log((low_a - delta) / high_b), math.log((1 - high_b - delta) / (1 - low_a)))
    for counts in ((300, 100), (100, 300)):
        assert _bound_of_event(*counts, n, delta, confidence) == pytest.approx(expected)
    assert _bound_of_event(30, 0, n, 0.2, confidence) == 0.0


@pytest.mark.nightly
def test_audit_epsilon_covers_with_learnt_events():
    # A release that is independent of the data: at confidence 0.9, more than 22 of 60 bounds are
    # above zero with probability below 1e-6.
    def unrelated(data, random_state=None):
        noise = NoiseSource(random_state)
        return [noise.below(2**40) for _ in range(3)]

    wrong = sum(
        audit_epsilon(unrelated, 0, 1, n_runs=60, confidence=0.9, random_state=seed).epsilon > 0
        for seed in range(60)
    )
    assert wrong <= 22


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("steps", "n_columns"),
    [
        # Its steps have seeds of their own.
        (FeatureUnion([("a", NoisyColumn(0)), ("b", NoisyColumn(1))]), 2),
        # What it learns in fit is read.
        (make_pipeline(FunctionTransformer(), PrivateMean(bounds=(0, 1))), 1),
    ],
    ids=["union", "pipeline"],
)
def test_audit_epsilon_of_unions_and_pipelines_is_near_their_promise(steps, n_columns):
    first = np.zeros((3, n_columns))
    second = first.copy()
    second[2, 0] = 1.0
    assert 0.3 < audit(steps, first, second, n_runs=2000).epsilon <= 1


def test_audit_epsilon_runs_unseeded_callables_in_this_process():
    # Copies of a generator in workers would all draw the same.
    here = []

    def stateful(data):
        here.append(os.getpid())
        return len(here)

    audit_epsilon(stateful, 0, 1, n_runs=10, n_jobs=2, random_state=0)
    assert here == [os.getpid()] * 20


@pytest.mark.parametrize(
    "reveal",
    [
        lambda d: {"bob" if d else "alice": 1.0},
        lambda d: np.array([2**60 + d]),
        lambda d: {"model": [{"mean": d}]},
        lambda d: csr_array(np.eye(3) * d),
        *[
            pytest.param(reveal, marks=pytest.mark.laws)
            for reveal in (
                lambda d: -np.inf if d else np.inf,
                lambda d: np.array([1 + d * 1j]),
                lambda d: aslinearoperator(np.eye(3) * d),
                lambda d: [np.zeros((d, 2))],
                lambda d: np.array([np.nan, d]),
                lambda d: "text" * d,
            )
        ],
    ],
)
def test_audit_epsilon_looks_into_all_kinds_of_releases(reveal):
    assert audit_epsilon(reveal, 0, 1, n_runs=60, random_state=0).epsilon > 1.5


@pytest.mark.nightly
def test_audit_epsilon_accepts_mostly_empty_diagrams():
    def diagram(data, random_state=None):
        return np.zeros((int(NoiseSource(random_state).below(50) == 0), 2))

    assert audit_epsilon(diagram, 0, 1, n_runs=200, random_state=0).epsilon < 2


@pytest.mark.nightly
def test_audit_epsilon_covers_at_its_confidence():
    # 300 audits of a mechanism with loss log(3) at confidence 0.9: on average, at most 30 may be
    # wrong, and more than 62 with probability below 1e-6 (binomial).
    def coin(data, random_state=None):
        return float(NoiseSource(random_state).below(4) < data)

    options = {"n_runs": 200, "confidence": 0.9, "event": lambda output: output > 0}
    audits = [audit_epsilon(coin, 1, 3, random_state=seed, **options) for seed in range(300)]
    assert sum(audit.epsilon > math.log(3) for audit in audits) <= 62


def test_audit_result_reads_as_text():
    result = audit_epsilon(laplace, [0], [1], n_runs=20, random_state=0)
    assert "epsilon >=" in str(result) and str(result.counts[0]) in str(result)


@pytest.mark.parametrize(
    ("bad", "name"),
    [({"confidence": 1.0}, "confidence"), ({"delta": 1.0}, "delta"), ({"n_runs": 3}, "n_runs")],
)
def test_audit_epsilon_refuses_bad_options(bad, name):
    refuses(name, audit_epsilon, laplace, [0], [1], **{"n_runs": 10, **bad})


def test_audit_epsilon_refuses_what_it_cannot_run():
    refuses("mechanism", audit_epsilon, 3, [0], [1])
    for nothing in (lambda d: lambda: d, lambda d, random_state: [d] * (random_state % 3)):
        refuses("summary", audit, nothing, [0], [1], n_runs=50)


def test_neighbours_differ_in_one_record():
    bounds = ([-1.0, 0.0], [1.0, 3.0])
    for pairs in (row_neighbours(6, bounds), cloud_neighbours(6, bounds)):
        assert len({pair.name for pair in pairs}) == len(pairs) >= 10
        for _, first, second in pairs:
            assert first.shape == second.shape == (6, 2)
            assert (first != second).any(axis=1).sum() == 1
    for maker in (row_neighbours, cloud_neighbours):
        for _, first, second in maker(6, bounds, adjacency="add-remove"):
            assert first.shape == (6, 2)
            assert any(np.array_equal(rest, second) for rest in (first[:-1], first[1:]))
    refuses("bounds", row_neighbours, 4, ([0.0], [0.0]))
    for directed in (False, True):
        for _, first, second in graph_neighbours(6, directed=directed):
            assert (first != second).sum() == (1 if directed else 2)
            assert not np.diag(first).any() and not np.diag(second).any()
            assert directed or np.array_equal(first, first.T)
    for shape in ((5,), (4, 3)):
        for _, first, second in function_neighbours(shape, 0.1, 1.0):
            assert first.shape == second.shape == shape
            assert 0 < np.abs(first - second).max() <= 0.1 + 1e-12
            assert min(first.min(), second.min()) >= 0 and max(first.max(), second.max()) <= 1
    refuses("n_rows", row_neighbours, 1, bounds)
    refuses("n_nodes", graph_neighbours, 3)
    refuses("adjacency", row_neighbours, 3, bounds, adjacency="both")


def test_row_neighbours_attain_the_sensitivity_of_a_mean():
    # The sensitivity of the mean of clipped rows: the diagonal of the box over n.
    low, high = np.array([-1.0, 0.0]), np.array([1.0, 3.0])
    changes = [
        np.abs(np.clip(a, low, high).mean(axis=0) - np.clip(b, low, high).mean(axis=0)).sum()
        for _, a, b in row_neighbours(7, (low, high))
    ]
    assert max(changes) == pytest.approx((high - low).sum() / 7)


@pytest.mark.nightly
def test_audit_epsilon_tells_disjoint_sides_apart():
    # Thresholds at the edge of the scores of one side would miss new runs of it. 300 of 300 runs
    # give 4.03. Almost all of 20 audits are near this value, for each version of the classifier.
    def release(data, random_state=None):
        return data + np.random.default_rng(random_state).uniform(0.0, 0.1, 2)

    audits = [audit_epsilon(release, 0.0, 1.0, n_runs=600, random_state=s) for s in range(20)]
    assert sum(audit.refutes(3.9) for audit in audits) >= 18
