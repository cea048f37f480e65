"""What the filtrations on public grids share: bounds, lattice, parallel clouds."""

import math
from collections.abc import Iterable
from functools import partial
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda.filtration._grid_filtration import GridFiltration, check_resolution, grid_axes
from sklearn_dptda.filtration._lattice import LatticeHistogram
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy._parameters import QuotedParametersMixin
from sklearn_dptda.privacy._warnings import warn_caller
from sklearn_dptda.rows._rows import count_beyond
from sklearn_dptda.utils._bounds import bounds_from_data, check_bounds, diameter
from sklearn_dptda.utils._clouds import check_cloud, check_collection, first_places
from sklearn_dptda.utils._frames import parts_elsewhere
from sklearn_dptda.utils._reading import without_quotes
from sklearn_dptda.utils._sklearn import Interval, ListOutputMixin, StrOptions, _fit_context
from sklearn_dptda.utils._tasks import run

# Lattice steps per grid step, by dimension.
_REFINEMENT = {1: 4, 2: 2, 3: 1, 4: 1}
# Ratio of the sides of a box beyond which the short one is lost.
_UNEQUAL = 10.0
# Nanoseconds per cloud that values without an error are worth, where that of a lattice would be
# larger than the change that one point can make.
_WORTH = 30e9


class BaseGridFiltration(QuotedParametersMixin, ListOutputMixin, TransformerMixin, BaseEstimator):
    """Point clouds in, one :class:`GridFiltration` per cloud out.

    Subclasses say what they compute in ``_statistic``, ``_bounds_of_values``,
    ``_exact`` and ``_from_histogram``.
    """

    _parameter_constraints = {
        "bounds": ["array-like", PrivateBounds, None],
        "resolution": [Interval(Integral, 2, None, closed="left"), "array-like", None],
        "method": [StrOptions({"auto", "exact", "lattice"})],
        "refinement": [Interval(Integral, 1, None, closed="left"), None],
        "memory": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
    }

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Iterable[ArrayLike | LatticeHistogram], y: object = None) -> Self:
        """Fix the public grid.

        Parameters
        ----------
        X : list of array-like of shape (n_i, d), or array-like of shape (n_clouds, n, d)
            The clouds. Only their dimension is learnt, unless ``bounds`` is
            None. Histograms from :meth:`make_histogram` may stand for clouds.
        y : Ignored

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the clouds, ``bounds`` or ``resolution`` are unusable, or if the
            grid does not fit into ``memory``.
        """
        clouds = self._check(X)
        d = _n_features(clouds[0])
        shape = check_resolution(self.resolution, d, self.memory)
        low, high, paid, remarks = self._box(clouds, d)
        self.axes_ = grid_axes(low, high, shape)
        self.bounds_, self.bounds_guarantee_ = (low, high), paid
        self._is_public = self.bounds is not None
        self.refinement_ = self.refinement or _REFINEMENT.get(d, 1)
        self.n_features_in_ = d
        if paid is None:
            self._check_scale()
        # Where warnings are errors, the box is there all the same.
        for remark in remarks:
            warn_caller(remark)
        _warn_of_unequal_sides(low, high)
        return self

    def _box(self, clouds, d):
        """Lower and upper bounds, what was paid for them, and what to warn of."""
        if self.bounds is not None and not isinstance(self.bounds, PrivateBounds):
            return *check_bounds(self.bounds, d), None, []
        if any(isinstance(cloud, LatticeHistogram) for cloud in clouds):
            raise ValueError("bounds must be given where histograms stand for clouds.")
        if self.bounds is None:
            return *bounds_from_data(clouds, type(self).__name__), None, []
        if self.bounds.adjacency != "replace-one":
            raise ValueError(
                "bounds must have adjacency='replace-one': the sizes of clouds are public here."
            )
        private = clone(self.bounds)
        remarks = private._fit_clouds(clouds)
        self.clipped_share_ = private.clipped_share_
        return *private.bounds_, private.privacy_guarantee_, remarks

    def _learns_records(self):
        return self.bounds is None

    def _releases_ahead(self, method, n_features):
        """As of private estimators: a box that is not public is paid for in ``fit``."""
        if isinstance(self.bounds, PrivateBounds):
            return self.bounds._releases_ahead(method, n_features)
        return []

    def transform(self, X: Iterable[ArrayLike | LatticeHistogram]) -> list[GridFiltration]:
        """Compute the filtration of each cloud.

        Parameters
        ----------
        X : list of array-like of shape (n_i, d), or array-like of shape (n_clouds, n, d)
            Points outside the bounds are clipped to them.

        Returns
        -------
        list of GridFiltration
            Exact statistics, *not* private. For a cloud that stands in several
            places the same object.
        """
        check_is_fitted(self)
        items = check_collection(X)
        clouds = self._check(items, self.n_features_in_)
        firsts = first_places(items)
        distinct = sorted(set(firsts))
        # Threads suffice: sorting, distances and matrix products release the lock.
        filtrations = run(
            self._one, [(clouds[i],) for i in distinct], n_jobs=self.n_jobs, prefer="threads"
        )
        # One cloud, one filtration: a release can see that it would be one of the same records.
        of_place = dict(zip(distinct, filtrations, strict=True))
        return [of_place[i] for i in firsts]

    def make_histogram(self, X: ArrayLike | Iterable[ArrayLike] | None = None) -> LatticeHistogram:
        """Count points on the lattice that ``method="lattice"`` works with.

        Parameters
        ----------
        X : array-like of shape (n, d), iterable of such arrays, Dask collection or None
            A cloud, or its chunks. The parts of a Dask array or data frame, of a
            list of delayed clouds, or of an object with ``map_reduce`` as in
            :meth:`sklearn_dptda.cluster.DPMoG.fit_chunks`, are counted where they
            are. None returns an empty histogram.

        Returns
        -------
        LatticeHistogram
            It can be updated with further chunks, added to the histograms of
            other parts of the cloud, and passed to :meth:`transform` in place
            of the cloud.
        """
        check_is_fitted(self)
        if (parts := parts_elsewhere(X)) is not None:
            with without_quotes("a part of the cloud"):
                return parts.map_reduce(partial(_counted, self.bounds_, self._lattice_shape()))
        histogram = LatticeHistogram(self.bounds_, self._lattice_shape())
        if X is None:
            return histogram
        chunks: Any = [X] if _is_cloud(X) else X
        for chunk in chunks:
            histogram.update(chunk)
        return histogram

    def _check(self, X, n_features=None):
        clouds = []
        for i, cloud in enumerate(check_collection(X)):
            if isinstance(cloud, LatticeHistogram):
                if n_features not in (None, cloud.n_features):
                    raise ValueError(f"X[{i}] has {cloud.n_features} features, not {n_features}.")
                if cloud.n_points < 2:
                    raise ValueError(f"X[{i}] has fewer than 2 points.")
                checked = cloud
            else:
                checked = check_cloud(cloud, f"X[{i}]", n_features)
            n_features = _n_features(checked)
            clouds.append(checked)
        return clouds

    def _check_scale(self):
        """Refuse a length parameter that makes no sense for a public box of this size."""

    def _diameter(self):
        return diameter(*self.bounds_)

    def _grid_shape(self):
        return tuple(len(axis) for axis in self.axes_)

    def _lattice_shape(self):
        return tuple((size - 1) * self.refinement_ + 1 for size in self._grid_shape())

    def _one(self, cloud):
        n = _n_points(cloud)
        sensitivity, upper = self._bounds_of_values(n)
        error = 0.0
        if isinstance(cloud, LatticeHistogram):
            if not self.make_histogram().matches(cloud):
                raise ValueError(
                    "A histogram must live on the lattice of this filtration: make it with "
                    "make_histogram()."
                )
        elif self._method(n) == "lattice":
            cloud = self.make_histogram().update(cloud)
        if isinstance(cloud, LatticeHistogram):
            values = self._from_histogram(cloud)
            error, n_clipped = self._lattice_error(), cloud.n_clipped
        else:
            n_clipped = count_beyond(cloud, *self.bounds_)
            values = self._exact(np.clip(cloud, *self.bounds_))
        return GridFiltration(
            values=np.minimum(values, upper).reshape(self._grid_shape()),
            axes=tuple(axis.copy() for axis in self.axes_),
            sensitivity=sensitivity,
            upper=upper,
            n_points=n,
            statistic=self._statistic(),
            approximation_error=error,
            public_bounds=self._is_public,
            bounds_guarantee=self.bounds_guarantee_,
            n_clipped=n_clipped,
        )

    def _method(self, n):
        if self.method != "auto":
            return self.method
        exact, lattice = self._costs(n, math.prod(self._grid_shape()))
        coarse = self._lattice_error() > self._bounds_of_values(n)[0]
        cheap = exact <= lattice or (coarse and exact <= _WORTH)
        return "exact" if cheap else "lattice"

    def _error_of_values(self, n):
        return self._lattice_error() if self._method(n) == "lattice" else 0.0

    def _lattice_error(self):
        """Change of the values where points move to the nearest node of the lattice, at most."""
        low, high = self.bounds_
        cell = (high - low) / (np.array(self._lattice_shape()) - 1)
        return float(np.linalg.norm(cell)) / 2 * self._lipschitz()

    def _lipschitz(self):
        """Change of the values per distance by which the points move."""
        return 1.0

    def __sklearn_tags__(self):
        """Describe the input: collections of clouds, no tables."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.requires_fit = True
        return tags


def _counted(bounds, shape, part):
    """Histogram of a part, where that is."""
    return LatticeHistogram(bounds, shape).update(part)


def _warn_of_unequal_sides(low, high):
    sides = high - low
    if sides.max() > _UNEQUAL * sides.min():
        warn_caller(
            f"bounds have sides of {sides.max():g} and {sides.min():g}: distances are measured "
            "across columns, so that a short side hardly counts, and what is seen of the shape is "
            "its shadow on the long ones. Divide columns by public numbers, so that a step of one "
            "means as much in each of them.",
        )


def _is_cloud(X):
    """Whether X is one cloud rather than an iterable of chunks."""
    if hasattr(X, "shape"):
        return len(X.shape) == 2
    return isinstance(X, list | tuple) and len(X) > 0 and np.ndim(X[0]) == 1


def _n_features(cloud):
    return cloud.n_features if isinstance(cloud, LatticeHistogram) else cloud.shape[1]


def _n_points(cloud):
    return cloud.n_points if isinstance(cloud, LatticeHistogram) else len(cloud)
