import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.metrics import adjusted_rand_score

from sklearn_dptda.datasets import (
    make_loops,
    make_rings,
    make_series,
    make_shapes,
    make_spirals,
    make_visits,
)
from tests._refusals import by_name, refusals


def make_linked(*args, **kwargs):
    return make_rings(*args, n_features=3, **kwargs)


MAKERS = {
    "spirals": make_spirals,
    "rings": make_rings,
    "linked": make_linked,
    "shapes": make_shapes,
}
every_maker = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@every_maker
def test_make_clusters_shares_points_and_follows_its_seed(make):
    X, y = make(1001, noise=0.1, random_state=0)
    assert len(X) == len(y) == 1001 and y.dtype.kind == "i"
    counts = np.bincount(y)
    assert counts.min() >= 1 and np.ptp(counts) <= 1
    again, labels = make(1001, noise=0.1, random_state=np.random.RandomState(0))
    np.testing.assert_array_equal(X, again)
    np.testing.assert_array_equal(y, labels)
    assert not np.array_equal(X, make(1001, noise=0.1, random_state=1)[0])


@every_maker
def test_make_clusters_are_connected_and_not_round(make):
    X, y = make(1000, random_state=0)
    k = y.max() + 1
    single = AgglomerativeClustering(k, linkage="single").fit_predict(X)
    assert adjusted_rand_score(y, single) == 1
    centres = KMeans(k, n_init=3, random_state=0).fit_predict(X)
    assert adjusted_rand_score(y, centres) < 0.7


@every_maker
def test_make_clusters_noise_blurs_each_coordinate(make):
    exact, _ = make(4000, random_state=0)
    X, _ = make(4000, noise=0.1, random_state=0)
    np.testing.assert_allclose((X - exact).std(axis=0), 0.1, rtol=0.1)


def gap(X, y, a, b):
    return cdist(X[y == a], X[y == b]).min()


def test_make_spirals_is_uniform_along_its_arms():
    X, y = make_spirals(4000, n_arms=3, turns=2.0, random_state=0)
    radius = np.linalg.norm(X, axis=1)
    assert radius.min() >= 0.2 and radius.max() <= 1
    angle = 2 * np.pi * (2.0 * (radius - 0.2) / 0.8 + y / 3)
    np.testing.assert_allclose(X, radius[:, None] * np.c_[np.cos(angle), np.sin(angle)], atol=1e-9)
    assert all(gap(X, y, a, b) > 0.8 * 0.8 / 6 for a, b in [(0, 1), (1, 2), (0, 2)])
    # Points are uniform along the arm: an inner stretch has as many points as an outer one of equal
    # length.
    winding = 2 * np.pi * 2.0 / 0.8
    fine = np.linspace(0.2, 1, 100001)
    length = np.concatenate([[0], np.cumsum(np.hypot(1, winding * fine[1:]))])
    share = np.interp(radius, fine, length / length[-1])
    assert np.ptp(np.histogram(share, bins=5, range=(0, 1))[0]) < 150


def test_make_rings_has_the_radii_in_the_plane():
    X, y = make_rings(500, radii=(0.5, 4.0), random_state=0)
    assert X.shape == (500, 2)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), np.array([0.5, 4.0])[y])


def linking_number(first, second):
    """Gauss' double integral over two closed curves."""
    (a, da), (b, db) = first, second
    apart = a[:, None] - b[None]
    volume = np.einsum("ijk,ijk->ij", apart, np.cross(da[:, None], db[None]))
    return (volume / np.linalg.norm(apart, axis=2) ** 3).sum() / (4 * np.pi)


