"""From rows with labels to a linear rule, by noisy moments.

The stages are: a choice of a part of the box; a mean and a ball about it; a covariance about that
mean, shrunk by its noise; and counts and sums of the classes, in coordinates that the covariance
whitens. Each stage depends on public numbers and on what earlier stages released.

Labels are a last column of their rows, so that both are summed, and protected, together. A label is
coded by its place in a public list of classes.

Proof: doc/theory/private_discriminants.md, "A row and its label".
Proof: doc/theory/private_discriminants.md, "What is released".
Proof: doc/theory/private_discriminants.md, "What is read off".
"""

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from sklearn_dptda._typing import FloatArray, IntArray
from sklearn_dptda.rows._assignments import (
    Norm,
    clip_norm,
    in_norm,
    row_products,
)
from sklearn_dptda.rows._localisation import distances_beyond, mean_in_ball
from sklearn_dptda.rows._moments import (
    FitBudget,
    Moments,
    MomentWeights,
    entry_noise,
    release_outer_products,
)
from sklearn_dptda.rows._rows import Rows, Tally, about
from sklearn_dptda.utils._frames import beside, open_frame
from sklearn_dptda.utils._tasks import DaskParts, delayed_parts, of_dask
from sklearn_dptda.utils._validation import refuse_lossy, without_quotes

_LABELS_OF_SEVERAL_KINDS = "y must contain labels of one type, and none may be missing."
# Name of the column that contains the labels in data frames.
LABEL = "label of the row"


def read_labels(y: Any) -> NDArray[Any]:
    """Read labels as one column, in which the labels of a list keep their own types."""
    if isinstance(y, list | tuple):
        labels = np.empty(len(y), dtype=object)
        for place, label in enumerate(y):
            labels[place] = label
        return labels
    refuse_lossy(y, "y", complex_too=False)
    with without_quotes("y"):
        return np.asarray(column_or_1d(y, warn=True))


def classes_of(labels: NDArray[Any]) -> NDArray[Any]:
    """The different labels of a column. None may be missing, and real numbers are refused."""
    if labels.dtype == object:
        # A list of numbers or of strings.
        with without_quotes("y"):
            refuse_lossy(labels.tolist(), "y", complex_too=False)
            labels = column_or_1d(labels.tolist())
    # A warning, such as one on the number of labels, would reveal it without noise.
    with without_quotes("y"), warnings.catch_warnings(action="ignore"):
        try:
            check_classification_targets(labels)
        except TypeError:
            raise ValueError(_LABELS_OF_SEVERAL_KINDS) from None
    return np.unique(labels)


def codes_of(labels: NDArray[Any], classes: NDArray[Any]) -> FloatArray:
    """Numbers of the classes of labels. Others are refused, one by one, and not quoted."""
    numbers = {label: number for number, label in enumerate(classes.tolist())}
    found, places = labels, np.arange(len(labels))
    if labels.dtype != object:
        # Objects of several types may have no order.
        found, places = np.unique(labels, return_inverse=True)
    codes = [_number_of(label, numbers) for label in found.tolist()]
    if -1 in codes:
        raise ValueError(
            "y has a label that is not in classes, the public list of labels, or one is missing. "
            "The list must contain all possible labels."
        )
    coded: FloatArray = np.array(codes, dtype=float)[places.ravel()]
    return coded


def _number_of(label: Any, numbers: dict[Any, int]) -> int:
    try:
        return numbers.get(label, -1)
    except Exception:
        # A label without a hash, such as a list, is no class. Its own error could quote it.
        return -1


def _with_labels(X: Any, y: Any, classes: NDArray[Any]) -> Any:
    """A table whose last column is the class of each row."""
    refuse_lossy(X, complex_too=False)
    if issparse(X) or len(getattr(X, "shape", (0, 0))) != 2:
        raise ValueError("a chunk must be a dense table with two dimensions.")
    codes = codes_of(read_labels(y), classes)
    if len(codes) != len(X):
        raise ValueError("a chunk must have as many labels as rows.")
    frame = open_frame(X)
    if frame is None:
        return np.column_stack([X, codes])
    if LABEL in frame.columns:
        raise ValueError(
            f"a chunk has a column {LABEL!r}, a name that is reserved for labels. Rename it."
        )
    return beside(frame, {LABEL: codes}).to_native()


