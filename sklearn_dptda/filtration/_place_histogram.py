"""Histograms of the distances of points from public evaluation points, which can be added.

Proof: doc/theory/landmarks.md, "Points in parts".
"""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.filtration._complex import LandmarkComplex
from sklearn_dptda.filtration._nearest_sums import FixedPointPower, whole_squares
from sklearn_dptda.utils._validation import check_cloud

# Bits to which distances, relative to the cap, are rounded; rows that are processed at a time;
# places whose counts are processed at a time; and MiB of the distances in memory.
_BITS, _ROWS, _PLACES, _MEMORY = 8, 1 << 12, 1 << 12, 64.0


class PlaceHistogram:
    """Numbers of points at each distance from every evaluation point ("place") of a complex.

    Histograms of parts of a cloud add up to the histogram of the whole cloud. Each distance
    is rounded, by itself, to a multiple of 1/256 of the cap. A histogram is an exact
    statistic: *not* private. Create it with :meth:`DTMFiltration.make_histogram`.

    Parameters
    ----------
    complex : LandmarkComplex
        Public simplices.
    cap : float
        Public distance above which all points count alike, in the units of the data.
    p : float, default=1
        Order of the distance-to-measure, at least 1.

    Attributes
    ----------
    counts : ndarray of int64, of shape (n_places, 257)
        Number of points at each rounded distance from every place.
    n_points : int
        Number of points that have been counted.
    n_clipped : int
        Number of points that no landmark covers.
    """

    def __init__(self, complex: LandmarkComplex, cap: float, p: float = 1) -> None:
        self.complex, self.cap, self.p = complex, float(cap), float(p)
        self.counts = np.zeros((complex.n_places, 2**_BITS + 1), dtype=np.int64)
        self.n_points = self.n_clipped = 0

    # Distances of single points do not say who is near.
    of_people = False

    @property
    def n_features(self) -> int:
        """Dimension of the points."""
        return self.complex.landmarks.shape[1]

    def update(self, X: ArrayLike) -> Self:
        """Count one more chunk of points.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The points, all finite. An empty chunk is allowed.

        Returns
        -------
        self
        """
        X = check_cloud(X, "X", self.n_features, min_points=0)
        places, n_levels = self.complex.places(), self.counts.shape[1]
        power = self.power(1)
        for start in range(0, len(X), _ROWS):
            points = X[start : start + _ROWS]
            for part, squared in whole_squares(points, places, self.cap, 2, _MEMORY):
                cells = power.integers(squared)
                n = len(cells)
                cells += n_levels * np.arange(n)[:, None]
                counts = np.bincount(cells.ravel(), minlength=n * n_levels)
                self.counts[part] += counts.reshape(n, n_levels)
            self.n_clipped += int(self.complex.beyond(points).sum())
        self.n_points += len(X)
        return self

    def power(self, k: int, shares: tuple[float, ...] = ()) -> FixedPointPower:
        """Return the integers to which distances are rounded."""
        return FixedPointPower(self.cap, self.p, k, shares, bits=_BITS)

    @property
    def rounding(self) -> float:
        """Largest error of values, because distances and smaller caps are rounded."""
        return self.cap * 2.0 ** (-_BITS / self.p)

    def sums(self, power: FixedPointPower) -> list[NDArray[np.int64]]:
        """Sum the integers of the ``power.k`` nearest points at all places, for each cap."""
        levels = np.arange(self.counts.shape[1])
        capped = np.minimum(levels[:, None], power.tops)
        found = np.empty((len(self.counts), len(power.tops)), dtype=np.int64)
        for start in range(0, len(self.counts), _PLACES):
            counts = self.counts[start : start + _PLACES]
            nearer = np.cumsum(counts, axis=1) - counts
            found[start : start + _PLACES] = np.clip(power.k - nearer, 0, counts) @ capped
        return list(found.T)

    def matches(self, complex: LandmarkComplex, cap: float, p: float) -> bool:
        """Return whether this histogram belongs to the places of a complex, the cap and ``p``."""
        own = self.complex
        same = (own.dimension, own.reach, self.cap, self.p) == (
            complex.dimension,
            complex.reach,
            cap,
            p,
        )
        return same and np.array_equal(own.landmarks, complex.landmarks)

    def __add__(self, other: object) -> "PlaceHistogram":
        if not isinstance(other, PlaceHistogram):
            return NotImplemented
        if not self.matches(other.complex, other.cap, other.p):
            raise ValueError(
                "Only histograms of the same landmarks, max_distance and p can be added."
            )
        merged = PlaceHistogram(self.complex, self.cap, self.p)
        np.add(self.counts, other.counts, out=merged.counts)
        merged.n_points = self.n_points + other.n_points
        merged.n_clipped = self.n_clipped + other.n_clipped
        return merged

    def __radd__(self, other: object) -> "PlaceHistogram":
        return self if other == 0 else NotImplemented

    def __repr__(self) -> str:
        return f"PlaceHistogram(n_places={len(self.counts)}, n_points={self.n_points})"


def counted_at_places(
    complex: LandmarkComplex,
    cap: float,
    p: float,
    part: FloatArray,
    histogram: PlaceHistogram | None = None,
) -> PlaceHistogram:
    """Count one part of a cloud, in a new histogram or in a given one."""
    return (histogram or PlaceHistogram(complex, cap, p)).update(part)


def mebibytes_of_counts(complex: LandmarkComplex) -> float:
    """Return the size of the counts of one histogram, in MiB."""
    return complex.n_places * (2**_BITS + 1) * 8 / 2**20
