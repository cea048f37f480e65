"""The mechanism of ultrametric spaces, at the full rate."""

from numbers import Real
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import IntArray, RandomStateLike
from sklearn_dptda.metric_privacy._choice_mechanism import ChoiceMechanism, check_number
from sklearn_dptda.metric_privacy._distance_matrices import check_pair, check_places
from sklearn_dptda.metric_privacy._exact_draws import floored
from sklearn_dptda.metric_privacy._finite_laws import worst_cost
from sklearn_dptda.metric_privacy._linkage import (
    cells_of_tree,
    is_ultrametric,
    subdominant,
    tree_of,
)
from sklearn_dptda.metric_privacy._weighted_law import row_weights
from sklearn_dptda.privacy import PrivacyAccountant
from sklearn_dptda.utils._sklearn import Interval, StrOptions, _fit_context


@fill_doc
class UltrametricMechanism(ChoiceMechanism):
    """Replace points of an ultrametric space, at the full rate of metric privacy.

    Leaves of a tree, words, or classes of a hierarchy: of any three points the
    two longest distances are equal. There the exponential mechanism needs no
    factor of two. Where accuracy asks for less than single points, classes of
    near points stand for them.

    Parameters
    ----------
    candidates : array-like of shape (n_points, n_points)
        Ultrametric distances of privacy of the public points, which are all
        inputs and all outputs.
    %(rate)s
    accuracy : array-like of shape (n_points, n_points), default=None
        Distances of accuracy. None: the same.
    radius : float or "auto", default="auto"
        Points within this distance of privacy of each other are released as
        one of them. ``"auto"``: what is most accurate, which is a function of
        public numbers.
    %(pays_for_releases)s

    Attributes
    ----------
    n_candidates_ : int
        Number of points.
    representatives_ : ndarray of int
        Points that can be released, one for each class.
    radius_ : float
        Radius that is used.
    rate_ : float
        Rate that is used: ``alpha``, up to rounding.
    privacy_parameter_ : float
        Loss per unit of distance that the law has: at most ``alpha``.
    accuracy_ : float
        Mean distance of accuracy of the release, for the point for which it is
        worst.
    %(promise_of_releases)s

    Notes
    -----
    .. rubric:: Privacy

    One release is a public point for each record. Moving one record by a
    distance ``r`` changes the logarithm of the probability of any release by
    at most ``alpha * r``, and replacing it by ``epsilon``, which is ``alpha``
    times the diameter.

    The matrix ``exp(-alpha D)`` of an ultrametric has a row diagonally dominant
    inverse, so that the weights by which rows sum to one are not negative.
    Classes of points within a radius form an ultrametric space again, to
    which points are mapped without increasing distances.

    References
    ----------
    M. Boedihardjo, T. Strohmer, R. Vershynin, "Metric geometry of the
    privacy-utility tradeoff", Theorem 5.1; S. Martinez, G. Michon, J. San
    Martin, "Inverse of strictly ultrametric matrices are of Stieltjes type",
    1994, for the weights.

    Examples
    --------
    >>> from sklearn_dptda.metric_privacy import UltrametricMechanism
    >>> leaves = [[0, 1, 2, 2], [1, 0, 2, 2], [2, 2, 0, 1], [2, 2, 1, 0]]
    >>> private = UltrametricMechanism(leaves, alpha=2.0, random_state=0).fit()
    >>> private.release([0, 0, 3]).shape
    (3,)
    """

    _parameter_constraints = {
        **ChoiceMechanism._parameter_constraints,
        "candidates": ["array-like"],
        "accuracy": ["array-like", None],
        "radius": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
    }
    metric = "precomputed"

    def __init__(
        self,
        candidates: ArrayLike = ((0.0, 1.0), (1.0, 0.0)),
        alpha: float = 1.0,
        *,
        accuracy: ArrayLike | None = None,
        radius: float | Literal["auto"] = "auto",
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.candidates = candidates
        self.alpha = alpha
        self.accuracy = accuracy
        self.radius = radius
        self.accountant = accountant
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: object = None, y: object = None) -> Self:
        """Learn the law of the public points.

        Parameters
        ----------
        X, y : Ignored

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the distances are no ultrametric.
        """
        D1, D2 = check_pair(self.candidates, self.accuracy)
        check_number(len(D1))
        tree = subdominant(D1)
        if not is_ultrametric(D1, tree):
            raise ValueError(
                "candidates are no ultrametric: of some three points the two longest distances "
                "differ. Use MetricExponentialMechanism."
            )
        # What rounding breaks is mended, so that all that follows is exact.
        self._between = tree
        self.n_candidates_ = self.n_features_in_ = len(tree)
        rate, radii = self._full_rate(self.n_candidates_), self._radii()
        clusters = tree_of(tree, "single")
        laws = [self._law_at(cells_of_tree(clusters, r * (1 + 1e-9)), D2, rate) for r in radii]
        best = int(np.argmin([cost for cost, *_ in laws]))
        self.accuracy_, self._outputs, self._log_weights = laws[best]
        self.radius_, self.representatives_ = float(radii[best]), self._outputs
        self._settle(rate, "weighted exponential mechanism of the ultrametric")
        return self

    def _radii(self):
        if self.radius != "auto":
            return [float(self.radius)]
        heights = np.unique(self._between)
        # Levels of a tree that differ by rounding are one.
        return heights[np.r_[True, np.diff(heights) > 1e-9 * heights[-1]]]

    def _law_at(self, cells, D2, rate):
        """Accuracy, representatives and weights, with numbers of the classes of all points."""
        # The point of a class whose farthest one is nearest.
        outputs = np.array(
            [mine[D2[np.ix_(mine, mine)].max(axis=1).argmin()] for mine in _members(cells)]
        )
        between = self._between[np.ix_(outputs, outputs)]
        try:
            weights = row_weights(between, rate)
        except np.linalg.LinAlgError:
            raise ValueError("alpha times the distances is lost in rounding.") from None
        log_weights = np.log(np.maximum(weights, np.finfo(float).tiny))
        law = floored(log_weights - rate * between)[cells]
        return worst_cost(law, D2[:, outputs]), outputs, log_weights

    def _to_outputs(self, D):
        """Distances of classes: within one, it is that of its representative."""
        between = self._between[np.ix_(self._outputs, self._outputs)]
        return between[super()._to_outputs(D).argmin(axis=1)]

    def release(self, inputs: ArrayLike) -> IntArray:
        """Pay, and replace points given by their numbers.

        Parameters
        ----------
        inputs : array-like of int of shape (n_samples,)

        Returns
        -------
        ndarray of int of shape (n_samples,)
        """
        check_is_fitted(self)
        inputs = check_places(inputs, self.n_candidates_)
        return self.transform(self._between[inputs])  # type: ignore[return-value]  # never diagrams

    def __sklearn_tags__(self):
        """Say what input is."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        tags.input_tags.two_d_array = False
        return tags

    def _covered(self, D):
        if (D.min(axis=1) > 0).any():
            raise ValueError("X has records that are no points of the space.")
        return self._between[D.argmin(axis=1)]


def _members(cells):
    order = np.argsort(cells, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(cells[order])) + 1)
