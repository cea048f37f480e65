import numpy as np
import pytest
from scipy.stats import chisquare

from sklearn_dptda.privacy import IntegerSource, PrivacyGuarantee, spawn_seeds


@pytest.mark.parametrize("seed", [None, 3])
def test_integers_are_uniform(seed):
    # 20,000 draws, false-alarm rate 1e-6.
    source = IntegerSource(seed)
    draws = [source.below(7) for _ in range(20_000)]
    assert chisquare(np.bincount(draws, minlength=7)).pvalue > 1e-6
    assert source.seeded == (seed is not None)
    assert source.below(1) == 0
    assert 0 <= source.below(10**60) < 10**60


def test_shuffle_reaches_every_order():
    source, seen = IntegerSource(0), {}
    for _ in range(6000):
        items = [0, 1, 2]
        source.shuffle(items)
        seen[tuple(items)] = seen.get(tuple(items), 0) + 1
    assert chisquare([seen.get(k, 0) for k in seen]).pvalue > 1e-6 and len(seen) == 6


def test_below_needs_a_positive_bound():
    with pytest.raises(ValueError, match="positive"):
        IntegerSource(0).below(0)


def test_seeds():
    assert spawn_seeds(None, 3) == [None] * 3
    assert spawn_seeds(5, 3) == spawn_seeds(5, 3)
    assert spawn_seeds(5, 3) == spawn_seeds(5, 4)[:3]
    for state in (5, np.random.default_rng(0), np.random.RandomState(0)):
        seeds = spawn_seeds(state, 100)
        assert len(set(seeds)) == 100 and all(0 <= s < 2**32 for s in seeds)


def test_guarantee_reads_as_a_sentence():
    base = {
        "adjacency": "replace-one",
        "unit": "one point",
        "mechanism": "M",
        "released": "a thing",
    }
    good = PrivacyGuarantee(1.0, 1e-6, seeded=False, **base)
    assert str(good).startswith("(epsilon=1, delta=1e-06)-differential privacy for replacing")
    assert good.holds and "#2a7f62" in good._repr_html_()
    assert not PrivacyGuarantee(1.0, 0.0, seeded=True, **base).holds
    assert "nominal" in str(PrivacyGuarantee(1.0, 0.0, seeded=False, exact=False, **base))
    assert "computed from the data" in str(
        PrivacyGuarantee(1.0, 0.0, seeded=False, public_parameters=False, **base)
    )
    with pytest.raises(AttributeError):
        good.epsilon = 2.0
