"""What all displays share: their base, and colours and markers that stay apart in greyscale."""

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

# Lengths without a common factor: a combination comes back after 7 * 8 clusters only, and
# neighbours differ in all three. Okabe and Ito's colours, without yellow, which fades on white.
CLUSTER_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
CLUSTER_MARKERS = ("o", "^", "s", "D", "v", "P", "<", "p")
CLUSTER_LINES = ("-", (0, (4, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (1, 1)), (0, (2, 1, 2, 3)))

# Clusters that a legend names: more would leave no room for the picture.
_NAMED_CLUSTERS = 10


class Display:
    """Base of all displays: keeps the axes that it was drawn on."""

    def _keep(self, ax: "Axes", title: str | None = None) -> Self:
        if title:
            ax.set_title(title)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def axes_or_new(ax: "Axes | None", **kwargs: Any) -> "Axes":
    """Return ``ax``, or the axes of a new figure."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained", **kwargs)[1]


def style(q: int) -> dict[str, str]:
    """Colour and marker of a homology dimension."""
    return DIMENSION_STYLE.get(q, OTHER_STYLE)


def cluster_style(k: int) -> dict[str, Any]:
    """Colour, marker and line style of a cluster."""
    return {
        "color": CLUSTER_COLORS[k % len(CLUSTER_COLORS)],
        "marker": CLUSTER_MARKERS[k % len(CLUSTER_MARKERS)],
        "linestyle": CLUSTER_LINES[k % len(CLUSTER_LINES)],
    }


def cluster_names(clusters: Iterable[int]) -> list[str | None]:
    """Legend entry of each cluster, None for those that a legend has no room for."""
    names: list[str | None] = [f"cluster {k}" for k in clusters]
    n = len(names)
    if n > _NAMED_CLUSTERS:
        names[_NAMED_CLUSTERS - 1] = f"{names[_NAMED_CLUSTERS - 1]} (of {n})"
        names[_NAMED_CLUSTERS:] = [None] * (n - _NAMED_CLUSTERS)
    return names


def legend_below(ax: "Axes") -> None:
    """Draw a legend below the axes, where it hides nothing."""
    from matplotlib.transforms import ScaledTranslation

    # A length, and no share of the axes: the ticks and the axis label need the same room in
    # axes of any size.
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
