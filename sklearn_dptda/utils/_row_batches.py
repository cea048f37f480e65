"""Rows of a table, a batch at a time, as often as an algorithm reads them."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from sklearn_dptda.utils._columns import Columns

BATCH = 1 << 15
# Numbers that one batch is worth, whatever is computed for each row: they fit a cache.
_NUMBERS = 1 << 18


@dataclass(frozen=True)
class Rows:
    """Batches of rows: a list in memory, or a function that reads them anew at every pass.

    ``columns`` are those of the tables that the rows came in, where that matters.
    """

    parts: list | Callable
    n_features: int
    columns: Columns | None = None

    @classmethod
    def of_array(cls, X, columns=None):
        """Rows of one array."""
        return cls(list(slices(X, BATCH)), X.shape[1], columns)

    def __iter__(self):
        return iter(self.parts() if callable(self.parts) else self.parts)

    def map(self, function):
        """Rows after a function that treats each row by itself, and keeps their number."""
        if callable(self.parts):
            return replace(self, parts=lambda: (function(part) for part in self.parts()))
        return replace(self, parts=[function(part) for part in self.parts])

    def selected(self, chosen):
        """Some of the columns, by their indices."""
        return replace(self.map(lambda X: X[:, chosen]), n_features=len(chosen))


def small_batches(rows, width):
    """Batches for computations that need ``width`` numbers for each row."""
    size = max(1, min(BATCH, _NUMBERS // max(width, 1)))
    return (piece for part in rows for piece in slices(part, size))


def slices(X, size):
    """Pieces of at most ``size`` rows."""
    return (X[start : start + size] for start in range(0, len(X), size))
