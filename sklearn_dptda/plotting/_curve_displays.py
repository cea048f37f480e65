"""Displays of curves against a public parameter, and of audits."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline

from sklearn_dptda._typing import ListLike
from sklearn_dptda.model_selection import PrivacyUtilityCurve, ReleasePlan, privacy_utility_curve
from sklearn_dptda.persistence import PrivatePersistence
from sklearn_dptda.plotting._style import Display, axes_or_new, cluster_style, style
from sklearn_dptda.privacy import AuditResult
from sklearn_dptda.published import AccuracyBounds, accuracy_bounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class PrivacyUtilityDisplay(Display):
    """Plot of the error against a parameter for each homology dimension, on logarithmic axes.

    The errors are measured against the exact diagrams, so the picture is *not* private.

    Parameters
    ----------
    curve : PrivacyUtilityCurve
        The errors, from :func:`~sklearn_dptda.model_selection.privacy_utility_curve`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes on which :meth:`plot` has drawn.
    figure_ : matplotlib Figure
        Figure of these axes.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn_dptda import DTMFiltration, PrivatePersistence
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> from sklearn_dptda.plotting import PrivacyUtilityDisplay
    >>> X = [make_two_circles(1000, random_state=0)]
    >>> X = DTMFiltration(0.2, bounds=(-3, 3.5), resolution=31).fit_transform(X)
    >>> display = PrivacyUtilityDisplay.from_estimator(
    ...     PrivatePersistence(), X, param_range=[1, 10], n_replicates=2, random_state=0
    ... )
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('epsilon', 'bottleneck distance')
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
        """Compute a curve of errors, and draw it.

        Parameters
        ----------
        estimator : PrivatePersistence, or Pipeline that ends in one
            It is cloned for every value.
        X : list
            Filtrations, or the input of the pipeline. Use simulated or public data.
        ax : matplotlib Axes, default=None
            Axes on which to draw. None creates a new figure.
        **kwargs
            Further arguments of
            :func:`~sklearn_dptda.model_selection.privacy_utility_curve`, such as
            ``param_name`` and ``param_range``.

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
        """Draw the mean errors, and a band between two quantiles.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes on which to draw. None creates a new figure.
        quantiles : tuple of float, default=(0.1, 0.9)
            Lower and upper quantile of the errors, the limits of the band.
        label : str, default=None
            Prefix of the names of the dimensions in the legend.

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
        return self._keep(ax)


