"""Robustness of results if one public number, or the data, is changed.

One of these is changed at a time: bounds, units, rows or epsilon.
"""

from functools import partial

import numpy as np
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from benchmarks._table import Table, scores
from benchmarks._tasks import npz_table
from sklearn_dptda.cluster import DPLloyd, DPMoGMorse, DPToMATo
from sklearn_dptda.datasets import load_table

EPSILON, DELTA = 2.0, 1e-5
# References below this value are ignored, because such results are not useful.
_LEAST = 0.5


def tables(quick):
    """Yield the tables of three clusterings.

    If the data are changed, the number after the slash is that of the same method without noise.
    """
    seeds = range(2 if quick else 20)
    data = dict(_data(quick))
    for name in ("DPLloyd", "DPMoGMorse", "DPToMATo"):
        taken = {k: task for k, task in data.items() if name != "DPToMATo" or task[0].shape[1] == 2}
        score = partial(_score, name)
        found = scores(score, list(_MOVES), list(taken.values()), seeds)
        # A negative seed is a fit without noise, from another start.
        without = scores(score, _OF_DATA, list(taken.values()), range(-1, -6, -1))
        title = f"{name}: adjusted Rand index, epsilon {EPSILON:g}"
        yield _cliffs(title, taken, found, dict(zip(_OF_DATA, without, strict=True)))


# Tables: rows, and labels (-1 for noise, which is not scored).


def _data(quick):
    n = 1000 if quick else 4000
    yield "moons", make_moons(n, noise=0.08, random_state=0)
    yield "circles", make_circles(n, noise=0.05, factor=0.4, random_state=0)
    if quick:
        return
    blobs = {"cluster_std": 1.0, "center_box": (-25, 25), "random_state": 4}
    yield "15 clusters", make_blobs(5000, centers=15, **blobs)
    yield "unlike clusters", _unlike(5000)
    yield "blobs, 8-D", make_blobs(n, n_features=8, centers=5, random_state=0)
    try:
        pulsar, strokes = load_table("pulsar"), npz_table("cluto_t7_10k")
    except (FileNotFoundError, KeyError) as error:
        print(error)
        return
    yield "pulsar", (pulsar.data, pulsar.target)
    logarithms = np.sign(pulsar.data) * np.log1p(np.abs(pulsar.data))
    yield "log pulsar", (logarithms, pulsar.target)
    yield "t7", strokes


def _unlike(n):
    """Six normal clusters of different size, density and shape."""
    rng = np.random.default_rng(0)
    y = np.sort(rng.choice(6, n, p=[0.35, 0.25, 0.15, 0.1, 0.08, 0.07]))
    centres = np.array([[0, 0], [9, 1], [4, 8], [-6, 6], [-5, -6], [6, -7]])
    spreads = np.array([[2, 1], [0.5, 2], [1, 1], [0.7, 0.4], [1.5, 0.5], [0.4, 0.4]])
    return centres[y] + spreads[y] * rng.standard_normal((n, 2)), y


# Changes: functions that return new values of rows, labels, bounds or epsilon.


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
_OF_DATA = list(_MOVES)[6:11]


def _score(name, move, task, seed):
    X, y = task
    n_clusters = len(np.unique(y[y >= 0]))
    case = {"X": X, "y": y, "bounds": _box(X), "epsilon": EPSILON}
    case |= _MOVES[move](X, y, np.random.default_rng(abs(seed)))
    public = {
        "epsilon": np.inf if seed < 0 else case["epsilon"],
        "bounds": case["bounds"],
        "random_state": abs(seed),
    }
    X, y = case["X"], case["y"]
    if name == "DPToMATo":
        model = DPToMATo(n_clusters, **public)
    elif name == "DPLloyd":
        model = DPLloyd(n_clusters, delta=DELTA, **public)
    else:
        model = DPMoGMorse(n_clusters, delta=DELTA, **public)
    labels = model.fit(X).predict(X)
    return adjusted_rand_score(y[y >= 0], labels[y >= 0])


def _cliffs(title, columns, found, without):
    """Medians and worst runs for each change, and the deepest falls below them."""
    moves, medians, worst = list(_MOVES), np.median(found, axis=2), found.min(axis=2)
    plain = {move: np.median(each, axis=1) for move, each in without.items()}
    # More budget may improve a result, but must not make it worse.
    public = [not (move in plain or move.startswith("epsilon")) for move in moves]
    best = [plain.get(move, medians[public].max(axis=0)) for move in moves]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(np.array(best) > _LEAST, medians / best, np.inf)
    rows = [
        (
            move,
            *(
                f"{medians[i, j]:.2f} ({worst[i, j]:.2f})"
                + (f" / {plain[move][j]:.2f}" if move in plain else "")
                for j in range(len(columns))
            ),
        )
        for i, move in enumerate(moves)
    ]
    falls = [(each.min(), moves[each.argmin()]) for each in ratios.T]
    rows.append(("deepest fall", *(f"{fall:.2f}, {at}" if fall < 99 else "" for fall, at in falls)))
    note = (
        f"Median of {found.shape[2]} and the worst. Deepest fall: the lowest ratio of a median to "
        "the best of the column at this epsilon, or to the median without noise, if this reference "
        f"is above {_LEAST:g}."
    )
    return Table(title, " | ".join(["change", *columns]), rows, note)
