"""Pictures of audits."""

from typing import TYPE_CHECKING, Self

import numpy as np

from sklearn_dptda.plotting._style import axes_or_new, cluster_style
from sklearn_dptda.privacy import AuditResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIDES = ("D", "neighbour")


class AuditDisplay:
    """How the releases of two neighbouring data sets differ in what an audit counted.

    Histograms of what the learnt event is a threshold of; for an event that
    was given, how often it occurred.

    Parameters
    ----------
    result : AuditResult
        Of :func:`~sklearn_dptda.privacy.audit_epsilon`.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
        Set by :meth:`plot`.

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
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
        title : str, default=None
            None: the lower bound of epsilon.

        Returns
        -------
        AuditDisplay
        """
        ax = axes_or_new(ax, figsize=(5, 3.6))
        if self.result.scores is None:
            self._plot_counts(ax)
        else:
            self._plot_scores(ax)
        ax.set_title(f"epsilon ≥ {self.result.epsilon:.3g}" if title is None else title)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _plot_counts(self, ax):
        colors = [cluster_style(k)["color"] for k in range(2)]
        ax.bar(_SIDES, np.array(self.result.counts) / self.result.n_runs, color=colors)
        ax.set_ylabel("frequency of the event")

    def _plot_scores(self, ax):
        edges = np.histogram_bin_edges(np.concatenate(self.result.scores), bins=50)
        for k, (scores, side) in enumerate(zip(self.result.scores, _SIDES, strict=True)):
            look = {name: cluster_style(k)[name] for name in ("color", "linestyle")}
            ax.hist(scores, edges, histtype="step", lw=1.8, label=side, **look)
        ax.axvline(self.result.threshold, color="#555555", lw=1, ls=":", label="threshold")
        ax.set(xlabel=self.result.event, ylabel="runs")
        ax.legend(frameon=False)
