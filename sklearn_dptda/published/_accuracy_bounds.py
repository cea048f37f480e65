"""Accuracy that no private mechanism beats, and that some mechanism attains, with constants.

Proof: doc/theory/metric_geometry.md, "No mechanism is more accurate".
Proof: doc/theory/metric_geometry.md, "Some mechanism is as accurate".
Proof: doc/theory/metric_geometry.md, "Two of the paper's questions".
Proof: doc/theory/metric_privacy.md, "Mechanisms on a public list".
"""

import math
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array, hstack, vstack

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import BoolArray, FloatArray
from sklearn_dptda.metric_privacy._entropic_scale import ScaleBounds, entropic_scale
from sklearn_dptda.metric_privacy._exponential import MetricExponentialMechanism
from sklearn_dptda.metric_privacy._finite_laws import (
    FiniteMechanism,
    floored,
    log_parameter,
    normalised,
    worst_cost,
)
from sklearn_dptda.metric_privacy._finite_metrics import (
    ROUNDING,
    Traversal,
    check_alpha,
    check_pair,
    is_ultrametric,
    rows_at_a_time,
)
from sklearn_dptda.metric_privacy._ultrametric import UltrametricMechanism
from sklearn_dptda.published._scales import diametric_scale
from sklearn_dptda.utils._distances import farthest_first

# Linear programs of more points take more than a few seconds.
_MAX_POINTS_SOLVED = 40
# Up to this number of points, all balls of accuracy are intersected, in cubic time.
_MAX_POINTS_INTERSECTED = 600
# Largest number of points of a program, whose time grows at least with their cube.
_MAX_POINTS = 60
# Smaller probabilities of a solution are noise of the solver, which is precise to 1e-9 only.
_LEAST_PROBABILITY = 1e-12
# Points whose privacy loss between each other is at most this take the law of the first of them.
_NEGLIGIBLE_LOSS = 1e-5


@dataclass(frozen=True)
class AccuracyBounds:
    """Accuracy that no private mechanism beats, and that of some mechanisms.

    :func:`accuracy_bounds` returns one. ``print`` shows it as a table.

    Attributes
    ----------
    alpha : float
        Privacy loss per unit of the distance of privacy.
    entropic : ScaleBounds
        Entropic scale at twice the rate.
    diametric : ScaleBounds
        Diametric scale at twice the rate.
    lower_bounds : dict of str to float
        Accuracy that no mechanism beats, by the entropic scale (Theorem 3.1), by
        the diametric scale (Theorem 3.2), by pairs of points, and by packings.
    upper_bounds : dict of str to float
        Accuracy that some mechanism attains: one output for all inputs; the
        exponential mechanism on a net, if both distances are one (Lemma 4.1, and
        "one metric"); the relaxed law, if accuracy is an ultrametric (Theorem 5.1);
        and the relaxed law on random clusters ("two metrics").
    optimum : float or None
        Best accuracy, by linear programming, on up to 40 points.
    attained : dict of str to float
        Accuracy of each mechanism: its mean distance from the input, for the input
        for which it is worst.

    Examples
    --------
    >>> from sklearn_dptda.published import accuracy_bounds
    >>> bounds = accuracy_bounds([[0, 1], [1, 0]], alpha=2.0)
    >>> round(bounds.lower, 4), round(bounds.optimum, 4), round(bounds.upper, 4)
    (0.1192, 0.1192, 1.0)
    """

    alpha: float
    entropic: ScaleBounds
    diametric: ScaleBounds
    lower_bounds: dict[str, float]
    upper_bounds: dict[str, float]
    optimum: float | None
    attained: dict[str, float] = field(default_factory=dict)

    @property
    def lower(self) -> float:
        """Largest of the lower bounds."""
        return max(self.lower_bounds.values())

    @property
    def upper(self) -> float:
        """Smallest of the upper bounds."""
        return min(self.upper_bounds.values())

    @property
    def best(self) -> float:
        """Largest proven lower bound: the optimum, if it is known."""
        return self.lower if self.optimum is None else self.optimum

    def __str__(self) -> str:
        rows = [(f"no mechanism below: {name}", v) for name, v in self.lower_bounds.items()]
        if self.optimum is not None:
            rows.append(("best, linear program", self.optimum))
        rows += self.attained.items()
        rows += [(f"some mechanism within: {name}", v) for name, v in self.upper_bounds.items()]
        lines = [f"accuracy of private mechanisms at the rate alpha={self.alpha:g}"]
        for name, value in rows:
            times = f"  {value / self.best:6.2f} times" if name in self.attained else ""
            lines.append(f"  {name:36} {value:10.4g}{times if self.best > 0 else ''}")
        return "\n".join(lines)


