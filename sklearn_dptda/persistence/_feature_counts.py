"""How many features outlive a threshold, or stand out: scores of the candidates, private choices.

Lifetimes are in decreasing order, and in whole steps wherever a choice is private.
"""

import math
from functools import reduce

import numpy as np

from sklearn_dptda.privacy import NoiseSource, private_choice

# Score of what neither end rules out: more than any lifetime.
_FAR = 2**62


def threshold_scores(lifetimes, threshold):
    """Scores of the counts 0, 1, ..., K of K lifetimes, the last of which means K or more.

    How far the threshold is from both ends of the gap between the j-th and the next; negative
    where it is outside. Each is the least of functions that move by as much as the lifetimes do.
    """
    above = np.concatenate([[_FAR], lifetimes - threshold])
    below = np.concatenate([threshold - lifetimes, [_FAR]])
    return np.minimum(above, below)


def gap_scores(lifetimes):
    """Scores of the counts 1, ..., K of K + 1 lifetimes: by how much the next one is shorter."""
    return lifetimes[:-1] - lifetimes[1:]


def choose_jointly(scores, rate, seed):
    """One index for each list of scores, by one choice: a combination scores as its worst part."""
    joint = reduce(np.minimum.outer, scores)
    index = private_choice(-joint.ravel(), rate, NoiseSource(seed), bounded_range=False)
    return [int(i) for i in np.unravel_index(index, joint.shape)]


def choose_apart(scores, rate, seed):
    """One index for each list of scores, by a choice each."""
    noise = NoiseSource(seed)
    return [private_choice(-each, rate, noise, bounded_range=False) for each in scores]


def missed_score(n_candidates, rate, failure):
    """By how much the chosen score may be below the best, but for a ``failure`` probability.

    Permute-and-flip takes a candidate that is ``x`` worse only if it comes before the best, and
    its coin of probability ``exp(-rate * x)`` succeeds.
    """
    return math.ceil(math.log(max((n_candidates - 1) / (2 * failure), 1.0)) / rate * (1 + 1e-9))
