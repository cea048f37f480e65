"""A scale that is known exactly, or between certified bounds."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ScaleBounds:
    """Certified lower and upper bounds of a number.

    Attributes
    ----------
    lower, upper : float
        The number is at least the one, and at most the other.

    Examples
    --------
    >>> from sklearn_dptda.metric_privacy import entropic_scale
    >>> entropic_scale([[0, 1], [1, 0]], alpha=0.5)
    ScaleBounds(lower=1.0, upper=1.0)
    >>> float(entropic_scale([[0, 1], [1, 0]], alpha=0.5))
    1.0
    """

    lower: float
    upper: float

    def __post_init__(self):
        if not 0 <= self.lower <= self.upper:
            raise ValueError(f"bounds must be ordered; got {self.lower} and {self.upper}.")

    @property
    def exact(self) -> bool:
        """Whether the bounds agree."""
        return self.lower == self.upper

    def __float__(self) -> float:
        if not self.exact:
            raise ValueError(
                f"the number is only known to lie between {self.lower:g} and {self.upper:g}."
            )
        return self.lower

    def __str__(self):
        return f"{self.lower:.4g}" if self.exact else f"{self.lower:.4g} to {self.upper:.4g}"


def exactly(value):
    """Bounds of a number that is known."""
    return ScaleBounds(float(value), float(value))
