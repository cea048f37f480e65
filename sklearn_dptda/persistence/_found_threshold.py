"""Counts of long features, by a threshold and a cap of distances that are drawn with them.

Proof: doc/theory/private_profiles.md, "Without a threshold".
"""

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.persistence._lifetimes import LifetimeLattice, lifetimes_of, make_lattice
from sklearn_dptda.persistence._private_cap import gates_of_caps
from sklearn_dptda.persistence._private_grid_persistence import GridFunction
from sklearn_dptda.privacy import NoiseSource, private_choice

# What one record moves scores by, at most: scores are whole parts of it.
UNIT = 2**12
# Measured on thirteen shapes of 300 to 4,000 points, in tight and in wide boxes. The least
# threshold under a cap, in geometric means of the cap and the sensitivity: shorter features are of
# sampling. Losses that a margin is worth at most, and that twice the threshold costs. The loss at
# which more precision is of no use, times the root of the range in sensitivities.
_LEAST, _MOST_LOSS, _LOSS_OF_OCTAVE, _FINEST = 1.8, 20.0, 7.0, 28.0
# Thresholds of each octave, and the highest one as a part of the cap.
_PER_OCTAVE, _HIGHEST = 2, 0.9
# Score of a count that one end of a gap does not rule out, in steps: more than any lifetime has.
UNBOUNDED_SCORE = 2**48


class Tried(NamedTuple):
    """A threshold under one of the caps, in units of the function and in steps, and its price."""

    place: int
    lattice: LifetimeLattice
    threshold: float
    steps: int
    price: int


class Choice(NamedTuple):
    """All thresholds that are tried, what a margin counts at most, and the rate of the draw."""

    tried: list[Tried]
    most: int
    rate: float


def make_choice(caps: Sequence[tuple[float, float]], epsilon: float) -> Choice:
    """Thresholds under each cap, by public numbers: sensitivities and upper bounds."""
    sensitivity, upper = caps[0]
    precision = min(epsilon, _FINEST / math.sqrt(upper / sensitivity))
    octave = UNIT * _LOSS_OF_OCTAVE / precision
    found = [
        (place, make_lattice(*public), threshold)
        for place, public in enumerate(caps)
        for threshold in _thresholds(*public)
    ]
    least = min(threshold for *_, threshold in found)
    tried = [
        Tried(
            place,
            lattice,
            threshold,
            round(threshold / lattice.step),
            math.floor(octave * math.log2(threshold / least)),
        )
        for place, lattice, threshold in found
    ]
    return Choice(tried, math.floor(UNIT * _MOST_LOSS / precision), epsilon / (2 * UNIT))


def _thresholds(sensitivity: float, upper: float) -> list[float]:
    least, highest = _LEAST * math.sqrt(sensitivity * upper), _HIGHEST * upper
    if least >= highest:
        return [highest]
    n_steps = math.floor(_PER_OCTAVE * math.log2(highest / least))
    return [least * 2 ** (i / _PER_OCTAVE) for i in range(n_steps + 1)]


def found_counts(
    numbers: Mapping[int, int], function: GridFunction, choice: Choice, seed: Any
) -> tuple[list[int], Tried]:
    """Counts of finite classes of one filtration, and the threshold and cap that were drawn.

    The border between private and public is the call of ``private_choice``.
    """
    scores = scores_of(numbers, function, choice)
    costs = -np.concatenate([each.ravel() for each in scores])
    index = private_choice(costs, choice.rate, NoiseSource(seed), bounded_range=False)
    chosen, place = divmod(index, scores[0].size)
    counts = np.unravel_index(place, scores[0].shape)
    return [int(count) for count in counts], choice.tried[chosen]


def scores_of(
    numbers: Mapping[int, int], function: GridFunction, choice: Choice
) -> list[NDArray[Any]]:
    """Scores of all combinations of counts at each threshold; one record moves them by a unit."""
    diagrams = function.diagrams(numbers, len(function.caps))
    gates = gates_of_caps(function.caps, diagrams, list(numbers))
    return [
        _scores(diagrams[t.place], numbers, t, choice.most, gates[t.place]) for t in choice.tried
    ]


def _scores(
    diagrams: Sequence[FloatArray], numbers: Mapping[int, int], t: Tried, most: int, gate: float
) -> NDArray[Any]:
    """Scores of all combinations of counts at one threshold."""
    lives = lifetimes_of(diagrams, numbers, t.lattice)
    margins = reduce(np.minimum.outer, [threshold_scores(each, t.steps) for each in lives])
    in_units = margins * UNIT // t.lattice.sensitivity
    # Gates of hardly anything but noise may be as large as the range is in sensitivities.
    allowed = most - math.floor(UNIT * gate)
    return np.minimum(in_units, min(most, allowed)) - t.price


def threshold_scores(lifetimes: NDArray[Any], threshold: float) -> NDArray[Any]:
    """Scores of the counts 0, 1, ..., K of K lifetimes, the last of which means K or more.

    How far the threshold is from both ends of the gap between the j-th and the next; negative
    where it is outside. Each is the least of functions that move by as much as the lifetimes do.
    """
    above = np.concatenate([[UNBOUNDED_SCORE], lifetimes - threshold])
    below = np.concatenate([threshold - lifetimes, [UNBOUNDED_SCORE]])
    return np.minimum(above, below)


def margin_of(choice: Choice, t: Tried, missed: float, rounded: int) -> float:
    """By how much a threshold may be off for counts that were drawn at it to be right.

    ``missed`` is by how much the score may be below the best one. The default cap has the score 0,
    less its price, at each of its thresholds, whatever the records are.
    """
    lost = min(each.price for each in choice.tried if each.place == 0) - t.price
    if t.place == 0:
        lost = min(lost, 0)
    steps = max(missed + lost, 0.0) / UNIT * t.lattice.sensitivity
    return (math.ceil(steps) + rounded) * t.lattice.step
