"""Colours and markers that stay apart in greyscale and for the colour-blind."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DIMENSION_STYLE = {
    0: {"color": "#0072B2", "marker": "o"},
    1: {"color": "#D55E00", "marker": "^"},
    2: {"color": "#009E73", "marker": "s"},
}
OTHER_STYLE = {"color": "#555555", "marker": "D"}

# Lengths without a common factor: a combination comes back after 7 * 8 clusters only, and
# neighbours differ in all three. Okabe and Ito's colours, without yellow, which fades on white.
CLUSTER_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
CLUSTER_MARKERS = ("o", "^", "s", "D", "v", "P", "<", "p")
CLUSTER_LINES = ("-", (0, (4, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (1, 1)), (0, (2, 1, 2, 3)))

# Clusters that a legend names: more would leave no room for the picture.
_NAMED = 10


def style(q):
    """Colour and marker of a homology dimension."""
    return DIMENSION_STYLE.get(q, OTHER_STYLE)


def cluster_style(k):
    """Colour, marker and line style of a cluster."""
    return {
        "color": CLUSTER_COLORS[k % len(CLUSTER_COLORS)],
        "marker": CLUSTER_MARKERS[k % len(CLUSTER_MARKERS)],
        "linestyle": CLUSTER_LINES[k % len(CLUSTER_LINES)],
    }


def cluster_names(clusters):
    """Legend entry of each cluster, None for those that a legend has no room for."""
    names = [f"cluster {k}" for k in clusters[:_NAMED]] + [None] * len(clusters[_NAMED:])
    if len(clusters) > _NAMED:
        names[_NAMED - 1] += f" (of {len(clusters)})"
    return names


def legend_below(ax):
    """Draw a legend below the axes, where it hides nothing."""
    from matplotlib.transforms import ScaledTranslation

    # A length, and no share of the axes: the ticks and the axis label need the same room in
    # axes of any size.
    below = ScaledTranslation(0.0, -38 / 72, ax.figure.dpi_scale_trans)
    return ax.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=ax.transAxes + below,
        borderaxespad=0.0,
        ncols=3,
        frameon=False,
        fontsize="small",
    )


def axes_or_new(ax: "Axes | None", **kwargs: Any) -> "Axes":
    """Return ``ax``, or the axes of a new figure."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained", **kwargs)[1]
