"""Robustness of results if one public number, or the data, is changed.

One of these is changed at a time: bounds, components, bins, mass, cap, units, rows or epsilon.
"""

import warnings

import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from benchmarks._clouds import FRESH, KNOWN
from benchmarks._diagrams import apart, finite_parts
from benchmarks._table import Table
from benchmarks.peaks import npz_table
from sklearn_dptda import CubicalPersistence, DTMFiltration, PrivatePersistence
from sklearn_dptda.cluster import DPLloyd, DPMoGMorse, DPToMATo
from sklearn_dptda.datasets import load_table
from sklearn_dptda.preprocessing import PrivateBounds

EPSILON, DELTA = 2.0, 1e-5
# Columns whose best score is below this value are ignored, because their results are not useful.
_LEAST = 0.5
# Number of fits without noise on changed data, with different starts.
_N_WITHOUT_NOISE = 5


def tables(quick):
    """Yield the tables of this benchmark."""
    n_seeds = 2 if quick else 20
    data = dict(_data(quick))
    for name, make, moves, takes in (
        ("DPLloyd", _kmeans, _MOVES, lambda X: True),
        ("DPMoGMorse", _mixture, _MOVES | _COMPONENTS, lambda X: True),
        ("DPToMATo", _peaks, _MOVES | _BINS, lambda X: X.shape[1] == 2),
    ):
        chosen = {title: task for title, task in data.items() if takes(task[0])}
        yield _clusterings(name, make, moves, chosen, n_seeds)
    # The even square has no feature, so two circles are used in its place.
    shapes = (KNOWN[0], *(shape for shape in FRESH if shape.name != "even square"))
    yield _diagrams(shapes[:2] if quick else shapes, 300 if quick else 4000, n_seeds)


# Tables: rows, labels (-1 for noise, which is not scored), number of components of a mixture.


def _data(quick):
    n = 1000 if quick else 4000
    yield "moons", (*make_moons(n, noise=0.08, random_state=0), 8)
    yield "circles", (*make_circles(n, noise=0.05, factor=0.4, random_state=0), 16)
    if quick:
        return
    blobs = {"cluster_std": 1.0, "center_box": (-25, 25), "random_state": 4}
    yield "15 clusters", (*make_blobs(5000, centers=15, **blobs), 20)
    yield "unlike clusters", (*_unlike(5000), 10)
    yield "blobs, 8-D", (*make_blobs(n, n_features=8, centers=5, random_state=0), 8)
    try:
        pulsar, strokes = load_table("pulsar"), npz_table("cluto_t7_10k")
    except (FileNotFoundError, KeyError) as error:
        print(error)
        return
    yield "pulsar", (pulsar.data, pulsar.target, 6)
    logarithms = np.sign(pulsar.data) * np.log1p(np.abs(pulsar.data))
    yield "log pulsar", (logarithms, pulsar.target, 6)
    yield "t7", (*strokes, 20)


def _unlike(n):
    """Six normal clusters of different size, density and shape."""
    rng = np.random.default_rng(0)
    y = np.sort(rng.choice(6, n, p=[0.35, 0.25, 0.15, 0.1, 0.08, 0.07]))
    centres = np.array([[0, 0], [9, 1], [4, 8], [-6, 6], [-5, -6], [6, -7]])
    spreads = np.array([[2, 1], [0.5, 2], [1, 1], [0.7, 0.4], [1.5, 0.5], [0.4, 0.4]])
    return centres[y] + spreads[y] * rng.standard_normal((n, 2)), y


# Changes: functions that return new values of rows, labels, bounds, epsilon or options.


def _box(X):
    low, high = X.min(axis=0), X.max(axis=0)
    return low, np.where(high > low, high, low + 1)


def _wider(factors):
    def move(X, y, rng):
        low, high = _box(X)
        centre, half = (low + high) / 2, (high - low) / 2
        half = half * np.resize(factors, X.shape[1])
        return {"bounds": (centre - half, centre + half)}

    return move


def _one_wider(factor):
    return lambda X, y, rng: _wider(np.r_[factor, np.ones(X.shape[1] - 1)])(X, y, rng)


def _rotated(X, y, rng):
    low, high = _box(X)
    turn = np.linalg.qr(rng.standard_normal((X.shape[1],) * 2))[0]
    return _rows((2 * (X - low) / (high - low) - 1) @ turn, y)


