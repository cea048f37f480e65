"""Input of which NumPy would drop a part without a word."""

import numpy as np
from numpy.typing import ArrayLike


def refuse_lossy(value: ArrayLike, name: str = "X", *, complex_too: bool = True) -> None:
    """Refuse masks, dates, and imaginary parts.

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
    parts = [value, *value] if isinstance(value, list | tuple) else [value]
    if any(np.ma.is_masked(part) for part in parts):
        raise ValueError(
            f"{name} has masked entries, which would count as if they were none: drop or fill them."
        )
    dtypes = getattr(value, "dtypes", [getattr(part, "dtype", None) for part in parts])
    if any(getattr(dtype, "kind", None) in ("m", "M") for dtype in np.atleast_1d(dtypes)):
        raise ValueError(f"{name} holds dates or times: turn them into numbers of a unit first.")
    try:
        lossy = complex_too and np.iscomplexobj(value)
    except ValueError:
        # Ragged, which is refused by whoever needs an array.
        return
    if lossy:
        raise ValueError(f"{name} must be real, not complex.")
