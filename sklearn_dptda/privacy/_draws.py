"""Discrete Laplace and Gaussian noise from three sources: entropy, a secret key, a seed.

Each class has the methods ``laplace(scale, size)`` and ``gaussian(scale, size)``, for positive
scales; those that are exact have ``choose`` as well. :class:`~sklearn_dptda.privacy.NoiseSource`
picks one of them.

Proof: doc/theory/noise_and_calibration.md, "Integer noise".
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import opendp.prelude as dp
from joblib import Parallel, delayed
from numpy.typing import NDArray

from sklearn_dptda._typing import FloatArray

# Draws of one task of a thread: fewer are not worth a thread.
_DRAWS_PER_TASK = 1 << 14
# Below this scale the law of a seeded Gaussian fits a table of less than 600 probabilities.
_LARGEST_TABLE_SCALE = 32.0
# Where seeded Gaussians are cut off, in scales: the mass beyond, 2e-19, is below 2**-53.
_GAUSSIAN_TAIL = 9.0


class SecureDraws:
    """Exact noise and choices from the operating system's entropy, by OpenDP."""

    def laplace(self, scale: float, size: int) -> NDArray[np.int64]:
        """Integers with probabilities ~ exp(-|x| / scale)."""
        return _in_threads("laplace", scale, size)

    def gaussian(self, scale: float, size: int) -> NDArray[np.int64]:
        """Integers with probabilities ~ exp(-x**2 / (2 scale**2))."""
        return _in_threads("gaussian", scale, size)

    def choose(self, costs: NDArray[np.int64], scale: float, bounded_range: bool) -> int:
        """Index of a small cost: the exponential mechanism, or permute-and-flip.

        Of OpenDP's two forms only that for zero-concentrated divergence has a loss of bounded
        range.
        """
        dp.enable_features("contrib")
        measure = dp.zero_concentrated_divergence() if bounded_range else dp.max_divergence()
        space = _integer_vectors(), dp.linf_distance(T=dp.i64)
        return int(dp.m.make_noisy_max(*space, measure, scale=scale, negate=True)(costs))


def _in_threads(law: str, scale: float, size: int) -> NDArray[np.int64]:
    """Share long draws between threads, since OpenDP works outside the interpreter's lock."""
    lengths = [min(_DRAWS_PER_TASK, size - start) for start in range(0, size, _DRAWS_PER_TASK)]
    parts = Parallel(n_jobs=-1 if len(lengths) > 1 else 1, require="sharedmem")(
        delayed(_by_opendp)(law, scale, length) for length in lengths
    )
    return np.concatenate(parts)


def _by_opendp(law: str, scale: float, length: int) -> NDArray[np.int64]:
    # Measurements do not pickle: built where they are used.
    dp.enable_features("contrib")
    if law == "laplace":
        measurement = dp.m.make_laplace(_integer_vectors(), dp.l1_distance(T=dp.i64), scale=scale)
    else:
        measurement = dp.m.make_gaussian(_integer_vectors(), dp.l2_distance(T=dp.i64), scale=scale)
    return np.asarray(measurement(np.zeros(length, dtype=np.int64)), dtype=np.int64)


def _integer_vectors() -> Any:
    return dp.vector_domain(dp.atom_domain(T=dp.i64))


class UniformIntegers(Protocol):
    """What exact draws are made of."""

    def below(self, n: int) -> int:
        """Integer uniform on ``{0, ..., n - 1}``."""

    def shuffle(self, items: list[int]) -> None:
        """Permute a list in place, uniformly."""


