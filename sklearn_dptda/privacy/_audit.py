"""Empirical lower bounds of the privacy loss of a mechanism.

Proof: doc/theory/noise_and_calibration.md, "What an audit proves".
"""

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from numbers import Integral
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from scipy.stats import beta
from sklearn.base import BaseEstimator
from threadpoolctl import threadpool_limits

from sklearn_dptda._typing import BoolArray, FloatArray, RandomStateLike
from sklearn_dptda.privacy._noise import spawn_seeds
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.privacy._release import as_arrays, release, seeded_clone

# Number of thresholds that are tried for each score.
_N_THRESHOLDS = 200
# Number of rows of an array of varying size that a summary keeps.
_N_ROWS = 3
# Number of coordinates of a summary that are tried as scores. The classifier uses all coordinates.
_MOST_COORDINATES = 50
# Numbers in summaries are clipped to this size, so that a classifier can compute with them.
_LARGEST_SUMMARY = 1e300

_Summary: TypeAlias = Callable[[Any], ArrayLike]
_Runner: TypeAlias = Callable[[Any, object, int | None], Any]
# Converts releases into rows of numbers.
_Summarise: TypeAlias = Callable[[Sequence[Any]], FloatArray]
# Converts counts, on the likelier side and on the other side, into lower bounds.
_Bound: TypeAlias = Callable[[ArrayLike, ArrayLike], FloatArray]


@dataclass(frozen=True)
class AuditResult:
    """Result of :func:`audit_epsilon`. It prints as one sentence.

    Attributes
    ----------
    epsilon : float
        Lower confidence bound of the privacy loss. 0 if the audit found no
        difference.
    confidence : float
        Confidence level of the bound.
    delta : float
        Failure probability that was granted to the mechanism.
    n_runs : int
        Number of runs for each data set in which the event was counted.
    counts : tuple of int
        Number of occurrences of the event on ``D`` and on ``D_neighbour``.
    event : str
        Description of the event that was counted.
    scores : tuple of ndarray, or None
        Scores of the releases on both data sets, which the event compares with
        ``threshold``. None if the caller gave the event.
    threshold : float or None
        Threshold of the scores. None if the caller gave the event.

    Examples
    --------
    >>> from sklearn_dptda.privacy import NoiseSource, audit_epsilon
    >>> def counts(data, random_state=None):
    ...     return sum(data) + NoiseSource(random_state).discrete_laplace(1.0, 1)
    >>> result = audit_epsilon(counts, [0], [1], n_runs=2000, random_state=0)
    >>> result.refutes(0.5), result.refutes(1.0)
    (True, False)
    """

    epsilon: float
    confidence: float
    delta: float
    n_runs: int
    counts: tuple[int, ...]
    event: str
    scores: tuple[FloatArray, FloatArray] | None = field(default=None, repr=False, compare=False)
    threshold: float | None = None

    def refutes(self, epsilon: float) -> bool:
        """Return whether the runs contradict a claimed epsilon at this confidence.

        Parameters
        ----------
        epsilon : float
            The claim.

        Returns
        -------
        bool
        """
        return self.epsilon > epsilon

    def __str__(self) -> str:
        return (
            f"epsilon >= {self.epsilon:.3g} (delta={self.delta:g}) with confidence "
            f"{self.confidence:g}: the event '{self.event}' occurred {self.counts[0]} times on D "
            f"and {self.counts[1]} times on D_neighbour, in {self.n_runs} runs each."
        )


