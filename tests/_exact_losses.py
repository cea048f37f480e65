"""Exact privacy losses of a fit: the release from one table is replayed for a neighbour."""

from collections import defaultdict

import numpy as np
from sklearn.base import clone

from sklearn_dptda.privacy import NoiseSource
from sklearn_dptda.utils._privacy_checks._border_checks import recorded


def scales_of_laplace(monkeypatch):
    """Scales of all discrete Laplace noise from now on, in a list that grows; none is added."""
    scales = []

    def without_noise(self, scale, size):
        scales.append(scale)
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(NoiseSource, "discrete_laplace", without_noise)
    return scales


def draws_of(compute):
    """What enters each draw of a computation, and what it was told about its sensitivity."""
    return recorded(compute).crossings


def losses(estimator, first, second):
    """Losses between two tables, for what was released of one: "pure", "gaussian" and "choice".

    Epsilons of Laplace noise and of choices are added up, and so are squares of Gaussian losses. A
    choice adds what has the same zCDP to both. Its own largest loss is "choice". Tables may be
    pairs of rows and labels.
    """

    def fit(table):
        clone(estimator).fit(*(table if isinstance(table, tuple) else (table,)))

    transcript, found = recorded(lambda: fit(first)), defaultdict(float)
    moves = transcript.replay(lambda: fit(second))
    assert len(moves) > 0
    for crossing, move in zip(transcript.crossings, moves, strict=True):
        lost = move * crossing.loss
        if crossing.metric == "range":
            found["choice"] = max(found["choice"], lost)
        if crossing.law != "gaussian":
            found["pure"] += lost
        if crossing.law != "pure":
            found["gaussian"] += (lost if crossing.law == "gaussian" else lost / 2) ** 2
    return found
