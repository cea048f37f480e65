"""Populations for classifiers, in which a person is a cloud, a series or an image, and one row."""

from dataclasses import dataclass
from itertools import combinations_with_replacement

import gudhi
import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import load_digits

from sklearn_dptda.datasets import load_table, load_walkers, make_series
from sklearn_dptda.features import SortedLifetimes


@dataclass(frozen=True)
class Population:
    """Rows within a public box, their classes, and the mask of the test rows."""

    name: str
    X: np.ndarray
    y: np.ndarray
    test: np.ndarray
    bounds: tuple

    def training(self, n_people, seed):
        """Return the rows and classes of ``n`` random people."""
        rest = np.flatnonzero(~self.test)
        chosen = np.random.default_rng(100 + seed).permutation(rest)[:n_people]
        return self.X[chosen], self.y[chosen]


def series(n_series=1200):
    """Series with and without a period, described by the lifetimes of their delay embeddings."""
    X, y = make_series(n_series, random_state=0)
    delay = 3
    clouds = [np.column_stack([x[:-delay], x[delay:]]) for x in X]
    # Points are within a ball of three standard deviations of the series.
    clouds = [(cloud - cloud.mean(axis=0)) / (3 * cloud.std()) for cloud in clouds]
    return _tested("series, 8 lifetimes", _lifetimes(clouds, 1.0), y)


def shapes(law, n_clouds):
    """Lifetimes, counts in cells and moments of clouds, each of which is scaled separately."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, n_clouds)
    sizes = np.minimum(100 + (100 * rng.pareto(1.5, n_clouds)).astype(int), 1000)
    clouds = [standard(law(kind, n, rng)) for kind, n in zip(y, sizes, strict=True)]
    name, d = law.__name__, clouds[0].shape[1]
    yield _tested(f"{name}, {4 * d} lifetimes", _lifetimes(clouds, 0.7), y)
    bins = 8 if d == 2 else 4
    counts = [_counts(cloud, bins) for cloud in clouds]
    yield _tested(f"{name}, {bins**d} cells", np.array(counts), y)


def pixels():
    """Handwritten digits of USPS as 8 x 8 pixels, with the customary test set."""
    table = load_table("usps")
    images = np.concatenate([table.data, table.data_test]).reshape(-1, 8, 2, 8, 2)
    X = ((images.mean(axis=(2, 4)) + 1) / 2).reshape(len(images), -1)
    y = np.concatenate([table.target, table.target_test])
    test = np.arange(len(X)) >= len(table.data)
    return Population("USPS, 64 pixels", X, y, test, (0.0, 1.0))


def planar(kind, n, rng):
    """A disc, circle, figure eight or three loops, stretched, blurred and rotated."""
    X = _ring(n, rng, (1.0, 1.0, 0.55, 0.5)[kind])
    if kind == 0:
        X *= np.sqrt(rng.random(n))[:, None]
    if kind == 2:
        X[:, 0] += 0.55 * rng.choice([-1, 1], n)
    if kind == 3:
        angle = 2 * np.pi * rng.integers(0, 3, n) / 3
        X += 0.58 * np.column_stack([np.cos(angle), np.sin(angle)])
    return _blurred(X, rng, 0.10, (0.75, 1.3))


def spatial(kind, n, rng):
    """A ball, sphere, torus or two linked circles, stretched, blurred and rotated."""
    if kind <= 1:
        X = rng.standard_normal((n, 3))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        X *= rng.random(n)[:, None] ** (1 / 3) if kind == 0 else 1.0
    elif kind == 2:
        around, tube = rng.uniform(0, 2 * np.pi, (2, n))
        far = 0.8 + 0.35 * np.cos(tube)
        X = np.column_stack([far * np.cos(around), far * np.sin(around), 0.35 * np.sin(tube)])
    else:
        ring, second, flat = _ring(n, rng, 0.7), rng.random(n) < 0.5, np.zeros(n)
        one = np.column_stack([ring[:, 0] - 0.35, ring[:, 1], flat])
        other = np.column_stack([ring[:, 0] + 0.35, flat, ring[:, 1]])
        X = np.where(second[:, None], one, other)
    return _blurred(X, rng, 0.08, (0.8, 1.25))


def _ring(n, rng, radius):
    angle = rng.uniform(0, 2 * np.pi, n)
    return radius * np.column_stack([np.cos(angle), np.sin(angle)])


def _blurred(X, rng, most, stretch):
    X = X + rng.uniform(0.03, most) * rng.standard_normal(X.shape)
    turn, _ = np.linalg.qr(rng.standard_normal((X.shape[1], X.shape[1])))
    return (X * rng.uniform(*stretch, X.shape[1])) @ turn


def standard(X):
    """Centre a cloud and scale it to a root mean square of 1."""
    X = X - X.mean(axis=0)
    return X / np.sqrt((X**2).sum(axis=1).mean())


def _lifetimes(clouds, upper):
    diagrams = Parallel(n_jobs=-1)(delayed(alpha_diagrams)(cloud) for cloud in clouds)
    columns = map(list, zip(*diagrams, strict=True))
    return np.hstack([SortedLifetimes(4, upper=upper).fit_transform(each) for each in columns])


def alpha_diagrams(cloud):
    """Finite points of the alpha filtration in all dimensions, in units of radii."""
    tree = gudhi.AlphaComplex(points=cloud).create_simplex_tree()
    tree.compute_persistence()
    parts = [tree.persistence_intervals_in_dimension(q) for q in range(cloud.shape[1])]
    return [np.sqrt(part[np.isfinite(part).all(axis=1)].clip(0)).reshape(-1, 2) for part in parts]


def _counts(cloud, bins):
    reach = 2.2
    d = cloud.shape[1]
    inside = np.clip(cloud, -reach, reach)
    counts, _ = np.histogramdd(inside, bins, range=[(-reach, reach)] * d)
    return counts.ravel() / len(cloud)


def _tested(name, X, y):
    return Population(name, X, y, np.arange(len(X)) % 3 == 0, (0.0, 1.0))


def digits():
    """scikit-learn's handwritten digits, by pixels and by the topology of the ink."""
    data = load_digits()
    images = data.images / 16
    test = np.random.default_rng(0).random(len(images)) < 1 / 3
    X = images.reshape(len(images), -1)
    yield Population("digits, 64 pixels", X, data.target, test, (0.0, 1.0))
    found = np.array(Parallel(n_jobs=-1)(delayed(_heights)(image) for image in images))
    yield Population(
        f"digits, topology by height ({found.shape[1]})", found, data.target, test, (0.0, 1.0)
    )


