"""The error of a private release as a function of one parameter."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from sklearn_dptda._typing import FloatArray, ListLike, RandomStateLike
from sklearn_dptda.persistence import (
    CubicalPersistence,
    PrivatePersistence,
    bottleneck_distance,
)
from sklearn_dptda.privacy._noise import spawn_seeds
from sklearn_dptda.privacy._release import release, seeded_clone
from sklearn_dptda.utils._tasks import run

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class PrivacyUtilityCurve:
    """Errors of replicated releases over a range of one parameter.

    :func:`privacy_utility_curve` makes it.

    Attributes
    ----------
    param_name : str
        Name of the parameter.
    param_range : ndarray of shape (n_values,)
        Values of the parameter.
    errors : ndarray of shape (n_values, n_replicates, n_clouds, n_dimensions)
        Bottleneck distances to the exact diagrams, in the units of the filtration.
        They are *not* private.
    homology_dimensions : tuple of int
        Homology dimensions of the diagrams.

    Examples
    --------
    >>> from sklearn_dptda import PrivatePersistence
    >>> from sklearn_dptda.model_selection import privacy_utility_curve
    >>> curve = privacy_utility_curve(
    ...     PrivatePersistence(sensitivity=0.1, upper=1.0), [[0.0, 0.5, 0.25]],
    ...     param_range=[1.0, 100.0], n_replicates=5, random_state=0
    ... )
    >>> curve.mean().shape
    (2, 2)
    """

    param_name: str
    param_range: NDArray[Any]
    errors: FloatArray = field(repr=False)
    homology_dimensions: tuple[int, ...]

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """Return the errors in long format, with one row for each distance, as for a data frame.

        Returns
        -------
        dict of str to ndarray
            Columns by name.
        """
        index = np.indices(self.errors.shape).reshape(4, -1)
        return {
            self.param_name: self.param_range[index[0]],
            "replicate": index[1],
            "cloud": index[2],
            "homology_dimension": np.array(self.homology_dimensions)[index[3]],
            "error": self.errors.ravel(),
        }

    def mean(self) -> FloatArray:
        """Return the mean error for each parameter value and dimension.

        Returns
        -------
        ndarray of shape (n_values, n_dimensions)
        """
        return self.errors.mean(axis=(1, 2))

    def slope(self) -> float:
        """Return the slope of the log of the total mean error against the log of the parameter.

        Returns
        -------
        float
        """
        total = self.mean().sum(axis=1)
        return float(np.polyfit(np.log(self.param_range.astype(float)), np.log(total), 1)[0])


def privacy_utility_curve(
    estimator: PrivatePersistence | Pipeline,
    X: ListLike,
    *,
    param_name: str = "epsilon",
    param_range: ArrayLike = (0.5, 1.0, 2.0, 5.0, 10.0),
    n_replicates: int = 20,
    random_state: RandomStateLike = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> PrivacyUtilityCurve:
    """Measure the errors of replicated releases over a range of a parameter.

    Parameters
    ----------
    estimator : PrivatePersistence, or Pipeline that ends in one
        The estimator. It is cloned for each value.
    X : list
        Filtrations, or the input of the pipeline.
    param_name : str, default="epsilon"
        Name of a parameter of the estimator. For a pipeline, a name without a
        double underscore refers to the last step.
    param_range : array-like of shape (n_values,), default=(0.5, 1.0, 2.0, 5.0, 10.0)
        Values of the parameter.
    n_replicates : int, default=20
        Number of releases for each value.
    random_state : int, RandomState instance, Generator or None, default=None
        Source of one seed for each release. Results do not depend on ``n_jobs``. None
        uses the operating system's entropy.
    n_jobs : int, default=None
        Number of workers. Any joblib backend can be used.
    verbose : int, default=0
        Verbosity of the progress messages of :class:`joblib.Parallel`. 0 prints
        nothing.

    Returns
    -------
    PrivacyUtilityCurve

    Notes
    -----
    .. rubric:: Privacy

    The result is *not* private, because errors are measured against the exact
    diagrams. Use simulated or public data that are similar to yours.

    Examples
    --------
    >>> from sklearn_dptda import DTMFiltration, PrivatePersistence
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> from sklearn_dptda.model_selection import privacy_utility_curve
    >>> X = DTMFiltration(0.2, bounds=(-3, 3.5)).fit_transform([make_two_circles(1000)])
    >>> curve = privacy_utility_curve(
    ...     PrivatePersistence(), X, param_range=[1, 10], n_replicates=10, random_state=0
    ... )
    >>> curve.errors.shape
    (2, 10, 1, 2)
    """
    param_range = np.asarray(param_range)
    if param_range.ndim != 1 or len(param_range) == 0:
        raise ValueError("param_range must be a non-empty one-dimensional array.")
    prepared = [_prepare(estimator, X, param_name, value) for value in param_range.tolist()]
    seeds = spawn_seeds(random_state, n_replicates * len(prepared))
    tasks = [(i // n_replicates, seed) for i, seed in enumerate(seeds)]
    replicates = run(_errors, tasks, prepared, n_jobs=n_jobs, verbose=verbose)
    errors = np.reshape(replicates, (len(prepared), n_replicates, *replicates[0].shape))
    dimensions = prepared[0][2].homology_dimensions_
    return PrivacyUtilityCurve(
        param_name=param_name,
        param_range=param_range,
        errors=errors,
        homology_dimensions=dimensions,
    )


def _prepare(estimator, X, name, value):
    """Set the parameter, and compute the filtrations and the exact diagrams once."""
    estimator = clone(estimator)
    is_pipeline = isinstance(estimator, Pipeline)
    last = estimator[-1] if is_pipeline else estimator
    if not isinstance(last, PrivatePersistence):
        raise ValueError("estimator must be a PrivatePersistence or a pipeline that ends in one.")
    target = estimator if "__" in name or not is_pipeline else last
    target.set_params(**{name: value})
    filtrations = estimator[:-1].fit_transform(X) if is_pipeline and len(estimator) > 1 else X
    sibling = CubicalPersistence(last.homology_dimensions, upper=last.upper).fit(filtrations)
    return last, filtrations, sibling, sibling.transform(filtrations)


def _errors(prepared, which, seed):
    """Return the bottleneck distances of one release, of shape (n_clouds, n_dimensions)."""
    last, filtrations, sibling, exact = prepared[which]
    private = release(seeded_clone(last, seed), filtrations)
    if sibling.single_:
        private, exact = [[diagram] for diagram in private], [[diagram] for diagram in exact]
    return np.array(
        [list(map(bottleneck_distance, p, e)) for p, e in zip(private, exact, strict=True)]
    )
