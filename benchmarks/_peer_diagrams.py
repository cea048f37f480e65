"""Comparison with peers: cubical diagrams, distances, and classification of shapes."""

from functools import partial

import numpy as np
from gudhi.sklearn import CubicalPersistence as GudhiCubicalPersistence
from gudhi.sklearn import RipsPersistence
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score

from benchmarks._ask import ask
from benchmarks._table import Table
from benchmarks._timing import Ratio, once, repeated, side_by_side, summary
from sklearn_dptda import CubicalPersistence, DiagramFeatures, DTMFiltration, PrivatePersistence
from sklearn_dptda.persistence import PersistenceProfile, wasserstein_distance

TOOLS = {"script": "_foreign_tools.py"}


def diagram_tables(quick):
    """Yield the tables of cubical diagrams, of distances and of shapes."""
    yield _cubical(quick)
    yield _distances(quick)
    yield _shapes(quick)


def _cubical(quick):
    rows, repeats = [], 1 if quick else 5
    for shape in ((31, 31),) if quick else ((101, 101), (301, 301), (41, 41, 41)):
        values = np.random.default_rng(0).random(shape)
        dimensions = list(range(len(shape)))
        ours = CubicalPersistence(dimensions)
        on_cells = GudhiCubicalPersistence(dimensions)
        on_nodes = GudhiCubicalPersistence(dimensions, input_type="vertices")
        models = [ours.fit([values]), on_nodes.fit([values]), on_cells.fit([values])]
        times = side_by_side(*(partial(m.transform, [values]) for m in models), repeats=repeats)
        same = _same(ours.transform([values])[0], on_nodes.transform([values])[0])
        giotto = ask("GIOTTO", "cubical", {"values": values}, repeats=repeats, **TOOLS)
        cells = ["-", "-", "-"]
        if giotto:
            peer = summary(giotto["seconds"])
            cells = [
                f"{peer}",
                Ratio.of(times[0], peer),
                _same(giotto["diagrams"], on_cells.transform([values])[0]),
            ]
        name = " x ".join(map(str, shape))
        ratio = Ratio.of(times[0], times[1])
        rows.append((name, *(f"{t}" for t in times), ratio, same, *cells))
    return Table(
        "Diagrams of noise on a grid, all dimensions below the grid's",
        (
            "grid",
            "ours, on nodes, s",
            "gudhi.sklearn, on nodes, s",
            "gudhi.sklearn, on cells, s",
            "ours / GUDHI on nodes",
            "same numbers",
            "giotto-tda, on cells, s",
            "ours / giotto-tda",
            "giotto-tda same as GUDHI",
        ),
        rows,
        f"Medians (range) of {repeats} calls. giotto-tda is built on GUDHI and runs in its own "
        "environment. Values on nodes and on cells belong to two different complexes, which have "
        "different diagrams.",
    )


def _same(first, second):
    """Whether the finite points are equal in single precision.

    The other points are not compared, because the libraries treat them differently.
    """
    for a, b in zip(first, second, strict=True):
        a, b = (np.asarray(d, dtype=float).reshape(-1, 2) for d in (a, b))
        a, b = (np.sort(d[np.isfinite(d[:, 1]) & (d[:, 1] > d[:, 0])], axis=0) for d in (a, b))
        if a.shape != b.shape or not np.allclose(a, b, rtol=0, atol=1e-6):
            return f"no, {len(a)} and {len(b)} points"
    return "yes"


def _distances(quick):
    rows, repeats = [], 1 if quick else 5
    for n in (20,) if quick else (50, 200, 800):
        P, Q = (np.sort(np.random.default_rng(s).random((n, 2)), axis=1) for s in (0, 1))
        own = repeated(partial(wasserstein_distance, P, Q), repeats)
        peer = ask("POT", "transport", {"P": P, "Q": Q}, repeats=repeats, **TOOLS)
        cells = ["-", "-", "-"]
        if peer:
            time = summary(peer["seconds"])
            difference = abs(peer["distance"] - wasserstein_distance(P, Q))
            cells = [f"{time}", Ratio.of(own, time), float(difference)]
        rows.append((n, f"{own}", *cells))
    return Table(
        "1-Wasserstein distance of two diagrams",
        ("points each", "ours, s", "GUDHI with POT, s", "ratio", "difference"),
        rows,
        f"Medians (range) of {repeats} calls, one after the other.",
    )


