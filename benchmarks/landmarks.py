"""Private landmarks in 3 to 20 columns: loops, voids, and clusters from counts between them."""

import time
import warnings

import numpy as np
from gudhi.sklearn import CechPersistence, RipsPersistence
from joblib import Parallel, delayed
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline

from benchmarks._table import Table
from benchmarks.peaks import npz_table
from sklearn_dptda import (
    CubicalPersistence,
    DTMFiltration,
    PersistenceProfile,
    PrivateBettiNumbers,
)
from sklearn_dptda.cluster import DPLandmarkToMATo, DPMoGMorse, PrivateLandmarks
from sklearn_dptda.datasets import load_table, make_rings, make_spirals
from sklearn_dptda.decomposition import PrivatePCA

# Thresholds for loops of circles of radius 1 in exact complexes without privacy (lengths for Rips
# complexes, squared radii for alpha complexes), and the number of points of these complexes. The
# thresholds were chosen to suit the exact complexes.
_RIPS_LEAST, _ALPHA_LEAST, _EXACT_POINTS = 0.5, 0.1, 300
_MASS = 0.1


def tables(quick):
    """Yield the tables of this benchmark."""
    n_seeds = 2 if quick else 20
    yield _times((40, 200), 1 if quick else 5)
    columns, noises, epsilons = ((6,), (0.08,), (2.0,)) if quick else _CELLS
    yield _loops(columns, noises, epsilons, 1000 if quick else 4000, n_seeds)
    if not quick:
        for n in (1000, 20_000):
            yield _loops((6, 10), (0.08,), epsilons, n, n_seeds)
    yield _clusters((2.0,) if quick else (1.0, 2.0), 1000 if quick else 4000, n_seeds)
    # The following tables take longer, so they have fewer seeds.
    n_seeds = (n_seeds + 1) // 2
    columns, epsilons = ((3,), (5.0,)) if quick else ((3, 6, 10), (2.0, 5.0))
    yield _voids(columns, epsilons, 1000 if quick else 4000, n_seeds)
    yield _beside_grids((2,) if quick else (2, 3), 1000 if quick else 4000, n_seeds)
    yield _real_tables(n_seeds)


_EPSILONS = (1.0, 2.0, 5.0)
_CELLS = (3, 6, 10, 20), (0.08, 0.15), _EPSILONS


def _times(numbers, repeats):
    X = flat_loops(4000, 10, 1, 0.08, 0)
    rows = []
    for n in numbers:
        landmarks = PrivateLandmarks(n, 1.0, random_state=0).fit(X).landmarks_
        seconds = []
        for _ in range(repeats):
            start = time.perf_counter()
            functions = DTMFiltration(_MASS, landmarks=landmarks).fit_transform([X])
            CubicalPersistence([0, 1]).fit_transform(functions)
            seconds.append(time.perf_counter() - start)
        complex = functions[0].complex
        median = float(np.median(seconds))
        rows.append([n, complex.n_simplices, len(complex.places()), median, min(seconds)])
    return Table(
        "4,000 points in 10 columns: seconds for complex, function and exact diagrams",
        ["landmarks", "simplices", "places", "median", "minimum"],
        rows,
    )


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


def _loops(columns, noises, epsilons, n, n_seeds):
    names = ["disc", "one circle", "two circles"]
    heads = [f"epsilon {epsilon:g}" for epsilon in epsilons]
    rows = []
    for d in columns:
        for noise in noises:
            for n_loops, name in enumerate(names):
                tasks = [(n, d, n_loops, noise, seed) for seed in range(n_seeds)]
                exact = [np.mean([_rips(*task) == n_loops for task in tasks])]
                if d == 3:
                    exact.append(np.mean([_alpha(*task) == n_loops for task in tasks]))
                shares = []
                for epsilon in epsilons:
                    found = Parallel(n_jobs=-1)(delayed(_count)(epsilon, *task) for task in tasks)
                    shares.append(f"{np.mean(np.array(found) == n_loops):.2f}")
                texts = " / ".join(f"{share:.2f}" for share in exact)
                rows.append([name, str(d), f"{noise:g}", *shares, texts])
    return Table(
        f"Share of correct numbers of loops, {n} points, {n_seeds} clouds; half of epsilon is "
        "spent on landmarks",
        [
            "shape",
            "columns",
            "noise",
            *heads,
            f"Rips / alpha (in space), {_EXACT_POINTS} points, not private",
        ],
        rows,
    )


def _count(epsilon, n, d, n_loops, noise, seed):
    X = flat_loops(n, d, n_loops, noise, seed)
    return int(_numbers(X, epsilon, seed, 2, 1)[0])


