"""Functions on the simplices of landmarks: values, sensitivity, and features."""

import copy
import math
import pickle
from itertools import combinations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from sklearn_dptda import (
    CubicalPersistence,
    DTMFiltration,
    PrivateBettiNumbers,
    PrivatePersistence,
)
from sklearn_dptda.cluster import PrivateLandmarks
from sklearn_dptda.filtration import ComplexFiltration, LandmarkComplex
from tests._refusals import refuses


def cloud(n, d, n_loops, noise=0.08, seed=0):
    """Circles in one random plane of d columns, or a disc."""
    rng = np.random.default_rng(seed)
    plane, _ = np.linalg.qr(np.random.default_rng(7).normal(size=(d, 2)))
    angle = rng.uniform(0, 2 * np.pi, n)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    if n_loops == 0:
        X *= np.sqrt(rng.random(n))[:, None]
    if n_loops == 2:
        X[:, 0] += np.where(rng.random(n) < 0.5, -1.3, 1.3)
    return X @ plane.T + noise * rng.normal(size=(n, d))


def places_of(K):
    """Simplex, as a tuple, that each place lies in the interior of, by barycentric coordinates."""
    places = K.places()
    found = []
    for simplices in K.simplices:
        q = simplices.shape[1] - 1
        systems = np.array(
            [np.vstack([K.landmarks[s].T, np.ones(q + 1)]) for s in simplices.tolist()]
        )
        inverses = np.linalg.pinv(systems)
        while len(found) < len(places):
            point = np.append(places[len(found)], 1.0)
            weights = inverses @ point
            inside = (weights > 1e-9).all(axis=1)
            inside &= np.abs(np.einsum("sij,sj->si", systems, weights) - point).max(axis=1) < 1e-9
            if not inside.any():
                break
            found.append(tuple(simplices[int(inside.argmax())].tolist()))
    assert len(found) == len(places)
    return found


@pytest.mark.laws
@pytest.mark.parametrize("n", [5, 12])
def test_landmark_complex_highest_is_maximum_over_faces(n):
    # In six columns, no place lies in only two simplices, except in faces.
    landmarks = np.random.default_rng(0).normal(size=(n, 6))
    K = LandmarkComplex(landmarks, 3 if n == 5 else 2)
    everything = [tuple(s) for simplices in K.simplices for s in simplices.tolist()]
    assert len(everything) == len(set(everything)) == K.n_simplices
    if n == 5:
        assert set(everything) == {s for q in range(1, 5) for s in combinations(range(5), q)}
    f = np.random.default_rng(1).random(len(K.places()))
    own = dict.fromkeys(everything, -np.inf)
    for simplex, value in zip(places_of(K), f, strict=True):
        own[simplex] = max(own[simplex], value)
    for value, simplex in zip(K.highest(f), everything, strict=True):
        faces = [face for q in range(len(simplex)) for face in combinations(simplex, q + 1)]
        # Every simplex has a place, and every face is a simplex.
        assert -np.inf < own[simplex] and value == max(own[face] for face in faces)


@pytest.mark.laws
def test_landmark_complex_places_are_near_all_points(rng):
    K = LandmarkComplex(cloud(30, 5, 1), 2)
    places, step = K.places(), K.diameter / 16
    for simplices in K.simplices:
        chosen = simplices[rng.integers(len(simplices), size=60)]
        weights = rng.dirichlet(np.full(simplices.shape[1], 0.5), 60)
        points = np.einsum("sk,skd->sd", weights, K.landmarks[chosen])
        far = np.linalg.norm(points[:, None] - places, axis=2).min(axis=1)
        assert far.max() < 1.5 * step


