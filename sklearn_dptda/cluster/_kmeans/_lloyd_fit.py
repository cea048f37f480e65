"""Private k-means, from rows of the cube to weights and centres."""

from sklearn_dptda.cluster._mixture._centre_steps import kmeans_steps
from sklearn_dptda.cluster._mixture._centres import initial_centres
from sklearn_dptda.cluster._mixture._component_steps import mixture_steps
from sklearn_dptda.cluster._mixture._mixture_fits import _SHARES
from sklearn_dptda.cluster._mixture._standardised import standardise


def fit_lloyd(rows, n_clusters, n_iter, covariances, budget, rng):
    """Fit k-means by private Lloyd steps.

    Parameters
    ----------
    rows : Rows
    n_clusters, n_iter : int
    covariances : tuple (share, kind)
        Share of the budget for covariances, and their type.
    budget : GaussianBudget
    rng : numpy.random.Generator

    Returns
    -------
    weights, centres, covariances : ndarray
        No covariances, but None, for a share of zero.
    """
    data = standardise(rows, budget, _SHARES[0])
    centres = initial_centres(data, n_clusters, rng)
    share = 1 - _SHARES[0] - covariances[0]
    centres, counts = kmeans_steps(data, centres, n_iter, budget, share, rng)
    return finish(data, counts, centres, covariances, budget)


def finish(data, counts, centres, covariances, budget):
    """Weights, centres, and covariances if there is a share for them, in the cube."""
    share, kind = covariances
    if share == 0:
        return counts / counts.sum(), data.back(centres), None
    weights, means, found = mixture_steps(data, centres, 1, budget, share, kind)
    return weights, *data.back(means, found)
