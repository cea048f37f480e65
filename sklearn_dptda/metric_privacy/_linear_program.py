"""The linear program of the most accurate private law of a small space."""

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array, hstack, vstack


def solve(D1, D2, alpha):
    """Solution of the program, as the solver leaves it, of shape (n_points, n_points), and cost.

    Minimises the largest expected distance ``D2``; each row of the solution is a law.
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
    # Where the solver that HiGHS picks gives up, another one of its own finishes.
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


def _neighbours(D):
    """Pairs without a third point between them."""
    pairs = D > 0
    slack = 1e-12 * D.max()
    for middle in range(len(D)):
        between = D[:, middle, None] + D[middle] <= D + slack
        # Of two points that nearly coincide neither is between the other and the rest.
        proper = (D[:, middle, None] > slack) & (D[middle] > slack)
        pairs &= ~(between & proper)
    return pairs | ((D == 0) & ~np.eye(len(D), dtype=bool))
