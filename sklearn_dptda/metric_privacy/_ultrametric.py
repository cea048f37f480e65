"""Mechanisms of trees: the distance of privacy or that of accuracy is an ultrametric.

The laws are on classes of near points, one of which represents all of them.

Proof: doc/theory/metric_geometry.md, "Some mechanism is as accurate".
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from numbers import Real
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import FloatArray, IntArray, ListLike, RandomStateLike
from sklearn_dptda.metric_privacy._entropic_scale import entropic_scale
from sklearn_dptda.metric_privacy._finite_laws import floored, raised_rate, row_weights, worst_cost
from sklearn_dptda.metric_privacy._finite_metrics import (
    METRIC_TOLERANCE,
    cells_of_tree,
    check_distances,
    check_pair,
    check_places,
    is_ultrametric,
    linkage_of,
    nearest_of_cells,
    subdominant,
)
from sklearn_dptda.metric_privacy._metric_mechanism import (
    ROUNDING_OF_SUMS,
    ChoiceMechanism,
    check_n_candidates,
)
from sklearn_dptda.privacy import PrivacyAccountant
from sklearn_dptda.privacy._estimator import refused_without_trace
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.utils._sklearn import Interval, StrOptions, _fit_context


@dataclass(frozen=True)
class ClassLaw:
    """A law on classes: all that it is drawn from, and the distances of accuracy for its cost."""

    kind: str
    radius: float
    rate: float
    outputs: IntArray
    log_weights: FloatArray
    to_classes: FloatArray
    D2: FloatArray

    @cached_property
    def cost(self) -> float:
        """Mean distance of accuracy of the output, for the point for which it is worst."""
        logs = floored(self.log_weights - self.rate * self.to_classes)
        return worst_cost(logs, self.D2[:, self.outputs])


_MECHANISM_NAMES = {
    "weighted": "weighted exponential mechanism of the ultrametric",
    "relaxed": "exponential mechanism of the distance from classes",
    "raised": "exponential mechanism of the distance from classes",
}


@fill_doc
class UltrametricMechanism(ChoiceMechanism):
    """Replace points of a finite space with a tree, as accurately as the tree allows.

    The points are leaves of a tree, words, or classes of a hierarchy. One of the two
    distances, that of accuracy or that of privacy, is an ultrametric: of any three points
    the two longest distances are equal. If accuracy does not require single points, one
    point represents a class of near ones.

    Parameters
    ----------
    candidates : array-like of shape (n_points, n_points)
        Distances of privacy between the public points, which are all inputs and outputs.
    %(rate)s
    accuracy : array-like of shape (n_points, n_points), default=None
        Distances of accuracy. None: the same as the distances of privacy.
    law : {"auto", "relaxed", "raised", "weighted"}, default="auto"
        Law of the release.

        - ``"relaxed"``: for an ultrametric distance of *accuracy* and any distance of
          privacy. It uses the distance of privacy from whole classes, at half the rate.
        - ``"raised"``: the same, at the largest rate that is found to be private.
        - ``"weighted"``: for an ultrametric distance of *privacy* and any distance of
          accuracy. Its weights allow the full rate.
        - ``"auto"``: the most accurate of the laws that the distances allow.
    radius : float, "entropic" or "auto", default="auto"
        Points within this distance of each other are released as one of them. It is a
        distance of privacy for the weighted law, and of accuracy for the others.
        ``"entropic"``: the entropic scale of ``alpha / 3``, which excludes the weighted
        law. ``"auto"``: the most accurate radius.
    %(pays_for_releases)s

    Attributes
    ----------
    n_candidates_ : int
        Number of points.
    representatives_ : ndarray of int
        Points that can be released, one for each class.
    law_ : {"relaxed", "raised", "weighted"}
        Law that is used.
    radius_ : float
        Radius that is used.
    rate_ : float
        Rate that is used. Up to rounding, it is ``alpha`` for the weighted law, half of it
        for the relaxed one, and between these for the raised one.
    privacy_parameter_ : float
        Privacy loss per unit of distance of the law: at most ``alpha``.
    accuracy_ : float
        Mean distance of accuracy of the release, for the point for which it is worst.
    %(promise_of_releases)s

    Notes
    -----
    .. rubric:: Privacy

    One release is a public point for each record. Moving one record by a distance ``r``
    changes the logarithm of the probability of any release by at most
    ``alpha * (r + resolution)``, where ``resolution`` is what rounding adds. Replacing it
    changes the logarithm by at most ``epsilon``, which is ``alpha`` times the diameter.

    The relaxed and the weighted law are :doc:`proved </theory/metric_geometry>` to be
    private. The raised law is checked for every pair of points.

    References
    ----------
    M. Boedihardjo, T. Strohmer, R. Vershynin, "Metric geometry of the privacy-utility
    tradeoff", Theorem 5.1, for the relaxed law; S. Martinez, G. Michon, J. San Martin,
    "Inverse of strictly ultrametric matrices are of Stieltjes type", 1994, and E.
    ElSalamouny, K. Chatzikokolakis, C. Palamidessi, "Generalized differential privacy:
    regions of priors that admit robust optimal mechanisms", 2014, for the weighted one.

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
        "law": [StrOptions({"auto", "relaxed", "raised", "weighted"})],
        "radius": [
            Interval(Real, 0, None, closed="left"),
            StrOptions({"auto", "entropic"}),
        ],
    }
    metric = "precomputed"

    def __init__(
        self,
        candidates: ArrayLike = ((0.0, 1.0), (1.0, 0.0)),
        alpha: float = 1.0,
        *,
        accuracy: ArrayLike | None = None,
        law: Literal["auto", "relaxed", "raised", "weighted"] = "auto",
        radius: float | Literal["auto", "entropic"] = "auto",
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.candidates = candidates
        self.alpha = alpha
        self.accuracy = accuracy
        self.law = law
        self.radius = radius
        self.accountant = accountant
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    @refused_without_trace
    def fit(self, X: object = None, y: object = None) -> Self:
        """Learn the law of the public points.

        Parameters
        ----------
        X, y : Ignored

        Returns
        -------
        self
        """
        D1, D2 = check_pair(self.candidates, self.accuracy, ("candidates", "accuracy"))
        check_n_candidates(len(D1))
        tree = subdominant(D1)
        on_a_tree = is_ultrametric(D1, tree)
        kinds = self._kinds(is_ultrametric(D2), on_a_tree)
        # Repair what rounding breaks, so that all that follows is exact.
        exact = tree if on_a_tree else check_distances(D1, "candidates", all_triangles=True)
        self._between, D1, D2 = exact, exact, exact if D2 is D1 else D2
        self.n_candidates_ = self.n_features_in_ = len(D1)
        law = _cheapest(self._laws(kinds, D1, D2))
        self.law_, self.radius_, self.accuracy_ = law.kind, float(law.radius), law.cost
        self.representatives_ = self._outputs = law.outputs
        self._log_weights, self._to_classes = law.log_weights, law.to_classes
        # Sums of distances are rounded; distances of a tree are not.
        rounding = 0.0 if on_a_tree else ROUNDING_OF_SUMS * float(D1.max())
        self._promise_law(law.rate, _MECHANISM_NAMES[law.kind], rounding=rounding)
        return self

    def _kinds(self, accuracy: bool, privacy: bool) -> list[str]:
        """The requested laws that the distances allow, by whether each of them is ultrametric."""
        allowed = {
            "relaxed": accuracy,
            "raised": accuracy,
            "weighted": privacy and self.radius != "entropic",
        }
        kinds = [kind for kind, fits in allowed.items() if fits and self.law in ("auto", kind)]
        if not kinds:
            raise ValueError(
                f"law={quoted(self.law)} with radius={quoted(self.radius)} does not fit the "
                "distances, which are not an ultrametric: of some three points, the two longest "
                'distances differ. law="relaxed" and law="raised" need an ultrametric accuracy. '
                'law="weighted" needs ultrametric candidates, and excludes radius="entropic". For '
                "other distances, use MetricExponentialMechanism."
            )
        return kinds

    def _laws(self, kinds: list[str], D1: FloatArray, D2: FloatArray) -> Iterator[ClassLaw]:
        """The requested laws, each at its best radius."""
        alpha = float(self.alpha)
        if "weighted" in kinds:
            rate, radii = self._full_rate(len(D1)), self._radii(D1, D2, D1)
            yield _cheapest(_weighted_class_law(D1, D2, radius, rate) for radius in radii)
        if kinds != ["weighted"]:
            radii = self._radii(D1, D2, D2)
            relaxed = _cheapest(relaxed_class_law(D1, D2, radius, alpha) for radius in radii)
            if "relaxed" in kinds:
                yield relaxed
            if "raised" in kinds:
                rate = raised_rate(relaxed.log_weights, relaxed.to_classes, D1, alpha)
                yield replace(relaxed, kind="raised", rate=rate)

    def _radii(self, D1: FloatArray, D2: FloatArray, tree: FloatArray) -> ListLike:
        if self.radius == "auto":
            heights = np.unique(tree)
            # Levels of a tree that differ by rounding alone count as one.
            apart = np.diff(heights) > METRIC_TOLERANCE * heights[-1]
            return np.asarray(heights[np.r_[apart, True]])
        if self.radius == "entropic":
            return [float(entropic_scale(D1, D2, alpha=float(self.alpha) / 3))]
        return [float(self.radius)]

    def _to_outputs(self, D: FloatArray) -> FloatArray:
        """Distances from classes, given the distances from points, one of which is zero."""
        return np.asarray(self._to_classes[D.argmin(axis=1)])

    def release(self, inputs: ArrayLike) -> IntArray:
        """Spend the budget and replace points that are given by their numbers.

        Parameters
        ----------
        inputs : array-like of int of shape (n_samples,)
            Numbers of the points to replace, from 0.

        Returns
        -------
        ndarray of int of shape (n_samples,)
            Numbers of the released points.
        """
        check_is_fitted(self)
        inputs = check_places(inputs, self.n_candidates_)
        return self.transform(self._between[inputs])  # type: ignore[return-value]  # never diagrams

    def __sklearn_tags__(self) -> Tags:
        """Declare that the input is a matrix of distances."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        tags.input_tags.two_d_array = False
        return tags

    def _covered(self, D: FloatArray) -> FloatArray:
        if (D.min(axis=1) > 0).any():
            raise ValueError("X has records that are not points of the space.")
        return np.asarray(self._between[D.argmin(axis=1)])


def _weighted_class_law(D1: FloatArray, D2: FloatArray, radius: float, rate: float) -> ClassLaw:
    """Weights of the classes of an ultrametric of privacy, for which rows sum to one."""
    cells = _classes(D1, radius)
    outputs = _representatives(cells, D2)
    between = D1[np.ix_(outputs, outputs)]
    try:
        weights = row_weights(between, rate)
    except np.linalg.LinAlgError:
        raise ValueError(
            "alpha times the distances is so small that it is lost in rounding. Raise alpha."
        ) from None
    log_weights = np.log(np.maximum(weights, np.finfo(float).tiny))
    return ClassLaw("weighted", radius, rate, outputs, log_weights, between[cells], D2)


def relaxed_class_law(D1: FloatArray, D2: FloatArray, radius: float, alpha: float) -> ClassLaw:
    """Half the rate of the distance of privacy from classes of an ultrametric of accuracy.

    This is the mechanism of Theorem 5.1, at any radius.
    """
    cells = _classes(D2, radius)
    outputs = _representatives(cells, D2)
    to_classes, log_weights = nearest_of_cells(D1, cells), np.zeros(len(outputs))
    return ClassLaw("relaxed", radius, alpha / 2, outputs, log_weights, to_classes, D2)


def _cheapest(laws: Iterable[ClassLaw]) -> ClassLaw:
    """The law with the least cost; the first one if costs are equal up to rounding."""
    return reduce(lambda best, law: law if law.cost < best.cost * (1 - 1e-6) else best, laws)


def _classes(D: FloatArray, radius: float) -> IntArray:
    """Number of the class of each point. Up to rounding, heights of a tree are its radii."""
    return cells_of_tree(linkage_of(D, "single"), radius * (1 + METRIC_TOLERANCE))


def _representatives(cells: IntArray, D2: FloatArray) -> IntArray:
    """The point of each class whose largest distance to the others is least."""
    order = np.argsort(cells, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(cells[order])) + 1)
    return np.array([mine[D2[np.ix_(mine, mine)].max(axis=1).argmin()] for mine in members])
