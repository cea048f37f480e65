"""Private choices from a finite list, in integer arithmetic.

Proof: doc/theory/noise_and_calibration.md, "Choices".
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda._typing import IntArray
from sklearn_dptda.privacy._exact_draws import ExactDraws
from sklearn_dptda.privacy._noise import NoiseSource
from sklearn_dptda.privacy._parameters import quoted

# The smallest weight of a candidate, in units of the largest one: 2**-199.
_LEAST_WEIGHT = 1e-60
# The largest weight is 2**300, so that the smallest one keeps more than the 53 bits of a float.
_CHOICE_WEIGHT_BITS = 300
# Weights down to 1e-60 have exponents of up to 139 nats, with a relative rounding error of 2**-53.
# The relative error of each weight is less than 2**-45. Two weights and two sums change a loss by
# less than this number.
_ROUNDING = 2.0**-43


def private_choice(
    costs: Sequence[int] | IntArray,
    rate: float,
    noise: NoiseSource,
    *,
    bounded_range: bool = True,
    change: float = 1.0,
) -> int:
    """Choose the index of a candidate with a small cost, privately.

    Parameters
    ----------
    costs : list of int
        Cost of each candidate, exact integers.
    rate : float
        Privacy loss per unit of cost, 0 or larger. Larger rates give less privacy.
        ``inf`` chooses the first candidate of the smallest cost, without privacy.
    noise : NoiseSource
        Source of the random numbers.
    bounded_range : bool, default=True
        Whether the range of the privacy loss must be bounded too, which zCDP
        accounting requires. True draws by the exponential mechanism: index ``i``
        has a probability proportional to ``exp(-rate * costs[i])``. False draws
        by permute-and-flip, whose expected cost is never larger.
    change : float, default=1.0
        Declared largest difference of the changes of two costs between neighbours.
        It does not affect the draw. The privacy checks compare costs with it.

    Returns
    -------
    int
        Index of the chosen candidate.

    Notes
    -----
    The choice is ``rate * change``-differentially private. If one record moves all
    costs by 0 to ``D`` in the same direction, the change is ``D``. If it moves them
    by up to ``D`` in either direction, the change is ``2 * D``. With ``bounded_range``,
    this loss also bounds the range of the loss, and the zCDP parameter of the
    choice is one eighth of its square.

    Unseeded choices are drawn exactly. Seeded choices have the same
    law, except that weights below 1e-60 of the largest weight are raised to that
    floor. The floor moves with the smallest cost, like the weights.

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
    return noise.cross(
        costs,
        lambda costs: _chosen(costs, rate, noise, bounded_range),
        metric="range",
        sensitivity=change,
        rate=rate,
        law="range" if bounded_range else "pure",
    )


def _chosen(costs: list[int], rate: float, noise: NoiseSource, bounded_range: bool) -> int:
    least = min(costs)
    if math.isinf(rate):
        return costs.index(least)
    excesses = [cost - least for cost in costs]
    if not noise.seeded:
        return ExactDraws(noise).choose(excesses, rate, bounded_range)
    weights = _weights([float(excess) for excess in excesses], rate)
    return (_exponential if bounded_range else _permute_and_flip)(weights, noise)


def choose_member(
    costs: Sequence[int], sizes: Sequence[int], rate: float, noise: NoiseSource
) -> tuple[int, int]:
    """Draw a group and the index of a member, by the exponential mechanism on all members.

    A group has a cost and a size, integers of any size. The draw is exact. The rate is lowered by
    2**-43 to account for the rounding of the weights, which is enough if costs move by at least
    one.

    Proof: doc/theory/private_bounds.md, "Drawing from more candidates than can be listed".
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
    raise AssertionError("the draw is not below the sum of the weights.")


def _permute_and_flip(weights: Sequence[int], noise: NoiseSource) -> int:
    order = list(range(len(weights)))
    noise.shuffle(order)
    # The candidate with the largest weight is always accepted, unless another one was before it.
    return next(index for index in order if noise.below(1 << _CHOICE_WEIGHT_BITS) < weights[index])


def _weights(excesses: ArrayLike, rate: float) -> list[int]:
    """Integers proportional to ``exp(-rate * excess)``, with the precision of floats."""
    weights = np.maximum(np.exp(-rate * np.array(excesses)), _LEAST_WEIGHT)
    return [int(weight) for weight in np.ldexp(weights, _CHOICE_WEIGHT_BITS)]
