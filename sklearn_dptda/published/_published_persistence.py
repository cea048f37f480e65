"""Persistence diagrams by the mechanisms that their paper prints: its chain, prior and utility."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import FloatArray, RandomStateLike
from sklearn_dptda.persistence import PrivatePersistence
from sklearn_dptda.persistence._mechanisms import BASE_MEASURES, ExactMechanism, too_far_apart
from sklearn_dptda.privacy import NoiseSource, PrivacyAccountant, PrivacyGuarantee
from sklearn_dptda.privacy._calibration import bounded_range_rate
from sklearn_dptda.utils._distances import bottleneck_distance
from sklearn_dptda.utils._sklearn import Interval, StrOptions


@fill_doc
class PublishedPersistence(PrivatePersistence):
    """Private persistence diagrams by Algorithm 1 of their paper, or by single parts of it.

    By default, this is the algorithm as printed: a Markov chain with exactly ``max_points``
    uniform points and one draw for each dimension. Each option that you set to the value of
    :class:`~sklearn_dptda.PrivatePersistence` replaces one part.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of one release of one cloud, for all homology dimensions together.
        ``inf`` gives the exact diagrams, without privacy.
    delta : float, default=0.0
        Failure probability of the guarantee, in [0, 1). It is used only with
        ``utility="sum"``, and only if it splits the budget between the dimensions better.
    homology_dimensions : int or sequence of int, default=(0, 1)
        Homology dimensions of the diagrams.
    max_points : int, default=10
        Number of points of a diagram, without the essential component; an upper bound with
        another base measure than ``"uniform"``.
    mechanism : {"mcmc", "exact"}, default="mcmc"
        ``"mcmc"`` runs a Metropolis-Hastings chain from public values. Its guarantee is
        nominal, because a chain that is stopped has not reached its stationary law.
        ``"exact"`` draws exactly, by rejection in integer arithmetic.
    utility : {"sum", "max"}, default="sum"
        ``"sum"`` draws the dimensions independently and splits the budget. ``"max"`` makes
        one draw for all dimensions, by the largest of their distances, at the full budget.
    base_measure : {"uniform", "spike-slab", "poisson"}, default="uniform"
        Law of the diagrams in the absence of data, for ``mechanism="exact"``.
        ``"uniform"``: exactly ``max_points`` points. ``"spike-slab"``: each of
        ``max_points`` slots is empty with probability ``spike``. ``"poisson"``: a Poisson
        number of points with mean ``mean_points``, at most ``max_points``.
    spike : float or "auto", default="auto"
        Probability of an empty slot; ``"auto"`` derives it from public numbers.
    mean_points : float, default=2.0
        Mean of the Poisson number of points.
    slab : {"uniform", "persistence"}, default="uniform"
        Density of a point under the base measure: constant, or proportional to its
        persistence. For ``mechanism="exact"``.
    %(function_bounds)s
    n_iter : int, default=10_000
        Number of steps of the chain.
    proposal_scale : float, default=0.1
        Standard deviation of the steps, in the units of the filtration.
    %(pays_for_transform)s

    Attributes
    ----------
    privacy_guarantee_ : PrivacyGuarantee
        The guarantee of one call of :meth:`transform` for each cloud.

    Notes
    -----
    .. rubric:: Privacy

    Each call of :meth:`transform` releases one set of diagrams per cloud. With a positive
    ``delta``, read "(``epsilon``, ``delta``)" for "``epsilon``". Error bounds are None or NaN
    with ``mechanism="mcmc"``.
    %(privacy_of_functions)s

    References
    ----------
    T. Kang, S. Kim, J. Sohn, J. Awan, "Differentially private topological data analysis",
    Algorithm 1.

    Examples
    --------
    >>> from sklearn_dptda import DTMFiltration
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> from sklearn_dptda.published import PublishedPersistence
    >>> X = DTMFiltration(m=0.2, bounds=(-3, 3.5)).fit_transform([make_two_circles(500)])
    >>> chain = PublishedPersistence(epsilon=2.0, n_iter=5)
    >>> [len(diagram) for diagram in chain.fit_transform(X)[0]]
    [10, 10]
    """

    _parameter_constraints = {
        **{
            name: constraint
            for name, constraint in PrivatePersistence._parameter_constraints.items()
            if name != "clipped_share"
        },
        "delta": [Interval(Real, 0, 1, closed="left")],
        "mechanism": [StrOptions({"exact", "mcmc"})],
        "utility": [StrOptions({"max", "sum"})],
        "base_measure": [StrOptions(set(BASE_MEASURES))],
        "mean_points": [Interval(Real, 0, None, closed="neither")],
        "slab": [StrOptions({"uniform", "persistence"})],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
        "proposal_scale": [Interval(Real, 0, None, closed="neither")],
    }

    clipped_share: bool = False

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        homology_dimensions: int | Sequence[int] = (0, 1),
        max_points: int = 10,
        mechanism: Literal["mcmc", "exact"] = "mcmc",
        *,
        utility: Literal["sum", "max"] = "sum",
        base_measure: Literal["uniform", "spike-slab", "poisson"] = "uniform",
        spike: float | Literal["auto"] = "auto",
        mean_points: float = 2.0,
        slab: Literal["uniform", "persistence"] = "uniform",
        sensitivity: float | None = None,
        upper: float | None = None,
        n_iter: int = 10_000,
        proposal_scale: float = 0.1,
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.homology_dimensions = homology_dimensions
        self.max_points = max_points
        self.mechanism = mechanism
        self.utility = utility
        self.base_measure = base_measure
        self.spike = spike
        self.mean_points = mean_points
        self.slab = slab
        self.sensitivity = sensitivity
        self.upper = upper
        self.n_iter = n_iter
        self.proposal_scale = proposal_scale
        self.accountant = accountant
        self.random_state = random_state
        self.n_jobs = n_jobs

    @staticmethod
    def _parameters_for_checks() -> dict[str, Any]:
        # The guarantee of a chain is nominal, and cannot be checked.
        return {"mechanism": "exact"}

    def _guarantee(self, public_bounds: bool) -> PrivacyGuarantee:
        guarantee = super()._guarantee(public_bounds)
        if self.mechanism == "exact":
            return guarantee
        names = ", ".join(self._names())
        return replace(
            guarantee,
            mechanism="exponential mechanism (Markov chain of finite length)",
            released=f"one persistence diagram per cloud and dimension ({names})",
            exact=math.isinf(self.epsilon),
        )

    def _losses(self, n_dimensions: int) -> tuple[int, float, float]:
        epsilon, delta = float(self.epsilon), float(self.delta)
        if self.utility == "max" or math.isinf(epsilon):
            return 1, epsilon, 0.0
        rate = bounded_range_rate(epsilon, delta, n_dimensions)
        return n_dimensions, rate, 0.0 if rate * n_dimensions <= epsilon else delta

    def _mechanism(self, n_dimensions: int) -> Any:
        _, rate, _ = self._losses(n_dimensions)
        joint, n = self.utility == "max", int(self.max_points)
        if self.mechanism == "mcmc":
            return MarkovChainMechanism(rate, joint, n, self.n_iter, self.proposal_scale)
        linear = self.slab == "persistence"
        return ExactMechanism(
            rate, joint, n, self.base_measure, self.spike, self.mean_points, linear
        )

    def _has_posterior(self) -> bool:
        law = self.mechanism, self.utility, self.base_measure, self.slab
        if law != ("exact", "max", "spike-slab", "uniform"):
            raise AttributeError(
                "posterior needs mechanism='exact', utility='max', base_measure='spike-slab' and "
                "slab='uniform'."
            )
        return True


def _diagrams_apart(diagrams: Sequence[FloatArray], others: Sequence[FloatArray]) -> float:
    return max(map(bottleneck_distance, diagrams, others))


@dataclass(frozen=True)
class MarkovChainMechanism:
    """Metropolis-Hastings chain that moves all points at once, from public starting values.

    The guarantee is nominal: its stationary law is the exponential mechanism with exactly
    ``max_points`` uniform points, at a privacy loss of ``rate`` per draw, but finitely many steps
    only approximate it. With ``joint``, one chain serves all dimensions, by the largest distance.
    """

    rate: float
    joint: bool
    max_points: int
    n_iter: int
    proposal_scale: float

    def check(self, sensitivity: float, upper: float) -> None:
        """Raise ValueError if these public numbers exceed the range of floats."""
        if not (2 * sensitivity > 0 and math.isfinite(self.rate / (2 * sensitivity))):
            raise too_far_apart(sensitivity, upper)

    def release(
        self,
        diagrams: Sequence[FloatArray],
        dimensions: Sequence[int],
        sensitivity: float,
        upper: float,
        seed: Any,
    ) -> list[FloatArray]:
        """Run the chain; see :meth:`ExactMechanism.release` for the parameters."""
        source = NoiseSource(seed)
        generator, slope = cache(source.generator), self.rate / (2 * sensitivity)
        groups = [diagrams] if self.joint else [[diagram] for diagram in diagrams]
        drawn = (
            source.cross(
                group,
                lambda group: self._chain(group, slope, upper, generator()),
                metric=_diagrams_apart,
                sensitivity=sensitivity,
                rate=2 * slope,
            )
            for group in groups
        )
        return list(chain.from_iterable(drawn))

    def _chain(
        self,
        diagrams: Sequence[FloatArray],
        slope: float,
        upper: float,
        rng: np.random.Generator,
    ) -> list[FloatArray]:
        def cost_of(state: FloatArray) -> float:
            return max(map(bottleneck_distance, state, diagrams))

        state = np.sort(rng.uniform(0, upper, (len(diagrams), self.max_points, 2)), axis=2)
        cost = cost_of(state)
        for _ in range(self.n_iter):
            proposal = state + self.proposal_scale * rng.standard_normal(state.shape)
            inside = (
                (proposal >= 0).all()
                and (proposal <= upper).all()
                and (proposal[..., 0] <= proposal[..., 1]).all()
            )
            if not inside:
                continue
            new_cost = cost_of(proposal)
            if math.log1p(-rng.random()) < slope * (cost - new_cost):
                state, cost = proposal, new_cost
        return [part[np.lexsort((part[:, 1], part[:, 0]))] for part in state]