class ReleasePlanDisplay(Display):
    """Plot of the features that a private diagram shows, against epsilon.

    It also marks the epsilon from which on the wanted feature is detected. Everything that is
    drawn is public.

    Parameters
    ----------
    plan : ReleasePlan
        The plan, from :func:`~sklearn_dptda.model_selection.plan_release`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes on which :meth:`plot` has drawn.
    figure_ : matplotlib Figure
        Figure of these axes.

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
        """Draw the plan.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes on which to draw. None creates a new figure.
        epsilons : array-like, default=None
            Values of epsilon for the curves. None uses values from one tenth to ten times the
            epsilon of the plan.
        title : str, default=None
            Title of the axes. None: no title.

        Returns
        -------
        ReleasePlanDisplay
        """
        ax = axes_or_new(ax, figsize=(5.4, 3.8))
        plan, curve = self.plan, self.plan.curve(epsilons)
        look, seen = style(plan.homology_dimension), plan.visible_persistence
        # No feature is longer than the range of the function.
        top = np.full(curve.epsilons.shape, plan.upper)
        thresholds = np.minimum(curve.thresholds, top)
        ax.fill_between(curve.epsilons, thresholds, top, color=look["color"], alpha=0.12, lw=0)
        ax.plot(
            curve.epsilons,
            thresholds,
            color=look["color"],
            lw=1.6,
            label="features above are detected",
        )
        errors = np.where(curve.error_bounds < plan.upper, curve.error_bounds, np.nan)
        ax.plot(
            curve.epsilons,
            errors,
            color="#555555",
            lw=1.2,
            ls="--",
            label="upper bound of the error",
        )
        ax.axhline(
            seen, color="black", lw=1, ls=":", label="wanted feature minus grid and sampling errors"
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
            ylabel="persistence, in the units of the points",
        )
        ax.legend(frameon=False, fontsize="small", loc="lower left")
        return self._keep(ax, title)


class AccuracyBoundsDisplay(Display):
    """Plot of the accuracy of metric-private mechanisms against the privacy rate.

    The shaded area below is what theorems exclude for every mechanism. The bounds do not depend
    on data.

    Parameters
    ----------
    bounds : list of AccuracyBounds
        Bounds from :func:`~sklearn_dptda.published.accuracy_bounds`, one for each rate.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes on which :meth:`plot` has drawn.
    figure_ : matplotlib Figure
        Figure of these axes.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn_dptda.plotting import AccuracyBoundsDisplay
    >>> display = AccuracyBoundsDisplay.from_distances([[0, 1], [1, 0]], alphas=[1, 2])
    >>> display.ax_.get_xlabel()
    'alpha, loss per unit of distance'
    """

    def __init__(self, bounds: Iterable[AccuracyBounds]) -> None:
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
        D1 : array-like of shape (n_points, n_points)
            Distances between the possible inputs, in which the privacy loss is measured.
        D2 : array-like of shape (n_points, n_points), default=None
            Distances in which the accuracy is measured. None uses ``D1``.
        alphas : sequence of float, default=(1.0, 4.0, 16.0)
            Privacy rates: privacy losses per unit of ``D1``.
        optimum : bool or "auto", default="auto"
            Whether to compute the best accuracy by a linear program. ``"auto"`` does so for up
            to 40 points.
        ax : matplotlib Axes, default=None
            Axes on which to draw. None creates a new figure.

        Returns
        -------
        AccuracyBoundsDisplay
        """
        bounds = (accuracy_bounds(D1, D2, alpha=alpha, optimum=optimum) for alpha in alphas)
        return cls(bounds).plot(ax=ax)

    def plot(self, ax: "Axes | None" = None, *, title: str | None = None) -> Self:
        """Draw the bounds and the accuracy of each mechanism.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes on which to draw. None creates a new figure.
        title : str, default=None
            Title of the axes. None: no title.

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
        return self._keep(ax, title)


class AuditDisplay(Display):
    """Plot of how the releases of two neighbouring data sets differ in an audit.

    If the audit learnt an event, the display shows histograms of the score whose threshold
    defines the event. If the event was given, it shows the frequencies of the event.

    Parameters
    ----------
    result : AuditResult
        The result of :func:`~sklearn_dptda.privacy.audit_epsilon`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes on which :meth:`plot` has drawn.
    figure_ : matplotlib Figure
        Figure of these axes.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn_dptda.plotting import AuditDisplay
    >>> from sklearn_dptda.privacy import NoiseSource, audit_epsilon
    >>> def count(data, random_state=None):
    ...     return sum(data) + NoiseSource(random_state).discrete_laplace(1.0, 1)
    >>> result = audit_epsilon(count, [0], [1], n_runs=400, random_state=0)
    >>> AuditDisplay(result).plot().ax_.get_ylabel()
    'runs'
    """

    def __init__(self, result: AuditResult) -> None:
        self.result = result

    def plot(self, ax: "Axes | None" = None, *, title: str | None = None) -> Self:
        """Draw the histograms or frequencies.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes on which to draw. None creates a new figure.
        title : str, default=None
            Title of the axes. None shows the lower bound of epsilon.

        Returns
        -------
        AuditDisplay
        """
        ax = axes_or_new(ax, figsize=(5, 3.6))
        sides, scores = ("D", "neighbour"), self.result.scores
        looks = [cluster_style(k) for k in range(2)]
        if scores is None:
            frequencies = np.array(self.result.counts) / self.result.n_runs
            ax.bar(sides, frequencies, color=[look["color"] for look in looks])
            ax.set_ylabel("frequency of the event")
        else:
            edges = np.histogram_bin_edges(np.concatenate(scores), bins=50)
            for values, side, look in zip(scores, sides, looks, strict=True):
                line = {"color": look["color"], "linestyle": look["linestyle"], "lw": 1.8}
                ax.hist(values, edges, histtype="step", label=side, **line)
            ax.axvline(self.result.threshold, color="#555555", lw=1, ls=":", label="threshold")
            ax.set(xlabel=self.result.event, ylabel="runs")
            ax.legend(frameon=False)
        return self._keep(ax, f"epsilon ≥ {self.result.epsilon:.3g}" if title is None else title)
