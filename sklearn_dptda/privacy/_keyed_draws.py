"""Exact integer noise and choices from a stream of uniform integers, whatever it comes from.

The algorithms of C. Canonne, G. Kamath, T. Steinke, "The discrete Gaussian for differential
privacy", in integers. OpenDP's own cannot be given a stream.
"""

from fractions import Fraction

import numpy as np


def draw(law, scale, size, below):
    """Discrete Laplace or Gaussian noise of a positive scale; ``below`` draws uniform integers."""
    one = {"laplace": _laplace, "gaussian": _gaussian}[law]
    scale = Fraction(scale)
    return np.array([one(scale, below) for _ in range(size)], dtype=np.int64)


def choose(excesses, rate, noise, bounded_range):
    """Index of a small excess: the exponential mechanism, or permute-and-flip, exactly.

    The exponential mechanism by rejection: a uniform candidate is taken with its own odds.
    """
    rate, below = Fraction(rate), noise.below
    order = list(range(len(excesses)))
    if not bounded_range:
        noise.shuffle(order)
    for turn in _turns(order, below, bounded_range):
        if _happens(rate * excesses[turn], below):
            return turn
    raise AssertionError("the least excess is not zero.")


def _turns(order, below, again):
    yield from order if not again else ()
    while again:
        yield below(len(order))


def _laplace(scale, below):
    top, bottom = scale.numerator, scale.denominator
    while True:
        start = below(top)
        if not _happens_below_one(start, top, below):
            continue
        more = 0
        while _happens_below_one(1, 1, below):
            more += 1
        size = (start + top * more) // bottom
        negative = below(2)
        if not negative:
            return size
        if size:
            return -size


def _gaussian(scale, below):
    whole = int(scale) + 1
    square = scale * scale
    while True:
        value = _laplace(Fraction(whole), below)
        if _happens((abs(value) - square / whole) ** 2 / (2 * square), below):
            return value


def _happens(exponent, below):
    """Whether an event of probability exp(-exponent) happens; the exponent is no negative one."""
    top, bottom = exponent.numerator, exponent.denominator
    while top > bottom:
        if not _happens_below_one(1, 1, below):
            return False
        top -= bottom
    return _happens_below_one(top, bottom, below)


def _happens_below_one(top, bottom, below):
    """The same for exponents ``top / bottom`` from 0 to 1: by the alternating series."""
    turn = 1
    while below(bottom * turn) < top:
        turn += 1
    return turn % 2 == 1