def labelled_tables(chunks: Any, classes: NDArray[Any]) -> Iterator[Any]:
    """Tables of chunks of rows and their labels, one after the other."""
    for pair in chunks() if callable(chunks) else chunks:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError("chunks must be pairs of rows and their labels: (X, y).")
        X, y = pair
        yield _with_labels(X, y, classes)


@dataclass(frozen=True)
class LabelledParts:
    """Rows and labels on other machines, which are joined where they are counted."""

    parts: DaskParts
    classes: NDArray[Any]

    @classmethod
    def of(cls, X: Any, y: Any, classes: NDArray[Any]) -> Self:
        """Join parts of Dask collections. Collections that do not match are refused."""
        from dask import delayed

        if not (of_dask(X) and of_dask(y)):
            raise ValueError(
                "X and y must both be Dask arrays, Dask data frames or lists of delayed parts, "
                "divided into the same parts."
            )
        tables, labels = delayed_parts(X), delayed_parts(y)
        if len(tables) != len(labels):
            raise ValueError("X and y must be in the same number of parts.")
        pairs = [delayed(pair) for pair in zip(tables, labels, strict=True)]
        return cls(DaskParts(pairs), classes)

    def map_reduce(self, function: Callable[[Any], Tally]) -> Any:
        """Apply a function to each part where it is, and add up the results."""
        return self.parts.map_reduce(partial(_of_pair, function, self.classes))


def _of_pair(function: Callable[[Any], Tally], classes: NDArray[Any], pair: Any) -> Tally:
    # A refusal is returned as a value, so that no machine logs it beside the rows.

    def joined(pair: tuple[Any, Any]) -> Tally:
        X, y = pair
        return function(_with_labels(X, y, classes))

    return Tally.of(joined, pair)


@dataclass(frozen=True)
class _Shares:
    """Shares of the budget that is left. Pure losses add up without squares."""

    part_of_cube: float
    mean: float
    distances: float
    covariance: float


@dataclass(frozen=True)
class _DiscriminantRules:
    """Public constants, which were measured in doc/measured/classifiers.md.

    Accuracy only: each share is taken off the budget, and rows are clipped to any radius.
    """

    shares: dict[str, _Shares] = field(
        default_factory=lambda: {
            "l2": _Shares(part_of_cube=0.05, mean=0.08, distances=0.08, covariance=0.3),
            "l1": _Shares(part_of_cube=0.05, mean=0.15, distances=0.1, covariance=0.35),
        }
    )
    # Number of sizes of parts of the box, at its lower ends, its middle and its upper ends. Each
    # size is smaller than the last one by the square root of two. Then the number of rows, as a
    # share of all rows, that each step to a smaller size is worth.
    n_sizes: int = 9
    worth: float = 0.05
    most_stages: int = 3
    # Share of the rows that may lie outside the ball of the next stage.
    outside: float = 0.05
    # Number of rows that may be clipped for the covariance: in units of its noise, which is that of
    # a number of rows, and at most as a share of all rows.
    drawn_in_per_noise: float = 8.0
    drawn_in: float = 0.5
    # Number of cells of the histogram for each doubling of the distance.
    per_octave: int = 4
    # Ridge, in units of the largest eigenvalue of noise alone.
    ridge: float = 0.5
    # Radius to which whitened rows are clipped, in their root mean square radii: the least and the
    # largest one. Between them, the radius makes the noise of a class mean a share of its sampling
    # error: the number of classes over the third number, from one half to one. A small ball moves
    # the means of many classes, which are at many distances, towards each other.
    radius: float = 0.6
    largest_radius: float = 1.5
    many_classes: float = 20.0
    # Least variance within classes if the noise is as large as the variance itself. Whitened rows
    # have the variance one.
    within: float = 0.5
    # Least share of the differences between classes that is kept.
    kept: float = 0.2
    # Weights of classes are equal unless they differ by this many times what noise explains.
    clear: float = 4.0


