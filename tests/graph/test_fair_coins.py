"""Flips at epsilon zero are fair coins, which reveal nothing of the graph and cost nothing."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sklearn_dptda.graph import AdjacencySpectralEmbedding, EdgeFlip, LaplaceFlip
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyBudgetExceeded
from tests._refusals import refuses


@pytest.mark.parametrize("storage", ["sparse", "packed"])
def test_edge_flip_at_epsilon_zero_throws_fair_coins(storage, graph):
    # Corollary 1 (iii): for every graph, each pair is an edge with probability one half. Within
    # five standard errors, which is a false-alarm rate of 6e-7.
    complete = np.ones((100, 100)) - np.eye(100)
    for X in (graph, np.zeros((100, 100)), complete):
        noisy = EdgeFlip(0.0, storage=storage, random_state=0).fit_transform(X)
        assert noisy.flip_probability == 0.5
        edges = noisy.toarray().sum() / 2
        assert abs(edges - 2475) < 5 * math.sqrt(4950) / 2
    refuses("nothing of the graph is left", AdjacencySpectralEmbedding(2).fit, noisy)


def largest_loss(numerator):
    """Worst log-ratio of neighbours on one pair, from the integer that coins are thrown with."""
    stay, change = (1 << 64) - numerator, numerator
    return max(math.log(Fraction(stay, change)), math.log(Fraction(change, stay)))


def test_edge_flip_at_epsilon_zero_loses_exactly_zero():
    assert largest_loss(EdgeFlip(0.0)._numerator()) == 0
    assert largest_loss(EdgeFlip(1e-15)._numerator()) > 0
    # A probability that is lower by 2^-20 is not a fair coin any more.
    assert largest_loss((1 << 63) - (1 << 43)) > 0
    # Rounded Laplace noise still refuses it.
    refuses("epsilon", LaplaceFlip(0.0).fit, np.zeros((3, 3)))


@pytest.mark.parametrize("options", [{}, {"composition": "zcdp", "delta": 1e-6}], ids=str)
def test_accountant_records_loss_of_zero_under_any_budget(options, graph):
    accountant = PrivacyAccountant(1.0, **options)
    flip = EdgeFlip(0.0, accountant=accountant)
    flip.fit_transform(graph)
    assert accountant.total() == (0.0, 0.0) and len(accountant) == 1
    accountant.spend(accountant.remaining().epsilon)
    flip.fit_transform(graph)
    assert flip.privacy_guarantee_.epsilon == 0 and len(accountant) == 3
    refuses(None, flip.set_params(epsilon=0.1).fit_transform, graph, error=PrivacyBudgetExceeded)
