"""All simplices on public landmarks, the places at which they are measured, and functions on them.

Proof: doc/theory/landmarks.md, "Values of simplices".
"""

import math
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from numbers import Integral

import numpy as np
from scipy.spatial.distance import pdist, squareform
from scipy.special import comb
from sklearn.utils import check_scalar

from sklearn_dptda._typing import BoolArray, FloatArray, IntArray
from sklearn_dptda.cluster._private_landmarks import distances_to
from sklearn_dptda.filtration._filtration import Filtration
from sklearn_dptda.utils._clouds import check_cloud

# Simplices beyond which a complex is refused.
_MOST_SIMPLICES = 2**22

# Barycentric coordinates of the places within simplices of each dimension, faces left out: eighths
# of an edge; the centre and three more points of a triangle; the centre of a tetrahedron.
_THIRD, _TWO_THIRDS, _SIXTH = 1 / 3, 2 / 3, 1 / 6
_PLACES = (
    np.ones((1, 1)),
    np.array([(1 - i / 8, i / 8) for i in range(1, 8)]),
    np.array(
        [
            (_THIRD, _THIRD, _THIRD),
            (_TWO_THIRDS, _SIXTH, _SIXTH),
            (_SIXTH, _TWO_THIRDS, _SIXTH),
            (_SIXTH, _SIXTH, _TWO_THIRDS),
        ]
    ),
    np.full((1, 4), 0.25),
)


@dataclass(frozen=True, eq=False)
class LandmarkComplex:
    """All simplices on public landmarks, up to a dimension.

    There is no reach that decides which landmarks are neighbours: a long simplex is there, and as
    high as the function is beneath it.

    Parameters
    ----------
    landmarks : ndarray of shape (n_landmarks, d)
        Public points, in the units of the data.
    dimension : int, default=2
        That of the largest simplices, from 1 to 3: diagrams of dimensions
        below it are those of the function.
    reach : float, default=None
        What is farther than this from all landmarks is not covered by them.
        None: twice the largest gap, which is the distance of a landmark from
        the nearest other one.

    Raises
    ------
    ValueError
        If there are fewer than two landmarks, or more than four million
        simplices.

    Attributes
    ----------
    simplices : list of ndarray of shape (n, q + 1)
        Numbers of the landmarks of each simplex, increasing, by dimension
        ``q``.
    """

    landmarks: FloatArray = field(repr=False)
    dimension: int = 2
    reach: float | None = None
    simplices: list[IntArray] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        landmarks = check_cloud(self.landmarks, "landmarks").copy()
        landmarks.setflags(write=False)
        object.__setattr__(self, "landmarks", landmarks)
        if not np.isfinite(np.ptp(landmarks, axis=0) ** 2).all():
            raise ValueError("landmarks are too far apart: squares of their distances overflow.")
        if self.reach is None:
            gaps = np.sort(squareform(pdist(landmarks)), axis=1)[:, 1]
            object.__setattr__(self, "reach", 2 * float(gaps.max()))
        check_scalar(self.dimension, "dimension", Integral, min_val=1, max_val=3)
        n = sum(math.comb(len(landmarks), q + 1) for q in range(self.dimension + 1))
        if n > _MOST_SIMPLICES:
            raise ValueError(
                f"{len(landmarks)} landmarks have {n} simplices up to dimension {self.dimension}, "
                f"more than {_MOST_SIMPLICES}: take fewer landmarks, or a lower dimension."
            )
        object.__setattr__(
            self,
            "simplices",
            [_subsets(len(self.landmarks), q + 1) for q in range(self.dimension + 1)],
        )

    @cached_property
    def diameter(self) -> float:
        """Largest distance of two landmarks."""
        return float(pdist(self.landmarks).max())

    def beyond(self, points: FloatArray) -> BoolArray:
        """Which points no landmark covers."""
        return distances_to(self.landmarks, points) > float(self.reach or 0.0)

    @property
    def n_simplices(self) -> int:
        """Number of simplices of all dimensions."""
        return sum(map(len, self.simplices))

    def places(self) -> FloatArray:
        """Places of shape (n_places, d) at which a function is measured, by dimension."""
        return np.concatenate(
            [
                np.einsum("pk,skd->psd", weights, self.landmarks[simplices]).reshape(
                    -1, self.landmarks.shape[1]
                )
                for weights, simplices in zip(_PLACES, self.simplices, strict=False)
            ]
        )

    def highest(self, at_places: FloatArray) -> FloatArray:
        """Largest value of a function within each closed simplex, by dimension."""
        parts: list[FloatArray] = []
        start = 0
        for q, simplices in enumerate(self.simplices):
            n_places = len(_PLACES[q]) * len(simplices)
            own = at_places[start : start + n_places].reshape(-1, len(simplices)).max(axis=0)
            start += n_places
            for left_out in range(q + 1 if q else 0):
                facets = np.delete(simplices, left_out, axis=1)
                own = np.maximum(own, parts[-1][_ranks(facets)])
            parts.append(own)
        return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class ComplexFiltration(Filtration):
    """A function of one point cloud on the simplices of public landmarks, with its public bounds.

    The values and ``n_clipped`` are exact statistics of the cloud: they are
    *not* private. Everything else is public. Other fields are those of
    :class:`GridFiltration`.

    Parameters
    ----------
    values : ndarray of shape (n_simplices,)
        Filtration value of every simplex, by dimension, none below those of
        its faces; at most ``upper``.
    complex : LandmarkComplex
        The simplices. By keyword.

    Raises
    ------
    ValueError
        If values and simplices disagree, or a number is not finite or not
        positive where it has to be.
    """

    complex: LandmarkComplex = field(repr=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.values.shape != (self.complex.n_simplices,):
            raise ValueError("values must have one entry per simplex.")


def _subsets(n: int, size: int) -> IntArray:
    """Increasing subsets of ``range(n)``, in the order of :func:`_ranks`."""
    subsets = np.array(list(combinations(range(n), size)), dtype=np.int32)
    return subsets[np.lexsort(subsets.T)]


def _ranks(subsets: IntArray) -> IntArray:
    """Places of increasing subsets among all of their size, the last number first."""
    sizes = np.arange(1, subsets.shape[1] + 1)
    return comb(subsets, sizes).astype(np.int64).sum(axis=1)
