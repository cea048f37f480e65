"""Measurements of numbers that pages state: parts of the benchmarks, each of a few seconds.

A measurement returns an array of replicates by numbers.
"""

import math
from copy import deepcopy
from functools import cache, partial
from itertools import islice

import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import train_test_split

from benchmarks import (
    _clouds,
    _populations,
    _speed_cases,
    caps,
    classifiers,
    clouds,
    graphs,
    head_to_head,
    landmarks,
    peaks,
    populations,
    posterior,
    searches,
    synthetic,
)
from benchmarks._table import scores
from sklearn_dptda import (
    CubicalPersistence,
    DTMFiltration,
    PersistenceProfile,
    PrivateBettiNumbers,
    PrivatePersistence,
)
from sklearn_dptda.cluster import DPLloyd, ToMATo
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.graph import AdjacencySpectralEmbedding, EdgeFlip, make_sbm
from sklearn_dptda.model_selection import planned_loss
from sklearn_dptda.persistence import beyond_noise
from sklearn_dptda.published import PublishedPersistence, published_error_bound


@cache
def _two_circles(n, max_distance):
    """Filtrations of two circles on a grid of step 0.05, and their exact diagrams."""
    X = [make_two_circles(n, random_state=seed) for seed in range(12)]
    dtm = DTMFiltration(0.2, bounds=(-2.5, 3), resolution=111, max_distance=max_distance)
    filtrations = dtm.fit_transform(X)
    return filtrations, CubicalPersistence().fit_transform(filtrations)


def errors(cases, cap="private"):
    """Added errors of one release of each cloud, for each number of points and release."""
    found = []
    for n, release in cases:
        filtrations, exact = _two_circles(n, cap)
        private = release.fit_transform(filtrations)
        found.append([_clouds.apart(*pair) for pair in zip(exact, private, strict=True)])
    return np.transpose(found)


def published(epsilon, max_points=5):
    return PublishedPersistence(epsilon, mechanism="exact", max_points=max_points, random_state=0)


def ours(epsilon, **options):
    return PrivatePersistence(epsilon, random_state=0, **options)


