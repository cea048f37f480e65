import os
from pathlib import Path

import numpy as np
import pytest

from sklearn_dptda.datasets import load_polblogs
from tests._refusals import refuses

DATA = os.environ.get("SKLEARN_DPTDA_DATA")
needs_data = pytest.mark.skipif(
    not (DATA and Path(DATA, "polblogs.npz").is_file()),
    reason="polblogs.npz not found: set SKLEARN_DPTDA_DATA to a folder that holds it",
)


@needs_data
@pytest.mark.parametrize(("largest", "n", "edges"), [(True, 1222, 16714), (False, 1490, 16715)])
def test_load_polblogs_has_the_published_sizes(largest, n, edges):
    data = load_polblogs(largest_component=largest)
    A = data.adjacency
    assert A.shape == (n, n) and A.nnz == 2 * edges
    assert (A != A.T).nnz == 0 and not A.diagonal().any() and (A.data == 1).all()
    assert data.target.shape == data.node_names.shape == (n,)
    assert set(np.unique(data.target)) == {0, 1}
    assert data.target_names.tolist() == ["liberal", "conservative"]


def test_load_polblogs_explains_a_missing_file(tmp_path):
    refuses("network data", load_polblogs, tmp_path, error=FileNotFoundError)


def test_load_polblogs_refuses_a_wrong_file(tmp_path):
    np.savez(tmp_path / "polblogs.npz", edges=np.zeros((0, 2), int))
    refuses("lacks", load_polblogs, tmp_path)
