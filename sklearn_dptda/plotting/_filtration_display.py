"""Pictures of functions on grids and on landmarks."""

from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA

from sklearn_dptda._typing import ListLike
from sklearn_dptda.filtration import ComplexFiltration, GridFiltration
from sklearn_dptda.persistence._cubical import simplex_tree
from sklearn_dptda.plotting._style import Display, axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class FiltrationDisplay(Display):
    """A function on a grid in one or two dimensions, or a slice of three, or on landmarks.

    Landmarks are drawn in the plane of their two principal components, with a
    cycle of the loop that lives longest: its last edge, and the shortest way
    back over edges that are there before.

    The values are an exact statistic of the cloud: the picture is *not*
    private.

    Parameters
    ----------
    filtration : GridFiltration or ComplexFiltration
    points : array-like of shape (n, d), default=None
        Points of the cloud to draw on top, or below landmarks.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
        Set by :meth:`plot`.
    """

    def __init__(
        self, filtration: GridFiltration | ComplexFiltration, *, points: ArrayLike | None = None
    ) -> None:
        self.filtration = filtration
        self.points = None if points is None else np.asarray(points, dtype=float)

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: ListLike,
        *,
        ax: "Axes | None" = None,
        show_points: bool = True,
    ) -> Self:
        """Compute the filtration of the first cloud and draw it.

        Parameters
        ----------
        estimator : DTMFiltration or KernelDistanceFiltration
        X : list of array-like of shape (n, d)
        ax : matplotlib Axes, default=None
        show_points : bool, default=True

        Returns
        -------
        FiltrationDisplay
        """
        filtration = estimator.fit_transform(X[:1])[0]
        return cls(filtration, points=X[0] if show_points else None).plot(ax=ax)

    def plot(self, ax: "Axes | None" = None, *, levels: int = 12, title: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
        levels : int, default=12
            Number of contour levels in two dimensions.
        title : str, default=None

        Returns
        -------
        FiltrationDisplay
        """
        ax = axes_or_new(ax, figsize=(5, 4.2))
        if isinstance(self.filtration, ComplexFiltration):
            return self._plot_landmarks(self.filtration, ax, title)
        values, axes = self.filtration.values, self.filtration.axes
        if values.ndim > 3:
            raise ValueError("Only filtrations in one, two or three dimensions can be drawn.")
        if values.ndim == 1:
            ax.plot(axes[0], values, color="#0072B2")
            ax.set_ylabel("value")
            if self.points is not None:
                ax.plot(self.points[:, 0], np.zeros(len(self.points)), "|", color="#333333")
        else:
            middle = values.shape[2] // 2 if values.ndim == 3 else None
            plane = values if middle is None else values[:, :, middle]
            image = ax.contourf(axes[0], axes[1], plane.T, levels=levels, cmap="cividis")
            ax.figure.colorbar(image, ax=ax, label="value", shrink=0.8)
            if self.points is not None and middle is None:
                ax.scatter(*self.points.T, s=2, color="white", alpha=0.7, linewidths=0)
            if middle is not None:
                ax.set_title(f"slice at {axes[2][middle]:.3g}")
            ax.set_aspect("equal")
        return self._keep(ax, title)

    def _plot_landmarks(self, filtration: ComplexFiltration, ax: "Axes", title: str | None) -> Self:
        landmarks = filtration.complex.landmarks
        plane = PCA(min(2, *landmarks.shape), random_state=0).fit(landmarks)
        places = _in_plane(plane.transform(landmarks))
        if self.points is not None:
            points = _in_plane(plane.transform(self.points))
            ax.scatter(*points.T, s=2, color="#bbbbbb", linewidths=0, zorder=1)
        cycle = longest_cycle(filtration)
        if cycle:
            ax.plot(*places[[*cycle, cycle[0]]].T, color="#D55E00", linewidth=2, zorder=2)
        values = filtration.values[: len(landmarks)]
        drawn = ax.scatter(*places.T, c=values, s=40, cmap="cividis", edgecolors="white", zorder=3)
        ax.figure.colorbar(drawn, ax=ax, label="value", shrink=0.8)
        ax.set_aspect("equal")
        return self._keep(ax, title)


def longest_cycle(filtration: ComplexFiltration) -> list[int]:
    """Landmarks of a cycle of the loop that lives longest, in their order; none without loops."""
    tree = simplex_tree(filtration.values, filtration.upper, filtration.complex)
    tree.compute_persistence()

    def life(pair: tuple[list[int], list[int]]) -> float:
        birth, death = pair
        return (tree.filtration(death) if death else filtration.upper) - tree.filtration(birth)

    loops = [pair for pair in tree.persistence_pairs() if len(pair[0]) == 2]
    if not loops:
        return []
    (start, end), _ = max(loops, key=life)
    born = tree.filtration([start, end])
    # Where several edges have one value, any of them may close the cycle but this one.
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
    """Coordinates with a second one, if there is none."""
    return np.pad(coordinates, [(0, 0), (0, 2 - coordinates.shape[1])])
