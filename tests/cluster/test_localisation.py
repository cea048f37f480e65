"""Private localisation: sensitivities, the place of the ball, and costs."""

import math

import numpy as np
import pytest

from sklearn_dptda.privacy import FixedPoint
from sklearn_dptda.rows._localisation import localise, parts_below
from sklearn_dptda.rows._rows import Rows
from tests.cluster._tables import seeded


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("total", [1e-9, 1e-3, 1.0, math.inf])
def test_noisy_counts_are_on_the_lattice_of_their_noise(norm, total, monkeypatch):
    # If a count were rounded afterwards, it could change by more than a row does.
    steps = {}
    encode = FixedPoint.encode
    monkeypatch.setattr(
        FixedPoint, "encode", lambda self, values: steps.setdefault(self.step, encode(self, values))
    )
    counts = np.arange(64)[None]
    seeded(norm, 0, total=total).noisy_counts(counts, 64, 0.01)
    ((step, encoded),) = steps.items()
    assert np.array_equal(encoded * step, counts)


@pytest.mark.parametrize(
    ("norm", "width", "place"),
    [
        ("l1", 1.0, 0.0),
        ("l2", 1.0, 0.7),
        ("l1", 0.1, 0.7),
        ("l2", 0.1, 0.0),
        ("l1", 1e-3, 0.0),
        ("l2", 1e-3, 0.7),
    ],
)
def test_localise_finds_the_ball_of_the_rows(norm, width, place):
    rng = np.random.default_rng(0)
    X = np.clip(place * (1 - width) + width * 0.3 * rng.standard_normal((5000, 4)), -1, 1)
    for seed in range(2):
        centre, radius, n_rows, spent = localise(Rows.of_array(X), seeded(norm, seed))
        outside = np.linalg.norm(X - centre, axis=1) > radius
        # The ball contains almost all rows and is not much wider than twice their spread.
        assert outside.mean() < 0.06
        assert radius < max(4 * 0.6 * width, 1e-9) or radius == 2.0
        assert (radius < 0.5) == (width < 1)
        assert 0 < spent < 0.6 and n_rows == pytest.approx(5000, rel=0.2)


@pytest.mark.parametrize(("norm", "total"), [("l1", 2.0), ("l2", 0.43)])
def test_localise_loses_no_clusters_that_noise_hides(norm, total):
    # Fifteen clusters fill the cube, and the noise hides the outer half of the rows. The ball of
    # the visible ones contains .07 to .3 of the rows in one of ten runs.
    inside = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        centres = rng.uniform(-0.8, 0.8, (15, 2))
        X = centres[rng.integers(0, 15, 1000)] + 0.05 * rng.standard_normal((1000, 2))
        X = np.clip(X, -1, 1)
        centre, radius, *_ = localise(Rows.of_array(X), seeded(norm, seed, total=total))
        inside.append((np.linalg.norm(X - centre, axis=1) <= radius).mean())
    assert min(inside) > 0.6 and np.quantile(inside, 0.1) > 0.95


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_localise_keeps_the_cube_if_all_is_noise(norm):
    X = np.full((5, 2), 0.9)
    changes = {"total": 1e-3}
    centre, radius, *_ = localise(Rows.of_array(X), seeded(norm, 0, **changes))
    assert np.array_equal(centre, [0, 0]) and radius == pytest.approx(2**0.5)


def test_localise_without_noise_holds_nearly_all_rows():
    rng = np.random.default_rng(0)
    X = 0.01 * rng.standard_normal((3000, 3)) + 0.5
    centre, radius, *_ = localise(Rows.of_array(X), seeded("l2", 0, total=math.inf))
    assert np.abs(centre - 0.5).max() < 0.01 and radius < 0.1
    assert (np.linalg.norm(X - centre, axis=1) <= radius).mean() >= 0.98


@pytest.mark.parametrize(("per_octave", "n"), [(2, 79), (4, 31), (8, 63)])
def test_parts_of_octaves_are_those_of_comparisons(per_octave, n, rng):
    ends = 2.0 ** (-np.arange(n, 0, -1) / per_octave)
    edges = [ends, np.nextafter(ends, 0), np.nextafter(ends, 2)]
    others = [0.0, 5e-324, 1e-310, 1.0, 2.0, 1e300, np.inf]
    sizes = np.r_[*edges, others, 2.0 ** rng.uniform(-60, 60, 10_000)]
    assert np.array_equal(parts_below(sizes, per_octave, n), np.searchsorted(ends, sizes))
