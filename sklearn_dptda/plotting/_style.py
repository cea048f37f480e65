"""Colours and markers that stay apart in greyscale and for the colour-blind."""

DIMENSION_STYLE = {
    0: {"color": "#0072B2", "marker": "o"},
    1: {"color": "#D55E00", "marker": "^"},
    2: {"color": "#009E73", "marker": "s"},
}
OTHER_STYLE = {"color": "#555555", "marker": "D"}


def style(q):
    """Colour and marker of a homology dimension."""
    return DIMENSION_STYLE.get(q, OTHER_STYLE)


def axes_or_new(ax, **kwargs):
    """Return ``ax``, or the axes of a new figure."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained", **kwargs)[1]
