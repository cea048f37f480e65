"""The least epsilon that does, by bisection."""

import math

# Losses over the whole range between which an epsilon is looked for, and to which part.
_LEAST_LOSS, _MOST_LOSS = 1.0, 2.0**20
PART = 1e-3


def least_epsilon(suffices, sensitivity, upper):
    """Least epsilon for which ``suffices(epsilon)``, too large by a thousandth at most; or ``inf``.

    What suffices at one epsilon has to suffice at all larger ones. Errors depend on the loss over
    the whole range, ``epsilon * upper / sensitivity``, so that this is what is bisected.
    """
    per_loss = sensitivity / upper
    low, high = _LEAST_LOSS, 2 * _LEAST_LOSS
    while not suffices(high * per_loss):
        low, high = high, 2 * high
        if high > _MOST_LOSS:
            return math.inf
    while high > low * (1 + PART):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if suffices(middle * per_loss) else (middle, high)
    return high * per_loss
