"""Calls that two versions of this library are compared by: a script that answers on its input.

``versions.py`` runs it twice, with each checkout first on the path. The first two lines of the
output are the names of the cases and the place of the library. Then each line of the input is a
name and how often to call it, and the answer is a line of JSON. The script imports nothing else of
the benchmarks. A case keeps its name as long as it makes the same call.
"""

import hashlib
import json
import pickle
import sys
import warnings
from time import perf_counter, process_time

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.frozen import FrozenEstimator
from sklearn.mixture import GaussianMixture

import sklearn_dptda
from sklearn_dptda import DTMFiltration, PrivatePersistence
from sklearn_dptda.cluster import (
    DPLandmarkToMATo,
    DPLloyd,
    DPMoG,
    DPMoGMorse,
    DPToMATo,
    DPTree,
    MorseMerging,
    PrivateLandmarks,
    ToMATo,
)
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.decomposition import PrivatePCA
from sklearn_dptda.discriminant_analysis import DPLinearDiscriminantAnalysis
from sklearn_dptda.filtration import KernelDistanceFiltration
from sklearn_dptda.graph import AdjacencySpectralEmbedding, EdgeFlip, make_sbm
from sklearn_dptda.model_selection import plan_release
from sklearn_dptda.persistence import (
    CubicalPersistence,
    bottleneck_distance,
    shift_invariant_bottleneck_distance,
    wasserstein_distance,
)
from sklearn_dptda.population import PrivateMean, private_two_sample_test
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.published import DPCube, accuracy_bounds, optimal_mechanism
from sklearn_dptda.synthetic import PrivateMeasure

PLANE, BOX = (-2.5, 3), (-12, 12)
CASES = {}


def case(name):
    """Register a function that prepares a call of one argument, the seed (None: real noise)."""

    def register(prepare):
        CASES[name] = prepare
        return prepare

    return register


def _blobs(n, d, k=6):
    return make_blobs(n, d, centers=k, center_box=(-8, 8), random_state=0)


def _ball(n, d=3):
    return np.random.default_rng(0).normal(size=(n, d)) / 2


def _fits(estimator, sizes, what, **parameters):
    """Register fits of one estimator to tables of several sizes."""
    for n, d in sizes:

        def prepare(n=n, d=d):
            X, y = _blobs(n, d)
            labels = (y,) if estimator is DPLinearDiscriminantAnalysis else ()
            return lambda seed: what(estimator(**parameters, random_state=seed).fit(X, *labels))

        case(f"{estimator.__name__}, {n:,} x {d}")(prepare)


def _centers(fitted):
    return fitted.cluster_centers_


_fits(DPLloyd, [(1000, 2), (100_000, 10)], _centers, n_clusters=6, bounds=BOX)
_fits(DPCube, [(1000, 2), (100_000, 2)], _centers, n_clusters=6, bounds=BOX)
_fits(DPTree, [(1000, 2), (100_000, 4)], _centers, n_clusters=6, bounds=BOX)
_fits(DPMoG, [(1000, 2), (100_000, 10)], lambda f: f.means_, n_components=6, bounds=BOX)
_fits(DPMoGMorse, [(1000, 2), (20_000, 10)], lambda f: f.weights_, n_clusters=6, bounds=BOX)
_fits(DPToMATo, [(1000, 2), (100_000, 2)], lambda f: f.counts_, n_clusters=6, bounds=BOX)
_fits(DPLandmarkToMATo, [(2000, 8)], _centers, n_clusters=6, bounds=BOX)
_fits(PrivateLandmarks, [(1000, 2), (100_000, 8)], lambda f: f.landmarks_, bounds=BOX)
_fits(
    PrivateBounds,
    [(1000, 2), (1000, 3), (20_000, 4), (100_000, 4)],
    lambda f: f.bounds_,
    epsilon=1.0,
    start=(-100, 100),
)
_fits(PrivatePCA, [(1000, 4), (100_000, 32)], lambda f: f.components_, n_components=2, bounds=BOX)
_fits(
    DPLinearDiscriminantAnalysis,
    [(1000, 2), (100_000, 10)],
    lambda f: f.means_,
    classes=range(6),
    bounds=BOX,
)


@case("PrivateMeasure, 10,000 x 2")
def _measure():
    X, _ = _blobs(10_000, 2)
    return lambda seed: PrivateMeasure(bounds=BOX, random_state=seed).fit(X).sample(1000, seed)


@case("ToMATo, 5,000 x 2")
def _tomato():
    X, _ = _blobs(5000, 2)
    return lambda seed: ToMATo(n_clusters=6).fit(X).labels_


@case("MorseMerging of 12 components, 5,000 x 4")
def _merging():
    X, _ = _blobs(5000, 4)
    mixture = FrozenEstimator(GaussianMixture(12, random_state=0).fit(X))
    return lambda seed: MorseMerging(mixture, 6).fit(X).labels_


def _distances(n, d, k, side):
    def prepare():
        cloud = make_two_circles(n, random_state=0) if d == 2 else _ball(n)
        dtm = DTMFiltration(k / n, bounds=PLANE, resolution=side)
        return lambda seed: dtm.fit_transform([cloud])[0].values

    case(f"DTMFiltration, {n:,} points in {d} columns, k = {k:,}, {side}^{d}")(prepare)


