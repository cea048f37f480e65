"""Data frames of all libraries, opened with narwhals, and public properties of their columns."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError


def open_frame(X: Any, name: str = "X") -> Any:
    """Open a data frame with narwhals, which reads all libraries alike; None for other objects.

    Equal names of columns are refused, because a parameter could mean any of these columns.
    """
    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    except DuplicateError:
        names = X.column_names if hasattr(X, "column_names") else X.columns
        label, count = Counter(names).most_common(1)[0]
        raise ValueError(
            f"{name} has {count} columns with the name {label!r}. Rename or drop all but one of "
            "them."
        ) from None
    return frame if isinstance(frame, nw.DataFrame) else None


def column_names(X: Any) -> list[Any]:
    """Names of the columns of a data frame; an empty list for other tables."""
    frame = open_frame(X)
    return [] if frame is None else frame.columns


def without_column(X: Any, name: str | None) -> Any:
    """Return a table without the column of a given name, if there is one."""
    frame = None if name is None else open_frame(X)
    return X if frame is None or name not in frame.columns else frame.drop(name).to_native()


def beside(frame: Any, columns: Mapping[str, np.ndarray]) -> Any:
    """Return an open frame with further columns as its last ones."""
    library = frame.implementation
    return frame.with_columns(
        *(nw.new_series(name, values, backend=library) for name, values in columns.items())
    )


def frame_like(X: Any, n_rows: int, numbers: Callable[[int], np.ndarray]) -> Any:
    """Return a data frame of made-up rows with the columns of another one.

    Columns of numbers have ``numbers(n_rows)``, and columns of whole numbers count the rows, so
    that they can be ids. None: there are other columns.
    """
    frame = open_frame(X)
    columns = {}
    for column in frame.iter_columns():
        kind = kind_of(column)
        if kind not in "if":
            return None
        # The shortest integers count up to 127.
        values = numbers(n_rows) if kind == "f" else np.arange(n_rows) % 128
        columns[column.name] = nw.new_series(
            column.name, values, dtype=column.dtype, backend=frame.implementation
        )
    return nw.from_dict(columns).to_native()


def kind_of(column: Any) -> str:
    """Return NumPy's letter for the type of an array or of a column of an open frame.

    It is ``"O"`` for text, categories and objects without a type.
    """
    dtype: Any = getattr(column, "dtype", None)
    # Neither NumPy nor narwhals knows the periods of pandas, which have a frequency.
    if hasattr(_native_type(column), "freq"):
        return "M"
    if not hasattr(dtype, "is_numeric"):
        return getattr(dtype, "kind", "O")
    if dtype.is_numeric():
        return "i" if dtype.is_integer() else "f"
    # Sparse numbers of pandas are numbers, but its intervals are objects.
    is_object = getattr(_native_type(column), "kind", "") == "O"
    others = {"Boolean": "b", "Unknown": "O" if is_object else "V"}
    return "M" if dtype.is_temporal() else others.get(str(dtype), "O")


def is_missing(value: Any) -> bool:
    """Whether an object of Python or of a library stands for a missing value."""
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return value is None or str(value) in ("NaT", "<NA>")


def _native_type(column: Any) -> Any:
    native = nw.to_native(column, pass_through=True)
    # PyArrow has another name for it.
    return native.type if hasattr(native, "type") else getattr(native, "dtype", None)


def text_columns(X: Any) -> list[Any]:
    """Names of the columns of a data frame that contain text or categories."""
    frame = open_frame(X)
    columns = () if frame is None else frame.iter_columns()
    return [column.name for column in columns if kind_of(column) == "O"]


@dataclass(frozen=True)
class Columns:
    """Container, names and types of a table, which are public properties.

    ``library`` is narwhals' name of the library of a data frame, and None for arrays, whose column
    names are numbers. A type is kept only for columns
    of integers, booleans or public lists of values, because other types depend on the rows.
    """

    library: Any
    names: Sequence[Any]
    dtypes: Sequence[Any]
    # Public lists of the values of categorical columns, by column number.
    choices: Mapping[int, list[Any]] = field(default_factory=dict)
    # Numbers of the columns in which values may be missing.
    gaps: frozenset[int] = frozenset()

    @classmethod
    def of(cls, X: Any, n_features: int, choices: Mapping[int, list] | None = None) -> Self:
        """Return the columns of a table, with public lists of values for some column numbers."""
        frame, choices = open_frame(X), choices or {}
        if frame is None:
            library, names, columns = None, list(range(n_features)), [X] * n_features
        else:
            library, names = str(frame.implementation), frame.columns
            columns = list(frame.iter_columns())
        dtypes = [_public_type(column, choices.get(place)) for place, column in enumerate(columns)]
        return cls(library, names, dtypes, choices)

    def shared(self, other: Self) -> Self:
        """Return the columns of both tables together.

        Different types become None, except for integers in arrays, which get a common type.
        """
        dtypes = list(map(self._common_type, self.dtypes, other.dtypes))
        return replace(self, dtypes=dtypes)

    def _common_type(self, mine: Any, theirs: Any) -> Any:
        if mine == theirs:
            return mine
        if self.library is not None or mine is None or theirs is None:
            return None
        both = np.promote_types(mine, theirs)
        return both if both.kind in "iu" else None

    def is_integer(self, place: int) -> bool:
        """Whether a numeric column holds integers."""
        return self._whole_type(place).kind in "iu"

    def may_miss(self, missing: bool | Sequence[Any]) -> Self:
        """Columns in which values may be missing: those that are named, or all.

        A type that cannot represent a missing value is forgotten, because it may only tell that
        none is missing.
        """
        if isinstance(missing, bool | np.bool_):
            gaps = frozenset(range(len(self.names)) if missing else ())
        elif unknown := sum(name not in self.names for name in missing):
            # The names are not quoted, since ids may have been passed in their place.
            raise ValueError(
                f"missing names {unknown} column{'s' * (unknown > 1)} that X does not have."
            )
        else:
            gaps = frozenset(self.names.index(name) for name in missing)
        dtypes = [
            None if place in gaps and _is_of_numpy(dtype) else dtype
            for place, dtype in enumerate(self.dtypes)
        ]
        return replace(self, dtypes=dtypes, gaps=gaps)

    def _whole_type(self, place: int) -> np.dtype[Any]:
        """NumPy's type of a column of integers or booleans; that of floats for other numbers."""
        dtype = self.dtypes[place]
        if dtype is None:
            return np.dtype(float)
        name = str(getattr(dtype, "numpy_dtype", dtype)).lower()
        return np.dtype("bool" if name == "boolean" else name)

    def limits(self, place: int, low: float, high: float) -> tuple[float, float]:
        """Return the limits of a column within bounds, restricted to the values of its type."""
        dtype = self._whole_type(place)
        if dtype.kind == "b":
            return 0.0, 1.0
        if dtype.kind == "f":
            return low, high
        info = np.iinfo(dtype)
        # The largest integer of 64 bits rounds up to a float that is too large by one.
        most = info.max if info.bits < 64 else np.nextafter(float(info.max), 0.0)
        return max(float(np.ceil(low)), float(info.min)), min(float(np.floor(high)), float(most))

    def numbers(
        self,
        place: int,
        values: np.ndarray,
        low: float,
        high: float,
        missing: np.ndarray | None = None,
    ) -> Any:
        """Convert numbers to a column, some of which are missing.

        For integer types, they are rounded within the bounds.
        """
        if missing is None:
            missing = np.zeros(len(values), dtype=bool)
        if self.dtypes[place] is None and self.library is None:
            return np.where(missing, np.nan, values)
        if self.dtypes[place] is None:
            if not missing.any():
                return values
            pairs = zip(values.tolist(), missing.tolist(), strict=True)
            return self.values(place, [None if gap else value for value, gap in pairs])
        whole = np.rint(np.clip(values, *self.limits(place, low, high)))
        whole = whole.astype(self._whole_type(place))
        if not missing.any():
            return self.values(place, whole)
        pairs = zip(whole.tolist(), missing.tolist(), strict=True)
        return self.values(place, [None if gap else value for value, gap in pairs])

    def values(self, place: int, values: list[Any] | np.ndarray) -> Any:
        """Convert values to a column of its type."""
        dtype = self.dtypes[place]
        if self.library is None:
            return np.array(values, dtype=object if dtype is None else dtype)
        series = nw.new_series("", values, backend=self.library).to_native()
        if dtype is not None:
            series = series.astype(dtype) if hasattr(series, "astype") else series.cast(dtype)
        return nw.from_native(series, series_only=True)

    def table(self, columns: Sequence[Any]) -> Any:
        """Make a table of the same kind from columns."""
        if self.library is None:
            return np.column_stack(columns)
        native = (nw.to_native(column, pass_through=True) for column in columns)
        named = dict(zip(self.names, native, strict=True))
        return nw.from_dict(named, backend=self.library).to_native()

    def of_numbers(
        self,
        X: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        missing: np.ndarray | None = None,
    ) -> Any:
        """Make a table of the same kind from an array of floats, some of which are missing."""
        gaps = [None] * len(self.names) if missing is None else list(missing.T)
        return self.table(
            [self.numbers(j, X[:, j], low[j], high[j], gaps[j]) for j in range(len(self.names))]
        )


def _is_of_numpy(dtype: Any) -> bool:
    """Whether a type is one of NumPy's, in which only floats and objects can be missing."""
    return isinstance(dtype, np.dtype) and dtype.kind in "iubUS"


def _public_type(column: Any, choices: list[Any] | None) -> Any:
    """Type of a column, without what it holds of the records; None if it depends on them."""
    dtype = _native_type(column)
    if choices is None:
        return dtype if kind_of(column) in "iub" else None
    if hasattr(dtype, "value_type"):  # a dictionary of PyArrow, to which nothing can be cast
        return dtype.value_type
    if getattr(dtype, "ordered", None) is not None:  # pandas
        return type(dtype)(choices, dtype.ordered)
    if type(dtype).__name__ == "Enum":  # polars
        return type(dtype)(choices)
    if isinstance(dtype, np.dtype) and dtype.kind in "US":
        # The length is removed from the type, because it is that of the longest record.
        return np.dtype(dtype.kind)
    if str(dtype) == "object" and choices == [False, True]:
        # Truth values have this type as soon as one of them is missing.
        return np.dtype(bool)
    return dtype
