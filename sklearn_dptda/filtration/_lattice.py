"""Histograms of points on a public lattice, which can be added."""

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda._typing import BoolArray, Bounds, FloatArray, IntArray
from sklearn_dptda.filtration._cloud import WEIGHT_BITS, PeopleAtNodes
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.utils._bounds import check_bounds
from sklearn_dptda.utils._people import split_people
from sklearn_dptda.utils._validation import check_cloud


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