@fill_doc
def accuracy_bounds(
    D1: ArrayLike,
    D2: ArrayLike | None = None,
    *,
    alpha: float = 1.0,
    optimum: bool | Literal["auto"] = "auto",
) -> AccuracyBounds:
    """Compare private mechanisms with the best one, in one table.

    Parameters
    ----------
    %(privacy_and_accuracy)s
    optimum : bool or "auto", default="auto"
        Whether to solve the linear program of the best mechanism. ``"auto"`` solves
        it for up to 40 points.

    Returns
    -------
    AccuracyBounds
        ``print`` shows it as a table.

    Notes
    -----
    The bounds with their constants and proofs are on the page
    :doc:`/theory/metric_geometry`. The upper ones have the constants of the proofs: the
    mechanisms themselves are far more accurate.

    References
    ----------
    M. Boedihardjo, T. Strohmer, R. Vershynin, "Metric geometry of the
    privacy-utility tradeoff", Theorems 1.5 and 1.7, that is 3.1, 3.2, 4.2 and
    5.1; N. Bordenabe, K. Chatzikokolakis, C. Palamidessi, "Optimal
    geo-indistinguishable mechanisms for location privacy", 2014, for the linear
    program.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda.published import accuracy_bounds
    >>> places = np.linspace(0, 1, 21)
    >>> print(accuracy_bounds(np.abs(places[:, None] - places), alpha=4.0))
    accuracy of private mechanisms at the rate alpha=4
      no mechanism below: Theorem 3.1          0.0125
      no mechanism below: Theorem 3.2         0.01807
      no mechanism below: pairs               0.06944
      no mechanism below: packings            0.06329
      best, linear program                     0.1744
      weighted                                 0.2147    1.23 times
      guaranteed                               0.2855    1.64 times
      some mechanism within: constant             0.5
      some mechanism within: Lemma 4.1          15.39
      some mechanism within: one metric         65.57
      some mechanism within: two metrics        124.2
    """
    D1, D2 = check_pair(D1, D2)
    alpha = check_alpha(alpha)
    entropic = entropic_scale(D1, D2, alpha=2 * alpha)
    diametric = diametric_scale(D1, D2, alpha=2 * alpha)
    best = None
    if optimum is True or (optimum == "auto" and len(D1) <= _MAX_POINTS_SOLVED):
        with suppress(RuntimeError):  # where the solver gives up
            _, best = solve(D1, D2, alpha)
    return AccuracyBounds(
        alpha=alpha,
        entropic=entropic,
        diametric=diametric,
        lower_bounds={
            "Theorem 3.1": entropic.lower / 8,
            "Theorem 3.2": diametric.lower / 5,
            "pairs": by_pairs(D1, D2, alpha),
            "packings": by_packings(D1, D2, alpha),
        },
        upper_bounds=_upper_bounds(D1, D2, alpha),
        optimum=best,
        attained=_attained(D1, D2, alpha),
    )


