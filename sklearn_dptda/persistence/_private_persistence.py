"""Persistence diagrams under differential privacy.

Proof: doc/theory/exact_sampler.md, "The law".
Proof: doc/theory/exact_sampler.md, "The share of clipped points".
"""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import FloatArray, RandomStateLike
from sklearn_dptda.filtration._filtration import POINT
from sklearn_dptda.persistence._cubical import CubicalPersistence, Diagrams, Functions
from sklearn_dptda.persistence._diagram_posterior import DiagramPosterior, ReleasedDiagrams
from sklearn_dptda.persistence._error_statement import errors_of_fit, errors_of_release
from sklearn_dptda.persistence._mechanisms import (
    CLIPPED_SHARE,
    ExactMechanism,
    mechanism_of,
)
from sklearn_dptda.persistence._posterior_draws import check_expected_features, posterior_of
from sklearn_dptda.persistence._private_cap import prior_of_caps, release_with_cap
from sklearn_dptda.persistence._private_grid_persistence import (
    GridFunction,
    PrivateGridPersistence,
    numbers_of,
    public_numbers,
)
from sklearn_dptda.privacy import (
    NoiseSource,
    PrivacyAccountant,
    PrivacyGuarantee,
)
from sklearn_dptda.privacy._risk import LossLaw
from sklearn_dptda.utils._distances import bottleneck_distance
from sklearn_dptda.utils._sklearn import Interval, ListOutputMixin, StrOptions
from sklearn_dptda.utils._tasks import run, tasks_may_repeat
from sklearn_dptda.utils._validation import check_collection


