"""Shares of the eigenvalues of a graph that are not noise, judged by links that were left out.

Proof: doc/theory/graphs.md, "Reliability".
"""

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array, triu
from scipy.sparse.linalg import LinearOperator, aslinearoperator, eigsh

from sklearn_dptda._typing import BoolArray, FloatArray
from sklearn_dptda.graph._noisy import PackedAdjacency

# Least dimension of the Krylov space of the eigensolver, and the relative error of eigenvectors.
_KRYLOV_DIMENSION, EIGENVECTOR_TOLERANCE = 60, 1e-6
# Share of the links from which vectors are learnt, and number of splits that are averaged. Above
# the last number of links there is only one split, which is precise enough and takes long.
_LEARNT, _N_SPLITS, _MANY_LINKS = 0.9, 5, 1_000_000
# An eigenvalue is not noise if the links left out show it with this many standard deviations.
_CERTAIN = 2.0
_TINY = float(np.finfo(float).tiny)


def leading(
    operator: LinearOperator, n_components: int, rng: np.random.RandomState
) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvalues of largest absolute value, in decreasing order, and their vectors."""
    n = operator.shape[0]
    values, vectors = eigsh(
        operator,
        n_components,
        which="LM",
        v0=rng.uniform(-1, 1, n),
        # Eigenvalues at the edge of the noise are close to each other. A larger space separates
        # them faster, and their statistical error is far larger than the tolerance.
        ncv=min(max(2 * n_components + 1, _KRYLOV_DIMENSION), n),
        tol=EIGENVECTOR_TOLERANCE,
    )
    order = np.argsort(-np.abs(values), kind="stable")
    return values[order], vectors[:, order]


def shifted(A: csr_array | PackedAdjacency, mean: float) -> LinearOperator:
    """Return the operator of the adjacency minus a mean off the diagonal, without forming it."""
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
    """Return the reliable shares of eigenvalues if the noise is the same for all pairs."""
    beyond = np.sqrt(np.maximum(values**2 - edge**2, 0.0))
    return beyond / np.maximum(np.abs(values), _TINY)


def reliability_of_links(
    A: csr_array,
    probability: float,
    values: FloatArray,
    vectors: FloatArray,
    rng: np.random.RandomState,
) -> tuple[FloatArray, BoolArray]:
    """Return the shares of eigenvalues that links left out confirm, and which are not noise."""
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
    """Return shares, and numbers of standard deviations, of one split; None if a side is empty."""
    learnt = rng.random_sample(links.nnz) < _LEARNT
    if learnt.all() or not learnt.any():
        return None
    n_pairs = links.shape[0] * (links.shape[0] - 1) / 2
    first = csr_array((learnt.astype(float), links.indices, links.indptr), links.shape)
    second = links - first
    operator = shifted(first + first.T, probability * _LEARNT)
    learnt_values, u = _matched(*leading(operator, len(values), rng), values, vectors)
    # Links from which vectors are learnt are not among those left out, which matters in dense
    # graphs. Adding this share of them gives a sum whose mean does not depend on the split.
    density, rest = links.nnz / n_pairs, 1 - _LEARNT
    known = density * rest / (1 - density * _LEARNT)
    shown = _over_pairs(second, u) + known * _over_pairs(first, u)
    noise = np.sqrt(_over_pairs(second, u**2) + known * _over_pairs(first, u**2))
    part = rest + known * _LEARNT
    # The sum over all pairs of nodes, for the bias of the flips.
    everywhere = (u.sum(axis=0) ** 2 - (u**2).sum(axis=0)) / 2
    shown = np.sign(learnt_values) * (shown - probability * part * everywhere)
    expected = np.abs(learnt_values) * part / _LEARNT
    return 2 * shown / np.maximum(expected, _TINY), shown / np.maximum(noise, _TINY)


def _over_pairs(links: csr_array, u: FloatArray) -> FloatArray:
    """Return the sum over pairs of the products of the two coordinates of each vector."""
    sums: FloatArray = (u * (links @ u)).sum(axis=0)
    return sums


def _matched(
    learnt_values: FloatArray, u: FloatArray, values: FloatArray, vectors: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Sort eigenvalues and vectors of a part of the links like those of all links.

    Eigenvalues of similar size may swap places, but must still describe the same structure.
    """
    alike = (vectors.T @ u) ** 2 * (np.sign(values)[:, None] == np.sign(learnt_values))
    order = linear_sum_assignment(-alike)[1]
    return learnt_values[order], u[:, order]