def _numbers(X, epsilon, seed, dimension, homology, n_landmarks=40):
    landmarks = PrivateLandmarks(n_landmarks, epsilon / 2, dimension=dimension, random_state=seed)
    pipeline = make_pipeline(
        DTMFiltration(_MASS, landmarks=landmarks),
        PrivateBettiNumbers(epsilon / 2, homology_dimensions=homology, random_state=seed),
    )
    with warnings.catch_warnings(action="ignore"):
        return pipeline.fit_transform([X])[0]


def _rips(n, d, n_loops, noise, seed):
    points = flat_loops(n, d, n_loops, noise, seed)[:_EXACT_POINTS]
    (loops,) = RipsPersistence(homology_dimensions=1).fit_transform([points])
    return int((loops[:, 1] - loops[:, 0] > _RIPS_LEAST).sum())


def _alpha(n, d, n_loops, noise, seed):
    points = flat_loops(n, d, n_loops, noise, seed)[:_EXACT_POINTS]
    (loops,) = CechPersistence(homology_dimensions=1).fit_transform([points])
    return int((loops[:, 1] - loops[:, 0] > _ALPHA_LEAST).sum())


def surface(name, n, d, noise, seed):
    """A sphere or a ball of radius 1, or a torus of radii 1 and 0.45, in ``d`` columns."""
    rng = np.random.default_rng(seed)
    if name == "torus":
        turns, tube = rng.uniform(0, 2 * np.pi, (2, 4 * n))
        even = rng.random(4 * n) < (1 + 0.45 * np.cos(tube)) / 1.45
        turns, tube = turns[even][:n], tube[even][:n]
        wide = 1 + 0.45 * np.cos(tube)
        solid = np.column_stack([wide * np.cos(turns), wide * np.sin(turns), 0.45 * np.sin(tube)])
    else:
        solid = rng.normal(size=(n, 3))
        solid /= np.linalg.norm(solid, axis=1)[:, None]
        if name == "ball":
            solid *= np.cbrt(rng.random(n))[:, None]
    return lifted(solid, d, noise, rng)


def _voids(columns, epsilons, n, n_seeds):
    expected = {"ball": (0, 0), "sphere": (0, 1), "torus": (2, 1)}
    rows = []
    for d in columns:
        for name, numbers in expected.items():
            shares = []
            for epsilon in epsilons:
                found = Parallel(n_jobs=-1)(
                    delayed(_numbers)(surface(name, n, d, 0.08, s), epsilon, s, 3, (1, 2), 100)
                    for s in range(n_seeds)
                )
                right = np.array(found).astype(int) == numbers
                shares += [f"{share:.2f}" for share in right.mean(axis=0)]
            rows.append([name, d, *shares])
    return Table(
        f"Share of correct numbers of loops and of voids, {n} points, {n_seeds} clouds, 100 "
        "landmarks with tetrahedra; half of epsilon is spent on landmarks",
        [
            "shape",
            "columns",
            *(f"epsilon {e:g}, {what}" for e in epsilons for what in ("loops", "voids")),
        ],
        rows,
    )


def _beside_grids(columns, n, n_seeds):
    rows = []
    for d in columns:
        for n_loops, name in ((1, "one circle"), (2, "two circles")):
            tasks = [(n, d, n_loops, seed) for seed in range(n_seeds)]
            errors = Parallel(n_jobs=-1)(delayed(_errors)(*task) for task in tasks)
            for epsilon, medians in zip(_EPSILONS, np.median(errors, axis=0), strict=True):
                rows.append([name, d, f"{epsilon:g}", *(f"{m:.2f}" for m in medians)])
    return Table(
        f"Relative error of the persistence of the longest loop, {n} points, median of "
        f"{n_seeds} clouds",
        ["shape", "columns", "epsilon", "grid, box given", "40 landmarks"],
        rows,
        "PersistenceProfile, with all of epsilon on a grid in a public box that is 1.2 times as "
        "wide as the points, and with half of epsilon on landmarks without a public box. The exact "
        "persistence is computed on the grid without a cap and without privacy.",
    )