def _heavy_tails(X, y, rng):
    """Move one row in fifty far away; these rows are not scored."""
    far, centre = rng.random(len(X)) < 0.02, np.median(X, axis=0)
    stretched = centre + (X - centre) * rng.standard_cauchy((len(X), 1)).clip(-1e3, 1e3)
    return _rows(np.where(far[:, None], stretched, X), np.where(far, -1, y))


def _zeros(X, y, rng):
    return _rows(np.where(rng.random(X.shape) < 0.1, 0.0, X), y)


def _third(X, y, rng):
    kept = rng.permutation(len(X))[: len(X) // 3]
    return _rows(X[kept], y[kept])


def _rows(X, y):
    return {"X": X, "y": y, "bounds": _box(X)}


_MOVES = {
    "as it is": lambda X, y, rng: {},
    "one column's bounds, 10 times as wide": _one_wider(10),
    "one column's bounds, 100 times": _one_wider(100),
    "all bounds, 3 times": _wider([3]),
    "all bounds, 10 times": _wider([10]),
    "no bounds": lambda X, y, rng: {"bounds": None},
    "rotated": _rotated,
    "a column twice": lambda X, y, rng: _rows(np.column_stack([X, X[:, 0]]), y),
    "heavy tails": _heavy_tails,
    "a tenth of the values zero": _zeros,
    "a third of the rows": _third,
    "epsilon 10": lambda X, y, rng: {"epsilon": 10.0},
    "epsilon 100": lambda X, y, rng: {"epsilon": 100.0},
}
# Changes of the data, for which the score of the same method without noise may fall as well.
_OF_DATA = {
    "rotated",
    "a column twice",
    "heavy tails",
    "a tenth of the values zero",
    "a third of the rows",
}
_COMPONENTS = {
    "components, 1.5 times": lambda X, y, rng: {"options": {"more": 1.5}},
    "components, 2 times": lambda X, y, rng: {"options": {"more": 2.0}},
}
_BINS = {
    "24 bins": lambda X, y, rng: {"options": {"n_bins": 24}},
    "64 bins": lambda X, y, rng: {"options": {"n_bins": 64}},
}


def _kmeans(n_clusters, n_components, **public):
    return DPLloyd(n_clusters, delta=DELTA, **public)


def _mixture(n_clusters, n_components, more=1.0, **public):
    return DPMoGMorse(n_clusters, round(more * n_components), delta=DELTA, **public)


def _peaks(n_clusters, n_components, **public):
    return DPToMATo(n_clusters, **public)


def _clusterings(name, make, moves, data, n_seeds):
    jobs = [(title, move, seed) for title in data for move in moves for seed in range(n_seeds)]
    jobs += [
        (title, move, -seed)
        for title in data
        for move in moves
        if move in _OF_DATA
        for seed in range(1, _N_WITHOUT_NOISE + 1)
    ]
    found = Parallel(n_jobs=-1)(
        delayed(_score)(make, moves[move], *data[title], seed) for title, move, seed in jobs
    )
    scores, without = {}, {}
    for (title, move, seed), score in zip(jobs, found, strict=True):
        (without if seed < 0 else scores).setdefault((move, title), []).append(score)
    return _cliffs(
        f"{name}: adjusted Rand index, epsilon {EPSILON:g}",
        list(moves),
        list(data),
        scores,
        f"Median of {n_seeds} seeds and the worst run, with the number of clusters given. If the "
        "data are changed, the number after the slash is that of the same method without noise.",
        without,
    )


def _score(make, move, X, y, n_components, seed):
    """Score of a fit; a negative seed means a fit without noise."""
    n_clusters = len(np.unique(y[y >= 0]))
    case = {"X": X, "y": y, "bounds": _box(X), "epsilon": EPSILON, "options": {}}
    case |= move(X, y, np.random.default_rng(abs(seed)))
    if seed < 0:
        case["epsilon"] = np.inf
    X, y = case["X"], case["y"]
    model = make(
        n_clusters,
        n_components,
        epsilon=case["epsilon"],
        bounds=case["bounds"],
        random_state=abs(seed),
        **case["options"],
    )
    with warnings.catch_warnings():
        # Warnings about clipped rows and too few peaks are expected here.
        warnings.simplefilter("ignore")
        labels = model.fit(X).predict(X)
    return adjusted_rand_score(y[y >= 0], labels[y >= 0])


# Diagrams: the score is 0 for the error of an empty diagram and 1 for the exact diagram.

_CLOUD_MOVES = {
    "as it is": {},
    "box, 3 times as wide": {"wide": 3},
    "one side, 3 times": {"wide": np.array([3, 1])},
    "no box": {"private": True},
    "m = 0.1": {"m": 0.1},
    "m = 0.3": {"m": 0.3},
    "default cap": {"max_distance": None},
    "turned by 30 degrees": {"turn": np.pi / 6, "wide": 1.2},
    "a third of the points": {"part": 3},
    "epsilon 10": {"epsilon": 10.0},
}


def _diagrams(shapes, n, n_seeds):
    jobs = [
        (shape, move, seed) for shape in shapes for move in _CLOUD_MOVES for seed in range(n_seeds)
    ]
    found = Parallel(n_jobs=-1)(
        delayed(_recovered)(shape, n, seed, **_CLOUD_MOVES[move]) for shape, move, seed in jobs
    )
    scores = {}
    for (shape, move, _), score in zip(jobs, found, strict=True):
        scores.setdefault((move, shape.name), []).append(score)
    return _cliffs(
        f"Diagrams: error relative to empty diagrams, epsilon {EPSILON:g}",
        list(_CLOUD_MOVES),
        [shape.name for shape in shapes],
        scores,
        "1 minus the ratio of the error to that of empty diagrams, at least -1, so that 1 is "
        f"perfect. Errors are sums of bottleneck distances of finite H0 and H1. {n} points, "
        f"m = 0.2, median of {n_seeds} clouds and the worst cloud. The exact diagrams have the "
        "same mass, the tight box and the default cap. Without a box, a tenth of epsilon is spent "
        "on estimating one.",
    )


def _recovered(
    shape, n, seed, *, m=0.2, wide=1, turn=0.0, part=1, epsilon=EPSILON, private=False, **options
):
    cloud = shape.cloud(n // part, 1000 + seed)
    cloud = cloud @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    bounds = shape.bounds(wide)
    if private:
        bounds = PrivateBounds(0.1 * epsilon, random_state=seed)
        epsilon = 0.9 * epsilon
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        functions = DTMFiltration(m, bounds=bounds, **options).fit_transform([cloud])
        released = PrivatePersistence(epsilon, random_state=seed).fit_transform(functions)[0]
    box = shape.bounds(1.2 if turn else 1)
    exact = DTMFiltration(m, bounds=box, max_distance=None).fit_transform([cloud])
    truth = finite_parts(CubicalPersistence().fit_transform(exact)[0])
    empty = apart([np.empty((0, 2))] * 2, truth)
    return max(1 - apart(finite_parts(released), truth) / empty, -1.0)


def _cliffs(title, moves, columns, scores, note, without=None):
    """Medians and worst runs for each change, and the deepest falls below them."""
    without = without or {}
    rows = [(move, *(_cell(scores, without, (move, c)) for c in columns)) for move in moves]
    falls = [_deepest(moves, scores, without, column) for column in columns]
    rows += [("deepest fall", *(fall for fall, _ in falls)), ("where", *(at for _, at in falls))]
    note += (
        " Deepest fall: the lowest ratio of a median to the best median of the column at epsilon "
        f"{EPSILON:g}, or to the median without noise, if this reference is above {_LEAST:g}."
    )
    return Table(title, ("change", *columns), rows, note)


def _cell(scores, without, key):
    shown = f"{np.median(scores[key]):.2f} ({min(scores[key]):.2f})"
    return shown + (f" / {np.median(without[key]):.2f}" if key in without else "")


def _deepest(moves, scores, without, column):
    """Lowest ratio of a median to its reference, and the change that causes it."""
    medians = {move: np.median(scores[move, column]) for move in moves}
    # More budget may improve a result, but must not make it worse.
    public = [m for m in moves if (m, column) not in without and not m.startswith("epsilon")]
    best = dict.fromkeys(moves, max(medians[move] for move in public))
    best |= {m: np.median(without[m, column]) for m in moves if (m, column) in without}
    ratios = {m: medians[m] / best[m] for m in moves if best[m] > _LEAST}
    if not ratios:
        return "", ""
    worst = min(ratios, key=ratios.get)
    return f"{ratios[worst]:.2f}", worst