@pytest.mark.laws
@pytest.mark.parametrize(("n", "dimension"), [(40, 2), (200, 3), (700, 2)])
def test_landmark_complex_has_simplices_of_smallest_stretches(n, dimension):
    landmarks = cloud(n, 4, 0)
    K = LandmarkComplex(landmarks, dimension)
    # The order of the farthest points, and their distances from the earlier ones.
    order, radii = [0], [np.inf]
    D = np.linalg.norm(landmarks[:, None] - landmarks, axis=2)
    while len(order) < n:
        nearest = D[order].min(axis=0)
        order.append(int(nearest.argmax()))
        radii.append(nearest.max())
    scale = np.empty(n)
    scale[order] = radii
    stretch = D / np.minimum(scale[:, None], scale)
    edges = K.simplices[1]
    lengths = stretch[edges[:, 0], edges[:, 1]]
    # All edges of up to twice the scale exist, and no simplex between them is left out.
    pairs = np.column_stack(np.triu_indices(n, 1))
    short = stretch[pairs[:, 0], pairs[:, 1]] < lengths.max() * (1 - 1e-9)
    assert {*map(tuple, pairs[short].tolist())} <= {*map(tuple, edges.tolist())}
    # Only the smallest stretch may have more places than necessary.
    assert lengths.max() > 2 if len(K.places()) <= 2**15 else 1.9 < lengths.max() <= 2
    # Every face of a simplex is a simplex.
    for q in range(1, dimension + 1):
        faces = {*map(tuple, K.simplices[q - 1].tolist())}
        for left_out in range(q + 1):
            assert {*map(tuple, np.delete(K.simplices[q], left_out, axis=1).tolist())} <= faces


@pytest.mark.laws
def test_landmark_complex_limits_number_of_simplices():
    # A ball in ten columns, whose landmarks are all far from each other, and copies of one point.
    rng = np.random.default_rng(0)
    ball = rng.normal(size=(300, 10))
    ball /= np.linalg.norm(ball, axis=1)[:, None]
    K = LandmarkComplex(ball, 3)
    assert len(K.places()) <= 2**18 and len(K.simplices[1]) > 300
    copies = LandmarkComplex(np.concatenate([ball[:3], np.repeat(ball[3:4], 400, axis=0)]), 3)
    assert copies.n_simplices < 1000


@pytest.mark.laws
@pytest.mark.parametrize(("n", "whole"), [(28, True), (60, False)])
def test_landmark_complex_of_equally_far_landmarks_shows_cycle(n, whole):
    # If not all landmarks can span simplices, the remaining ones have one edge each.
    rng, landmarks = np.random.default_rng(0), np.eye(n)
    K = LandmarkComplex(landmarks)
    degrees = np.bincount(K.simplices[1].ravel())
    in_triangles = np.unique(K.simplices[2])
    assert (len(in_triangles) == n) == whole and K.n_places <= 2**18
    assert set(degrees[np.setdiff1d(np.arange(n), in_triangles)]) <= {1}
    assert len(K.simplices[2]) == math.comb(len(in_triangles), 3)
    ends, part = rng.integers(n, size=1000), rng.random((1000, 1))
    X = part * landmarks[ends] + (1 - part) * landmarks[(ends + 1) % n]
    functions = DTMFiltration(0.02, landmarks=landmarks).fit_transform([X])
    (loops,) = CubicalPersistence(1).fit_transform(functions)
    assert ((loops[:, 1] - loops[:, 0]) > functions[0].upper / 5).sum() == whole


@pytest.mark.laws
def test_landmark_complex_of_solid_ball_has_no_loops():
    longest = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(2000, 5))
        X *= rng.random((2000, 1)) ** 0.2 / np.linalg.norm(X, axis=1)[:, None]
        landmarks = PrivateLandmarks(400, 1.0, random_state=seed).fit(X).landmarks_
        functions = DTMFiltration(landmarks=landmarks).fit_transform([X])
        (loops,) = CubicalPersistence(1).fit_transform(functions)
        longest.append((loops[:, 1] - loops[:, 0]).max(initial=0.0) / functions[0].upper)
    # One cloud in six misses an edge.
    assert np.median(longest) < 0.05 and max(longest) < 0.5


def test_landmark_complex_stays_read_only_and_pickles_small():
    K = LandmarkComplex(cloud(60, 4, 1))
    size = len(pickle.dumps(K))
    places = K.places()
    for again in (pickle.loads(pickle.dumps(K)), copy.deepcopy(K)):
        assert not again.landmarks.flags.writeable
        assert np.array_equal(again.places(), places)
    # Values that are computed from the landmarks are not pickled.
    assert len(pickle.dumps(K)) == size < places.nbytes / 4


