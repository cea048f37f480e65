"""Audits of private measures, each with a broken twin."""

import itertools
from decimal import Decimal, localcontext
from fractions import Fraction

from sklearn_dptda.metric_privacy._finite_laws import integer_weights
from sklearn_dptda.privacy import audit_epsilon


def assert_audited(release, first, second):
    """Acquit a release of epsilon 1, and catch its twin with an eighth of the noise.

    ``release`` takes rows, a state and an epsilon, and returns a number.
    """

    def audit(epsilon, n_runs):
        return audit_epsilon(
            lambda X, random_state=None: release(X, random_state, epsilon),
            first,
            second,
            n_runs=n_runs,
            confidence=1 - 1e-6,
            random_state=0,
        )

    assert not audit(1.0, 4000).refutes(1.0)
    assert audit(8.0, 2000).refutes(1.0)


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
