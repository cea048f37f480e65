"""A private mixture whose components are merged into clusters of any shape.

Proof: doc/theory/private_mixtures.md, "Starts, numbers of steps, kinds of covariances".
"""

from collections.abc import Callable
from numbers import Integral
from typing import Literal

import numpy as np

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import (
    Adjacency,
    CovarianceType,
    FloatArray,
    RandomStateLike,
    RowBounds,
)
from sklearn_dptda.cluster._dp_mog import DPMoG, Parameters
from sklearn_dptda.cluster._mixture_density import mixture_parameters
from sklearn_dptda.cluster._morse_merging import (
    MERGING_CONSTRAINTS,
    MergedModesMixin,
    check_number_of_clusters,
)
from sklearn_dptda.cluster._noisy_steps import USUAL_CENTRES
from sklearn_dptda.privacy import PrivacyAccountant
from sklearn_dptda.utils._sklearn import Interval

# Number of components beyond the number of clusters, so that clusters can have any shape.
_SPARE_COMPONENTS = 4
# How often the noise of the mixture is drawn again to measure how stable the number of clusters is.
# There are fewer draws if there are many components, since merging takes longer.
_N_REDRAWS, _N_REDRAWS_OF_MANY = 10, 4


@fill_doc
class DPMoGMorse(MergedModesMixin, DPMoG):
    """Private clusters of any shape: a private mixture, merged along density saddles.

    A fit releases a private Gaussian mixture with more components than clusters,
    and merges modes of its density that no saddle of low density separates. The
    merging is post-processing.

    Parameters
    ----------
    n_clusters : int, default=None
        Number of clusters. None: the clusters that stand out from their saddles by
        at least 1.25 nats, which can be a single one.
    n_components : int, default=None
        Number of components of the mixture at the start. It is public. None: four
        more than ``n_clusters``, if you give it. Otherwise four more than the number
        of clusters of private cells that are far apart, if this number is clear and
        larger than eight, and eight if not.
    %(epsilon)s
    %(gaussian_delta)s
    %(row_bounds)s
    %(row_adjacency)s
    %(row_groups)s
    %(mixture_fit)s
    %(merging)s
    %(fit_accountant_and_random_state)s

    Attributes
    ----------
    %(mixture_covariances)s
    %(noise_of_components)s
    %(merge_tree)s
    component_labels_ : ndarray of shape (n_kept,)
        Cluster of each component.
    n_clusters_ : int
        Number of clusters.
    n_clusters_stability_ : float
        How stable the number of clusters is, if you do not give it: the share of
        ten trials (four, if there are many components) that find the same number
        after as much noise as that of the fit is added once more. It measures the
        effect of the noise only. If there are as many clusters as components, there
        may be more clusters: try a larger ``n_components``.
    %(bounds_of_rows)s
    %(fit_guarantee_and_columns)s

    See Also
    --------
    DPMoG : The mixture without the merging.
    MorseMerging : The merging, for any mixture.

    Notes
    -----
    .. rubric:: Privacy

    One fit releases bounds, weights, means and covariances, as :class:`DPMoG`
    does. It is (``epsilon``, ``delta``)-differentially private for adding or
    removing one row, or for replacing one. Labels of private rows are *not*
    private.
    %(privacy_of_groups)s

    %(noise_of_clusters)s

    References
    ----------
    J. Byun, Y. Choi, J. Lee, "Improving the utility of differentially private
    clustering through dynamical processing".

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.metrics import adjusted_rand_score
    >>> from sklearn_dptda.cluster import DPMoGMorse
    >>> X, y = make_moons(5000, noise=0.05, random_state=0)
    >>> private = DPMoGMorse(2, 8, epsilon=2.0, bounds=([-1.5, -1], [2.5, 1.5]), random_state=0)
    >>> adjusted_rand_score(y, private.fit_predict(X)) > 0.8
    True
    """

    _parameter_constraints = {
        **DPMoG._parameter_constraints,
        **MERGING_CONSTRAINTS,
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        n_clusters: int | None = None,
        n_components: int | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: RowBounds | None = None,
        *,
        adjacency: Adjacency = "add-remove",
        groups: str | None = None,
        unit: str = "one row",
        covariance_type: CovarianceType | Literal["auto"] = "auto",
        merge_threshold: float | None = None,
        min_cluster_weight: float = 0.0,
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
    ) -> None:
        super().__init__(
            n_components,
            epsilon,
            delta,
            bounds,
            adjacency=adjacency,
            groups=groups,
            unit=unit,
            covariance_type=covariance_type,
            accountant=accountant,
            random_state=random_state,
        )
        self.n_clusters = n_clusters
        self.merge_threshold = merge_threshold
        self.min_cluster_weight = min_cluster_weight

    def _merges_components(self) -> bool:
        return True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number_of_clusters(self.n_clusters, self.merge_threshold, self._n_start())

    def _n_start(self) -> int | None:
        if self.n_components is not None or self.n_clusters is None:
            return self.n_components
        return self.n_clusters + _SPARE_COMPONENTS

    def _keep(
        self,
        weights: FloatArray,
        means: FloatArray,
        covariances: FloatArray,
        redraw: Callable[[], Parameters] | None = None,
    ) -> None:
        super()._keep(weights, means, covariances)
        self._set_merged(*mixture_parameters(self))
        if self._finds_number() and redraw is not None:
            n_redraws = _N_REDRAWS if len(weights) <= 2 * USUAL_CENTRES else _N_REDRAWS_OF_MANY
            cuts = [self._cut(self._linkage(*redraw())) for _ in range(n_redraws)]
            found_again = [cut.max() + 1 == self.n_clusters_ for cut in cuts]
            self.n_clusters_stability_ = float(np.mean(found_again))
