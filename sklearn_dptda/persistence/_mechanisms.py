"""The mechanisms of :class:`PrivatePersistence`, which turn exact diagrams into private ones.

Proof: doc/theory/exact_sampler.md, "The law".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import chain, islice
from math import comb, perm
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from sklearn_dptda._typing import FloatArray, IntArray
from sklearn_dptda.persistence._exact_sampler import (
    BaseMeasure,
    BirthBall,
    DecayTable,
    DiagramBall,
    ExactSampler,
    Point,
    decay_table,
)
from sklearn_dptda.privacy import NoiseSource
from sklearn_dptda.privacy._parameters import quoted

BASE_MEASURES = ("uniform", "spike-slab", "poisson")
# Share of epsilon that is spent on the share of clipped points, if it is released.
CLIPPED_SHARE = 0.05
# Least number of grid steps per entropic scale of one point of a diagram. Finer grids are slower,
# and no private mechanism is accurate enough to benefit from them.
STEPS_PER_SCALE = 8
# Least and largest number of grid steps from zero to the upper bound. The limits are for speed.
MIN_GRID_SIZE, MAX_GRID_SIZE = 64, 2**16
# The step is increased by this factor, which covers the rounding errors between a value and its
# grid index.
STEP_PADDING = 1 + 2.0**-30
# From this loss over the whole range on, features are expected and smaller caps may be drawn. Below
# it, births are expected to be early, with this rate of decay.
LOSS_OF_FEATURES, _BIRTH_DECAY = 160, 5
# Number of points that the automatic base measure expects. It is the loss divided by the first
# number, up to the given share of the slots. Below LOSS_OF_FEATURES it is _FEW_POINTS, and below
# _LITTLE_LOSS it is _LEAST_POINTS.
# Proof of the form, and the measurement of the constants: doc/theory/exact_sampler.md, "The law".
_LOSS_OF_POINT, _MAX_FILLED_SHARE = 400, 0.2
_LITTLE_LOSS, _LEAST_POINTS, _FEW_POINTS = 40, 0.02, 0.05


def mechanism_of(private: BaseEstimator, dimensions: Sequence[Any]) -> Any:
    """Return the mechanism that draws the diagrams of an estimator, or None if they are exact."""
    return None if math.isinf(private.epsilon) else private._mechanism(len(dimensions))


@dataclass(frozen=True)
class ExactMechanism:
    """Exponential mechanism of the bottleneck distance, drawn exactly.

    One draw has a privacy loss of ``rate``. With ``joint``, one draw serves all dimensions, by the
    largest of their distances; otherwise, each dimension has its own draw. The other fields define
    the base measure.
    """

    rate: float
    joint: bool
    max_points: int
    base_measure: str = "spike-slab"
    spike: float | str = "auto"
    mean_points: float = 2.0
    linear: bool = False

    def release(
        self,
        diagrams: Sequence[FloatArray],
        dimensions: Sequence[int],
        sensitivity: float,
        upper: float,
        seed: Any,
    ) -> list[FloatArray]:
        """Draw private diagrams, given exact ones; ``sensitivity`` and ``upper`` are public."""
        return self.sampler(diagrams, dimensions, sensitivity, upper)(seed)

    def sampler(
        self,
        diagrams: Sequence[FloatArray],
        dimensions: Sequence[int],
        sensitivity: float,
        upper: float,
    ) -> Callable[[Any], list[FloatArray]]:
        """Return a function that draws for a seed. The preparations take longer than a draw."""
        law = self.prepare(sensitivity, upper)
        balls = [balls_of(diagram, q, law) for diagram, q in zip(diagrams, dimensions, strict=True)]
        common = [[ball for group in balls for ball in group]] if self.joint else balls
        samplers = [ExactSampler(group, law.table) for group in common]

        def draw(seed: Any) -> list[FloatArray]:
            source = NoiseSource(seed)
            parts = chain.from_iterable(
                drawn_diagrams(sampler, law.grid, source) for sampler in samplers
            )
            return [
                law.grid.values(chain.from_iterable(islice(parts, len(group)))) for group in balls
            ]

        return draw

    def check(self, sensitivity: float, upper: float) -> None:
        """Raise ValueError if these public numbers exceed the range of floats."""
        try:
            self.prepare(sensitivity, upper)
        except (OverflowError, ZeroDivisionError):
            raise too_far_apart(sensitivity, upper) from None

    def prepare(self, sensitivity: float, upper: float) -> LawOfDraw:
        """Return the inputs of a draw other than the diagram: public, and equal for neighbours."""
        grid = make_grid(sensitivity, upper, self.rate)
        per_step = Fraction(self.rate) / (2 * grid.sensitivity)
        # Births can be grid.size apart. The last level must contain every diagram, because
        # otherwise the support would depend on the data.
        table = decay_table(per_step.numerator, per_step.denominator, grid.size + 1)
        spike, loss = cast(float, self.spike), self.loss(sensitivity, upper)
        if self.spike == "auto":
            spike = spike_of_range(loss, self.max_points)
        measure = make_base_measure(
            self.base_measure,
            grid.size,
            self.max_points,
            spike=spike,
            mean=self.mean_points,
            linear=self.linear,
        )
        return LawOfDraw(grid, table, measure, 0 if loss >= LOSS_OF_FEATURES else _BIRTH_DECAY)

    def loss(self, sensitivity: float, upper: float) -> float:
        """Return the privacy loss over the whole range of the values, on which the law depends."""
        return self.rate * upper / sensitivity


def drawn_diagrams(
    sampler: ExactSampler, grid: DiagramGrid, source: NoiseSource
) -> list[list[Point]]:
    """Draw one list of points per ball of a sampler, whose balls move by at most a sensitivity."""
    return source.cross(
        sampler.balls,
        lambda _: sampler.draw(source),
        metric=balls_apart,
        sensitivity=grid.sensitivity,
        # A level and the sum of all weights change by as much.
        rate=2 * sampler.table.rate,
        law="range",
    )


def balls_apart(balls: Sequence[Any], others: Sequence[Any]) -> float:
    """Return the largest difference of the levels of two sequences of corresponding balls."""
    return max(ball.apart(other) for ball, other in zip(balls, others, strict=True))


def too_far_apart(sensitivity: float, upper: float) -> ValueError:
    """Return the error for public numbers whose ratio exceeds the range of floats."""
    return ValueError(
        f"sensitivity={quoted(sensitivity)} and upper={quoted(upper)} are too far apart for "
        "floating-point numbers."
    )


@dataclass(frozen=True)
class DiagramGrid:
    """Coordinates ``0, step, ..., size * step`` of births and deaths, up to the bound ``upper``.

    Diagrams of neighbours are at most ``sensitivity`` steps apart; ``upper`` is the death of the
    essential component.
    """

    step: float
    size: int
    sensitivity: int
    upper: float

    def integers(self, diagram: ArrayLike) -> IntArray:
        """Round a diagram to the grid, and drop points on the diagonal.

        Rounding is monotone, so a change of at most ``sensitivity`` steps remains one: rounding
        costs no privacy.
        """
        rounded = self.rounded(np.asarray(diagram, dtype=float).reshape(-1, 2)).astype(np.int64)
        return rounded[rounded[:, 1] > rounded[:, 0]]

    def rounded(self, values: FloatArray) -> FloatArray:
        """Return the nearest grid positions, in whole steps."""
        return np.clip(np.floor(values / self.step + 0.5), 0, self.size)

    def values(self, points: Iterable[Point]) -> FloatArray:
        """Convert grid points to a sorted diagram without points of zero persistence."""
        diagram = np.array(sorted(points), dtype=float).reshape(-1, 2) * self.step
        diagram = np.minimum(diagram, self.upper)
        return diagram[diagram[:, 1] > diagram[:, 0]]


class LawOfDraw(NamedTuple):
    """Grid, weights of the levels, and base measures of one diagram. All of them are public."""

    grid: DiagramGrid
    table: DecayTable
    measure: BaseMeasure
    birth_decay: int


def make_grid(sensitivity: float, upper: float, epsilon: float) -> DiagramGrid:
    """Choose the grid from public numbers: bottleneck sensitivity, bound of the values, loss.

    The step divides the sensitivity, so nothing is lost by rounding. Only a sensitivity below one
    step of the finest grid counts as one step. The step is at most a fraction of the entropic scale
    of one point in the plane with the maximum norm, ``normed_scale(2, alpha=epsilon)``.
    """
    padded = sensitivity * STEP_PADDING
    # In units of the sensitivity.
    entropic_scale = 4 * math.log(2) / epsilon
    steps = max(
        math.ceil(STEPS_PER_SCALE / entropic_scale), math.ceil(MIN_GRID_SIZE * padded / upper), 1
    )
    # The limit is also a whole number, so that the sensitivity is not rounded up.
    steps = min(steps, max(math.floor(MAX_GRID_SIZE * padded / upper), 1))
    step = max(padded / steps, upper / MAX_GRID_SIZE * STEP_PADDING)
    return DiagramGrid(step, math.ceil(upper / step), steps, upper)


def spike_of_range(loss: float, max_points: int) -> float:
    """Return the probability of an empty slot, given the privacy loss over the whole range.

    A filled slot is harmless only near the diagonal, within a distance that decreases with the
    loss. The number of filled slots therefore grows with the loss.
    """
    points = _LEAST_POINTS if loss < _LITTLE_LOSS else _FEW_POINTS
    if loss >= LOSS_OF_FEATURES:
        points = loss / _LOSS_OF_POINT
    return 1 - min(points / max_points, _MAX_FILLED_SHARE)


@lru_cache(maxsize=64)
def make_base_measure(
    name: str,
    size: int,
    max_points: int,
    *,
    spike: float = 0.5,
    mean: float = 1.0,
    linear: bool = False,
) -> BaseMeasure:
    """Build a base measure from public numbers, once for all diagrams that share it.

    ``"uniform"``: exactly ``max_points`` points. ``"spike-slab"``: each of ``max_points`` slots is
    empty with probability ``spike``. ``"poisson"``: a Poisson number of points of mean ``mean``, up
    to ``max_points``. With ``linear``, the density of a point is proportional to its persistence.
    """
    area = BaseMeasure(size, (1,), linear).staircase(size)
    if name == "uniform":
        weights = [0] * max_points + [1]
    elif name == "spike-slab":
        odds_num, odds_den = (spike / (1 - spike)).as_integer_ratio()
        # Each empty slot has the weight odds * area. A common factor clears the fraction.
        weights = [
            comb(max_points, m) * (odds_num * area) ** (max_points - m) * odds_den**m
            for m in range(max_points + 1)
        ]
    elif name == "poisson":
        num, den = float(mean).as_integer_ratio()
        weights = [
            num**m * (den * area) ** (max_points - m) * perm(max_points, max_points - m)
            for m in range(max_points + 1)
        ]
    else:
        raise ValueError(
            f"Unknown base measure {quoted(name)}. It must be one of {', '.join(BASE_MEASURES)}."
        )
    return BaseMeasure(size, tuple(weights), linear)


def balls_of(diagram: FloatArray, q: int, law: LawOfDraw) -> list[DiagramBall | BirthBall]:
    """Return the balls of one dimension: finite points, and for H0 the essential component."""
    grid, measure = law.grid, law.measure
    if q > 0:
        return [DiagramBall(grid.integers(diagram), measure)]
    rest, born = without_essential(diagram, grid.upper)
    birth = int(grid.rounded(np.array(born)))
    return [
        DiagramBall(grid.integers(rest), measure),
        BirthBall(birth, grid.size, law.birth_decay),
    ]


def without_essential(diagram: FloatArray, upper: float) -> tuple[FloatArray, float]:
    """Return the finite points of H0, and the birth of the essential component.

    The essential component is the oldest one, and its death is public. If the diagram is empty, the
    function equals its upper bound everywhere.
    """
    if len(diagram) == 0:
        return diagram, upper
    first = int(np.lexsort((-diagram[:, 1], diagram[:, 0]))[0])
    return np.delete(diagram, first, axis=0), float(diagram[first, 0])
