import io
import os
import pickle
from urllib.request import urlopen

import numpy as np
import pytest

from sklearn_dptda.datasets import load_polblogs, load_walkers, make_loops, make_two_circles
from tests._refusals import refuses
from tests.datasets._files import needs

PUBLISHED = "https://raw.githubusercontent.com/GUDHI/TDA-tutorial/master/datasets/data_acc"


def test_make_two_circles_has_both_circles_and_weights():
    X = make_two_circles(101, random_state=0)
    near = np.abs(np.linalg.norm(X - [1.5, 1.5], axis=1) - 1.5) < 1e-12
    far = np.abs(np.linalg.norm(X - [-1.5, -1.5], axis=1) - 1.0) < 1e-12
    assert (near ^ far).all() and abs(near.sum() - far.sum()) == 1
    uneven = make_two_circles(100, weights=(3, 1), random_state=0)
    assert (uneven.sum(axis=1) > 0).sum() == 75


def test_make_loops_labels_clouds_by_loops():
    X, y = make_loops(6, 50, n_loops=(0, 1, 2), random_state=0)
    assert y.tolist() == [0, 1, 2, 0, 1, 2]
    assert all(np.abs(cloud).max() < 2.5 for cloud in X)


@needs("walkers")
def test_load_walkers_has_clouds_and_series():
    clouds = load_walkers(download=False)
    assert [cloud.shape for cloud in clouds.data] == [(20000, 3)] * 3
    series = load_walkers(series=True, download=False)
    assert series.data.shape == (300, 200, 3)
    np.testing.assert_array_equal(series.data[series.target == 1].reshape(-1, 3), clouds.data[1])


def test_load_walkers_says_what_to_do_without_data(tmp_path):
    refuses("SKLEARN_DPTDA_DATA", load_walkers, tmp_path, download=False, error=FileNotFoundError)


def serve(path, monkeypatch):
    """Let downloads of the recordings, and of nothing else, find a local file."""

    def local(url, **options):
        assert url == PUBLISHED
        return urlopen(path.as_uri(), **options)

    monkeypatch.setattr("urllib.request.urlopen", local)


@pytest.mark.conformance
@needs("walkers")
def test_load_walkers_checks_and_stores_its_download(tmp_path, monkeypatch):
    # The published file is a pickle of the recordings and their labels.
    series = load_walkers(series=True, download=False)
    parts = [series.data[series.target == k] for k in range(3)]
    source = tmp_path / "data_acc"
    source.write_bytes(pickle.dumps([*parts, series.target], protocol=2))
    serve(source, monkeypatch)
    loaded = load_walkers(tmp_path / "home", series=True)
    np.testing.assert_array_equal(loaded.data, series.data)
    assert len(load_walkers(tmp_path / "home").data) == 3
    parts[0] = parts[0] + 1e-9
    source.write_bytes(pickle.dumps([*parts, series.target]))
    refuses("checksum", load_walkers, tmp_path / "other")


def test_load_walkers_runs_no_code_of_its_download(tmp_path, monkeypatch):
    class Evil:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "gotcha"),))

    source = tmp_path / "data_acc"
    buffer = io.BytesIO()
    pickle.dump(Evil(), buffer)
    source.write_bytes(buffer.getvalue())
    serve(source, monkeypatch)
    refuses("not the file", load_walkers, tmp_path / "home")
    assert not (tmp_path / "gotcha").exists()
    serve(tmp_path / "nowhere", monkeypatch)
    refuses("SKLEARN_DPTDA_DATA", load_walkers, tmp_path / "home", error=FileNotFoundError)


# Networks.


@needs("polblogs")
@pytest.mark.parametrize(("largest", "n", "edges"), [(True, 1222, 16714), (False, 1490, 16715)])
def test_load_polblogs_has_the_published_sizes(largest, n, edges):
    data = load_polblogs(largest_component=largest)
    A = data.adjacency
    assert A.shape == (n, n) and A.nnz == 2 * edges
    assert (A != A.T).nnz == 0 and not A.diagonal().any() and (A.data == 1).all()
    assert data.target.shape == data.node_names.shape == (n,)
    assert set(np.unique(data.target)) == {0, 1}
    assert data.target_names.tolist() == ["liberal", "conservative"]


def test_load_polblogs_explains_a_missing_and_a_wrong_file(tmp_path):
    refuses("network data", load_polblogs, tmp_path, error=FileNotFoundError)
    np.savez(tmp_path / "polblogs.npz", edges=np.zeros((0, 2), int))
    refuses("lacks", load_polblogs, tmp_path)