def _shapes(quick):
    """Circles, spheres and tori: giotto-tda's clouds, clouds of one size, and larger clouds."""
    n = 4 if quick else 10
    own, random = ("100, giotto-tda's", *tutorial_shapes(n)), ("100, random", *shapes(n, 100))
    rows = [*_exact_rows(*own), *_own_rows(*own, 3.5), *_exact_rows(*random)]
    rows += _own_rows(*random, 1.7)
    if not quick:
        # Clouds of the size that privacy needs, which are too large for full Rips complexes.
        rows += _own_rows("4,000, random", *shapes(n, 4000), 1.7)
    return Table(
        f"{n} circles, {n} spheres and {n} tori with noise: accuracy of a random forest",
        ("points", "features", "accuracy", "seconds for all clouds"),
        rows,
        "Five-fold cross-validation, repeated five times. Homology of dimensions 0, 1 and 2. The "
        "private lines protect one point of a cloud, and the others are not private. giotto-tda's "
        "clouds: one set of points for each class, uniform noise of width 0.5, tori twice as "
        "large. Random clouds: random points on shapes of radius 1, Gaussian noise of standard "
        "deviation 0.1.",
    )


def _exact_rows(n_points, clouds, y):
    """Features of the peers, computed from Vietoris-Rips complexes, not private."""
    peer = ask("GIOTTO", "entropies", {"clouds": clouds}, repeats=1, **TOOLS)
    if peer:
        name = "giotto-tda: Rips, entropies"
        yield n_points, *_class_row(name, peer["features"], y, *peer["seconds"])
    seconds, diagrams = once(lambda: RipsPersistence([0, 1, 2]).fit_transform(list(clouds)))
    finite = [[d[np.isfinite(d[:, 1])] for d in cloud] for cloud in diagrams]
    X = DiagramFeatures(value_range=(0.0, 2.0)).fit_transform(finite)
    yield n_points, *_class_row("gudhi.sklearn: Rips, images", X, y, seconds)


def _own_rows(n_points, clouds, y, reach):
    """Our features of the distance-to-measure in a public cube, exact and private."""
    shared = {"homology_dimensions": (0, 1, 2)}
    releases = {"exact, images": CubicalPersistence(**shared)}
    for epsilon in (1.0, 5.0):
        private = {"epsilon": epsilon, "random_state": 0, **shared}
        releases[f"diagrams, epsilon = {epsilon:g}, images"] = PrivatePersistence(**private)
        releases[f"profiles, epsilon = {epsilon:g}"] = PersistenceProfile(**private)
    dtm = DTMFiltration(0.05, bounds=(-reach, reach), resolution=21)
    seconds, functions = once(partial(dtm.fit_transform, list(clouds)))
    for name, release in releases.items():
        more, X = once(partial(release.fit_transform, functions))
        if not isinstance(release, PersistenceProfile):
            X = DiagramFeatures(value_range=(0.0, 2.0)).fit_transform(X)
        yield n_points, *_class_row(f"ours: DTM, {name}", X, y, seconds + more)


def _class_row(name, X, y, seconds):
    folds = min(5, np.bincount(y).min())
    scores = [
        cross_val_score(RandomForestClassifier(random_state=seed), np.asarray(X), y, cv=folds)
        for seed in range(5)
    ]
    return name, f"{np.mean(scores):.3f}", f"{seconds:.3g}"


def shapes(n, n_points, noise=0.1, seed=0):
    """Clouds of circles, spheres and tori of radius 1, and their classes."""
    rng = np.random.default_rng(seed)
    clouds = []
    for _ in range(n):
        t = rng.uniform(0, 2 * np.pi, n_points)
        clouds.append(np.column_stack([np.cos(t), np.sin(t), np.zeros(n_points)]))
    for _ in range(n):
        v = rng.standard_normal((n_points, 3))
        clouds.append(v / np.linalg.norm(v, axis=1)[:, None])
    for _ in range(n):
        s, t = rng.uniform(0, 2 * np.pi, (2, n_points))
        r = 1 + 0.4 * np.cos(t)
        clouds.append(np.column_stack([r * np.cos(s), r * np.sin(s), 0.4 * np.sin(t)]))
    clouds = np.array(clouds)
    return clouds + noise * rng.standard_normal(clouds.shape), np.repeat([0, 1, 2], n)


def tutorial_shapes(n, side=10, noise=0.5, seed=0):
    """Clouds as in giotto-tda's examples: the angles are integers, and only the noise is random."""
    rng = np.random.default_rng(seed)
    t = np.arange(side**2)
    circle = np.column_stack([np.sin(t), np.cos(t), np.zeros(len(t))])
    s, t = t % side, t // side
    sphere = np.column_stack([np.cos(s) * np.cos(t), np.cos(s) * np.sin(t), np.sin(s)])
    r = 2 + np.cos(s)
    torus = np.column_stack([r * np.cos(t), r * np.sin(t), np.sin(s)])
    clouds = np.repeat([circle, sphere, torus], n, axis=0)
    moved = noise * (rng.random(clouds.shape) - 0.5)
    moved[:n, :, 2] = 0.0
    return clouds + moved, np.repeat([0, 1, 2], n)
