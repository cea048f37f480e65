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

# Share of the worst cost that a net must save. If it saves less, all candidates serve the other
# inputs better. The parameter ``net`` documents this number.
_LEAST_SAVING = 0.05


@fill_doc
class MetricExponentialMechanism(ChoiceMechanism):
    """Replace each record by a public candidate near it, under metric privacy.

    A candidate ``y`` is released for a record ``x`` with a probability proportional to
    ``w[y] * exp(-rate * distance(x, y))``. Records at a small distance are hard to
    distinguish; records far from each other need not be.

    Parameters
    ----------
    %(rate)s
    metric : str or callable, default="euclidean"
        A distance that satisfies the triangle inequality: ``"euclidean"``, ``"manhattan"``,
        ``"chebyshev"``, ``"hamming"``, ``"haversine"`` and so on. With ``"bottleneck"`` or
        ``"wasserstein"`` the inputs are persistence diagrams. With ``"precomputed"`` they
        are distances from the candidates.
    candidates : array-like of shape (n_candidates, n_features), or list of diagrams, default=None
        The public list of what can be released. With ``metric="precomputed"``, the matrix
        of distances between the candidates. None: the records of :meth:`fit` are the
        candidates. This is *not* private, and gives a warning.
    rate : {"guaranteed", "weighted"}, default="guaranteed"
        Rate of the exponential. ``"guaranteed"``: ``alpha / 2``, which is private for any
        inputs. ``"weighted"``: up to ``alpha``, if all inputs are candidates.
    net : {"auto", "entropic", "all"} or float, default="auto"
        Which candidates can be released with ``rate="guaranteed"``. Those of a net at a
        scale are farther apart than the scale. Every other candidate is within it of one.

        - A float: the net at this scale.
        - ``"entropic"``: the net at the entropic scale of ``alpha / 3``, which is a single
          candidate if ``alpha`` times the diameter is at most 3/2.
        - ``"all"``: all candidates.
        - ``"auto"``: of many nets, the one whose error is smallest for the candidate for
          which it is worst, or all candidates if no net saves a twentieth of their error.
    %(pays_for_releases)s

    Attributes
    ----------
    candidates_ : ndarray of shape (`n_candidates_`, n_features), or list of diagrams
        The candidates.
    n_candidates_ : int
        Number of candidates.
    rate_ : float
        Rate that is used.
    weights_ : ndarray of shape (`n_candidates_`,)
        Weights of the candidates, which are zero for those that are never released.
    privacy_parameter_ : float
        Privacy loss per unit of distance between candidates, rounding included: at most
        ``alpha``. With more than 500 candidates it is an upper bound.
    accuracy_ : float
        Mean distance of the release, for the candidate for which it is worst.
    %(promise_of_releases)s
    n_features_in_ : int
        Number of columns.

    See Also
    --------
    sklearn_dptda.published.accuracy_bounds : Compares this mechanism with the best one.

    Notes
    -----
    .. rubric:: Privacy

    One release is a candidate for each record. Moving one record by a distance ``r``
    changes the logarithm of the probability of any release by at most
    ``alpha * (r + resolution)``, where ``resolution`` is what rounding adds. Replacing it
    by any other record changes it by at most ``alpha`` times the diameter of the
    candidates, which is the ``epsilon`` of the guarantee. The candidates, and so the net,
    are public. ``log_probability`` is not private.

    :meth:`fit` checks the law for every pair of candidates. For a function as metric, or
    for precomputed distances, it also checks every triangle, in time that grows with the
    cube of the number of candidates. What a function returns for other inputs cannot be
    checked. If it violates the triangle inequality there, the loss is no longer bounded in
    proportion to the distance, but ``epsilon`` still bounds it.

    References
    ----------
    F. McSherry, K. Talwar, "Mechanism design via differential privacy"; M. Boedihardjo,
    T. Strohmer, R. Vershynin, "Metric geometry of the privacy-utility tradeoff", Lemma 4.1
    and Theorem 4.2, for the net; E. ElSalamouny, K. Chatzikokolakis, C. Palamidessi,
    "Generalized differential privacy: regions of priors that admit robust optimal
    mechanisms", 2014, for the weights.

    Examples
    --------
    >>> from sklearn_dptda.metric_privacy import MetricExponentialMechanism
    >>> corners = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> private = MetricExponentialMechanism(3.0, candidates=corners, random_state=0).fit()
    >>> private.transform([[0.2, 0.9], [0.3, 0.9]]).shape
    (2, 2)
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
        """Learn the law of the candidates.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or list of diagrams, default=None
            Records that serve as candidates if ``candidates`` is None.
        %(ignored_y_and_self)s
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
                # The named metrics satisfy it by a theorem.
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
        """Learn the weights of the candidates, and return the rate at which they are private."""
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
        """What rounding of the distances of inputs can add to the distance of two inputs."""
        if self.metric == "precomputed" or callable(self.metric):
            return ROUNDING_OF_SUMS * diameter
        if self._takes_diagrams():
            finite = np.concatenate([np.ravel(diagram) for diagram in self.candidates_])
            finite = finite[np.isfinite(finite)]
            # It exceeds the rounding of the differences of coordinates by far.
            return 2.0**-31 * float(np.abs(finite).max(initial=0.0))
        if self.metric in LP_METRICS:
            low, high = self.candidates_.min(axis=0), self.candidates_.max(axis=0)
            self._reach = low - diameter, high + diameter
        # Rounding of sums with one term for each column, for inputs at a distance of at most three
        # diameters, or at the largest distance of the metric.
        d = self.n_features_in_
        farthest = {"haversine": np.pi, "canberra": d, "hamming": 1.0, "jaccard": 1.0}
        return 2.0**-50 * (d + 4) * farthest.get(self.metric, 3 * d * diameter)

    def _candidates_of(self, X: Any, public: bool) -> Any:
        """The public candidates, checked, and the records checked against them."""
        if not public:
            if X is None:
                raise ValueError(
                    "candidates must be given. Pass candidates, or pass records to fit."
                )
            warn_caller(
                "MetricExponentialMechanism was given no candidates. The records of fit can be "
                "released unchanged, which the privacy guarantee does not cover. Pass public "
                "candidates, which do not depend on the data.",
                PrivacyLeakWarning,
            )
        if self._takes_diagrams():
            return self._read(self.candidates if public else X)
        if not public:
            return check_rows(self, X)
        candidates: Any = self.candidates
        if len(candidates) == 0:
            raise ValueError("candidates must not be empty: there is nothing to release.")
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
                'rate="weighted" takes only candidates as inputs, but X has other records. Use '
                'rate="guaranteed".'
            )
        # Use the law of the candidate itself, whatever rounding or a function returns.
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
    """Scale of Theorem 4.2: entropic at a third of the rate, or the diameter of a small space.

    A larger scale has as few points in each ball, so an upper bound is sufficient.
    """
    if 3 / alpha >= 2 * D.max():
        return float(D.max())
    return entropic_scale(D, alpha=alpha / 3).upper


def _best_net(D: FloatArray, order: IntArray, rate: float) -> IntArray:
    """Prefix of the order with the least worst cost, or all candidates if it saves little."""
    costs = prefix_costs(D[:, order], rate)
    best = int(costs.argmin())
    if costs[best] >= costs[-1] * (1 - _LEAST_SAVING):
        return np.arange(len(D))
    return np.sort(order[: best + 1])


def prefix_costs(to_order: FloatArray, rate: float) -> FloatArray:
    """Worst expected distances of the exponential laws on the first 1, 2, ... columns.

    Logarithms are used, since the first columns may be far from a row, and weights tiny.
    """
    logs = -rate * to_order
    with np.errstate(divide="ignore"):
        costs = np.logaddexp.accumulate(logs + np.log(to_order), axis=1)
    return np.exp((costs - np.logaddexp.accumulate(logs, axis=1)).max(axis=0))