def test_landmark_complex_takes_copies_as_one_place():
    once = cloud(8, 3, 1)
    twice = np.concatenate([once, once[:3]])
    one, two = (
        CubicalPersistence([0, 1]).fit_transform(
            DTMFiltration(landmarks=landmarks).fit_transform([cloud(500, 3, 1)])
        )[0]
        for landmarks in (once, twice)
    )
    for first, second in zip(one, two, strict=True):
        # A copy and its edge differ only by rounding.
        long = second[:, 1] - second[:, 0] > 1e-6
        np.testing.assert_allclose(first, second[long], atol=1e-6)


@pytest.mark.parametrize("far", [-1e308, pytest.param(1e160, marks=pytest.mark.laws)])
def test_dtm_filtration_on_landmarks_caps_points_of_any_distance(far, rng):
    # Squares of their distances overflow, and a tree then finds fewer neighbours than there are.
    landmarks, near = rng.random((5, 2)), rng.random((9, 2))
    filtration = DTMFiltration(m=0.01, landmarks=landmarks)
    clouds = [np.vstack([near, np.full((991, 2), place)]) for place in (10.0, far)]
    one, other = filtration.fit_transform(clouds)
    assert np.array_equal(one.values, other.values) and one.n_clipped == other.n_clipped


@pytest.mark.nightly
def test_private_landmarks_count_loops_of_six_columns():
    # Of ten releases each, at least nine are correct, where each is with a probability of at least
    # 0.99. Two of ten are wrong in fewer than 1 of 200 cases, and all three counts in fewer than
    # 1e-6.
    wrong = 0
    for n_loops, seed in np.ndindex(3, 10):
        pipeline = make_pipeline(
            DTMFiltration(landmarks=PrivateLandmarks(epsilon=1.0, random_state=seed)),
            PrivateBettiNumbers(1.0, homology_dimensions=1, random_state=seed),
        )
        wrong += pipeline.fit_transform([cloud(4000, 6, n_loops, seed=n_loops)]).item() != n_loops
    assert wrong <= 3


def test_cubical_persistence_of_complex_ends_loops_at_cap():
    turns = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    ring = np.column_stack([np.cos(turns), np.sin(turns)])
    K = LandmarkComplex(ring)
    far = np.linalg.norm(K.places(), axis=1) < 0.6
    f = ComplexFiltration(K.highest(np.where(far, 1.0, 0.1)), 0.01, 1.0, 100, "made up", complex=K)
    (loops,) = CubicalPersistence(1).fit_transform([f])
    assert loops.tolist() == [[0.1, 1.0]]


def test_complex_filtration_refuses_missing_homology():
    X = cloud(200, 5, 1)
    flat, solid = (
        DTMFiltration(landmarks=LandmarkComplex(X[:8], dimension)).fit_transform([X])
        for dimension in (2, 3)
    )
    refuses("no H2", PrivatePersistence(1.0, homology_dimensions=2).fit, flat)
    edges = DTMFiltration(landmarks=LandmarkComplex(X[:8], 1)).fit_transform([X])
    refuses("no H1", PrivateBettiNumbers(1.0, homology_dimensions=1).fit, edges)
    (voids,) = CubicalPersistence(2).fit_transform(solid)
    assert voids.shape[1] == 2


def test_complex_filtration_is_read_only_and_pickles():
    X = cloud(200, 5, 1)
    (f,) = DTMFiltration(landmarks=X[:8]).fit_transform([X])
    again = pickle.loads(pickle.dumps(f))
    np.testing.assert_array_equal(again.values, f.values)
    for array in (f.values, again.values, f.smaller[0].values, f.complex.landmarks):
        assert not array.flags.writeable
    with pytest.raises(ValueError, match="one entry per simplex"):
        ComplexFiltration(np.zeros(3), 0.01, 1.0, 100, "made up", complex=f.complex)