def walkers():
    """Windows of three walking people, by moments and by lifetimes of the alpha filtration."""
    data = load_walkers(series=True, download=False)
    clouds = [standard(cloud) for cloud in np.asarray(data.data)]
    test = np.asarray(data.segment) == 0
    moments = np.array([_moments(cloud) for cloud in clouds])
    yield Population(
        f"walkers' windows, {moments.shape[1]} moments", moments, data.target, test, (-2.0, 2.0)
    )
    found = _lifetimes(clouds, 1.2)
    name = f"walkers' windows, {found.shape[1]} lifetimes"
    yield Population(name, found, data.target, test, (0.0, 1.0))


def recordings():
    """Windows of EMG recordings, by spreads of the channels and lifetimes of Rips diagrams."""
    data = load_table("emg")
    size = 100
    parts, kinds = [], []
    for kind in np.unique(data.target):
        rows = data.data[data.target == kind]
        windows = rows[: len(rows) // size * size].reshape(-1, size, rows.shape[1])
        parts += list(windows)
        kinds += [kind] * len(windows)
    y = np.array(kinds)
    # Blocks of windows are used, because neighbouring windows overlap.
    test = np.arange(len(y)) // 10 % 3 == 0
    spreads = np.log1p(np.array([part.std(axis=0) for part in parts]))
    yield Population("EMG windows, 8 log spreads", spreads, y, test, (0.0, 9.0))
    diagrams = Parallel(n_jobs=-1)(delayed(_rips)(standard(part)) for part in parts)
    columns = map(list, zip(*diagrams, strict=True))
    found = np.hstack([SortedLifetimes(4, upper=1.5).fit_transform(each) for each in columns])
    yield Population("EMG windows, 8 lifetimes", found, y, test, (0.0, 1.0))


def _rips(cloud):
    edge = 1.5
    tree = gudhi.RipsComplex(points=cloud, max_edge_length=edge).create_simplex_tree(
        max_dimension=2
    )
    tree.compute_persistence()
    parts = [tree.persistence_intervals_in_dimension(q) for q in (0, 1)]
    return [np.minimum(part, edge).reshape(-1, 2) for part in parts]


def _moments(cloud):
    powers = [c for k in (1, 2, 3) for c in combinations_with_replacement(range(3), k)]
    return [np.prod(cloud[:, list(c)], axis=1).mean() for c in powers if len(c) > 1]


def _heights(image):
    """Heights at which parts of the ink begin, join and form loops, from eight directions."""
    big = np.kron(image, np.ones((2, 2)))
    n = len(big)
    x, y = np.meshgrid(*[np.linspace(-1, 1, n)] * 2)
    features = []
    for angle in np.arange(8) * np.pi / 4:
        height = (np.cos(angle) * x + np.sin(angle) * y + 1.5) / 3
        cells = gudhi.CubicalComplex(top_dimensional_cells=np.where(big > 0.4, height, 1.0))
        cells.compute_persistence()
        parts = [cells.persistence_intervals_in_dimension(q).reshape(-1, 2) for q in (0, 1)]
        parts = [np.minimum(part, 1.0) for part in parts]
        first = parts[0][:, 0].min(initial=1.0)
        loops = parts[1][np.argsort(parts[1][:, 0] - parts[1][:, 1])]
        closes = loops[0, 0] if len(loops) else 1.0
        inner = parts[0][parts[0][:, 1] < 1.0]
        both = [SortedLifetimes(2).fit_transform([part])[0] for part in (inner, loops)]
        features += [first, closes, *both[0], *both[1]]
    return features
