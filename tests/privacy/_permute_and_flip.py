"""The law of permute-and-flip, by enumeration and, for many candidates, by an integral."""

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


def permute_and_flip_law_of_many(costs, rate):
    """Candidates come at uniform times, and all that came before have failed."""
    costs = np.asarray(costs, dtype=float)
    weights = np.exp(-rate * (costs - costs.min()))
    # The rule is exact for polynomials of the degree of the integrand.
    nodes, parts = np.polynomial.legendre.leggauss(len(costs) // 2 + 1)
    times, parts = (nodes + 1) / 2, parts / 2
    failed = 1 - times[:, None] * weights
    # All except one fail. The one that always succeeds would give a quotient of zeros.
    zeros = failed == 0
    logs = np.log(np.where(zeros, 1.0, failed))
    others = np.where(
        zeros.sum(axis=1)[:, None] - zeros > 0, -np.inf, logs.sum(axis=1)[:, None] - logs
    )
    return weights * (parts @ np.exp(others))
