"""Persistence diagrams under differential privacy.

Proof: doc/theory/exact_sampler.md, "The law".
Proof: doc/theory/exact_sampler.md, "The share of clipped points".
"""

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from sklearn.utils import Tags

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import FloatArray, RandomStateLike
from sklearn_dptda.filtration._filtration import POINT
from sklearn_dptda.persistence._cubical import CubicalPersistence, Diagrams, Functions
from sklearn_dptda.persistence._error_statement import errors_of_fit, errors_of_release
from sklearn_dptda.persistence._mechanisms import (
    BASE_MEASURES,
    CLIPPED_SHARE,
    MAX_GRID_SIZE,
    STEPS_PER_SCALE,
    ExactMechanism,
    MarkovChainMechanism,
    losses_of_draws,
    mechanism_of,
)
from sklearn_dptda.persistence._private_cap import prior_of_caps, release_with_cap
from sklearn_dptda.persistence._private_grid_persistence import GridFunction, PrivateGridPersistence
from sklearn_dptda.privacy import (
    NoiseSource,
    PrivacyAccountant,
    PrivacyGuarantee,
    bounded_range_rho,
    pure_rho,
)
from sklearn_dptda.privacy._fixed_point import ROUND_UP
from sklearn_dptda.utils._clouds import check_collection
from sklearn_dptda.utils._distances import bottleneck_distance
from sklearn_dptda.utils._sklearn import Interval, ListOutputMixin, StrOptions
from sklearn_dptda.utils._tasks import run, tasks_may_repeat

_MECHANISMS = {
    "exact": "exponential mechanism (exact draw in integer arithmetic)",
    "mcmc": "exponential mechanism (Markov chain of finite length)",
}