@pytest.mark.laws
@pytest.mark.parametrize("radii", [(1.0, 2.0, 3.0), (1, 1, 1, 1), (2.0, 0.5, 1.5)])
def test_make_rings_links_neighbours_in_space(radii):
    X, y = make_rings(6000, radii=radii, n_features=3, random_state=0)
    t = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    curves = []
    for k, radius in enumerate(radii):
        ring = X[y == k]
        plane = 1 + k % 2
        assert not ring[:, 3 - plane].any()
        middle = (ring.min(axis=0) + ring.max(axis=0)) / 2
        np.testing.assert_allclose(np.linalg.norm(ring - middle, axis=1), radius, atol=1e-3)
        curve, speed = np.tile(middle, (len(t), 1)), np.zeros((len(t), 3))
        curve[:, 0] += radius * np.cos(t)
        curve[:, plane] += radius * np.sin(t)
        speed[:, 0] = -radius * np.sin(t) * t[1]
        speed[:, plane] = radius * np.cos(t) * t[1]
        curves.append((curve, speed))
    for a in range(len(radii)):
        for b in range(a):
            linked = abs(linking_number(curves[a], curves[b]))
            assert linked == pytest.approx(int(a - b == 1), abs=0.01)
            smaller = min(radii[a], radii[b]) if a - b == 1 else min(radii)
            assert gap(X, y, a, b) > 0.66 * smaller
    assert X[:, 0].min() == pytest.approx(-X[:, 0].max(), abs=1e-3)


def test_make_shapes_has_the_described_clusters():
    X, y = make_shapes(5000, random_state=0)
    assert y.max() == 4 and np.abs(X).max() < 4
    center = np.array([-2.0, -2.0])
    np.testing.assert_allclose(np.linalg.norm(X[y == 2] - center, axis=1), 1.5)
    assert np.linalg.norm(X[y == 3] - center, axis=1).max() <= 0.5
    long, thin = np.sqrt(np.linalg.eigvalsh(np.cov(X[y == 4].T)))[::-1]
    assert long > 8 * thin
    assert min(gap(X, y, a, b) for a in range(5) for b in range(a)) > 0.6 - 1e-9


def test_make_rings_takes_one_point_of_each():
    assert make_rings(2, radii=(1.0, 2.0))[1].tolist() == [0, 1]


def test_make_series_labels_differ_in_their_period():
    X, y = make_series(400, random_state=0)
    assert X.shape == (400, 300) and set(y) == {0, 1}
    power = np.abs(np.fft.rfft(X)) ** 2
    # Most of the power of a sine is at a single frequency.
    peak = power.max(axis=1) / power.sum(axis=1)
    assert np.median(peak[y == 1]) > 3 * np.median(peak[y == 0])
    # The series have about the same size, so the spread does not separate them.
    spread = X.std(axis=1)
    assert spread[y == 1].mean() == pytest.approx(spread[y == 0].mean(), rel=0.25)
    again, labels = make_series(400, random_state=0)
    assert np.array_equal(X, again) and np.array_equal(y, labels)


@pytest.mark.parametrize("biased", [False, True])
def test_make_visits_has_many_lengths_and_bias(biased):
    X, ids, y = make_visits(3000, biased=biased, random_state=0)
    sizes = np.bincount(ids)
    assert len(sizes) == 3000 and sizes.min() == 1 and sizes.max() == 500
    assert np.median(sizes) <= 3 and (np.diff(ids) >= 0).all()
    assert (np.abs(X) <= 8).all(axis=1).mean() > 0.999
    centres = np.array([X[y == k].mean(axis=0) for k in range(4)])
    assert np.abs(centres) == pytest.approx(np.full((4, 2), 3), abs=0.4)
    # With bias, people with many visits mostly visit the first cluster.
    assert ((y == 0).mean() > 0.5) == biased
    one, people, _ = make_visits(50, max_visits=1, random_state=0)
    assert len(one) == 50 and people.tolist() == list(range(50))


SIZES = by_name(n_samples=[0, -1, 2.5, "many", None, True], noise=[-0.1, np.nan, np.inf, "much"])
WIDTHS = [(), (1.0, -1.0), (1.0, np.inf), (1.0, 1.0), [[1.0, 2.0]], "wide", [[1.0], [2.0, 3.0]]]
REFUSED = {
    "spirals": (make_spirals, [*SIZES, *by_name(n_arms=[0, 1.5], turns=[0, np.nan])]),
    "rings": (make_rings, [*SIZES, *by_name(n_features=[4, "2"], radii=WIDTHS)]),
    "linked": (make_linked, SIZES),
    "shapes": (make_shapes, [*SIZES, ("n_samples", 4)]),
    "loops": (make_loops, by_name(n_loops=[(3,)])),
    "series": (make_series, by_name(n_series=[0], n_steps=[0])),
    "visits": (make_visits, by_name(n_people=[0], max_visits=[0])),
}


@refusals(REFUSED)
def test_makers_of_data_refuse_by_name(refuse):
    refuse()
