"""Rows in chunks give the same results as rows in memory, and are checked before payment."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from sklearn_dptda.cluster import DPCube, DPLloyd, DPMoG, DPMoGMorse, DPTree
from sklearn_dptda.privacy import PrivacyAccountant

BOX = (-15, 15)
ONCE = iter([np.zeros((3, 2))])
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


@pytest.mark.engines
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_chunks_give_the_same_release_bit_for_bit(estimator, X):
    whole = learnt(estimator.fit(X))
    chunks = [X[:1000], X[1000:1001], X[:0], X[1001:]]
    for stream in (chunks, lambda: iter(chunks)):
        parts = learnt(estimator.fit_chunks(stream))
        assert set(parts) == set(whole)
        for name, value in whole.items():
            assert np.array_equal(parts[name], value), name


@pytest.mark.engines
def test_names_of_columns_are_those_of_the_first_chunk(X):
    pandas = pytest.importorskip("pandas")
    frames = [pandas.DataFrame(part, columns=list("abcd")) for part in (X[:100], X[100:])]
    private = DPLloyd(3, bounds=BOX, random_state=0)
    parts = private.fit_chunks(frames).cluster_centers_
    assert private.feature_names_in_.tolist() == list("abcd")
    assert np.array_equal(parts, private.fit(pandas.concat(frames)).cluster_centers_)
    with pytest.raises(ValueError, match="names"):
        private.fit_chunks([frames[0], frames[1][list("dcba")]])


@pytest.mark.parametrize("later", ["fewer rows", "fewer columns", "nothing"])
def test_streams_that_change_are_noticed(X, later):
    changed = {"fewer rows": X[1:], "fewer columns": X[:, 1:], "nothing": X[:0]}[later]
    # The chunks are opened twice to compare the iterators, and read once to check them.
    opened = []

    def read():
        opened.append(1)
        return iter([X if len(opened) <= 3 else changed])

    private = DPLloyd(3, bounds=BOX, random_state=0)
    with pytest.raises(ValueError, match="changed between two passes"):
        private.fit_chunks(read)
    assert not hasattr(private, "privacy_guarantee_")


def test_every_pass_reads_the_stream_anew(X):
    passes = []

    def read():
        passes.append(1)
        yield from np.array_split(X, 7)

    DPLloyd(3, bounds=BOX, n_iter=5, random_state=0).fit_chunks(read)
    # A generator starts when it is read: once for its first chunk, once for checks, four to eight
    # times for bounds within the given ones, once to count rows outside the bounds, twice for each
    # of one to five stages of localisation, once for centre and scale, and once for each step.
    assert 1 + 1 + 4 + 1 + 2 + 1 + 5 <= len(passes) <= 1 + 1 + 8 + 1 + 10 + 1 + 5


@pytest.mark.parametrize(
    ("chunks", "bounds", "message"),
    [
        (iter([np.zeros((3, 2))]), BOX, "only once"),
        (lambda: ONCE, BOX, "only once"),
        ([], BOX, "empty"),
        ([np.zeros((0, 2))], BOX, "empty"),
        ([np.zeros((3, 2)), np.zeros((3, 1))], BOX, "columns"),
        ([np.zeros((3, 2)), np.full((3, 2), np.nan)], BOX, "NaN"),
        ([np.zeros((3, 2))], {"a": (0, 1)}, "'a'"),
        ([np.zeros((3, 2))], (1, 0), "bounds"),
        ([np.zeros(3)], BOX, "2D"),
    ],
)
def test_bad_streams_cost_nothing(chunks, bounds, message):
    accountant = PrivacyAccountant(1.0, 1e-3)
    with pytest.raises(ValueError, match=message):
        DPLloyd(2, bounds=bounds, accountant=accountant).fit_chunks(chunks)
    assert accountant.total().epsilon == 0
