"""Empirical lower bounds of epsilon: what a release betrays at least."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, cpu_count, delayed, effective_n_jobs
from numpy.typing import ArrayLike
from scipy.stats import beta
from sklearn.base import BaseEstimator

from sklearn_dptda._typing import FloatArray, RandomStateLike
from sklearn_dptda.privacy._learnt_event import learn_event
from sklearn_dptda.privacy._noise import spawn_seeds
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.privacy._release import release, seeded_clone


@dataclass(frozen=True)
class AuditResult:
    """Outcome of :func:`audit_epsilon`.

    Attributes
    ----------
    epsilon : float
        Lower confidence bound of the privacy loss; 0 if nothing was found.
    confidence : float
        Probability, before the runs, that the bound would be true.
    delta : float
        Delta that was granted to the mechanism.
    n_runs : int
        Runs per data set in which the event was counted.
    counts : tuple of int
        How often the event occurred on ``D`` and on ``D_neighbour``.
    event : str
        What was counted.
    scores : tuple of ndarray, or None
        What the event is a threshold of, on both data sets.
    threshold : float or None
        The threshold.
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
        """Whether the runs contradict a claimed epsilon at this confidence."""
        return self.epsilon > epsilon

    def __str__(self):
        return (
            f"epsilon >= {self.epsilon:.3g} (delta={self.delta:g}) with confidence "
            f"{self.confidence:g}: the event '{self.event}' occurred {self.counts[0]} against "
            f"{self.counts[1]} times in {self.n_runs} runs a side."
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
    """Bound from below, by running it, how much privacy a mechanism loses.

    The mechanism runs many times on two neighbouring data sets. An event that
    is likelier on one of them is learnt from half of the runs; the other half
    counts it, and Clopper-Pearson intervals turn the counts into a bound. A
    bound above the claimed epsilon refutes the claim; one below proves
    nothing.

    Parameters
    ----------
    mechanism : callable or estimator
        A callable takes a data set and returns its release, independently
        each time. If it has a parameter ``random_state``, it is given a seed or
        None; if not, it runs in this process, whatever ``n_jobs``. An estimator
        is cloned and fitted; its release is what ``transform`` returns, or
        what it learnt.
    D, D_neighbour : object
        Neighbouring inputs, made up for the purpose; see
        :mod:`sklearn_dptda.privacy.neighbours` for worst cases.
    event : callable, default=None
        Takes a release, returns whether the event occurred. All runs count.
        None learns one.
    delta : float, default=0.0
        Delta of the claim.
    n_runs : int, default=10_000
        Runs per data set.
    confidence : float, default=0.99
        The bound is true with at least this probability.
    summary : callable, default=None
        Takes a release, returns a vector of numbers from which to learn. None
        flattens arrays, and describes arrays of varying size by the number of
        their rows, extremes, means and largest rows.
    random_state : int, RandomState instance, Generator or None, default=None
        One seed per run, and one for the learner, are drawn before any work
        starts. None audits what is used in earnest.
    n_jobs : int, default=None
        Number of workers; any joblib backend serves.
    verbose : int, default=0
        Progress, as in :class:`joblib.Parallel`.

    Returns
    -------
    AuditResult

    Raises
    ------
    ValueError
        If a parameter is out of its range, or releases cannot be summarised.

    Notes
    -----
    .. rubric:: Privacy

    The result depends on both data sets: use made-up ones. An estimator with
    an accountant pays for every run.

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


def _count(event, first, second, delta, confidence):
    """Audit by a given event, which all runs count."""
    counts = tuple(sum(bool(event(output)) for output in side) for side in (first, second))
    return AuditResult(
        epsilon=_bound_of_event(*counts, len(first), delta, confidence),
        confidence=confidence,
        delta=delta,
        n_runs=len(first),
        counts=counts,
        event=getattr(event, "__name__", type(event).__name__),
    )


def _learn_and_count(first, second, summary, seed, delta, confidence):
    """Audit by an event that is learnt from half of the runs; the others count it."""
    half = len(first) // 2
    n_runs = len(first) - half
    bound = partial(lower_bound, n_runs=half, delta=delta, confidence=confidence)
    learnt = learn_event(first[:half], second[:half], summary, bound, seed)
    scores = (learnt.scores(first[half:]), learnt.scores(second[half:]))
    counts = tuple(int(learnt.occurs(side).sum()) for side in scores)
    likelier, other = counts if learnt.likelier_on_first else counts[::-1]
    return AuditResult(
        epsilon=float(max(lower_bound(likelier, other, n_runs, delta, confidence), 0.0)),
        confidence=confidence,
        delta=delta,
        n_runs=n_runs,
        counts=counts,
        event=learnt.name,
        scores=scores,
        threshold=learnt.threshold,
    )


def lower_bound(likelier, other, n_runs, delta, confidence):
    """Lower confidence bound of epsilon, -inf where nothing can be said.

    From the counts of one event among ``n_runs`` on the side where it is likelier, and on the
    other: numbers or arrays.
    """
    tail = (1 - confidence) / 2
    return _log_ratio(_low(likelier, n_runs, tail), _high(other, n_runs, tail), delta)


def _bound_of_event(first, second, n, delta, confidence):
    """Best bound from an event and its complement, in both directions, at once."""
    tail = (1 - confidence) / 4
    low, high = zip(*((_low(k, n, tail), _high(k, n, tail)) for k in (first, second)), strict=True)
    pairs = [
        (low[0], high[1]),
        (low[1], high[0]),
        (1 - high[0], 1 - low[1]),
        (1 - high[1], 1 - low[0]),
    ]
    return float(max(0.0, *(_log_ratio(p, q, delta) for p, q in pairs)))


def _low(k, n, tail):
    k = np.asarray(k)
    return np.where(k > 0, beta.ppf(tail, np.maximum(k, 1), n - k + 1), 0.0)


def _high(k, n, tail):
    k = np.asarray(k)
    return np.where(k < n, beta.ppf(1 - tail, k + 1, np.maximum(n - k, 1)), 1.0)


def _log_ratio(p, q, delta):
    excess = p - delta
    return np.where(excess > 0, np.log(np.maximum(excess, 1e-300)) - np.log(q), -np.inf)


def _run(mechanism, data, seeds, n_jobs, verbose):
    """Run in chunks, so that workers are not drowned in small tasks."""
    draw = _way_to_run(mechanism)
    if draw is _call_without_seed:
        # It may hold a generator, and copies of that in workers would repeat each other.
        n_jobs = 1
    workers = effective_n_jobs(n_jobs) if n_jobs is not None else cpu_count()
    size = max(1, len(seeds) // (8 * workers))
    chunks = Parallel(n_jobs=n_jobs, verbose=verbose)(
        delayed(_run_chunk)(draw, mechanism, data, seeds[start : start + size])
        for start in range(0, len(seeds), size)
    )
    return [output for chunk in chunks for output in chunk]


def _run_chunk(draw, mechanism, data, seeds):
    return [draw(mechanism, data, seed) for seed in seeds]


def _fit_clone(estimator, data, seed):
    return release(seeded_clone(estimator, seed), data)


def _call_with_seed(function, data, seed):
    return function(data, random_state=seed)


def _call_without_seed(function, data, seed):
    return function(data)


def _way_to_run(mechanism):
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
