"""Pictures of privacy-utility curves."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.pipeline import Pipeline

from sklearn_dptda._typing import ListLike
from sklearn_dptda.model_selection import PrivacyUtilityCurve, privacy_utility_curve
from sklearn_dptda.persistence import PrivatePersistence
from sklearn_dptda.plotting._style import axes_or_new, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class PrivacyUtilityDisplay:
    """Error against a parameter, by homology dimension, on logarithmic axes.

    Parameters
    ----------
    curve : PrivacyUtilityCurve

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
        Set by :meth:`plot`.
    """

    def __init__(self, curve: PrivacyUtilityCurve) -> None:
        self.curve = curve

    @classmethod
    def from_estimator(
        cls,
        estimator: PrivatePersistence | Pipeline,
        X: ListLike,
        *,
        ax: "Axes | None" = None,
        **kwargs: Any,
    ) -> Self:
        """Compute a curve and draw it.

        Parameters
        ----------
        estimator, X
            As in :func:`privacy_utility_curve`.
        ax : matplotlib Axes, default=None
        **kwargs
            Passed on to :func:`privacy_utility_curve`.

        Returns
        -------
        PrivacyUtilityDisplay
        """
        return cls(privacy_utility_curve(estimator, X, **kwargs)).plot(ax=ax)

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        quantiles: Sequence[float] = (0.1, 0.9),
        label: str | None = None,
    ) -> Self:
        """Draw mean errors and a band between two quantiles.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
        quantiles : tuple of float, default=(0.1, 0.9)
        label : str, default=None
            Put before the names of the dimensions in the legend.

        Returns
        -------
        PrivacyUtilityDisplay
        """
        ax = axes_or_new(ax, figsize=(5, 3.6))
        x = self.curve.param_range.astype(float)
        for i, q in enumerate(self.curve.homology_dimensions):
            errors = self.curve.errors[..., i].reshape(len(x), -1)
            low, high = np.quantile(errors, quantiles, axis=1)
            look = style(q)
            name = f"{label}, H{q}" if label else f"H{q}"
            ax.plot(x, errors.mean(axis=1), lw=1.5, label=name, **look)
            ax.fill_between(x, low, high, color=look["color"], alpha=0.15, lw=0)
        ax.set(
            xscale="log", yscale="log", xlabel=self.curve.param_name, ylabel="bottleneck distance"
        )
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
