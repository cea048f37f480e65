"""Counts of features above given thresholds, or above one that is drawn with a cap of distances.

Proof: doc/theory/private_profiles.md, "Counts above a threshold".
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

# The largest change of a score when one record is replaced. Scores are integers in this unit.
UNIT = 2**12
# These constants were measured on 13 shapes of 300 to 4,000 points, in tight and in wide boxes. In
# order: the least threshold under a cap, in geometric means of the cap and the sensitivity, because
# shorter features are sampling artefacts; the largest credit for a margin and the penalty for
# doubling the threshold, in privacy losses; and the loss beyond which more precision is useless,
# times the square root of the range in sensitivities.
_LEAST, _MOST_LOSS, _LOSS_OF_OCTAVE, _FINEST = 1.8, 20.0, 7.0, 28.0
# Number of thresholds per octave, and the highest threshold as a share of the cap.
_PER_OCTAVE, _HIGHEST = 2, 0.9
# The score for an end of a gap that does not exist, in steps. It exceeds every lifetime.
UNBOUNDED_SCORE = 2**48
# A credit for margins that is no limit: it exceeds all scores in units.
_UNLIMITED = UNBOUNDED_SCORE * UNIT


class Tried(NamedTuple):
    """The threshold of each dimension under one of the caps, in its units, and a penalty."""

    place: int
    lattice: LifetimeLattice
    thresholds: tuple[float, ...]
    price: int


class Choice(NamedTuple):
    """All thresholds to draw from, the largest credit for a margin, and the rate of the draw."""

    tried: list[Tried]
    most: int
    rate: float


def given_choice(cap: tuple[float, float], epsilon: float, thresholds: Sequence[float]) -> Choice:
    """Return the choice of counts at public thresholds."""
    tried = Tried(0, make_lattice(*cap), tuple(thresholds), 0)
    return Choice([tried], _UNLIMITED, epsilon / (2 * UNIT))


def make_choice(caps: Sequence[tuple[float, float]], epsilon: float, n_dimensions: int) -> Choice:
    """Return thresholds under each cap, from sensitivities and upper bounds.

    All dimensions have the same threshold. With one for each dimension, uneven shapes gain as much
    as others lose.
    """
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
            (threshold,) * n_dimensions,
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


def exact_counts(
    numbers: Mapping[int, int], thresholds: Sequence[float], function: GridFunction, seed: Any
) -> list[float]:
    """Return the exact counts in the form of :func:`draw_counts`, without privacy."""
    (diagrams,) = function.diagrams(numbers)
    lives = lifetimes_of(diagrams, numbers, None)
    counts = [int((each > t).sum()) for each, t in zip(lives, thresholds, strict=True)]
    return [*counts, thresholds[0], function.upper, 0.0]


def draw_counts(
    numbers: Mapping[int, int],
    function: GridFunction,
    choice: Choice,
    margins: Sequence[float],
    seed: Any,
) -> list[float]:
    """Return counts of finite classes, then the threshold, cap and margin that they are for.

    The call of ``private_choice`` is the boundary between private and public values.
    """
    scores = scores_of(numbers, function, choice)
    costs = -np.concatenate([each.ravel() for each in scores])
    source = NoiseSource(seed)
    index = private_choice(costs, choice.rate, source, bounded_range=False, change=2 * UNIT)
    chosen, place = divmod(index, scores[0].size)
    counts, t = np.unravel_index(place, scores[0].shape), choice.tried[chosen]
    return [*map(int, counts), t.thresholds[0], function.caps[t.place][1], margins[chosen]]


def scores_of(
    numbers: Mapping[int, int], function: GridFunction, choice: Choice
) -> list[NDArray[Any]]:
    """Score all combinations of counts at each threshold; one record changes scores by a unit."""
    caps = function.caps[: choice.tried[-1].place + 1]
    diagrams = function.diagrams(numbers, len(caps))
    gates = gates_of_caps(caps, diagrams, list(numbers))
    return [
        _scores(diagrams[t.place], numbers, t, choice.most, gates[t.place]) for t in choice.tried
    ]


def _scores(
    diagrams: Sequence[FloatArray], numbers: Mapping[int, int], t: Tried, most: int, gate: float
) -> NDArray[Any]:
    """Score all combinations of counts, each by the smallest score of a dimension."""
    lives = lifetimes_of(diagrams, numbers, t.lattice)
    steps = [round(threshold / t.lattice.step) for threshold in t.thresholds]
    margins = reduce(np.minimum.outer, map(threshold_scores, lives, steps))
    in_units = margins * UNIT // t.lattice.sensitivity
    # If there is hardly anything but noise, gates may be as large as the range in sensitivities.
    allowed = most - math.floor(UNIT * gate)
    return np.minimum(in_units, min(most, allowed)) - t.price


def threshold_scores(lifetimes: NDArray[Any], threshold: float) -> NDArray[Any]:
    """Score the counts 0, 1, ..., K of K lifetimes, where the last means K or more.

    The score of ``j`` is the distance of the threshold from the closer end of the gap between the
    j-th and the next lifetime, negative if the threshold is outside the gap. It is a minimum of
    functions that change by no more than the lifetimes do.
    """
    above = np.concatenate([[UNBOUNDED_SCORE], lifetimes - threshold])
    below = np.concatenate([threshold - lifetimes, [UNBOUNDED_SCORE]])
    return np.minimum(above, below)


def margin_of(choice: Choice, t: Tried, missed: float, rounded: int) -> float:
    """Return the margin of the counts that were drawn at a threshold.

    ``missed`` bounds the difference between the best score and the drawn one. The default cap has a
    score of 0, minus its penalty, at each of its thresholds, whatever the records are.
    """
    lost = min(each.price for each in choice.tried if each.place == 0) - t.price
    if t.place == 0:
        lost = min(lost, 0)
    steps = max(missed + lost, 0.0) / UNIT * t.lattice.sensitivity
    return (math.ceil(steps) + rounded) * t.lattice.step
