"""Pictures of how accurate private mechanisms are, against what is possible."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda.plotting._style import axes_or_new, cluster_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sklearn_dptda.theory import AccuracyBounds


class AccuracyBoundsDisplay:
    """Accuracy of mechanisms against the rate of privacy, above what no mechanism beats.

    Parameters
    ----------
    bounds : list of AccuracyBounds
        One for each rate.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
        Set by :meth:`plot`.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn_dptda.plotting import AccuracyBoundsDisplay
    >>> display = AccuracyBoundsDisplay.from_distances([[0, 1], [1, 0]], alphas=[1, 2])
    >>> display.ax_.get_xlabel()
    'alpha, loss per unit of distance'
    """

    def __init__(self, bounds: Iterable["AccuracyBounds"]) -> None:
        self.bounds = list(bounds)

    @classmethod
    def from_distances(
        cls,
        D1: ArrayLike,
        D2: ArrayLike | None = None,
        *,
        alphas: Iterable[float] = (1.0, 4.0, 16.0),
        optimum: bool | Literal["auto"] = "auto",
        ax: "Axes | None" = None,
    ) -> Self:
        """Compute bounds at several rates, and draw them.

        Parameters
        ----------
        D1, D2, optimum
            As in :func:`~sklearn_dptda.theory.accuracy_bounds`.
        alphas : sequence of float, default=(1.0, 4.0, 16.0)
        ax : matplotlib Axes, default=None

        Returns
        -------
        AccuracyBoundsDisplay
        """
        from sklearn_dptda.theory import accuracy_bounds

        bounds = (accuracy_bounds(D1, D2, alpha=alpha, optimum=optimum) for alpha in alphas)
        return cls(bounds).plot(ax=ax)

    def plot(self, ax: "Axes | None" = None, *, title: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
        title : str, default=None

        Returns
        -------
        AccuracyBoundsDisplay
        """
        ax = axes_or_new(ax, figsize=(4.8, 3.8))
        alphas = [one.alpha for one in self.bounds]
        lower = np.array([one.lower for one in self.bounds])
        tops = np.array([max(one.attained.values()) for one in self.bounds])
        shown = np.maximum(lower, 1e-4 * tops.min())
        ax.fill_between(alphas, 1e-9, shown, color="#e8e8e8", zorder=0)
        ax.plot(alphas, shown, color="#777777", lw=1, label="no mechanism below (theorems)")
        solved = [one for one in self.bounds if one.optimum is not None]
        if solved:
            ax.plot(
                [one.alpha for one in solved],
                [one.optimum for one in solved],
                color="black",
                lw=1.4,
                ls="--",
                label="best (linear program)",
            )
        for k, name in enumerate(self.bounds[0].attained):
            ax.plot(
                alphas,
                [one.attained[name] for one in self.bounds],
                label=name,
                markersize=5,
                **cluster_style(k),
            )
        ax.set(
            xscale="log",
            yscale="log",
            ylim=(0.5 * shown.min(), 2 * tops.max()),
            xlabel="alpha, loss per unit of distance",
            ylabel="mean distance, worst input",
        )
        ax.legend(frameon=False, fontsize="small")
        if title:
            ax.set_title(title)
        self.ax_, self.figure_ = ax, ax.figure
        return self
