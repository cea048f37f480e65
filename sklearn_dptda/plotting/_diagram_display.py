"""Display of persistence diagrams, by matplotlib or interactively by plotly."""

import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._typing import FloatArray, ListLike
from sklearn_dptda.persistence import beyond_noise, not_empty
from sklearn_dptda.plotting._style import Display, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from plotly.graph_objects import Figure as PlotlyFigure

# Diameter of the marker of one expected point. Expected numbers determine the areas of markers.
_DIAMETER = 30.0
# Plotly's names of matplotlib's markers, and its template of the text about a point.
_PLOTLY_SYMBOLS = {"o": "circle", "^": "triangle-up", "s": "square", "D": "diamond"}
_POINT_TEMPLATE = "birth %{x:.4g}<br>death %{y:.4g}<br>persistence %{customdata:.4g}"
# Points of at least this probability count as features. Others fade, down to the least opacity.
_PROBABLE, _LEAST_OPACITY = 0.95, 0.12
# Width and height of a probability, as shares of the axes.
_TEXT_SIZE = np.array([0.09, 0.04])


class PersistenceDiagramDisplay(Display):
    """Plot of a persistence diagram, optionally with a reference diagram behind it.

    If births are above deaths, as for the peaks of a density, deaths of ``-inf`` are drawn at the
    lower end. The picture is as private as the diagrams that you pass.

    Parameters
    ----------
    diagrams : list of array-like of shape (n, 2) or (n, 3)
        One diagram for each homology dimension: births, deaths and, for an expected diagram
        such as :meth:`~sklearn_dptda.features.PersistenceMass.expected_diagram` returns, the
        numbers of points per person. The areas of the markers are proportional to them.
    homology_dimensions : sequence of int, default=None
        Homology dimensions of the diagrams. None numbers them from 0.
    reference : list of array-like of shape (n, 2), default=None
        Diagrams to draw behind the others with hollow markers, one for each dimension. Use
        it for the exact diagrams if the data are public.
    upper : float, default=None
        Upper end of the axes, in the units of the diagrams. None derives it from the points.
        Later deaths are drawn on the dashed line at this level. Points that are born later
        are left out.
    threshold : float, default=None
        Prominence up to which points are drawn small and grey. A dotted line shows it.
    probability : list of array-like of shape (n,), default=None
        Probability that each point of a private diagram is real, from
        :meth:`PrivatePersistence.posterior`. Points are as opaque as they are probable, with their
        probabilities beside them. They replace the band of noise, unless a probability is NaN
        because there is no answer.
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

    _figsize = (4.2, 4.2)

    def __init__(
        self,
        diagrams: Iterable[ArrayLike],
        *,
        homology_dimensions: Iterable[int] | None = None,
        reference: Iterable[ArrayLike] | None = None,
        upper: float | None = None,
        threshold: float | None = None,
        probability: Iterable[ArrayLike] | None = None,
        error_bound: float | None = None,
        noise_floor: Sequence[float] | None = None,
        unit: str = "",
    ) -> None:
        self.diagrams = [_as_diagram(points) for points in diagrams]
        if homology_dimensions is None:
            homology_dimensions = range(len(self.diagrams))
        self.homology_dimensions = tuple(homology_dimensions)
        self.reference = (
            None if reference is None else [_as_diagram(points) for points in reference]
        )
        self.upper = upper
        lifetimes = np.concatenate([diagram[:, 1] - diagram[:, 0] for diagram in self.diagrams])
        self.superlevel = lifetimes.max(initial=0.0) <= 0 and lifetimes.min(initial=0.0) < 0
        self.threshold = threshold
        self.probability = None
        if probability is not None:
            self.probability = [np.asarray(p, dtype=float).reshape(-1) for p in probability]
            if [len(p) for p in self.probability] != [len(d) for d in self.diagrams]:
                raise ValueError("probability must have one number for each point of diagrams.")
            if np.isnan(np.concatenate(self.probability)).any():
                self.probability = None
        self.error_bound = error_bound
        self.noise_floor = noise_floor
        self.unit = unit

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: ListLike | None = None,
        *,
        ax: "Axes | None" = None,
        **kwargs: Any,
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
        ax : matplotlib Axes, default=None
            Axes on which to draw. None creates a new figure.
        **kwargs
            Further parameters of the display, such as ``reference`` and ``upper``.

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
            check_is_fitted(last)
            if not hasattr(last, "diagram_"):
                raise ValueError(
                    f"{type(last).__name__} has no diagram. Pass an estimator of diagrams and X, "
                    "or one that finds clusters by their persistence, such as ToMATo."
                )
            return cls._of_peaks(last, **kwargs).plot(ax=ax)
        sample = estimator.fit_transform(X[:1])
        stated: dict[str, Any] = {}
        if hasattr(last, "posterior") and np.isfinite(last.epsilon):
            # The release is paid for, and shown in any case.
            try:
                stated["probability"] = last.posterior(sample)[0].probability
            except (ValueError, MemoryError) as error:
                warnings.warn(f"The probabilities are unknown: {error}", stacklevel=2)
        return cls(
            [sample[0]] if last.single_ else sample[0],
            homology_dimensions=last.homology_dimensions_,
            error_bound=getattr(last, "error_bound_", None),
            noise_floor=getattr(last, "noise_floor_", None),
            **(stated | kwargs),
        ).plot(ax=ax)

    @classmethod
    def _of_peaks(cls, clusterer, **kwargs):
        """Return a display of all peaks, with a threshold between clusters and the other peaks."""
        prominences = clusterer.diagram_[:, 0] - clusterer.diagram_[:, 1]
        k = clusterer.n_clusters_
        below = prominences[k] if k < len(prominences) else 0.0
        least = prominences[k - 1]
        return cls(
            [clusterer.diagram_],
            threshold=0.5 * (below + least) if np.isfinite(least) else 1.2 * below,
            unit="standard deviations" if hasattr(clusterer, "counts_") else "density",
            **kwargs,
        )

    def _draw(self, ax: "Axes") -> None:
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
        if self.error_bound and self.probability is None:
            self._plot_band(ax, ends, min(2 * self.error_bound, ends[1] - ends[0]))
        for i, q in enumerate(self.homology_dimensions):
            if self.reference is not None:
                hollow = {"facecolors": "none", "edgecolors": style(q)["color"], "linewidths": 1.2}
                births, deaths = self._within(self.reference[i], low, high)[:, :2].T
                look = {"marker": style(q)["marker"], "s": 70, "zorder": 2} | hollow
                ax.scatter(births, deaths, label=f"H{q} exact", **look)
            self._plot_points(ax, i, low, high)
        ax.set(xlim=ends, ylim=ends, xlabel=self._label("birth"), ylabel=self._label("death"))
        ax.set_aspect("equal")
        corner = "upper left" if self.superlevel else "lower right"
        # Without a frame, the marker of the legend could be read as a point below the diagonal.
        ax.legend(loc=corner, framealpha=1, edgecolor="#999999", fontsize="small")

    def to_plotly(self) -> "PlotlyFigure":
        """Draw the diagrams as an interactive figure.

        The figure shows birth, death and persistence of the point under the pointer.

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
        if self.error_bound and self.probability is None and not self.superlevel:
            width = 2 * self.error_bound
            band = {"x": [low, high, high, low], "y": [low, high, high + width, low + width]}
            look = {"fill": "toself", "fillcolor": "rgba(240,200,110,.35)", "mode": "none"}
            figure.add_scatter(**band, **look, name="may be noise", hoverinfo="skip")
        line = {"mode": "lines", "line": {"color": "#999999"}, "showlegend": False}
        figure.add_scatter(x=[low, high], y=[low, high], hoverinfo="skip", **line)
        for i, q in enumerate(self.homology_dimensions):
            groups = [(self.diagrams[i], f"H{q}", "", 9.0)]
            if self.reference is not None:
                groups.insert(0, (self.reference[i], f"H{q} exact", "-open", 13.0))
            for diagram, name, fill, size in groups:
                births, deaths, *numbers = self._within(diagram, low, high).T
                figure.add_scatter(
                    x=births,
                    y=deaths,
                    customdata=abs(deaths - births),
                    mode="markers",
                    marker={
                        "color": style(q)["color"],
                        "symbol": _PLOTLY_SYMBOLS[style(q)["marker"]] + fill,
                        "size": _DIAMETER * np.sqrt(numbers[0]) if numbers else size,
                        "opacity": 1.0 if fill else self._opacity(i, high),
                    },
                    name=name,
                    hovertemplate=f"{name}<br>{_POINT_TEMPLATE}<extra></extra>",
                )
        figure.update_layout(width=560, height=480, template="plotly_white")
        figure.update_xaxes(title=self._label("birth"), range=[low, high], constrain="domain")
        figure.update_yaxes(title=self._label("death"), range=[low, 1.03 * high], scaleanchor="x")
        return figure

    def _label(self, name):
        return f"{name} ({self.unit})" if self.unit else name

    def _plot_band(self, ax, ends, width):
        """Shade the band that may be noise, and draw the noise floors of empty dimensions."""
        band = {"color": "#f7e7c6", "zorder": 0, "label": "may be noise"}
        ax.fill_between(ends, ends, ends + width, **band)
        for q, floor in zip(self.homology_dimensions, self.noise_floor or (), strict=False):
            if floor < width:
                ax.plot(ends, ends + floor, color=style(q)["color"], lw=0.8, ls=":", zorder=1)

    def _plot_points(self, ax, i, low, high):
        diagram, q = self.diagrams[i], self.homology_dimensions[i]
        look, name = style(q), f"H{q}"
        if diagram.shape[1] == 3:
            births, deaths, numbers = self._within(diagram, low, high).T
            ax.scatter(births, deaths, s=_DIAMETER**2 * numbers, alpha=0.55, linewidths=0, **look)
            name += f", {numbers.sum():.2g} points per person"
            # The legend shows a marker of ordinary size.
            diagram = diagram[:0]
        elif self.probability is not None:
            probability = self.probability[i]
            self._plot_probable(ax, i, probability, low, high)
            name += f", {int((probability >= _PROBABLE).sum())} probable"
            # The legend shows a marker of full opacity.
            diagram = diagram[:0]
        elif (above := self._above(diagram, q)) is not None:
            births, deaths = self._within(diagram[~above], low, high).T
            ax.scatter(births, deaths, s=8, marker=look["marker"], color="#aaaaaa", zorder=2)
            name += f", {self._what_stands_out(i, above)}"
            diagram = diagram[above]
        births, deaths = self._within(diagram, low, high)[:, :2].T
        ax.scatter(births, deaths, s=28, label=name, zorder=3, clip_on=False, **look)

    def _plot_probable(self, ax, i, probability, low, high):
        """Draw points as opaque as they are probable, with their probabilities."""
        look = style(self.homology_dimensions[i])
        births, deaths = self._within(self.diagrams[i], low, high)[:, :2].T
        if len(births):
            opacity = self._opacity(i, high)
            ax.scatter(births, deaths, s=28, alpha=opacity, zorder=3, clip_on=False, **look)
        written = np.empty((0, 2))
        # The hollow marker of the reference is larger.
        left = -5 if self.reference is None else -9
        for at in np.argsort(births - deaths):
            place, p = (births[at], deaths[at]), probability[self._shown(i, high)][at]
            # Of texts that would cover each other, that of the longest feature is written.
            apart = np.abs(written - place) / (high - low)
            if p >= 0.01 and (apart > _TEXT_SIZE).any(axis=1).all():
                written = np.vstack([written, place])
                text = ">.99" if p > 0.99 else f"{p:.2f}".lstrip("0")
                look = {"size": "x-small", "ha": "right", "va": "center"}
                ax.annotate(text, place, (left, 0), textcoords="offset points", **look)

    def _shown(self, i, high):
        """Return which points of a diagram are drawn."""
        diagram = self.diagrams[i]
        return np.ones(len(diagram), dtype=bool) if self.superlevel else diagram[:, 0] < high

    def _opacity(self, i, high):
        """Return the opacity of the points that are drawn."""
        if self.probability is None:
            return 1.0
        return np.maximum(self.probability[i], _LEAST_OPACITY)[self._shown(i, high)]

    def _above(self, diagram, q):
        """Return which points stand out, or None if there is no criterion."""
        if self.threshold is not None:
            return np.abs(diagram[:, 1] - diagram[:, 0]) > self.threshold
        return beyond_noise(diagram, self.error_bound, dimension=q) if self.error_bound else None

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
        """Return the points that are drawn, with deaths that are too far away at the edge."""
        shown = diagram if self.superlevel else diagram[diagram[:, 0] < high]
        deaths = np.maximum(shown[:, 1], low) if self.superlevel else np.minimum(shown[:, 1], high)
        return np.column_stack([shown[:, 0], deaths, shown[:, 2:]])

    def _extent(self) -> tuple[float, float]:
        """Return the ends of both axes."""
        values = np.concatenate([d[:, :2].ravel() for d in self.diagrams + (self.reference or [])])
        values = values[np.isfinite(values)]
        if self.superlevel and values.size:
            low = float(values.min())
            high = float(values.max() if self.upper is None else self.upper)
            room = 0.05 * (high - low) or 1.0
            return low - room, high + room
        if self.upper is not None and not self.superlevel:
            return 0.0, float(self.upper)
        return 0.0, 1.05 * float(values.max(initial=0.0)) or 1.0


def _as_diagram(points: ArrayLike) -> FloatArray:
    try:
        array = np.asarray(points, dtype=float)
        return array.reshape(-1, 3 if array.shape[1:] == (3,) else 2)
    except (TypeError, ValueError):
        raise ValueError(
            "diagrams must be a list of one array for each homology dimension. Pass the diagrams "
            "of one cloud, such as the first item of what fit_transform returns."
        ) from None
