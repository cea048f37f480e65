"""The exponential mechanism over a finite list, in integers."""

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext

from sklearn_dptda.privacy._noise import NoiseSource

# Decimal digits of the largest weight, of the smallest, and of the arithmetic that makes them.
_DIGITS, _LEAST, _PRECISION = 90, 30, 120


def exponential_choice(costs: Sequence[int], rate: float, noise: NoiseSource) -> int:
    """Draw an index with probability proportional to ``exp(-rate * cost)``.

    Parameters
    ----------
    costs : list of int
        Exact integers, so that neighbours differ by what their sensitivity says.
    rate : float
        Nonnegative; ``inf`` takes the first least cost.
    noise : NoiseSource

    Returns
    -------
    int

    Notes
    -----
    If one record moves all costs by 0 to ``D`` the same way, the choice is
    ``rate * D``-differentially private and its privacy loss has a range of
    ``rate * D`` (which is ``(rate * D)**2 / 8``-zCDP); if it moves them by up
    to ``D`` either way, twice that. No weight is less than 1e-60 of the
    largest: a floor that moves with the least cost, as weights do, so that the
    ratios of neighbours stay within the same bounds. Weights are integers,
    exact to 30 digits.

    References
    ----------
    F. McSherry, K. Talwar, "Mechanism design via differential privacy", FOCS
    2007; M. Cesar, R. Rogers, "Bounding, concentrating, and truncating", ALT
    2021, for the range.

    Examples
    --------
    >>> from sklearn_dptda.privacy import NoiseSource, exponential_choice
    >>> exponential_choice([3, 0, 7], 100.0, NoiseSource(0))
    1
    """
    costs = [int(cost) for cost in costs]
    if not costs:
        raise ValueError("costs must not be empty.")
    if not rate >= 0:
        raise ValueError(f"rate must not be negative; got {rate!r}.")
    least = min(costs)
    if math.isinf(rate):
        return costs.index(least)
    weights = _weights([cost - least for cost in costs], rate)
    draw = noise.below(sum(weights))
    for index, weight in enumerate(weights):
        draw -= weight
        if draw < 0:
            return index
    raise AssertionError("weights do not sum to their sum.")


def _weights(excesses, rate):
    least = 10**_LEAST
    # Beyond it a weight is the least one for sure.
    reach = 2.4 * (_DIGITS - _LEAST) / rate if rate > 0 else math.inf
    with localcontext() as context:
        context.prec = _PRECISION
        context.Emin = -(10**9)
        exact = Decimal(rate)
        found = {
            excess: max(int((-exact * excess).exp().scaleb(_DIGITS)), least)
            for excess in set(excesses)
            if excess <= reach
        }
    return [found.get(excess, least) for excess in excesses]
