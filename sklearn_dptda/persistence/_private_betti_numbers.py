"""Private Betti numbers: how many features are longer than a threshold.

Proof: doc/theory/private_profiles.md, "Counts above a threshold".
Proof: doc/theory/private_profiles.md, "Without a threshold".
"""

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import FloatArray, IntArray, RandomStateLike
from sklearn_dptda.persistence._count_choice import (
    Choice,
    draw_counts,
    exact_counts,
    given_choice,
    make_choice,
    margin_of,
)
from sklearn_dptda.persistence._count_posterior import ReleasedCounts
from sklearn_dptda.persistence._cubical import Functions
from sklearn_dptda.persistence._error_statement import FEATURE_NAMES
from sklearn_dptda.persistence._lifetimes import PrivateLifetimes
from sklearn_dptda.persistence._posterior_draws import check_expected_features, posterior_of
from sklearn_dptda.persistence._private_grid_persistence import (
    GridFunction,
    Public,
    numbers_of,
    public_numbers,
    pure_guarantee,
)
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyGuarantee
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.utils._sklearn import Interval
from sklearn_dptda.utils._tasks import run

# Largest number of combinations of counts for one draw. It limits time and memory.
_MAX_CANDIDATES = 20_000
# Rounding moves the births and deaths of two features by up to these steps in total.
_ROUNDED_STEPS = 4
# Significant digits of the persistences in a statement.
_DIGITS = 3
# The statement if the noise is too large to say anything.
_NOTHING = "nothing is certain"


