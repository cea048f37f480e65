"""The payments of a ledger as a table."""

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from pandas import DataFrame


class Spend(NamedTuple):
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
    key: str
    size: int | None

    def columns(self) -> dict[str, Any]:
        """Return the columns of a history by name, without the key and the size."""
        return dict(zip(COLUMNS, self[:-2], strict=True))


COLUMNS = Spend._fields[:-2]


class SpendHistory(tuple[Spend, ...]):
    """History of all payments of a ledger at one moment, as a tuple and as a table.

    An integer index gives one payment, a slice gives a history, and a column name
    gives an array. :meth:`PrivacyAccountant.spends` returns a history.

    Parameters
    ----------
    spends : iterable of Spend
        The payments. Beside the columns, each has a ``key``, for
        :meth:`PrivacyAccountant.release`, and the ``size`` of its stored release in
        bytes, or None if it is not stored.

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

    def __getitem__(self, key: Any) -> Any:
        """Return a column for a name, a payment for an integer, and a history for a slice."""
        if isinstance(key, str):
            if key not in self.columns:
                raise KeyError(key)
            return np.array([getattr(spend, key) for spend in self])
        found = super().__getitem__(key)
        return SpendHistory(found) if isinstance(key, slice) else found

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

        return pandas.DataFrame([spend.columns() for spend in self], columns=list(self.columns))

    def _rows(self) -> list[list[str]]:
        """Return the texts of the header and of each payment."""
        return [[*self.columns], *(list(map(_text, spend[:-2])) for spend in self)]

    def __repr__(self) -> str:
        rows = [[cell[:32] for cell in row] for row in self._rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)

    def _repr_html_(self) -> str:
        def line(cells: Iterable[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        header, *rows = self._rows()
        return f"<table>{line(header, 'th')}{''.join(line(row, 'td') for row in rows)}</table>"


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return "" if value is None else str(value)