def two_circles_of_nodes(seed):
    """Scores of ToMATo on a graph of two circles, at each epsilon of Figure 2."""
    y = np.repeat([0, 1], (900, 300))
    angle = np.random.default_rng(seed).uniform(0, 2 * np.pi, len(y))
    x = np.array([0.9, 0.5])[y, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    A, _ = make_sbm(np.ones(len(y), dtype=int), np.abs(x @ x.T), random_state=seed)
    embedding, found = AdjacencySpectralEmbedding(3, normalize=False), []
    for epsilon in (2.0, 1.0, 0.7, 0.5):
        noisy = EdgeFlip(epsilon, random_state=seed).fit_transform(A)
        found.append(adjusted_rand_score(y, ToMATo(2).fit_predict(embedding.fit_transform(noisy))))
    return found


def theorem_17():
    return [[published_error_bound(1.0, n, 0.2, 1.0) for n in (10**4, 10**5, 10**6)]]


def risks():
    """Advantage, true-positive rate and posterior at an epsilon of 1, for three kinds of laws."""
    releases = (PrivateBettiNumbers(1.0), PrivatePersistence(1.0), DPLloyd(2, 1.0, 1e-6, (0, 1)))
    risks = [planned_loss(each).risk(prior=0.1, fpr=0.01) for each in releases]
    return [
        [x for risk in risks for x in (risk.advantage, risk.true_positive_rate, risk.posterior)]
    ]


def loops_beyond_noise(half):
    """How many of ten normal clouds have a loop beyond noise in a box of this half width."""
    X = [np.random.default_rng(seed).normal(size=(20_000, 2)) for seed in range(10)]
    filtrations = DTMFiltration(0.1, bounds=(-half, half)).fit_transform(X)
    private = PrivatePersistence(2.0, random_state=0)
    errors = zip(private.fit_transform(filtrations), private.error_bounds_, strict=True)
    return [[sum(beyond_noise(loops, bound, dimension=1).any() for (_, loops), bound in errors)]]


def longest_loop(kind):
    """Errors of the longest loop of two circles, read off diagrams or profiles, by epsilon."""
    dtm = DTMFiltration(0.2, bounds=(-2.5, 3), max_distance=None)
    (function,) = dtm.fit_transform([make_two_circles(4000, random_state=0)])
    (exact,) = CubicalPersistence(1).fit_transform([function])
    # Each release is of its own object.
    copies, found = [deepcopy(function) for _ in range(100)], []
    for epsilon in (0.1, 0.5, 2.0):
        options = {"homology_dimensions": 1, "random_state": 0}
        if kind == "diagram":
            diagrams = PrivatePersistence(epsilon, **options).fit_transform(copies)
            lengths = [np.diff(diagram).max(initial=0.0) for diagram in diagrams]
        else:
            lengths = np.ravel(PersistenceProfile(epsilon, 1, **options).fit_transform(copies))
        found.append(np.abs(np.array(lengths) - np.diff(exact).max()))
    return np.transpose(found)


def census(method):
    X = synthetic._census(30_000, 0)
    return scores(partial(synthetic._census_errors, X), [method], [1.0], range(10))[0, 0]


def search(task, epsilon):
    """Utilities of a random candidate, the search and equal parts."""
    names = [each.name for each in searches._tasks()]
    found = scores(partial(searches._utilities, names.index(task), epsilon), range(10))
    return np.column_stack([found[:, 5:].mean(axis=1), found[:, 1], found[:, 3]])


def right_loops(columns, n_loops):
    counts = partial(landmarks._counts, 4000, (1.0, 2.0), columns, 0.08, n_loops)
    return scores(counts, range(12))[:, :2] == n_loops


def drawn_cap():
    """Errors with a fixed cap, divided by those with a drawn cap: the geometric mean."""
    errors = scores(partial(caps._errors, n_clouds=2), _clouds.FRESH, [4000], [0.2], [1, 3])
    means = errors.mean(axis=-2) + caps._NEGLIGIBLE
    return [[np.exp(np.log(means[..., 0] / means[..., 1]).mean())]]


def loops_of_clouds(n):
    """Share of the long loops that clouds show at an epsilon of 1."""
    found = scores(clouds._counts, clouds.LAWS, [n], [1.0], [0]).reshape(-1, 5).sum(axis=0)
    return [[found[1] / found[0]]]


def probable_points():
    """How many points are probable, for each that the error bound flags."""
    shapes = (*_clouds.FRESH, *_clouds.KNOWN)
    points = [point for shape in shapes for point in posterior._points(shape, 2000, 0.1, 1, 1)]
    long, stated = np.array(points)[:, 2:].T
    return [[(stated >= 0.95).sum() / long.sum()]]


@cache
def models(place):
    """Areas, pairs, columns and times of PrivateMeasure without and with a delta."""
    (case,) = islice(synthetic._cases(False), place, place + 1)
    options = {"test_size": 0.3, "random_state": 0, "stratify": case.X[:, -1]}
    train, test = train_test_split(case.X, **options)
    methods = list(synthetic._METHODS)[:2]
    return scores(partial(synthetic._of_method, case, train, test, 1.0), methods, range(9)).T


_series = cache(partial(_populations.series, 1200))


def classified(n):
    score = partial(classifiers._score, _series(), n, 1.0)
    return scores(score, (classifiers.DELTA, 0.0), range(40)).T


@cache
def _planar():
    return next(_populations.shapes(_populations.planar, 4500))


def bands(n):
    band = partial(populations._band, _planar().X, n, 1.0, ("add-remove", 1e-6))
    return scores(band, range(60))


def tests(others, n):
    rejected = partial(populations._rejected, _planar(), others, n)
    return scores(rejected, (0.5, 1.0, math.inf), range(40)).T


def nodes():
    """Scores of KMeans on positions and on normalized coordinates."""
    return scores(graphs._scores, ["10 groups, degrees vary"], [4.0], range(4))[0, 0, :, 0]


def flat_peaks(name, epsilon):
    return scores(partial(peaks._scores, 1000, name, epsilon), range(10))


def lloyd(name):
    rows = head_to_head._load(name)
    ours = partial(head_to_head._ours, rows)
    return scores(ours, (0.25, 0.5, 1.0), [rows.delta], range(10))[:, 0, :, 0].T


def lloyd_and_kmeans(name):
    """Losses of ``DPLloyd``, divided by that of k-means without privacy."""
    return lloyd(name) / min(head_to_head._plain(head_to_head._load(name), 10))


def times(cases):
    """Processor time of the first case, divided by that of the peer."""
    own, peer = _speed_cases.measured(next(getattr(_speed_cases, cases)(True)), 3)
    return [[own / peer]]
