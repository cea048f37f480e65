"""Private landmarks in 3 to 20 columns: loops, and clusters from counts between them."""

from functools import partial

import numpy as np
from gudhi.sklearn import RipsPersistence
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline

from benchmarks._table import Table, median, scores
from sklearn_dptda import DTMFiltration, PrivateBettiNumbers
from sklearn_dptda.cluster import DPLandmarkToMATo, DPMoGMorse, PrivateLandmarks
from sklearn_dptda.datasets import load_table, make_rings, make_spirals

_EPSILONS = (1.0, 2.0, 5.0)
# Length of a loop of a circle of radius 1 that counts in the exact Rips complex of so many points.
_RIPS_LEAST, _EXACT_POINTS = 0.5, 300


def tables(quick):
    """Yield the tables of loops and of clusters; half of epsilon is spent on the landmarks."""
    seeds = range(2 if quick else 20)
    if quick:
        yield _loops(1000, (6,), (0.08,), (2.0,), seeds)
    else:
        yield _loops(4000, (3, 6, 10, 20), (0.08, 0.15), _EPSILONS, seeds)
        yield _loops(1000, (6, 10), (0.08,), _EPSILONS, seeds)
        yield _loops(20_000, (6, 10), (0.08,), _EPSILONS, seeds)
    yield _clusters(1000 if quick else 4000, (2.0,) if quick else (1.0, 2.0), seeds)


def _loops(n, columns, noises, epsilons, seeds):
    shapes = {"disc": 0, "one circle": 1, "two circles": 2}
    numbers = np.array(list(shapes.values()))[:, None, None]
    found = scores(partial(_counts, n, epsilons), columns, noises, shapes.values(), seeds)
    right = (found == numbers).mean(axis=3)
    return Table(
        f"Share of right numbers of loops, {n} points, {len(seeds)} clouds",
        " | ".join(
            [
                "columns",
                "noise",
                "shape",
                *(f"epsilon {e:g}" for e in epsilons),
                "Rips, not private",
            ]
        ),
        [
            (d, noise, shape, *(f"{share:.2f}" for share in right[i, j, k]))
            for i, d in enumerate(columns)
            for j, noise in enumerate(noises)
            for k, shape in enumerate(shapes)
        ],
        f"Rips complexes have {_EXACT_POINTS} points.",
    )


def _counts(n, epsilons, d, noise, n_loops, seed):
    """Numbers of loops at each epsilon, and of an exact complex."""
    X = flat_loops(n, d, n_loops, noise, seed)
    found = []
    for epsilon in epsilons:
        landmarks = PrivateLandmarks(40, epsilon / 2, random_state=seed)
        pipeline = make_pipeline(
            DTMFiltration(0.1, landmarks=landmarks),
            PrivateBettiNumbers(epsilon / 2, homology_dimensions=1, random_state=seed),
        )
        found.append(int(pipeline.fit_transform([X])[0][0]))
    (loops,) = RipsPersistence(homology_dimensions=1).fit_transform([X[:_EXACT_POINTS]])
    return *found, int((loops[:, 1] - loops[:, 0] > _RIPS_LEAST).sum())


def flat_loops(n, d, n_loops, noise, seed):
    """Circles of radius 1 in a random plane of ``d`` columns, or a disc."""
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


def _shapes(n, seed):
    """Yield names, rows, labels and numbers of clusters."""
    rng = np.random.default_rng(seed)
    moons, y = make_moons(n, noise=0.05, random_state=seed)
    yield "moons, 8 columns", lifted(moons, 8, 0.05, rng), y, 2
    circles, y = make_circles(n, noise=0.03, factor=0.4, random_state=seed)
    yield "circles, 8 columns", lifted(circles, 8, 0.05, rng), y, 2
    rings, y = make_rings(n, noise=0.08, random_state=seed)
    yield "three nested rings, 8 columns", lifted(rings, 8, 0.05, rng), y, 3
    arms, y = make_spirals(n, noise=0.02, random_state=seed)
    yield "two spiral arms, 8 columns", lifted(arms, 8, 0.02, rng), y, 2
    X, y = make_blobs(n, n_features=10, centers=8, center_box=(-4, 4), random_state=seed)
    yield "8 blobs, 10 columns", X, y, 8
    try:
        pulsar = load_table("pulsar")
    except FileNotFoundError:
        return
    yield "pulsar, 8 columns", np.asarray(pulsar.data, dtype=float), pulsar.target, 2


def _clusters(n, epsilons, seeds):
    names = [name for name, *_ in _shapes(n, 0)]
    found = scores(partial(_scores, n), epsilons, seeds)
    return Table(
        f"Adjusted Rand index, {n} rows, {len(seeds)} seeds: median (lower quartile, worst)",
        "shape | epsilon | DPLandmarkToMATo, number given | number found"
        " | DPMoGMorse, number given | right numbers found",
        [
            (name, f"{e:g}", *(median(each, 0.25, 0) for each in own[:3]), f"{own[3].mean():.2f}")
            for e, by_seed in zip(epsilons, found, strict=True)
            for name, own in zip(names, by_seed.transpose(1, 2, 0), strict=True)
        ],
    )


def _scores(n, epsilon, seed):
    """Scores with a given and an estimated number of clusters, and of a mixture, by shape.

    The last value is 1 if the estimated number was right.
    """
    rows = []
    for _, X, y, k in _shapes(n, seed):
        models = (
            DPLandmarkToMATo(k, epsilon, random_state=seed),
            found := DPLandmarkToMATo(None, epsilon, random_state=seed),
            DPMoGMorse(k, epsilon=epsilon, random_state=seed),
        )
        own = [adjusted_rand_score(y, model.fit_predict(X)) for model in models]
        rows.append([*own, float(found.n_clusters_ == k)])
    return rows
