"""Loops on private landmarks in 3 to 20 columns, and clusters of the counts between them."""

import warnings

import numpy as np
from gudhi.sklearn import RipsPersistence
from joblib import Parallel, delayed
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline

from benchmarks._table import Table
from sklearn_dptda import DTMFiltration, PrivateBettiNumbers
from sklearn_dptda.cluster import DPLandmarkToMATo, DPMoGMorse, PrivateLandmarks
from sklearn_dptda.datasets import load_table

# Loops of circles of radius one that live longer are counted in Rips complexes, without privacy, of
# so many of the points: the threshold is chosen to suit them.
_RIPS_LEAST, _RIPS_POINTS = 0.5, 300


def tables(quick):
    """Yield the tables of this benchmark."""
    n_seeds = 2 if quick else 20
    columns, noises, epsilons = ((6,), (0.08,), (2.0,)) if quick else _CELLS
    yield _loops(columns, noises, epsilons, 1000 if quick else 4000, n_seeds)
    yield _clusters((2.0,) if quick else (0.5, 1.0, 2.0), 1000 if quick else 4000, n_seeds)


_CELLS = (3, 6, 10, 20), (0.08, 0.15), (1.0, 2.0, 5.0)


def flat_loops(n, d, n_loops, noise, seed):
    """Circles of radius one in a random plane of ``d`` columns, or a disc."""
    rng = np.random.default_rng(seed)
    turns = rng.uniform(0, 2 * np.pi, n)
    flat = np.column_stack([np.cos(turns), np.sin(turns)])
    if n_loops == 0:
        flat *= np.sqrt(rng.random(n))[:, None]
    if n_loops == 2:
        flat[:, 0] += np.where(rng.random(n) < 0.5, -1.3, 1.3)
    return lifted(flat, d, noise, rng)


def lifted(flat, d, noise, rng):
    """Points of a plane in a random plane of ``d`` columns, with noise in all of them."""
    plane, _ = np.linalg.qr(rng.normal(size=(d, flat.shape[1])))
    return flat @ plane.T + noise * rng.normal(size=(len(flat), d))


def _loops(columns, noises, epsilons, n, n_seeds):
    names = ["disc", "one circle", "two circles"]
    heads = [f"epsilon {epsilon:g}" for epsilon in epsilons]
    rows = []
    for d in columns:
        for noise in noises:
            for n_loops, name in enumerate(names):
                tasks = [(n, d, n_loops, noise, seed) for seed in range(n_seeds)]
                rips = np.mean([_rips(*task) == n_loops for task in tasks])
                shares = []
                for epsilon in epsilons:
                    found = Parallel(n_jobs=-1)(delayed(_count)(epsilon, *task) for task in tasks)
                    shares.append(f"{np.mean(np.array(found) == n_loops):.2f}")
                rows.append([name, str(d), f"{noise:g}", *shares, f"{rips:.2f}"])
    return Table(
        f"Share of right numbers of loops, {n} points, {n_seeds} clouds; half of epsilon for "
        "landmarks",
        ["shape", "columns", "noise", *heads, f"Rips, {_RIPS_POINTS} points, not private"],
        rows,
    )


def _count(epsilon, n, d, n_loops, noise, seed):
    pipeline = make_pipeline(
        DTMFiltration(0.1, landmarks=PrivateLandmarks(epsilon=epsilon / 2, random_state=seed)),
        PrivateBettiNumbers(epsilon / 2, homology_dimensions=1, random_state=seed),
    )
    with warnings.catch_warnings(action="ignore"):
        return int(pipeline.fit_transform([flat_loops(n, d, n_loops, noise, seed)])[0, 0])


def _rips(n, d, n_loops, noise, seed):
    points = flat_loops(n, d, n_loops, noise, seed)[:_RIPS_POINTS]
    (loops,) = RipsPersistence(homology_dimensions=1).fit_transform([points])
    return int((loops[:, 1] - loops[:, 0] > _RIPS_LEAST).sum())


def _shapes(n, seed):
    """Rows, labels and number of clusters, by name."""
    rng = np.random.default_rng(seed)
    moons, y = make_moons(n, noise=0.05, random_state=seed)
    yield "moons, 8 columns", lifted(moons, 8, 0.05, rng), y, 2
    circles, y = make_circles(n, noise=0.03, factor=0.4, random_state=seed)
    yield "circles, 8 columns", lifted(circles, 8, 0.05, rng), y, 2
    X, y = make_blobs(n, n_features=8, centers=5, center_box=(-5, 5), random_state=seed)
    yield "5 blobs, 8 columns", X, y, 5
    X, y = make_blobs(n, n_features=10, centers=8, center_box=(-4, 4), random_state=seed)
    yield "8 blobs, 10 columns", X, y, 8
    y = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    spread = np.array([1.0, 0.5, 0.25])[y, None]
    X = 3 * rng.normal(size=(3, 8))[y] + spread * rng.normal(size=(n, 8))
    yield "unlike clusters, 8 columns", X, y, 3
    yield "one normal, 8 columns", rng.normal(size=(n, 8)), np.zeros(n), 1
    try:
        pulsar = load_table("pulsar")
    except FileNotFoundError:
        return
    yield "pulsar, 8 columns", np.asarray(pulsar.data, dtype=float), pulsar.target, 2


def _clusters(epsilons, n, n_seeds):
    rows = []
    for epsilon in epsilons:
        found = Parallel(n_jobs=-1)(delayed(_scores)(epsilon, n, s) for s in range(n_seeds))
        for name in found[0]:
            cells = np.array([scores[name] for scores in found])
            quartiles = np.quantile(cells[:, :3], [0.5, 0.25, 0], axis=0).T
            texts = [f"{a:.2f} ({b:.2f}, {c:.2f})" for a, b, c in quartiles]
            rows.append([name, f"{epsilon:g}", *texts, f"{cells[:, 3].mean():.2f}"])
    return Table(
        f"Adjusted Rand index, {n} rows, {n_seeds} seeds: median (lower quartile, worst)",
        [
            "shape",
            "epsilon",
            "DPLandmarkToMATo, number given",
            "number found",
            "DPMoGMorse, number given",
            "right numbers found",
        ],
        rows,
    )


def _scores(epsilon, n, seed):
    """Scores with the number of clusters given, found, and of a mixture; whether it was right."""
    scores = {}
    for name, X, y, k in _shapes(n, seed):
        given, found, mixture = (
            DPLandmarkToMATo(k, epsilon, random_state=seed),
            DPLandmarkToMATo(None, epsilon, random_state=seed),
            DPMoGMorse(k, epsilon=epsilon, random_state=seed),
        )
        with warnings.catch_warnings(action="ignore"):
            of = [adjusted_rand_score(y, m.fit_predict(X)) for m in (given, found, mixture)]
        scores[name] = [*of, float(found.n_clusters_ == k)]
    return scores
