"""Plots of results: curves of errors, plans, accuracy bounds and audits."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda.model_selection import PrivacyUtilityCurve, ReleasePlan
from sklearn_dptda.plotting._style import axes_or_new, cluster_style, style
from sklearn_dptda.privacy import AuditResult
from sklearn_dptda.published import AccuracyBounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Quantiles of the errors between which a curve of mean errors has a band.
_BAND = (0.1, 0.9)


def plot_privacy_utility(curve: PrivacyUtilityCurve, ax: "Axes | None" = None) -> "Axes":
    """Plot the error of private diagrams against a parameter, on logarithmic axes.

    A line shows the mean error of each homology dimension, and a band the errors of the middle
    80 %. They are measured against the exact diagrams, so the picture is *not* private.

    Parameters
    ----------
    curve : PrivacyUtilityCurve
        The errors, from :func:`~sklearn_dptda.model_selection.privacy_utility_curve`.
    ax : matplotlib Axes, default=None
        Axes on which to draw. None creates a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn_dptda import DTMFiltration, PrivatePersistence
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> from sklearn_dptda.model_selection import privacy_utility_curve
    >>> from sklearn_dptda.plotting import plot_privacy_utility
    >>> X = [make_two_circles(1000, random_state=0)]
    >>> X = DTMFiltration(0.2, bounds=(-3, 3.5), resolution=31).fit_transform(X)
    >>> curve = privacy_utility_curve(
    ...     PrivatePersistence(), X, param_range=[1, 10], n_replicates=2, random_state=0
    ... )
    >>> plot_privacy_utility(curve).get_xlabel()
    'epsilon'
    """
    ax = axes_or_new(ax, figsize=(5, 3.6))
    x = curve.param_range.astype(float)
    for i, q in enumerate(curve.homology_dimensions):
        errors = curve.errors[..., i].reshape(len(x), -1)
        low, high = np.quantile(errors, _BAND, axis=1)
        ax.plot(x, errors.mean(axis=1), lw=1.5, label=f"H{q}", **style(q))
        ax.fill_between(x, low, high, color=style(q)["color"], alpha=0.15, lw=0)
    ax.set(xscale="log", yscale="log", xlabel=curve.param_name, ylabel="bottleneck distance")
    ax.legend(frameon=False)
    return ax


def plot_release_plan(
    plan: ReleasePlan, ax: "Axes | None" = None, *, epsilons: ArrayLike | None = None
) -> "Axes":
    """Plot the features that a private diagram shows, against epsilon.

    A point marks the plan: the epsilon from which on the wanted feature is detected. Everything
    that is drawn is public.

    Parameters
    ----------
    plan : ReleasePlan
        The plan, from :func:`~sklearn_dptda.model_selection.plan_release`.
    ax : matplotlib Axes, default=None
        Axes on which to draw. None creates a new figure.
    epsilons : array-like, default=None
        Values of epsilon for the curves. None uses values from one tenth to ten times the
        epsilon of the plan.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn_dptda.model_selection import plan_release
    >>> from sklearn_dptda.plotting import plot_release_plan
    >>> plan = plan_release(4000, bounds=(-1.5, 1.5), loop_radius=1.0, m=0.3)
    >>> plot_release_plan(plan).get_xlabel()
    'epsilon'
    """
    ax = axes_or_new(ax, figsize=(5.4, 3.8))
    curve, wanted = plan.curve(epsilons), plan.visible_persistence
    look, x = style(plan.homology_dimension), curve.epsilons
    # No feature is longer than the range of the function.
    thresholds = np.minimum(curve.thresholds, plan.upper)
    errors = np.where(curve.error_bounds < plan.upper, curve.error_bounds, np.nan)
    ax.fill_between(x, thresholds, plan.upper, color=look["color"], alpha=0.12, lw=0)
    ax.plot(x, thresholds, color=look["color"], lw=1.6, label="features above are detected")
    ax.plot(x, errors, "--", color="#555555", lw=1.2, label="upper bound of the error")
    name = "wanted feature minus grid and sampling errors"
    ax.axhline(wanted, color="black", lw=1, ls=":", label=name)
    ax.plot([plan.epsilon], [wanted], look["marker"], color="black", mec="white", ms=9)
    ax.annotate(
        f"epsilon = {plan.epsilon:g}",
        (plan.epsilon, wanted),
        xytext=(8, 8),
        textcoords="offset points",
    )
    ax.set(xscale="log", yscale="log", xlim=(x.min(), x.max()))
    ax.set(xlabel="epsilon", ylabel="persistence, in the units of the points")
    ax.legend(frameon=False, fontsize="small", loc="lower left")
    return ax


def plot_accuracy_bounds(bounds: Iterable[AccuracyBounds], ax: "Axes | None" = None) -> "Axes":
    """Plot the accuracy of metric-private mechanisms against the privacy rate.

    The shaded area below is what theorems exclude for every mechanism. The bounds do not depend
    on data.

    Parameters
    ----------
    bounds : list of AccuracyBounds
        Bounds from :func:`~sklearn_dptda.published.accuracy_bounds`, one for each rate.
    ax : matplotlib Axes, default=None
        Axes on which to draw. None creates a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn_dptda.plotting import plot_accuracy_bounds
    >>> from sklearn_dptda.published import accuracy_bounds
    >>> bounds = [accuracy_bounds([[0, 1], [1, 0]], alpha=alpha) for alpha in (1, 2)]
    >>> plot_accuracy_bounds(bounds).get_xlabel()
    'alpha, loss per unit of distance'
    """
    ax, bounds = axes_or_new(ax, figsize=(4.8, 3.8)), list(bounds)
    alphas = [one.alpha for one in bounds]
    tops = np.array([max(one.attained.values()) for one in bounds])
    lower = np.maximum([one.lower for one in bounds], 1e-4 * tops.min())
    ax.fill_between(alphas, 1e-9, lower, color="#e8e8e8", zorder=0)
    ax.plot(alphas, lower, color="#777777", lw=1, label="no mechanism below (theorems)")
    best = [(one.alpha, one.optimum) for one in bounds if one.optimum is not None]
    if best:
        ax.plot(
            *zip(*best, strict=True), "--", color="black", lw=1.4, label="best (linear program)"
        )
    for k, name in enumerate(bounds[0].attained):
        attained = [one.attained[name] for one in bounds]
        ax.plot(alphas, attained, label=name, markersize=5, **cluster_style(k))
    ax.set(xscale="log", yscale="log", ylim=(0.5 * lower.min(), 2 * tops.max()))
    ax.set(xlabel="alpha, loss per unit of distance", ylabel="mean distance, worst input")
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_audit(result: AuditResult, ax: "Axes | None" = None) -> "Axes":
    """Plot how the releases of two neighbouring data sets differ in an audit.

    If the audit learnt an event, the plot shows histograms of the score whose threshold defines
    the event. If the event was given, it shows the frequencies of the event. The title is the
    lower bound of epsilon.

    Parameters
    ----------
    result : AuditResult
        The result of :func:`~sklearn_dptda.privacy.audit_epsilon`.
    ax : matplotlib Axes, default=None
        Axes on which to draw. None creates a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn_dptda.plotting import plot_audit
    >>> from sklearn_dptda.privacy import NoiseSource, audit_epsilon
    >>> def count(data, random_state=None):
    ...     return sum(data) + NoiseSource(random_state).discrete_laplace(1.0, 1)
    >>> result = audit_epsilon(count, [0], [1], n_runs=400, random_state=0)
    >>> plot_audit(result).get_ylabel()
    'runs'
    """
    ax = axes_or_new(ax, figsize=(5, 3.6))
    sides, looks = ("D", "neighbour"), [cluster_style(k) for k in range(2)]
    if result.scores is None:
        frequencies = np.array(result.counts) / result.n_runs
        ax.bar(sides, frequencies, color=[look["color"] for look in looks])
        ax.set_ylabel("frequency of the event")
    else:
        edges = np.histogram_bin_edges(np.concatenate(result.scores), bins=50)
        for scores, side, look in zip(result.scores, sides, looks, strict=True):
            line = {"color": look["color"], "linestyle": look["linestyle"], "lw": 1.8}
            ax.hist(scores, edges, histtype="step", label=side, **line)
        ax.axvline(result.threshold, color="#555555", lw=1, ls=":", label="threshold")
        ax.set(xlabel=result.event, ylabel="runs")
        ax.legend(frameon=False)
    ax.set_title(f"epsilon ≥ {result.epsilon:.3g}")
    return ax
