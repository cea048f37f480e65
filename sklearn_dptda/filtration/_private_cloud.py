"""Clouds that are released once, for every later question.

Proof: doc/theory/private_cloud.md, "Sensitivity".
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import Adjacency, Bounds, FloatArray, RandomStateLike
from sklearn_dptda.filtration._cloud import Cloud, LatticeHistogram, counted_on_lattice
from sklearn_dptda.filtration._estimator import CloudInput
from sklearn_dptda.filtration._released_cloud import ReleasedCloud
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import (
    NoiseSource,
    PrivacyAccountant,
    PrivacyGuarantee,
    PrivateEstimatorMixin,
)
from sklearn_dptda.privacy._estimator import refused_without_trace
from sklearn_dptda.privacy._fixed_point import ROUND_UP
from sklearn_dptda.privacy._noise import inverse, spawn_seeds
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.privacy._risk import LossLaw
from sklearn_dptda.privacy._warnings import NoiseWarning, warn_caller
from sklearn_dptda.utils._sklearn import (
    Interval,
    ListInputMixin,
    ListOutputMixin,
    StrOptions,
    _fit_context,
)
from sklearn_dptda.utils._tasks import run, tasks_may_repeat
from sklearn_dptda.utils._validation import check_collection, refuse_repeated

# Accuracy only: factor and exponent of the number of cells along an axis as a function of n times
# epsilon, and the least number, by dimension; measured in doc/measured/private_cloud.md.
_CELLS = {1: (2.0, 0.5, 16), 2: (0.82, 0.4, 12), 3: (0.48, 0.4, 8), 4: (0.6, 0.33, 4)}
# Accuracy only: share of epsilon for the number of records, if it is private.
_SIZE_SHARE = 0.05
# Accuracy only: share of epsilon for a box, if bounds are not given.
_BOX_SHARE = 0.2
# Accuracy only: most cells of a grid, for the memory.
_MOST_CELLS = 1 << 18


@fill_doc
class PrivateCloud(
    CloudInput,
    ListInputMixin,
    ListOutputMixin,
    PrivateEstimatorMixin,
    TransformerMixin,
    BaseEstimator,
):
    """Point clouds under differential privacy, released once for every later question.

    For each cloud, this transformer releases noisy numbers of points in the cells of a public
    grid. They make a weighted cloud, which is public: its distance-to-measure for any ``m``, its
    diagrams in all dimensions, the places of features, pictures and samples cost nothing more.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of one release of one cloud. ``inf`` gives the exact counts, without privacy.
    bounds : tuple (low, high) or PrivateBounds, default=None
        Public bounding box, in the units of the data: two numbers, or two arrays with one number
        per coordinate, of one to four. Points outside are clipped to it. Choose a box that fits:
        the number of cells does not grow with the box.

        None: ``fit`` spends a fifth of ``epsilon`` on a box around the clouds, which
        :meth:`transform` then does not spend. The box is far too large if ``epsilon`` times the
        number of records is below about 2,000. A
        :class:`~sklearn_dptda.preprocessing.PrivateBounds` spends its own budget instead, which
        the guarantee includes.
    n_cells : int or sequence of int, default=None
        Number of cells along each axis. None: a rule from the number of records and epsilon,
        such as 13 for 1,000 points and 33 for 10,000 at epsilon 1 in the plane, with cells that
        are about cubes.
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Neighbouring clouds. ``"replace-one"``: one record is replaced, and their number is public.
        ``"add-remove"``: one record is added or removed, and a twentieth of epsilon is spent on
        their number.
    groups : str or bool, default=None
        Defines the people, if one person can have several points. Pass the name of the column of
        ids if each cloud is a data frame, or True if each cloud is a list of arrays with one array
        per person. Each person then has the same mass, spread evenly over their points, and the
        privacy unit is all points of one person, whatever their number.
    %(pays_for_transform)s

    Attributes
    ----------
    bounds_ : tuple of two ndarray of shape (d,)
        Lower and upper bounds of the box, public or released privately.
    bounds_guarantee_ : PrivacyGuarantee or None
        Guarantee of a private box. None if nothing was spent.
    clipped_share_ : float
        Private share of the points outside a private box.
    privacy_guarantee_ : PrivacyGuarantee
        The guarantee of one call of :meth:`transform` for each cloud.
    n_features_in_ : int
        Dimension of the points.

    See Also
    --------
    ReleasedCloud : What :meth:`transform` returns.
    PrivatePersistence : Releases the diagrams alone, which is more accurate for one or two
        features of many points.
    sklearn_dptda.synthetic.PrivateMeasure : Synthetic rows with categories and many columns.

    Notes
    -----
    A search over ``m`` of released clouds pays nothing. Release them before the search: a search
    over a pipeline that contains this transformer releases, and pays, once for each fit.

    .. rubric:: Privacy

    If one record is replaced, two counts change by one each; with ``"add-remove"``, one count
    changes if one is added or removed. All points of a person together have the mass of one
    record. Counts have discrete Laplace noise. For each cloud, the release is
    ``epsilon``-differentially private. If each individual is in only one cloud, the clouds of
    one call compose in parallel: the whole call is ``epsilon``-differentially private, and the
    accountant counts it once. Otherwise the losses add up over the clouds. They also add up
    over several calls.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_dptda import CubicalPersistence, DTMFiltration, PrivateCloud
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> X = make_two_circles(2000, random_state=0)
    >>> private = PrivateCloud(1.0, bounds=(-2.5, 3), random_state=0)
    >>> clouds = private.fit_transform([X])
    >>> for m in (0.1, 0.2):
    ...     loops, = make_pipeline(DTMFiltration(m), CubicalPersistence(1)).fit_transform(clouds)
    ...     print((loops[:, 1] - loops[:, 0] > 0.3).sum())
    2
    1
    >>> print(private.privacy_guarantee_)
    (epsilon=1, delta=0)-differential privacy for replacing one point of a cloud: ...
    """

    _parameter_constraints = {
        "epsilon": [Interval(Real, 0, None, closed="right")],
        "bounds": ["array-like", PrivateBounds, None],
        "n_cells": [Interval(Integral, 1, None, closed="left"), "array-like", None],
        "adjacency": [StrOptions({"replace-one", "add-remove"})],
        "groups": [str, bool, None],
        "accountant": [PrivacyAccountant, None],
        "random_state": ["random_state", np.random.Generator],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        bounds: Bounds | PrivateBounds | None = None,
        *,
        n_cells: int | Sequence[int] | None = None,
        adjacency: Adjacency = "replace-one",
        groups: str | bool | None = None,
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.n_cells = n_cells
        self.adjacency = adjacency
        self.groups = groups
        self.accountant = accountant
        self.random_state = random_state
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)
    @refused_without_trace
    def fit(self, X: Iterable[ArrayLike | LatticeHistogram], y: object = None) -> Self:
        """Check the input and fix the box. Only private bounds release anything, and pay for it.

        Parameters
        ----------
        X : list of array-like of shape (n_i, d), or array-like of shape (n_clouds, n, d)
            The point clouds. Only their dimension is used, unless ``bounds`` is private.
            Histograms from :meth:`make_histogram` can replace clouds. With ``groups``, each cloud
            is a data frame with a column of ids, or a list of arrays with one array per person.
        y : Ignored

        Returns
        -------
        self
        """
        self._check_epsilon(1 / (_SIZE_SHARE * (1 - _BOX_SHARE)))
        X = check_collection(X)
        clouds, distinct = self._check_to_fit(X)
        d = clouds[0].n_features
        if d not in _CELLS:
            raise ValueError(
                f"PrivateCloud supports at most {max(_CELLS)} columns; got {d}, in which a grid "
                "has hardly more points than cells. Project the clouds by a projection that does "
                "not depend on the data, or use PrivateMeasure."
            )
        _check_cells(self.n_cells, d)
        unit = self._unit(len(clouds))
        if math.isfinite(self.epsilon) and isinstance(self.bounds, PrivateBounds | None):
            # The release would refuse them, when the private box was paid for.
            refuse_repeated(X)
        low, high, paid, remarks = self._box(distinct, d, unit)
        self.bounds_, self.bounds_guarantee_, self.n_features_in_ = (low, high), paid, d
        own = replace(self._guarantee_ahead(d), unit=unit)
        self._promise(own if paid is None else own + paid)
        self._own_at_fit = own
        for remark in remarks:
            warn_caller(remark, NoiseWarning)
        return self

    @fill_doc
    def transform(self, X: Iterable[ArrayLike | LatticeHistogram]) -> list[ReleasedCloud]:
        """Release private clouds. Each call is a new release and spends its own budget.

        Parameters
        ----------
        X : list of array-like of shape (n_i, d), or array-like of shape (n_clouds, n, d)
            The point clouds, in the form that :meth:`fit` accepts.

        Returns
        -------
        list of ReleasedCloud
            One for each cloud, in the same order. They are public.

        %(refused_functions)s
        """
        check_is_fitted(self)
        self._check_promise()
        items = check_collection(X)
        clouds = self._check(items, self.n_features_in_)
        if math.isfinite(self.epsilon):
            refuse_repeated(items)
        unit = self._unit(len(clouds))
        if unit != self._own_at_fit.unit:
            raise ValueError(
                "X has several clouds and that of fit was one, or the other way round, so "
                "privacy_guarantee_ would be wrong. Call fit with these clouds."
            )
        shapes = [self._shape_ahead(cloud) for cloud in clouds]
        effective_n_jobs(self.n_jobs)
        public = self.privacy_guarantee_.public_parameters
        own = replace(self._own_at_fit, public_parameters=public)
        repeat = tasks_may_repeat(self.n_jobs)
        with self._paid(own, len(clouds), may_repeat=repeat, records=clouds) as seeds:
            drawn = zip(clouds, shapes, seeds, strict=True)
            released = run(self._release, [*drawn], n_jobs=self.n_jobs)
        return seeds.keep(released)

    def _read(self, cloud: Any, name: str, n_features: int | None) -> Any:
        if isinstance(cloud, ReleasedCloud):
            raise ValueError(f"{name} was released already. Pass it to the next step.")
        if self.adjacency == "add-remove" and not self.groups:
            # Their number is private, so that a cloud of one point or none is not refused.
            counted = isinstance(cloud, LatticeHistogram) and not cloud.of_people
            return cloud if counted else Cloud.read(cloud, None, name, n_features)
        return super()._read(cloud, name, n_features)

    def _shape_ahead(self, cloud: Any) -> tuple[int, ...] | None:
        """Return the numbers of cells of a cloud if they are public before the release."""
        counted = isinstance(cloud, LatticeHistogram)
        if self.n_cells is None and self.adjacency == "add-remove":
            if counted:
                raise ValueError(
                    "n_cells must be given for histograms with adjacency='add-remove', because "
                    "their number of records is private."
                )
            return None
        shape = self._shape(cloud.n_points)
        if counted and not cloud.matches(self._lattice(shape)()):
            raise ValueError(
                "The histogram does not belong to the cells of this estimator. Create it with "
                "make_histogram() of this estimator, for the same number of records."
            )
        return shape

    def _paid_first(self) -> Any:
        if self.bounds is not None:
            return super()._paid_first()
        (seed,) = spawn_seeds(self.random_state, 1)
        return PrivateBounds(
            _BOX_SHARE * float(self.epsilon),
            adjacency=self.adjacency,
            accountant=self.accountant,
            random_state=seed,
        )

    @property
    def _epsilon(self) -> float:
        """Privacy loss of one call of ``transform``."""
        return float(self.epsilon) * (1 - _BOX_SHARE * (self.bounds is None))

    def _shape(self, n: int) -> tuple[int, ...]:
        """Return the numbers of cells along the axes for ``n`` records."""
        low, high = self.bounds_
        if self.n_cells is not None:
            return _check_cells(self.n_cells, len(low))
        epsilon = min(self._epsilon, 1e6)
        # With this adjacency, noise is half as large for the same loss.
        epsilon *= 2 * (1 - _SIZE_SHARE) if self.adjacency == "add-remove" else 1
        return cells_along_axes(n, epsilon, high - low)

    def _lattice(self, shape: tuple[int, ...]) -> Callable[[], LatticeHistogram]:
        """Return a function that makes an empty histogram on the centres of cells."""
        low, high = self.bounds_
        half = (high - low) / (2 * np.array(shape))
        box = low + half, high - half
        return partial(LatticeHistogram, box, shape, people=bool(self.groups))

    def _release(self, cloud: Any, shape: tuple[int, ...] | None, seed: Any) -> ReleasedCloud:
        """Release one cloud. The calls of ``cross`` are the border of what is private."""
        noise, epsilon, n = NoiseSource(seed), self._epsilon, cloud.n_points
        if self.adjacency == "add-remove":
            n, _ = noise.noisy_count(n, 1, _SIZE_SHARE * epsilon)
            n, epsilon = max(n, 1), (1 - _SIZE_SHARE) * epsilon
        if isinstance(cloud, Cloud):
            cloud = self._lattice(shape or self._shape(n))().update(*cloud)
        weight = 1 << cloud.weight_bits
        sensitivity = weight if self.adjacency == "add-remove" else 2 * weight
        # Rounded up, so that rounding does not reduce the noise.
        scale = ROUND_UP * sensitivity / epsilon
        counts = noise.cross(
            cloud.counts,
            lambda counts: counts + noise.discrete_laplace(scale, counts.shape),
            metric="l1",
            sensitivity=sensitivity,
            rate=inverse(scale),
        )
        return ReleasedCloud(counts, *self.bounds_, n, scale, weight)

    def make_histogram(self, X: Any = None, *, n_points: int | None = None) -> LatticeHistogram:
        """Count a point cloud in the cells, if it is too large for the memory or in several parts.

        Parameters
        ----------
        X : array-like of shape (n, d), iterable of such arrays, Dask collection or None
            A cloud, or its chunks, as for :meth:`DTMFiltration.make_histogram`. None returns an
            empty histogram.
        n_points : int, default=None
            Public number of records of the whole cloud, which decides about the cells. It is
            required unless ``n_cells`` is given.

        Returns
        -------
        LatticeHistogram
            Update it with further chunks, add it to the histograms of other parts, and pass it
            to :meth:`transform` in place of the cloud. It is exact, *not* private.
        """
        check_is_fitted(self)
        if n_points is None and self.n_cells is None:
            raise ValueError("n_points must be given, because n_cells is None.")
        new = self._lattice(self._shape(n_points or 0))
        return self._counted(X, partial(counted_on_lattice, new, self.groups), new())

    def _releases_ahead(
        self, method: str, n_features: int | None
    ) -> list[tuple[Any, PrivacyGuarantee]]:
        return self._releases_of_box(method, n_features) + super()._releases_ahead(
            method, n_features
        )

    def _promises_apart(self) -> list[PrivacyGuarantee]:
        return [p for p in (self._own_at_fit, self.bounds_guarantee_) if p is not None]

    def _guarantee_ahead(self, n_features: int | None) -> PrivacyGuarantee:
        epsilon, counted = self._epsilon, "a noisy number of points for each cell of a grid"
        if self.bounds is None:
            counted += " within private bounds"
        parts: tuple[float, ...] = (epsilon,)
        if self.adjacency == "add-remove":
            parts = _SIZE_SHARE * epsilon, (1 - _SIZE_SHARE) * epsilon
            counted += ", and their number"
        return PrivacyGuarantee(
            epsilon=epsilon,
            delta=0.0,
            adjacency=self.adjacency,
            unit=self._unit(1),
            mechanism="discrete Laplace mechanism (exact draw in integer arithmetic)",
            released=counted,
            seeded=self.random_state is not None,
            law=LossLaw(parts),
        )

    def __sklearn_tags__(self) -> Tags:
        """Describe the input and the release."""
        tags = super().__sklearn_tags__()
        tags.privacy.input = "clouds"
        tags.privacy.releases = "transform"
        tags.privacy.adjacency = self.adjacency
        return tags


def cells_along_axes(n: int, epsilon: float, sides: FloatArray) -> tuple[int, ...]:
    """Return the numbers of cells along the axes of a box: cells are about cubes."""
    factor, exponent, least = _CELLS[len(sides)]
    most = int(_MOST_CELLS ** (1 / len(sides)))
    usual = min(max(round(factor * (n * epsilon) ** exponent), least), most)
    lengths = sides / np.exp(np.log(sides).mean())
    shape = np.maximum(np.rint(usual * lengths), 2)
    # Very unlike sides need more cells, of which there must not be too many.
    while shape.prod() > _MOST_CELLS:
        shape = np.maximum(np.ceil(shape / 2), 2)
    return tuple(shape.astype(int).tolist())


def _check_cells(given: Any, n_features: int) -> tuple[int, ...]:
    """Return the numbers of cells along the axes, or raise an error. None gives one cell each."""
    cells = np.asarray(1 if given is None else given)
    if cells.ndim == 0:
        cells = np.full(n_features, cells)
    whole = np.issubdtype(cells.dtype, np.integer)
    if given is None:
        return (1,) * n_features
    if cells.shape != (n_features,) or not whole or cells.min() < 2:
        raise ValueError(
            "n_cells must be an integer of at least 2, or one such integer per coordinate "
            f"({n_features} here); got {quoted(given)}."
        )
    if math.prod(map(int, cells)) > _MOST_CELLS:
        raise ValueError(f"n_cells makes more than {_MOST_CELLS} cells. Lower it.")
    return tuple(map(int, cells))
