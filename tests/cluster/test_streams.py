"""Rows in chunks give what rows in memory give, and are checked before anything is spent."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from sklearn_dptda.cluster import DPCube, DPLloyd, DPMoG, DPMoGMorse, DPTree
from sklearn_dptda.privacy import PrivacyAccountant

BOX = (-15, 15)
ESTIMATORS = [
    DPMoG(4, bounds=BOX, random_state=0),
    DPMoG(4, bounds=BOX, assignment="soft", random_state=0),
    DPMoGMorse(3, bounds=BOX, random_state=0),
    DPLloyd(3, bounds=BOX, random_state=0),
    DPTree(3, delta=0.0, bounds=BOX, random_state=0),
    DPCube(3, bounds=BOX, covariance_share=0.4, random_state=0),
]


@pytest.fixture(scope="module")
def X():
    return make_blobs(3000, centers=3, n_features=4, random_state=0)[0]


def learnt(estimator):
    return {k: v for k, v in vars(estimator).items() if k.endswith("_") and k != "random_state"}


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_chunks_give_the_same_release_bit_for_bit(estimator, X):
    whole = learnt(estimator.fit(X))
    chunks = [X[:1000], X[1000:1001], X[:0], X[1001:]]
    for stream in (chunks, lambda: iter(chunks)):
        parts = learnt(estimator.fit_chunks(stream))
        assert set(parts) == set(whole)
        for name, value in whole.items():
            assert np.array_equal(parts[name], value), name


def test_every_pass_reads_the_stream_anew(X):
    passes = []

    def read():
        passes.append(1)
        yield from np.array_split(X, 7)

    DPLloyd(3, bounds=BOX, n_iter=5, random_state=0).fit_chunks(read)
    # One to check, one for centre and scale, and the steps.
    assert len(passes) == 1 + 1 + 5


@pytest.mark.parametrize(
    ("chunks", "bounds", "message"),
    [
        (iter([np.zeros((3, 2))]), BOX, "only once"),
        ([], BOX, "empty"),
        ([np.zeros((0, 2))], BOX, "empty"),
        ([np.zeros((3, 2)), np.zeros((3, 1))], BOX, "columns"),
        ([np.zeros((3, 2)), np.full((3, 2), np.nan)], BOX, "NaN"),
        ([np.zeros((3, 2))], None, "bounds"),
        ([np.zeros((3, 2))], (1, 0), "bounds"),
        ([np.zeros(3)], BOX, "2D"),
    ],
)
def test_bad_streams_cost_nothing(chunks, bounds, message):
    accountant = PrivacyAccountant(1.0, 1e-3)
    with pytest.raises(ValueError, match=message):
        DPLloyd(2, bounds=bounds, accountant=accountant).fit_chunks(chunks)
    assert accountant.total().epsilon == 0
