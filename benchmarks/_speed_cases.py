"""Calls of this library and of its peers for the same tasks, whose processor times are compared.

Each case yields a function of ours, and one of the peer. A peer in another environment is asked for
the times of its own fits. ``python -m benchmarks._speed_cases`` measures all cases in one process,
and prints a line of JSON for each.
"""

import json
import sys
import warnings
from functools import partial
from typing import NamedTuple

import gudhi
import numpy as np
from gudhi.point_cloud.dtm import DistanceToMeasure
from sklearn.cluster import HDBSCAN
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity

from benchmarks._ask import ask, missing
from benchmarks._timing import cpu_of
from sklearn_dptda import CubicalPersistence, DTMFiltration, PrivatePersistence
from sklearn_dptda.cluster import DPLloyd, DPMoG, DPMoGMorse, DPToMATo
from sklearn_dptda.datasets import load_table, make_two_circles
from sklearn_dptda.decomposition import PrivatePCA
from sklearn_dptda.persistence import bottleneck_distance
from sklearn_dptda.privacy import NoiseSource, NoiseWarning
from sklearn_dptda.published._published_persistence import MarkovChainMechanism
from sklearn_dptda.synthetic import PrivateMeasure

DELTA = 1e-6
PUBLIC = {"epsilon": 1.0, "bounds": (-0.5, 0.5)}
# The standard deviation of a blob in a column of the cube.
WIDTH = 1 / 24
# Steps of the published Markov chain, and those that are timed.
CHAIN_STEPS, TIMED_STEPS = 10_000, 50
# Moments of all rows, eight k-means steps and two mixture steps.
N_PASSES = 11
# Turns of each case, unless they take longer than these seconds together.
TURNS, PATIENCE = 5, 30.0


class Case(NamedTuple):
    """One row: the task, both names, and the calls. ``factor`` scales the time of the peer."""

    task: str
    ours: str
    peer: str
    call: object
    peer_call: object
    factor: float = 1.0


class TwoMixtureSteps(DPMoG):
    """A private mixture of two mixture steps, whatever the number of rows."""

    _n_mixture_steps = 2


def cases(quick):
    """Yield all cases whose peers and tables are available, and say which are not."""
    families = _distances_to_measure, _diagrams, _bottleneck, _release, _noise, _kmeans
    for family in (*families, _blobs_in_mixtures, _shuttle, _others):
        try:
            yield from family(quick)
        except (ImportError, FileNotFoundError) as error:
            print(f"{family.__name__.strip('_')}: left out, {error}", file=sys.stderr)


def _distances_to_measure(quick):
    plane = [(4000, 800), (20_000, 1000), (1000, 200), (4000, 40)]
    for n, k in plane[: 1 if quick else None]:
        yield _distance_to_measure(make_two_circles(n, random_state=0), k, (-2.5, 3), 101)
    if not quick:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((4000, 3))
        X = X / np.linalg.norm(X, axis=1)[:, None] + 0.1 * rng.standard_normal(X.shape)
        yield _distance_to_measure(X, 40, (-1.6, 1.6), 41)


def _distance_to_measure(X, k, bounds, side):
    n, d = X.shape
    ours = DTMFiltration(k / n, bounds=bounds, resolution=side, method="exact")
    ours.set_params(max_distance=np.inf).fit([X])
    nodes = np.stack([m.ravel() for m in np.meshgrid(*ours.axes_, indexing="ij")], axis=1)

    def gudhi_call():
        return DistanceToMeasure(k, q=1).fit(X).transform(nodes)

    assert np.abs(ours.transform([X])[0].values.ravel() - gudhi_call()).max() < 1e-9
    grid = " x ".join([str(side)] * d)
    task = f"distance-to-measure, {n:,} points, {k:,} neighbours, {grid} nodes"
    return Case(task, "DTMFiltration", "GUDHI", lambda: ours.transform([X]), gudhi_call)


