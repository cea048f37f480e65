"""Pictures of persistence diagrams."""

import numpy as np

from sklearn_dptda.plotting._style import axes_or_new, style


class PersistenceDiagramDisplay:
    """A persistence diagram, if wanted with another one behind it.

    Parameters
    ----------
    diagrams : list of array-like of shape (n, 2)
        One diagram per homology dimension.
    homology_dimensions : sequence of int, default=None
        Their dimensions; None counts from 0.
    reference : list of array-like of shape (n, 2), default=None
        Diagrams to draw behind, hollow: the exact ones, on data where they
        may be shown.
    upper : float, default=None
        Upper end of the axes; None takes it from what is drawn. Later deaths
        are drawn on the dashed line there; points born later are left out.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
        Set by :meth:`plot`.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn_dptda.plotting import PersistenceDiagramDisplay
    >>> display = PersistenceDiagramDisplay([[[0.0, 1.0]], [[0.2, 0.9]]]).plot()
    >>> display.ax_.get_xlabel()
    'birth'
    """

    def __init__(self, diagrams, *, homology_dimensions=None, reference=None, upper=None):
        self.diagrams = [np.asarray(d, dtype=float).reshape(-1, 2) for d in diagrams]
        self.homology_dimensions = (
            tuple(range(len(self.diagrams)))
            if homology_dimensions is None
            else tuple(homology_dimensions)
        )
        self.reference = (
            None
            if reference is None
            else [np.asarray(d, dtype=float).reshape(-1, 2) for d in reference]
        )
        self.upper = upper

    @classmethod
    def from_estimator(cls, estimator, X, *, reference=None, upper=None, ax=None):
        """Fit a persistence estimator, release the first sample, and draw it.

        Parameters
        ----------
        estimator : PrivatePersistence, CubicalPersistence or Pipeline
            The release is a new one and costs what it says.
        X : list
            Input of the estimator; the first sample is drawn.
        reference, upper
            As in the constructor.
        ax : matplotlib Axes, default=None

        Returns
        -------
        PersistenceDiagramDisplay
        """
        sample = estimator.fit_transform(X[:1])[0]
        last = estimator[-1] if hasattr(estimator, "steps") else estimator
        return cls(
            [sample] if last.single_ else sample,
            homology_dimensions=last.homology_dimensions_,
            reference=reference,
            upper=upper,
        ).plot(ax=ax)

    def plot(self, ax=None, *, title=None):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
        title : str, default=None

        Returns
        -------
        PersistenceDiagramDisplay
        """
        ax = axes_or_new(ax, figsize=(4.2, 4.2))
        limit = self._limit()
        pad = 0.04 * limit
        ax.fill_between([-pad, limit + pad], -pad, [-pad, limit + pad], color="#f0f0f0", zorder=0)
        ax.plot([-pad, limit + pad], [-pad, limit + pad], color="#999999", lw=1, zorder=1)
        ax.axhline(limit, color="#999999", lw=0.8, ls="--", zorder=1)
        for i, q in enumerate(self.homology_dimensions):
            look = style(q)
            if self.reference is not None:
                ax.scatter(
                    *self._finite(self.reference[i], limit).T,
                    s=70,
                    marker=look["marker"],
                    facecolors="none",
                    edgecolors=look["color"],
                    linewidths=1.2,
                    label=f"H{q} exact",
                    zorder=2,
                )
            ax.scatter(
                *self._finite(self.diagrams[i], limit).T,
                s=28,
                marker=look["marker"],
                color=look["color"],
                label=f"H{q}",
                zorder=3,
                clip_on=False,
            )
        ax.set(xlim=(-pad, limit + pad), ylim=(-pad, limit + pad), xlabel="birth", ylabel="death")
        ax.set_aspect("equal")
        ax.legend(loc="lower right", frameon=False)
        if title:
            ax.set_title(title)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @staticmethod
    def _finite(diagram, limit):
        return np.minimum(diagram[diagram[:, 0] < limit], limit)

    def _limit(self):
        if self.upper is not None:
            return float(self.upper)
        values = np.concatenate([d.ravel() for d in self.diagrams + (self.reference or [])])
        values = values[np.isfinite(values)]
        return float(values.max()) * 1.05 if values.size and values.max() > 0 else 1.0
