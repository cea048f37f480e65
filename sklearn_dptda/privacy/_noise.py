"""The one door through which the randomness of private releases enters.

Mechanisms ask for uniform integers or for integer noise: no floating-point
number takes part in a secure draw, so none can betray the mechanism's input.

Proof: doc/theory/noise_and_calibration.md, "Integer noise".
"""

import math
import operator
import random
import secrets
from collections.abc import Callable, MutableSequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from sklearn_dptda._typing import RandomStateLike
from sklearn_dptda.privacy._draws import KeyedDraws, SecureDraws, SeededDraws
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.privacy._release_key import ReleaseKey

# Number of 64-bit words; probabilities of coins are multiples of its inverse.
_N_WORDS = 1 << 64
# At this scale noise leaves 64-bit integers with a probability of exp(-2048).
_LARGEST_SCALE = 2.0**52


class NoiseSource:
    """Random integers for private releases, from the operating system or from a seed.

    Parameters
    ----------
    seed : int, ReleaseKey or None, default=None
        None draws from the operating system's entropy, Laplace and Gaussian
        noise by OpenDP's exact samplers. An integer gives the same discrete
        laws from a NumPy generator: reproducible, faster, for tests and study
        only, since whoever knows the seed can undo the noise. A key gives them
        from a pseudorandom stream of 256 secret bits, exactly and slowly, for
        tasks that may run again.

    Attributes
    ----------
    seeded : bool
        Whether a seed was given that is no key.
    key : ReleaseKey or None
        The key.

    References
    ----------
    I. Mironov, "On significance of the least significant bits for
    differential privacy", CCS 2012, for what goes wrong with noise in
    floating point.

    C. Canonne, G. Kamath, T. Steinke, "The discrete Gaussian for differential
    privacy", NeurIPS 2020, for the laws and their exact samplers.

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
        # All draws under a key take from one stream, in their order.
        self._stream = None if self.key is None else self.key.stream()
        self._getrandbits: Callable[[int], int] = secrets.randbits
        if self._stream is not None:
            self._getrandbits = self._stream.getrandbits
        # Python's generator does not take NumPy's integers.
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
    def _draws(self) -> SecureDraws | KeyedDraws | SeededDraws:
        if self.seeded:
            return SeededDraws(self._rng)
        return SecureDraws() if self.key is None else KeyedDraws(self)

    def below(self, n: int) -> int:
        """Draw an integer uniformly from ``{0, ..., n - 1}``, ``n`` of any size.

        Rejection keeps the draw exactly uniform.
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
        """Permute a list in place, uniformly (Fisher and Yates)."""
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]

    def words(self, size: int) -> NDArray[np.uint64]:
        """Uniform 64-bit words.

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
        """Integer noise with probabilities proportional to ``exp(-abs(x) / scale)``.

        Added to an integer of sensitivity ``D``, it is exactly
        ``D / scale``-differentially private.

        Parameters
        ----------
        scale : float
            In [0, 2**52]; 0 gives zeros.
        size : int or tuple of int

        Returns
        -------
        ndarray of shape ``size``, dtype int64
        """
        return self._draw("laplace", scale, size)

    def discrete_gaussian(self, scale: float, size: int | tuple[int, ...]) -> NDArray[np.int64]:
        """Integer noise with probabilities proportional to ``exp(-x**2 / (2 * scale**2))``.

        Added to an integer vector of L2 sensitivity ``D``, it is exactly
        ``D**2 / (2 * scale**2)``-zCDP.

        Parameters
        ----------
        scale : float
            In [0, 2**52]; 0 gives zeros.
        size : int or tuple of int

        Returns
        -------
        ndarray of shape ``size``, dtype int64
        """
        return self._draw("gaussian", scale, size)

    def _draw(
        self, law: Literal["laplace", "gaussian"], scale: float, size: int | tuple[int, ...]
    ) -> NDArray[np.int64]:
        scale = float(scale)
        if not 0 <= scale <= _LARGEST_SCALE:
            raise ValueError(f"scale must be in [0, 2**52]; got {quoted(scale)}.")
        n = math.prod(np.atleast_1d(size).tolist())
        if scale == 0 or n == 0:
            return np.zeros(n, dtype=np.int64).reshape(size)
        draw = self._draws.laplace if law == "laplace" else self._draws.gaussian
        return draw(scale, n).reshape(size)

    def generator(self) -> np.random.Generator:
        """NumPy generator, for mechanisms whose guarantee is nominal anyway.

        Floating-point draws from it must never be added to a statistic that
        a guarantee covers. Each call opens a stream of its own.
        """
        return np.random.default_rng(self._sequence.spawn(1)[0])


def public_generator(seed: int | ReleaseKey | None) -> np.random.Generator:
    """NumPy generator for choices that touch no record, from a seed, a key, or entropy."""
    return np.random.default_rng(
        seed.stream().getrandbits(256) if isinstance(seed, ReleaseKey) else seed
    )


def flip_numerator(epsilon: float, n_categories: int) -> int:
    """Probability of a change in randomized response, times 2**64, rounded up.

    Parameters
    ----------
    epsilon : float
    n_categories : int

    Returns
    -------
    int
    """
    if not epsilon > 0:
        raise ValueError(f"epsilon must be positive; got {quoted(epsilon)}.")
    if math.isinf(epsilon):
        return 0
    others = n_categories - 1
    # exp(epsilon) from below, in exact arithmetic from here on.
    growth = 1 + Fraction(math.expm1(min(epsilon, 700.0))) * (1 - Fraction(1, 2**50))
    numerator = math.ceil(_N_WORDS * others / (growth + others))
    # Rounding up must not make a change likelier than staying, by more than epsilon.
    if numerator > growth * (_N_WORDS - numerator) * others:
        raise ValueError(
            f"epsilon={epsilon!r} is too small for {n_categories} categories: probabilities are "
            "multiples of 2**-64."
        )
    return numerator


def spawn_seeds(random_state: RandomStateLike, n: int) -> list[int] | list[None]:
    """Draw ``n`` integer seeds below 2**32, or ``n`` times None where entropy is to be used.

    Seeds are drawn before any work is dispatched, so that a result never
    depends on the number of workers.

    Parameters
    ----------
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None stands for the operating system's entropy.
    n : int
        Number of seeds.

    Returns
    -------
    list of int or list of None
    """
    if random_state is None:
        return [None] * n
    if isinstance(random_state, np.random.Generator):
        return [int(s) for s in random_state.integers(0, 2**32, size=n)]
    if isinstance(random_state, np.random.RandomState):
        return [int(s) for s in random_state.randint(0, 2**32, size=n, dtype=np.uint64)]
    check_random_state(random_state)
    return [int(s) for s in np.random.SeedSequence(int(random_state)).generate_state(n)]
