"""Best mechanisms of small spaces, by linear programming."""

import secrets
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array, hstack, vstack

from sklearn_dptda._typing import FloatArray, RandomStateLike
from sklearn_dptda.metric_privacy._distance_matrices import check_alpha, check_pair, check_places
from sklearn_dptda.metric_privacy._exact_draws import draw, floored
from sklearn_dptda.metric_privacy._finite_laws import log_parameter, normalised, worst_cost
from sklearn_dptda.privacy import NoiseSource, PrivacyAccountant, default_accountant, spawn_seeds
from sklearn_dptda.privacy._estimator import FRESH

# Most points: programs grow with their cube.
MOST_POINTS = 60
# Below it, probabilities of a solution are noise of the solver.
_TINY = 1e-12
# Points with no larger a loss between them take the law of the first of them.
_NEAR = 1e-5


@dataclass(frozen=True)
class FiniteMechanism:
    """A mechanism on a finite public set: inputs and outputs are its points.

    Attributes
    ----------
    log_matrix : ndarray of shape (n_points, n_points)
        Logarithm of the probability of each output (column) for each input.
    alpha : float
        Privacy loss per unit of distance that it keeps.
    accuracy : float
        Mean distance of the output, for the input for which it is worst.
    optimum : float
        Accuracy of the program before the repair: no private mechanism is
        better, up to the precision of the solver.
    diameter : float
        Largest distance of privacy.
    """

    log_matrix: FloatArray
    alpha: float
    accuracy: float
    optimum: float
    diameter: float

    def __getstate__(self):
        # A cache that knew it by its pickle would replay old draws for nothing.
        return {**vars(self), FRESH: secrets.token_hex(16)}

    def __setstate__(self, state):
        vars(self).update({name: value for name, value in state.items() if name != FRESH})

    def sample(
        self,
        inputs: ArrayLike,
        *,
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
    ) -> NDArray[np.int64]:
        """Pay, and draw an output for each input.

        Parameters
        ----------
        inputs : array-like of int of shape (n_samples,)
            Numbers of points.
        accountant : PrivacyAccountant, default=None
            Charged with ``alpha`` times the diameter. None takes the accountant
            of the surrounding ``with`` block.
        random_state : int, RandomState instance, Generator or None, default=None
            None draws from the operating system's entropy.

        Returns
        -------
        ndarray of int of shape (n_samples,)

        Raises
        ------
        ValueError
            If the inputs are no numbers of points. Nothing is spent.
        """
        inputs = check_places(inputs, len(self.log_matrix))
        (seed,) = spawn_seeds(random_state, 1)
        accountant = accountant if accountant is not None else default_accountant()
        if accountant is not None:
            accountant.spend(
                self.alpha * self.diameter,
                adjacency="replace-one",
                what="a point of a finite space for each record",
                estimator="optimal_mechanism",
                parameters={"alpha": self.alpha},
            )
        return draw(self.log_matrix[inputs], NoiseSource(seed))


def privacy_parameter(M: ArrayLike, D: ArrayLike, *, log: bool = False) -> float:
    """Privacy loss per unit of distance of a finite mechanism.

    Parameters
    ----------
    M : array-like of shape (n_points, n_outputs)
        Probability of each output for each input, or its logarithm.
    D : array-like of shape (n_points, n_points)
        Distances of inputs.
    log : bool, default=False
        Whether ``M`` holds logarithms.

    Returns
    -------
    float
        ``inf`` where an output is possible for some inputs only.

    Raises
    ------
    ValueError
        If ``M`` is no matrix of probabilities, or ``D`` no metric.

    Examples
    --------
    >>> from sklearn_dptda.metric_privacy import privacy_parameter
    >>> round(privacy_parameter([[0.75, 0.25], [0.25, 0.75]], [[0, 2], [2, 0]]), 6)
    0.549306
    """
    D, _ = check_pair(D)
    logs = np.asarray(M, dtype=float)
    if not log:
        if (logs < 0).any() or np.abs(logs.sum(axis=1) - 1).max() > 1e-6:
            raise ValueError("M must hold probabilities, and each row sum to one.")
        with np.errstate(divide="ignore"):
            logs = np.log(logs)
    if logs.ndim != 2 or len(logs) != len(D) or np.isnan(logs).any():
        raise ValueError("M must have a row for each point of D.")
    return log_parameter(logs, D)


def optimal_mechanism(
    D1: ArrayLike, D2: ArrayLike | None = None, *, alpha: float = 1.0
) -> FiniteMechanism:
    """Most accurate private mechanism of a small space.

    Parameters
    ----------
    D1 : array-like of shape (n_points, n_points)
        Distances of privacy; at most 60 points.
    D2 : array-like of shape (n_points, n_points), default=None
        Distances of accuracy. None: the same.
    alpha : float, default=1.0
        Privacy loss per unit of ``D1``.

    Returns
    -------
    FiniteMechanism

    Raises
    ------
    ValueError
        If there are too many points, or a matrix is no metric.
    RuntimeError
        If the program is not solved.

    Notes
    -----
    Minimises the largest expected distance subject to
    ``M[x, y] <= exp(alpha D1[x, x']) M[x', y]``, for pairs without a point
    between them, which imply the others. A solver keeps such constraints up to
    1e-9 only, and where probabilities are smaller it breaks privacy. So its
    solution is raised to the least matrix above it that keeps them,
    ``max over x' of exp(-alpha D1[x, x']) M[x', y]``, normalised, and checked.

    References
    ----------
    Boedihardjo, Strohmer, Vershynin, Section 1; C. Dwork et al., for the
    program.

    Examples
    --------
    >>> from sklearn_dptda.metric_privacy import optimal_mechanism
    >>> round(optimal_mechanism([[0, 1], [1, 0]], alpha=1.0).accuracy, 4)
    0.2689
    """
    D1, D2 = check_pair(D1, D2)
    alpha = check_alpha(alpha)
    if len(D1) > MOST_POINTS:
        raise ValueError(f"at most {MOST_POINTS} points are allowed; got {len(D1)}.")
    part = 1e-6
    M, optimum = solve(D1, D2, alpha * (1 - part))
    # A solver's precision cannot tell apart what privacy hardly lets differ.
    M = M[(alpha * D1 <= _NEAR).argmax(axis=1)]
    # At half the rate, whatever the solution is, sums of rows are as private as their terms.
    while part < 0.6:
        logs = repaired(M, D1, alpha * (1 - part))
        if log_parameter(logs, D1) <= alpha:
            break
        part *= 2
    else:
        raise RuntimeError("the solution could not be made private.")
    logs.setflags(write=False)
    return FiniteMechanism(logs, alpha, worst_cost(logs, D2), optimum, float(D1.max()))


def repaired(M, D1, alpha):
    """Private law next to a solution: the least that is Lipschitz and not below it."""
    logs = np.log(np.maximum(M, _TINY))
    raised = np.array([(logs - alpha * row[:, None]).max(axis=0) for row in D1])
    return floored(normalised(raised))


def solve(D1, D2, alpha):
    """Solution of the linear program, as the solver leaves it.

    Returns
    -------
    ndarray of shape (n_points, n_points), float
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
        found = linprog(
            np.r_[np.zeros(n * n), 1.0],
            A_ub=A.tocsr(),
            b_ub=np.zeros(A.shape[0]),
            A_eq=hstack([sums, csr_array((n, 1))]).tocsr(),
            b_eq=np.ones(n),
            method=method,
        )
        if found.status == 0:
            break
    else:
        raise RuntimeError(f"the linear program was not solved: {found.message}")
    return found.x[:-1].reshape(n, n), float(found.x[-1])


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
