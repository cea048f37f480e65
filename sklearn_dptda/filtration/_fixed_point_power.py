"""Powers of distances in fixed point."""

import numpy as np


class FixedPointPower:
    """``p``-th powers of capped distances as integers, so that sums are exact.

    A distance ``t`` becomes ``round(2**bits * min(t / cap, 1)**p)``: a map of one record at a
    time, with values in ``{0, ..., 2**bits}``. The sum of the ``k`` smallest is then an exact
    integer, and replacing one record moves it by at most ``2**bits``, whatever the order of the
    summation.
    """

    def __init__(self, cap, p, k):
        self.cap, self.p, self.k = cap, p, k
        self.bits = min(40, 62 - int(k).bit_length())

    def integers(self, squared):
        """Turn squared distances into integers."""
        power = np.sqrt(squared)
        power /= self.cap
        np.minimum(power, 1.0, out=power)
        if self.p != 1:
            power **= self.p
        power *= 2.0**self.bits
        return np.rint(power, out=power).astype(np.int64)

    def values(self, sums):
        """Turn sums of ``k`` integers into values of the distance-to-measure."""
        mean = np.asarray(sums, dtype=float) / (self.k * 2.0**self.bits)
        return self.cap * (mean if self.p == 1 else mean ** (1 / self.p))

    @property
    def rounding(self):
        """Bound of the floating-point error of :meth:`values`, both neighbours together."""
        return self.cap * 2.0**-48