for sizes in (
    (300, 2, 60, 101),
    (1000, 2, 200, 101),
    (4000, 2, 40, 101),
    (4000, 2, 800, 101),
    (20_000, 2, 1000, 101),
    (20_000, 2, 20, 101),
    (4000, 3, 40, 41),
    (4000, 3, 800, 41),
):
    _distances(*sizes)


@case("DTMFiltration of 32 clouds of 200 points, 51^2")
def _clouds():
    clouds = [make_two_circles(200, random_state=seed) for seed in range(32)]
    dtm = DTMFiltration(0.2, bounds=PLANE, resolution=51)
    return lambda seed: [f.values for f in dtm.fit_transform(clouds)]


@case("KernelDistanceFiltration, 2,000 points, 101^2")
def _kernel():
    cloud = make_two_circles(2000, random_state=0)
    kernel = KernelDistanceFiltration(0.3, bounds=PLANE, resolution=101)
    return lambda seed: kernel.fit_transform([cloud])[0].values


@case("distances at 300 landmarks of 4,000 points in 3 columns")
def _complex():
    cloud, places = _ball(4000), _ball(300)
    dtm = DTMFiltration(0.1, max_distance=4.0, landmarks=places)
    return lambda seed: dtm.fit_transform([cloud])[0].values


def _filtration(side=101, n=1000):
    cloud = make_two_circles(n, random_state=0)
    return DTMFiltration(0.2, bounds=PLANE, resolution=side).fit_transform([cloud])


@case("CubicalPersistence, 201^2")
def _diagrams():
    functions = _filtration(201)
    return lambda seed: CubicalPersistence().fit_transform(functions)


@case("PrivatePersistence, 1,000 points, 101^2")
def _release():
    functions = _filtration()
    return lambda seed: PrivatePersistence(random_state=seed).fit_transform(functions)


@case("PrivatePersistence, 4,000 points, max_points = 3, epsilon = 4")
def _wide():
    functions = _filtration(n=4000)
    release = PrivatePersistence(4.0, max_points=3)
    return lambda seed: release.set_params(random_state=seed).fit_transform(functions)


def _random_diagram(n, seed):
    return np.random.default_rng(seed).random((n, 2)).cumsum(axis=1)


for name, distance, n in (
    ("bottleneck_distance", bottleneck_distance, 800),
    ("wasserstein_distance", wasserstein_distance, 800),
    ("shift_invariant_bottleneck_distance", shift_invariant_bottleneck_distance, 60),
):

    def _pair(distance=distance, n=n):
        first, second = _random_diagram(n, 0), _random_diagram(n, 1)
        return lambda seed: distance(first, second)

    case(f"{name}, {n} points")(_pair)


def _graph():
    return make_sbm([500, 500], [[0.2, 0.05], [0.05, 0.2]], random_state=0)[0]


@case("EdgeFlip, 1,000 vertices")
def _flip():
    graph = _graph()
    return lambda seed: EdgeFlip(random_state=seed).fit_transform(graph)


@case("AdjacencySpectralEmbedding, 1,000 vertices")
def _embedding():
    noisy = EdgeFlip(random_state=0).fit_transform(_graph())
    return lambda seed: np.abs(AdjacencySpectralEmbedding(2).fit_transform(noisy)).round(9)


@case("ten times private_two_sample_test, 100 people a group")
def _test():
    rows = np.random.default_rng(0).random((200, 8))
    first, second = rows[:100], np.clip(rows[100:] + 0.15, 0, 1)

    def one(seed):
        return private_two_sample_test(first, second, bounds=(0, 1), random_state=seed).rejected

    return lambda seed: [one(None if seed is None else seed + i) for i in range(10)]


@case("PrivateMean, 1,000 x 50")
def _mean():
    rows = np.random.default_rng(0).random((1000, 50))
    return lambda seed: PrivateMean(bounds=(0, 1), random_state=seed).fit(rows).mean_


@case("optimal_mechanism, 24 places")
def _optimal():
    places = np.linspace(0, 1, 24)
    return lambda seed: optimal_mechanism(np.abs(places[:, None] - places)).accuracy


@case("accuracy_bounds, 60 places")
def _bounds():
    places = np.random.default_rng(0).random((60, 2))
    D = np.linalg.norm(places[:, None] - places, axis=2)
    return lambda seed: np.array(list(vars(accuracy_bounds(D)).values()), dtype=object)


@case("plan_release, 1,000 points")
def _plan():
    return lambda seed: plan_release(1000, (0, 1), n_dims=2, loop_radius=0.3).error_bound


def _answer(call, times):
    start, cpu = perf_counter(), process_time()
    for _ in range(times):
        call(None)
    return {
        "clock": (perf_counter() - start) / times,
        "cpu": (process_time() - cpu) / times,
    }


def _digest(value):
    """Digest of arrays, or of any other result of a seeded call."""
    return hashlib.sha256(pickle.dumps(_plain(value), 4)).hexdigest()


def _plain(value):
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return np.ascontiguousarray(value).tolist()


def main():
    """Answer one line for each line of the input."""
    warnings.simplefilter("ignore")
    out, sys.stdout = sys.stdout, sys.stderr
    for first in ({"names": list(CASES)}, {"place": sklearn_dptda.__file__}):
        print(json.dumps(first), file=out, flush=True)
    prepared = {}
    for line in sys.stdin:
        name, times = json.loads(line)
        try:
            if name not in prepared:
                prepared = {name: CASES[name]()}
            if times:
                answer = _answer(prepared[name], times)
            else:
                answer = {"digest": _digest(prepared[name](0))}
        except Exception as error:  # Another version may lack what is called.
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
