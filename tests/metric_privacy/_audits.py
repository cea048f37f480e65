"""Exact laws of mechanisms on finite spaces."""

import itertools
from decimal import Decimal, localcontext
from fractions import Fraction

from sklearn_dptda.metric_privacy._finite_laws import integer_weights


def integer_law(logs):
    """Rows of integers in proportion to which outputs are drawn."""
    high, low = integer_weights(logs)
    return [
        [(int(a) << 44) + int(b) for a, b in zip(*row, strict=True)]
        for row in zip(high, low, strict=True)
    ]


def exact_parameter(logs, D):
    """Largest log-ratio of two rows of integers over their distance, with 50 digits.

    The distance is that of the double-precision number itself.
    """
    law, largest = integer_law(logs), Decimal(0)
    with localcontext() as context:
        context.prec = 50
        for x, y in itertools.combinations(range(len(law)), 2):
            ratios = [
                Fraction(a * sum(law[y]), b * sum(law[x]))
                for a, b in zip(law[x], law[y], strict=True)
                if a or b
            ]
            worst = max(max(ratios), 1 / min(ratios))
            loss = (Decimal(worst.numerator) / Decimal(worst.denominator)).ln()
            largest = max(largest, loss / Decimal(float(D[x, y])))
    return float(largest)