@fill_doc
class PrivatePersistence(ListOutputMixin, PrivateGridPersistence):
    """Persistence diagrams under differential privacy.

    Draws, for each filtration, diagrams from the exponential mechanism of the
    bottleneck distance to the exact ones: the closer, the likelier. The
    number of points is private as well. The draw is exact, by rejection in
    integer arithmetic, not the last state of a Markov chain.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of one release of one cloud, all homology dimensions
        together. ``inf`` releases the exact diagrams.
    delta : float, default=0.0
        With ``utility="sum"``, lets the dimensions share the budget by the
        composition of bounded-range mechanisms where that is better than the
        pure split. Not needed, and not spent, otherwise.
    homology_dimensions : int or sequence of int, default=(0, 1)
        Which diagrams to release.
    max_points : int, default=10
        Public bound of the number of points of a diagram, from 1 to 30, the
        essential component not counted. Also the exact number for
        ``base_measure="uniform"``.
    mechanism : {"exact", "mcmc"}, default="exact"
        ``"mcmc"`` runs a Metropolis-Hastings chain after Algorithm 1 of the
        paper, but from a public start, and with ``utility="sum"`` one for
        each dimension, for comparison: its guarantee is nominal, because a
        chain that is stopped has not reached its stationary law.
    utility : {"max", "sum"}, default="max"
        ``"max"``: one draw for all dimensions, by the largest of their
        distances, each at the full budget. ``"sum"``: the dimensions are
        drawn independently and share the budget.
    base_measure : {"spike-slab", "uniform", "poisson"}, default="spike-slab"
        What diagrams look like before the data speak: ``"spike-slab"``: each
        of ``max_points`` slots is empty with probability ``spike``;
        ``"uniform"``: exactly ``max_points`` points, the published choice;
        ``"poisson"``: a Poisson number of points of mean ``mean_points``, at
        most ``max_points``.
    spike : float or "auto", default="auto"
        Probability of an empty slot. ``"auto"`` follows from public numbers:
        where noise rules, nearly all slots are empty, so that a release is
        hardly worse than an empty diagram.
    mean_points : float, default=2.0
        Mean of the Poisson number of points.
    slab : {"uniform", "persistence"}, default="uniform"
        Density of a point: constant, or proportional to its persistence.
    %(function_bounds)s
    clipped_share : bool, default=False
        Whether to release as well, for a twentieth of ``epsilon``, which share
        of the points of each cloud lies outside the bounds: diagrams of a box
        that misses the points look like those of a cloud without features.
    n_iter : int, default=10_000
        Steps of the chain for ``mechanism="mcmc"``.
    proposal_scale : float, default=0.1
        Standard deviation of its steps, in the units of the filtration.
    %(pays_for_transform)s

    Attributes
    ----------
    privacy_guarantee_ : PrivacyGuarantee
        What one call of :meth:`transform` promises for each cloud.
    error_bound_ : float or None
        Bottleneck distance, in the units of the filtration, that all diagrams
        of a cloud keep to the exact ones with a probability of 95 %, under the
        cap that is drawn, where
        each has at most two features of more half persistence than the
        sensitivity and the error of a lattice: see
        :func:`bottleneck_error_bound`, also for other classes of diagrams. It
        is known before the release; the largest over the clouds of ``fit``.
        None for ``mechanism="mcmc"``.
    noise_floor_ : tuple of float or None
        For each dimension the persistence that noise alone stays below, with
        a probability of 95 %: see :func:`noise_floor`.
    error_statement_ : str
        Both in words.
    cap_ : ndarray of shape (n_clouds,)
        Of the last :meth:`transform`: the cap under which the diagrams of each
        cloud were drawn, itself part of the release; see ``max_distance`` of
        :class:`DTMFiltration`.
    error_bounds_ : ndarray of shape (n_clouds,)
        Of the last :meth:`transform`: ``error_bound_`` for each cloud, under
        the cap that was drawn for it. NaN for ``mechanism="mcmc"``.
    clipped_share_ : ndarray of shape (n_clouds,)
        Private shares of the points outside the bounds, of the last
        :meth:`transform`, with ``clipped_share=True``.
    homology_dimensions_ : tuple of int
        The dimensions as a tuple.
    single_ : bool
        Whether a single dimension was given.

    See Also
    --------
    CubicalPersistence : The non-private sibling.
    DTMFiltration : Makes filtrations that carry their sensitivity.

    Notes
    -----
    .. rubric:: Privacy

    Each call of :meth:`transform` releases one set of diagrams per cloud, and
    the cap under which they were drawn. For
    each cloud it is (``epsilon``, ``delta``)-differentially private under
    replacement of one point; the size of the cloud and all parameters are
    public. When every individual has points in one cloud only, the clouds of
    one call compose in parallel and the whole call is ``epsilon``-private, and
    counted once by the accountant; otherwise, and over several calls, losses
    add up. A fitted object holds parameters and public numbers only. Running
    time depends on the data and is outside the guarantee.

    The diagrams live on a public grid whose step divides the sensitivity, so
    rounding the exact diagram costs no privacy. Values below zero count as
    zero.

    References
    ----------
    T. Kang, S. Kim, J. Sohn, J. Awan, "Differentially private topological data
    analysis", Proposition 13 and Algorithm 1.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_dptda import DTMFiltration, PrivatePersistence
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> X = make_two_circles(4000, random_state=0)
    >>> pipeline = make_pipeline(
    ...     DTMFiltration(m=0.2, bounds=(-3, 3.5)),
    ...     PrivatePersistence(epsilon=2.0, random_state=0),
    ... )
    >>> (components, loops), = pipeline.fit_transform([X])
    >>> loops.shape[1]
    2
    >>> print(pipeline[-1].privacy_guarantee_)
    (epsilon=2, delta=0)-differential privacy for replacing one point of a cloud: ...
    """

    _parameter_constraints = {
        **PrivateGridPersistence._parameter_constraints,
        "delta": [Interval(Real, 0, 1, closed="left")],
        "max_points": [Interval(Integral, 1, 30, closed="both")],
        "mechanism": [StrOptions({"exact", "mcmc"})],
        "utility": [StrOptions({"max", "sum"})],
        "base_measure": [StrOptions(set(BASE_MEASURES))],
        "spike": [Interval(Real, 0, 1, closed="neither"), StrOptions({"auto"})],
        "mean_points": [Interval(Real, 0, None, closed="neither")],
        "slab": [StrOptions({"uniform", "persistence"})],
        "clipped_share": ["boolean"],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
        "proposal_scale": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        homology_dimensions: int | Sequence[int] = (0, 1),
        max_points: int = 10,
        mechanism: Literal["exact", "mcmc"] = "exact",
        *,
        utility: Literal["max", "sum"] = "max",
        base_measure: Literal["spike-slab", "uniform", "poisson"] = "spike-slab",
        spike: float | Literal["auto"] = "auto",
        mean_points: float = 2.0,
        slab: Literal["uniform", "persistence"] = "uniform",
        sensitivity: float | None = None,
        upper: float | None = None,
        clipped_share: bool = False,
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
        self.clipped_share = clipped_share
        self.n_iter = n_iter
        self.proposal_scale = proposal_scale
        self.accountant = accountant
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check_loss(self) -> None:
        # Only the count of clipped points has noise that has to be scaled.
        if self.clipped_share:
            self._check_epsilon(1 / CLIPPED_SHARE)

    def _set_errors(self, functions: list[GridFunction]) -> None:
        errors = errors_of_fit(self, functions)
        self.error_bound_, self.noise_floor_, self.error_statement_ = errors

    def _guarantee(self, public_bounds: bool) -> PrivacyGuarantee:
        epsilon, names = float(self.epsilon), self._names()
        n_draws = 1 if self.utility == "max" else len(names)
        for_diagrams, rate = losses_of_draws(self, len(names))
        mechanism = _MECHANISMS[self.mechanism]
        released = f"one persistence diagram per cloud and dimension ({', '.join(names)})"
        if self.mechanism == "exact" and math.isfinite(rate):
            size = MAX_GRID_SIZE // 2
            least = f"1/{STEPS_PER_SCALE} of the entropic scale or 1/{size} of the range"
            released += f", in steps of {least}"
            if self.utility == "max":
                released += ", and the cap of the function under which they are drawn"
        rho = n_draws * bounded_range_rho(rate)
        if self.clipped_share:
            mechanism += ", and the discrete Laplace mechanism"
            released += ", and the share of its points outside the bounds"
            rho += pure_rho(CLIPPED_SHARE * epsilon)
        return PrivacyGuarantee(
            epsilon=epsilon,
            delta=0.0 if rate * n_draws <= for_diagrams else float(self.delta),
            adjacency="replace-one",
            unit=POINT,
            mechanism=mechanism,
            released=released,
            seeded=self.random_state is not None,
            exact=self.mechanism == "exact" or math.isinf(epsilon),
            public_parameters=public_bounds,
            rho=rho,
        )

    @fill_doc
    def transform(self, X: Functions) -> Diagrams:
        """Release private diagrams: each call is a new release.

        Parameters
        ----------
        X : list of GridFiltration or of array-like

        Returns
        -------
        list of ndarray of shape (n, 2), or list of lists of them
            One diagram per filtration for a single dimension, else one list
            of diagrams per filtration. Births and deaths in the units of the
            filtration.

        %(refused_functions)s
        """
        X, functions = self._read_in_transform(X)
        mechanism = mechanism_of(self, self.homology_dimensions_)
        # Whatever public numbers can make fail, fails before the payment.
        if mechanism is not None:
            for function in functions:
                mechanism.check(function.sensitivity, function.upper)
        counted = self._clipped_counts(X) if self.clipped_share else []
        own = self._guarantee_of_release()
        n_seeds = len(functions) + len(counted)
        repeat = tasks_may_repeat(self.n_jobs)
        with self._paid(own, n_seeds, may_repeat=repeat, records=(functions, counted)) as seeds:
            if self.clipped_share:
                self.clipped_share_ = self._noisy_shares(counted, seeds[len(functions) :])
            clouds = [
                (function, self.homology_dimensions_, mechanism, seed)
                for function, seed in zip(functions, seeds, strict=False)
            ]
            drawn = run(_release, clouds, n_jobs=self.n_jobs)
        caps, releases = zip(*drawn, strict=True)
        self.cap_ = np.array(caps)
        self.error_bounds_ = np.array(errors_of_release(self, functions, caps))
        returned = [diagrams[0] for diagrams in releases] if self.single_ else list(releases)
        shares = {"clipped_share_": self.clipped_share_} if self.clipped_share else {}
        return seeds.keep(returned, cap_=self.cap_, **shares)

    def _clipped_counts(self, X: list[Any]) -> list[tuple[int, int]]:
        """Sizes of the clouds and numbers of their points outside the bounds."""
        if any(getattr(item, "n_clipped", None) is None for item in X):
            raise ValueError(
                "clipped_share=True takes filtrations that know how many points were outside "
                "their bounds, as those of DTMFiltration do."
            )
        return [(item.n_points, item.n_clipped) for item in X]

    def _noisy_shares(self, counted: list[tuple[int, int]], seeds: list[Any]) -> FloatArray:
        scale = ROUND_UP / (CLIPPED_SHARE * float(self.epsilon))
        noise = [NoiseSource(seed).discrete_laplace(scale, 1)[0] for seed in seeds]
        noisy = [(count + more) / n for (n, count), more in zip(counted, noise, strict=True)]
        return np.clip(noisy, 0.0, 1.0)

    def score(self, X: Functions, y: object = None) -> float:
        """Minus the mean bottleneck distance to the exact diagrams: *not* private.

        Makes a new release of each filtration and compares it with the exact
        diagrams, which are used and not returned. The score itself depends on
        the data without noise: look at it on synthetic or public data only.

        Parameters
        ----------
        X : list of GridFiltration or of array-like
        y : Ignored

        Returns
        -------
        float
            Mean over the filtrations of the sum over the homology dimensions,
            negated.
        """
        X = check_collection(X)
        releases: list[Any] = self.transform(X)
        if self.single_:
            releases = [[diagram] for diagram in releases]
        total = 0.0
        for function, private in zip(self._read(X), releases, strict=True):
            (exact,) = function.diagrams(self.homology_dimensions_)
            total += sum(map(bottleneck_distance, exact, private))
        return -total / len(releases)

    def __sklearn_tags__(self) -> Tags:
        """Describe the release."""
        tags = super().__sklearn_tags__()
        tags.privacy.ragged = True
        tags.privacy.exact_sibling = _exact_sibling
        return tags


def _release(
    function: GridFunction,
    dimensions: Sequence[int],
    mechanism: ExactMechanism | MarkovChainMechanism | None,
    seed: Any,
) -> tuple[float, list[FloatArray]]:
    """Compute the exact diagrams of one filtration, release private ones, drop the former.

    The border between private and public is where it calls ``release`` or ``release_with_cap``.
    """
    caps = function.caps[: len(prior_of_caps(mechanism, function.caps))]
    exact = function.diagrams(dimensions, len(caps))
    if mechanism is None:
        return function.upper, exact[0]
    if isinstance(mechanism, ExactMechanism) and len(caps) > 1:
        place, diagrams = release_with_cap(mechanism, caps, exact, dimensions, seed)
        return caps[place][1], diagrams
    return function.upper, mechanism.release(
        exact[0], dimensions, function.sensitivity, function.upper, seed
    )


def _exact_sibling(estimator: "PrivatePersistence") -> CubicalPersistence:
    return CubicalPersistence(estimator.homology_dimensions, upper=estimator.upper)
