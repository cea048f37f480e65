"""Display of persistence diagrams, by matplotlib or interactively by plotly."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._typing import FloatArray, ListLike
from sklearn_dptda.persistence import beyond_noise, not_empty
from sklearn_dptda.plotting._style import Display, axes_or_new, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from plotly.graph_objects import Figure as PlotlyFigure

# Plotly's names of matplotlib's markers, and its template of the text about a point.
_PLOTLY_SYMBOLS = {"o": "circle", "^": "triangle-up", "s": "square", "D": "diamond"}
_POINT_TEMPLATE = "birth %{x:.4g}<br>death %{y:.4g}<br>persistence %{customdata:.4g}"


class PersistenceDiagramDisplay(Display):
    """Plot of a persistence diagram, optionally with a reference diagram behind it.

    The picture is as private as the diagrams that you pass.

    Parameters
    ----------
    diagrams : list of array-like of shape (n, 2)
        One diagram for each homology dimension: births and deaths.
    homology_dimensions : sequence of int, default=None
        Homology dimensions of the diagrams. None numbers them from 0.
    reference : list of array-like of shape (n, 2), default=None
        Diagrams to draw behind the others with hollow markers, one for each dimension. Use
        it for the exact diagrams if the data are public.
    upper : float, default=None
        Upper end of the axes, in the units of the diagrams. None derives it from the points.
        Later deaths are drawn on the dashed line at this level. Points that are born later
        are left out.
    superlevel : bool, default=False
        Whether the diagram is one of superlevel sets, where births are above deaths, as for
        the peaks of a density. Deaths of ``-inf`` are drawn on the dashed line at the lower
        end.
    threshold : float, default=None
        Prominence up to which points are drawn small and grey. A dotted line shows it.
    error_bound : float, default=None
        Error bound of a private diagram, ``error_bound_`` of a fitted
        :class:`PrivatePersistence`. Points that may be noise according to
        :func:`~sklearn_dptda.persistence.beyond_noise` are drawn small and grey, and the band
        in which they can be is shaded.
    noise_floor : sequence of float, default=None
        Noise floor of each dimension, ``noise_floor_`` of a fitted
        :class:`PrivatePersistence`. It is drawn as a dotted line, and if a point is above it,
        the legend says that the dimension is not empty.
    unit : str, default=""
        Unit of births and deaths, for the labels of the axes.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes on which :meth:`plot` has drawn.
    figure_ : matplotlib Figure
        Figure of these axes.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn_dptda.plotting import PersistenceDiagramDisplay
    >>> display = PersistenceDiagramDisplay([[[0.0, 1.0]], [[0.2, 0.9]]]).plot()
    >>> display.ax_.get_xlabel()
    'birth'
    """

    def __init__(
        self,
        diagrams: Iterable[ArrayLike],
        *,
        homology_dimensions: Iterable[int] | None = None,
        reference: Iterable[ArrayLike] | None = None,
        upper: float | None = None,
        superlevel: bool = False,
        threshold: float | None = None,
        error_bound: float | None = None,
        noise_floor: Sequence[float] | None = None,
        unit: str = "",
    ) -> None:
        self.diagrams = _as_pairs(diagrams)
        self.homology_dimensions = (
            tuple(range(len(self.diagrams)))
            if homology_dimensions is None
            else tuple(homology_dimensions)
        )
        self.reference = None if reference is None else _as_pairs(reference)
        self.upper = upper
        self.superlevel = superlevel
        self.threshold = threshold
        self.error_bound = error_bound
        self.noise_floor = noise_floor
        self.unit = unit

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: ListLike | None = None,
        *,
        reference: Iterable[ArrayLike] | None = None,
        upper: float | None = None,
        ax: "Axes | None" = None,
    ) -> Self:
        """Draw the diagrams of the first sample, or the peaks that a clusterer has found.

        Parameters
        ----------
        estimator : PrivatePersistence, CubicalPersistence, ToMATo, DPToMATo, or Pipeline of one
            ``PrivatePersistence`` or ``CubicalPersistence`` is fitted to the first sample and
            transforms it: for ``PrivatePersistence`` a new release, which spends privacy
            budget.

            ``ToMATo`` or ``DPToMATo`` must be fitted. The display shows the prominence of its
            peaks (for ``DPToMATo`` in standard deviations), and the threshold above which
            peaks are clusters. Nothing new is released.
        X : list, default=None
            Input of a persistence estimator. It is ignored for clusterers.
        reference : list of array-like of shape (n, 2), default=None
            Diagrams to draw behind the others with hollow markers.
        upper : float, default=None
            Upper end of the axes. None derives it from the points.
        ax : matplotlib Axes, default=None
            Axes on which to draw. None creates a new figure.

        Returns
        -------
        PersistenceDiagramDisplay
        """
        last = estimator[-1] if hasattr(estimator, "steps") else estimator
        if X is None and hasattr(last, "homology_dimensions"):
            raise ValueError(
                f"X must be given, because {type(last).__name__} does not store diagrams. To draw "
                "diagrams that have been released, use PersistenceDiagramDisplay("
                "diagrams).plot()."
            )
        if X is None or hasattr(last, "diagram_"):
            check_is_fitted(last, "diagram_")
            return cls._of_peaks(last, upper).plot(ax=ax)
        sample = estimator.fit_transform(X[:1])[0]
        return cls(
            [sample] if last.single_ else sample,
            homology_dimensions=last.homology_dimensions_,
            reference=reference,
            upper=upper,
            error_bound=getattr(last, "error_bound_", None),
            noise_floor=getattr(last, "noise_floor_", None),
        ).plot(ax=ax)

    @classmethod
    def _of_peaks(cls, clusterer, upper):
        """Return a display of all peaks, with a threshold between clusters and the other peaks."""
        prominences = clusterer.diagram_[:, 0] - clusterer.diagram_[:, 1]
        k = clusterer.n_clusters_
        below = prominences[k] if k < len(prominences) else 0.0
        least = prominences[k - 1]
        return cls(
            [clusterer.diagram_],
            upper=upper,
            superlevel=True,
            threshold=0.5 * (below + least) if np.isfinite(least) else 1.2 * below,
            unit="standard deviations" if hasattr(clusterer, "counts_") else "density",
        )

    def plot(self, ax: "Axes | None" = None, *, title: str | None = None) -> Self:
        """Draw the diagrams with matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes on which to draw. None creates a new figure.
        title : str, default=None
            Title of the axes. None: no title.

        Returns
        -------
        PersistenceDiagramDisplay
        """
        ax = axes_or_new(ax, figsize=(4.2, 4.2))
        low, high = self._extent()
        pad = 0.04 * (high - low)
        ends = np.array([low - pad, high + pad])
        # No point can be on the shaded side of the diagonal.
        ax.fill_between(ends, ends, ends[int(self.superlevel)], color="#f0f0f0", zorder=0)
        ax.plot(ends, ends, color="#999999", lw=1, zorder=1)
        ax.axhline(low if self.superlevel else high, color="#999999", lw=0.8, ls="--", zorder=1)
        if self.threshold is not None:
            shift = -self.threshold if self.superlevel else self.threshold
            name = f"prominence {self.threshold:.3g}"
            ax.plot(ends, ends + shift, color="#555555", lw=1, ls=":", label=name, zorder=1)
        if self.error_bound:
            self._plot_band(ax, ends, min(2 * self.error_bound, ends[1] - ends[0]))
        for i, q in enumerate(self.homology_dimensions):
            if self.reference is not None:
                ax.scatter(
                    *self._within(self.reference[i], low, high).T,
                    s=70,
                    marker=style(q)["marker"],
                    facecolors="none",
                    edgecolors=style(q)["color"],
                    linewidths=1.2,
                    label=f"H{q} exact",
                    zorder=2,
                )
            self._plot_points(ax, i, low, high)
        unit = f" ({self.unit})" if self.unit else ""
        ax.set(xlim=ends, ylim=ends, xlabel=f"birth{unit}", ylabel=f"death{unit}")
        ax.set_aspect("equal")
        ax.legend(
            loc="upper left" if self.superlevel else "lower right",
            frameon=False,
            fontsize="small",
        )
        return self._keep(ax, title)

    def to_plotly(self, *, title: str | None = None) -> "PlotlyFigure":
        """Draw the diagrams as an interactive figure.

        The figure shows birth, death and persistence of the point under the pointer.

        Parameters
        ----------
        title : str, default=None
            Title of the figure. None: no title.

        Returns
        -------
        plotly.graph_objects.Figure

        Raises
        ------
        ImportError
            If plotly is not installed: ``pip install 'sklearn-dptda[interactive]'``.
        """
        try:
            from plotly import graph_objects
        except ImportError as error:
            raise ImportError(
                "to_plotly needs plotly. Install it with: pip install 'sklearn-dptda[interactive]'"
            ) from error
        low, high = self._extent()
        figure = graph_objects.Figure()
        if self.error_bound and not self.superlevel:
            width = 2 * self.error_bound
            band = {"x": [low, high, high, low], "y": [low, high, high + width, low + width]}
            look = {"fill": "toself", "fillcolor": "rgba(240,200,110,.35)", "mode": "none"}
            figure.add_scatter(**band, **look, name="may be noise", hoverinfo="skip")
        line = {"mode": "lines", "line": {"color": "#999999"}, "showlegend": False}
        figure.add_scatter(x=[low, high], y=[low, high], hoverinfo="skip", **line)
        for i, q in enumerate(self.homology_dimensions):
            groups = [(self.diagrams[i], f"H{q}", "")]
            if self.reference is not None:
                groups.insert(0, (self.reference[i], f"H{q} exact", "-open"))
            for points, name, fill in groups:
                shown = self._within(points, low, high)
                figure.add_scatter(
                    x=shown[:, 0],
                    y=shown[:, 1],
                    customdata=abs(shown[:, 1] - shown[:, 0]),
                    mode="markers",
                    marker={
                        "color": style(q)["color"],
                        "symbol": _PLOTLY_SYMBOLS[style(q)["marker"]] + fill,
                        "size": 13 if fill else 9,
                    },
                    name=name,
                    hovertemplate=f"{name}<br>{_POINT_TEMPLATE}<extra></extra>",
                )
        unit = f" ({self.unit})" if self.unit else ""
        figure.update_layout(title=title, width=560, height=480, template="plotly_white")
        figure.update_xaxes(title=f"birth{unit}", range=[low, high], constrain="domain")
        figure.update_yaxes(title=f"death{unit}", range=[low, 1.03 * high], scaleanchor="x")
        return figure

    def _plot_band(self, ax, ends, width):
        """Shade the band that may be noise, and draw the noise floors of empty dimensions."""
        band = {"color": "#f7e7c6", "zorder": 0, "label": "may be noise"}
        ax.fill_between(ends, ends, ends + width, **band)
        for q, floor in zip(self.homology_dimensions, self.noise_floor or (), strict=False):
            if floor < width:
                ax.plot(ends, ends + floor, color=style(q)["color"], lw=0.8, ls=":", zorder=1)

    def _plot_points(self, ax, i, low, high):
        diagram, q, number = self.diagrams[i], self.homology_dimensions[i], ""
        look, above = style(q), self._above(diagram, i)
        if above is not None:
            faint = self._within(diagram[~above], low, high)
            ax.scatter(*faint.T, s=8, marker=look["marker"], color="#aaaaaa", zorder=2)
            diagram, number = diagram[above], f", {self._what_stands_out(i, above)}"
        ax.scatter(
            *self._within(diagram, low, high).T,
            s=28,
            marker=look["marker"],
            color=look["color"],
            label=f"H{q}{number}",
            zorder=3,
            clip_on=False,
        )

    def _above(self, diagram, i):
        """Return which points stand out, or None if there is no criterion."""
        if self.threshold is not None:
            return np.abs(diagram[:, 1] - diagram[:, 0]) > self.threshold
        if not self.error_bound:
            return None
        return beyond_noise(diagram, self.error_bound, dimension=self.homology_dimensions[i])

    def _what_stands_out(self, i, above):
        """Describe how many points stand out, and otherwise whether the dimension is empty."""
        if self.threshold is not None:
            return f"{above.sum()} above"
        q, parts = self.homology_dimensions[i], []
        if above.any():
            parts.append(f"{above.sum()} beyond noise")
        if above.sum() <= (q == 0) and self.noise_floor is not None:
            some = not_empty(self.diagrams[i], self.noise_floor[i], dimension=q)
            parts += ["not empty"] if some else []
        return ", ".join(parts) or "may be empty"

    def _within(self, diagram, low, high):
        if self.superlevel:
            return np.column_stack([diagram[:, 0], np.maximum(diagram[:, 1], low)])
        return np.minimum(diagram[diagram[:, 0] < high], high)

    def _extent(self) -> tuple[float, float]:
        """Return the ends of both axes."""
        values = np.concatenate([d.ravel() for d in self.diagrams + (self.reference or [])])
        values = values[np.isfinite(values)]
        if self.superlevel and values.size:
            low = float(values.min())
            high = float(values.max() if self.upper is None else self.upper)
            room = 0.05 * (high - low) or 1.0
            return low - room, high + room
        if self.upper is not None and not self.superlevel:
            return 0.0, float(self.upper)
        return 0.0, 1.05 * float(values.max(initial=0.0)) or 1.0


def _as_pairs(diagrams: Iterable[ArrayLike]) -> list[FloatArray]:
    return [np.asarray(diagram, dtype=float).reshape(-1, 2) for diagram in diagrams]