def _diagrams(quick):
    for d, side in ((2, 51),) if quick else ((2, 101), (2, 601), (3, 41)):
        X = make_two_circles(2000, random_state=0)
        if d == 3:
            X = np.column_stack([X, np.random.default_rng(0).normal(0, 0.3, len(X))])
        (function,) = DTMFiltration(0.1, bounds=(-2.5, 3), resolution=side).fit_transform([X])
        ours = CubicalPersistence(tuple(range(d)))
        yield Case(
            f"diagrams of values on {' x '.join([str(side)] * d)} nodes",
            "CubicalPersistence",
            "GUDHI",
            partial(ours.fit_transform, [function]),
            partial(_by_vertices, function.values, d),
        )


def _by_vertices(values, d):
    cells = gudhi.CubicalComplex(vertices=values)
    cells.compute_persistence(homology_coeff_field=2)
    return [cells.persistence_intervals_in_dimension(q) for q in range(d)]


def _bottleneck(quick):
    for n in (50,) if quick else (50, 200, 2000):
        first, second = (
            np.c_[b, b + rng.exponential(0.1, n)]
            for rng in map(np.random.default_rng, (0, 1))
            for b in [rng.random(n)]
        )
        # GUDHI's distance is wrong for some diagrams. For these pairs it equals Hera's, and it is
        # faster, so that it is the stricter peer. One call takes less than the clock can tell.
        times = range(max(1, 2000 // n))
        yield Case(
            f"bottleneck distance, {n:,} points",
            "bottleneck_distance",
            "GUDHI",
            lambda p=first, q=second, t=times: [bottleneck_distance(p, q) for _ in t],
            lambda p=first, q=second, t=times: [gudhi.bottleneck_distance(p, q) for _ in t],
        )


def _release(quick):
    n = 400 if quick else 4000
    X = make_two_circles(n, random_state=0)
    dtm = DTMFiltration(0.2, bounds=(-2.5, 3)).fit([X])
    private, exact = PrivatePersistence(1.0), CubicalPersistence((1,))
    (function,) = dtm.transform([X])
    (diagram,) = exact.fit_transform([function])[0]
    chain = MarkovChainMechanism(1.0, True, 5, TIMED_STEPS, 0.1)
    public = (1,), function.sensitivity, function.upper, 0
    yield Case(
        f"one release of {n:,} points (chain: {CHAIN_STEPS:,} steps alone)",
        "PrivatePersistence",
        "published chain",
        lambda: private.fit_transform(dtm.transform([X])),
        lambda: chain.release([diagram], *public),
        CHAIN_STEPS / TIMED_STEPS,
    )


def _noise(quick):
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance
    from opendp.mod import enable_features
    from opendp.typing import i64

    enable_features("contrib")
    n = 10_000 if quick else 100_000
    space = vector_domain(atom_domain(T=i64))
    laws = {
        "Laplace": (NoiseSource().discrete_laplace, make_laplace, l1_distance),
        "Gaussian": (NoiseSource().discrete_gaussian, make_gaussian, l2_distance),
    }
    for law, (ours, make, metric) in laws.items():
        measurement, zeros = make(space, metric(T=i64), scale=1e6), np.zeros(n, dtype=np.int64)
        yield Case(
            f"{n:,} exact draws, {law} noise",
            "NoiseSource",
            "OpenDP",
            partial(ours, 1e6, n),
            partial(measurement, zeros),
        )


def _blobs(n, d, k):
    """Clusters in the cube [-1/2, 1/2]^d."""
    X = make_blobs(n, d, centers=k, center_box=(-8, 8), random_state=0)[0]
    return np.clip(X * WIDTH, -0.5, 0.5)


def _kmeans(quick):
    # The ball around the cube is the public bound of Google's method.
    peers = {"DIFFPRIVLIB": ("diffprivlib", "noisy"), "GOOGLE_DP": ("Google", "lsh")}
    sizes = [(1000, 2, 5), (10_000, 2, 5), (20_000, 8, 8), (100_000, 10, 64), (100_000, 100, 64)]
    for n, d, k in sizes[: 1 if quick else None]:
        X = _blobs(n, d, k)
        arrays = {"X": X, "low": np.full(d, -0.5), "high": np.full(d, 0.5)}
        given = {"n_clusters": k, "epsilon": 1.0, "delta": DELTA, "radius": d**0.5 / 2}
        given |= {"n_seeds": 1, "warm_up": True}
        for peer, (name, job) in peers.items():
            folder = peer == "GOOGLE_DP"
            if missing(peer, folder=folder):
                continue
            yield Case(
                f"k-means, {n:,} x {d}, {k} clusters",
                "DPLloyd",
                name,
                partial(DPLloyd(k, delta=DELTA, **PUBLIC).fit, X),
                partial(_asked, peer, job, arrays, folder, given),
            )


def _asked(peer, job, arrays, folder, given):
    """Return the processor seconds of a peer in another environment."""
    return ask(peer, job, arrays, folder=folder, **given)["seconds"][0]


def _blobs_in_mixtures(quick):
    n, d, k = (10_000, 4, 4) if quick else (1_000_000, 8, 8)
    yield _mixture(f"blobs, {n:,} x {d}", _blobs(n, d, k), (-0.5, 0.5), k)
    n, k = (5000, 4) if quick else (100_000, 64)
    X = _blobs(n, 10, k)
    yield Case(
        f"merged mixture, blobs, {n:,} x 10, {k} components",
        "DPMoGMorse",
        "GaussianMixture",
        partial(DPMoGMorse(None, k, delta=DELTA, **PUBLIC).fit, X),
        partial(_fit_mixture, k, X),
    )


def _shuttle(quick):
    if not quick:
        X = load_table("shuttle").data
        low, high = X.min(axis=0), X.max(axis=0)
        bounds = low, np.where(high > low, high, low + 1)
        yield _mixture("shuttle, 43,500 x 9", X, bounds, 12)


def _mixture(data, X, bounds, k):
    return Case(
        f"mixture, {data}, {k} components",
        "DPMoG",
        "GaussianMixture",
        partial(TwoMixtureSteps(k, 1.0, DELTA, bounds).fit, X),
        partial(_fit_mixture, k, X),
    )


def _fit_mixture(k, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        GaussianMixture(k, max_iter=N_PASSES, tol=0, init_params="random_from_data").fit(X)


def _others(quick):
    few, many = (1000, 2000) if quick else (20_000, 100_000)
    X = _blobs(many, 4, 5)
    yield Case(
        f"clusters of any shape, {few:,} x 4",
        "DPToMATo",
        "HDBSCAN",
        partial(DPToMATo(**PUBLIC).fit, X[:few]),
        partial(HDBSCAN(min_cluster_size=50, copy=True).fit, X[:few]),
    )
    yield Case(
        f"synthetic rows, {many:,} x 4",
        "PrivateMeasure",
        "KernelDensity",
        lambda: PrivateMeasure(**PUBLIC).fit(X).sample(len(X)),
        lambda: KernelDensity(bandwidth=WIDTH / 4).fit(X).sample(len(X)),
    )
    yield Case(
        f"principal components, {many:,} x 4",
        "PrivatePCA",
        "PCA",
        partial(PrivatePCA(2, delta=DELTA, **PUBLIC).fit, X),
        partial(PCA(2).fit, X),
    )


def measured(case, turns):
    """Return the least processor seconds of both calls, by turns."""
    own, theirs = [], []
    for _ in range(turns):
        own.append(cpu_of(case.call)[0])
        seconds, answer = cpu_of(case.peer_call)
        # A peer in another environment answers with its own time.
        theirs.append(case.factor * (answer if isinstance(answer, float) else seconds))
        if sum(own) + sum(theirs) / case.factor > PATIENCE:
            break
    return min(own), min(theirs)


def main():
    quick = "--quick" in sys.argv
    # Noise hides everything in small data.
    warnings.simplefilter("ignore", NoiseWarning)
    for case in cases(quick):
        try:
            own, theirs = measured(case, 1 if quick else TURNS)
        except RuntimeError as error:
            # A peer in another environment has failed.
            print(f"{case.task}: {case.peer} is left out, {error}", file=sys.stderr)
            continue
        print(json.dumps([case.task, case.ours, case.peer, own, theirs]), flush=True)


if __name__ == "__main__":
    main()
