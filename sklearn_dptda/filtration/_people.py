"""Clouds of people: each person has the mass of one point, spread evenly over her points.

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
from sklearn_dptda.rows._intervals import merged
from sklearn_dptda.utils._clouds import check_cloud
from sklearn_dptda.utils._frames import frame_library
from sklearn_dptda.utils._people import check_ids, codes_of, split_people

# A person weighs 2**22: distances of up to 40 bits, times a part of that, leave room in 64 bits.
WEIGHT_BITS = 22
# Points of one person of whom the products with these weights stay within 62 bits.
_MOST_POINTS = 1 << (62 - WEIGHT_BITS)


class PeopleCloud(NamedTuple):
    """Points of shape (n, d), and whose each of them is."""

    points: FloatArray
    ids: list[Any]

    @classmethod
    def read(cls, cloud: Any, groups: str | bool, name: str, n_features: int | None = None) -> Self:
        """One cloud of people: a data frame with a column of ids, or a list of arrays, one each."""
        if groups is True:
            points, ids = _one_array_each(cloud, name, n_features)
        else:
            table, ids = split_people(cloud, str(groups), None, "point")
            points = check_cloud(table, name, n_features, min_points=0)
        if len(set(ids)) < 2:
            raise ValueError(
                f"{name} has points of one person alone, by groups={quoted(groups)}: at least 2 "
                "people are needed."
            )
        return cls(points, ids)

    @property
    def n_people(self) -> int:
        """How many people there are, public under replace-one adjacency."""
        return len(set(self.ids))


def _one_array_each(cloud: Any, name: str, n_features: int | None) -> tuple[FloatArray, list[Any]]:
    if not isinstance(cloud, list | tuple) or len(cloud) == 0:
        raise ValueError(f"{name} must be a list of arrays, one for each person: groups=True.")
    each: list[FloatArray] = []
    for person in cloud:
        points = check_cloud(person, f"an array of {name}", n_features, min_points=0)
        if len(points) == 0:
            raise ValueError(f"{name} has a person without points: leave such people out.")
        n_features = points.shape[1]
        each.append(points)
    return np.concatenate(each), np.repeat(np.arange(len(each)), list(map(len, each))).tolist()


class _Pairs(NamedTuple):
    """People, and how many points each has near which node: pairs by person, then by node."""

    people: list[Any]
    codes: IntArray
    nodes: IntArray
    counts: IntArray
    # Whether a person has points outside the bounds.
    clipped: BoolArray


class PeopleHistogram:
    """How many points of each person are nearest to each node of a public lattice.

    Histograms of parts of a cloud add up to that of the whole, in whatever
    parts the points of a person come. Points outside the bounds are clipped to
    them.

    A histogram is an exact statistic of the cloud: *not* private.

    Parameters
    ----------
    bounds : tuple (low, high)
        Public bounding box.
    shape : tuple of int
        Nodes along each axis, at least 2 each, bounds included.

    Attributes
    ----------
    n_people : int
    n_features : int

    See Also
    --------
    sklearn_dptda.DTMFiltration.make_histogram : Makes one, with ``groups``.
    LatticeHistogram : The same of points, where nobody says whose they are.

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
        """Number of people who have been counted so far."""
        return len(self._whole().people)

    @property
    def n_clipped(self) -> int:
        """How many people have points outside the bounds."""
        return int(self._whole().clipped.sum())

    def update(self, X: ArrayLike, ids: ArrayLike) -> Self:
        """Count one more chunk of points.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Finite; an empty chunk is allowed.
        ids : array-like of shape (n,)
            Whose each point is: numbers or strings.

        Returns
        -------
        self
        """
        X = check_cloud(X, "X", self.n_features, min_points=0)
        _, names = split_people(X, None, ids, "point")
        people, codes = codes_of(names)
        nodes, outside = self.lattice.nodes_of(X)
        clipped = np.bincount(codes, outside, minlength=len(people)) > 0
        pairs, counts = merged(np.column_stack([codes, nodes]), np.ones(len(codes), np.int64))
        self._pieces.append(_Pairs(people, pairs[:, 0], pairs[:, 1], counts, clipped))
        return self

    def weighted(self) -> LatticeHistogram:
        """Integer weights of the nodes, of which each person has 2**22.

        Cumulated counts are rounded down, so that the weights of a person telescope to exactly
        that, and follow from that person's points alone.
        """
        whole = self._whole()
        totals = np.zeros(len(whole.people), dtype=np.int64)
        np.add.at(totals, whole.codes, whole.counts)
        if totals.max(initial=0) >= _MOST_POINTS:
            raise ValueError(f"one person has more than 2**{62 - WEIGHT_BITS} points.")
        weights = _weights(whole.codes, whole.counts, totals)
        histogram = LatticeHistogram((self.lattice.low, self.lattice.high), self.lattice.shape)
        np.add.at(histogram.counts.reshape(-1), whole.nodes, weights)
        histogram.weight_bits, histogram.n_clipped = WEIGHT_BITS, self.n_clipped
        return histogram

    def _whole(self) -> _Pairs:
        """All pieces as one."""
        if len(self._pieces) != 1:
            self._pieces = [_joined(self._pieces)]
        return self._pieces[0]

    def __add__(self, other: object) -> "PeopleHistogram":
        if not isinstance(other, PeopleHistogram):
            return NotImplemented
        if not self.lattice.matches(other.lattice):
            raise ValueError("Only histograms on the same lattice can be merged.")
        both = PeopleHistogram((self.lattice.low, self.lattice.high), self.lattice.shape)
        both._pieces = [*self._pieces, *other._pieces]
        sizes = [len(piece.codes) for piece in both._pieces] or [0]
        # Many small parts and a large one take no longer than their pairs are many.
        if 2 * max(sizes) <= sum(sizes):
            both._whole()
        return both

    def __radd__(self, other: object) -> "PeopleHistogram":
        return self if other == 0 else NotImplemented

    def __repr__(self) -> str:
        return f"PeopleHistogram(shape={self.lattice.shape}, n_people={self.n_people})"


