"""Points of a cloud, possibly of people: each person has the same mass, spread over their points.

Proof: doc/theory/people.md, "Clouds of people".
Proof: doc/theory/people.md, "Integer weights".
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from sklearn_dptda._typing import BoolArray, FloatArray, IntArray
from sklearn_dptda.privacy._parameters import quoted
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