def _attained(D1: FloatArray, D2: FloatArray, alpha: float) -> dict[str, float]:
    accuracies = {}
    if is_ultrametric(D1) or is_ultrametric(D2):
        accuracies["ultrametric"] = UltrametricMechanism(D1, alpha, accuracy=D2).fit().accuracy_
    for rate in ("weighted", "guaranteed"):
        mechanism = MetricExponentialMechanism(alpha, "precomputed", D1, rate=rate).fit()
        accuracies[rate] = worst_cost(mechanism.log_probability(D1), D2)
    return accuracies


def _upper_bounds(D1: FloatArray, D2: FloatArray, alpha: float) -> dict[str, float]:
    """Each upper bound by its name. A constant output is the trivial branch of Theorem 4.2."""
    s = entropic_scale(D1, D2, alpha=alpha / 3).upper
    s_o = diametric_scale(D1, D2, alpha=alpha / 7).upper
    bounds = {"constant": float(D2.max(axis=1).min())}
    if D1 is D2:
        bounds["Lemma 4.1"] = bound_of_net(s, alpha)
        bounds["one metric"] = 21 * s + _SHELLS * s_o
    if is_ultrametric(D2):
        # The released class is at a distance of r or more from the input with a probability of at
        # most tail * exp(-alpha r / 6), which is the sum of a geometric series.
        tail = math.exp(1 / 3) / -math.expm1(-1 / 6)
        bounds["Theorem 5.1"] = s + 7 * tail ** (6 / 7) * s_o
    bounds["two metrics"] = bound_of_clusters(s, s_o, len(Traversal(D2).net(s)))
    return bounds


# Sum of exp(k / 3 - 5 (k - 1) / 14) over shells k = 1, 2, ... of width 1 / alpha around the input:
# the number of outputs that they contain, times their probability and their distance.
_SHELLS = math.exp(5 / 14) / math.expm1(1 / 42)


def bound_of_net(s: float, alpha: float) -> float:
    """Error of the exponential mechanism on a net, at the entropic scale of ``alpha / 3``."""
    # Sums of exp(-k / 6) and of k exp(-k / 6) over k = 1, 2, ...
    sum_0 = 1 / math.expm1(1 / 6)
    sum_1 = sum_0 * (1 + sum_0)
    return 6 * s + math.exp((1 - alpha * s) / 2) * (6 * s * sum_0 + sum_1 / alpha)


def bound_of_clusters(s: float, s_o: float, n_centres: int) -> float:
    """Error of the relaxed law on random clusters, around the centres of a net at ``s``."""
    harmonic = float((1 / np.arange(1, n_centres + 1)).sum())
    return s * (1 + 2 * harmonic) + math.e * _SHELLS * s_o


def by_pairs(D1: FloatArray, D2: FloatArray, alpha: float) -> float:
    """Largest ``D2 / (1 + exp(alpha D1))``: no output is near both points of a distant pair."""
    decay = np.exp(-alpha * D1)
    return float((D2 * decay / (1 + decay)).max())


def by_packings(D1: FloatArray, D2: FloatArray, alpha: float) -> float:
    """Largest ``g (1 - 1 / sum over y of exp(-alpha D1[x, y]))`` found, for points ``x``.

    Open balls of accuracy of radius ``g`` around the points ``y``, which are nets of a
    farthest-first traversal, are disjoint.
    """
    order, radii = farthest_first(meeting_radii(D2).__getitem__, len(D2))
    sums = np.cumsum(np.exp(-alpha * D1[:, order]), axis=1).max(axis=0)
    # No bound follows from a single point, which is the first of the order.
    return float((radii[1:] * (1 - 1 / sums[1:])).max(initial=0.0))


def meeting_radii(D2: FloatArray) -> FloatArray:
    """Radius up to which the open balls around two points are disjoint.

    It is the whole distance on an ultrametric space, and at least half of it elsewhere.
    """
    if is_ultrametric(D2):
        return D2
    n = len(D2)
    if n > _MAX_POINTS_INTERSECTED:
        return D2 / 2
    part = rows_at_a_time(n * n)
    return np.concatenate(
        [np.maximum(D2[i : i + part, None], D2).min(axis=2) for i in range(0, n, part)]
    )


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
