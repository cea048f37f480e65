"""Persistences in whole steps of a public lattice, and how far one record moves them."""

import math
from dataclasses import dataclass

import numpy as np

from sklearn_dptda.persistence._cubical import sublevel_diagrams
from sklearn_dptda.privacy import FixedPoint
from sklearn_dptda.privacy._parameters import quoted

# Steps per sensitivity: 2**16 to 2**17. A whole number of them is at most 2**-16 too many.
_BITS = 16
# Of upper over steps: sums of hundreds of persistences stay exact in floating point.
_WIDEST = 2.0**46
_LEAST_EXPONENT = -1000


@dataclass(frozen=True)
class LifetimeLattice:
    """Levels in whole steps, of a power of two, of which one record moves none further than half.

    Levels are rounded down, which is exact. Where ``x' <= x + D`` and ``D`` is at most ``K`` steps,
    the rounded levels obey ``i' <= i + K``: rounding is a map of the values of the function, so
    that births and deaths in steps are those of rounded functions at most ``K`` apart, and
    persistences move by at most ``sensitivity = 2 K`` steps.
    """

    levels: FixedPoint
    sensitivity: int

    @property
    def step(self):
        """Distance of neighbouring levels."""
        return self.levels.step


def make_lattice(sensitivity, upper, finer=1.0):
    """Lattice for functions up to ``upper``, of which one record moves no value further.

    ``finer`` says how many times less than the sensitivity the noise is: steps are not longer.
    """
    bits = max(_BITS, math.frexp(finer)[1])
    exponent = math.frexp(sensitivity)[1] - 1 - bits
    if exponent < _LEAST_EXPONENT or math.ldexp(upper / _WIDEST, bits) > sensitivity:
        raise ValueError(
            f"sensitivity={quoted(sensitivity)} and upper={quoted(upper)} are too far apart for "
            "floating point."
        )
    return LifetimeLattice(FixedPoint(exponent), 2 * math.ceil(math.ldexp(sensitivity, -exponent)))


def longest_lifetimes(values, upper, numbers, lattice=None):
    """Longest persistences of finite classes, in decreasing order, zeros where there are no more.

    ``numbers`` says for each homology dimension how many. In steps, or exact without a lattice.
    """
    diagrams = sublevel_diagrams(np.maximum(values, 0.0), list(numbers), upper)
    return [
        _longest(diagram if lattice is None else lattice.levels.encode(diagram), q, number)
        for diagram, (q, number) in zip(diagrams, numbers.items(), strict=True)
    ]


def _longest(diagram, q, number):
    lives = np.sort(diagram[:, 1] - diagram[:, 0])[::-1]
    if q == 0:
        # None lives longer than the component that never dies, which is kept apart.
        lives = lives[1:]
    kept = lives[:number]
    return np.pad(kept, (0, number - len(kept)))
