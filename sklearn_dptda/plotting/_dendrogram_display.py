"""Display of the merge tree of a mixture."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.hierarchy import dendrogram, fcluster
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._typing import FloatArray, IntArray
from sklearn_dptda.plotting._style import (
    Display,
    axes_or_new,
    cluster_names,
    cluster_style,
    legend_below,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The style of a branch with several clusters below it.
_JOINED = {"color": "#777777", "linestyle": "-"}
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
    cut : float, default=None
        Height of the cut. None derives it from ``labels``: halfway between the last saddle
        below the cut and the first saddle above it. If no single height gives these labels,
        the clusters have colours, but there is no line.
    labels : array-like of shape (n_modes,), default=None
        Cluster of each mode. None derives it from ``cut``. If both are None, no cut is drawn.

    Attributes
    ----------
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
        cut: float | None = None,
        labels: ArrayLike | None = None,
    ) -> None:
        self.linkage = np.array(linkage, dtype=float).reshape(-1, 4)
        n = len(self.linkage) + 1
        heights = np.zeros(n) if mode_heights is None else np.asarray(mode_heights, dtype=float)
        _check_length("mode_heights", heights, n)
        self.mode_heights = heights - heights.min()
        unknown = np.isinf(self.linkage[:, 2])
        self.linkage[unknown, 2] = 0.0
        self.linkage[unknown, 2] = 1.5 * self._scale()
        if labels is None and cut is not None:
            labels = _labels_below(self.linkage, cut)
        self.labels, self.cut = None, None
        if labels is not None:
            self.labels = np.asarray(labels)
            _check_length("labels", self.labels, n)
            self.cut = self._check_cut(cut, self.labels)

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, *, ax: "Axes | None" = None, **kwargs: Any
    ) -> Self:
        """Draw the merge tree of a fitted estimator.

        Parameters
        ----------
        estimator : MorseMerging or DPMoGMorse
            The fitted estimator.
        ax : matplotlib Axes, default=None
            Axes on which to draw. None creates a new figure.
        **kwargs
            Further arguments of :meth:`plot`.

        Returns
        -------
        DendrogramDisplay
        """
        check_is_fitted(estimator)
        needed = ("linkage_", "modes_", "mode_labels_", "n_clusters_")
        missing = [name for name in needed if not hasattr(estimator, name)]
        if missing:
            raise ValueError(
                f"estimator must have a merge tree, such as MorseMerging or DPMoGMorse, but "
                f"{type(estimator).__name__} has no {missing[0]}."
            )
        return cls(
            estimator.linkage_,
            mode_heights=estimator._mixture().height(estimator.modes_),
            cut=getattr(estimator, "merge_threshold", None),
            labels=estimator.mode_labels_,
        ).plot(ax=ax, **kwargs)

    def plot(self, ax: "Axes | None" = None, *, title: str | None = None) -> Self:
        """Draw the merge tree.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes on which to draw. None creates a new figure.
        title : str, default=None
            Title of the axes. None: no title.

        Returns
        -------
        DendrogramDisplay
        """
        n = len(self.mode_heights)
        ax = axes_or_new(ax, figsize=(max(4.5, 0.32 * n), 4.0))
        order, x, base = self._layout()
        looks = [_branch_style(cluster) for cluster in self._clusters_of_nodes(self.labels)]
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
        return self._keep(ax, title)

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

    def _clusters_of_nodes(self, labels: NDArray[Any] | None) -> list[Any]:
        """Return the cluster of each node of the tree, or None if it joins several."""
        clusters = [None] * len(self.mode_heights) if labels is None else list(labels)
        for left, right in self._children():
            clusters.append(clusters[left] if clusters[left] == clusters[right] else None)
        return clusters

    def _scale(self) -> float:
        top = max(self.mode_heights.max(), self.linkage[:, 2].max(initial=0.0))
        return top if top > 0 else 1.0

    def _stem(self) -> float:
        """Return the length of the branch above the last saddle."""
        return 0.12 * self._scale() if len(self.linkage) else 1.0

    def _check_cut(self, cut: float | None, labels: NDArray[Any]) -> float | None:
        """Return the height of the cut that gives the labels, or None if there is none."""
        clusters = self._clusters_of_nodes(labels)[len(labels) :]
        joined = np.array([cluster is not None for cluster in clusters], dtype=np.bool_)
        low = self.linkage[joined, 2].max(initial=0.0)
        high = self.linkage[~joined, 2].min(initial=np.inf)
        n_joined = len(labels) - len(np.unique(labels))
        of_one_height = low <= high and joined.sum() == n_joined
        if cut is not None:
            if not (of_one_height and low <= cut <= high):
                raise ValueError(f"cut={cut} does not give these labels. Pass only one of them.")
            return float(cut)
        if not of_one_height:
            return None
        return (low + high) / 2 if np.isfinite(high) else low + self._stem() / 2


def _labels_below(linkage: FloatArray, cut: float) -> IntArray:
    """Return clusters of modes that saddles up to the cut join, numbered by their first modes."""
    if len(linkage) == 0:
        return np.zeros(1, dtype=int)
    clusters = fcluster(linkage, cut, criterion="distance")
    _, first, inverse = np.unique(clusters, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def _branch_style(cluster: int | None) -> dict[str, Any]:
    if cluster is None:
        return _JOINED | {"lw": 1.2}
    look = cluster_style(cluster)
    return {"color": look["color"], "linestyle": look["linestyle"], "lw": 2.0}


def _check_length(name: str, values: NDArray[Any], n: int) -> None:
    if values.shape != (n,):
        raise ValueError(
            f"{name} must have one entry for each of the {n} modes that linkage joins; got shape "
            f"{values.shape}."
        )
