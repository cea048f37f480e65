"""The one door through which the randomness of private releases enters.

Mechanisms ask for uniform integers and nothing else: no floating-point
number takes part in a draw, so none can betray the input of the mechanism.
"""

import random
import secrets

import numpy as np
from sklearn.utils import check_random_state


class IntegerSource:
    """Uniform random integers, from the operating system or from a seed.

    Parameters
    ----------
    seed : int or None
        None draws from the operating system's entropy. An integer makes the
        stream reproducible, for tests and study.
    """

    def __init__(self, seed=None):
        self.seeded = seed is not None
        self._getrandbits = random.Random(seed).getrandbits if self.seeded else secrets.randbits

    def below(self, n):
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

    def shuffle(self, items):
        """Permute a list in place, uniformly (Fisher and Yates)."""
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]


def spawn_seeds(random_state, n):
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
