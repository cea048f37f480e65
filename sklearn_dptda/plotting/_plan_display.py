"""Pictures of plans: what shows at which epsilon."""

from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda.model_selection import ReleasePlan
from sklearn_dptda.plotting._style import axes_or_new, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ReleasePlanDisplay:
    """What a private diagram shows against epsilon, and where the wanted feature begins to show.

    Parameters
    ----------
    plan : ReleasePlan

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
        Set by :meth:`plot`.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn_dptda.model_selection import plan_release
    >>> from sklearn_dptda.plotting import ReleasePlanDisplay
    >>> plan = plan_release(4000, bounds=(-1.5, 1.5), loop_radius=1.0, m=0.3)
    >>> ReleasePlanDisplay(plan).plot().ax_.get_xlabel()
    'epsilon'
    """

    def __init__(self, plan: ReleasePlan) -> None:
        self.plan = plan

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        epsilons: ArrayLike | None = None,
        title: str | None = None,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
        epsilons : array-like, default=None
            As in :meth:`ReleasePlan.curve`.
        title : str, default=None

        Returns
        -------
        ReleasePlanDisplay
        """
        ax = axes_or_new(ax, figsize=(5.4, 3.8))
        plan, curve = self.plan, self.plan.curve(epsilons)
        look, seen = style(plan.homology_dimension), plan.visible_persistence
        # What is longer than the range of the function is no feature.
        top = np.full(curve.epsilons.shape, plan.upper)
        thresholds = np.minimum(curve.thresholds, top)
        ax.fill_between(curve.epsilons, thresholds, top, color=look["color"], alpha=0.12, lw=0)
        ax.plot(
            curve.epsilons,
            thresholds,
            color=look["color"],
            lw=1.6,
            label="features above are flagged",
        )
        errors = np.where(curve.error_bounds < plan.upper, curve.error_bounds, np.nan)
        ax.plot(
            curve.epsilons, errors, color="#555555", lw=1.2, ls="--", label="points move by less"
        )
        ax.axhline(
            seen, color="black", lw=1, ls=":", label="wanted feature, less grid and sampling"
        )
        ax.plot(
            [plan.epsilon], [seen], color="black", mec="white", ms=9, marker=look["marker"], ls=""
        )
        ax.annotate(
            f"epsilon = {plan.epsilon:g}",
            (plan.epsilon, seen),
            xytext=(8, 8),
            textcoords="offset points",
        )
        ends = float(curve.epsilons.min()), float(curve.epsilons.max())
        ax.set(
            xscale="log",
            yscale="log",
            xlim=ends,
            xlabel="epsilon",
            ylabel="persistence, in units of the points",
        )
        ax.legend(frameon=False, fontsize="small", loc="lower left")
        if title:
            ax.set_title(title)
        self.ax_, self.figure_ = ax, ax.figure
        return self
