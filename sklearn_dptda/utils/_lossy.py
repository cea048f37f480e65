"""Input of which NumPy would drop a part, or fetch all of it, without a word."""

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda.utils._columns import frame_library, kind_of
from sklearn_dptda.utils._dask_parts import refuse_dask
from sklearn_dptda.utils._reading import HOLDS_DATES


def refuse_lossy(value: ArrayLike, name: str = "X", *, complex_too: bool = True) -> None:
    """Refuse masks, dates, imaginary parts, and what lies on other machines.

    Parameters
    ----------
    value : array-like
        Of a list the items are looked at.
    name : str
    complex_too : bool, default=True
        False where imaginary parts are refused elsewhere.

    Raises
    ------
    ValueError
        Without any value.
    """
    refuse_dask(value, name)
    parts = [value, *value] if isinstance(value, list | tuple) else [value]
    if any(np.ma.is_masked(part) for part in parts):
        raise ValueError(
            f"{name} has masked entries, which would count as if they were none: drop or fill them."
        )
    if frame_library(value) is None:
        dates = [name for part in parts if kind_of(getattr(part, "dtype", None)) in "mM"]
    else:
        columns = zip(value.columns, value.dtypes, strict=True)  # type: ignore[union-attr]
        dates = [f"column {label!r}" for label, dtype in columns if kind_of(dtype) in "mM"]
    if dates:
        raise ValueError(f"{dates[0]} {HOLDS_DATES}")
    try:
        lossy = complex_too and np.iscomplexobj(value)
    except Exception:
        # Ragged, or not to be read, which is refused by whoever needs an array.
        return
    if lossy:
        raise ValueError(f"{name} must be real, not complex.")
