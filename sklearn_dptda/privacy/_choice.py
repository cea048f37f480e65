"""A private choice from a finite list, in integers.

Proof: doc/theory/noise_and_calibration.md, "Choices".
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda._typing import IntArray
from sklearn_dptda.privacy._fixed_point import ROUND_UP
from sklearn_dptda.privacy._noise import KeyedDraws, NoiseSource, SecureDraws
from sklearn_dptda.privacy._parameters import quoted

# The least weight of a candidate, in units of the largest one: 2**-199.
_LEAST_WEIGHT = 1e-60
# The largest weight is 2**300, so that the least one keeps more than the 53 bits of a float.
_WEIGHT_BITS = 300
# Weights of down to 1e-60 have exponents of up to 139 nats, rounded to 2**-53 of that: each is off
# by less than 2**-45 of itself, and two of them and two sums move a loss by less than this.
_ROUNDING = 2.0**-43
# Costs beyond it are cut off, which brings no two of them further apart.
_LARGEST_COST = 2**62


def private_choice(
    costs: Sequence[int] | IntArray,
    rate: float,
    noise: NoiseSource,
    *,
    bounded_range: bool = True,
) -> int:
    """Choose the index of a small cost.

    Parameters
    ----------
    costs : list of int
        Exact integers, so that neighbours differ by what their sensitivity says.
    rate : float
        Nonnegative; ``inf`` takes the first least cost.
    noise : NoiseSource
    bounded_range : bool, default=True
        Whether the range of the privacy loss has to be bounded as well, as
        budgets in zCDP count on. Then the draw is the exponential mechanism:
        index ``i`` with probability proportional to ``exp(-rate * costs[i])``.
        Without it permute-and-flip, whose cost is never larger on average.

    Returns
    -------
    int

    Notes
    -----
    If one record moves all costs by 0 to ``D`` the same way, the choice is
    ``rate * D``-differentially private; if it moves them by up to ``D`` either
    way, it is so for twice that. With ``bounded_range`` this is the range of
    the loss as well, and the choice is an eighth of its square in zCDP.

    Drawn by OpenDP, exactly. Seeded draws are of the same law up to weights
    below 1e-60 of the largest, which are raised to that: a floor that moves
    with the least cost, as weights do.

    References
    ----------
    F. McSherry, K. Talwar, "Mechanism design via differential privacy", FOCS
    2007; R. McKenna, D. Sheldon, "Permute-and-flip", NeurIPS 2020; M. Cesar,
    R. Rogers, "Bounding, concentrating, and truncating", ALT 2021, for the
    range.

    Examples
    --------
    >>> from sklearn_dptda.privacy import NoiseSource, private_choice
    >>> private_choice([3, 0, 7], 100.0, NoiseSource(0))
    1
    """
    costs = [int(cost) for cost in costs]
    if not costs:
        raise ValueError("costs must not be empty.")
    if not rate >= 0:
        raise ValueError(f"rate must not be negative; got {quoted(rate)}.")
    least = min(costs)
    if math.isinf(rate):
        return costs.index(least)
    if noise.key is not None:
        excesses = [cost - least for cost in costs]
        return KeyedDraws(noise).choose(excesses, rate, bounded_range)
    if not noise.seeded and rate > 0 and math.isfinite(scale := ROUND_UP / rate):
        cut = np.array([max(-_LARGEST_COST, min(cost, _LARGEST_COST)) for cost in costs])
        return SecureDraws().choose(cut, scale, bounded_range)
    weights = _weights([float(cost - least) for cost in costs], rate)
    return (_exponential if bounded_range else _permute_and_flip)(weights, noise)


def choose_member(
    costs: Sequence[int], sizes: Sequence[int], rate: float, noise: NoiseSource
) -> tuple[int, int]:
    """Draw from groups of candidates of equal cost, by the exponential mechanism.

    Proof: doc/theory/private_bounds.md, "Drawing from more candidates than can be listed".

    Parameters
    ----------
    costs, sizes : list of int
        Cost of each member, and number of members, of each group; of any size.
    rate : float
        Positive; ``inf`` takes the first member of the first group of least cost.
    noise : NoiseSource

    Returns
    -------
    group, member : int

    Notes
    -----
    As :func:`private_choice` with ``bounded_range`` for the list of all
    members, which is never made. Weights are integers, drawn exactly; their
    own rounding is paid for by a rate that is lower by 2**-43, which covers
    it where costs move by at least one.
    """
    least = min(cost for cost, size in zip(costs, sizes, strict=True) if size > 0)
    if math.isinf(rate):
        return next(
            i for i, (c, m) in enumerate(zip(costs, sizes, strict=True)) if c == least and m
        ), 0
    excesses = [float(cost - least) for cost in costs]
    members = _weights(np.maximum(excesses, 0.0), max(rate - _ROUNDING, 0.0))
    group = _exponential([w * m for w, m in zip(members, sizes, strict=True)], noise)
    return group, noise.below(sizes[group])


def _exponential(weights: Sequence[int], noise: NoiseSource) -> int:
    draw = noise.below(sum(weights))
    for index, weight in enumerate(weights):
        draw -= weight
        if draw < 0:
            return index
    raise AssertionError("weights do not sum to their sum.")


def _permute_and_flip(weights: Sequence[int], noise: NoiseSource) -> int:
    order = list(range(len(weights)))
    noise.shuffle(order)
    # The likeliest one is always taken, where no other was before.
    return next(index for index in order if noise.below(1 << _WEIGHT_BITS) < weights[index])


def _weights(excesses: ArrayLike, rate: float) -> list[int]:
    """Integers in proportion to ``exp(-rate * excess)``, as exact as floating-point numbers."""
    weights = np.maximum(np.exp(-rate * np.array(excesses)), _LEAST_WEIGHT)
    return [int(weight) for weight in np.ldexp(weights, _WEIGHT_BITS)]
