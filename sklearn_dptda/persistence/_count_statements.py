"""What a private count says, in words."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context

_NAMES = {0: "component", 1: "loop", 2: "void"}
_DIGITS = 3
# Where noise is all that there is.
NOTHING = "nothing is certain"


def threshold_statement(counts, thresholds, margin, most):
    """Sentence about counts by dimension: how many are surely long, and how many at most."""
    parts = []
    for (q, count), threshold in zip(counts.items(), thresholds, strict=True):
        # Of what never dies there is always one.
        if threshold > margin and count > (q == 0):
            low = _rounded(threshold - margin, ROUND_FLOOR)
            parts.append(f"at least {_several(count, q)} longer than {low}")
        if count < most:
            high = _rounded(threshold + margin, ROUND_CEILING)
            parts.append(f"at most {_several(count, q)} longer than {high}")
    return "; ".join(parts) or NOTHING


def gap_statement(counts, margin, most):
    """Sentence about counts by dimension: how near their gaps are to the widest."""
    several = ", ".join(_several(count, q) for q, count in counts.items())
    oldest = " (of components at least two are counted)" if 0 in counts else ""
    return (
        f"{several} stand out: no other gap among the {most + 1} longest is wider by more than "
        f"{_rounded(margin, ROUND_CEILING)}{oldest}"
    )


def _several(count, q):
    name = _NAMES.get(q, f"H{q} class")
    return f"{count} {name if count == 1 else name + ('es' if name.endswith('s') else 's')}"


def _rounded(value, direction):
    """A few digits, rounded so that the sentence stays true."""
    return f"{Context(prec=_DIGITS, rounding=direction).create_decimal_from_float(value):f}"
