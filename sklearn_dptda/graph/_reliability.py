"""How much of the eigenvalues of a graph is no noise: on links that their vectors have not seen.

Proof: doc/theory/graphs.md, "Reliability".
"""

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array, triu
from scipy.sparse.linalg import LinearOperator, aslinearoperator, eigsh

from sklearn_dptda._typing import BoolArray, FloatArray
from sklearn_dptda.graph._noisy import PackedAdjacency

# Least dimension of the space in which eigenvectors are sought, and their relative error.
_KRYLOV_DIMENSION, EIGENVECTOR_TOLERANCE = 60, 1e-6
# Part of the links from which vectors are learnt, and how many splits are averaged: one where
# links are so many that it is precise enough, and takes long.
_LEARNT, _N_SPLITS, _MANY_LINKS = 0.9, 5, 1_000_000
# Deviations of what links left out say by which an eigenvalue is no noise.
_CERTAIN = 2.0
_TINY = float(np.finfo(float).tiny)


def leading(
    operator: LinearOperator, n_components: int, rng: np.random.RandomState
) -> tuple[FloatArray, FloatArray]:
    """Largest eigenvalues by size, the first the largest, and their vectors."""
    n = operator.shape[0]
    values, vectors = eigsh(
        operator,
        n_components,
        which="LM",
        v0=rng.uniform(-1, 1, n),
        # Eigenvalues at the edge of the noise lie close together: a larger space tells them
        # apart sooner, and their statistical error is far above this one.
        ncv=min(max(2 * n_components + 1, _KRYLOV_DIMENSION), n),
        tol=EIGENVECTOR_TOLERANCE,
    )
    order = np.argsort(-np.abs(values), kind="stable")
    return values[order], vectors[:, order]


def shifted(A: csr_array | PackedAdjacency, mean: float) -> LinearOperator:
    """Adjacency less a mean off the diagonal, which is never formed."""
    A = aslinearoperator(A)

    def multiply(V: FloatArray) -> FloatArray:
        return A @ V - mean * (V.sum(axis=0) - V)

    def multiply_adjoint(V: FloatArray) -> FloatArray:
        return A.rmatmat(V) - mean * (V.sum(axis=0) - V)

    return LinearOperator(
        A.shape,
        matvec=lambda v: multiply(v.reshape(-1, 1))[:, 0],
        rmatvec=lambda v: multiply_adjoint(v.reshape(-1, 1))[:, 0],
        matmat=multiply,
        rmatmat=multiply_adjoint,
        dtype=np.float64,
    )


def reliability_in_even_noise(values: FloatArray, edge: float) -> FloatArray:
    """Parts of eigenvalues, where noise is alike in all pairs and reaches the edge."""
    beyond = np.sqrt(np.maximum(values**2 - edge**2, 0.0))
    return beyond / np.maximum(np.abs(values), _TINY)


def reliability_of_links(
    A: csr_array,
    probability: float,
    values: FloatArray,
    vectors: FloatArray,
    rng: np.random.RandomState,
) -> tuple[FloatArray, BoolArray]:
    """Parts of eigenvalues that links left out show again, and which are surely no noise."""
    links = triu(A, 1, format="csr").astype(float)
    n_splits = 1 if links.nnz > _MANY_LINKS else _N_SPLITS
    found = [_held_out(links, probability, values, vectors, rng) for _ in range(n_splits)]
    splits = [split for split in found if split is not None]
    if not splits:
        return np.ones(len(values)), np.ones(len(values), dtype=bool)
    parts, deviations = np.mean(splits, axis=0)
    return parts, deviations > _CERTAIN


def _held_out(
    links: csr_array,
    probability: float,
    values: FloatArray,
    vectors: FloatArray,
    rng: np.random.RandomState,
) -> tuple[FloatArray, FloatArray] | None:
    """Parts, and deviations of noise, of one split of the links; None where one side has none."""
    learnt = rng.random_sample(links.nnz) < _LEARNT
    if learnt.all() or not learnt.any():
        return None
    n_pairs = links.shape[0] * (links.shape[0] - 1) / 2
    first = csr_array((learnt.astype(float), links.indices, links.indptr), links.shape)
    second = links - first
    operator = shifted(first + first.T, probability * _LEARNT)
    learnt_values, u = _matched(*leading(operator, len(values), rng), values, vectors)
    # A link that was learnt from is not left out. In a dense graph that matters: by so much of it
    # a sum over the links left out has the same mean, whatever was learnt.
    density, rest = links.nnz / n_pairs, 1 - _LEARNT
    known = density * rest / (1 - density * _LEARNT)
    shown = _over_pairs(second, u) + known * _over_pairs(first, u)
    noise = np.sqrt(_over_pairs(second, u**2) + known * _over_pairs(first, u**2))
    part = rest + known * _LEARNT
    # Flips, over all pairs of nodes.
    everywhere = (u.sum(axis=0) ** 2 - (u**2).sum(axis=0)) / 2
    shown = np.sign(learnt_values) * (shown - probability * part * everywhere)
    expected = np.abs(learnt_values) * part / _LEARNT
    return 2 * shown / np.maximum(expected, _TINY), shown / np.maximum(noise, _TINY)


def _over_pairs(links: csr_array, u: FloatArray) -> FloatArray:
    """Sums of the products of each vector's two coordinates over pairs."""
    sums: FloatArray = (u * (links @ u)).sum(axis=0)
    return sums


def _matched(
    learnt_values: FloatArray, u: FloatArray, values: FloatArray, vectors: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues and vectors of a part of the links, in the order of those of all links.

    Eigenvalues of about one size change places, and must not change what they are about.
    """
    alike = (vectors.T @ u) ** 2 * (np.sign(values)[:, None] == np.sign(learnt_values))
    order = linear_sum_assignment(-alike)[1]
    return learnt_values[order], u[:, order]
