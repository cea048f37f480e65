"""Display of functions on grids and on landmarks."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA

from sklearn_dptda._typing import ListLike
from sklearn_dptda.filtration import ComplexFiltration, GridFiltration
from sklearn_dptda.persistence import FeatureRegion
from sklearn_dptda.persistence._cubical import persistent_tree
from sklearn_dptda.plotting._style import CLUSTER_COLORS, CONTOUR_LEVELS, Display, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Outlines of features in fewer resamples than this share are dotted.
_SURE = 0.9


class FiltrationDisplay(Display):
    """Plot of a function on a grid or on landmarks: *not* private, unless a cloud was released.

    A function on a one- or two-dimensional grid is drawn as a whole, and a three-dimensional
    one as a slice. Landmarks are drawn in the plane of their two principal components,
    together with a cycle around the most persistent loop: the edge that closes it, and the
    shortest way back over earlier edges.

    Parameters
    ----------
    filtration : GridFiltration or ComplexFiltration
        The function, as :class:`DTMFiltration` returns it.
    points : array-like of shape (n, d), default=None
        Points of the cloud, drawn above a grid function or below landmarks.
    regions : list of FeatureRegion, default=()
        Features of a function in the plane, from :func:`feature_regions`, whose outlines are drawn
        in different colours.
    shares : array-like of shape (n_regions,), default=None
        Shares of these features, from :class:`CloudResamples`, which are written beside them.
        Outlines of a share below 0.9 are dotted.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes on which :meth:`plot` has drawn.
    figure_ : matplotlib Figure
        Figure of these axes.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn_dptda import DTMFiltration
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> from sklearn_dptda.plotting import FiltrationDisplay
    >>> X = [make_two_circles(500, random_state=0)]
    >>> filtration = DTMFiltration(0.2, bounds=(-3, 3.5), resolution=31)
    >>> display = FiltrationDisplay.from_estimator(filtration, X)
    >>> display.filtration.shape
    (31, 31)
    """

    def __init__(
        self,
        filtration: GridFiltration | ComplexFiltration,
        *,
        points: ArrayLike | None = None,
        regions: Sequence[FeatureRegion] = (),
        shares: ArrayLike | None = None,
    ) -> None:
        self.filtration = filtration
        self.regions, self.shares = regions, shares
        self.points = None if points is None else np.asarray(points, dtype=float)

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, X: ListLike, *, ax: "Axes | None" = None
    ) -> Self:
        """Compute the filtration of the first cloud, and draw it with the points of the cloud.

        Parameters
        ----------
        estimator : DTMFiltration or KernelDistanceFiltration
            The estimator, which is fitted to the first cloud.
        X : list of array-like of shape (n, d)
            The point clouds.
        ax : matplotlib Axes, default=None
            Axes on which to draw. None creates a new figure.

        Returns
        -------
        FiltrationDisplay
        """
        return cls(estimator.fit_transform(X[:1])[0], points=X[0]).plot(ax=ax)

    def _draw(self, ax: "Axes") -> None:
        if isinstance(self.filtration, ComplexFiltration):
            self._plot_landmarks(self.filtration, ax)
        else:
            self._plot_grid(self.filtration, ax)

    def _plot_grid(self, filtration: GridFiltration, ax: "Axes") -> None:
        values, axes = filtration.values, filtration.axes
        if values.ndim > 3:
            raise ValueError(
                f"Only filtrations in one, two or three dimensions can be drawn; got {values.ndim}."
            )
        if values.ndim == 1:
            ax.plot(axes[0], values, color=style(0)["color"])
            ax.set_ylabel("value")
            if self.points is not None:
                ax.plot(self.points[:, 0], np.zeros(len(self.points)), "|", color="#333333")
            return
        flat = values.ndim == 2
        if not flat:
            middle = values.shape[2] // 2
            values = values[:, :, middle]
            ax.set_title(f"slice at {axes[2][middle]:.3g}")
        image = ax.contourf(axes[0], axes[1], values.T, levels=CONTOUR_LEVELS, cmap="cividis")
        ax.figure.colorbar(image, ax=ax, label="value", shrink=0.8)
        if flat and self.points is not None:
            ax.scatter(*self.points.T, s=2, color="white", alpha=0.7, linewidths=0)
        shares = np.ones(len(self.regions)) if self.shares is None else np.asarray(self.shares)
        for i, (region, share) in enumerate(zip(self.regions, shares, strict=True)):
            color = CLUSTER_COLORS[i % len(CLUSTER_COLORS)]
            for curve in region.outline():
                ax.plot(*curve.T, color="white", linewidth=3)
                ax.plot(*curve.T, color=color, linestyle="-" if share >= _SURE else ":")
            if self.shares is not None:
                options = {"ha": "center", "va": "center", "fontsize": "x-small"}
                ax.annotate(f"{share:.2f}", region.middle, color="white", **options)
        ax.set_aspect("equal")

    def _plot_landmarks(self, filtration: ComplexFiltration, ax: "Axes") -> None:
        landmarks = filtration.complex.landmarks
        plane = PCA(min(2, *landmarks.shape), random_state=0).fit(landmarks)
        places = _in_plane(plane.transform(landmarks))
        if self.points is not None:
            points = _in_plane(plane.transform(self.points))
            ax.scatter(*points.T, s=2, color="#bbbbbb", linewidths=0, zorder=1)
        cycle = longest_cycle(filtration)
        if cycle:
            ax.plot(*places[[*cycle, cycle[0]]].T, color=style(1)["color"], linewidth=2, zorder=2)
        values = filtration.values[: len(landmarks)]
        image = ax.scatter(*places.T, c=values, s=40, cmap="cividis", edgecolors="white", zorder=3)
        ax.figure.colorbar(image, ax=ax, label="value", shrink=0.8)
        ax.set_aspect("equal")


def longest_cycle(filtration: ComplexFiltration) -> list[int]:
    """Return the landmarks of a cycle around the most persistent loop, in their order.

    The list is empty if there are no loops.
    """
    tree = persistent_tree(filtration.values, filtration.upper, filtration.complex)

    def life(pair: tuple[list[int], list[int]]) -> float:
        birth, death = pair
        return (tree.filtration(death) if death else filtration.upper) - tree.filtration(birth)

    loops = [pair for pair in tree.persistence_pairs() if len(pair[0]) == 2]
    if not loops:
        return []
    (start, end), _ = max(loops, key=life)
    born = tree.filtration([start, end])
    # If several edges have the same value, the way back may use all of them but this one.
    edges = [
        edge
        for edge, value in tree.get_skeleton(1)
        if len(edge) == 2 and value <= born and sorted(edge) != sorted((start, end))
    ]
    first, second = np.array(edges).T
    landmarks = filtration.complex.landmarks
    lengths = np.linalg.norm(landmarks[first] - landmarks[second], axis=1)
    n = len(landmarks)
    graph = coo_array((lengths, (first, second)), shape=(n, n)).tocsr()
    _, before = dijkstra(graph, directed=False, indices=start, return_predecessors=True)
    cycle = [end]
    while cycle[-1] != start:
        cycle.append(int(before[cycle[-1]]))
    return cycle


def _in_plane(coordinates: np.ndarray) -> np.ndarray:
    """Append a second coordinate of zeros if there is only one."""
    return np.pad(coordinates, [(0, 0), (0, 2 - coordinates.shape[1])])
