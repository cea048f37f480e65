"""Draws of a cap of distances: jointly with the diagrams at no extra cost, or separately.

Under a smaller cap a function has a smaller sensitivity and smaller diagrams, so noise moves them
less. The amount that a cap hides is an additional term in the score of the exponential mechanism.

Proof: doc/theory/private_cap.md, "The mechanism".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.persistence._exact_sampler import (
    BirthBall,
    Cover,
    DiagramBall,
    ExactSampler,
    Point,
)
from sklearn_dptda.persistence._mechanisms import (
    LOSS_OF_FEATURES,
    STEP_PADDING,
    DiagramGrid,
    ExactMechanism,
    balls_apart,
    balls_of,
    drawn_diagrams,
    without_essential,
)
from sklearn_dptda.persistence._private_grid_persistence import Public
from sklearn_dptda.privacy import NoiseSource, private_choice
from sklearn_dptda.privacy._fixed_point import ROUND_UP
from sklearn_dptda.utils._distances import bottleneck_distance

# Smaller caps may be drawn from this loss over the whole range on. Below it, none of them is worth
# what it hides. The weight of each cap is exp(a) times that of the previous one, where a grows with
# the loss.
_LEAST_LOSS, _LOSS_PER_PRIOR, _MOST_PRIOR = LOSS_OF_FEATURES, 150.0, 4.0
# Share of the budget for a separate choice of a cap. The amount that each cap may hide in addition
# to the previous one grows with the loss over the whole range.
_CHOICE_SHARE, _LOSS_PER_BONUS, _MOST_BONUS = 0.2, 1000.0, 2.0
# The largest change of the cost of a cap when one record is replaced. Costs are integers in this
# unit.
_UNIT = 2**12
# Weights of caps are integers, and that of the first cap is 2 to this power.
_CAP_WEIGHT_BITS = 20
# This share of the range exceeds the rounding errors of two bottleneck distances by far.
_ROUNDING = 2.0**-30


def prior_of_caps(mechanism: Any, caps: Sequence[Public]) -> list[int]:
    """Return the weights of the caps that may be drawn, of which the first is the default.

    There is only one weight if the draw is of another kind, or if the noise is so large that no
    smaller cap is worth what it hides.
    """
    if not isinstance(mechanism, ExactMechanism) or not mechanism.joint:
        return [1]
    loss = mechanism.loss(*caps[0])
    if loss < _LEAST_LOSS:
        return [1]
    rate = min(loss / _LOSS_PER_PRIOR, _MOST_PRIOR)
    return [round(math.ldexp(math.exp(rate * j), _CAP_WEIGHT_BITS)) for j in range(len(caps))]


class ChoiceOfCap(NamedTuple):
    """Budgets of a separate choice of a cap and of the release under it, and the bonus of each cap.

    Proof: doc/theory/private_cap.md, "A cap by itself".
    """

    choice: float
    rest: float
    bonus: int

    @classmethod
    def of(cls, epsilon: float, caps: Sequence[Public]) -> ChoiceOfCap | None:
        """Return the choice for public numbers, or None if no smaller cap is worthwhile."""
        sensitivity, upper = caps[0]
        loss = epsilon * upper / sensitivity
        if math.isinf(epsilon) or len(caps) == 1 or loss < _LEAST_LOSS:
            return None
        choice = _CHOICE_SHARE * epsilon
        worth = 2 * min(loss / _LOSS_PER_BONUS, _MOST_BONUS) / choice
        return cls(choice, (1 - _CHOICE_SHARE) * epsilon / ROUND_UP, math.floor(_UNIT * worth))

    @property
    def rate(self) -> float:
        """Rate of the choice, where costs change by at most one unit in either direction."""
        return self.choice / (2 * _UNIT)

    def costs(
        self,
        caps: Sequence[Public],
        diagrams: Sequence[Sequence[FloatArray]],
        dimensions: Sequence[int],
    ) -> list[int]:
        """Return the cost of each cap, given its exact diagrams."""
        gates = gates_of_caps(caps, diagrams, dimensions)
        return [math.floor(_UNIT * gate) - self.bonus * j for j, gate in enumerate(gates)]

    def draw(
        self,
        caps: Sequence[Public],
        diagrams: Sequence[Sequence[FloatArray]],
        dimensions: Sequence[int],
        source: NoiseSource,
    ) -> int:
        """Draw the index of a cap."""
        costs = self.costs(caps, diagrams, dimensions)
        return private_choice(costs, self.rate, source, bounded_range=False, change=2 * _UNIT)


def grids_of_caps(grid: DiagramGrid, caps: Sequence[Public]) -> list[DiagramGrid]:
    """Return one grid for each cap, all with the same size and the same sensitivity in steps."""
    return [
        DiagramGrid(
            max(sensitivity * STEP_PADDING / grid.sensitivity, upper / grid.size),
            grid.size,
            grid.sensitivity,
            upper,
        )
        for sensitivity, upper in caps
    ]


def release_with_cap(
    mechanism: ExactMechanism,
    caps: Sequence[Public],
    diagrams: Sequence[Sequence[FloatArray]],
    dimensions: Sequence[int],
    seed: Any,
) -> tuple[int, list[FloatArray]]:
    """Draw the index of a cap and diagrams under it, given the exact diagrams under each cap.

    In all of them, the essential component dies at the default cap, so that releases are
    comparable.
    """
    law = mechanism.prepare(*caps[0])
    grids = grids_of_caps(law.grid, caps)
    gates = gates_of_caps(caps, diagrams, dimensions)
    members = []
    for weight, grid, gate, exact in zip(
        prior_of_caps(mechanism, caps), grids, gates, diagrams, strict=True
    ):
        under = law._replace(grid=grid)
        balls = [b for d, q in zip(exact, dimensions, strict=True) for b in balls_of(d, q, under)]
        members.append(Member(weight, min(math.floor(gate * grid.sensitivity), grid.size), balls))
    balls_of_caps: list[Any] = [CapsBall(members)]
    source, sampler = NoiseSource(seed), ExactSampler(balls_of_caps, law.table)
    ((drawn,),) = drawn_diagrams(sampler, law.grid, source)
    place, parts = cast(Any, drawn)
    grid, remaining = grids[place], iter(parts)
    released = []
    for q in dimensions:
        diagram = grid.values(next(remaining))
        if q == 0:
            diagram = _with_essential(diagram, next(remaining), grid, caps[0][1])
        released.append(diagram)
    return place, released


def _with_essential(
    finite: FloatArray, births: Sequence[Point], grid: DiagramGrid, death: float
) -> FloatArray:
    born = min(births[0][0] * grid.step, grid.upper)
    diagram = np.vstack([finite, [[born, death]]]) if born < death else finite
    return diagram[np.lexsort((diagram[:, 1], diagram[:, 0]))]


def gates_of_caps(
    caps: Sequence[Public], diagrams: Sequence[Sequence[FloatArray]], dimensions: Sequence[int]
) -> list[float]:
    """Return how much each cap hides of the features under larger caps.

    Replacing one record changes each number by at most 1.
    Proof: doc/theory/private_cap.md, "Gates".
    """
    split = [
        _Split.of(exact, dimensions, upper)
        for exact, (_, upper) in zip(diagrams, caps, strict=True)
    ]
    gates, rounding = [], caps[0][1] * _ROUNDING
    for j, (smaller, (sensitivity, upper)) in enumerate(zip(split, caps, strict=True)):
        loss = 0.0
        for larger, (wider, _) in zip(split[:j], caps[:j], strict=True):
            both = (wider + sensitivity) * STEP_PADDING + rounding
            loss = max(loss, larger.beyond(upper) / (wider * STEP_PADDING + rounding))
            loss = max(loss, larger.apart(smaller, loss * both) / both)
        gates.append(loss)
    return gates


class _Split(NamedTuple):
    """Finite points of each dimension, and the birth of the essential component, if any."""

    finite: list[FloatArray]
    births: list[float]

    @classmethod
    def of(cls, diagrams: Sequence[FloatArray], dimensions: Sequence[int], upper: float) -> _Split:
        finite, births = [], []
        for diagram, q in zip(diagrams, dimensions, strict=True):
            if q == 0:
                diagram, born = without_essential(diagram, upper)
                births.append(born)
            finite.append(diagram)
        return cls(finite, births)

    def apart(self, other: _Split, at_least: float) -> float:
        """Return the largest distance between corresponding parts, or ``at_least`` if smaller."""
        most = max([at_least, *map(abs, np.subtract(self.births, other.births))])
        pairs = [
            (max(np.ptp(d, axis=1).max(initial=0.0) for d in pair) / 2, *pair)
            for pair in zip(self.finite, other.finite, strict=True)
        ]
        # All points can be matched to the diagonal, so most distances need not be computed.
        for bound, one, two in sorted(pairs, key=lambda pair: -pair[0]):
            if bound > most:
                most = max(most, bottleneck_distance(one, two))
        return float(most)

    def beyond(self, cap: float) -> float:
        """Return the distance from diagrams without coordinates above a cap."""
        cut = [
            np.minimum(np.maximum(d[:, 1] - cap, 0), (d[:, 1] - d[:, 0]) / 2).max(initial=0.0)
            for d in self.finite
        ]
        return float(max([*cut, *(born - cap for born in self.births)]))


class Member(NamedTuple):
    """Weight of a cap, the first level at which it is allowed, and the balls of all parts."""

    weight: int
    gate: int
    balls: list[DiagramBall | BirthBall]

    def first_level(self) -> int:
        """Return the smallest level at which the cap is allowed and no ball is empty."""
        return max(self.gate, *(ball.first_level() for ball in self.balls))


class CapsBall:
    """Balls around the diagrams of one function under several caps, where the cap is drawn, too.

    All members have the same base measure, on grids in steps of their own sensitivities. The levels
    of all caps therefore represent the same privacy loss.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = members

    def apart(self, other: CapsBall) -> float:
        """Return the largest difference of the levels of a cap and diagrams."""
        return max(
            max(abs(own.gate - others.gate), balls_apart(own.balls, others.balls))
            for own, others in zip(self.members, other.members, strict=True)
        )

    def breaks(self) -> list[int]:
        """Return the levels at which a cap becomes allowed, or a set of long points changes."""
        levels = {m.gate for m in self.members}
        levels.update(b for m in self.members for ball in m.balls for b in ball.breaks())
        return sorted(levels - {0})

    def first_level(self) -> int:
        """Return the smallest level at which any cap is allowed."""
        return min(member.first_level() for member in self.members)

    def cover(self, level: int) -> CapsCover:
        """Return the covers of all parts under each cap that is allowed."""
        return CapsCover(self.members, level)


class CapsCover:
    """Covers of the parts under each cap. The caps are disjoint, so their weights are added."""

    def __init__(self, members: Sequence[Member], level: int) -> None:
        self._covers: list[tuple[int, int, int, list[Cover | BirthBall]]] = [
            (place, m.weight, first, [ball.cover(level) for ball in m.balls])
            for place, m in enumerate(members)
            if (first := m.first_level()) <= level
        ]

    def weight(self, r: int) -> int:
        """Return the total weight of all caps."""
        return sum(self._weights(r))

    def draw(self, source: NoiseSource, r: int) -> list[tuple[int, list[list[Point]]]] | None:
        """Draw a cap, then diagrams under it, or return None if the proposal is rejected."""
        weights = self._weights(r)
        rank, i = source.below(sum(weights)), 0
        while rank >= weights[i]:
            rank -= weights[i]
            i += 1
        place, *_, covers = self._covers[i]
        parts = []
        for cover in covers:
            part = cover.draw(source, r)
            if part is None:
                return None
            parts.append(sorted(part))
        return [(place, parts)]

    def _weights(self, r: int) -> list[int]:
        return [
            weight * math.prod(cover.weight(r) for cover in covers) if first <= r else 0
            for _, weight, first, covers in self._covers
        ]
