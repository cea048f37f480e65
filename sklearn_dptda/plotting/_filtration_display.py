"""Pictures of functions on grids."""

from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from sklearn_dptda._typing import ListLike
from sklearn_dptda.filtration import GridFiltration
from sklearn_dptda.plotting._style import Display, axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class FiltrationDisplay(Display):
    """A function on a grid in one or two dimensions, or a slice of three.

    The values are an exact statistic of the cloud: the picture is *not*
    private.

    Parameters
    ----------
    filtration : GridFiltration
    points : array-like of shape (n, d), default=None
        Points of the cloud to draw on top.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
        Set by :meth:`plot`.
    """

    def __init__(self, filtration: GridFiltration, *, points: ArrayLike | None = None) -> None:
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
