"""How much of the eigenvalues of a graph is no noise: on links that their vectors have not seen.

Proof: doc/theory/graphs.md, "Reliability".
"""

from typing import Any

import numpy as np
from scipy.sparse import csr_array, triu
from scipy.sparse.linalg import LinearOperator, aslinearoperator, eigsh

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.graph._noisy import PackedAdjacency

# Least dimension of the space in which eigenvectors are sought, and their relative error.
_KRYLOV_DIMENSION, EIGENVECTOR_TOLERANCE = 60, 1e-6
# Part of the links from which vectors are learnt, and how many splits are averaged.
_LEARNT, _N_SPLITS = 0.9, 5
# Deviations of what links left out say by which an eigenvalue is no noise.
_CERTAIN = 2.0


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
    return 2 * beyond / (np.abs(values) + beyond)


def reliability_of_links(
    A: csr_array, probability: float, n_components: int, rng: np.random.RandomState
) -> tuple[FloatArray, int]:
    """Parts of eigenvalues that links left out show again, and how many are surely no noise."""
    ends = np.array(triu(A, 1).nonzero())
    splits = [_held_out(ends, A.shape[0], probability, n_components, rng) for _ in range(_N_SPLITS)]
    parts, deviations = np.mean(splits, axis=0)
    return parts, int(np.argmin(np.r_[deviations > _CERTAIN, False]))


def _held_out(
    ends: Any, n: int, probability: float, n_components: int, rng: np.random.RandomState
) -> tuple[FloatArray, FloatArray]:
    """Parts, and deviations of noise, of one split of the links."""
    learnt = rng.random_sample(ends.shape[1]) < _LEARNT
    if learnt.all() or not learnt.any():
        return np.ones(n_components), np.full(n_components, np.inf)
    upper = csr_array((np.ones(learnt.sum()), tuple(ends[:, learnt])), (n, n))
    values, vectors = leading(shifted(upper + upper.T, probability * _LEARNT), n_components, rng)
    products = vectors[ends[0]] * vectors[ends[1]]
    # A link that was learnt from is not left out. In a dense graph that matters: by so much of it
    # a sum over the links left out has the same mean, whatever was learnt.
    density = ends.shape[1] / (n * (n - 1) / 2)
    rest = 1 - _LEARNT
    known = density * rest / (1 - density * _LEARNT)
    shown = products[~learnt].sum(axis=0) + known * products[learnt].sum(axis=0)
    part = rest + known * _LEARNT
    # Flips, over all pairs of nodes.
    everywhere = (vectors.sum(axis=0) ** 2 - (vectors**2).sum(axis=0)) / 2
    shown = np.sign(values) * (shown - probability * part * everywhere)
    noise = np.sqrt((products[~learnt] ** 2).sum(axis=0))
    expected = np.abs(values) * part / _LEARNT
    tiny = np.finfo(float).tiny
    return 2 * shown / np.maximum(expected, tiny), shown / np.maximum(noise, tiny)
