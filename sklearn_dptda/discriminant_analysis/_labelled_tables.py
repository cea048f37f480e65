"""Labels as a last column of their rows, so that both are summed, and protected, together.

A label is coded by its place in a public list of classes.

Proof: doc/theory/private_discriminants.md, "A row and its label".
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.rows._rows import Tally
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
