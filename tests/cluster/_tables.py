"""Tables, budgets and layers for several tests of clusters."""

from dataclasses import replace

import numpy as np
import pytest

from sklearn_dptda.privacy import NoiseSource
from sklearn_dptda.rows._moments import GaussianBudget, LaplaceBudget

# Tables without spread, or with hardly any rows, on which means and covariances are undefined.
ODD_TABLES = {
    "zeros": np.zeros((50, 2)),
    "one corner": np.tile([1.0, -1.0], (50, 1)),
    "one row": np.array([[0.3, 0.4]]),
    "fewer rows than clusters": np.random.default_rng(0).uniform(size=(3, 2)),
    "one column": np.random.default_rng(0).uniform(size=(50, 1)),
}

BUDGETS = {
    "l1": LaplaceBudget(5.0, "add-remove", NoiseSource(0)),
    "l2": GaussianBudget(1.0, "add-remove", NoiseSource(0)),
}


def seeded(norm, seed, **changes):
    """A budget of Laplace (l1) or Gaussian (l2) noise from a seed."""
    return replace(BUDGETS[norm], noise=NoiseSource(seed), **changes)


def share_of(draws, budget):
    """Share of a budget that draws have lost together, by what they declare."""
    losses = [(draw.loss, draw.law) for draw in draws]
    if budget.norm == "l1":
        return sum(loss for loss, _ in losses) / budget.total
    # The zCDP of Gaussian noise is mu**2 / 2, and that of a choice is epsilon**2 / 8.
    rho = {"gaussian": 1 / 2, "range": 1 / 8}
    return sum(rho[law] * loss**2 for loss, law in losses) / (budget.total**2 / 2)


def case(unit, *values, **options):
    """Parameters of a test, in the unit layer or else among the laws.

    Few combinations are tried after each change, and all of them by continuous integration.
    """
    return pytest.param(*values, marks=() if unit else pytest.mark.laws, **options)
