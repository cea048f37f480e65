"""The law of permute-and-flip, by enumeration."""

import math
from itertools import permutations

import numpy as np


def permute_and_flip_law(costs, rate):
    """Over all orders: the first whose coin, of its weight, succeeds."""
    costs = np.asarray(costs, dtype=float)
    weights, law = np.exp(-rate * (costs - costs.min())), np.zeros(len(costs))
    for order in permutations(range(len(costs))):
        left = 1.0
        for index in order:
            law[index] += left * weights[index]
            left *= 1 - weights[index]
    return law / math.factorial(len(costs))
