import numpy as np
import pytest

from sklearn_dptda import bottleneck_distance

from ._oracles import bottleneck


@pytest.mark.slow
def test_against_exact_matching(rng):
    for _ in range(400):
        first, second = (
            np.sort(rng.integers(0, 10, (rng.integers(0, 6), 2)), axis=1) for _ in range(2)
        )
        expected = bottleneck(first[first[:, 1] > first[:, 0]], second[second[:, 1] > second[:, 0]])
        assert bottleneck_distance(first, second) == expected
        assert bottleneck_distance(second, first) == expected


def test_a_pair_that_other_implementations_get_wrong():
    first = [[4, 9], [2, 7], [5, 7]]
    second = [[0, 2], [0, 2], [1, 5], [1, 6], [5, 8]]
    assert bottleneck_distance(first, second) == 2.0


def test_infinite_deaths():
    assert bottleneck_distance([[0, np.inf]], [[1, np.inf]]) == 1.0
    assert bottleneck_distance([[0, np.inf]], []) == np.inf


@pytest.mark.parametrize(
    ("bad", "message"),
    [([[1, 0]], "death before"), ([[np.nan, 1]], "NaN"), ([[1, 2, 3]], "shape")],
)
def test_malformed(bad, message):
    with pytest.raises(ValueError, match=message):
        bottleneck_distance(bad, [[0, 1]])


@pytest.mark.parametrize("scale", [1e-290, 1e-12, 1e12, 1e290])
def test_units_do_not_matter(scale):
    P, Q = np.array([[0.0, 4.0]]), np.array([[0.0, 5.0]])
    assert bottleneck_distance(scale * P, scale * Q) == pytest.approx(scale, rel=1e-12)
    assert bottleneck_distance([[0, np.inf]], [[scale, np.inf]]) == pytest.approx(scale)


def test_overflow_is_refused():
    with pytest.raises(ValueError, match="beyond"):
        bottleneck_distance([[-1e308, 1e308]], [[0, 1]])
