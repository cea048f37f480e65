"""Betti numbers: how many features are long, under differential privacy.

Proof: doc/theory/private_profiles.md, "Counts above a threshold".
Proof: doc/theory/private_profiles.md, "Without a threshold".
"""

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from functools import reduce
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import FloatArray, IntArray, RandomStateLike
from sklearn_dptda.persistence._cubical import Functions
from sklearn_dptda.persistence._error_statement import FEATURE_NAMES
from sklearn_dptda.persistence._found_threshold import (
    Choice,
    Tried,
    found_counts,
    make_choice,
    margin_of,
    threshold_scores,
)
from sklearn_dptda.persistence._lifetimes import (
    LifetimeLattice,
    PrivateLifetimes,
    lifetimes_of,
    make_lattice,
)
from sklearn_dptda.persistence._private_grid_persistence import GridFunction, pure_guarantee
from sklearn_dptda.privacy import (
    NoiseSource,
    PrivacyAccountant,
    PrivacyGuarantee,
    private_choice,
)
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.utils._sklearn import Interval

# Largest number of combinations of counts that one draw chooses from: time and memory.
_MAX_CANDIDATES = 20_000
# Steps by which rounding moves the two ends of two persistences.
_ROUNDED_STEPS = 4
# Significant digits of the persistences in a statement.
_DIGITS = 3
# Statement where noise is all that there is.
_NOTHING = "nothing is certain"


