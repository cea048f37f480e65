"""Randomized response of categories, with the flip probability of the package."""

import numpy as np

from sklearn_dptda.privacy._noise import flip_numerator


def randomized_response(noise, values, n_categories, epsilon):
    """Keep each category, or replace it by another one, uniformly chosen."""
    values = np.asarray(values, dtype=np.int64)
    out = values.ravel().copy()
    numerator = flip_numerator(epsilon, n_categories)
    change = noise.words(out.size) < np.uint64(numerator)
    step = np.array([noise.below(n_categories - 1) + 1 for _ in range(out.size)], dtype=np.int64)
    out[change] = (out[change] + step[change]) % n_categories
    return out.reshape(values.shape)
