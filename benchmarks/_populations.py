"""Populations for classifiers, in which a person is a cloud, a series or an image, and one row."""

from dataclasses import dataclass
from functools import partial

import gudhi
import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import load_digits

from sklearn_dptda.datasets import load_table, make_series
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


def populations():
    """Yield populations, numbers of people, and how many seeds."""
    # With few people, scores are either near 0.5 or near 1, so medians need many seeds.
    yield series(), (60, 120, 300), 100
    for make, sizes in (
        (partial(shapes, planar, 4500), (300, 1000, 3000)),
        (partial(shapes, spatial, 1200), (300, 800)),
        (_digits, (1200,)),
        (_pixels, (1000, 7291)),
    ):
        try:
            for population in make():
                yield population, sizes, 20
        except FileNotFoundError as error:
            print(error)


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
    clouds = [_standard(law(kind, n, rng)) for kind, n in zip(y, sizes, strict=True)]
    name, d = law.__name__, clouds[0].shape[1]
    yield _tested(f"{name}, {4 * d} lifetimes", _lifetimes(clouds, 0.7), y)
    bins = 8 if d == 2 else 4
    counts = [_counts(cloud, bins) for cloud in clouds]
    yield _tested(f"{name}, {bins**d} cells", np.array(counts), y)


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


def _standard(X):
    """Centre a cloud and scale it to a root mean square of 1."""
    X = X - X.mean(axis=0)
    return X / np.sqrt((X**2).sum(axis=1).mean())


def _lifetimes(clouds, upper):
    diagrams = Parallel(n_jobs=-1)(delayed(_alpha)(cloud) for cloud in clouds)
    columns = map(list, zip(*diagrams, strict=True))
    return np.hstack([SortedLifetimes(4, upper=upper).fit_transform(each) for each in columns])


def _alpha(cloud):
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


def _pixels():
    """Handwritten digits of USPS as 8 x 8 pixels, with the customary test set."""
    table = load_table("usps")
    images = np.concatenate([table.data, table.data_test]).reshape(-1, 8, 2, 8, 2)
    X = ((images.mean(axis=(2, 4)) + 1) / 2).reshape(len(images), -1)
    y = np.concatenate([table.target, table.target_test])
    test = np.arange(len(X)) >= len(table.data)
    yield Population("USPS, 64 pixels", X, y, test, (0.0, 1.0))


def _digits():
    """scikit-learn's handwritten digits by pixels."""
    data = load_digits()
    images = data.images / 16
    test = np.random.default_rng(0).random(len(images)) < 1 / 3
    X = images.reshape(len(images), -1)
    yield Population("digits, 64 pixels", X, data.target, test, (0.0, 1.0))