@fill_doc
class PrivateBettiNumbers(PrivateLifetimes):
    """Numbers of long components, loops or voids, under differential privacy.

    The estimator counts the features of a diagram whose persistence exceeds a threshold, by
    one draw of the permute-and-flip mechanism. It needs a smaller epsilon than counts from
    a private diagram.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of one release of one cloud, for all counts together. ``inf``
        gives the exact counts, without privacy.
    threshold : float or sequence of float, default=None
        Public persistence (death minus birth) above which a feature is counted, in the
        units of the filtration: one number for all homology dimensions, or one for each.

        None draws the threshold together with the counts and with the cap of the
        distances. The draw prefers a low threshold that is far from all persistences.
    homology_dimensions : int or sequence of int, default=(0, 1)
        Homology dimensions of the features: 0 for components, 1 for loops, 2 for voids.
    max_count : int, default=5
        Largest count, from 1 to 100. It means this number or more.
    confidence : float, default=0.95
        Probability that a statement about one cloud holds, in (0, 1). It does not affect
        privacy.
    %(function_bounds)s
    %(pays_for_transform)s

    Attributes
    ----------
    margins_ : ndarray of shape (n_clouds,)
        Margin of the counts for each filtration of ``fit``, in its units, from public
        numbers only. With probability ``confidence``, at least as many features as
        counted are longer than the threshold minus the margin, and at most as many are
        longer than the threshold plus the margin. It is ``inf`` if it would exceed the
        whole range. Without ``threshold``, it is the largest margin that a release may
        have.
    thresholds_ : ndarray of shape (n_clouds,)
        Thresholds that the last :meth:`transform` drew, a part of the release. This
        attribute and the next two exist only without ``threshold``.
    cap_ : ndarray of shape (n_clouds,)
        Cap of the distances under which the last :meth:`transform` counted features, a
        part of the release; see ``max_distance`` of :class:`DTMFiltration`.
    release_margins_ : ndarray of shape (n_clouds,)
        Margins of the last :meth:`transform` at these thresholds and caps.
    laws_ : structured ndarray of shape (n_clouds,)
        Public numbers on which the law of the last :meth:`transform` depends, for
        :meth:`posterior`.
    privacy_guarantee_ : PrivacyGuarantee
        The guarantee of one call of :meth:`transform` for each cloud.
    homology_dimensions_ : tuple of int
        The homology dimensions as a tuple.
    single_ : bool
        Whether ``homology_dimensions`` is a single integer.

    See Also
    --------
    PersistenceProfile : Releases the persistences of the longest features.
    PrivatePersistence : Releases whole diagrams.

    Notes
    -----
    The essential component is counted: one circle has the Betti numbers 1 and 1. These are
    not the Betti numbers of a single sublevel set.

    .. rubric:: Privacy

    Each call of :meth:`transform` releases one row of counts per cloud.
    %(privacy_of_functions)s

    Replacing one record changes every score by at most twice the sensitivity of the
    filtration.

    References
    ----------
    R. McKenna, D. Sheldon, "Permute-and-flip: a new mechanism for differentially private
    selection", NeurIPS 2020.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_dptda import DTMFiltration, PrivateBettiNumbers
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> X = make_two_circles(4000, random_state=0)
    >>> pipeline = make_pipeline(
    ...     DTMFiltration(m=0.2, bounds=(-2.5, 3)),
    ...     PrivateBettiNumbers(1.0, threshold=0.15, random_state=0),
    ... )
    >>> counts = pipeline.fit_transform([X])
    >>> counts
    array([[2, 2]])
    >>> print(pipeline[-1].statements(counts)[0].split("; ")[-1])
    at most 2 loops longer than 0.228 (confidence 0.95).
    """

    _parameter_constraints = {
        **PrivateLifetimes._parameter_constraints,
        "threshold": [Interval(Real, 0, None, closed="neither"), "array-like", None],
        "max_count": [Interval(Integral, 1, 100, closed="both")],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        threshold: float | Sequence[float] | None = None,
        homology_dimensions: int | Sequence[int] = (0, 1),
        max_count: int = 5,
        *,
        confidence: float = 0.95,
        sensitivity: float | None = None,
        upper: float | None = None,
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.threshold = threshold
        self.homology_dimensions = homology_dimensions
        self.max_count = max_count
        self.confidence = confidence
        self.sensitivity = sensitivity
        self.upper = upper
        self.accountant = accountant
        self.random_state = random_state
        self.n_jobs = n_jobs

    @fill_doc
    def transform(self, X: Functions) -> IntArray:
        """Release private counts. Each call is a new release and spends its own budget.

        Parameters
        ----------
        X : list of GridFiltration, ComplexFiltration or array-like
            The functions, one for each cloud.

        Returns
        -------
        ndarray of shape (n_clouds, n_dimensions), of int
            The counts. ``max_count`` means this number or more.

        %(refused_functions)s
        """
        rows, functions, paid = self._draw(X)
        self._forget_release()
        self.laws_ = public_numbers(functions)
        counts = rows[:, :-3].astype(int) + [q == 0 for q in self.homology_dimensions_]
        found = {}
        if self.threshold is None:
            self.thresholds_, self.cap_, self.release_margins_ = rows[:, -3:].T
            found = {"thresholds_": self.thresholds_, "cap_": self.cap_}
        return paid.keep(counts, **found)

    def statements(self, counts: ArrayLike, X: Functions | None = None) -> list[str]:
        """Describe in sentences what private counts imply.

        Each sentence holds with probability ``confidence``, for every data set. This is
        post-processing, so it costs no privacy. Without ``threshold``, the counts must be
        those of the last :meth:`transform`.

        Parameters
        ----------
        counts : array-like of shape (n_clouds, n_dimensions)
            Private counts, as :meth:`transform` returned them.
        X : list of GridFiltration, ComplexFiltration or array-like, default=None
            The filtrations of the rows, of which only public numbers are used. None uses
            those of :meth:`fit`.

        Returns
        -------
        list of str
            One sentence for each row.
        """
        rows, margins = self._rows_of_release(counts, "counts", X, self.margins_)
        thresholds = [self._thresholds() or []] * len(rows)
        if self.threshold is None:
            drawn = getattr(self, "thresholds_", ())
            if len(drawn) != len(rows):
                raise ValueError(
                    f"counts has {len(rows)} rows, but the last transform drew {len(drawn)} "
                    "thresholds. Pass the counts that it returned."
                )
            margins = self.release_margins_
            thresholds = [[t] * rows.shape[1] for t in drawn]
        statements = []
        for row, each, margin in zip(rows, thresholds, margins.tolist(), strict=True):
            found = dict(zip(self.homology_dimensions_, map(int, row), strict=True))
            text = threshold_statement(found, each, margin, self.max_count)
            statements.append(f"{text} (confidence {self.confidence:.4g}).")
        return statements

    def posterior(self, counts: ArrayLike, expected_features: float = 1.0) -> FloatArray:
        """Compute how probable each number of features is. This costs no privacy.

        The probabilities hold on average over the public prior of :class:`DiagramPosterior`,
        whereas :meth:`statements` hold for every data set. They are about the exact diagram under
        the cap of the distances that was drawn, with points as they were moved to a lattice, if
        they were.

        Parameters
        ----------
        counts : array-like of shape (n_clouds, n_dimensions)
            What the last call of :meth:`transform` returned.
        expected_features : float, default=1.0
            Number of features of each exact diagram that the public prior expects, 0.01 to 10: the
            middle one of three means. Choose it without looking at the data.

        Returns
        -------
        ndarray of shape (n_clouds, n_dimensions, max_count + 1)
            For each cloud and dimension, the probability that 0, 1, 2, ... features are longer than
            the threshold. The last one is that of ``max_count`` or more. NaN if there is no answer,
            because too few diagrams of the prior agree with the release.
        """
        check_expected_features(expected_features)
        laws = numbers_of(getattr(self, "laws_", ()))
        rows, _ = self._rows_of_release(counts, "counts", None, np.zeros(len(laws)))
        least = [int(q == 0) for q in self.homology_dimensions_]
        if not np.isin(rows, range(int(self.max_count) + 1)).all() or (rows < least).any():
            raise ValueError("counts must be what the last transform of this estimator returned.")
        if math.isinf(self.epsilon):
            raise ValueError("epsilon=inf gives the exact counts, of which nothing is uncertain.")
        items = [
            (self._released(row, i, caps), float(expected_features))
            for i, (row, (caps, _)) in enumerate(zip(rows.tolist(), laws, strict=True))
        ]
        return np.array(run(posterior_of, items, n_jobs=self.n_jobs))

    def _released(self, row: Sequence[float], i: int, caps: Sequence[Public]) -> ReleasedCounts:
        """Return the counts of one cloud with all that their law depends on."""
        choice, upper, chosen = self._choice(caps), caps[0][1], 0
        if self.threshold is None:
            upper = self.cap_[i]
            own = [t for t in choice.tried if caps[t.place][1] == upper]
            choice = choice._replace(tried=own)
            chosen = [t.thresholds[0] for t in own].index(self.thresholds_[i])
        return ReleasedCounts(
            self.homology_dimensions_,
            tuple(map(int, row)),
            choice,
            chosen,
            upper,
            upper != caps[0][1],
            int(self.max_count),
        )

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Get the names of the columns, such as ``"betti_1"``.

        Parameters
        ----------
        input_features : Ignored

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        return np.array([f"betti_{q}" for q in self.homology_dimensions_], dtype=object)

    def _read(self, X: list[Any]) -> list[GridFunction]:
        """Read functions, and refuse thresholds above their range and too many candidates."""
        functions = super()._read(X)
        thresholds, most = self._thresholds(), max(map(self._n_candidates, functions))
        if most > _MAX_CANDIDATES:
            raise ValueError(
                f"max_count={self.max_count!r} makes {most} combinations of counts"
                f"{' and thresholds' if thresholds is None else ''}, but at most {_MAX_CANDIDATES} "
                "are supported. Lower max_count, or pass fewer homology_dimensions."
            )
        if thresholds is None:
            return functions
        upper = min(function.upper for function in functions)
        if max(thresholds) >= upper:
            raise ValueError(
                f"threshold={quoted(self.threshold)} must be below upper={upper:g}, the largest "
                "value of the function, because no feature is longer than that."
            )
        return functions

    def _thresholds(self) -> list[float] | None:
        """Return one threshold for each dimension, or None."""
        if self.threshold is None:
            return None
        n = len(self.homology_dimensions_)
        try:
            thresholds = np.array(self.threshold, dtype=float)
            thresholds = np.broadcast_to(thresholds, n) if thresholds.ndim == 0 else thresholds
        except (TypeError, ValueError):
            thresholds = np.empty(0)
        if thresholds.shape != (n,) or not ((thresholds > 0) & np.isfinite(thresholds)).all():
            raise ValueError(
                "threshold must be a positive number, or one for each of the "
                f"homology_dimensions={quoted(self.homology_dimensions)}; got "
                f"{quoted(self.threshold)}."
            )
        return thresholds.tolist()

    def _numbers(self) -> dict[int, int]:
        """Return the number of lifetimes of each dimension that the scores need."""
        return {q: int(self.max_count) - (q == 0) for q in self.homology_dimensions_}

    def _n_candidates(self, function: GridFunction) -> int:
        """Return the number of candidates of one choice: combinations of counts and thresholds."""
        n = math.prod(number + 1 for number in self._numbers().values())
        return n * len(self._choice(function.caps).tried) if self.threshold is None else n

    def _choice(self, caps: Sequence[Public]) -> Choice:
        epsilon, thresholds = float(self.epsilon), self._thresholds()
        if thresholds is None:
            return make_choice(caps, epsilon, len(self.homology_dimensions_))
        return given_choice(caps[0], epsilon, thresholds)

    def _task(self) -> tuple[Any, ...]:
        thresholds = self._thresholds()
        if math.isinf(self.epsilon) and thresholds is not None:
            return exact_counts, self._numbers(), thresholds
        return draw_counts, self._numbers()

    def _scale(self, function: GridFunction) -> tuple[Any, ...]:
        if math.isinf(self.epsilon) and self.threshold is not None:
            return ()
        return self._choice(function.caps), self._margins(function)

    def _error(self, function: GridFunction) -> float:
        return max(self._margins(function))

    def _margins(self, function: GridFunction) -> list[float]:
        """Return the margins of the counts at the thresholds that may be drawn, or are given."""
        # Birth and death both have this error.
        off = 2 * function.approximation_error
        if math.isinf(self.epsilon) and self.threshold is not None:
            return [off]
        choice, missed = self._choice(function.caps), 0
        if math.isfinite(self.epsilon):
            missed = missed_score(self._n_candidates(function), choice.rate, 1 - self.confidence)
        margins = [off + margin_of(choice, t, missed, _ROUNDED_STEPS) for t in choice.tried]
        return [m if m < function.upper else math.inf for m in margins]

    def _least_seen(self, functions: list[GridFunction]) -> FloatArray:
        return max(self._thresholds() or [0.0]) + self._errors(functions)

    def _forget_release(self) -> None:
        """Remove the attributes of an earlier release, which had another law."""
        for name in ("laws_", "thresholds_", "cap_", "release_margins_"):
            self.__dict__.pop(name, None)

    def _set_errors(self, functions: list[GridFunction]) -> None:
        self._forget_release()
        self._warn_of_noise(functions, "counts")
        self.margins_ = self._errors(functions)

    def _guarantee(self, public_bounds: bool) -> PrivacyGuarantee:
        which = f"longer than {self.threshold}"
        if self.threshold is None:
            which = "longer than a threshold that is drawn with the counts and a cap"
        names = ", ".join(self._names())
        return pure_guarantee(
            self,
            "permute-and-flip mechanism",
            f"the number of features per cloud and dimension ({names}) {which}",
            public_bounds,
        )


def missed_score(n_candidates: int, rate: float, failure: float) -> int:
    """Bound the difference between the best score and the chosen one.

    The bound fails with a probability of at most ``failure``: a candidate whose score is smaller by
    ``x`` wins only if it comes before the best one and a coin with the probability ``exp(-rate *
    x)`` succeeds.
    """
    return math.ceil(math.log(max((n_candidates - 1) / (2 * failure), 1.0)) / rate * (1 + 1e-9))


def threshold_statement(
    counts: Mapping[int, int], thresholds: Sequence[float], margin: float, most: int
) -> str:
    """Describe counts by dimension: how many features are certainly long, and how many at most."""
    if math.isinf(margin):
        return _NOTHING
    parts = []
    for (q, count), threshold in zip(counts.items(), thresholds, strict=True):
        # There is always one essential component.
        if threshold > margin and count > (q == 0):
            low = _rounded(threshold - margin, ROUND_FLOOR)
            parts.append(f"at least {_several(count, q)} longer than {low}")
        if count < most:
            high = _rounded(threshold + margin, ROUND_CEILING)
            parts.append(f"at most {_several(count, q)} longer than {high}")
    return "; ".join(parts) or _NOTHING


def _several(count: int, q: int) -> str:
    name = FEATURE_NAMES.get(q, f"H{q} class")
    return f"{count} {name if count == 1 else name + ('es' if name.endswith('s') else 's')}"


def _rounded(value: float, direction: str) -> str:
    """Format a value with a few digits, rounded so that the sentence remains true."""
    return f"{Context(prec=_DIGITS, rounding=direction).create_decimal_from_float(value):f}"