def point_weights(ids: list[Any]) -> IntArray:
    """Integer weights of points, of which each person has 2**22, as :class:`PeopleHistogram` has.

    They follow from how many points a person has, and in which order.
    """
    people, codes = codes_of(ids)
    totals = np.bincount(codes, minlength=len(people)).astype(np.int64)
    order, weights = np.argsort(codes, kind="stable"), np.empty(len(codes), dtype=np.int64)
    weights[order] = _weights(codes[order], np.ones(len(codes), dtype=np.int64), totals)
    return weights


def _weights(codes: IntArray, counts: IntArray, totals: IntArray) -> IntArray:
    """Parts of the weight of a person, of counts in order of people who have so many in all."""
    n = totals[codes]
    # Points of a person up to each count, and with it.
    upto = np.cumsum(counts) - (np.cumsum(totals) - totals)[codes]
    return (upto << WEIGHT_BITS) // n - ((upto - counts) << WEIGHT_BITS) // n


def _joined(pieces: list[_Pairs]) -> _Pairs:
    """Pieces of one cloud together, by the ids of its people."""
    if not pieces:
        none = np.empty(0, dtype=np.int64)
        return _Pairs([], none, none, none, none.astype(bool))
    people, numbers = codes_of(i for piece in pieces for i in piece.people)
    check_ids(people, "point")
    starts = np.cumsum([0, *(len(piece.people) for piece in pieces)])
    codes = [numbers[start + piece.codes] for start, piece in zip(starts[:-1], pieces, strict=True)]
    clipped = np.concatenate([piece.clipped for piece in pieces])
    pairs, counts = merged(
        np.column_stack([np.concatenate(codes), np.concatenate([p.nodes for p in pieces])]),
        np.concatenate([piece.counts for piece in pieces]),
    )
    beyond = np.bincount(numbers, clipped, minlength=len(people)) > 0
    return _Pairs(people, pairs[:, 0], pairs[:, 1], counts, beyond)


def counted_people(
    bounds: Bounds,
    shape: tuple[int, ...],
    groups: str | bool,
    part: Any,
    histogram: PeopleHistogram | None = None,
) -> PeopleHistogram:
    """Count a part of a cloud where that part is, in a histogram of its own or in a given one."""
    histogram = histogram or PeopleHistogram(bounds, shape)
    if groups is True:
        return histogram.update(*_one_array_each(part, "X", histogram.n_features))
    return histogram.update(*split_people(part, str(groups), None, "point"))


def is_cloud_of_people(X: Any, groups: str | bool) -> bool:
    """Whether X is one cloud rather than an iterable of chunks."""
    if groups is True:
        return isinstance(X, list | tuple) and len(X) > 0 and np.ndim(X[0]) == 2
    return frame_library(X) is not None
