"""Display of mixture densities in the plane, with their merge trees."""

import math
import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._typing import Bounds, FloatArray, IntArray
from sklearn_dptda.cluster._mixture_density import MixtureDensity, mixture_parameters
from sklearn_dptda.plotting._style import (
    CONTOUR_LEVELS,
    Display,
    cluster_names,
    cluster_style,
    legend_below,
)
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.rows._sizes import Logarithms
from sklearn_dptda.utils._bounds import check_bounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

# Without bounds, the picture extends this many standard deviations around the means.
_DEVIATIONS_DRAWN = 3.0
# Smallest range of the colours below the highest mode, in nats.
_LEAST_DEPTH = 6.0
# Number of mean-shift steps from a saddle up to a mode, and their damping. Paths of full steps
# would have kinks.
_STEPS, _DAMPING = 500, 0.2


class MixtureDensityDisplay(Display):
    """Plot of a mixture density in the plane, with its modes, saddles and clusters.

    Columns that count by their logarithms are drawn in these.
    The picture is as private as the parameters of the mixture, and no row of data is used. To
    show rows, draw synthetic ones with the method ``sample`` of the mixture.

    Parameters
    ----------
    estimator : DPMoG, DPMoGMorse, MorseMerging or mixture
        Fitted estimator, whose components, modes and saddles are drawn.
    axes : pair of ndarray
        Coordinates of the grid nodes along both axes.
    features : pair of int, default=(0, 1)
        Indices of the columns that the axes show.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes on which :meth:`plot` has drawn.
    figure_ : matplotlib Figure
        Figure of these axes.

    See Also
    --------
    DendrogramDisplay : Draws the merge tree with its heights.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import make_moons
    >>> from sklearn_dptda.cluster import DPMoGMorse
    >>> from sklearn_dptda.plotting import MixtureDensityDisplay
    >>> X, _ = make_moons(5000, noise=0.05, random_state=0)
    >>> private = DPMoGMorse(2, 8, epsilon=2.0, bounds=([-1.5, -1], [2.5, 1.5]), random_state=0)
    >>> display = MixtureDensityDisplay.from_estimator(private.fit(X))
    >>> display.ax_.get_xlabel()
    'feature 0'
    """

    _figsize = (5.6, 4.4)

    def __init__(
        self, estimator: Any, axes: FloatArray, *, features: Sequence[int] | IntArray = (0, 1)
    ) -> None:
        self.estimator, self.axes, self.columns = estimator, axes, np.asarray(features)
        self.mixture = _marginal(_density(estimator), self.columns)
        # Lines are evaluated one at a time, which limits the memory for many components.
        self.log_density = np.array([-self.mixture.height(line) for line in self._lines()])
        self.component_labels = np.zeros(len(self.mixture.means), dtype=int)
        self.modes = self.saddles = np.empty((0, 2))
        self.mode_labels = np.empty(0, dtype=int)
        if hasattr(estimator, "modes_"):
            self.component_labels = estimator.component_labels_
            self.modes = _in_logarithms(estimator, estimator.modes_)[:, self.columns]
            self.mode_labels = estimator.mode_labels_
            self.saddles = _known_saddles(estimator)[:, self.columns]

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        bounds: Bounds | None = None,
        features: Sequence[int] | IntArray = (0, 1),
        grid_resolution: int = 200,
        *,
        ax: "Axes | None" = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the density of a fitted mixture.

        Parameters
        ----------
        estimator : DPMoG, DPMoGMorse, MorseMerging or mixture
            Fitted estimator with ``weights_``, ``means_`` and ``covariances_``.
        bounds : pair of float or array-like of shape (2,), default=None
            Lower and upper ends of the two axes, in the units of the columns. None uses the
            parameter ``bounds`` of the estimator, or three standard deviations around the
            means if there are none.
        features : pair of int, default=(0, 1)
            Indices of the columns to draw. If there are more than two columns, the density is
            their exact marginal density. Modes and saddles are those of the whole density,
            projected to the two columns, and there are no boundaries between clusters.
        grid_resolution : int, default=200
            Number of grid nodes per axis. For a :class:`~sklearn_dptda.published.PublishedMerging`,
            every node climbs to a mode, which is slow: use about 50 nodes per axis, or
            ``show_regions=False``.
        ax : matplotlib Axes, default=None
            Axes on which to draw. None creates a new figure.
        **kwargs
            Further arguments of :meth:`plot`.

        Returns
        -------
        MixtureDensityDisplay
        """
        check_is_fitted(estimator)
        n_features = _density(estimator).n_features
        columns = _check_features(features, n_features)
        if not isinstance(grid_resolution, Integral) or grid_resolution < 2:
            raise ValueError(
                f"grid_resolution must be an integer of at least 2; got {grid_resolution}."
            )
        low, high = _box(estimator, bounds, columns, n_features)
        axes = np.linspace(low, high, int(grid_resolution)).T
        return cls(estimator, axes, features=columns).plot(ax=ax, **kwargs)

    @cached_property
    def paths(self) -> list[FloatArray]:
        """Edges of the merge tree: paths from a saddle up to a mode."""
        if not hasattr(self.estimator, "modes_"):
            return []
        return [path[:, self.columns] for path in _tree_paths(self.estimator)]

    @cached_property
    def regions(self) -> IntArray | None:
        """Cluster of each grid node, or None if no boundary can be drawn in the plane."""
        estimator = self.estimator
        if not len(self.modes) or estimator.n_clusters_ == 1 or estimator.modes_.shape[1] > 2:
            return None
        with warnings.catch_warnings():
            # The grid has no column names, even if the estimator was fitted to a frame.
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            nodes = np.concatenate([*self._lines()])[:, self.columns]
            labels = estimator.predict(Logarithms.learnt_by(estimator, 2).back(nodes))
        return labels.reshape(self.log_density.shape)

    def _lines(self) -> Iterator[FloatArray]:
        """Yield the grid nodes, one line parallel to the second axis at a time."""
        for x in self.axes[0]:
            yield np.column_stack([np.full(len(self.axes[1]), x), self.axes[1]])

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        cmap: "str | Colormap" = "Greys",
        show_components: bool = True,
        show_tree: bool = True,
        show_regions: bool = True,
        colorbar: bool = True,
    ) -> Self:
        """Draw the density.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes on which to draw. None creates a new figure.
        cmap : str or matplotlib Colormap, default="Greys"
            Colour map of the log density.
        show_components : bool, default=True
            Whether to draw the ellipses of the components.
        show_tree : bool, default=True
            Whether to draw the edges of the merge tree, through the saddles.
        show_regions : bool, default=True
            Whether to draw the boundaries between clusters.
        colorbar : bool, default=True
            Whether to draw a colour bar for the log density.

        Returns
        -------
        MixtureDensityDisplay
        """
        ax = self._keep(ax)
        self._draw_density(ax, cmap, colorbar)
        if show_regions and self.regions is not None:
            self._draw_boundaries(ax, self.regions)
        if show_components:
            self._draw_components(ax)
        self._draw_critical_points(ax, show_tree)
        names = getattr(self.estimator, "feature_names_in_", None)
        x, y = [f"feature {j}" if names is None else str(names[j]) for j in self.columns]
        scales = Logarithms.learnt_by(self.estimator, len(_density(self.estimator).means.T)).scales
        x, y = [
            name if scale == 0 else f"log2(1 + {name} / {scale:g})"
            for name, scale in zip((x, y), scales[self.columns], strict=True)
        ]
        ax.set(xlim=self.axes[0][[0, -1]], ylim=self.axes[1][[0, -1]], xlabel=x, ylabel=y)
        if ax.get_legend_handles_labels()[0]:
            legend_below(ax)
        return self

    def _draw_density(self, ax, cmap, colorbar):
        from matplotlib.ticker import MaxNLocator

        inside = (self.saddles >= self.axes[:, 0]) & (self.saddles <= self.axes[:, -1])
        depths = self.mixture.height(self.saddles[inside.all(axis=1)])
        top = self.log_density.max()
        # The range of the colours includes the lowest saddle.
        depth = max(_LEAST_DEPTH, 1.2 * (top + depths.max(initial=-top)))
        image = ax.contourf(
            *self.axes,
            self.log_density.T,
            levels=MaxNLocator(CONTOUR_LEVELS).tick_values(top - depth, top),
            cmap=cmap,
            # The darkest colours are reserved for what is drawn on top.
            vmax=top + depth,
            extend="min",
            zorder=0,
        )
        if colorbar:
            ticks = image.levels[::-2]
            ax.figure.colorbar(image, ax=ax, label="log density", shrink=0.8, ticks=ticks)

    def _draw_critical_points(self, ax, show_tree):
        if show_tree:
            for i, path in enumerate(self.paths):
                label = None if i else "merge tree"
                ax.plot(*path.T, ":", color="black", lw=1.5, label=label, zorder=3)
        if len(self.saddles):
            ax.plot(*self.saddles.T, "x", color="black", ms=7, mew=2, label="saddle", zorder=4)
        clusters = np.unique(self.mode_labels)
        for k, name in zip(clusters, cluster_names(clusters), strict=True):
            look = cluster_style(k) | {"linestyle": ""}
            mine = self.modes[self.mode_labels == k]
            ax.plot(*mine.T, **look, ms=8, mec="black", mew=1, label=name, zorder=5)

    def _draw_boundaries(self, ax, regions):
        from scipy.ndimage import gaussian_filter

        clusters = np.unique(regions)
        # Two clusters have a single boundary, so one indicator is enough.
        for k in clusters[1:] if len(clusters) == 2 else clusters:
            # Labels change from node to node, so without smoothing the line would be a staircase.
            inside = gaussian_filter((regions == k).astype(float), 1.0)
            ax.contour(*self.axes, inside.T, [0.5], colors="black", linewidths=1.4, zorder=2)
        if len(clusters) > 1:
            ax.plot([], [], color="black", lw=1.4, label="boundary")

    def _draw_components(self, ax):
        from matplotlib.patheffects import withStroke

        halo = [withStroke(linewidth=2.8, foreground="white")]
        turn = np.linspace(0.0, 2.0 * math.pi, 101)
        circle = np.stack([np.cos(turn), np.sin(turn)])
        mixture = self.mixture
        ellipses = zip(mixture.means, mixture.covariances, self.component_labels, strict=True)
        for mean, covariance, k in ellipses:
            x, y = mean[:, None] + np.linalg.cholesky(covariance) @ circle
            look = cluster_style(k) | {"marker": "None"}
            ax.plot(x, y, **look, lw=1.4, path_effects=halo, zorder=2)
        ax.plot([], [], color="#777777", lw=1.2, label="component (1 sd)")


def _density(estimator: Any) -> MixtureDensity:
    if hasattr(estimator, "_mixture"):
        return estimator._mixture()
    return MixtureDensity(*mixture_parameters(estimator))


def _marginal(density: MixtureDensity, columns: IntArray) -> MixtureDensity:
    return MixtureDensity(
        density.weights,
        density.means[:, columns],
        density.covariances[:, columns][:, :, columns],
    )


def _known_saddles(estimator: Any) -> FloatArray:
    """Return the saddles of a merge tree without those that were not found, which come last."""
    saddles = estimator.saddles_[np.isfinite(estimator.linkage_[:, 2])]
    return _in_logarithms(estimator, saddles)


def _in_logarithms(estimator: Any, points: FloatArray) -> FloatArray:
    """Points with the logarithms of the columns that count by these, as the density has them."""
    return Logarithms.learnt_by(estimator, points.shape[1]).of(points)


def _check_features(features: Any, n_features: int) -> IntArray:
    chosen = np.asarray(features)
    if (
        chosen.shape != (2,)
        or chosen.dtype.kind not in "iu"
        or chosen[0] == chosen[1]
        or not ((chosen >= 0) & (chosen < n_features)).all()
    ):
        raise ValueError(
            f"features={quoted(features)} must be two different columns of the mixture, which has "
            f"columns 0 to {n_features - 1}."
        )
    return chosen


def _box(estimator, bounds, columns, n_features):
    logarithms = Logarithms.learnt_by(estimator, n_features).selected(columns)
    if bounds is not None:
        low, high = check_bounds(bounds, 2)
        return logarithms.of(low), logarithms.of(high)
    # In MorseMerging, the inner mixture has the bounds.
    public = getattr(getattr(estimator, "estimator_", estimator), "bounds", None)
    if public is not None:
        low, high = check_bounds(public, n_features)
        return logarithms.of(low[columns]), logarithms.of(high[columns])
    marginal = _marginal(_density(estimator), columns)
    reach = _DEVIATIONS_DRAWN * np.sqrt(np.diagonal(marginal.covariances, axis1=1, axis2=2))
    return (marginal.means - reach).min(axis=0), (marginal.means + reach).max(axis=0)


def _tree_paths(estimator: Any) -> list[FloatArray]:
    """Return paths from each saddle up to the two modes that it joins, by mean shift.

    Paths that end in other branches are replaced by straight lines to the nearest modes.
    """
    modes = _in_logarithms(estimator, estimator.modes_)
    saddles = _known_saddles(estimator)
    if len(saddles) == 0:
        return []
    climbs = _climbs(_density(estimator), saddles)
    below = [{mode} for mode in range(len(modes))]
    paths = []
    for i, (left, right) in enumerate(estimator.linkage_[: len(saddles), :2].astype(int)):
        below.append(below[left] | below[right])
        pair = [climbs[:, 2 * i], climbs[:, 2 * i + 1]]
        tops = [_nearest(modes, climb[-1]) for climb in pair]
        if tops[0] in below[right]:
            pair, tops = pair[::-1], tops[::-1]
        if tops[0] not in below[left] or tops[1] not in below[right]:
            sides = [sorted(below[left]), sorted(below[right])]
            tops = [side[_nearest(modes[side], saddles[i])] for side in sides]
            pair = [saddles[i][None]] * 2
        paths += [
            np.vstack([saddles[i], climb, modes[top]])
            for climb, top in zip(pair, tops, strict=True)
        ]
    return paths


def _climbs(density: MixtureDensity, saddles: FloatArray) -> FloatArray:
    """Return points of damped mean shift from both sides of each saddle, two columns per saddle."""
    starts = []
    for saddle in saddles:
        values, vectors = np.linalg.eigh(density.slope_and_curvature(saddle)[1])
        away = 0.05 * vectors[:, 0] / math.sqrt(max(abs(values[0]), 1e-12))
        starts += [saddle + away, saddle - away]
    climbs = [np.array(starts)]
    for _ in range(_STEPS):
        step = _DAMPING * (density.mean_shift(climbs[-1]) - climbs[-1])
        climbs.append(climbs[-1] + step)
    return np.array(climbs)


def _nearest(points: FloatArray, point: FloatArray) -> int:
    return int(np.argmin(((points - point) ** 2).sum(axis=1)))
