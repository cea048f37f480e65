"""Covariances as scikit-learn's mixtures keep them, and in full."""

import numpy as np

COVARIANCE_TYPES = ("full", "tied", "diag", "spherical")


def compact(covariances, kind):
    """Covariances of shape (n_components, n_features, n_features) as ``kind`` keeps them."""
    if kind in ("auto", "full"):
        return covariances
    if kind == "tied":
        return covariances[0]
    diagonals = np.diagonal(covariances, axis1=1, axis2=2)
    return diagonals.copy() if kind == "diag" else diagonals.mean(axis=1)


def mixture_parameters(estimator):
    """Weights, means and full covariances of a fitted mixture, or of k-means with covariances.

    ``covariance_type`` says how covariances are stored, in full where there is none. A ValueError
    names an attribute that is missing.
    """
    centres = "means_" if hasattr(estimator, "means_") else "cluster_centers_"
    missing = [n for n in ("weights_", centres, "covariances_") if not hasattr(estimator, n)]
    if missing:
        name = "means_" if missing[0] == "cluster_centers_" else missing[0]
        raise ValueError(
            f"estimator {type(estimator).__name__} has learnt no {name}: a mixture with "
            "weights_, means_ and covariances_ is needed."
        )
    weights, means = np.asarray(estimator.weights_), np.asarray(getattr(estimator, centres))
    k, d = means.shape
    stored = np.asarray(estimator.covariances_, dtype=float)
    kind = getattr(estimator, "covariance_type", "full")
    kind = "full" if kind == "auto" else kind
    shapes = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}
    if stored.shape != shapes.get(kind):
        raise ValueError(
            f"covariances_ of shape {stored.shape} do not fit covariance_type={kind!r}."
        )
    if kind == "tied":
        stored = np.broadcast_to(stored, (k, d, d))
    elif kind == "diag":
        stored = stored[:, :, None] * np.eye(d)
    elif kind == "spherical":
        stored = stored[:, None, None] * np.eye(d)
    return weights, means, stored
