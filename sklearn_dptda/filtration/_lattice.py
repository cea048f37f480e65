"""Histograms of points on a public lattice, which can be added."""

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from sklearn_dptda._typing import BoolArray, Bounds, FloatArray, IntArray
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.utils._bounds import check_bounds
from sklearn_dptda.utils._clouds import check_cloud


class LatticeHistogram:
    """Numbers of points that are nearest to each node of a public lattice.

    Points outside the bounds are clipped to them. The histograms of parts of a point cloud
    add up to that of the whole cloud, so that you can stream a cloud in chunks, or count its
    parts where they are stored. A histogram is an exact statistic: *not* private.

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
    counts : ndarray of int64, of shape ``shape``
        Number of points at each node.
    n_points : int
        Number of points that have been counted.
    n_clipped : int
        Number of points that were outside the bounds.
    n_features : int
        Dimension of the points.

    See Also
    --------
    sklearn_dptda.DTMFiltration.make_histogram : Create a histogram for an estimator.
    PeopleHistogram : Counts the points of each person.

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

    def __init__(self, bounds: Bounds, shape: Sequence[int]) -> None:
        self.shape = tuple(int(s) for s in shape)
        if not self.shape or min(self.shape) < 2:
            raise ValueError(f"shape must have at least 2 nodes per axis; got {quoted(shape)}.")
        self.low, self.high = check_bounds(bounds, len(self.shape))
        self.counts = np.zeros(self.shape, dtype=np.int64)
        self.n_clipped = 0
        # A point has the weight 1, a person 2**weight_bits.
        self.weight_bits = 0

    @property
    def n_points(self) -> int:
        """Number of points, or of people, that have been counted."""
        return int(self.counts.sum()) >> self.weight_bits

    @property
    def n_features(self) -> int:
        """Dimension of the points."""
        return len(self.shape)

    def update(self, X: ArrayLike, batch_size: int = 1_000_000) -> Self:
        """Count one more chunk of points.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The points, all finite. An empty chunk is allowed.
        batch_size : int, default=1_000_000
            Number of rows at a time, which bounds the working memory.

        Returns
        -------
        self
        """
        X = check_cloud(X, "X", self.n_features, min_points=0)
        for start in range(0, len(X), batch_size):
            nodes, outside = self.nodes_of(X[start : start + batch_size])
            self.n_clipped += int(outside.sum())
            self.counts += np.bincount(nodes, minlength=self.counts.size).reshape(self.shape)
        return self

    def sql(self, table: str, columns: Sequence[str]) -> str:
        """Return a query that counts the points of a table where the database holds them.

        The database returns one line for each node that has points. Pass the lines to
        :meth:`update_counts`. The counts equal those of :meth:`update`. The query needs
        ``FLOOR``, ``CASE`` and ``GROUP BY``, as in PostgreSQL, DuckDB and SQLite.

        Parameters
        ----------
        table : str
            Name of a table or view, or a subquery in parentheses. It becomes part of the query as
            it is.
        columns : sequence of str
            Names of the columns that hold the coordinates, one for each axis. They are quoted.

        Returns
        -------
        str

        Notes
        -----
        A missing value makes :meth:`update_counts` raise. Where a database takes NaN as the
        largest number, as PostgreSQL and DuckDB do, a NaN is clipped to the upper bound.

        Examples
        --------
        >>> import sqlite3
        >>> from sklearn_dptda.filtration import LatticeHistogram
        >>> database = sqlite3.connect(":memory:")
        >>> _ = database.execute("CREATE TABLE visits (x REAL, y REAL)")
        >>> _ = database.execute("INSERT INTO visits VALUES (0.1, 0.9), (0.2, 0.9), (3, 0)")
        >>> histogram = LatticeHistogram((0, 1), (3, 3))
        >>> lines = database.execute(histogram.sql("visits", ["x", "y"]))
        >>> histogram.update_counts(lines).counts.tolist()
        [[0, 0, 2], [0, 0, 0], [1, 0, 0]]
        >>> database.close()
        """
        if len(columns) != self.n_features:
            raise ValueError(
                f"columns must name {self.n_features} columns, one for each axis; got "
                f"{len(columns)}."
            )
        names = ['"' + name.replace('"', '""') + '"' for name in columns]
        steps = (np.array(self.shape) - 1) / (self.high - self.low)
        axes = list(zip(names, self.low.tolist(), self.high.tolist(), steps.tolist(), strict=True))
        outside = " OR ".join(
            f"{x} < {_literal(low)} OR {x} > {_literal(high)}" for x, low, high, _ in axes
        )
        # Doubles alone: a literal without an exponent is a decimal number in some databases.
        scaled = ", ".join(
            f"(CASE WHEN {x} < {_literal(low)} THEN {_literal(low)} WHEN {x} > {_literal(high)} "
            f"THEN {_literal(high)} ELSE CAST({x} AS DOUBLE PRECISION) END - {_literal(low)}) "
            f"* {_literal(step)} AS t{i}"
            for i, (x, low, high, step) in enumerate(axes)
        )
        # ROUND differs between databases where two nodes are equally near; NumPy takes the even.
        nodes = ", ".join(
            f"FLOOR(t{i}) + CASE WHEN t{i} - FLOOR(t{i}) > 0.5 OR (t{i} - FLOOR(t{i}) = 0.5 AND "
            f"FLOOR(FLOOR(t{i}) / 2) * 2 < FLOOR(t{i})) THEN 1 ELSE 0 END AS node{i}"
            for i in range(len(axes))
        )
        each = ", ".join(f"node{i}" for i in range(len(axes)))
        return (
            f"SELECT {each}, COUNT(*), SUM(clipped) FROM (SELECT {nodes}, clipped FROM "
            f"(SELECT {scaled}, CASE WHEN {outside} THEN 1 ELSE 0 END AS clipped "
            f"FROM {table} AS points) AS scaled) AS nodes GROUP BY {each}"
        )

    def update_counts(self, lines: Iterable[Sequence[Any]]) -> Self:
        """Add what a database has counted by the query of :meth:`sql`.

        Parameters
        ----------
        lines : iterable of sequences of d + 2 numbers
            The node along each axis, how many points are nearest to it, and how many of these lie
            outside the bounds.

        Returns
        -------
        self
        """
        table = np.array([list(line) for line in lines], dtype=float)
        table = table.reshape(-1, self.n_features + 2)
        nodes, counts, clipped = table[:, :-2], table[:, -2], table[:, -1]
        on_lattice = (nodes == np.rint(nodes)) & (nodes >= 0) & (nodes < np.array(self.shape))
        if not (on_lattice.all() and (counts >= clipped).all() and (clipped >= 0).all()):
            raise ValueError(
                "The lines are no counts on this lattice: rows with missing coordinates must be "
                "left out of the query, such as by a subquery with WHERE ... IS NOT NULL."
            )
        np.add.at(self.counts, tuple(nodes.astype(np.int64).T), counts.astype(np.int64))
        self.n_clipped += int(clipped.sum())
        return self

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
        """Return whether another histogram has the same bounds and shape.

        Parameters
        ----------
        other : LatticeHistogram

        Returns
        -------
        bool
        """
        return (
            self.shape == other.shape
            and np.array_equal(self.low, other.low)
            and np.array_equal(self.high, other.high)
        )

    def __add__(self, other: object) -> "LatticeHistogram":
        if not isinstance(other, LatticeHistogram):
            return NotImplemented
        if not self.matches(other):
            raise ValueError("Only histograms on the same lattice can be added.")
        merged = LatticeHistogram((self.low, self.high), self.shape)
        merged.counts = self.counts + other.counts
        merged.n_clipped = self.n_clipped + other.n_clipped
        return merged

    def __radd__(self, other: object) -> "LatticeHistogram":
        return self if other == 0 else NotImplemented

    def __repr__(self) -> str:
        return f"LatticeHistogram(shape={self.shape}, n_points={self.n_points})"


def _literal(value: float) -> str:
    """A double in SQL, whose exponent says that it is one."""
    text = repr(value)
    return f"({text if 'e' in text else text + 'e0'})"
