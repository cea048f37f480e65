"""Fits use one thread of the linear algebra, and leave its setting as they found it."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from sklearn_dptda.cluster import DPLloyd
from sklearn_dptda.privacy._estimator import plain_arithmetic


def threads():
    return {i["filepath"]: i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def _two_threads():
    with threadpool_limits(2, user_api="blas"):
        if set(threads().values()) != {2}:
            pytest.skip("the linear algebra of this computer has no setting for its threads")
        yield


def test_fits_use_one_thread_and_restore_the_setting(monkeypatch):
    before, seen = threads(), []
    release = DPLloyd._release
    monkeypatch.setattr(DPLloyd, "_release", lambda *args: seen.append(threads()) or release(*args))
    DPLloyd(2, bounds=(0, 1), random_state=0).fit(np.eye(20))
    assert [set(each.values()) for each in seen] == [{1}]
    assert threads() == before


def test_blocks_inside_of_a_block_leave_the_setting():
    before = threads()
    with plain_arithmetic():
        with plain_arithmetic():
            assert set(threads().values()) == {1}
        # Also one that another thread enters meanwhile, and leaves later.
        inner = plain_arithmetic()
        inner.__enter__()
    inner.__exit__(None, None, None)
    assert threads() == before


def test_errors_restore_the_setting():
    before = threads()
    with pytest.raises(ValueError, match="here"), plain_arithmetic():
        raise ValueError("here")
    assert threads() == before