class KeyedDraws:
    """Exact noise and choices from a source of uniform integers, whatever these come from.

    The algorithms of C. Canonne, G. Kamath, T. Steinke, "The discrete Gaussian for differential
    privacy", in integers. OpenDP's own cannot be given a stream.
    """

    def __init__(self, source: UniformIntegers) -> None:
        self._source = source

    def laplace(self, scale: float, size: int) -> NDArray[np.int64]:
        """Integers with probabilities ~ exp(-|x| / scale)."""
        exact = Fraction(scale)
        return np.array([self._one_laplace(exact) for _ in range(size)], dtype=np.int64)

    def gaussian(self, scale: float, size: int) -> NDArray[np.int64]:
        """Integers with probabilities ~ exp(-x**2 / (2 scale**2))."""
        exact = Fraction(scale)
        return np.array([self._one_gaussian(exact) for _ in range(size)], dtype=np.int64)

    def choose(self, excesses: list[int], rate: float, bounded_range: bool) -> int:
        """Index of a small excess: the exponential mechanism, or permute-and-flip.

        The exponential mechanism by rejection: a uniform candidate is taken with its own odds.
        """
        exact = Fraction(rate)
        for candidate in self._candidates(len(excesses), bounded_range):
            if self._happens(exact * excesses[candidate]):
                return candidate
        raise AssertionError("the least excess is not zero.")

    def _candidates(self, n: int, again: bool) -> Iterator[int]:
        if not again:
            order = list(range(n))
            self._source.shuffle(order)
            yield from order
        while again:
            yield self._source.below(n)

    def _one_laplace(self, scale: Fraction) -> int:
        top, bottom = scale.numerator, scale.denominator
        while True:
            start = self._source.below(top)
            if not self._happens_below_one(start, top):
                continue
            more = 0
            while self._happens_below_one(1, 1):
                more += 1
            size = (start + top * more) // bottom
            negative = self._source.below(2)
            if not negative:
                return size
            if size:
                return -size

    def _one_gaussian(self, scale: Fraction) -> int:
        whole = int(scale) + 1
        square = scale * scale
        while True:
            value = self._one_laplace(Fraction(whole))
            if self._happens((abs(value) - square / whole) ** 2 / (2 * square)):
                return value

    def _happens(self, exponent: Fraction) -> bool:
        """Whether an event of probability exp(-exponent), for an exponent from 0 on, happens."""
        top, bottom = exponent.numerator, exponent.denominator
        while top > bottom:
            if not self._happens_below_one(1, 1):
                return False
            top -= bottom
        return self._happens_below_one(top, bottom)

    def _happens_below_one(self, top: int, bottom: int) -> bool:
        """The same for exponents ``top / bottom`` from 0 to 1: by the alternating series."""
        turn = 1
        while self._source.below(bottom * turn) < top:
            turn += 1
        return turn % 2 == 1


class SeededDraws:
    """The same laws from a seeded NumPy generator: fast, reproducible, not secure."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def laplace(self, scale: float, size: int) -> NDArray[np.int64]:
        """Integers with probabilities ~ exp(-|x| / scale): differences of geometric variables."""
        success = -np.expm1(-1 / scale)
        return self._rng.geometric(success, size) - self._rng.geometric(success, size)

    def gaussian(self, scale: float, size: int) -> NDArray[np.int64]:
        """Integers with probabilities ~ exp(-x**2 / (2 scale**2))."""
        if scale < _LARGEST_TABLE_SCALE:
            return self._gaussian_by_table(scale, size)
        drawn = np.empty(0, dtype=np.int64)
        while len(drawn) < size:
            more = self._gaussian_by_rejection(scale, size - len(drawn))
            drawn = np.concatenate([drawn, more])
        return drawn

    def _gaussian_by_table(self, scale: float, size: int) -> NDArray[np.int64]:
        reach = int(np.ceil(_GAUSSIAN_TAIL * scale)) + 1
        support = np.arange(-reach, reach + 1)
        cumulative = np.cumsum(np.exp(-0.5 * (support / scale) ** 2))
        uniform: FloatArray = self._rng.random(size) * cumulative[-1]
        return support[np.searchsorted(cumulative, uniform, side="right")]

    def _gaussian_by_rejection(self, scale: float, size: int) -> NDArray[np.int64]:
        """Round a Gaussian y to x; accept with odds exp((y**2 - x**2) / (2 scale**2)).

        Integrated over the cell of x, the accepted mass is proportional to
        exp(-x**2 / (2 scale**2)). The constant bounds the odds within the tail.
        """
        y = self._rng.standard_normal(size) * scale
        x = np.rint(y)
        log_odds = (y - x) * (y + x) / (2 * scale**2)
        largest = (_GAUSSIAN_TAIL * scale + 0.25) / (2 * scale**2)
        accepted = (np.abs(y) <= _GAUSSIAN_TAIL * scale) & (
            np.log1p(-self._rng.random(size)) <= log_odds - largest
        )
        return x[accepted].astype(np.int64)
