"""Displays of estimators, plots of results, and reports, in the style of scikit-learn.

A display is created from an estimator or from its output, and its method ``plot`` draws it. A
result that is an object already, such as a plan or an audit, is drawn by one function, which
returns the axes. A report puts a release on one page of HTML.
"""

from sklearn_dptda.plotting._dendrogram_display import DendrogramDisplay
from sklearn_dptda.plotting._diagram_display import PersistenceDiagramDisplay
from sklearn_dptda.plotting._filtration_display import FiltrationDisplay
from sklearn_dptda.plotting._mixture_display import MixtureDensityDisplay
from sklearn_dptda.plotting._release_report import release_report
from sklearn_dptda.plotting._results import (
    plot_accuracy_bounds,
    plot_audit,
    plot_privacy_utility,
    plot_release_plan,
)

__all__ = [
    "DendrogramDisplay",
    "FiltrationDisplay",
    "MixtureDensityDisplay",
    "PersistenceDiagramDisplay",
    "plot_accuracy_bounds",
    "plot_audit",
    "plot_privacy_utility",
    "plot_release_plan",
    "release_report",
]
