"""Display of expected persistence diagrams."""

from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from sklearn_dptda.plotting._style import Display, axes_or_new, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Area of the marker of one expected point, in square points.
_AREA = 900.0


class ExpectedDiagramDisplay(Display):
    """Plot of an expected persistence diagram: the mean number of points per person.

    The areas of the markers are proportional to the numbers. The picture is as private as the
    mean from which it was computed.

    Parameters
    ----------
    points : array-like of shape (n, 3)
        Births, deaths and expected numbers of points, as
        :meth:`~sklearn_dptda.features.PersistenceMass.expected_diagram` returns them.
    upper : float, default=None
        Upper end of the axes, in the units of the diagram. None uses 1.1 times the largest
        death.
    homology_dimension : int, default=1
        Homology dimension, which determines the colour and the marker.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes on which :meth:`plot` has drawn.
    figure_ : matplotlib Figure
        Figure of these axes.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn_dptda.plotting import ExpectedDiagramDisplay
    >>> display = ExpectedDiagramDisplay([[0.1, 0.8, 1.5]]).plot()
    >>> display.ax_.get_xlabel()
    'birth'
    """

    def __init__(
        self, points: ArrayLike, *, upper: float | None = None, homology_dimension: int = 1
    ) -> None:
        self.points = np.asarray(points, dtype=float).reshape(-1, 3)
        self.upper = upper
        self.homology_dimension = homology_dimension

    @classmethod
    def from_estimator(
        cls, mass: BaseEstimator, mean: BaseEstimator, *, ax: "Axes | None" = None
    ) -> Self:
        """Draw the expected diagram of a fitted mean.

        Parameters
        ----------
        mass : PersistenceMass
            The transformer that computed the rows.
        mean : PrivateMean
            The mean, fitted to rows of ``mass``.
        ax : matplotlib Axes, default=None
            Axes on which to draw. None creates a new figure.

        Returns
        -------
        ExpectedDiagramDisplay
        """
        points = mass.expected_diagram(mean.mean_, mean.noise_)
        return cls(points, upper=2 * mass.upper).plot(ax)

    def plot(self, ax: "Axes | None" = None, *, title: str | None = None) -> Self:
        """Draw the diagram.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes on which to draw. None creates a new figure.
        title : str, default=None
            Title of the axes. None: no title.

        Returns
        -------
        ExpectedDiagramDisplay
        """
        ax = axes_or_new(ax, figsize=(4.4, 4.2))
        births, deaths, numbers = self.points.T
        end = max(deaths, default=1.0) * 1.1 if self.upper is None else self.upper
        ax.plot([0, end], [0, end], color="#999999", linewidth=1)
        look = style(self.homology_dimension)
        ax.scatter(births, deaths, s=_AREA * numbers, alpha=0.55, linewidths=0, **look)
        ax.set(xlabel="birth", ylabel="death", aspect="equal", xlim=(-0.03 * end, end))
        ax.set_ylim(0, end)
        total = numbers.sum()
        ax.text(0.97, 0.05, f"{total:.2g} points per person", ha="right", transform=ax.transAxes)
        return self._keep(ax, title)
