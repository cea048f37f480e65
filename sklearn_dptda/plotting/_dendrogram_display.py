"""Display of the merge tree of a mixture."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster.hierarchy import dendrogram
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._typing import FloatArray, IntArray
from sklearn_dptda.plotting._style import (
    Display,
    cluster_names,
    cluster_style,
    legend_below,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The style of a branch with several clusters below it.
_JOINED = {"color": "#777777", "linestyle": "-", "lw": 1.2}
# Above this number of modes, labels next to each other would overlap.
_CROWDED_MODES = 12


class DendrogramDisplay(Display):
    """Plot of the merge tree of a mixture's modes, and of the cut that defines the clusters.

    Each branch starts at the height of its mode and ends at the saddle where the mode joins a
    higher one, so its length is the prominence of the mode. Heights are minus the log density,
    relative to the highest mode. The picture is as private as the parameters of the mixture.

    Parameters
    ----------
    linkage : array-like of shape (n_modes - 1, 4)
        The merge tree in SciPy's format, where distances are heights of saddles. Infinite
        heights, of modes without a known saddle, are drawn at the upper edge.
    mode_heights : array-like of shape (n_modes,), default=None
        Minus the log density at the modes. The smallest value is subtracted. None starts all
        branches at 0.
    labels : array-like of shape (n_modes,), default=None
        Cluster of each mode, such as :meth:`~sklearn_dptda.cluster.MergeTree.cut` returns.
        None: no clusters are drawn.

    Attributes
    ----------
    cut : float or None
        Height of the line of the cut: halfway between the last saddle below the cut and the
        first saddle above it, or the ``merge_threshold`` of the estimator. If no single height
        gives the labels, it is None: the clusters have colours, but there is no line.
    ax_ : matplotlib Axes
        Axes on which :meth:`plot` has drawn.
    figure_ : matplotlib Figure
        Figure of these axes.

    See Also
    --------
    sklearn_dptda.cluster.morse_linkage : Computes the merge tree.
    MixtureDensityDisplay : Draws the density in the plane.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> import numpy as np
    >>> from sklearn_dptda.cluster import morse_linkage
    >>> from sklearn_dptda.plotting import DendrogramDisplay
    >>> tree = morse_linkage([0.5, 0.3, 0.2], [[0.0], [4.0], [12.0]], np.ones((3, 1, 1)))
    >>> display = DendrogramDisplay(
    ...     tree.linkage, mode_heights=tree.mode_heights, labels=tree.cut(n_clusters=2)
    ... ).plot()
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ['cluster 0', 'cluster 1']
    """

    def __init__(
        self,
        linkage: ArrayLike,
        *,
        mode_heights: ArrayLike | None = None,
        labels: ArrayLike | None = None,
    ) -> None:
        self.linkage = np.array(linkage, dtype=float).reshape(-1, 4)
        n = len(self.linkage) + 1
        heights = np.zeros(n) if mode_heights is None else np.asarray(mode_heights, dtype=float)
        self.labels = None if labels is None else np.asarray(labels)
        for name, values in (("mode_heights", heights), ("labels", self.labels)):
            if values is not None and values.shape != (n,):
                raise ValueError(
                    f"{name} must have one entry for each of the {n} modes that linkage joins; "
                    f"got shape {values.shape}."
                )
        self.mode_heights = heights - heights.min()
        unknown = np.isinf(self.linkage[:, 2])
        self.linkage[unknown, 2] = 0.0
        self.linkage[unknown, 2] = 1.5 * self._scale()
        self.cut = self._height_of_cut()
        self._figsize = (max(4.5, 0.32 * n), 4.0)

    @classmethod
    def from_estimator(cls, estimator: BaseEstimator, *, ax: "Axes | None" = None) -> Self:
        """Draw the merge tree of a fitted estimator.

        Parameters
        ----------
        estimator : MorseMerging or DPMoGMorse
            The fitted estimator.
        ax : matplotlib Axes, default=None
            Axes on which to draw. None creates a new figure.

        Returns
        -------
        DendrogramDisplay
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "linkage_"):
            raise ValueError(
                f"estimator must have a merge tree, such as MorseMerging or DPMoGMorse, but "
                f"{type(estimator).__name__} has no linkage_."
            )
        heights = estimator._mixture().height(estimator.modes_)
        display = cls(estimator.linkage_, mode_heights=heights, labels=estimator.mode_labels_)
        display.cut = display._height_of_cut(getattr(estimator, "merge_threshold", None))
        return display.plot(ax=ax)

    def _draw(self, ax: "Axes") -> None:
        n = len(self.mode_heights)
        order, x, base = self._layout()
        looks = [_branch_style(cluster) for cluster in self._clusters_of_nodes()]
        top = max(base[-1], self.cut or 0.0) + self._stem()
        # The last node has no saddle above it, so its branch extends to the upper edge.
        ends = np.full(2 * n - 1, top)
        for node, (left, right) in enumerate(self._children(), start=n):
            ends[[left, right]] = base[node]
            ax.plot(x[[left, right]], [base[node]] * 2, **looks[node], zorder=2)
        for node in range(2 * n - 1):
            ax.plot([x[node]] * 2, [base[node], ends[node]], **looks[node], zorder=2)
        low = -0.04 * self._scale()
        # The dotted line connects a mode with its number below.
        ax.vlines(x[:n], low, base[:n], color="#bbbbbb", linestyle=":", lw=0.8, zorder=1)
        if self.labels is None:
            ax.plot(x[:n], base[:n], "o", color=_JOINED["color"], ms=5, zorder=3)
        else:
            self._draw_clusters(ax, x, base, self.labels)
        ax.set(
            xlim=(-0.6, n - 0.4),
            ylim=(low, top),
            xlabel="mode",
            ylabel="height of the saddle above\nthe highest mode (nats)",
        )
        ax.set_xticks(range(n), [str(mode) for mode in order])
        if n > _CROWDED_MODES:
            ax.tick_params(axis="x", labelrotation=90, labelsize="small")
        ax.tick_params(axis="x", length=0)
        ax.spines[["top", "right"]].set_visible(False)

    def _draw_clusters(self, ax, x, base, labels):
        """Draw the modes in the style of their clusters, and the cut."""
        clusters = np.unique(labels)
        for k, name in zip(clusters, cluster_names(clusters), strict=True):
            look, mine = cluster_style(k), np.flatnonzero(labels == k)
            ax.plot(x[mine], base[mine], **look | {"linestyle": ""}, ms=6, zorder=3)
            ax.plot([], [], **look, lw=2, ms=6, label=name)
        legend_below(ax)
        if self.cut is None:
            return
        ax.axhline(self.cut, color="#333333", linestyle="--", lw=0.9, zorder=1, label="_cut")
        ax.annotate(
            f"{len(clusters)} cluster" + ("s" if len(clusters) > 1 else ""),
            (1.0, self.cut),
            xycoords=ax.get_yaxis_transform(),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
        )

    def _children(self) -> IntArray:
        return self.linkage[:, :2].astype(int)

    def _layout(self) -> tuple[list[int], FloatArray, FloatArray]:
        """Return the modes from left to right, and position and lower end of every branch."""
        n = len(self.mode_heights)
        order = dendrogram(self.linkage, no_plot=True)["leaves"] if n > 1 else [0]
        x = np.empty(2 * n - 1)
        x[order] = np.arange(n)
        for node, children in enumerate(self._children(), start=n):
            x[node] = x[children].mean()
        return order, x, np.concatenate([self.mode_heights, self.linkage[:, 2]])

    def _clusters_of_nodes(self) -> list[Any]:
        """Return the cluster of each node of the tree, or None if it joins several."""
        clusters = [None] * len(self.mode_heights) if self.labels is None else list(self.labels)
        for left, right in self._children():
            clusters.append(clusters[left] if clusters[left] == clusters[right] else None)
        return clusters

    def _height_of_cut(self, wanted: float | None = None) -> float | None:
        """Return the height of a cut that gives the labels, or None if there is none.

        It is the wanted height, unless light clusters were merged above it as well.
        """
        if self.labels is None:
            return None
        clusters = self._clusters_of_nodes()[len(self.labels) :]
        joined = np.array([cluster is not None for cluster in clusters], dtype=np.bool_)
        low = self.linkage[joined, 2].max(initial=0.0)
        high = self.linkage[~joined, 2].min(initial=np.inf)
        if low > high or joined.sum() != len(self.labels) - len(np.unique(self.labels)):
            return None
        if wanted is not None and low <= wanted <= high:
            return float(wanted)
        return (low + high) / 2 if np.isfinite(high) else low + self._stem() / 2

    def _scale(self) -> float:
        return max(self.mode_heights.max(), self.linkage[:, 2].max(initial=0.0)) or 1.0

    def _stem(self) -> float:
        """Return the length of the branch above the last saddle."""
        return 0.12 * self._scale() if len(self.linkage) else 1.0


def _branch_style(cluster: int | None) -> dict[str, Any]:
    return _JOINED if cluster is None else cluster_style(cluster) | {"marker": "None", "lw": 2.0}
