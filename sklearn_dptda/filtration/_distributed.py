"""Histograms of collections that live on other machines, counted there."""

from sklearn_dptda.filtration._lattice import LatticeHistogram

# Histograms that are added at a time on their way to one.
_FAN_IN = 8


def is_distributed(X):
    """Whether X is a Dask array or data frame."""
    return hasattr(X, "to_delayed") and hasattr(X, "dask")


def histogram_of_parts(X, bounds, shape):
    """Count each part of a Dask collection of rows where it is; nothing but counts travels."""
    from dask import delayed

    if hasattr(X, "rechunk"):
        X = X.rechunk({1: -1})
    parts = X.to_delayed()
    parts = list(parts.ravel() if hasattr(parts, "ravel") else parts)
    counts = [delayed(_count)(part, bounds, shape) for part in parts]
    while len(counts) > 1:
        counts = [delayed(sum)(counts[i : i + _FAN_IN]) for i in range(0, len(counts), _FAN_IN)]
    return counts[0].compute()


def _count(part, bounds, shape):
    return LatticeHistogram(bounds, shape).update(getattr(part, "values", part))