@fill_doc
class PrivateBettiNumbers(PrivateLifetimes):
    """Numbers of long features, under differential privacy: of components, loops, voids.

    Counts the features of a diagram whose persistence exceeds a threshold, by
    one draw of permute-and-flip. Loops are counted as well as in a private
    diagram of loops of four times the epsilon.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of one release of one cloud, all counts together. ``inf``
        counts exactly.
    threshold : float or sequence of float, default=None
        Public persistence (death minus birth) above which a feature counts, in
        the units of the filtration; one for each dimension, or one for all.
        All dimensions are counted by one draw at the full ``epsilon``. None:
        the threshold is drawn with the counts, and with the cap of the
        distances: a low one that is far from all persistences, by public
        prices; ``thresholds_`` says which.
    homology_dimensions : int or sequence of int, default=(0, 1)
        Which features to count.
    max_count : int, default=5
        Largest count, from 1 to 100; it stands for itself or more.
    confidence : float, default=0.95
        Probability that a statement about one cloud holds.
    %(function_bounds)s
    %(pays_for_transform)s

    Attributes
    ----------
    margins_ : ndarray of shape (n_clouds,)
        For each filtration of ``fit``: with probability ``confidence`` the
        released counts are right for thresholds that are off by no more than
        this, see :meth:`statements`; ``inf`` where this is the whole range. A
        function of public numbers; without a threshold, the largest that it
        may become.
    thresholds_ : ndarray of shape (n_clouds,)
        Of the last :meth:`transform` without ``threshold``: the one that was
        drawn for each cloud, part of the release.
    cap_ : ndarray of shape (n_clouds,)
        Likewise, the cap under which features were counted; see
        ``max_distance`` of :class:`DTMFiltration`.
    release_margins_ : ndarray of shape (n_clouds,)
        Likewise, ``margins_`` at these thresholds and caps.
    privacy_guarantee_ : PrivacyGuarantee
        What one call of :meth:`transform` promises for each cloud.
    homology_dimensions_ : tuple of int
        The dimensions as a tuple.
    single_ : bool
        Whether a single dimension was given.

    See Also
    --------
    PersistenceProfile : How long the longest features are.
    PrivatePersistence : Whole diagrams.

    Notes
    -----
    The essential component, which never dies, counts as one: one circle has
    Betti numbers 1 and 1. These are Betti numbers of what is left of the
    function when shorter features are smoothed away, not of a single sublevel
    set.

    With a threshold, let ``margin`` be its distance from the nearest
    persistence of any of the dimensions. The counts are wrong with a
    probability of at most ``(c - 1) / 2 * exp(-epsilon * margin / (2 *
    sensitivity))``, where ``c`` is the number of combinations of counts.

    .. rubric:: Privacy

    Each call of :meth:`transform` releases one row of counts per cloud.
    %(privacy_of_functions)s

    Replacing one record moves all persistences together by at most twice the
    sensitivity of the filtration, and hence every score by as much.

    References
    ----------
    R. McKenna, D. Sheldon, "Permute-and-flip: a new mechanism for
    differentially private selection", NeurIPS 2020.

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
    >>> for sentence in pipeline[-1].statements(counts)[0].split("; "):
    ...     print(sentence)
    at least 2 components longer than 0.0720
    at most 2 components longer than 0.228
    at least 2 loops longer than 0.0720
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
        """Release private counts: each call is a new release.

        Parameters
        ----------
        X : list of GridFiltration or of array-like

        Returns
        -------
        ndarray of shape (n_clouds, n_dimensions), of int
            ``max_count`` stands for itself or more.

        %(refused_functions)s
        """
        rows, paid = self._draw(X)
        found = {}
        if self.threshold is None:
            self.thresholds_, self.cap_, self.release_margins_ = rows[:, -3:].T
            rows = rows[:, :-3].astype(int)
            found = {"thresholds_": self.thresholds_, "cap_": self.cap_}
        return paid.keep(rows + [q == 0 for q in self.homology_dimensions_], **found)

    def statements(self, counts: ArrayLike, X: Functions | None = None) -> list[str]:
        """Say what private counts tell for certain, or almost.

        Each sentence holds with probability ``confidence``, whatever the
        records are. Post-processing: nothing is paid. Without ``threshold``,
        the counts are those of the last :meth:`transform`.

        Parameters
        ----------
        counts : array-like of shape (n_clouds, n_dimensions)
            As :meth:`transform` released them.
        X : list of GridFiltration or of array-like, default=None
            The filtrations of the rows, of which only public numbers are read.
            None: those that :meth:`fit` had.

        Returns
        -------
        list of str

        Raises
        ------
        ValueError
            If the numbers of rows and of filtrations differ, or columns are missing.
        """
        rows, margins = self._rows_of_release(counts, "counts", X, self.margins_)
        thresholds = [self._thresholds() or []] * len(rows)
        if self.threshold is None:
            drawn = getattr(self, "thresholds_", ())
            if len(drawn) != len(rows):
                raise ValueError(
                    f"counts has {len(rows)} rows, and the last transform drew {len(drawn)} "
                    "thresholds: pass the counts that it returned."
                )
            margins = self.release_margins_
            thresholds = [[t] * rows.shape[1] for t in drawn]
        return [
            f"{self._statement(row, t, float(margin))} (confidence {self.confidence:.4g})."
            for row, t, margin in zip(rows, thresholds, margins, strict=True)
        ]

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Names of the columns.

        Parameters
        ----------
        input_features : Ignored

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        return np.array([f"betti_{q}" for q in self.homology_dimensions_], dtype=object)

    def _statement(self, row: IntArray, thresholds: Sequence[float], margin: float) -> str:
        counts = dict(zip(self.homology_dimensions_, map(int, row), strict=True))
        if math.isinf(margin):
            return _NOTHING
        return threshold_statement(counts, thresholds, margin, self.max_count)

    def _read(self, X: list[Any]) -> list[GridFunction]:
        """Refuse thresholds that nothing can exceed, and choices among too few or too many."""
        functions = super()._read(X)
        thresholds, most = self._thresholds(), max(map(self._n_candidates, functions))
        if most > _MAX_CANDIDATES:
            raise ValueError(
                f"max_count={self.max_count!r} makes {most} combinations of counts"
                f"{' and thresholds' if thresholds is None else ''}; at most {_MAX_CANDIDATES} can "
                "be chosen from."
            )
        if thresholds is None:
            return functions
        upper = min(function.upper for function in functions)
        if max(thresholds) >= upper:
            raise ValueError(
                f"threshold={quoted(self.threshold)} must be below upper={upper:g}, the "
                "largest value of the function: no feature is longer."
            )
        return functions

    def _thresholds(self) -> list[float] | None:
        """One threshold for each dimension, or None."""
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
        """Lifetimes of each dimension that the scores need."""
        return {q: int(self.max_count) - (q == 0) for q in self.homology_dimensions_}

    def _n_candidates(self, function: GridFunction) -> int:
        """Candidates of one choice: combinations of counts, and of thresholds."""
        n = math.prod(number + 1 for number in self._numbers().values())
        return n * len(self._choice(function).tried) if self.threshold is None else n

    def _choice(self, function: GridFunction) -> Choice:
        return make_choice(function.caps, float(self.epsilon))

    def _task(self) -> tuple[Any, ...]:
        if self.threshold is None:
            return _release_found, self._numbers()
        return _release, self._numbers(), self._thresholds()

    def _scale(self, function: GridFunction) -> tuple[Any, ...]:
        if self.threshold is not None:
            exact = math.isinf(self.epsilon)
            return (None, 0.0) if exact else self._lattice(function.sensitivity, function.upper)
        choice = self._choice(function)
        return choice, [self._margin(function, choice, t) for t in choice.tried]

    def _lattice(self, sensitivity: float, upper: float) -> tuple[LifetimeLattice, float]:
        """Lattice of one function, and rate of a choice per step, for a finite ``epsilon``."""
        lattice = make_lattice(sensitivity, upper)
        # Scores move either way: a choice costs twice the rate times what they move by.
        return lattice, float(self.epsilon) / (2 * lattice.sensitivity)

    def _error(self, function: GridFunction) -> float:
        if self.threshold is None:
            choice = self._choice(function)
            return max(self._margin(function, choice, t) for t in choice.tried)
        # Both ends of a persistence are off.
        off = 2 * function.approximation_error
        if math.isinf(self.epsilon):
            return off
        lattice, rate = self._lattice(function.sensitivity, function.upper)
        missed = missed_score(self._n_candidates(function), rate, 1 - self.confidence)
        margin = (missed + _ROUNDED_STEPS) * lattice.step + off
        return margin if margin < function.upper else math.inf

    def _margin(self, function: GridFunction, choice: Choice, t: Tried) -> float:
        """Margin of counts at a threshold that was drawn."""
        off = 2 * function.approximation_error
        if math.isinf(choice.rate):
            return off
        missed = missed_score(self._n_candidates(function), choice.rate, 1 - self.confidence)
        margin = margin_of(choice, t, missed, _ROUNDED_STEPS) + off
        return margin if margin < function.upper else math.inf

    def _least_seen(self, functions: list[GridFunction]) -> FloatArray:
        return max(self._thresholds() or [0.0]) + self._errors(functions)

    def _set_errors(self, functions: list[GridFunction]) -> None:
        self._warn_of_noise(functions, "counts")
        self.margins_ = self._errors(functions)

    def _guarantee(self, public_bounds: bool) -> PrivacyGuarantee:
        which = f"are longer than {self.threshold}"
        if self.threshold is None:
            which = "are longer than a threshold that is drawn with them, and with a cap"
        names = ", ".join(self._names())
        return pure_guarantee(
            self,
            "permute-and-flip mechanism",
            f"how many features per cloud and dimension ({names}) {which}",
            public_bounds,
        )


def _release_found(
    numbers: Mapping[int, int],
    function: GridFunction,
    choice: Choice,
    margins: Sequence[float],
    seed: Any,
) -> list[float]:
    """Counts of one filtration, then the threshold, the cap and the margin that go with them."""
    counts, t = found_counts(numbers, function, choice, seed)
    return [*counts, t.threshold, function.caps[t.place][1], margins[choice.tried.index(t)]]


def _release(
    numbers: Mapping[int, int],
    thresholds: Sequence[float],
    function: GridFunction,
    lattice: LifetimeLattice | None,
    rate: float,
    seed: Any,
) -> list[int]:
    """Counts of finite classes of one filtration; exact without a lattice.

    The border between private and public is the call of ``choose_jointly``.
    """
    (diagrams,) = function.diagrams(numbers)
    lifetimes = lifetimes_of(diagrams, numbers, lattice)
    if lattice is None:
        pairs = zip(lifetimes, thresholds, strict=True)
        return [int((each > threshold).sum()) for each, threshold in pairs]
    steps = [round(threshold / lattice.step) for threshold in thresholds]
    return choose_jointly(list(map(threshold_scores, lifetimes, steps)), rate, seed)


def choose_jointly(scores: Sequence[NDArray[Any]], rate: float, seed: Any) -> list[int]:
    """One index for each list of scores, by one choice: a combination scores as its worst part."""
    joint = reduce(np.minimum.outer, scores)
    index = private_choice(-joint.ravel(), rate, NoiseSource(seed), bounded_range=False)
    return [int(i) for i in np.unravel_index(index, joint.shape)]


def missed_score(n_candidates: int, rate: float, failure: float) -> int:
    """By how much the chosen score may be below the best, but for a ``failure`` probability.

    Permute-and-flip takes a candidate that is ``x`` worse only if it comes before the best, and
    its coin of probability ``exp(-rate * x)`` succeeds.
    """
    return math.ceil(math.log(max((n_candidates - 1) / (2 * failure), 1.0)) / rate * (1 + 1e-9))


def threshold_statement(
    counts: Mapping[int, int], thresholds: Sequence[float], margin: float, most: int
) -> str:
    """Sentence about counts by dimension: how many are surely long, and how many at most."""
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
    """A few digits, rounded so that the sentence stays true."""
    return f"{Context(prec=_DIGITS, rounding=direction).create_decimal_from_float(value):f}"
