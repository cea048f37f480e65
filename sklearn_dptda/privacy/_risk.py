"""What a release can tell about one record: advantage, hits and beliefs of the best attack.

Proof: doc/theory/risk.md, "The curve".
Proof: doc/theory/risk.md, "The attack".
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from typing import Self, TypeAlias

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr
from scipy.stats import binom

from sklearn_dptda._typing import Adjacency, FloatArray
from sklearn_dptda.privacy._parameters import quoted

# Loss of two neighbours, and delta at each loss: the largest difference of probabilities.
Curve: TypeAlias = Callable[[FloatArray], FloatArray]
# Choices that are composed one by one, in each order, and outcomes of pure parts before them. If
# there are more, choices count as pure parts.
_MOST_CHOICES, _OUTCOMES_BEFORE_CHOICES = 3, 500
# Losses beyond this one count as it. Its exponential is a finite float.
LARGEST_LOSS = 700.0
# Size of the grid of losses of a curve of choices, and number of laws of one choice that are tried.
_GRID, _LAWS = 1001, 129
# Number of outcomes of pure parts, of which more are rounded up.
_MOST_OUTCOMES = 4000
# Losses that are equal up to this share of the largest one are added up.
_SAME = 1e-12
# Losses at which the bounds of an attack are computed, before the best one is refined.
_LOSSES = 400


@dataclass(frozen=True)
class LossLaw:
    """Worst law of the privacy loss of one release, as a composition of parts.

    Parameters
    ----------
    pure : tuple of float, default=()
        Losses of parts with delta 0, of which nothing else is known.
    choices : tuple of float, default=()
        Losses of exponential mechanisms, which are the ranges of their log ratios.
    mu : float, default=0.0
        Parameter of Gaussian differential privacy of all Gaussian parts. Noise on a lattice counts
        if its scale is many steps.
    zcdp : float, default=0.0
        The zCDP parameter of parts of which nothing else is known.
    mixed : bool, default=False
        Whether a choice may depend on an earlier Gaussian part. Then, :meth:`delta` counts choices
        as pure parts.
    """

    pure: tuple[float, ...] = ()
    choices: tuple[float, ...] = ()
    mu: float = 0.0
    zcdp: float = 0.0
    mixed: bool = False

    def __post_init__(self) -> None:
        if not all(part >= 0 for part in (*self.pure, *self.choices, self.mu, self.zcdp)):
            raise ValueError("the parts of a LossLaw must be non-negative numbers.")

    def __add__(self, other: "LossLaw") -> "LossLaw":
        """Return the law of two releases together."""
        mu = math.hypot(self.mu, other.mu)
        choices = self.choices + other.choices
        # A choice of one release may depend on a Gaussian part of the other one.
        mixed = self.mixed or other.mixed or bool(mu and choices)
        zcdp = self.zcdp + other.zcdp
        return LossLaw(self.pure + other.pure, choices, mu, zcdp, mixed)

    def __mul__(self, count: int) -> "LossLaw":
        """Return the law of several equal releases together."""
        if count == 1:
            return self
        mu, mixed = math.sqrt(count) * self.mu, self.mixed or bool(self.mu and self.choices)
        return LossLaw(self.pure * count, self.choices * count, mu, self.zcdp * count, mixed)

    @property
    def rho(self) -> float:
        """The zCDP parameter."""
        squares = [sum(each * each for each in part) for part in (self.pure, self.choices)]
        return squares[0] / 2 + squares[1] / 8 + self.mu * self.mu / 2 + self.zcdp

    def delta(self, epsilon: FloatArray) -> FloatArray:
        """Return the least delta at each of several losses, which may be negative."""
        losses = np.asarray(epsilon, dtype=float)
        if self.zcdp:
            return _zcdp_delta(self.rho, losses)
        delta = np.zeros(losses.shape)
        ends, weights, curves = _composed(self)
        for curve in curves:
            delta = np.maximum(delta, (curve(losses[..., None] - ends) * weights).sum(axis=-1))
        clipped: FloatArray = np.clip(delta, 0.0, 1.0)
        return clipped


@lru_cache(maxsize=64)
def _composed(law: LossLaw) -> tuple[FloatArray, FloatArray, list[Curve]]:
    """Return losses and probabilities of the pure parts, and the curves of what follows them.

    There is one curve for each order of the choices.
    """
    choices = [min(choice, LARGEST_LOSS) for choice in law.choices if choice]
    losses, weights = _outcomes(law.pure)
    orders = sorted(set(permutations(choices))) if len(choices) <= _MOST_CHOICES else []
    if law.mixed or not orders or len(losses) > _OUTCOMES_BEFORE_CHOICES:
        orders = [()]
        losses, weights = _outcomes(law.pure + law.choices)
    curves = []
    for order in orders:
        curve = _gaussian_curve(law.mu)
        for place, choice in enumerate(order, 1):
            curve = _after_choice(curve, choice)
            if place < len(order):
                curve = _on_grid(curve, 2 * sum(order))
        curves.append(curve)
    return losses, weights, curves


def delta_of_charge(epsilon: float, delta: float, rho: float) -> Curve:
    """Return a bound of the curve of a release with an (epsilon, delta) and a zCDP guarantee."""

    def curve(losses: FloatArray) -> FloatArray:
        losses = np.asarray(losses, dtype=float)
        bound = np.ones(losses.shape)
        if math.isfinite(epsilon):
            pure = LossLaw((epsilon,)).delta(losses)
            bound = np.minimum(bound, delta + (1 - delta) * pure)
        # A tiny rho may have been rounded to zero.
        if math.isfinite(rho) and (rho > 0 or epsilon == 0):
            bound = np.minimum(bound, _zcdp_delta(rho, losses))
        return bound

    return curve


def _zcdp_delta(rho: float, losses: FloatArray) -> FloatArray:
    """Return the best of many Rényi orders, and of two bounds of the total variation."""
    if rho == 0:
        return np.maximum(-np.expm1(losses), 0.0)
    if math.isinf(rho):
        return np.ones(losses.shape)
    excess = np.geomspace(1e-3, 1e4, 400) / math.sqrt(rho)
    alpha = 1 + excess
    logs = excess * (alpha * rho - losses[..., None]) - np.log(alpha)
    logs += excess * np.log(excess / alpha)
    total_variation = min(math.sqrt(rho / 2), math.sqrt(-math.expm1(-rho)))
    bound = np.exp(np.minimum(logs.min(axis=-1), 0.0))
    return np.where(losses >= 0, np.minimum(bound, total_variation), bound)


def _gaussian_curve(mu: float) -> Curve:
    def curve(losses: FloatArray) -> FloatArray:
        # A loss beyond the range of floats has the curve of its end.
        losses = np.minimum(losses, LARGEST_LOSS)
        if math.isinf(mu):
            return np.ones(np.shape(losses))
        if mu == 0:
            none: FloatArray = np.maximum(-np.expm1(losses), 0.0)
            return none
        upper = np.exp(log_ndtr(-losses / mu + mu / 2))
        delta: FloatArray = upper - np.exp(losses + log_ndtr(-losses / mu - mu / 2))
        return np.maximum(delta, 0.0)

    return curve


def _after_choice(curve: Curve, reach: float) -> Curve:
    """Return the curve of a choice and what follows it, for the worst choice with two outcomes.

    The log ratio of a choice is ``high`` or ``high - reach``, and ``exp`` of minus the log ratio
    has the mean 1.
    """

    def at(high: FloatArray, losses: FloatArray) -> FloatArray:
        likely = np.expm1(high - reach) / math.expm1(-reach)
        first, second = curve(losses - high), curve(losses - high + reach)
        mixed: FloatArray = likely * first + (1 - likely) * second
        return mixed

    def worst(losses: FloatArray) -> FloatArray:
        losses, step = np.asarray(losses, dtype=float), reach / (_LAWS - 1)
        best, value = np.zeros(losses.shape), np.full(losses.shape, -np.inf)
        # Without parts that follow, the maximum is in the middle.
        middle = np.clip((losses + reach) / 2, 0.0, reach)
        for high in [middle, *np.linspace(0.0, reach, _LAWS)]:
            tried = at(np.broadcast_to(high, losses.shape), losses)
            best, value = np.where(tried > value, high, best), np.maximum(tried, value)
        # The maximum is between the neighbours of the best one: golden sections.
        low, high = np.maximum(best - step, 0.0), np.minimum(best + step, reach)
        ratio = (math.sqrt(5) - 1) / 2
        for _ in range(25):
            left, right = high - ratio * (high - low), low + ratio * (high - low)
            is_left = at(left, losses) > at(right, losses)
            low, high = np.where(is_left, low, left), np.where(is_left, right, high)
        return np.maximum(value, at((low + high) / 2, losses))

    return worst


def _on_grid(curve: Curve, reach: float) -> Curve:
    """Return an upper bound of a curve by straight lines, as it is convex in ``exp(loss)``."""
    ends = np.linspace(-reach - 1, reach + 1, _GRID)
    values = curve(ends)

    def interpolated(losses: FloatArray) -> FloatArray:
        i = np.clip(np.searchsorted(ends, losses) - 1, 0, _GRID - 2)
        share = np.expm1(losses - ends[i]) / np.expm1(ends[i + 1] - ends[i])
        inside = values[i] + np.clip(share, 0.0, 1.0) * (values[i + 1] - values[i])
        bound: FloatArray = np.where(losses < ends[0], 1.0, inside)
        return bound

    return interpolated


def _outcomes(pure: tuple[float, ...]) -> tuple[FloatArray, FloatArray]:
    """Return the losses and probabilities of several randomized responses together."""
    losses, weights = np.zeros(1), np.ones(1)
    for epsilon, count in sorted(Counter(pure).items()):
        loss = min(epsilon, LARGEST_LOSS)
        lies = np.arange(count + 1)
        each = binom.pmf(lies, count, 1 / (1 + math.exp(loss)))
        losses = np.add.outer(losses, loss * (count - 2 * lies)).ravel()
        weights = np.multiply.outer(weights, each).ravel()
        order = np.argsort(losses)
        losses, weights = losses[order], weights[order]
        new = np.append(True, np.diff(losses) > _SAME * np.abs(losses).max())
        losses = losses[new]
        weights = np.bincount(np.cumsum(new) - 1, weights).astype(float)
        if len(losses) > _MOST_OUTCOMES:
            # A larger loss is an upper bound.
            ends = np.linspace(losses[0], losses[-1], _MOST_OUTCOMES // 2)
            weights = np.bincount(np.searchsorted(ends, losses), weights, len(ends)).astype(float)
            losses = ends
    return losses, weights


@dataclass(frozen=True)
class PrivacyRisk:
    """What anyone can find out about one record who sees a release and knows all other records.

    ``risk()`` of a guarantee, of planned losses and of an accountant makes it. It prints as a
    short text. "One record" is the privacy unit of the guarantee.

    Attributes
    ----------
    advantage : float
        Largest difference of two rates: that of the accusations against a record that is there,
        and that against one that is not. 0 is guessing, and 1 is certainty.
    true_positive_rate : float
        Largest rate of accusations against a record that is there, if the rate against others is
        ``fpr``.
    posterior : float
        Probability that such an accusation is right, if it was right with probability ``prior``
        before the release.
    prior : float
        The prior probability.
    fpr : float
        The rate of false accusations: the share of those who are accused, of all that are not
        there.
    adjacency : {"replace-one", "add-remove"}
        What an attack tries to find out. Under ``"add-remove"``, whether a record is there.
        Under ``"replace-one"``, which of two values it has. This includes the former, but not the
        other way round: a release that is private under ``"add-remove"`` may tell more about the
        value of a record that is known to be there.

    Notes
    -----
    The numbers bound every attack. They are exact for one Gaussian or exponential mechanism, and
    for randomized response. For compositions and all other releases they are upper bounds. They
    hold for noise whose seed is unknown. ``posterior`` is for attacks with the given rate of false
    accusations. With a positive delta, attacks that accuse fewer can be more certain.

    References
    ----------
    B. Kulynych, J. F. Gomez, G. Kaissis, F. du Pin Calmon, C. Troncoso, "Attack-aware noise
    calibration for differential privacy", NeurIPS 2024.

    Examples
    --------
    >>> from sklearn_dptda import PrivatePersistence
    >>> from sklearn_dptda.model_selection import planned_loss
    >>> risk = planned_loss(PrivatePersistence(1.0)).risk()
    >>> round(risk.advantage, 3), round(risk.true_positive_rate, 3)
    (0.245, 0.027)
    """

    advantage: float
    true_positive_rate: float
    posterior: float
    prior: float = 0.5
    fpr: float = 0.01
    adjacency: Adjacency = "replace-one"

    @classmethod
    def of(cls, curve: Curve, prior: float, fpr: float, adjacency: Adjacency) -> Self:
        """Return the risk of a release with this curve of losses and deltas."""
        for name, value in (("prior", prior), ("fpr", fpr)):
            if not 0 < value < 1:
                raise ValueError(f"{name} must be between 0 and 1; got {quoted(value)}.")
        hits = _true_positive_rate(curve, float(fpr))
        right, wrong = prior * hits, (1 - prior) * fpr
        posterior = right / (right + wrong)
        return cls(advantage_of(curve), hits, posterior, float(prior), float(fpr), adjacency)

    def __str__(self) -> str:
        accused, found, before, after = map(
            rounded_up, (self.fpr, self.true_positive_rate, self.prior, self.posterior)
        )
        return (
            f"{sentence_of(self.advantage, self.adjacency)} If it accuses a share {accused} of "
            f"those who are not there, it finds at most a share {found} of those who are, and an "
            f"accusation that was right with probability {before} becomes one of {after} at most."
        )


def sentence_of(advantage: float, adjacency: Adjacency, people: bool = False) -> str:
    """Say what an attack on one record, or on all records of a person, gains."""
    what = {"replace-one": "which of two values it has", "add-remove": "whether it is there"}
    if people:
        what = {
            "replace-one": "which of two sets of records is theirs",
            "add-remove": "whether they are there",
        }
    return (
        f"An attack on one {'person' if people else 'record'}, by someone who knows all others, "
        f"finds out {what[adjacency]} with an advantage of at most {rounded_up(advantage)} over "
        "guessing."
    )


def advantage_of(curve: Curve) -> float:
    """Return the largest difference of the rates of right and false accusations."""
    return float(curve(np.zeros(1))[0])


def _true_positive_rate(curve: Curve, fpr: float) -> float:
    """Return the largest power of a test of this level, by the tangents of its trade-off curve."""

    def power(losses: FloatArray) -> FloatArray:
        delta, ratio = curve(losses), np.exp(np.minimum(losses, LARGEST_LOSS))
        # A tangent of the curve, and its mirror image.
        bound: FloatArray = np.minimum(delta + ratio * fpr, 1 - (1 - delta - fpr) / ratio)
        return np.minimum(bound, 1.0)

    # Any loss gives a valid bound, so an approximate minimum suffices.
    losses = np.append(0.0, np.geomspace(1e-4, 50.0, _LOSSES))
    values = power(losses)
    best = int(values.argmin())
    near = losses[max(best - 1, 0)], losses[min(best + 1, _LOSSES)]
    found = minimize_scalar(
        lambda loss: float(power(np.array([loss]))[0]),
        bounds=near,
        method="bounded",
        options={"xatol": 1e-12},
    )
    return max(fpr, min(float(values[best]), float(found.fun)))


def rounded_up(risk: float) -> str:
    """Write a risk with two digits, which are at least as large."""
    if risk <= 0 or risk > 1 - 1e-12:
        return f"{max(risk, 0.0):.2g}"
    digits = min(1 - math.floor(math.log10(risk)), 300)
    return f"{math.ceil(risk * 10.0**digits * (1 - 1e-12)) / 10.0**digits:.2g}"
