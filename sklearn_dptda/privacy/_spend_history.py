"""The payments of a ledger as a table."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from html import escape
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Spend:
    """One payment of a ledger, without data. :class:`SpendHistory` explains the fields."""

    number: int
    time: str
    epsilon: float
    delta: float
    rho: float | None
    adjacency: str
    unit: str
    what: str
    estimator: str
    parameters: dict[str, str]


COLUMNS = tuple(column.name for column in fields(Spend))


class SpendHistory(Sequence[Spend]):
    """History of all payments of a ledger at one moment, as a sequence and as a table.

    An integer index gives one payment, and a column name gives an array.
    :meth:`PrivacyAccountant.spends` returns a history.

    Parameters
    ----------
    spends : sequence of Spend
        The payments.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns:

        - ``number``: position in the ledger, from 1.
        - ``time``: day of the payment in ISO 8601, UTC. The time of day is not
          recorded, because the time between two payments would reveal how long the
          release between them took.
        - ``epsilon`` and ``delta``: cost under basic composition.
        - ``rho``: cost under zCDP, or None if the mechanism does not state one.
        - ``adjacency``: neighbours to which the cost refers.
        - ``unit``: the privacy unit.
        - ``what``: description of the release.
        - ``estimator``: class that made the release.
        - ``parameters``: its public parameters by name, as text.

    Examples
    --------
    >>> from sklearn_dptda.privacy import PrivacyAccountant
    >>> accountant = PrivacyAccountant(epsilon=1.0)
    >>> accountant.spend(0.25, what="a histogram")
    >>> history = accountant.spends()
    >>> history["epsilon"]
    array([0.25])
    >>> history[0].what
    'a histogram'
    """

    columns = COLUMNS

    def __init__(self, spends: Iterable[Spend]) -> None:
        self._spends = tuple(spends)

    def __len__(self) -> int:
        return len(self._spends)

    @overload
    def __getitem__(self, key: str) -> NDArray[Any]: ...

    @overload
    def __getitem__(self, key: SupportsIndex) -> Spend: ...

    @overload
    def __getitem__(self, key: slice) -> "SpendHistory": ...

    def __getitem__(
        self, key: str | SupportsIndex | slice
    ) -> "NDArray[Any] | Spend | SpendHistory":
        """Return a column for a name, a payment for an integer, and a history for a slice."""
        if isinstance(key, str):
            if key not in self.columns:
                raise KeyError(key)
            return np.array([getattr(spend, key) for spend in self._spends])
        if isinstance(key, slice):
            return SpendHistory(self._spends[key])
        return self._spends[key]

    def to_pandas(self) -> "DataFrame":
        """Return the history as a :class:`pandas.DataFrame`.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        import pandas

        return pandas.DataFrame(map(astuple, self._spends), columns=list(self.columns))

    def _cells(self) -> Iterator[list[str]]:
        for spend in self._spends:
            yield [
                f"{value:g}" if isinstance(value, float) else "" if value is None else str(value)
                for value in astuple(spend)
            ]

    def __repr__(self) -> str:
        rows = [self.columns, *self._cells()]
        shown = [[cell[:32] for cell in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in shown
        )

    def _repr_html_(self) -> str:
        def line(cells: Iterable[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        body = "".join(line(cells, "td") for cells in self._cells())
        return f"<table>{line(self.columns, 'th')}{body}</table>"