_RULES = _DiscriminantRules()
# Proof: doc/theory/private_discriminants.md, "What is released".
# Share of the choice of a part of the box that goes to the choice itself. The rest goes to the
# count before it.
_OF_CHOICE = 0.8
# Largest share of the squared budget that the choice takes.
CHOICE_SHARE = _RULES.shares["l2"].part_of_cube * _OF_CHOICE
# Accuracy only: noise has the scale of any weights, and the rest is applied to what was released.
# Squared weights of count and sum, for the mean of all rows and for the classes.
_MEAN, _CLASSES = MomentWeights(0.1, 0.9), MomentWeights(0.05, 0.95)
# Share of the largest eigenvalue by which the others are raised, and least divisor.
_LEAST_RIDGE, _TINY = 1e-6, 1e-300


@dataclass(frozen=True)
class Discriminants:
    """Means and weights of the classes, the covariance within them, and a linear rule.

    The class with the largest ``coef @ x + intercept`` is predicted.
    """

    means: FloatArray
    priors: FloatArray
    covariance: FloatArray
    coef: FloatArray
    intercept: FloatArray

    def moved(self, origin: FloatArray, unit: FloatArray) -> "Discriminants":
        """The same rule for ``origin + unit * x``."""
        coef = self.coef / unit
        return Discriminants(
            means=origin + unit * self.means,
            priors=self.priors,
            covariance=np.outer(unit, unit) * self.covariance,
            coef=coef,
            intercept=self.intercept - coef @ origin,
        )


def learn(rows: Rows, n_classes: int, budget: FitBudget, *, narrow: bool) -> Discriminants:
    """Spend the budget on rows of ``[-1, 1]**d``, or first on a part of it if ``narrow``.

    The last column is the class.
    """
    d = rows.n_features - 1
    shares = _RULES.shares[budget.norm]
    features = rows.selected(list(range(d)))
    middle, half = 0.0, 1.0
    if narrow and math.isfinite(budget.total):
        middle, half, budget = _part_of_cube(features, budget, shares.part_of_cube)
        rows = rows.map(partial(_rescaled, middle=middle, half=half, d=d))
        features = rows.selected(list(range(d)))
    ball, budget = _ball(features, budget, shares)
    whitening, budget = _whitening(features, ball, budget, shares.covariance)
    radius = in_norm(_radius(whitening, ball.n, n_classes, budget), d, budget.norm)
    moments = _class_moments(rows, whitening, radius, n_classes, budget)
    if features.known is not None:
        # In the columns themselves, the sums are without the missing values.
        sums = moments.sums @ whitening.colour / features.known
        moments = replace(moments, sums=sums @ whitening.white)
    found = _read_off(moments, whitening, radius)
    return found.moved(np.full(d, middle), np.full(d, half))


def _rescaled(part: FloatArray, middle: float, half: float, d: int) -> FloatArray:
    inside = np.clip((part[:, :d] - middle) / half, -1.0, 1.0)
    return np.column_stack([inside, part[:, d]])