@fill_doc
class PrivatePersistence(ListOutputMixin, PrivateGridPersistence):
    """Persistence diagrams under differential privacy.

    For each filtration, this transformer draws diagrams from the exponential mechanism of the
    bottleneck distance to the exact diagrams: the closer a diagram is, the more likely it is
    drawn. The number of points is private as well.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of one release of one cloud, for all homology dimensions together.
        ``inf`` gives the exact diagrams, without privacy.
    homology_dimensions : int or sequence of int, default=(0, 1)
        Homology dimensions of the diagrams: 0 for components, 1 for loops, 2 for voids.
        For an integer, each filtration gives one diagram instead of a list.
    max_points : int, default=10
        Public upper bound of the number of points of a diagram, from 1 to 30, without the
        essential component. Choose it without looking at the data.
    spike : float or "auto", default="auto"
        Probability, in (0, 1), that each of ``max_points`` slots is empty in the absence of
        data. It affects the accuracy, not the privacy. ``"auto"`` derives it from public
        numbers.
    %(function_bounds)s
    clipped_share : bool, default=False
        Whether to spend one twentieth of ``epsilon`` on the share of the points of each
        cloud that lie outside the bounds. It reveals a box that misses the points.
    %(pays_for_transform)s

    Attributes
    ----------
    privacy_guarantee_ : PrivacyGuarantee
        The guarantee of one call of :meth:`transform` for each cloud.
    error_bound_ : float
        Bottleneck distance, in the units of the filtration, within which all diagrams of a
        cloud are, with a probability of 95 %, from the exact ones under the cap that is
        drawn: the largest over the clouds of ``fit``. It applies if each exact diagram has
        at most two features whose half persistence exceeds the sensitivity plus the error
        of a lattice; otherwise, see :class:`DiagramErrors`.
    noise_floor_ : tuple of float
        For each dimension, the persistence that noise alone does not exceed, with a
        probability of 95 %; see :class:`DiagramErrors`.
    error_statement_ : str
        ``error_bound_`` and ``noise_floor_`` in words.
    cap_ : ndarray of shape (n_clouds,)
        Cap of the distances under which the last :meth:`transform` drew each cloud, a part
        of the release; see ``max_distance`` of :class:`DTMFiltration`.
    error_bounds_ : ndarray of shape (n_clouds,)
        ``error_bound_`` for each cloud of the last :meth:`transform`, under its cap.
    laws_ : structured ndarray of shape (n_clouds,)
        Public numbers on which the law of the last :meth:`transform` depends, for
        :meth:`posterior`: the sensitivity and the upper bound under each cap (``caps``, with
        NaN where a cloud has fewer caps), and the error of the function (``error``).
    clipped_share_ : ndarray of shape (n_clouds,)
        Private estimates of these shares from the last :meth:`transform`, with
        ``clipped_share=True``.
    homology_dimensions_ : tuple of int
        The homology dimensions as a tuple.
    single_ : bool
        Whether ``homology_dimensions`` is a single integer.

    See Also
    --------
    CubicalPersistence : The exact diagrams, without privacy.
    DTMFiltration : Computes filtrations that carry their sensitivity.
    PersistenceProfile : Releases only the persistences of the longest features.
    sklearn_dptda.published.PublishedPersistence : The variants of the paper.

    Notes
    -----
    .. rubric:: Privacy

    Each call of :meth:`transform` releases one set of diagrams per cloud, and the cap under
    which they were drawn.
    %(privacy_of_functions)s

    References
    ----------
    T. Kang, S. Kim, J. Sohn, J. Awan, "Differentially private topological data analysis",
    Proposition 13 and Algorithm 1.

    Examples
    --------
    >>> from sklearn_dptda import DTMFiltration, PrivatePersistence
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> X = DTMFiltration(m=0.2, bounds=(-3, 3.5)).fit_transform([make_two_circles(4000)])
    >>> private = PrivatePersistence(epsilon=2.0)
    >>> (components, loops), = private.fit_transform(X)
    >>> print(private.privacy_guarantee_)
    (epsilon=2, delta=0)-differential privacy for replacing one point of a cloud: ...
    """

    _parameter_constraints = {
        **PrivateGridPersistence._parameter_constraints,
        "max_points": [Interval(Integral, 1, 30, closed="both")],
        "spike": [Interval(Real, 0, 1, closed="neither"), StrOptions({"auto"})],
        "clipped_share": ["boolean"],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        homology_dimensions: int | Sequence[int] = (0, 1),
        max_points: int = 10,
        *,
        spike: float | Literal["auto"] = "auto",
        sensitivity: float | None = None,
        upper: float | None = None,
        clipped_share: bool = False,
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.homology_dimensions = homology_dimensions
        self.max_points = max_points
        self.spike = spike
        self.sensitivity = sensitivity
        self.upper = upper
        self.clipped_share = clipped_share
        self.accountant = accountant
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check_loss(self) -> None:
        # Only the noise of the count of clipped points has a scale that must be representable.
        if self.clipped_share:
            self._check_epsilon(1 / CLIPPED_SHARE)

    def _set_errors(self, functions: list[GridFunction]) -> None:
        # Earlier releases have another law.
        self.__dict__.pop("laws_", None)
        errors = errors_of_fit(self, functions)
        self.error_bound_, self.noise_floor_, self.error_statement_ = errors

    def _guarantee(self, public_bounds: bool) -> PrivacyGuarantee:
        epsilon, names = float(self.epsilon), self._names()
        n_draws, rate, delta = self._losses(len(names))
        drawn = mechanism_of(self, names)
        mechanism = "exponential mechanism (exact draw in integer arithmetic)"
        released = f"one persistence diagram per cloud and dimension ({', '.join(names)})"
        if drawn is not None:
            released += ", with coordinates on a public grid"
            if drawn.joint:
                released += ", and the cap of the function that they describe"
        law = LossLaw(choices=(rate,) * n_draws)
        if self.clipped_share:
            mechanism += ", and the discrete Laplace mechanism"
            released += ", and the share of its points outside the bounds"
            law += LossLaw((CLIPPED_SHARE * epsilon,))
        return PrivacyGuarantee(
            epsilon=epsilon,
            delta=delta,
            adjacency="replace-one",
            unit=POINT,
            mechanism=mechanism,
            released=released,
            seeded=self.random_state is not None,
            public_parameters=public_bounds,
            law=law,
        )

    def _losses(self, n_dimensions: int) -> tuple[int, float, float]:
        """Return the number of draws of one cloud, the privacy loss of each, and delta."""
        return 1, float(self.epsilon) * (1 - CLIPPED_SHARE * self.clipped_share), 0.0

    def _mechanism(self, n_dimensions: int) -> Any:
        """Return the mechanism that draws the diagrams, for a finite epsilon."""
        _, rate, _ = self._losses(n_dimensions)
        return ExactMechanism(rate, True, int(self.max_points), spike=self.spike)

    def _has_posterior(self) -> bool:
        return True

    @fill_doc
    def transform(self, X: Functions) -> Diagrams:
        """Release private diagrams. Each call is a new release and spends its own budget.

        Parameters
        ----------
        X : list of GridFiltration, ComplexFiltration or array-like
            The functions, one for each cloud.

        Returns
        -------
        list of ndarray of shape (n, 2), or list of lists of them
            For each filtration, one diagram if ``homology_dimensions`` is an integer, else a
            list of diagrams. The columns are birth and death, in the units of the filtration.

        %(refused_functions)s
        """
        X, functions = self._read_in_transform(X)
        mechanism = mechanism_of(self, self.homology_dimensions_)
        # Errors that depend on public numbers are raised before any budget is spent.
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
        self.laws_ = public_numbers(functions)
        self.error_bounds_ = np.array(errors_of_release(self, functions, caps))
        returned = [diagrams[0] for diagrams in releases] if self.single_ else list(releases)
        shares = {"clipped_share_": self.clipped_share_} if self.clipped_share else {}
        return seeds.keep(returned, cap_=self.cap_, **shares)

    @available_if(lambda self: self._has_posterior())
    def posterior(
        self, diagrams: Sequence[Any], expected_features: float = 1.0
    ) -> list[DiagramPosterior]:
        """Compute how probable each released point is. This costs no privacy.

        Parameters
        ----------
        diagrams : list of ndarray of shape (n, 2), or list of lists of them
            What the last call of :meth:`transform` returned.
        expected_features : float, default=1.0
            Number of features of each exact diagram that the public prior expects, 0.01 to 10: the
            middle one of three means. Choose it without looking at the data. It matters where the
            release says little.

        Returns
        -------
        list of DiagramPosterior
            One for each cloud.
        """
        check_is_fitted(self)
        self._check_promise()
        check_expected_features(expected_features)
        diagrams = list(diagrams)
        laws = getattr(self, "laws_", ())
        if len(diagrams) != len(laws) or not diagrams:
            raise ValueError(
                "diagrams must be what the last transform of this estimator returned, one release "
                "for each cloud."
            )
        dimensions = self.homology_dimensions_
        mechanism = mechanism_of(self, dimensions)
        if mechanism is None:
            raise ValueError("epsilon=inf gives the exact diagrams, of which nothing is uncertain.")
        clouds = [[each] if self.single_ else each for each in diagrams]
        released = [
            ReleasedDiagrams.of(mechanism, cloud, dimensions, caps, cap, error)
            for cloud, (caps, error), cap in zip(clouds, numbers_of(laws), self.cap_, strict=True)
        ]
        items = [(each, expected_features) for each in released]
        return run(posterior_of, items, n_jobs=self.n_jobs)

    def _clipped_counts(self, X: list[Any]) -> list[tuple[int, int]]:
        """Return the sizes of the clouds and the numbers of their points outside the bounds."""
        if any(getattr(item, "n_clipped", None) is None for item in X):
            raise ValueError(
                "clipped_share=True needs filtrations that count the points outside their bounds, "
                "such as those of DTMFiltration."
            )
        return [(item.n_points, item.n_clipped) for item in X]

    def _noisy_shares(self, counted: list[tuple[int, int]], seeds: list[Any]) -> FloatArray:
        epsilon = CLIPPED_SHARE * float(self.epsilon)
        shares = [
            NoiseSource(seed).noisy_count(count, 1, epsilon)[0] / n
            for (n, count), seed in zip(counted, seeds, strict=True)
        ]
        return np.clip(shares, 0.0, 1.0)

    def score(self, X: Functions, y: object = None) -> float:
        """Compute minus the mean bottleneck distance to the exact diagrams: *not* private.

        The method makes a new release of each filtration and compares it with the exact
        diagrams. Use it only on simulated or public data.

        Parameters
        ----------
        X : list of GridFiltration, ComplexFiltration or array-like
            The functions, one for each cloud.
        y : Ignored

        Returns
        -------
        float
            The mean over the filtrations of the sum over the homology dimensions, negated, in
            the units of the filtration.
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
    mechanism: Any,
    seed: Any,
) -> tuple[float, list[FloatArray]]:
    """Compute the exact diagrams of one filtration, and draw private ones.

    The call of ``release`` or ``release_with_cap`` is the boundary between private and public
    values.
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