def audit_epsilon(
    mechanism: Callable[..., Any] | BaseEstimator,
    D: object,
    D_neighbour: object,
    *,
    event: Callable[[Any], object] | None = None,
    delta: float = 0.0,
    n_runs: int = 10_000,
    confidence: float = 0.99,
    summary: Callable[[Any], ArrayLike] | None = None,
    random_state: RandomStateLike = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> AuditResult:
    """Estimate a lower bound of the privacy loss of a mechanism by running it.

    The mechanism runs many times on two neighbouring data sets. From half of the
    runs, it learns an event that is likelier on one of them, which it counts in the
    other half. Clopper-Pearson intervals convert the counts into a lower bound of
    epsilon. A bound above the claimed epsilon refutes the claim. A bound below it
    proves nothing.

    Parameters
    ----------
    mechanism : callable or estimator
        A callable takes a data set and returns a release, independently in each
        call. If it has a parameter ``random_state``, it gets a seed or None. If it
        does not, it runs in this process, whatever the value of ``n_jobs``. An
        estimator is cloned and fitted. Its release is what ``transform``
        returns, or its fitted attributes if it releases in ``fit``.
    D, D_neighbour : object
        Neighbouring inputs. Use simulated data.
        :mod:`sklearn_dptda.privacy.neighbours` has worst cases.
    event : callable, default=None
        Function that tells for a release whether the event occurred. All runs are
        then used for counting. None learns an event.
    delta : float, default=0.0
        Failure probability of the claimed guarantee.
    n_runs : int, default=10_000
        Number of runs for each data set.
    confidence : float, default=0.99
        Confidence level: the bound is true with at least this probability.
    summary : callable, default=None
        Function that takes a release and returns a vector of numbers, from which
        the event is learnt. None flattens arrays. It describes arrays of varying
        size by their number of rows, extremes, means and largest rows.
    random_state : int, RandomState instance, Generator or None, default=None
        Source of one seed for each run and one for the learner. None audits unseeded
        releases.
    n_jobs : int, default=None
        Number of workers. Any joblib backend can be used.
    verbose : int, default=0
        Verbosity of the progress messages of :class:`joblib.Parallel`. 0 prints
        nothing.

    Returns
    -------
    AuditResult

    Notes
    -----
    .. rubric:: Privacy

    The result depends on both data sets and is *not* private: use simulated
    data. An estimator with an accountant spends from its budget in every run.

    References
    ----------
    M. Jagielski, J. Ullman, A. Oprea, "Auditing differentially private machine
    learning", NeurIPS 2020; B. Bichsel, S. Steffen, I. Bogunovic, M. Vechev,
    "DP-Sniper: black-box discovery of differential privacy violations using
    classifiers", IEEE S&P 2021.

    Examples
    --------
    >>> from sklearn_dptda.privacy import NoiseSource, audit_epsilon
    >>> def counts(data, random_state=None):
    ...     return sum(data) + NoiseSource(random_state).discrete_laplace(1.0, 1)
    >>> result = audit_epsilon(counts, [0], [1], n_runs=4000, random_state=0)
    >>> bool(0.8 < result.epsilon <= 1.0)
    True
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be in (0, 1); got {quoted(confidence)}.")
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be in [0, 1); got {quoted(delta)}.")
    if not isinstance(n_runs, Integral) or n_runs < 4:
        raise ValueError(f"n_runs must be an integer of at least 4; got {quoted(n_runs)}.")
    *seeds, learner_seed = spawn_seeds(random_state, 2 * n_runs + 1)
    first = _run(mechanism, D, seeds[:n_runs], n_jobs, verbose)
    second = _run(mechanism, D_neighbour, seeds[n_runs:], n_jobs, verbose)
    if event is not None:
        return _count(event, first, second, delta, confidence)
    return _learn_and_count(first, second, summary, learner_seed, delta, confidence)


def _count(
    event: Callable[[Any], object],
    first: list[Any],
    second: list[Any],
    delta: float,
    confidence: float,
) -> AuditResult:
    """Audit by a given event, which is counted in all runs."""
    counts = sum(map(bool, map(event, first))), sum(map(bool, map(event, second)))
    return AuditResult(
        epsilon=_bound_of_event(*counts, len(first), delta, confidence),
        confidence=confidence,
        delta=delta,
        n_runs=len(first),
        counts=counts,
        event=getattr(event, "__name__", type(event).__name__),
    )


def _learn_and_count(
    first: list[Any],
    second: list[Any],
    summary: _Summary | None,
    seed: int | None,
    delta: float,
    confidence: float,
) -> AuditResult:
    """Audit by an event that is learnt from half of the runs and counted in the other half."""
    half = len(first) // 2
    n_runs = len(first) - half
    bound = partial(lower_bound, n_runs=half, delta=delta, confidence=confidence)
    learnt = learn_event(first[:half], second[:half], summary, bound, seed)
    scores = (learnt.scores(first[half:]), learnt.scores(second[half:]))
    counts = tuple(int(learnt.occurs(side).sum()) for side in scores)
    likelier, other = counts if learnt.likelier_on_first else counts[::-1]
    return AuditResult(
        epsilon=max(float(lower_bound(likelier, other, n_runs, delta, confidence)), 0.0),
        confidence=confidence,
        delta=delta,
        n_runs=n_runs,
        counts=counts,
        event=learnt.name,
        scores=scores,
        threshold=learnt.threshold,
    )


def lower_bound(
    likelier: ArrayLike, other: ArrayLike, n_runs: int, delta: float, confidence: float
) -> FloatArray:
    """Return a lower confidence bound of epsilon, -inf if the counts do not give one.

    The arguments are the counts of one event among ``n_runs`` runs on the side where it is
    likelier, and on the other side, as numbers or arrays.
    """
    tail = (1 - confidence) / 2
    return _log_ratio(_low(likelier, n_runs, tail), _high(other, n_runs, tail), delta)


def _bound_of_event(first: int, second: int, n: int, delta: float, confidence: float) -> float:
    """Return the best bound from an event and its complement, in both directions."""
    tail = (1 - confidence) / 4
    low, high = _low([first, second], n, tail), _high([first, second], n, tail)
    pairs = [
        (low[0], high[1]),
        (low[1], high[0]),
        (1 - high[0], 1 - low[1]),
        (1 - high[1], 1 - low[0]),
    ]
    return max(0.0, *(float(_log_ratio(p, q, delta)) for p, q in pairs))


def _low(k: ArrayLike, n: int, tail: float) -> FloatArray:
    k = np.asarray(k)
    return np.where(k > 0, beta.ppf(tail, np.maximum(k, 1), n - k + 1), 0.0)


def _high(k: ArrayLike, n: int, tail: float) -> FloatArray:
    k = np.asarray(k)
    return np.where(k < n, beta.ppf(1 - tail, k + 1, np.maximum(n - k, 1)), 1.0)


def _log_ratio(p: FloatArray, q: FloatArray, delta: float) -> FloatArray:
    excess = p - delta
    return np.where(excess > 0, np.log(np.maximum(excess, 1e-300)) - np.log(q), -np.inf)


def _run(
    mechanism: Any, data: object, seeds: Sequence[int | None], n_jobs: int | None, verbose: int
) -> list[Any]:
    draw = _runner(mechanism)
    if draw is _call_without_seed:
        # The function may hold a generator, whose copies in workers would all draw the same.
        n_jobs = 1
    run = delayed(draw)
    outputs: list[Any] = Parallel(n_jobs=n_jobs, verbose=verbose, max_nbytes=None)(
        run(mechanism, data, seed) for seed in seeds
    )
    return outputs


def _fit_clone(estimator: BaseEstimator, data: object, seed: int | None) -> Any:
    return release(seeded_clone(estimator, seed), data)


def _call_with_seed(function: Callable[..., Any], data: object, seed: int | None) -> Any:
    return function(data, random_state=seed)


def _call_without_seed(function: Callable[..., Any], data: object, seed: int | None) -> Any:
    return function(data)


def _runner(mechanism: Any) -> _Runner:
    if hasattr(mechanism, "get_params") and hasattr(mechanism, "fit"):
        return _fit_clone
    if not callable(mechanism):
        raise ValueError("mechanism must be a callable or an estimator.")
    try:
        parameter = inspect.signature(mechanism).parameters.get("random_state")
    except ValueError:
        parameter = None
    takes_seed = parameter is not None and parameter.kind is not parameter.POSITIONAL_ONLY
    return _call_with_seed if takes_seed else _call_without_seed


@dataclass(frozen=True)
class LearntEvent:
    """Event that a score of a release is at least (if ``above``) or below a threshold.

    ``summarise`` converts a list of releases into rows, and ``score`` converts rows into numbers.
    """

    name: str
    score: Callable[[FloatArray], FloatArray]
    summarise: _Summarise
    threshold: float
    above: bool
    likelier_on_first: bool

    def scores(self, outputs: Sequence[Any]) -> FloatArray:
        """Return the scores of some releases."""
        return self.score(self.summarise(outputs))

    def occurs(self, scores: FloatArray) -> BoolArray:
        """Return for each score whether the event occurs."""
        return scores >= self.threshold if self.above else scores < self.threshold


def learn_event(
    first: list[Any], second: list[Any], summary: _Summary | None, bound: _Bound, seed: int | None
) -> LearntEvent:
    """Find the event with the best bound among thresholds of several scores.

    The scores are the first 50 varying coordinates of the summary, and the probability of the
    first data set according to a gradient boosting classifier. ``bound`` takes arrays of counts,
    on the likelier side and on the other side.
    """
    # Imported late, because both take long and only audits need them.
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import cross_val_predict

    summarise = _finite(_summariser(summary, first + second), first + second)
    features = np.concatenate([summarise(first), summarise(second)])
    on_first = np.arange(len(features)) < len(first)
    learner = HistGradientBoostingClassifier(max_iter=50, max_leaf_nodes=15, random_state=seed)
    # One thread is faster for fits as small as these.
    with threadpool_limits(1, user_api="openmp"):
        # Cross-validated scores: thresholds of scores on the training runs would be too optimistic.
        unseen = cross_val_predict(learner, features, on_first, cv=2, method="predict_proba")[:, 1]
        learner.fit(features, on_first)
    candidates = [("score of a classifier", unseen, lambda rows: learner.predict_proba(rows)[:, 1])]
    for i in range(min(features.shape[1], _MOST_COORDINATES)):
        candidates.append((f"coordinate {i}", features[:, i], itemgetter((slice(None), i))))
    bounded = [
        (*_best_threshold(values, on_first, bound), name, score)
        for name, values, score in candidates
    ]
    _, threshold, above, likelier_on_first, name, score = max(bounded, key=itemgetter(0))
    sign = ">=" if above else "<"
    return LearntEvent(
        f"{name} {sign} {threshold:.4g}", score, summarise, threshold, above, likelier_on_first
    )


def _best_threshold(
    values: FloatArray, on_first: BoolArray, bound: _Bound
) -> tuple[float, float, bool, bool]:
    """Return the best bound over thresholds, tails and directions."""
    distinct = np.unique(values)
    picked = np.unique(np.linspace(0, len(distinct) - 1, _N_THRESHOLDS).astype(int))
    # Order statistics are added for tails and for heavy atoms.
    ranks = np.unique(np.linspace(0, len(values) - 1, _N_THRESHOLDS).astype(int))
    thresholds = np.union1d(distinct[picked], np.sort(values)[ranks])
    # The next larger float is added to each threshold, so that an atom can be the whole tail.
    thresholds = np.union1d(thresholds, np.nextafter(thresholds, np.inf))
    best = (-np.inf, float(thresholds[0]), True, True)
    for above in (True, False):
        occurs = values[:, None] >= thresholds if above else values[:, None] < thresholds
        counts = occurs[on_first].sum(axis=0), occurs[~on_first].sum(axis=0)
        for likelier_on_first in (True, False):
            bounds = bound(*(counts if likelier_on_first else counts[::-1]))
            i = int(np.argmax(bounds))
            # The bound is the same up to threshold j. The middle is far from the scores of both
            # sides, so that the event is robust if new scores differ a little.
            j = i + int(np.argmin(np.append(bounds[i:] == bounds[i], False))) - 1
            if bounds[i] > best[0]:
                threshold = thresholds[i] + (thresholds[j] - thresholds[i]) / 2
                best = (float(bounds[i]), float(threshold), above, likelier_on_first)
    return best


def _finite(summarise: _Summarise, examples: list[Any]) -> _Summarise:
    """Make summaries finite, and add columns that mark missing numbers.

    Columns that are constant in the examples, or equal to an earlier one, are dropped.
    """

    def columns(outputs: Sequence[Any]) -> FloatArray:
        rows = summarise(outputs)
        numbers = np.nan_to_num(rows, nan=0.0, posinf=_LARGEST_SUMMARY, neginf=-_LARGEST_SUMMARY)
        return np.hstack([np.clip(numbers, -_LARGEST_SUMMARY, _LARGEST_SUMMARY), np.isnan(rows)])

    known = columns(examples)
    _, first = np.unique(known, axis=1, return_index=True)
    kept = np.sort(first[(known != known[:1]).any(axis=0)[first]])
    kept = kept if len(kept) else np.array([0])
    return lambda outputs: columns(outputs)[:, kept]


def _summariser(summary: _Summary | None, examples: list[Any]) -> _Summarise:
    """Return a function from releases to rows; the examples show which arrays vary in shape."""
    if summary is not None:
        return lambda outputs: np.array([np.ravel(summary(o)) for o in outputs], dtype=float)
    shapes = [[part.shape for part in as_arrays(output)] for output in examples]
    if len({len(row) for row in shapes}) != 1:
        raise ValueError(
            "the releases have varying numbers of arrays. Pass summary=, a function from a "
            "release to a vector."
        )
    columns = zip(*shapes, strict=True)
    fixed = [column[0] if len(set(column)) == 1 else None for column in columns]
    return lambda outputs: np.array([_row(as_arrays(output), fixed) for output in outputs])


def _row(parts: list[FloatArray], shapes: Sequence[tuple[int, ...] | None]) -> FloatArray:
    """Concatenate the arrays of a release. Their shapes are given, None for a varying shape."""
    # A release with another number of arrays than the examples is filled with missing numbers.
    parts = parts[: len(shapes)] + [np.empty((0, 0))] * (len(shapes) - len(parts))
    return np.concatenate(
        [
            _describe(part)
            if shape is None
            else part.ravel()
            if part.shape == shape
            else np.full(math.prod(shape), np.nan)
            for part, shape in zip(parts, shapes, strict=True)
        ]
        or [np.zeros(1)]
    )


def _describe(part: FloatArray) -> FloatArray:
    """Return a fixed number of descriptors of an array with a varying number of rows."""
    part = np.atleast_1d(part)
    rows = part.reshape(len(part), int(np.prod(part.shape[1:])))
    head = [float(len(rows)), float(rows.sum())]
    if rows.shape[1] == 2:
        # These are points of a diagram: sort them by persistence, the longest first.
        rows = rows[np.argsort(rows[:, 0] - rows[:, 1], kind="stable")]
        width = 2
    else:
        rows = np.sort(rows.ravel())[::-1].reshape(-1, 1)
        width = 1
    shown = np.full((_N_ROWS, 2), np.nan)
    shown[: min(len(rows), _N_ROWS), :width] = rows[:_N_ROWS]
    extremes = [rows.min(), rows.max(), rows.mean()] if rows.size else [np.nan] * 3
    return np.concatenate([head, extremes, shown.ravel()])
