"""Interactive persistence diagrams, where plotly is installed."""

from sklearn_dptda.plotting._style import style

_SYMBOLS = {"o": "circle", "^": "triangle-up", "s": "square", "D": "diamond"}
_SHOWN = "birth %{x:.4g}<br>death %{y:.4g}<br>persistence %{customdata:.4g}"


def plotly_figure(display, title):
    """Figure of what the display draws, with a box of numbers at each point."""
    try:
        from plotly import graph_objects
    except ImportError as error:
        raise ImportError(
            "to_plotly needs plotly: pip install 'sklearn-dptda[interactive]'."
        ) from error
    low, high = display._extent()
    figure = graph_objects.Figure()
    if display.error_bound and not display.superlevel:
        width = 2 * display.error_bound
        band = {"x": [low, high, high, low], "y": [low, high, high + width, low + width]}
        look = {"fill": "toself", "fillcolor": "rgba(240,200,110,.35)", "mode": "none"}
        figure.add_scatter(**band, **look, name="may be noise", hoverinfo="skip")
    line = {"mode": "lines", "line": {"color": "#999999"}, "showlegend": False}
    figure.add_scatter(x=[low, high], y=[low, high], hoverinfo="skip", **line)
    for i, q in enumerate(display.homology_dimensions):
        groups = [(display.diagrams[i], f"H{q}", "")]
        if display.reference is not None:
            groups.insert(0, (display.reference[i], f"H{q} exact", "-open"))
        for points, name, fill in groups:
            shown = display._within(points, low, high)
            marker = {
                "color": style(q)["color"],
                "symbol": _SYMBOLS[style(q)["marker"]] + fill,
                "size": 13 if fill else 9,
            }
            figure.add_scatter(
                x=shown[:, 0],
                y=shown[:, 1],
                customdata=abs(shown[:, 1] - shown[:, 0]),
                mode="markers",
                marker=marker,
                name=name,
                hovertemplate=f"{name}<br>{_SHOWN}<extra></extra>",
            )
    unit = f" ({display.unit})" if display.unit else ""
    figure.update_layout(title=title, width=560, height=480, template="plotly_white")
    figure.update_xaxes(title=f"birth{unit}", range=[low, high], constrain="domain")
    figure.update_yaxes(title=f"death{unit}", range=[low, 1.03 * high], scaleanchor="x")
    return figure