def _errors(n, d, n_loops, seed):
    """Errors of the longest loop on a grid and on landmarks, at each epsilon."""
    X = flat_loops(n, d, n_loops, 0.08, seed)
    low, high = X.min(axis=0), X.max(axis=0)
    box = low - 0.1 * (high - low), high + 0.1 * (high - low)
    with warnings.catch_warnings(action="ignore"):
        grid = DTMFiltration(_MASS, bounds=box).fit_transform([X])
        uncut = DTMFiltration(_MASS, bounds=box, max_distance=None).fit_transform([X])
        (loops,) = CubicalPersistence(1).fit_transform(uncut)
        truth = float((loops[:, 1] - loops[:, 0]).max())
        return [
            [
                abs(_longest(functions, share, seed) - truth) / truth
                for functions, share in (
                    (grid, epsilon),
                    (_on_landmarks(X, epsilon / 2, seed), epsilon / 2),
                )
            ]
            for epsilon in _EPSILONS
        ]


def _on_landmarks(X, epsilon, seed):
    landmarks = PrivateLandmarks(epsilon=epsilon, random_state=seed)
    return DTMFiltration(_MASS, landmarks=landmarks).fit_transform([X])


def _longest(functions, epsilon, seed):
    profile = PersistenceProfile(epsilon, homology_dimensions=1, n_longest=1, random_state=seed)
    return profile.fit_transform(functions).item()


def _people_of_tables():
    """Yield names and arrays of rows, one array for each person or its substitute.

    Tables that are not available are left out.
    """
    try:
        emg = np.asarray(load_table("emg").data, dtype=float)
        walkers = npz_table("walkers_series")[0]
        digits = np.asarray(load_table("usps").data, dtype=float)
    except (FileNotFoundError, KeyError) as error:
        print(error)
        return
    chosen = np.random.default_rng(0).permutation(len(emg) // 20)[:500]
    scale = np.quantile(np.abs(emg), 0.99, axis=0)
    yield (
        "EMG, 8 channels, stretches of 20 steps",
        [emg[20 * i : 20 * i + 20] / scale for i in chosen],
    )
    later = 12
    yield (
        "walkers, 3 axes now and 12 steps later, windows of 200 steps",
        [np.column_stack([window[:-later:10], window[later::10]]) for window in walkers],
    )
    pca = PrivatePCA(8, 1.0, bounds=(-1, 1), adjacency="replace-one", random_state=0)
    yield "USPS digits, PrivatePCA(8) at epsilon 1", list(pca.fit_transform(digits)[:, None])


def _real_tables(n_seeds):
    rows = [
        [name, len(people), people[0].shape[1], *_loops_of_people(people, n_seeds)]
        for name, people in _people_of_tables()
    ]
    return Table(
        "Real tables, epsilon 2; the privacy unit is all rows of a person, or of its substitute",
        ["table", "people", "columns", "longest loop, share of the cap", "numbers of loops"],
        rows,
        f"{n_seeds} releases each. The column of the longest loop is exact and not private: it is "
        "the median over private landmarks.",
    )


def _loops_of_people(people, n_seeds):
    lengths, numbers = [], []
    for seed in range(n_seeds):
        landmarks = PrivateLandmarks(60, 1.0, random_state=seed)
        filtration = DTMFiltration(_MASS, landmarks=landmarks, groups=True)
        with warnings.catch_warnings(action="ignore"):
            functions = filtration.fit_transform([people])
            private = PrivateBettiNumbers(1.0, homology_dimensions=1, random_state=seed)
            numbers.append(int(private.fit_transform(functions)[0, 0]))
        (loops,) = CubicalPersistence(1).fit_transform(functions)
        lengths.append((loops[:, 1] - loops[:, 0]).max(initial=0.0) / functions[0].upper)
    counts = ", ".join(f"{numbers.count(k)} times {k}" for k in sorted(set(numbers)))
    return f"{np.median(lengths):.2f}", counts


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
    X, y = make_blobs(n, n_features=8, centers=5, center_box=(-5, 5), random_state=seed)
    yield "5 blobs, 8 columns", X, y, 5
    X, y = make_blobs(n, n_features=10, centers=8, center_box=(-4, 4), random_state=seed)
    yield "8 blobs, 10 columns", X, y, 8
    y = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    spread = np.array([1.0, 0.5, 0.25])[y, None]
    X = 3 * rng.normal(size=(3, 8))[y] + spread * rng.normal(size=(n, 8))
    yield "different clusters, 8 columns", X, y, 3
    yield "one normal cluster, 8 columns", rng.normal(size=(n, 8)), np.zeros(n), 1
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
            "number estimated",
            "DPMoGMorse, number given",
            "share of correct numbers",
        ],
        rows,
    )


def _scores(epsilon, n, seed):
    """Scores with a given and an estimated number of clusters, and of a mixture, by shape.

    The last value is 1 if the estimated number was correct.
    """
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
