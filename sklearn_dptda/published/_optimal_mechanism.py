"""The most accurate private mechanism of a small space, by a linear program, and its loss.

Proof: doc/theory/metric_privacy.md, "Mechanisms on a public list".
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array, hstack, vstack

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import BoolArray, FloatArray
from sklearn_dptda.metric_privacy._finite_laws import (
    FiniteMechanism,
    floored,
    log_parameter,
    normalised,
    worst_cost,
)
from sklearn_dptda.metric_privacy._finite_metrics import ROUNDING, check_alpha, check_pair

# Largest number of points of a program, whose time grows at least with their cube.
_MAX_POINTS = 60
# Smaller probabilities of a solution are noise of the solver, which is precise to 1e-9 only.
_LEAST_PROBABILITY = 1e-12
# Points whose privacy loss between each other is at most this take the law of the first of them.
_NEGLIGIBLE_LOSS = 1e-5


@fill_doc
def optimal_mechanism(
    D1: ArrayLike, D2: ArrayLike | None = None, *, alpha: float = 1.0
) -> FiniteMechanism:
    """Most accurate private mechanism of a small space.

    Parameters
    ----------
    %(privacy_and_accuracy)s

    Returns
    -------
    FiniteMechanism
        Use its method ``sample`` to draw from it.

    Raises
    ------
    RuntimeError
        If the linear program is not solved.

    Notes
    -----
    The program minimises the largest expected distance. A solver keeps the constraints of
    privacy up to 1e-9 only, so the solution is raised until it keeps them, normalised and
    checked: :doc:`/theory/metric_privacy`.

    References
    ----------
    Boedihardjo, Strohmer, Vershynin, Definition 1.2, for what is optimal; N.
    Bordenabe, K. Chatzikokolakis, C. Palamidessi, "Optimal geo-indistinguishable
    mechanisms for location privacy", 2014, for the program.

    Examples
    --------
    >>> from sklearn_dptda.published import optimal_mechanism
    >>> round(optimal_mechanism([[0, 1], [1, 0]], alpha=1.0).accuracy, 4)
    0.2689
    """
    D1, D2 = check_pair(D1, D2)
    alpha = check_alpha(alpha)
    if len(D1) > _MAX_POINTS:
        raise ValueError(f"D1 has {len(D1)} points; at most {_MAX_POINTS} are allowed.")
    # Share of the rate that is reserved for the repair.
    part = 1e-6
    M, optimum = solve(D1, D2, alpha * (1 - part))
    # The precision of a solver cannot distinguish points between which privacy allows hardly any
    # difference.
    M = M[(alpha * D1 <= _NEGLIGIBLE_LOSS).argmax(axis=1)]
    # At half the rate, sums of rows are as private as their terms, whatever the solution is.
    while part < 0.6:
        logs = _repaired(M, D1, alpha * (1 - part))
        if log_parameter(logs, D1) <= alpha:
            break
        part *= 2
    else:
        raise RuntimeError("the solution of the linear program could not be made private.")
    logs.setflags(write=False)
    return FiniteMechanism(logs, alpha, worst_cost(logs, D2), optimum, float(D1.max()))


def _repaired(M: FloatArray, D1: FloatArray, alpha: float) -> FloatArray:
    """Private law near a solution: the least one that is Lipschitz and not below it."""
    logs = np.log(np.maximum(M, _LEAST_PROBABILITY))
    raised = np.array([(logs - alpha * row[:, None]).max(axis=0) for row in D1])
    return floored(normalised(raised))


def solve(D1: FloatArray, D2: FloatArray, alpha: float) -> tuple[FloatArray, float]:
    """Solution of the linear program, of shape (n_points, n_points), and its cost.

    Each row of the solution is a law, as the solver returns it.
    """
    n = len(D1)
    first, second = np.nonzero(_neighbours(D1))
    # exp(-alpha d) M[x, y] - M[x', y] <= 0 for each pair and each y.
    count, y = len(first), np.arange(n)
    rows = (np.arange(count)[:, None] * n + y).ravel()
    columns = [(side[:, None] * n + y).ravel() for side in (first, second)]
    factors = np.repeat(np.exp(-alpha * D1[first, second]), n)
    data = np.r_[factors, -np.ones(count * n)]
    private = coo_array(
        (data, (np.r_[rows, rows], np.r_[columns[0], columns[1]])), (count * n, n * n)
    )
    sums = csr_array(np.kron(np.eye(n), np.ones(n)))
    costs = csr_array((D2.ravel(), np.arange(n * n), np.arange(0, n * n + 1, n)), (n, n * n))
    A = vstack(
        [
            hstack([private, csr_array((count * n, 1))]),
            hstack([costs, csr_array(-np.ones((n, 1)))]),
        ]
    )
    # If the solver that HiGHS chooses gives up, another one of its solvers finishes.
    for method in ("highs", "highs-ds", "highs-ipm"):
        solution = linprog(
            np.r_[np.zeros(n * n), 1.0],
            A_ub=A.tocsr(),
            b_ub=np.zeros(A.shape[0]),
            A_eq=hstack([sums, csr_array((n, 1))]).tocsr(),
            b_eq=np.ones(n),
            method=method,
        )
        if solution.status == 0:
            return solution.x[:-1].reshape(n, n), float(solution.x[-1])
    raise RuntimeError(f"the linear program was not solved: {solution.message}")


def _neighbours(D: FloatArray) -> BoolArray:
    """Pairs without a third point between them."""
    pairs = D > 0
    slack = ROUNDING * D.max()
    for middle in range(len(D)):
        between = D[:, middle, None] + D[middle] <= D + slack
        # Of two points that nearly coincide, neither is between the other one and the rest.
        proper = (D[:, middle, None] > slack) & (D[middle] > slack)
        pairs &= ~(between & proper)
    return pairs | ((D == 0) & ~np.eye(len(D), dtype=bool))


def privacy_parameter(M: ArrayLike, D: ArrayLike, *, log: bool = False) -> float:
    """Privacy loss per unit of distance of a finite mechanism.

    Parameters
    ----------
    M : array-like of shape (n_points, n_outputs)
        Probability of each output for each input, or its logarithm.
    D : array-like of shape (n_points, n_points)
        Distances of inputs.
    log : bool, default=False
        Whether ``M`` contains logarithms.

    Returns
    -------
    float
        The least ``alpha`` of the mechanism; ``inf`` if an output is possible for
        some inputs only.

    Examples
    --------
    >>> from sklearn_dptda.published import privacy_parameter
    >>> round(privacy_parameter([[0.75, 0.25], [0.25, 0.75]], [[0, 2], [2, 0]]), 6)
    0.549306
    """
    D, _ = check_pair(D)
    logs = np.asarray(M, dtype=float)
    if not log:
        if (logs < 0).any() or np.abs(logs.sum(axis=1) - 1).max() > 1e-6:
            raise ValueError("M must contain probabilities, and each row must sum to one.")
        with np.errstate(divide="ignore"):
            logs = np.log(logs)
    if logs.ndim != 2 or len(logs) != len(D) or np.isnan(logs).any():
        raise ValueError("M must have a row for each point of D.")
    return log_parameter(logs, D)
