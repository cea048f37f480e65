"""The exponential mechanism of a metric, on the candidates of a net or on all of them.

Proof: doc/theory/metric_geometry.md, "Some mechanism is as accurate".
"""

from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import FloatArray, IntArray, RandomStateLike
from sklearn_dptda.metric_privacy._entropic_scale import entropic_scale
from sklearn_dptda.metric_privacy._finite_laws import floored, weighted_law, worst_cost
from sklearn_dptda.metric_privacy._finite_metrics import (
    LP_METRICS,
    Traversal,
    check_distances,
    cross_distances,
)
from sklearn_dptda.metric_privacy._metric_mechanism import (
    ROUNDING_OF_SUMS,
    ChoiceMechanism,
    check_n_candidates,
)
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyLeakWarning
from sklearn_dptda.privacy._estimator import refused_without_trace
from sklearn_dptda.privacy._warnings import warn_caller
from sklearn_dptda.rows._tables import check_rows
from sklearn_dptda.utils._sklearn import Interval, StrOptions, _fit_context

# Part of the worst cost that a net must save; for less, all candidates serve the others better.
# The parameter ``net`` documents it.
_LEAST_SAVING = 0.05


@fill_doc
class MetricExponentialMechanism(ChoiceMechanism):
    """Replace each record by a public candidate near it, under metric privacy.

    The nearer a candidate, the likelier: with probability proportional to
    ``w[y] * exp(-rate * distance(x, y))``. Records that are close to each
    other are hard to tell apart, those far away need not be.

    Parameters
    ----------
    %(rate)s
    metric : str or callable, default="euclidean"
        A distance that obeys the triangle inequality: ``"euclidean"``,
        ``"manhattan"``, ``"chebyshev"``, ``"hamming"``, ``"haversine"``, ...;
        ``"bottleneck"`` or ``"wasserstein"``, and inputs are persistence
        diagrams; ``"precomputed"``, and inputs are distances from the
        candidates.
    candidates : array-like of shape (n_candidates, n_features), or list of diagrams, default=None
        What can be released: public. With ``metric="precomputed"`` their
        distances. None takes the records of :meth:`fit`, which leaks them, and
        warns.
    rate : {"guaranteed", "weighted"}, default="guaranteed"
        ``"guaranteed"``: ``alpha / 2``, private for any inputs.
        ``"weighted"``: up to ``alpha``, where all inputs are candidates;
        checked in :meth:`fit`.
    net : {"auto", "entropic", "all"} or float, default="auto"
        Which candidates can be released at the rate ``alpha / 2``; with
        ``rate="weighted"`` the weights say it. A float: those of a net, further
        apart than it, and no further from any other. ``"entropic"``: the net at
        the entropic scale of ``alpha / 3``, one candidate where ``alpha`` times
        the diameter is at most 3/2. ``"auto"``: the most accurate of many nets
        for the candidate for which it is worst, where that saves a twentieth of
        what all candidates err; else all.
    %(pays_for_releases)s

    Attributes
    ----------
    candidates_ : ndarray of shape (`n_candidates_`, n_features), or list of diagrams
    n_candidates_ : int
        Number of candidates.
    rate_ : float
        Rate that is used.
    weights_ : ndarray of shape (`n_candidates_`,)
        Weights of the candidates; zero for those that are never released.
    privacy_parameter_ : float
        Loss per unit of distance, what rounding adds to it included, that the
        law has between candidates, or a bound of it where there are more than
        500: at most ``alpha``.
    accuracy_ : float
        Mean distance of the release, for the candidate for which it is worst.
    %(promise_of_releases)s
    n_features_in_ : int
        Number of columns.

    See Also
    --------
    accuracy_bounds : How far from the best mechanism this is.
    KNormMechanism : For points without candidates.

    Notes
    -----
    .. rubric:: Privacy

    One release is a candidate for each record. Moving one record by a distance
    ``r`` changes the logarithm of the probability of any release by at most
    ``alpha * (r + resolution)``; replacing it by any other by at most ``alpha``
    times the diameter of the candidates, the ``epsilon`` of the guarantee. The
    candidates are public. ``log_probability`` is not private.

    Where many candidates crowd together at a distance, each of them is unlikely,
    and all of them are likely: a net has few of them. Which candidates it has
    follows from their distances, which are public.

    :meth:`fit` holds the law against every pair of candidates. Of a function, or
    of precomputed distances, it looks at every triangle, in time that grows with
    the cube of the number of candidates, and inputs are taken to be as far as the
    shortest paths through candidates. What a function claims of inputs that are no
    candidates cannot be checked: where it breaks the triangle inequality, the
    loss in proportion to distance is not kept, that of ``epsilon`` is.

    No probability is less than ``2**-40`` of the largest. What rounding adds to
    distances and to logarithms of probabilities is the ``resolution`` of the
    guarantee. Coordinates that are farther from all
    candidates than these from each other are moved to that distance, which
    brings no two records farther apart.

    References
    ----------
    F. McSherry, K. Talwar, "Mechanism design via differential privacy"; M.
    Boedihardjo, T. Strohmer, R. Vershynin, "Metric geometry of the
    privacy-utility tradeoff", Lemma 4.1 and Theorem 4.2, for the net and for
    how accurate it is; E. ElSalamouny, K. Chatzikokolakis, C. Palamidessi,
    "Generalized differential privacy: regions of priors that admit robust
    optimal mechanisms", 2014, for the weights.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda.metric_privacy import MetricExponentialMechanism
    >>> grid = np.stack(np.meshgrid(np.arange(5), np.arange(5)), axis=-1).reshape(-1, 2)
    >>> private = MetricExponentialMechanism(alpha=3.0, candidates=grid, random_state=0).fit()
    >>> private.transform([[1.2, 3.4], [1.3, 3.4]]).shape
    (2, 2)
    >>> print(private.privacy_guarantee_)
    Metric privacy at the rate alpha=3: moving one record by a euclidean distance r costs ...
    """

    _parameter_constraints = {
        **ChoiceMechanism._parameter_constraints,
        "metric": [str, callable],
        "candidates": ["array-like", list, None],
        "rate": [StrOptions({"guaranteed", "weighted"})],
        "net": [
            StrOptions({"auto", "entropic", "all"}),
            Interval(Real, 0, None, closed="left"),
        ],
    }

    def __init__(
        self,
        alpha: float = 1.0,
        metric: str | Callable[[FloatArray, FloatArray], float] = "euclidean",
        candidates: ArrayLike | Sequence[ArrayLike] | None = None,
        *,
        rate: Literal["guaranteed", "weighted"] = "guaranteed",
        net: Literal["auto", "entropic", "all"] | float = "auto",
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.alpha = alpha
        self.metric = metric
        self.candidates = candidates
        self.rate = rate
        self.net = net
        self.accountant = accountant
        self.random_state = random_state

    @fill_doc
    @_fit_context(prefer_skip_nested_validation=True)
    @refused_without_trace
    def fit(self, X: ArrayLike | Iterable[ArrayLike] | None = None, y: object = None) -> Self:
        """Learn the law of the candidates; records are not used, unless there are none.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or list of diagrams, default=None
            Taken for candidates where the parameter is None.
        %(ignored_y_and_self)s

        Raises
        ------
        ValueError
            If there are no candidates, or their distances are no metric.
        """
        public = self.candidates is not None
        candidates = self._candidates_of(X, public)
        check_n_candidates(len(candidates))
        if self.metric == "precomputed":
            D = check_distances(candidates, "candidates", all_triangles=True)
        else:
            D = check_distances(
                cross_distances(candidates, candidates, self.metric),
                "the distance of candidates",
                # That of the named ones is a theorem.
                all_triangles=callable(self.metric),
            )
            self.candidates_ = candidates
        self.n_candidates_, self._between = len(candidates), D
        rate, rounding = self._choose_weights(), self._rounding(float(D.max()))
        self._promise_law(
            rate, "exponential mechanism of the distance", public=public, rounding=rounding
        )
        self.accuracy_ = worst_cost(floored(self._logs(D)), D[:, self._outputs])
        return self

    def _choose_weights(self) -> float:
        """Learn the weights of the candidates; the rate at which they are private."""
        D = self._between
        if self.rate == "weighted":
            rate, log_weights = weighted_law(D, self._full_rate(len(D)))
        else:
            rate, log_weights = float(self.alpha) / 2, np.full(len(D), -np.inf)
            log_weights[_chosen_net(D, float(self.alpha), self.net)] = 0.0
        self.weights_ = np.exp(log_weights)
        self._outputs = np.flatnonzero(np.isfinite(log_weights))
        self._log_weights = log_weights[self._outputs]
        self._least = D[D > 0].min(initial=np.inf)
        return rate

    def _rounding(self, diameter: float) -> float:
        """What rounded distances of inputs can add to the distance of two of them."""
        if self.metric == "precomputed" or callable(self.metric):
            return ROUNDING_OF_SUMS * diameter
        if self._takes_diagrams():
            finite = np.concatenate([np.ravel(diagram) for diagram in self.candidates_])
            finite = finite[np.isfinite(finite)]
            # Hera neglects differences below 1e-10 of the largest coordinate.
            return 2.0**-31 * float(np.abs(finite).max(initial=0.0))
        if self.metric in LP_METRICS:
            low, high = self.candidates_.min(axis=0), self.candidates_.max(axis=0)
            self._reach = low - diameter, high + diameter
        # Sums of as many terms as columns, of inputs at most three diameters away, or as far as
        # the metric goes.
        d = self.n_features_in_
        farthest = {"haversine": np.pi, "canberra": d, "hamming": 1.0, "jaccard": 1.0}
        return 2.0**-50 * (d + 4) * farthest.get(self.metric, 3 * d * diameter)

    def _candidates_of(self, X: Any, public: bool) -> Any:
        """The public candidates, checked, and the records against them."""
        if not public:
            if X is None:
                raise ValueError("candidates must be given, or the records that stand for them.")
            warn_caller(
                "MetricExponentialMechanism was given no candidates: the records of fit can be "
                "released as they are, which the privacy guarantee does not cover. Pass "
                "candidates that you know without looking at the data.",
                PrivacyLeakWarning,
            )
        if self._takes_diagrams():
            return self._read(self.candidates if public else X)
        if not public:
            return check_rows(self, X)
        candidates: Any = self.candidates
        if len(candidates) == 0:
            raise ValueError("candidates are empty: there is nothing to release.")
        candidates = check_array(candidates, dtype=np.float64, input_name="candidates")
        if X is None:
            self.n_features_in_ = candidates.shape[1]
        elif check_rows(self, X).shape[1] != candidates.shape[1]:
            raise ValueError(
                f"X has {self.n_features_in_} features, but the candidates have "
                f"{candidates.shape[1]}."
            )
        return candidates

    def _covered(self, D: FloatArray) -> FloatArray:
        if self.rate != "weighted":
            return super()._covered(D)
        if (D.min(axis=1) > 1e-9 * self._least).any():
            raise ValueError(
                'rate="weighted" takes candidates as inputs: X has records that are none. Use '
                'rate="guaranteed".'
            )
        # The law of the candidate itself, whatever rounding or a function says.
        return np.asarray(self._between[D.argmin(axis=1)])


def _chosen_net(D: FloatArray, alpha: float, net: str | float) -> IntArray:
    """Places of the candidates that can be released at the rate ``alpha / 2``."""
    if net == "all":
        return np.arange(len(D))
    walk = Traversal(D)
    if net == "auto":
        return _best_net(D, walk.order, alpha / 2)
    return np.sort(walk.net(_entropic_separation(D, alpha) if net == "entropic" else float(net)))


def _entropic_separation(D: FloatArray, alpha: float) -> float:
    """Scale of Theorem 4.2: entropic at a third of the rate, or all of a small space.

    A larger scale has as few points in each ball, so that an upper bound will do.
    """
    if 3 / alpha >= 2 * D.max():
        return float(D.max())
    return entropic_scale(D, alpha=alpha / 3).upper


def _best_net(D: FloatArray, order: IntArray, rate: float) -> IntArray:
    """Prefix of the order of which the worst cost is least; all, where that saves little."""
    costs = prefix_costs(D[:, order], rate)
    best = int(costs.argmin())
    if costs[best] >= costs[-1] * (1 - _LEAST_SAVING):
        return np.arange(len(D))
    return np.sort(order[: best + 1])


def prefix_costs(to_order: FloatArray, rate: float) -> FloatArray:
    """Worst expected distances of the exponential laws on the first 1, 2, ... columns.

    In logarithms: the first columns may be far from a row, which makes their weights tiny.
    """
    logs = -rate * to_order
    with np.errstate(divide="ignore"):
        costs = np.logaddexp.accumulate(logs + np.log(to_order), axis=1)
    return np.exp((costs - np.logaddexp.accumulate(logs, axis=1)).max(axis=0))
