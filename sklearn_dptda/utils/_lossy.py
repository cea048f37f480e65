"""Input of which NumPy would drop a part without a word."""

import numpy as np
from numpy.typing import ArrayLike


def refuse_lossy(value: ArrayLike, name: str = "X") -> None:
    """Refuse arrays with a mask or an imaginary part.

    Parameters
    ----------
    value : array-like
    name : str

    Raises
    ------
    ValueError
        Without any value.
    """
    if np.ma.is_masked(value):
        raise ValueError(
            f"{name} has masked entries, which would count as if they were none: drop or fill them."
        )
    if np.iscomplexobj(value):
        raise ValueError(f"{name} must be real, not complex.")
