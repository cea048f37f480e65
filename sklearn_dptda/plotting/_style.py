"""Common parts of all displays: their base class, and styles that differ in greyscale."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DIMENSION_STYLE = {
    0: {"color": "#0072B2", "marker": "o"},
    1: {"color": "#D55E00", "marker": "^"},
    2: {"color": "#009E73", "marker": "s"},
}
OTHER_STYLE = {"color": "#555555", "marker": "D"}

# The lengths of these lists have no common factor. A combination of colour and marker is therefore
# repeated only after 7 * 8 clusters, and consecutive clusters differ in all three. The colours are
# those of Okabe and Ito, without yellow, which is hard to see on white.
CLUSTER_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
CLUSTER_MARKERS = ("o", "^", "s", "D", "v", "P", "<", "p")
CLUSTER_LINES = ("-", (0, (4, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (1, 1)), (0, (2, 1, 2, 3)))

# Largest number of contours of a function.
CONTOUR_LEVELS = 12

# Largest number of clusters in a legend. More would leave no room for the picture.
_NAMED_CLUSTERS = 10


class Display:
    """Base class of all displays. It stores the axes on which a display is drawn."""

    _figsize = (5.0, 4.2)

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes on which to draw. None creates a new figure.

        Returns
        -------
        self
        """
        self._draw(self._keep(ax))
        return self

    def _keep(self, ax: "Axes | None") -> "Axes":
        """Store and return the axes on which to draw."""
        self.ax_ = axes_or_new(ax, figsize=self._figsize)
        self.figure_ = self.ax_.figure
        return self.ax_

    def _draw(self, ax: "Axes") -> None:
        raise NotImplementedError


def axes_or_new(ax: "Axes | None", **kwargs: Any) -> "Axes":
    """Return ``ax``, or the axes of a new figure if it is None."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained", **kwargs)[1]


def style(q: int) -> dict[str, str]:
    """Return the colour and marker of a homology dimension."""
    return DIMENSION_STYLE.get(q, OTHER_STYLE)


def cluster_style(k: int) -> dict[str, Any]:
    """Return the colour, marker and line style of a cluster."""
    return {
        "color": CLUSTER_COLORS[k % len(CLUSTER_COLORS)],
        "marker": CLUSTER_MARKERS[k % len(CLUSTER_MARKERS)],
        "linestyle": CLUSTER_LINES[k % len(CLUSTER_LINES)],
    }


def cluster_names(clusters: Iterable[int]) -> list[str | None]:
    """Return the legend entry of each cluster, None for clusters without room in the legend."""
    names: list[str | None] = [f"cluster {k}" for k in clusters]
    n = len(names)
    if n > _NAMED_CLUSTERS:
        names[_NAMED_CLUSTERS - 1] = f"{names[_NAMED_CLUSTERS - 1]} (of {n})"
        names[_NAMED_CLUSTERS:] = [None] * (n - _NAMED_CLUSTERS)
    return names


def legend_below(ax: "Axes") -> None:
    """Draw a legend below the axes, where it covers nothing."""
    from matplotlib.transforms import ScaledTranslation

    # The offset is an absolute length, because the ticks and the axis label need the same room in
    # axes of every size.
    below = ScaledTranslation(0.0, -38 / 72, ax.figure.dpi_scale_trans)
    ax.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=ax.transAxes + below,
        borderaxespad=0.0,
        ncols=3,
        frameon=False,
        fontsize="small",
    )
