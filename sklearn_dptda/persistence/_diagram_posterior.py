"""How probable each point of a private diagram is, and what the exact diagram may be.

Proof: doc/theory/posterior.md, "The rule".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.persistence._likelihood import Likelihood
from sklearn_dptda.persistence._mechanisms import ExactMechanism, LawOfDraw
from sklearn_dptda.persistence._posterior_draws import (
    GATE_DECAY,
    GATES,
    LEAST,
    SHORTEST,
    Draws,
    Prior,
    Release,
    posterior_draws,
)
from sklearn_dptda.persistence._private_cap import grids_of_caps, prior_of_caps
from sklearn_dptda.persistence._private_grid_persistence import Public
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.utils._distances import as_diagram

# Draws of a smaller share of the largest weight are not kept.
_LEAST_WEIGHT = 1e-7


class DiagramPosterior:
    """What one private release says about the exact diagrams: probabilities, given a public prior.

    It is post-processing of the release and of public numbers, so it costs no privacy. The law of
    a release is known, so the probabilities follow from the prior alone. They hold on average
    over the prior, whereas ``error_bound_`` and :func:`beyond_noise` hold for every diagram with
    few long features, and allow fewer claims. :meth:`PrivatePersistence.posterior` makes it.

    Attributes
    ----------
    probability : list of ndarray of shape (n,)
        For each dimension, and each released point, the probability that the exact diagram has a
        feature such that both are closer to each other than to the diagonal, in the maximum norm.
        It is 1 for the essential component, which always exists, wherever it is born, and NaN if
        ``converged`` is False.
    converged : bool
        Whether enough draws agree with the release. Otherwise there is no answer: for example,
        because the release has as many points as ``max_points`` allows, so that features of the
        exact diagram may not be shown.
    message : str
        Why there is no answer, or an empty string.
    n_effective : float
        Effective number of the draws from which probabilities are computed.

    See Also
    --------
    beyond_noise : The points that are not noise, whatever the exact diagram is.

    Notes
    -----
    The exact diagram is that under the cap of the distances that was drawn. Only its features whose
    persistence exceeds three scales of noise are counted, because no release shows shorter ones.
    Their number in each dimension has a Poisson law, whose mean is a third of
    ``expected_features``, as much or three times as much. Their persistences are log-uniform, and
    their births are uniform. If the exact diagram has many more features, or four and more of about
    the same length, points are less certain than stated: a release shows features of one length
    together or not at all, and noise may be as long as the missed ones. For such shapes, release
    the cloud by :class:`PrivateCloud`.

    Examples
    --------
    >>> from sklearn_dptda import DTMFiltration, PrivatePersistence
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> clouds = [make_two_circles(4000, random_state=0)]
    >>> X = DTMFiltration(m=0.2, bounds=(-3, 3.5)).fit_transform(clouds)
    >>> private = PrivatePersistence(epsilon=1.0, random_state=0)
    >>> posterior, = private.posterior(private.fit_transform(X))
    >>> int((posterior.probability[1] > 0.95).sum())
    2
    """

    def __init__(
        self,
        draws: Draws | None,
        released: "ReleasedDiagrams",
        message: str = "",
    ) -> None:
        self._released, self.message, self.converged = released, message, draws is not None
        self.n_effective = 0.0
        if draws is not None:
            self.n_effective = draws.n_effective
            # Draws of next to no weight are not kept.
            kept = draws.weights > _LEAST_WEIGHT * draws.weights.max()
            self._weights = draws.weights[kept] / draws.weights[kept].sum()
            values = released.values
            self._features = [values(features[kept]) for features in draws.features]
            self._births = None if draws.births is None else values(draws.births[kept])
        self.probability = [
            np.array([self._probability(q, i) for i in range(len(diagram))], dtype=float)
            for q, diagram in enumerate(released.diagrams)
        ]

    def __repr__(self) -> str:
        """Return the probabilities, or why there are none."""
        if not self.converged:
            return f"{type(self).__name__}(no answer: {self.message})"
        parts = [
            f"H{q}: {', '.join(f'{p:.2f}' for p in each) or 'no point'}"
            for q, each in zip(self._released.dimensions, self.probability, strict=True)
        ]
        return f"{type(self).__name__}({'; '.join(parts)})"

    def _apart(self, q: int, i: int) -> FloatArray:
        """Return the distances of the features of each draw from the released point ``i``.

        They are infinite for features that do not belong to the point.
        """
        features, point = self._features[q], self._released.diagrams[q][i]
        apart = np.abs(features - point).max(axis=2, initial=0.0)
        half = np.minimum(features[:, :, 1] - features[:, :, 0], point[1] - point[0]) / 2
        return np.where(apart <= half - self._released.error, apart, np.inf)

    def _probability(self, q: int, i: int) -> float:
        if i == self._released.essential[q]:
            return 1.0
        if not self.converged:
            return math.nan
        near = np.isfinite(self._apart(q, i)).any(axis=1)
        # Sums are rounded: a certain point has probability 1, not slightly more.
        return min(1.0, float(self._weights @ near))

    def interval(self, level: float = 0.95) -> list[FloatArray]:
        """Compute intervals of the births and deaths of the features near the released points.

        Parameters
        ----------
        level : float, default=0.95
            Probability of each interval, if there is a feature near the point.

        Returns
        -------
        list of ndarray of shape (n, 2, 2)
            For each dimension and each released point, the least and the largest birth, and the
            least and the largest death, in the units of the filtration. NaN where no draw has a
            feature near the point, or if ``converged`` is False.
        """
        if not 0 < level < 1:
            raise ValueError(f"level={quoted(level)} must be a number between 0 and 1.")
        tails = np.array([(1 - level) / 2, (1 + level) / 2])
        return [
            np.array([self._interval(q, i, tails) for i in range(len(diagram))]).reshape(-1, 2, 2)
            for q, diagram in enumerate(self._released.diagrams)
        ]

    def _interval(self, q: int, i: int, tails: FloatArray) -> FloatArray:
        if not self.converged:
            return np.full((2, 2), np.nan)
        error = self._released.error * np.array([-1.0, 1.0])
        if self._births is not None and i == self._released.essential[q]:
            births = _quantiles(self._births, self._weights, tails) + error
            return np.array([births, [self._released.death] * 2])
        apart = self._apart(q, i)
        draws = np.flatnonzero(np.isfinite(apart).any(axis=1))
        if not len(draws):
            return np.full((2, 2), np.nan)
        found, weights = self._features[q][draws, apart[draws].argmin(axis=1)], self._weights[draws]
        return np.array([_quantiles(each, weights, tails) + error for each in found.T])

    def count(self, dimension: int, longer_than: float) -> FloatArray:
        """Compute the law of the number of features that persist longer than a threshold.

        Parameters
        ----------
        dimension : int
            Homology dimension. In dimension 0, the essential component is counted, too.
        longer_than : float
            Persistence, in the units of the filtration.

        Returns
        -------
        ndarray of shape (most + 1,)
            The probabilities of 0, 1, 2, ... features. It is empty if ``converged`` is False.
        """
        if dimension not in self._released.dimensions:
            raise ValueError(
                f"dimension={quoted(dimension)} must be one of the released homology dimensions "
                f"{self._released.dimensions}."
            )
        shortest = self._released.shortest
        if not longer_than >= shortest:
            raise ValueError(
                f"longer_than={quoted(longer_than)} must be at least {shortest:.3g}, the "
                "persistence from which on the prior counts features."
            )
        if not self.converged:
            return np.empty(0)
        q = self._released.dimensions.index(dimension)
        lengths = self._features[q][:, :, 1] - self._features[q][:, :, 0]
        number = (lengths > longer_than).sum(axis=1)
        if dimension == 0 and self._births is not None:
            number = number + (self._released.death - self._births > longer_than)
        return np.bincount(number, weights=self._weights).astype(float)

    def sample(self, n_diagrams: int = 100) -> list[list[FloatArray]]:
        """Draw exact diagrams that agree with the release, for bands of any other statistic.

        Each call gives the same diagrams, without their features below the noise.

        Parameters
        ----------
        n_diagrams : int, default=100
            Number of draws.

        Returns
        -------
        list of list of ndarray of shape (m, 2)
            For each draw, one diagram for each dimension, in the units of the filtration. The
            list is empty if ``converged`` is False.
        """
        if not (isinstance(n_diagrams, Integral) and n_diagrams >= 1):
            raise ValueError(f"n_diagrams={quoted(n_diagrams)} must be an integer of at least 1.")
        if not self.converged:
            return []
        # Systematic resampling: equal steps through the cumulative weights.
        at = (np.arange(n_diagrams) + 0.5) / n_diagrams
        chosen = np.minimum(np.searchsorted(np.cumsum(self._weights), at), len(self._weights) - 1)
        return [self._drawn(i) for i in chosen]

    def _drawn(self, i: int) -> list[FloatArray]:
        diagrams = []
        for q, features in enumerate(self._features):
            own = features[i][features[i, :, 1] > features[i, :, 0]]
            if self._released.dimensions[q] == 0 and self._births is not None:
                own = np.vstack([own, [[self._births[i], self._released.death]]])
            diagrams.append(own[np.lexsort((own[:, 1], own[:, 0]))])
        return diagrams


def _quantiles(values: FloatArray, weights: FloatArray, tails: FloatArray) -> FloatArray:
    order = np.argsort(values)
    cumulative = np.cumsum(weights[order])
    at = np.searchsorted(cumulative, tails * cumulative[-1])
    return values[order][np.minimum(at, len(values) - 1)]


@dataclass(frozen=True)
class ReleasedDiagrams:
    """One release in the units of the function, and the public numbers on which its law depends."""

    diagrams: list[FloatArray]
    dimensions: tuple[int, ...]
    law: LawOfDraw
    # The death that is written for the essential component, whatever cap was drawn.
    death: float
    # Error of the function itself, whose points may have been moved to a lattice.
    error: float
    # Whether a smaller cap than the default one was drawn, whose gate is unknown.
    has_gate: bool

    @classmethod
    def of(
        cls,
        mechanism: ExactMechanism,
        diagrams: Sequence[ArrayLike],
        dimensions: tuple[int, ...],
        caps: Sequence[Public],
        cap: float,
        error: float,
    ) -> Self:
        """Return the release that was drawn under ``cap``, the upper bound of one of ``caps``."""
        caps = caps[: len(prior_of_caps(mechanism, caps))]
        law, uppers = mechanism.prepare(*caps[0]), [upper for _, upper in caps]
        if len(caps) > 1:
            law = law._replace(grid=grids_of_caps(law.grid, caps)[uppers.index(cap)])
        if len(diagrams) != len(dimensions):
            raise ValueError(f"diagrams must have one diagram for each of H{dimensions}.")
        arrays = [
            as_diagram(d, f"a diagram of H{q}") for d, q in zip(diagrams, dimensions, strict=True)
        ]
        released = cls(arrays, dimensions, law, uppers[0], error, cap != uppers[0])
        released._check()
        return released

    def _check(self) -> None:
        """Raise an error if a point is not on the grid of the cap."""
        for q, diagram in enumerate(self.diagrams):
            if (diagram[:, 1] <= diagram[:, 0]).any():
                raise ValueError("diagrams has a point whose death is not after its birth.")
            finite = np.delete(diagram, self.essential_at(q), axis=0)
            if not np.allclose(
                self.values(self.steps(finite)), finite, rtol=0, atol=1e-9 * self.death
            ):
                raise ValueError(
                    "diagrams has points that are not on the grid of a release under cap_. Pass "
                    "what the last transform of this estimator returned."
                )

    @property
    def essential(self) -> list[int | None]:
        """Index of the essential component among the points of each dimension, None without it.

        It is the oldest of those points that die at the public upper bound. It is not released if
        it is born there.
        """
        return [next(iter(self.essential_at(q)), None) for q in range(len(self.diagrams))]

    def essential_at(self, q: int) -> list[int]:
        """Return the index of the essential component in a list, which is empty without it."""
        if self.dimensions[q] > 0:
            return []
        births, deaths = self.diagrams[q].T
        dying = np.flatnonzero(deaths >= self.death * (1 - 1e-9))
        return [int(dying[births[dying].argmin()])] if len(dying) else []

    @property
    def shortest(self) -> float:
        """Persistence from which on the prior counts features."""
        return self.law.grid.step * self.prior(1.0).shortest

    def prior(self, expected_features: float) -> Prior:
        """Return the prior of each dimension, in grid steps."""
        size = self.law.grid.size
        return Prior(
            expected_features, min(max(SHORTEST / self.law.table.rate, 1.0), size / 2), size
        )

    def steps(self, values: FloatArray) -> FloatArray:
        """Convert units of the function into grid steps."""
        grid = self.law.grid
        # The last step may be beyond the upper bound, at which it is released.
        last = values >= grid.upper * (1 - 1e-9)
        return np.where(last, grid.size, np.clip(np.rint(values / grid.step), 0, grid.size))

    def values(self, steps: FloatArray) -> FloatArray:
        """Convert grid steps into the units of the function."""
        return np.minimum(steps * self.law.grid.step, self.law.grid.upper)

    def release(self) -> Release:
        """Return the release in grid steps."""
        birth = None
        if 0 in self.dimensions:
            q = self.dimensions.index(0)
            born = self.diagrams[q][self.essential_at(q), 0]
            birth = float(self.steps(born)[0]) if len(born) else float(self.law.grid.size)
        finite = [np.delete(d, self.essential_at(q), axis=0) for q, d in enumerate(self.diagrams)]
        return Release([self.steps(d) for d in finite], birth)

    def posterior(self, expected_features: float) -> DiagramPosterior:
        """Return the posterior of the exact diagrams under the cap that was drawn."""
        release = self.release()
        most = self.law.measure.max_points
        if max(map(len, release.diagrams)) >= most:
            full = f"a diagram has max_points={most} points, so features may be missing"
            return DiagramPosterior(None, self, full)
        gates = GATES if self.has_gate else np.zeros(1)
        likelihood = Likelihood(self.law, (gates / self.law.table.rate).tolist())
        log_gates = -GATE_DECAY * gates
        log_gates -= np.logaddexp.reduce(log_gates)
        draws = posterior_draws(likelihood, log_gates, release, self.prior(expected_features))
        if draws.n_effective < LEAST:
            few = f"only {draws.n_effective:.0f} of {draws.n_draws} draws agree with the release"
            return DiagramPosterior(None, self, few)
        return DiagramPosterior(draws, self)
