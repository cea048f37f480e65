"""How accurate a private mechanism can be, and how accurate ours are."""

from dataclasses import dataclass, field
from typing import Literal

from numpy.typing import ArrayLike

from sklearn_dptda._docs import fill_doc
from sklearn_dptda.metric_privacy._diametric_scale import diametric_scale
from sklearn_dptda.metric_privacy._distance_matrices import check_alpha, check_pair
from sklearn_dptda.metric_privacy._entropic_scale import entropic_scale
from sklearn_dptda.metric_privacy._exponential import MetricExponentialMechanism
from sklearn_dptda.metric_privacy._finite_laws import worst_cost
from sklearn_dptda.metric_privacy._linear_program import solve
from sklearn_dptda.metric_privacy._linkage import is_ultrametric
from sklearn_dptda.metric_privacy._scale_bounds import ScaleBounds
from sklearn_dptda.metric_privacy._ultrametric import UltrametricMechanism

# Programs of more points take more than a few seconds.
_MOST_SOLVED = 40


@dataclass(frozen=True)
class AccuracyBounds:
    """Accuracy that no private mechanism beats, and that of some mechanisms.

    Attributes
    ----------
    alpha : float
        Privacy loss per unit of the distance of privacy.
    entropic, diametric : ScaleBounds
        Scales at twice the rate.
    lower : float
        No mechanism is more accurate (Theorems 3.1 and 3.2).
    optimum : float or None
        Best accuracy, by linear programming, on up to 40 points.
    attained : dict of str to float
        Accuracy of each mechanism: its mean distance from the input, for the
        input for which it is worst.
    """

    alpha: float
    entropic: ScaleBounds
    diametric: ScaleBounds
    lower: float
    optimum: float | None
    attained: dict[str, float] = field(default_factory=dict)

    @property
    def best(self) -> float:
        """Largest of what is proved: the optimum where it is known."""
        return self.lower if self.optimum is None else self.optimum

    def __str__(self):
        lines = [
            f"accuracy of private mechanisms at the rate alpha={self.alpha:g}",
            f"  {'lower bound, theorems':32} {self.lower:10.4g}",
        ]
        if self.optimum is not None:
            lines.append(f"  {'best, linear program':32} {self.optimum:10.4g}")
        for name, value in self.attained.items():
            times = f"  {value / self.best:6.2f} times" if self.best > 0 else ""
            lines.append(f"  {name:32} {value:10.4g}{times}")
        return "\n".join(lines)


@fill_doc
def accuracy_bounds(
    D1: ArrayLike,
    D2: ArrayLike | None = None,
    *,
    alpha: float = 1.0,
    optimum: bool | Literal["auto"] = "auto",
) -> AccuracyBounds:
    """How far a private mechanism is from the best one, in one table.

    Parameters
    ----------
    %(privacy_and_accuracy)s
    optimum : bool or "auto", default="auto"
        Whether to solve the linear program; ``"auto"`` on up to 40 points.

    Returns
    -------
    AccuracyBounds
        Print it.

    %(no_metric)s

    Notes
    -----
    With ``s`` the entropic scale and ``s_o`` the diametric scale at the rate
    ``2 alpha``, no mechanism is more accurate than ``s / 8`` and ``s_o / 5``.

    References
    ----------
    M. Boedihardjo, T. Strohmer, R. Vershynin, "Metric geometry of the
    privacy-utility tradeoff", Theorems 3.1, 3.2 and 4.2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda.metric_privacy import accuracy_bounds
    >>> places = np.linspace(0, 1, 21)
    >>> print(accuracy_bounds(np.abs(places[:, None] - places), alpha=4.0))
    accuracy of private mechanisms at the rate alpha=4
      lower bound, theorems               0.01807
      best, linear program                 0.1744
      weighted                             0.2147    1.23 times
      guaranteed                           0.3289    1.89 times
    """
    D1, D2 = check_pair(D1, D2)
    alpha = check_alpha(alpha)
    entropic = entropic_scale(D1, D2, alpha=2 * alpha)
    diametric = diametric_scale(D1, D2, alpha=2 * alpha)
    solved = optimum is True or (optimum == "auto" and len(D1) <= _MOST_SOLVED)
    return AccuracyBounds(
        alpha=alpha,
        entropic=entropic,
        diametric=diametric,
        lower=max(entropic.lower / 8, diametric.lower / 5),
        optimum=_solved(D1, D2, alpha) if solved else None,
        attained=_attained(D1, D2, alpha),
    )


def _solved(D1, D2, alpha):
    """Value of the linear program; None where the solver gives up."""
    try:
        return solve(D1, D2, alpha)[1]
    except RuntimeError:
        return None


def _attained(D1, D2, alpha):
    accuracies = {}
    if is_ultrametric(D1):
        accuracies["ultrametric"] = UltrametricMechanism(D1, alpha, accuracy=D2).fit().accuracy_
    for rate in ("weighted", "guaranteed"):
        mechanism = MetricExponentialMechanism(alpha, "precomputed", D1, rate=rate).fit()
        accuracies[rate] = worst_cost(mechanism.log_probability(D1), D2)
    return accuracies
