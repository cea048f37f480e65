"""Exact privacy losses of a fit: the release from one table is replayed for a neighbour."""

from collections import defaultdict

import numpy as np
from sklearn.base import clone

from sklearn_dptda.privacy import NoiseSource
from sklearn_dptda.rows import _moments


class Transcript:
    """Noisy sums of a fit, replayed for a neighbour, whose losses they tell exactly."""

    def __init__(self):
        self.sums, self.losses, self.place, self.replayed = [], defaultdict(float), 0, False

    def add(self, kind, scale, exact, noise):
        if not self.replayed:
            self.sums.append((kind, scale, exact, exact + noise))
            return self.sums[-1][3]
        kept, at, before, noisy = self.sums[self.place]
        self.place += 1
        assert (kept, at) == (kind, scale) and np.shape(before) == np.shape(exact)
        moved = np.abs(np.asarray(exact, dtype=object) - np.asarray(before, dtype=object))
        power = 1 if kind == "laplace" else 2
        self.losses[kind] += float(np.sum((moved / scale).astype(float) ** power))
        return noisy

    def choose(self, costs, rate, chosen):
        if not self.replayed:
            self.sums.append(("choice", rate, costs, chosen))
            return chosen
        _, at, before, chosen = self.sums[self.place]
        self.place += 1
        assert at == rate
        moved = [after - cost for after, cost in zip(costs, before, strict=True)]
        self.losses["choice"] = max(self.losses["choice"], rate * (max(moved) - min(moved)))
        # The zCDP of Gaussian noise with this parameter.
        self.losses["gaussian"] += (rate * (max(moved) - min(moved)) / 2) ** 2
        return chosen


class Noise:
    """Noise that a transcript adds, in whatever array it is wanted."""

    def __init__(self, transcript, kind, scale, drawn):
        self.parts = transcript, kind, scale, drawn

    def __array_ufunc__(self, ufunc, method, exact, noise, out=None):
        assert ufunc is np.add and noise is self
        transcript, kind, scale, drawn = self.parts
        noisy = transcript.add(kind, scale, exact.copy(), drawn)
        if out is None:
            return noisy
        out[0][...] = noisy
        return out[0]


def scales_of_laplace(monkeypatch):
    """Scales of all discrete Laplace noise from now on, in a list that grows; none is added."""
    scales = []

    def without_noise(self, scale, size):
        scales.append(scale)
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(NoiseSource, "discrete_laplace", without_noise)
    return scales


def losses(estimator, first, second, monkeypatch):
    """Losses of Laplace and Gaussian noise between two tables, for what was released of one.

    Squared and added up for Gaussian noise. Tables may be pairs of rows and labels.
    """
    transcript = Transcript()
    laplace, gaussian = NoiseSource.discrete_laplace, NoiseSource.discrete_gaussian
    with monkeypatch.context() as patch:
        for name, draw in (("discrete_laplace", laplace), ("discrete_gaussian", gaussian)):
            kind = name.removeprefix("discrete_")
            patch.setattr(
                NoiseSource,
                name,
                lambda self, scale, size, draw=draw, kind=kind: Noise(
                    transcript, kind, scale, draw(self, scale, size)
                ),
            )
        choice = _moments.private_choice
        patch.setattr(
            _moments,
            "private_choice",
            lambda costs, rate, noise, **options: transcript.choose(
                costs, rate, choice(costs, rate, noise, **options)
            ),
        )
        for table in (first, second):
            clone(estimator).fit(*(table if isinstance(table, tuple) else (table,)))
            transcript.replayed = True
    assert transcript.place == len(transcript.sums) > 0
    return transcript.losses
