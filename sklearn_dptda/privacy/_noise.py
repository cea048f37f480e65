"""The only source of randomness of private releases.

Secure draws are integers from exact laws. No rounding of floating-point numbers affects them, since
it could reveal the input.

Proof: doc/theory/noise_and_calibration.md, "Integer noise".
"""

import math
import operator
import random
import secrets
from collections.abc import Callable, MutableSequence, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from sklearn_dptda._typing import FloatArray, RandomStateLike
from sklearn_dptda.privacy._border import Crossing, Law, Metric, crossed
from sklearn_dptda.privacy._exact_draws import ExactDraws, Kind
from sklearn_dptda.privacy._fixed_point import ROUND_UP
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.privacy._release_key import ReleaseKey

T = TypeVar("T")

# Below this scale, the law of a seeded Gaussian fits in a table of less than 600 probabilities.
_LARGEST_TABLE_SCALE = 32.0
# Seeded Gaussians are truncated at this multiple of the scale. The mass beyond, 2e-19, is below
# 2**-53.
_GAUSSIAN_TAIL = 9.0


class SeededDraws:
    """The same laws from a seeded NumPy generator: fast and reproducible, but not secure."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def laplace(self, scale: float, size: int) -> NDArray[np.int64]:
        """Integers with probabilities ~ exp(-|x| / scale), as differences of geometric draws."""
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
        """Round a Gaussian y to x, and accept x with odds exp((y**2 - x**2) / (2 scale**2)).

        ``largest`` bounds the logarithm of the odds within the truncation.
        """
        y = self._rng.standard_normal(size) * scale
        x = np.rint(y)
        log_odds = (y - x) * (y + x) / (2 * scale**2)
        largest = (_GAUSSIAN_TAIL * scale + 0.25) / (2 * scale**2)
        accepted = (np.abs(y) <= _GAUSSIAN_TAIL * scale) & (
            np.log1p(-self._rng.random(size)) <= log_odds - largest
        )
        return x[accepted].astype(np.int64)


# Number of 64-bit words. Probabilities of coins are multiples of its inverse.
_N_WORDS = 1 << 64
# At this scale, noise exceeds 64-bit integers with a probability of exp(-2048).
LARGEST_SCALE = 2.0**52


class NoiseSource:
    """Random integers for private releases, from the operating system, a seed or a key.

    Parameters
    ----------
    seed : int, key or None, default=None
        Source of the randomness.

        - None: the operating system's entropy. All laws are drawn exactly.
        - An integer: a NumPy generator with the same discrete distributions. It is
          reproducible and faster, but for tests and study only, because the noise
          can be undone with the seed.
        - A key, from a payment under a name: a pseudorandom stream from 256 secret
          bits, with the same exact draws.

    Attributes
    ----------
    seeded : bool
        Whether ``seed`` is an integer.
    key : ReleaseKey or None
        The key, if there is one. The noise can be undone with it.

    References
    ----------
    I. Mironov, "On significance of the least significant bits for differential privacy", CCS
    2012: noise in floating point is not private.

    C. Canonne, G. Kamath, T. Steinke, "The discrete Gaussian for differential privacy",
    NeurIPS 2020: the distributions and their exact samplers.

    Examples
    --------
    >>> from sklearn_dptda.privacy import NoiseSource
    >>> noise = NoiseSource(seed=0).discrete_gaussian(10.0, size=3)
    >>> noise.dtype, noise.shape
    (dtype('int64'), (3,))
    """

    def __init__(self, seed: int | ReleaseKey | None = None) -> None:
        self.key = seed if isinstance(seed, ReleaseKey) else None
        self.seeded = seed is not None and self.key is None
        # All draws under a key use the same stream, in their order.
        self._stream = None if self.key is None else self.key.stream()
        self._getrandbits: Callable[[int], int] = secrets.randbits
        if self._stream is not None:
            self._getrandbits = self._stream.getrandbits
        # Python's generator does not accept NumPy integers.
        self._seed = None if seed is None or isinstance(seed, ReleaseKey) else operator.index(seed)
        if self.seeded:
            self._getrandbits = random.Random(self._seed).getrandbits

    @cached_property
    def _sequence(self) -> np.random.SeedSequence:
        seed = self._seed if self.key is None else self._getrandbits(256)
        return np.random.SeedSequence(seed)

    @cached_property
    def _rng(self) -> np.random.Generator:
        return self.generator()

    @cached_property
    def _draws(self) -> ExactDraws | SeededDraws:
        return SeededDraws(self._rng) if self.seeded else ExactDraws(self)

    def cross(
        self,
        statistic: Any,
        draw: Callable[[Any], T],
        *,
        metric: Metric,
        sensitivity: float,
        rate: float,
        law: Law = "pure",
        weights: Sequence[float] = (),
    ) -> T:
        """Return ``draw(statistic)``, the result of one draw of a mechanism.

        All that a mechanism learns about the records passes through this method. The
        privacy checks watch it: they compare the statistics of neighbouring data sets
        with the declared sensitivity, and add up the privacy losses.

        Parameters
        ----------
        statistic : object
            A list, an array or a tuple of arrays of numbers, or any object if
            ``metric`` is a callable.
        draw : callable
            Function of the statistic that adds noise of this source. It must use no
            other function of the records.
        metric : {"l1", "l2", "linf", "range"} or callable
            Metric in which one record moves the statistic. ``"range"`` is the largest
            minus the smallest change of a list of costs. A callable takes the
            statistics of two data sets and returns their distance.
        sensitivity : float
            Largest distance between the statistics of two neighbours.
        rate : float
            Privacy loss for a unit of the metric. For Laplace and Gaussian noise, it
            is the inverse of the scale.
        law : {"pure", "range", "gaussian"}, default="pure"
            Whether the loss is an epsilon, an epsilon that also bounds the range of the
            loss, as that of the exponential mechanism, or the parameter mu of Gaussian
            noise.
        weights : sequence of float, default=()
            Factors of the parts of a tuple in the metric; none means 1 for each part.

        Returns
        -------
        object

        Examples
        --------
        >>> from sklearn_dptda.privacy import NoiseSource
        >>> noise, scale = NoiseSource(0), 2.0
        >>> noisy = noise.cross(
        ...     [1000], lambda n: n + noise.discrete_laplace(scale, 1), metric="l1",
        ...     sensitivity=1, rate=1 / scale,
        ... )
        >>> noisy.shape
        (1,)
        """
        return crossed(Crossing(statistic, metric, sensitivity, rate, law, weights), draw)

    def noisy_count(self, exact: int, mass: int, epsilon: float) -> tuple[int, float]:
        """Add Laplace noise to a count that one record changes by at most ``mass``.

        Parameters
        ----------
        exact : int
            The exact count.
        mass : int
            Largest change of the count by one record.
        epsilon : float
            Privacy loss of a change by one.

        Returns
        -------
        count : int
            The private count.
        scale : float
            Scale of its noise.
        """
        # Rounded up, so that rounding does not reduce the noise.
        scale = ROUND_UP / epsilon
        noisy = self.cross(
            exact,
            lambda n: n + int(self.discrete_laplace(scale, 1)[0]),
            metric="l1",
            sensitivity=mass,
            rate=inverse(scale),
        )
        return noisy, scale

    def below(self, n: int) -> int:
        """Draw an integer from ``{0, ..., n - 1}``, exactly uniformly.

        Parameters
        ----------
        n : int
            Upper limit, positive and of any size.

        Returns
        -------
        int
        """
        if n <= 0:
            raise ValueError("n must be positive.")
        bits = (n - 1).bit_length()
        if bits == 0:
            return 0
        while True:
            value = self._getrandbits(bits)
            if value < n:
                return value

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """Permute a list uniformly, in place.

        Parameters
        ----------
        items : list
        """
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]

    def words(self, size: int) -> NDArray[np.uint64]:
        """Draw uniform 64-bit words.

        Parameters
        ----------
        size : int

        Returns
        -------
        ndarray of shape (size,), dtype uint64
        """
        if self.seeded:
            return self._rng.integers(0, _N_WORDS, size=size, dtype=np.uint64)
        draw = secrets.token_bytes if self._stream is None else self._stream.take
        return np.frombuffer(draw(8 * size), dtype=np.uint64)

    def discrete_laplace(self, scale: float, size: int | tuple[int, ...]) -> NDArray[np.int64]:
        """Draw integers with probabilities proportional to ``exp(-abs(x) / scale)``.

        An integer of sensitivity ``D`` with this noise is exactly
        ``D / scale``-differentially private.

        Parameters
        ----------
        scale : float
            Scale of the noise, in [0, 2**52]. 0 gives zeros.
        size : int or tuple of int
            Shape of the result.

        Returns
        -------
        ndarray of shape ``size``, dtype int64
        """
        return self._draw("laplace", scale, size)

    def discrete_gaussian(self, scale: float, size: int | tuple[int, ...]) -> NDArray[np.int64]:
        """Draw integers with probabilities proportional to ``exp(-x**2 / (2 * scale**2))``.

        An integer vector of L2 sensitivity ``D`` with this noise is exactly
        ``D**2 / (2 * scale**2)``-zCDP.

        Parameters
        ----------
        scale : float
            Scale of the noise, in [0, 2**52]. 0 gives zeros.
        size : int or tuple of int
            Shape of the result.

        Returns
        -------
        ndarray of shape ``size``, dtype int64
        """
        return self._draw("gaussian", scale, size)

    def _draw(self, law: Kind, scale: float, size: int | tuple[int, ...]) -> NDArray[np.int64]:
        scale = float(scale)
        if not 0 <= scale <= LARGEST_SCALE:
            raise ValueError(f"scale must be in [0, 2**52]; got {quoted(scale)}.")
        n = math.prod(np.atleast_1d(size).tolist())
        if scale == 0 or n == 0:
            return np.zeros(n, dtype=np.int64).reshape(size)
        draw = self._draws.laplace if law == "laplace" else self._draws.gaussian
        return draw(scale, n).reshape(size)

    def generator(self) -> np.random.Generator:
        """Return a NumPy generator, for mechanisms whose guarantee is nominal.

        Each has an independent stream. Never add its floating-point draws to a
        statistic that a guarantee covers.

        Returns
        -------
        numpy.random.Generator
        """
        return np.random.default_rng(self._sequence.spawn(1)[0])


def inverse(scale: float) -> float:
    """Rate of noise of a scale: its inverse, infinite if there is no noise."""
    return 1 / scale if scale > 0 else math.inf


def public_generator(seed: int | ReleaseKey | None) -> np.random.Generator:
    """NumPy generator for choices that do not depend on records, from a seed, a key or entropy."""
    return np.random.default_rng(
        seed.stream().getrandbits(256) if isinstance(seed, ReleaseKey) else seed
    )


def flip_numerator(epsilon: float, n_categories: int) -> int:
    """Probability of a change in randomized response, times 2**64, rounded up."""
    if not epsilon > 0:
        raise ValueError(f"epsilon must be positive; got {quoted(epsilon)}.")
    if math.isinf(epsilon):
        return 0
    others = n_categories - 1
    # This is a lower bound of exp(epsilon). The arithmetic from here on is exact.
    growth = 1 + Fraction(math.expm1(min(epsilon, 700.0))) * (1 - Fraction(1, 2**50))
    numerator = math.ceil(_N_WORDS * others / (growth + others))
    # After rounding up, a change must not be likelier than no change by a factor above
    # exp(epsilon).
    if numerator > growth * (_N_WORDS - numerator) * others:
        raise ValueError(
            f"epsilon={epsilon!r} is too small for {n_categories} categories, because "
            "probabilities are multiples of 2**-64. Choose a larger epsilon."
        )
    return numerator


def spawn_seeds(random_state: RandomStateLike, n: int) -> list[int] | list[None]:
    """Draw ``n`` integer seeds below 2**32, or return ``n`` times None for the system's entropy.

    Seeds are drawn before any task starts, so that a result does not depend on the number of
    workers.
    """
    if random_state is None:
        return [None] * n
    if isinstance(random_state, np.random.Generator):
        return [int(s) for s in random_state.integers(0, 2**32, size=n)]
    if isinstance(random_state, np.random.RandomState):
        return [int(s) for s in random_state.randint(0, 2**32, size=n, dtype=np.uint64)]
    check_random_state(random_state)
    return [int(s) for s in np.random.SeedSequence(int(random_state)).generate_state(n)]
