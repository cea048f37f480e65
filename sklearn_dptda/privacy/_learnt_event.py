"""Learning the event on which two data sets differ most."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import cross_val_predict
from threadpoolctl import threadpool_limits

from sklearn_dptda.privacy._release import as_arrays

# Thresholds tried per score, and rows kept of an array of varying size.
_N_THRESHOLDS = 200
_N_ROWS = 3
_MOST_COORDINATES = 50
_LARGEST = 1e300


@dataclass(frozen=True)
class LearntEvent:
    """A score of releases and a threshold that it reaches, if ``above``, or stays below.

    ``summarise`` turns a list of releases into rows, ``score`` rows into numbers. The name is
    for humans; ``likelier_on_first`` says which side the event speaks for.
    """

    name: str
    score: Callable
    summarise: Callable
    threshold: float
    above: bool
    likelier_on_first: bool

    def scores(self, outputs):
        """Score releases."""
        return self.score(self.summarise(outputs))

    def occurs(self, scores):
        """Whether the event occurs, per score."""
        return scores >= self.threshold if self.above else scores < self.threshold


def learn_event(first, second, summary, bound, seed):
    """Find the event with the best bound among thresholds of several scores.

    The scores are each of the first 50 varying coordinates of the summary (a function from one
    release to a vector, or None), and the probability that a gradient boosting of the given seed
    gives to the first data set. ``bound`` takes arrays of counts, on the likelier side and on
    the other.
    """
    summarise = _summariser(first + second) if summary is None else _row_by_row(summary)
    summarise = _finite(summarise, first + second)
    features = np.concatenate([summarise(first), summarise(second)])
    on_first = np.arange(len(features)) < len(first)
    learner = HistGradientBoostingClassifier(max_iter=50, max_leaf_nodes=15, random_state=seed)
    # One thread: small fits lose more by waiting for each other's cores than they gain.
    with threadpool_limits(1, user_api="openmp"):
        # Scores of runs that the learner has not seen, or thresholds would be too bold.
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


def _best_threshold(values, on_first, bound):
    """Best bound over thresholds, tails and directions."""
    distinct = np.unique(values)
    picked = np.unique(np.linspace(0, len(distinct) - 1, _N_THRESHOLDS).astype(int))
    # Order statistics as well, for tails and for heavy atoms.
    ranks = np.unique(np.linspace(0, len(values) - 1, _N_THRESHOLDS).astype(int))
    thresholds = np.union1d(distinct[picked], np.sort(values)[ranks])
    # A step further, so that an atom can be the whole tail.
    thresholds = np.union1d(thresholds, np.nextafter(thresholds, np.inf))
    best = (-np.inf, float(thresholds[0]), True, True)
    for above in (True, False):
        occurs = values[:, None] >= thresholds if above else values[:, None] < thresholds
        counts = occurs[on_first].sum(axis=0), occurs[~on_first].sum(axis=0)
        for likelier_on_first in (True, False):
            bounds = bound(*(counts if likelier_on_first else counts[::-1]))
            i = int(np.argmax(bounds))
            # As good up to here: the middle is far from the runs of both sides, and serves where
            # new scores differ a little.
            j = i + int(np.argmin(np.append(bounds[i:] == bounds[i], False))) - 1
            if bounds[i] > best[0]:
                threshold = thresholds[i] + (thresholds[j] - thresholds[i]) / 2
                best = (float(bounds[i]), float(threshold), above, likelier_on_first)
    return best


def _finite(summarise, examples):
    """Summaries in finite numbers: what is missing becomes a column, what never varies goes."""

    def columns(outputs):
        rows = summarise(outputs)
        numbers = np.nan_to_num(rows, nan=0.0, posinf=_LARGEST, neginf=-_LARGEST)
        return np.hstack([np.clip(numbers, -_LARGEST, _LARGEST), np.isnan(rows)])

    known = columns(examples)
    varies = (known != known[:1]).any(axis=0)
    varies[0] |= not varies.any()
    return lambda outputs: columns(outputs)[:, varies]


def _row_by_row(summary):
    return lambda outputs: np.array([np.ravel(summary(o)) for o in outputs], dtype=float)


def _summariser(examples):
    """From releases of one kind to rows of one length: which arrays vary in shape, examples say."""
    shapes = [[part.shape for part in as_arrays(output)] for output in examples]
    if len({len(row) for row in shapes}) != 1:
        raise ValueError(
            "releases have varying numbers of arrays: pass summary, a function from a "
            "release to a vector."
        )
    columns = zip(*shapes, strict=True)
    fixed = [column[0] if len(set(column)) == 1 else None for column in columns]
    return lambda outputs: np.array([_row(as_arrays(output), fixed) for output in outputs])


def _row(parts, shapes):
    """Arrays of a release in one vector, by their shapes, None where these vary."""
    # A release unlike all that were learnt from has nothing to compare.
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


def _describe(part):
    """Fixed number of descriptors of an array with a varying number of rows."""
    part = np.atleast_1d(part)
    rows = part.reshape(len(part), int(np.prod(part.shape[1:])))
    head = [float(len(rows)), float(rows.sum())]
    if rows.shape[1] == 2:
        # Points of a diagram: the most persistent first.
        rows = rows[np.argsort(rows[:, 0] - rows[:, 1], kind="stable")]
        width = 2
    else:
        rows = np.sort(rows.ravel())[::-1].reshape(-1, 1)
        width = 1
    shown = np.full((_N_ROWS, 2), np.nan)
    shown[: min(len(rows), _N_ROWS), :width] = rows[:_N_ROWS]
    extremes = [rows.min(), rows.max(), rows.mean()] if rows.size else [np.nan] * 3
    return np.concatenate([head, extremes, shown.ravel()])
