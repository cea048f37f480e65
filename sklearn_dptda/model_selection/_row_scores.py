"""Scores that are sums over rows of bounded numbers, for the private choice of a fitted model.

Proof: doc/theory/private_search.md, "Scores".
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from sklearn_dptda._typing import Adjacency, FloatArray, IntArray
from sklearn_dptda.privacy import NoiseSource
from sklearn_dptda.privacy._calibration import zcdp_epsilon
from sklearn_dptda.privacy._fixed_point import ROUND_UP
from sklearn_dptda.privacy._guarantee import Charge
from sklearn_dptda.privacy._noise import inverse
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.privacy._risk import LossLaw
from sklearn_dptda.rows._assignments import row_products
from sklearn_dptda.rows._rows import about
from sklearn_dptda.utils._bounds import check_bounds
from sklearn_dptda.utils._people import codes_of

# Share of a uniform law in a likelihood, which bounds it from below.
_BACKGROUND = 0.05
# Logarithms of the largest density that counts, in relation to the uniform one: for all columns,
# and for each column.
_TOP, _TOP_OF_COLUMN = 3.0, math.log(2)
# Squared distances count up to this number for each column, in half widths of the box.
_FAR = 0.25
# Half the range of the score of one row in integers.
_HALF = 2**20


class RowScore(NamedTuple):
    """A score of each row by a fitted model, and its range, to which it is clipped."""

    function: Callable[[Any, Any, Any], FloatArray]
    low: float
    high: float

    def total(self, model: Any, X: Any, y: Any, ids: Any = None) -> int:
        """Return the sum over rows of integers in [-_HALF, _HALF]; people count as one row."""
        steps = self._steps_apart(model, X, y)
        if ids is not None:
            _, codes = codes_of(ids)
            n_rows = np.bincount(codes)
            # The mean of a person's integers, rounded towards zero, has the same range.
            steps = np.fix(np.bincount(codes, steps) / n_rows).astype(np.int64)
        return int(steps.sum())

    def steps(self, model: Any, X: Any, y: Any) -> IntArray:
        """Return the score of each row as an integer in [-_HALF, _HALF]."""
        scores = np.asarray(self.function(model, X, y), dtype=float)
        if scores.shape != (len(X),):
            raise ValueError("scoring must return one number for each row.")
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        shares = np.clip(np.nan_to_num((scores - middle) / half, nan=-1.0), -1.0, 1.0)
        return np.rint(shares * _HALF).astype(np.int64)

    def _steps_apart(self, model: Any, X: Any, y: Any) -> IntArray:
        """Return the scores of rows, the lowest one for each row that raises an error.

        The error of one row must not decide about the scores of others. The rows are halved until
        those that raise errors are alone.
        """
        try:
            return self.steps(model, X, y)
        except Exception:
            if len(X) == 1:
                return np.array([-_HALF])
        halves = np.array_split(np.arange(len(X)), 2)
        parts = [[None if p is None else _safe_indexing(p, h) for p in (X, y)] for h in halves]
        return np.concatenate([self._steps_apart(model, *part) for part in parts])

    def in_units(self, total: int) -> float:
        """Return a total in the units of the score, in which the middle of the range is 0."""
        return total / _HALF * (self.high - self.low) / 2


class ScoreNoise(NamedTuple):
    """Noise of a score: an epsilon of Laplace noise, or the mu of Gaussian noise."""

    law: Literal["pure", "gaussian"]
    loss: float
    adjacency: Adjacency
    # Delta at which Gaussian noise is counted.
    delta: float = 0.0

    @property
    def charge(self) -> Charge:
        """Epsilon, delta and zCDP of the score."""
        if self.law == "pure":
            return Charge(self.loss)
        rho = self.loss_law.rho
        return Charge(zcdp_epsilon(rho, self.delta), self.delta, rho)

    @property
    def loss_law(self) -> LossLaw:
        """Worst law of the loss."""
        return LossLaw((self.loss,)) if self.law == "pure" else LossLaw(mu=self.loss)

    @property
    def sensitivity(self) -> int:
        """Largest change of a total by one record."""
        return _HALF if self.adjacency == "add-remove" else 2 * _HALF

    def add(self, total: int, source: NoiseSource) -> int:
        """Return the total with noise."""
        scale = 0.0 if math.isinf(self.loss) else self.sensitivity * ROUND_UP / self.loss
        draw = source.discrete_laplace if self.law == "pure" else source.discrete_gaussian
        return source.cross(
            total,
            lambda exact: exact + int(draw(scale, 1)[0]),
            metric="l1",
            sensitivity=self.sensitivity,
            rate=inverse(scale),
            law=self.law,
        )


def row_score(scoring: Any, estimator: Any, n_features: int | None) -> RowScore:
    """Return a score by its name, or from a function and its range."""
    if isinstance(scoring, str) and scoring in _NAMED:
        return _NAMED[scoring](estimator, n_features)
    if isinstance(scoring, tuple | list) and len(scoring) == 3 and callable(scoring[0]):
        function, low, high = scoring
        if math.isfinite(low) and math.isfinite(high) and low < high:
            return RowScore(function, float(low), float(high))
    raise ValueError(
        f"scoring={quoted(scoring)} is not private. Pass one of {sorted(_NAMED)}, or a tuple of a "
        "function of (estimator, X, y), which returns a score for each row, and of the lowest and "
        "the highest score, to which scores are clipped."
    )


def _hits(model: Any, X: Any, y: Any) -> FloatArray:
    return np.asarray(model.predict(X) == np.asarray(y), dtype=float)


def _accuracy(estimator: Any, n_features: int | None) -> RowScore:
    _require(estimator, "predict", "accuracy")
    return RowScore(_hits, 0.0, 1.0)


def _log_likelihood(estimator: Any, n_features: int | None) -> RowScore:
    _require(estimator, "score_samples", "log_likelihood")
    low, high = _box(estimator, n_features, "log_likelihood")
    log_uniform = -float(np.log(high - low).sum())
    likelihood = partial(_likelihood_on_uniform, log_uniform)
    top = _TOP + _TOP_OF_COLUMN * len(low)
    bottom = math.log(_BACKGROUND)
    return RowScore(likelihood, log_uniform + bottom, log_uniform + top)


def _likelihood_on_uniform(log_uniform: float, model: Any, X: Any, y: Any) -> FloatArray:
    own = math.log1p(-_BACKGROUND) + model.score_samples(X)
    log_likelihood: FloatArray = np.logaddexp(own, math.log(_BACKGROUND) + log_uniform)
    return log_likelihood


def _inertia(estimator: Any, n_features: int | None) -> RowScore:
    # Estimators of rows import this package.
    from sklearn_dptda.cluster._private_kmeans import PrivateKMeans

    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    if not isinstance(last, PrivateKMeans):
        raise ValueError(f"scoring='inertia' needs private k-means; got {type(last).__name__}.")
    low, high = _box(estimator, n_features, "inertia")
    # Scales of a run would be units of this run alone, and noise in them would decide.
    return RowScore(partial(_minus_squared_distance, low=low, high=high), -_FAR * len(low), 0.0)


def _minus_squared_distance(
    model: Any, X: Any, y: Any, low: FloatArray, high: FloatArray
) -> FloatArray:
    last = model
    if isinstance(model, Pipeline):
        X, last = model[:-1].transform(X) if len(model) > 1 else X, model[-1]
    middle, half = (low + high) / 2, (high - low) / 2
    rows = (np.clip(last._rows_as_given(X), low, high) - middle) / half
    # By rows, because the rounding of a product of matrices depends on other rows. Distances are
    # those in the known values.
    offsets = (about(rows, centre) for centre in (last.cluster_centers_ - middle) / half)
    minus: FloatArray = -np.min([row_products(each, each) for each in offsets], axis=0)
    return minus


def _require(estimator: Any, method: str, name: str) -> None:
    if not hasattr(estimator, method):
        raise ValueError(
            f"scoring={name!r} needs an estimator with {method}; {type(estimator).__name__} has "
            "none."
        )


def _box(estimator: Any, n_features: int | None, name: str) -> tuple[FloatArray, FloatArray]:
    """Return the public box of the last step."""
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    bounds = getattr(last, "bounds", None)
    if bounds is None or hasattr(bounds, "get_params"):
        raise ValueError(
            f"scoring={name!r} needs bounds in numbers, the same for all candidates: set bounds of "
            f"{type(last).__name__}."
        )
    is_first = not isinstance(estimator, Pipeline) or len(estimator.steps) == 1
    n_features = n_features if is_first else None
    if n_features is None and np.ndim(bounds[0]) == 0 == np.ndim(bounds[1]):
        raise ValueError(
            f"scoring={name!r} needs the number of columns: give {type(last).__name__} bounds for "
            "each column."
        )
    return check_bounds(bounds, n_features or max(map(np.size, bounds)))


_NAMED = {"accuracy": _accuracy, "inertia": _inertia, "log_likelihood": _log_likelihood}
