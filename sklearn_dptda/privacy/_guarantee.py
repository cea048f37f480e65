"""What a release promises, and which data sets are neighbours.

Proof: doc/theory/noise_and_calibration.md, "Adjacency".
"""

import math
from dataclasses import dataclass, field
from html import escape

from sklearn_dptda._typing import Adjacency
from sklearn_dptda.privacy._composition_rules import Charge
from sklearn_dptda.privacy._parameters import quoted

ADJACENCIES = ("replace-one", "add-remove")


def check_adjacency(adjacency: Adjacency) -> Adjacency:
    """Return a known adjacency, or raise ValueError."""
    if adjacency not in ADJACENCIES:
        raise ValueError(f"adjacency must be one of {ADJACENCIES}; got {quoted(adjacency)}.")
    return adjacency


@dataclass(frozen=True)
class PrivacyGuarantee:
    """The promise that one release makes.

    Parameters
    ----------
    epsilon : float
        Privacy loss; ``inf`` means that nothing is promised.
    delta : float
        Failure probability of the bound; 0 for a pure guarantee.
    adjacency : {"replace-one", "add-remove"}
        Which data sets count as neighbours. That there is at least one record
        is public: an empty data set is refused.
    unit : str
        What one record is.
    mechanism : str
        The mechanism that draws the release.
    released : str
        What leaves the data curator's hands.
    seeded : bool
        True when the randomness came from a known seed. Whoever knows the
        seed can undo the noise: such a release is for tests and study only.
    exact : bool, default=True
        False when the law of the release only approximates the one that the
        proof is about (a Markov chain that is stopped, say).
    public_parameters : bool, default=True
        False when a parameter that should be public, such as the bounding
        box, was computed from the data.
    rho : float, default=None
        Zero-concentrated privacy loss (zCDP) of the release where the
        mechanism has a better one than ``epsilon**2 / 2``; what an accountant
        with ``composition="zcdp"`` counts.
    release_id : str, default=None
        Random name of the release, where several steps may share it, as
        filtrations share a private box. Equal promises of two releases differ
        in it, and compare equal.

    Raises
    ------
    ValueError
        If epsilon, delta, rho or the adjacency is out of its range.

    Examples
    --------
    >>> from sklearn_dptda.privacy import PrivacyGuarantee
    >>> print(PrivacyGuarantee(1.0, 0.0, "replace-one", "a point of a cloud",
    ...       "exponential mechanism", "one persistence diagram per cloud", False))
    (epsilon=1, delta=0)-differential privacy for replacing a point of a cloud: ...
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    unit: str
    mechanism: str
    released: str
    seeded: bool
    exact: bool = True
    public_parameters: bool = True
    rho: float | None = None
    release_id: str | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        Charge(self.epsilon, self.delta, self.rho)
        check_adjacency(self.adjacency)

    def __add__(self, other: object) -> "PrivacyGuarantee":
        """Promise of two releases of the same records together, by basic composition.

        Raises
        ------
        ValueError
            If the two speak of other neighbours or of other records.
        """
        if not isinstance(other, PrivacyGuarantee):
            return NotImplemented
        if (self.adjacency, self.unit) != (other.adjacency, other.unit):
            raise ValueError(
                f"guarantees for {self.adjacency} of {self.unit} and for {other.adjacency} of "
                f"{other.unit} do not add."
            )
        return PrivacyGuarantee(
            epsilon=self.epsilon + other.epsilon,
            delta=self.delta + other.delta,
            adjacency=self.adjacency,
            unit=self.unit,
            mechanism=f"{self.mechanism}, after the {other.mechanism}",
            released=f"{self.released}; {other.released}",
            seeded=self.seeded or other.seeded,
            exact=self.exact and other.exact,
            public_parameters=self.public_parameters and other.public_parameters,
            rho=self.charge.concentrated + other.charge.concentrated,
        )

    @property
    def charge(self) -> Charge:
        """What an accountant adds up."""
        return Charge(self.epsilon, self.delta, self.rho)

    @property
    def holds(self) -> bool:
        """Whether the release is fit to be handed on as private."""
        return (
            math.isfinite(self.epsilon)
            and self.exact
            and self.public_parameters
            and not self.seeded
        )

    def __str__(self) -> str:
        if math.isinf(self.epsilon):
            return f"No privacy (epsilon=inf): {self.released}, exact."
        verb = {"replace-one": "replacing", "add-remove": "adding or removing"}[self.adjacency]
        # An empty table is refused, which tells it from one with a single record.
        known = " (that there is at least one is public)" * (self.adjacency == "add-remove")
        text = (
            f"(epsilon={self.epsilon:g}, delta={self.delta:g})-differential privacy for {verb} "
            f"{self.unit}{known}: {self.released}, drawn by the {self.mechanism}."
        )
        if not self.exact:
            text += (
                " The law of this release only approximates the one that the bound is proved for:"
                " the guarantee is nominal."
            )
        if not self.public_parameters:
            text += (
                " A parameter that should be public, such as the bounds or the scale of an earlier "
                "step, was computed from the data, which the bound does not cover."
            )
        if self.seeded:
            text += (
                " The draw came from a known seed: reproducible, for tests and study only, and"
                " not private towards anyone who knows the seed."
            )
        return text

    def _repr_html_(self) -> str:
        colour = "#2a7f62" if self.holds else "#b3541e"
        return (
            f'<div style="border-left:4px solid {colour};padding:.4em .8em;max-width:44em">'
            f"{escape(str(self))}</div>"
        )
