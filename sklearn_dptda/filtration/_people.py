"""Point clouds of people: each person has the same mass, spread evenly over their points.

Proof: doc/theory/people.md, "Clouds of people".
Proof: doc/theory/people.md, "Integer weights".
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda._typing import BoolArray, Bounds, FloatArray, IntArray
from sklearn_dptda.filtration._lattice import LatticeHistogram
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.utils._clouds import check_cloud
from sklearn_dptda.utils._frames import frame_library
from sklearn_dptda.utils._people import check_ids, codes_of, split_people

# The weight of a person is 2**22: its product with a distance of up to 40 bits fits into 64 bits.
WEIGHT_BITS = 22
# Largest number of points of one person whose product with the weight fits into 62 bits.
_MOST_POINTS = 1 << (62 - WEIGHT_BITS)


class PeopleCloud(NamedTuple):
    """Points of shape (n, d), and the id of the person to whom each point belongs."""

    points: FloatArray
    ids: list[Any]

    @classmethod
    def read(cls, cloud: Any, groups: str | bool, name: str, n_features: int | None = None) -> Self:
        """Read one cloud: a data frame with a column of ids, or a list of one array per person."""
        if groups is True:
            points, ids = _one_array_each(cloud, name, n_features)
        else:
            table, ids = split_people(cloud, str(groups), None, "point")
            points = check_cloud(table, name, n_features, min_points=0)
        if len(set(ids)) < 2:
            raise ValueError(
                f"{name} has points of fewer than 2 people, by groups={quoted(groups)}. At least 2 "
                "people are needed."
            )
        return cls(points, ids)

    @property
    def n_people(self) -> int:
        """Number of people, which is public under replace-one adjacency."""
        return len(set(self.ids))


def _one_array_each(cloud: Any, name: str, n_features: int | None) -> tuple[FloatArray, list[Any]]:
    if not isinstance(cloud, list | tuple) or len(cloud) == 0:
        raise ValueError(f"With groups=True, {name} must be a list of arrays, one for each person.")
    each: list[FloatArray] = []
    for person in cloud:
        points = check_cloud(person, f"an array of {name}", n_features, min_points=0)
        if len(points) == 0:
            raise ValueError(f"{name} has a person without points. Leave such people out.")
        n_features = points.shape[1]
        each.append(points)
    return np.concatenate(each), np.repeat(np.arange(len(each)), list(map(len, each))).tolist()


class _Pairs(NamedTuple):
    """Numbers of points of people near nodes, with the key ``person * n_nodes + node``, sorted."""

    n_nodes: int
    people: list[Any]
    keys: IntArray
    counts: IntArray
    # Whether a person has points outside the bounds.
    clipped: BoolArray

    @property
    def codes(self) -> IntArray:
        """Index of the person of each pair."""
        return self.keys // self.n_nodes

    @property
    def nodes(self) -> IntArray:
        """Index of the node of each pair."""
        return self.keys % self.n_nodes


class PeopleHistogram:
    """Numbers of points of each person that are nearest to each node of a public lattice.

    Points outside the bounds are clipped to them. The histograms of parts of a point cloud
    add up to that of the whole cloud, even if the points of one person are spread over
    several parts. A histogram is an exact statistic: *not* private.

    Parameters
    ----------
    bounds : tuple (low, high)
        Public bounding box: two numbers, or two arrays with one number per coordinate, in
        the units of the data.
    shape : tuple of int
        Number of nodes along each axis, at least 2, including the ends of the box. The
        length of the tuple is the dimension of the points.

    Attributes
    ----------
    n_people : int
        Number of people who have been counted.
    n_features : int
        Dimension of the points.
    n_clipped : int
        Number of people with points outside the bounds.

    See Also
    --------
    sklearn_dptda.DTMFiltration.make_histogram : Creates such a histogram with ``groups``.
    LatticeHistogram : Counts points without an id.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda.filtration import PeopleHistogram
    >>> X = np.random.default_rng(0).random((300, 2))
    >>> ids = np.arange(300) % 20
    >>> parts = [PeopleHistogram((0, 1), (11, 11)).update(X[i::3], ids[i::3]) for i in range(3)]
    >>> (parts[0] + parts[1] + parts[2]).n_people
    20
    """

    def __init__(self, bounds: Bounds, shape: Sequence[int]) -> None:
        self.lattice = LatticeHistogram(bounds, shape)
        self._pieces: list[_Pairs] = []

    @property
    def n_features(self) -> int:
        """Dimension of the points."""
        return self.lattice.n_features

    @property
    def n_people(self) -> int:
        """Number of people who have been counted."""
        return len(self._whole().people)

    @property
    def n_clipped(self) -> int:
        """Number of people with points outside the bounds."""
        return int(self._whole().clipped.sum())

    def update(self, X: ArrayLike, ids: ArrayLike) -> Self:
        """Count one more chunk of points.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The points, all finite. An empty chunk is allowed.
        ids : array-like of shape (n,)
            The person to whom each point belongs: numbers or strings.

        Returns
        -------
        self
        """
        X = check_cloud(X, "X", self.n_features, min_points=0)
        return self._count(*split_people(X, None, ids, "point"))

    def _count(self, X: FloatArray, ids: Any) -> Self:
        people, codes = codes_of(ids)
        nodes, outside = self.lattice.nodes_of(X)
        clipped = np.bincount(codes, outside, minlength=len(people)) > 0
        n_nodes = self.lattice.counts.size
        keys, counts = np.unique(codes * n_nodes + nodes, return_counts=True)
        self._pieces.append(_Pairs(n_nodes, people, keys, counts, clipped))
        return self

    def weighted(self) -> LatticeHistogram:
        """Return the sums of integer weights at the nodes, 2**22 for each person. *Not* private.

        The weights of a person depend only on the points of that person.

        Returns
        -------
        LatticeHistogram
        """
        whole = self._whole()
        codes = whole.codes
        totals = np.zeros(len(whole.people), dtype=np.int64)
        np.add.at(totals, codes, whole.counts)
        if totals.max(initial=0) >= _MOST_POINTS:
            raise ValueError(
                f"One person has more than 2**{62 - WEIGHT_BITS} points, which is not supported."
            )
        weights = _weights(codes, whole.counts, totals)
        histogram = LatticeHistogram((self.lattice.low, self.lattice.high), self.lattice.shape)
        np.add.at(histogram.counts.reshape(-1), whole.nodes, weights)
        histogram.weight_bits, histogram.n_clipped = WEIGHT_BITS, self.n_clipped
        return histogram

    def _whole(self) -> _Pairs:
        """Merge all pieces into one."""
        if len(self._pieces) != 1:
            self._pieces = [_merged_pairs(self._pieces, self.lattice.counts.size)]
        return self._pieces[0]

    def __add__(self, other: object) -> "PeopleHistogram":
        if not isinstance(other, PeopleHistogram):
            return NotImplemented
        if not self.lattice.matches(other.lattice):
            raise ValueError("Only histograms on the same lattice can be added.")
        both = PeopleHistogram((self.lattice.low, self.lattice.high), self.lattice.shape)
        both._pieces = [*self._pieces, *other._pieces]
        sizes = [len(piece.keys) for piece in both._pieces] or [0]
        # Merge only if the largest piece is at most half of all: adding many small parts to a
        # large one then takes time proportional to the number of pairs.
        if 2 * max(sizes) <= sum(sizes):
            both._whole()
        return both

    def __radd__(self, other: object) -> "PeopleHistogram":
        return self if other == 0 else NotImplemented

    def __repr__(self) -> str:
        return f"PeopleHistogram(shape={self.lattice.shape}, n_people={self.n_people})"


def point_weights(ids: list[Any]) -> IntArray:
    """Return integer weights of points, 2**22 for each person, by the order of their points."""
    people, codes = codes_of(ids)
    totals = np.bincount(codes, minlength=len(people)).astype(np.int64)
    order, weights = np.argsort(codes, kind="stable"), np.empty(len(codes), dtype=np.int64)
    weights[order] = _weights(codes[order], np.ones(len(codes), dtype=np.int64), totals)
    return weights


def _weights(codes: IntArray, counts: IntArray, totals: IntArray) -> IntArray:
    """Return the parts of the weight of a person that belong to counts sorted by person."""
    n = totals[codes]
    # Number of points of a person up to and including each count.
    upto = np.cumsum(counts) - (np.cumsum(totals) - totals)[codes]
    return (upto << WEIGHT_BITS) // n - ((upto - counts) << WEIGHT_BITS) // n


def _merged_pairs(pieces: list[_Pairs], n_nodes: int) -> _Pairs:
    """Merge pieces of one cloud by the ids of its people."""
    if not pieces:
        none = np.empty(0, dtype=np.int64)
        return _Pairs(n_nodes, [], none, none, none.astype(bool))
    people, numbers = codes_of(i for piece in pieces for i in piece.people)
    check_ids(people, "point")
    starts = np.cumsum([0, *(len(piece.people) for piece in pieces)])
    keys = np.concatenate(
        [
            # The code of a person changes, and the node stays.
            piece.keys + (numbers[start + codes] - codes) * n_nodes
            for start, piece in zip(starts[:-1], pieces, strict=True)
            for codes in [piece.codes]
        ]
    )
    clipped = np.concatenate([piece.clipped for piece in pieces])
    beyond = np.bincount(numbers, clipped, minlength=len(people)) > 0
    # This sort is fast for arrays that consist of a few sorted parts.
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], np.concatenate([piece.counts for piece in pieces])[order]
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    if len(first) == 0:
        return _Pairs(n_nodes, people, keys, counts, beyond)
    return _Pairs(n_nodes, people, keys[first], np.add.reduceat(counts, first), beyond)


def counted_people(
    bounds: Bounds,
    shape: tuple[int, ...],
    groups: str | bool,
    part: Any,
    histogram: PeopleHistogram | None = None,
) -> PeopleHistogram:
    """Count one part of a cloud, in a new histogram or in a given one."""
    histogram = histogram or PeopleHistogram(bounds, shape)
    if groups is True:
        return histogram._count(*_one_array_each(part, "X", histogram.n_features))
    table, ids = split_people(part, str(groups), None, "point")
    return histogram._count(check_cloud(table, "X", histogram.n_features, min_points=0), ids)


def is_cloud_of_people(X: Any, groups: str | bool) -> bool:
    """Return whether X is one cloud rather than an iterable of chunks."""
    if groups is True:
        return isinstance(X, list | tuple) and len(X) > 0 and np.ndim(X[0]) == 2
    return frame_library(X) is not None
