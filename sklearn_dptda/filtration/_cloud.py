"""Points of a cloud, possibly of people, and their histograms on a public lattice.

Each person has the same mass, spread over their points. Histograms can be added.

Proof: doc/theory/people.md, "Clouds of people".
Proof: doc/theory/people.md, "Integer weights".
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda._typing import BoolArray, Bounds, FloatArray, IntArray
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.utils._bounds import check_bounds
from sklearn_dptda.utils._frames import open_frame
from sklearn_dptda.utils._people import check_ids, codes_of, split_people
from sklearn_dptda.utils._validation import check_cloud

# The weight of a person is 2**22: its product with a distance of up to 40 bits fits into 64 bits.
WEIGHT_BITS = 22
# Largest number of points of one person whose product with the weight fits into 62 bits.
_MOST_POINTS = 1 << (62 - WEIGHT_BITS)


class Cloud(NamedTuple):
    """Points of shape (n, d), and the person to whom each point belongs, if people are protected.

    Histograms, which can replace a cloud, have the attributes ``n_points``, ``n_features`` and
    ``of_people`` as well.
    """

    points: FloatArray
    ids: list[Any] | None = None

    @classmethod
    def read(
        cls, given: Any, groups: str | bool | None, name: str, n_features: int | None = None
    ) -> Self:
        """Read the points of one cloud, or of a part of one.

        With ``groups``, it is a data frame with a column of ids, or a list of one array per person.
        """
        if not groups:
            return cls(check_cloud(given, name, n_features, min_points=0))
        if groups is True:
            return cls(*_one_array_each(given, name, n_features))
        table, ids = split_people(given, str(groups), None, "point")
        return cls(check_cloud(table, name, n_features, min_points=0), ids)

    @classmethod
    def read_whole(
        cls, given: Any, groups: str | bool | None, name: str, n_features: int | None = None
    ) -> Self:
        """Read one whole cloud, of at least two records."""
        if not groups:
            return cls(check_cloud(given, name, n_features))
        cloud = cls.read(given, groups, name, n_features)
        if cloud.n_points < 2:
            raise ValueError(
                f"{name} has points of fewer than 2 people, by groups={quoted(groups)}. At least 2 "
                "people are needed."
            )
        return cloud

    @property
    def n_points(self) -> int:
        """Number of points, or of people; public under replace-one adjacency."""
        return len(self.points) if self.ids is None else len(set(self.ids))

    @property
    def n_features(self) -> int:
        """Dimension of the points."""
        return self.points.shape[1]

    @property
    def of_people(self) -> bool:
        """Whether the records are people."""
        return self.ids is not None

    def n_beyond(self, outside: BoolArray) -> int:
        """Return the number of records of which a point is outside."""
        if self.ids is None:
            return int(outside.sum())
        return len({person for person, beyond in zip(self.ids, outside, strict=True) if beyond})


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


def is_one_cloud(X: Any, groups: str | bool | None) -> bool:
    """Return whether X is one cloud rather than an iterable of chunks."""
    if isinstance(groups, str):
        return open_frame(X) is not None
    if not groups and hasattr(X, "shape"):
        return len(X.shape) == 2
    n_axes = 2 if groups else 1
    return isinstance(X, list | tuple) and len(X) > 0 and np.ndim(X[0]) == n_axes


class PeopleAtNodes(NamedTuple):
    """Numbers of points of people near nodes, with the key ``person * n_nodes + node``, sorted."""

    n_nodes: int
    people: list[Any]
    keys: IntArray
    counts: IntArray
    # Whether a person has points outside the bounds.
    clipped: BoolArray

    @classmethod
    def of(cls, n_nodes: int, ids: Any, nodes: IntArray, outside: BoolArray) -> Self:
        """Count points at nodes by person."""
        people, codes = codes_of(ids)
        clipped = np.bincount(codes, outside, minlength=len(people)) > 0
        keys, counts = np.unique(codes * n_nodes + nodes, return_counts=True)
        return cls(n_nodes, people, keys, counts, clipped)

    @classmethod
    def merged(cls, n_nodes: int, pieces: Sequence[Self]) -> Self:
        """Merge pieces of one cloud by the ids of its people."""
        if not pieces:
            none = np.empty(0, dtype=np.int64)
            return cls(n_nodes, [], none, none, none.astype(bool))
        people, numbers = codes_of(i for piece in pieces for i in piece.people)
        check_ids(people, "point")
        starts = np.cumsum([0, *(len(piece.people) for piece in pieces)])
        keys = np.concatenate(
            [
                # The code of a person changes, and the node stays.
                piece.keys + (numbers[start + codes] - codes) * n_nodes
                for start, piece in zip(starts[:-1], pieces, strict=True)
                for codes in [piece.keys // n_nodes]
            ]
        )
        clipped = np.concatenate([piece.clipped for piece in pieces])
        beyond = np.bincount(numbers, clipped, minlength=len(people)) > 0
        # This sort is fast for arrays that consist of a few sorted parts.
        order = np.argsort(keys, kind="stable")
        keys, counts = keys[order], np.concatenate([piece.counts for piece in pieces])[order]
        first = np.flatnonzero(np.diff(keys, prepend=-1))
        if len(first) == 0:
            return cls(n_nodes, people, keys, counts, beyond)
        return cls(n_nodes, people, keys[first], np.add.reduceat(counts, first), beyond)

    def weights(self) -> IntArray:
        """Return the sums of integer weights at the nodes, 2**22 for each person.

        The weights of a person depend only on the points of that person.
        """
        codes, nodes = np.divmod(self.keys, self.n_nodes)
        totals = np.zeros(len(self.people), dtype=np.int64)
        np.add.at(totals, codes, self.counts)
        if totals.max(initial=0) >= _MOST_POINTS:
            raise ValueError(
                f"One person has more than 2**{62 - WEIGHT_BITS} points, which is not supported."
            )
        weights = np.zeros(self.n_nodes, dtype=np.int64)
        np.add.at(weights, nodes, parts_of_weights(codes, self.counts, totals))
        return weights


def point_weights(ids: list[Any]) -> IntArray:
    """Return integer weights of points, 2**22 for each person, by the order of their points."""
    people, codes = codes_of(ids)
    totals = np.bincount(codes, minlength=len(people)).astype(np.int64)
    order, weights = np.argsort(codes, kind="stable"), np.empty(len(codes), dtype=np.int64)
    ones = np.ones(len(codes), dtype=np.int64)
    weights[order] = parts_of_weights(codes[order], ones, totals)
    return weights


def parts_of_weights(codes: IntArray, counts: IntArray, totals: IntArray) -> IntArray:
    """Return the parts of the weight of a person that belong to counts sorted by person."""
    n = totals[codes]
    # Number of points of a person up to and including each count.
    upto = np.cumsum(counts) - (np.cumsum(totals) - totals)[codes]
    return (upto << WEIGHT_BITS) // n - ((upto - counts) << WEIGHT_BITS) // n


class LatticeHistogram:
    """Numbers of points that are nearest to each node of a public lattice.

    Points outside the bounds are clipped to them. The histograms of parts of a point cloud
    add up to that of the whole cloud, so that you can stream a cloud in chunks, or count its
    parts where they are stored. With ``people``, the points of one person may be spread over
    several parts. A histogram is an exact statistic: *not* private.

    Parameters
    ----------
    bounds : tuple (low, high)
        Public bounding box: two numbers, or two arrays with one number per coordinate, in
        the units of the data.
    shape : tuple of int
        Number of nodes along each axis, at least 2, including the ends of the box. The
        length of the tuple is the dimension of the points.
    people : bool, default=False
        Whether each point belongs to a person, whose points have the same mass together as
        those of any other person.

    Attributes
    ----------
    counts : ndarray of int64, of shape ``shape``
        Number of points at each node; with ``people``, the sum of weights, ``2**22`` for each
        person.
    n_points : int
        Number of points, or of people, that have been counted.
    n_clipped : int
        Number of points outside the bounds, or of people with such points.
    n_features : int
        Dimension of the points.

    See Also
    --------
    sklearn_dptda.DTMFiltration.make_histogram : Create a histogram for an estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda.filtration import LatticeHistogram
    >>> rng = np.random.default_rng(0)
    >>> whole = LatticeHistogram((0, 1), (11, 11))
    >>> for _ in range(3):
    ...     part = LatticeHistogram((0, 1), (11, 11)).update(rng.random((100, 2)))
    ...     whole = whole + part
    >>> whole.n_points
    300
    """

    def __init__(self, bounds: Bounds, shape: Sequence[int], *, people: bool = False) -> None:
        self.shape = tuple(int(s) for s in shape)
        if not self.shape or min(self.shape) < 2:
            raise ValueError(f"shape must have at least 2 nodes per axis; got {quoted(shape)}.")
        self.low, self.high = check_bounds(bounds, len(self.shape))
        self.of_people = bool(people)
        # A point has the weight 1, a person 2**weight_bits.
        self.weight_bits = WEIGHT_BITS if people else 0
        self._counts, self._n_clipped = np.zeros(self.shape, dtype=np.int64), 0
        self._pieces: list[PeopleAtNodes] = []

    @property
    def counts(self) -> IntArray:
        """Number of points, or sum of weights, at each node."""
        return self._whole().weights().reshape(self.shape) if self.of_people else self._counts

    @property
    def n_points(self) -> int:
        """Number of points, or of people, that have been counted."""
        return len(self._whole().people) if self.of_people else int(self._counts.sum())

    @property
    def n_clipped(self) -> int:
        """Number of points outside the bounds, or of people with such points."""
        return int(self._whole().clipped.sum()) if self.of_people else self._n_clipped

    @property
    def n_features(self) -> int:
        """Dimension of the points."""
        return len(self.shape)

    def update(
        self, X: ArrayLike, ids: ArrayLike | None = None, batch_size: int = 1_000_000
    ) -> Self:
        """Count one more chunk of points.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The points, all finite. An empty chunk is allowed.
        ids : array-like of shape (n,), default=None
            With ``people``, the person to whom each point belongs: numbers or strings.
        batch_size : int, default=1_000_000
            Number of rows at a time, which bounds the working memory.

        Returns
        -------
        self
        """
        X = check_cloud(X, "X", self.n_features, min_points=0)
        if (ids is not None) != self.of_people:
            raise ValueError("ids must be given if and only if the histogram has people=True.")
        if self.of_people:
            _, each = split_people(X, None, ids, "point")
            self._pieces.append(PeopleAtNodes.of(self._counts.size, each, *self.nodes_of(X)))
            return self
        for start in range(0, len(X), batch_size):
            nodes, outside = self.nodes_of(X[start : start + batch_size])
            self._n_clipped += int(outside.sum())
            self._counts += np.bincount(nodes, minlength=self._counts.size).reshape(self.shape)
        return self

    def update_counts(self, lines: Iterable[Sequence[Any]]) -> Self:
        """Add what a database has counted where it holds the points.

        Parameters
        ----------
        lines : iterable of sequences of d + 2 numbers
            The node along each axis, how many points are nearest to it, and how many of these
            lie outside the bounds. Along an axis from ``low`` to ``high``, the node of ``x`` is
            ``(x - low) / (high - low) * (shape - 1)``, rounded, for ``x`` clipped to the bounds.

        Returns
        -------
        self
        """
        table = np.array([list(line) for line in lines], dtype=float)
        table = table.reshape(-1, self.n_features + 2)
        if self.of_people:
            raise ValueError("Counts at nodes do not say which points belong to one person.")
        nodes, counts, clipped = table[:, :-2], table[:, -2], table[:, -1]
        on_lattice = (nodes == np.rint(nodes)) & (nodes >= 0) & (nodes < np.array(self.shape))
        whole = np.isfinite(table) & (table == np.rint(table))
        if not (
            whole.all() and on_lattice.all() and (counts >= clipped).all() and (clipped >= 0).all()
        ):
            raise ValueError(
                "The lines are no counts on this lattice: rows with missing coordinates must be "
                "left out of the query, such as by a subquery with WHERE ... IS NOT NULL."
            )
        np.add.at(self._counts, tuple(nodes.astype(np.int64).T), counts.astype(np.int64))
        self._n_clipped += int(clipped.sum())
        return self

    def _whole(self) -> PeopleAtNodes:
        """Merge all pieces into one."""
        if len(self._pieces) != 1:
            self._pieces = [PeopleAtNodes.merged(self._counts.size, self._pieces)]
        return self._pieces[0]

    def nodes_of(self, points: FloatArray) -> tuple[IntArray, BoolArray]:
        """Return the index of the node nearest to each point, and which points are outside.

        Parameters
        ----------
        points : ndarray of shape (n, d)
            Points, in the units of the data.

        Returns
        -------
        nodes : ndarray of int64, of shape (n,)
            Index of the node in the flattened lattice.
        outside : ndarray of bool, of shape (n,)
            True outside the bounds.
        """
        steps = (np.array(self.shape) - 1) / (self.high - self.low)
        inside = np.clip(points, self.low, self.high)
        index = np.rint((inside - self.low) * steps).astype(np.int64)
        nodes = np.ravel_multi_index(tuple(index.T), self.shape)
        return nodes, (inside != points).any(axis=1)

    def matches(self, other: "LatticeHistogram") -> bool:
        """Return whether another histogram counts the same records on the same lattice.

        Parameters
        ----------
        other : LatticeHistogram

        Returns
        -------
        bool
        """
        return (
            (self.shape, self.of_people) == (other.shape, other.of_people)
            and np.array_equal(self.low, other.low)
            and np.array_equal(self.high, other.high)
        )

    def __add__(self, other: object) -> "LatticeHistogram":
        if not isinstance(other, LatticeHistogram):
            return NotImplemented
        if not self.matches(other):
            raise ValueError(
                "Only histograms of the same records on the same lattice can be added."
            )
        both = LatticeHistogram((self.low, self.high), self.shape, people=self.of_people)
        both._counts = self._counts + other._counts
        both._n_clipped = self._n_clipped + other._n_clipped
        both._pieces = [*self._pieces, *other._pieces]
        sizes = [len(piece.keys) for piece in both._pieces]
        # Merge only if the largest piece is at most half of all: adding many small parts to a
        # large one then takes time proportional to the number of pairs.
        if 2 * max(sizes, default=1) <= sum(sizes):
            both._whole()
        return both

    def __radd__(self, other: object) -> "LatticeHistogram":
        return self if other == 0 else NotImplemented

    def __repr__(self) -> str:
        return f"LatticeHistogram(shape={self.shape}, n_points={self.n_points})"


def counted_on_lattice(
    new: Callable[[], LatticeHistogram],
    groups: str | bool | None,
    part: Any,
    histogram: LatticeHistogram | None = None,
) -> LatticeHistogram:
    """Count one part of a cloud, in a new histogram or in a given one."""
    histogram = histogram or new()
    return histogram.update(*Cloud.read(part, groups, "X", histogram.n_features))