def _part_of_cube(rows: Rows, budget: FitBudget, share: float) -> tuple[float, float, FitBudget]:
    """Middle and half width of a part of the cube that contains nearly all rows."""
    sizes = [math.sqrt(0.5) ** i for i in range(_RULES.n_sizes)]
    # The ends of the cube are ends of its parts to the last bit, since many features are often
    # zero.
    parts = [ends for h in sizes for ends in ((-1.0, 2 * h - 1), (-h, h), (1 - 2 * h, 1.0))]
    counts, _ = budget.noisy_counts(np.array([rows.n_rows]), 1, share * (1 - _OF_CHOICE))
    worth = max(round(_RULES.worth * float(counts[0])), 1)
    outside = rows.sum(partial(_outside, parts=parts))
    costs = [int(n) - worth * (i // 3) for i, n in enumerate(outside)]
    low, high = parts[budget.choose(costs, 1, share * _OF_CHOICE)]
    return (low + high) / 2, (high - low) / 2, budget.rest(share)


def _outside(part: FloatArray, parts: list[tuple[float, float]]) -> IntArray:
    """Number of rows beyond each part of the cube."""
    # These leave out missing values.
    least, most = np.fmin.reduce(part, axis=1), np.fmax.reduce(part, axis=1)
    return np.array([np.sum((least < low) | (most > high)) for low, high in parts])


@dataclass(frozen=True)
class _Ball:
    """Centre of the rows, their number, and the distance that a given number of them exceed."""

    centre: FloatArray
    n: float
    beyond: Callable[[float], float]


def _ball(rows: Rows, budget: FitBudget, shares: _Shares) -> tuple[_Ball, FitBudget]:
    d = rows.n_features
    centre, radius = np.zeros(d), d**0.5
    for _ in range(_RULES.most_stages):
        last = radius
        centre, _, n, budget = mean_in_ball(rows, centre, last, budget, _MEAN, shares.mean)
        beyond, budget = distances_beyond(
            rows, centre, 2 * last, budget, shares.distances, _RULES.per_octave
        )
        # Without noise, no row is clipped.
        outside = _RULES.outside if math.isfinite(budget.total) else 0.0
        radius = beyond(outside * n)
        if radius > last / 2:
            break
    return _Ball(centre, n, beyond), budget


@dataclass(frozen=True)
class _Whitening:
    """Coordinates ``(x - centre) @ white`` of about unit variance, with the inverse ``colour``.

    ``size`` is the root mean square radius of whitened rows, ``largest`` bounds all of their radii,
    and ``least`` is the least variance within classes.
    """

    centre: FloatArray
    white: FloatArray
    colour: FloatArray
    size: float
    largest: float
    least: float


def _whitening(
    rows: Rows, ball: _Ball, budget: FitBudget, share: float
) -> tuple[_Whitening, FitBudget]:
    """Release a covariance about the centre of the ball, and shrink it by its noise.

    It is shrunk towards a multiple of the unit matrix, by the share of the difference that noise
    explains. If this is all, nothing is whitened.
    """
    d = rows.n_features
    off, on = map(budget.deviation, entry_noise(budget, share))
    frobenius = math.sqrt(d * (d - 1) * off**2 + d * on**2)
    drawn = min(_RULES.drawn_in * ball.n, _RULES.drawn_in_per_noise * frobenius)
    radius = in_norm(ball.beyond(drawn), d, budget.norm)
    drawn_in = partial(_drawn_in, centre=ball.centre, radius=radius, norm=budget.norm)
    unit = radius**2 / max(ball.n, 1.0)
    covariance = unit * release_outer_products(rows, drawn_in, budget, share)
    if rows.known is not None:
        # The products of missing values, whose residuals are zero, are not in the sum.
        products = np.outer(rows.known, rows.known)
        np.fill_diagonal(products, rows.known)
        covariance /= products
    edge, squared_noise = 2 * unit * off * math.sqrt(d), (unit * frobenius) ** 2
    variance = max(float(np.trace(covariance)) / d, edge / d, _TINY)
    deviation = covariance - variance * np.eye(d)
    kept = 1 - min(squared_noise / max(float((deviation**2).sum()), _TINY), 1.0)
    values, vectors = np.linalg.eigh(variance * np.eye(d) + kept * deviation)
    ridge = max(_RULES.ridge * kept * edge - max(values[0], 0.0), 0.0)
    values = np.maximum(values, 0.0)
    scale = 1 / np.sqrt(values + ridge + _LEAST_RIDGE * values[-1] + _TINY)
    whitening = _Whitening(
        centre=ball.centre,
        white=vectors * scale,
        colour=(vectors / scale).T,
        size=max(float((values * scale**2).sum()), 1.0) ** 0.5,
        largest=2 * d**0.5 * float(scale.max()),
        least=_RULES.within * min(edge / variance, 1.0) + _LEAST_RIDGE,
    )
    return whitening, budget.rest(share)


def _drawn_in(part: FloatArray, centre: FloatArray, radius: float, norm: Norm) -> FloatArray:
    return clip_norm(about(part, centre), radius, norm)


def _radius(whitening: _Whitening, n_rows: float, n_classes: int, budget: FitBudget) -> float:
    """Radius to which whitened rows are clipped. Without noise, it contains all rows."""
    d = len(whitening.centre)
    noise = budget.deviation(budget.scale_of_counts(1, 1.0)) * in_norm(1.0, d, budget.norm)
    if noise == 0:
        return whitening.largest
    least, most = _RULES.radius * whitening.size, _RULES.largest_radius * whitening.size
    share = min(max(n_classes / _RULES.many_classes, 0.5), 1.0)
    return min(max(share * math.sqrt(max(n_rows / n_classes, 1.0)) / noise, least), most)


def _class_moments(
    rows: Rows, whitening: _Whitening, radius: float, n_classes: int, budget: FitBudget
) -> Moments:
    """Counts and sums of the classes, of whitened rows that are clipped to a ball."""
    d = rows.n_features - 1
    in_classes = partial(
        _in_classes,
        n_classes=n_classes,
        centre=whitening.centre,
        white=whitening.white,
        radius=radius,
        norm=budget.norm,
    )
    return budget.release(rows, in_classes, n_classes, weights=_CLASSES, share=1.0, width=d)


def _in_classes(
    part: FloatArray,
    n_classes: int,
    centre: FloatArray,
    white: FloatArray,
    radius: float,
    norm: Norm,
) -> tuple[IntArray, FloatArray]:
    """Classes of rows, and their whitened residuals."""
    classes = np.rint((part[:, -1] + 1) / 2 * (n_classes - 1)).astype(np.intp)
    # Not a matrix product, whose rounding of a row may depend on the other rows.
    moved = about(part[:, :-1], centre)
    columns = [row_products(moved, column) for column in white.T]
    return classes, clip_norm(np.column_stack(columns), radius, norm)


def _read_off(moments: Moments, whitening: _Whitening, radius: float) -> Discriminants:
    """Means, weights and a linear rule from noisy moments. This is post-processing."""
    k, d = moments.sums.shape
    counts = moments.floored_counts
    means = radius * moments.sums / counts[:, None]
    noise = (radius * moments.sd_sum / counts) ** 2
    # Weights are shrunk towards equal ones by what noise explains. Means are shrunk towards their
    # mean in the same way, by one factor, so that directions are kept.
    priors = counts / counts.sum()
    away = priors - 1 / k
    explained = k * (moments.sd_count / counts.sum()) ** 2
    priors = (
        1 / k + max(1 - _RULES.clear * explained / max(float((away**2).sum()), _TINY), 0.0) * away
    )
    middle = priors @ means
    away = means - middle
    explained = d * float(priors @ noise)
    spread = max(float(priors @ (away**2).sum(axis=1)), _TINY)
    means = middle + max(1 - explained / spread, _RULES.kept) * away
    between = (means - middle).T @ ((means - middle) * priors[:, None])
    values, vectors = np.linalg.eigh(np.eye(d) - between)
    values = np.maximum(values, whitening.least)
    coef = means @ (vectors / values) @ vectors.T
    intercept = np.log(priors) - 0.5 * (coef * means).sum(axis=1)
    within = (vectors * values) @ vectors.T
    coef = coef @ whitening.white.T
    return Discriminants(
        means=whitening.centre + means @ whitening.colour,
        priors=priors,
        covariance=whitening.colour.T @ within @ whitening.colour,
        coef=coef,
        intercept=intercept - coef @ whitening.centre,
    )
