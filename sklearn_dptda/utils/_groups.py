"""People with several rows: a column says whose a row is, and the first rows of each count.

Whose rows are kept follows from that person's rows alone: one person more or less is at most
``rows_per_group`` rows more or less.
"""

from collections import Counter
from numbers import Integral, Real

from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.utils._columns import frame_library
from sklearn_dptda.utils._sklearn import Interval

# NaN, None and lists are none of these, or differ from themselves.
_IDS = (str, bytes, Real)


class GroupsMixin:
    """Mixin for private estimators of rows with the parameters ``groups`` and ``rows_per_group``.

    A release that costs ``_of_row(loss)`` for one row more or less costs ``loss`` for a person.
    """

    _group_constraints = {
        "groups": [str, None],
        "rows_per_group": [Interval(Integral, 1, None, closed="left")],
    }

    def _check_groups(self):
        """Refuse limits without people, people who change a public number of rows, tiny losses."""
        self._check_epsilon(self.rows_per_group)
        if self.groups is None and self.rows_per_group != 1:
            raise ValueError("rows_per_group needs groups, the name of a column.")
        if self.groups is not None and self.adjacency != "add-remove":
            raise ValueError(
                "groups needs adjacency='add-remove': with a person the number of rows changes."
            )

    def _of_row(self, loss):
        """Loss of one row, of which all rows of a person lose the whole."""
        return loss / self.rows_per_group

    def _unit(self):
        """What one record is, for the guarantee."""
        if self.groups is None:
            return "one row"
        most = f"rows_per_group={self.rows_per_group}"
        return f"all rows of one person, by {self.groups!r} with {most}"

    def _first_rows(self, tables):
        """Tables without the column of groups, with the first rows of each group in all of them."""
        if self.groups is None:
            yield from tables
            return
        counts = Counter()
        for table in tables:
            names = _names(table)
            if names.count(self.groups) != 1 or len(names) == 1:
                raise ValueError(
                    f"groups={quoted(self.groups)} must be the name of one column of a data frame "
                    "of pandas or polars, beside others."
                )
            kept = _first_places(table[self.groups].to_list(), self.rows_per_group, counts)
            yield without_column(getattr(table, "iloc", table)[kept], self.groups)


def without_column(X, name):
    """A table without the columns of a name, if there is one and it has any."""
    if name is None or name not in _names(X):
        return X
    others = [place for place, other in enumerate(X.columns) if other != name]
    return getattr(X, "iloc", X)[:, others]


def _names(X):
    return [] if frame_library(X) is None else list(X.columns)


def _first_places(ids, most, counts):
    """Places of ids that have come up less than ``most`` times, as counted so far."""
    kept = []
    for place, group in enumerate(ids):
        if not isinstance(group, _IDS) or group != group:
            raise ValueError("groups must have a number or a string for each row; some have none.")
        if counts[group] < most:
            kept.append(place)
            counts[group] += 1
    return kept
