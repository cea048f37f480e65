"""Edge-private graphs: time and memory, recovery of groups, and distances between diagrams."""

from multiprocessing import get_context

import numpy as np
from scipy.sparse import coo_array

from benchmarks._groups import group_table
from benchmarks._machine import peak_megabytes
from benchmarks._table import Table
from benchmarks._timing import once, repeated
from sklearn_dptda import bottleneck_distance
from sklearn_dptda.graph import AdjacencySpectralEmbedding, EdgeFlip, make_latent
from sklearn_dptda.persistence import dilation_dissimilarity, shift_invariant_bottleneck_distance

# Number of nodes, and epsilon.
FLIPS = ((10_000, 1.0), (10_000, 4.0), (50_000, 4.0), (50_000, 8.0))
QUICK_FLIPS = ((2000, 1.0),)
DEGREE = 20


def tables(quick):
    """Yield the tables of this benchmark."""
    yield _flips(quick)
    yield group_table(quick)
    yield _distances(quick)


def _flips(quick):
    rows = []
    for n, epsilon in QUICK_FLIPS if quick else FLIPS:
        for seed in (None, 0):
            # Each release has its own process, so that the peak memory is that of this release.
            with get_context("spawn").Pool(1) as pool:
                rows.append(pool.apply(_flip, (n, epsilon, seed)))
    return Table(
        f"EdgeFlip and embedding, mean degree {DEGREE}",
        (
            "nodes",
            "epsilon",
            "noise",
            "flips, s",
            "more memory, MB",
            "kept as",
            "kept, MB",
            "embedding, s",
        ),
        rows,
        "One call each, in a separate process. The embedding is debiased and has three components.",
    )


def _flip(n, epsilon, seed):
    A = _circle(n)
    before = peak_megabytes()
    estimator = EdgeFlip(epsilon, random_state=seed).fit(A)
    time, noisy = once(lambda: estimator.transform(A))
    more = peak_megabytes() - before
    embedding = once(lambda: AdjacencySpectralEmbedding(3, normalize=False).fit_transform(noisy))[0]
    return (
        n,
        epsilon,
        "secure" if seed is None else "seeded",
        time,
        more,
        type(noisy).__name__,
        _size(noisy) / 1e6,
        embedding,
    )


def _circle(n):
    """Random graph of a circle, in memory proportional to the number of edges.

    Each pair is kept with its probability.
    """
    rng = np.random.default_rng(0)
    X = make_latent(n, "circle", random_state=0)
    pairs = rng.integers(0, n, (2, 2 * n * DEGREE))
    pairs = pairs[:, pairs[0] < pairs[1]]
    products = (X[pairs[0]] * X[pairs[1]]).sum(axis=1)
    rows, columns = np.unique(pairs[:, rng.random(len(products)) < products], axis=1)
    upper = coo_array((np.ones(len(rows), np.float32), (rows, columns)), (n, n))
    return (upper + upper.T).tocsr()


def _size(noisy):
    if hasattr(noisy, "octets"):
        return noisy.octets.nbytes
    return noisy.data.nbytes + noisy.indices.nbytes + noisy.indptr.nbytes


def _distances(quick):
    return Table(
        "Distances between diagrams, tolerance 1e-6 of the longest bar",
        ("points", "bottleneck, s", "up to a shift, s", "up to a dilation, s"),
        [_distance_row(n) for n in ((50, 200) if quick else (50, 200, 1000))],
        "One pair of diagrams. The first has uniform births and exponential persistences. The "
        "second is the first, shifted by 1, with noise of a tenth of the mean persistence.",
    )


def _distance_row(n):
    rng = np.random.default_rng(0)
    births = rng.random(n)
    P = np.column_stack([births, births + rng.exponential(0.2, n)])
    Q = np.sort(P + 1 + rng.normal(scale=0.02, size=P.shape), axis=1)
    tol = 1e-6 * float(np.ptp(P, axis=1).max())
    functions = (
        lambda: bottleneck_distance(P, Q),
        lambda: shift_invariant_bottleneck_distance(P, Q, tol=tol),
        lambda: dilation_dissimilarity(P, Q, tol=tol),
    )
    return n, *(f"{repeated(f, 1).median:.3g}" for f in functions)
