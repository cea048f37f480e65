"""A private box around rows or clouds, for data whose bounds are unknown.

Proof: doc/theory/private_bounds.md, "Composition".
"""

import math
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import Adjacency, Bounds, Chunks, RandomStateLike
from sklearn_dptda.privacy import (
    NoiseSource,
    PrivacyAccountant,
    PrivacyGuarantee,
)
from sklearn_dptda.privacy._every_estimator import without_weights
from sklearn_dptda.privacy._risk import LossLaw
from sklearn_dptda.privacy._warnings import NoiseWarning, warn_caller
from sklearn_dptda.rows._estimator import ROW_PARAMETERS, PrivateRowsEstimator, many_clipped
from sklearn_dptda.rows._private_cubes import CUBE, nats_of_a_level, private_cubes
from sklearn_dptda.rows._rows import Rows, count_beyond
from sklearn_dptda.utils._bounds import Extremes, check_bounds
from sklearn_dptda.utils._frames import Columns
from sklearn_dptda.utils._sklearn import StrOptions
from sklearn_dptda.utils._tasks import parts_elsewhere

# Accuracy only: the three shares add up to one, whatever they are.
# Shares of epsilon: for the share of the rows beyond the box, and for the number of rows if it is
# private. The box takes the rest.
_CLIPPED_SHARE, _SIZE_SHARE = 0.1, 0.05
# A warning says that the cube around the origin may be far too wide, if noise alone makes it wider
# than this many powers of two on average: the number is one divided by exp(nats) - 1. The next draw
# finds a small cube in one that is a few powers too wide.
_FEW_NATS = math.log1p(1 / 8)


@fill_doc
class PrivateBounds(PrivateRowsEstimator):
    """Release a box around rows or around the points of clouds.

    One draw of the exponential mechanism chooses among cubes (or among intervals for each
    column) of 24 sizes. A noisy count then tells which share of the rows lies outside.

    Parameters
    ----------
    epsilon : float, default=0.1
        Privacy loss of one fit. ``inf`` adds no noise, and takes the smallest and
        the largest values.
    shape : {"cube", "box"}, default="cube"
        ``"cube"``: all columns have the same side length, so that distances keep
        their proportions. With more than six columns the result is coarse.
        ``"box"``: each column has an interval of its own, and the columns share
        ``epsilon``.
    start : pair of float or array-like, default=None
        Public bounds, which must not depend on the rows. The box is searched for
        within them, down to 1/3,000 of their width, and rows are clipped to them.
        None: powers of two from 2**-30 to 2**60; a third of the budget then narrows
        them down.
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Which tables count as neighbours. ``"replace-one"`` (bounded): one row is
        replaced, and the number of rows is public. ``"add-remove"`` (unbounded): one
        row is added or removed, and the number of rows is private.
    %(row_groups)s
    %(fit_accountant_and_random_state)s

    Attributes
    ----------
    bounds_ : tuple of two ndarray of shape (n_features,)
        Private lower and upper bounds.
    clipped_share_ : float
        Private share of the rows that lie beyond them.
    %(fit_guarantee_and_columns)s

    See Also
    --------
    sklearn_dptda.DTMFiltration : Takes this estimator as its ``bounds``.

    Notes
    -----
    .. rubric:: Privacy

    One fit releases the box and the share of the rows beyond it. It is
    ``epsilon``-differentially private for replacing one row (a point of a cloud, if
    ``X`` is a list of clouds), or for adding or removing one. The loss of a release
    from the clipped rows adds to it. With fewer than about 200 / ``epsilon`` rows
    the box stays wide.
    %(privacy_of_groups)s

    References
    ----------
    F. McSherry, K. Talwar, "Mechanism design via differential privacy", FOCS 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> from sklearn_dptda.preprocessing import PrivateBounds
    >>> X = make_two_circles(4000, random_state=0)
    >>> low, high = PrivateBounds(0.2, start=(-1000, 1000), random_state=0).fit(X).bounds_
    >>> bool((low <= X.min(axis=0)).all() and (high - low < 10).all())
    True
    """

    _parameter_constraints = {
        **ROW_PARAMETERS,
        "shape": [StrOptions({"cube", "box"})],
        "start": ["array-like", None],
    }

    _n_seeds = 1

    def __init__(
        self,
        epsilon: float = 0.1,
        *,
        shape: Literal["cube", "box"] = "cube",
        start: Bounds | None = None,
        adjacency: Adjacency = "replace-one",
        groups: str | None = None,
        unit: str = "one row",
        accountant: PrivacyAccountant | None = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.epsilon = epsilon
        self.shape = shape
        self.start = start
        self.adjacency = adjacency
        self.groups = groups
        self.unit = unit
        self.accountant = accountant
        self.random_state = random_state

    @fill_doc
    @without_weights
    def fit(self, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None) -> Self:
        """Spend the budget and release a box.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), list of such, or Dask collection
            A table, or a list of clouds whose points are taken together. Dask
            collections and lists of delayed tables are counted where they are.
        y : Ignored
        %(groups_of_fit)s

        Returns
        -------
        self

        %(refused_or_not_paid)s
        """
        of_people = self.groups is not None or groups is not None
        if parts_elsewhere(X) is not None or of_people or not _are_clouds(X):
            return super().fit(X, groups=groups)
        for remark in self._fit_clouds(X):
            warn_caller(remark, NoiseWarning)
        return self

    @fill_doc
    def fit_chunks(self, chunks: Chunks) -> Self:
        """Spend the budget and release a box around rows that come in chunks.

        Besides one chunk, memory holds the cells of the two finest lattices that
        contain rows, of 8 bytes for each column and 8 for a count: some 10,000 cells
        for each column with ``shape="box"``, and at most as many as rows for a cube.

        %(chunks_of_rows)s

        Returns
        -------
        self

        %(refused_or_not_paid)s
        """
        return super().fit_chunks(chunks)

    def _check_columns(self, columns: Columns) -> None:
        self._public_start(len(columns.names))

    def _public_start(self, n_features: int) -> Any:
        """The public start, checked against the number of columns, or None."""
        return None if self.start is None else check_bounds(self.start, n_features, "start")

    def _release(self, rows: Rows, guarantee: PrivacyGuarantee, *seeds: Any) -> list[str]:
        noise, epsilon = NoiseSource(seeds[0]), float(self.epsilon) / rows.mass
        start = self._public_start(rows.n_features)
        n = rows.n_rows
        if math.isinf(epsilon):
            low, high = _exact(rows, self.shape == "cube")
        else:
            if self.adjacency == "add-remove":
                n, _ = noise.noisy_count(n, rows.mass, _SIZE_SHARE * epsilon)
            n, parts = max(n, 1), self._columns(rows.n_features)
            each = self._box_share() * epsilon / len(parts)
            low, high = private_cubes(
                rows,
                parts,
                start=start,
                epsilon=each,
                adjacency=self.adjacency,
                n=n,
                noise=noise,
            )
        outside = rows.sum(partial(count_beyond, low=low, high=high))
        outside, scale = noise.noisy_count(outside, rows.mass, _CLIPPED_SHARE * epsilon)
        self.bounds_ = low, high
        self.clipped_share_ = float(np.clip(outside / n, 0.0, 1.0))
        remarks = []
        if many_clipped(outside, math.sqrt(2) * scale, n):
            remarks.append(
                f"{self.clipped_share_:.0%} of the rows lie beyond the private bounds. Pass a "
                "start that contains the rows, or raise epsilon."
            )
        # From public numbers, and the private number of rows.
        if start is None and epsilon < math.inf and nats_of_a_level(each, n) < _FEW_NATS:
            remarks.append(
                "At this epsilon, private bounds of so few rows may be a thousand times too wide "
                "and more. Pass bounds, or a start that contains the rows, or raise epsilon."
            )
        return remarks

    def _columns(self, d: int) -> list[list[int]]:
        """The columns that each draw is for."""
        return [list(range(d))] if self.shape == "cube" else [[j] for j in range(d)]

    def _box_share(self) -> float:
        return 1 - _CLIPPED_SHARE - (_SIZE_SHARE if self.adjacency == "add-remove" else 0.0)

    def _guarantee_ahead(self, n_features: int | None) -> PrivacyGuarantee:
        self._check_parameters()
        d = 1 if n_features is None else n_features - (self.groups is not None)
        ahead = self._guarantee_of_columns(self._unit(), max(d, 1))
        # The zCDP of many draws is less than that of their sum. The sum holds for any number of
        # draws.
        known = n_features is not None or self.shape == "cube"
        return ahead if known else replace(ahead, rho=None, law=None)

    def _guarantee_of(self, rows: Rows) -> PrivacyGuarantee:
        return self._guarantee_of_columns(rows.unit, rows.n_features)

    def _guarantee_of_columns(self, unit: str, d: int) -> PrivacyGuarantee:
        epsilon = float(self.epsilon)
        counts = [_CLIPPED_SHARE] + [_SIZE_SHARE] * (self.adjacency == "add-remove")
        box = self._box_share() * epsilon / len(self._columns(d))
        nested = CUBE.nested_share
        draws = [1.0] if self.start is not None else [nested, 1 - nested]
        choices = tuple(share * box for share in draws) * len(self._columns(d))
        pure = tuple(share * epsilon for share in counts)
        return PrivacyGuarantee(
            epsilon=epsilon,
            delta=0.0,
            adjacency=self.adjacency,
            unit=unit,
            mechanism="exponential mechanism and discrete Laplace mechanism, composed",
            released="a box, and the share of the rows beyond it",
            seeded=self.random_state is not None,
            law=LossLaw(pure, choices),
        )

    def __sklearn_tags__(self) -> Tags:
        """Declare that the size of a release does not depend on the records."""
        tags = super().__sklearn_tags__()
        tags.privacy.ragged = False
        return tags


def _are_clouds(X):
    """Whether X is a collection of tables rather than a table."""
    if isinstance(X, np.ndarray) and X.dtype != object:
        return X.ndim == 3
    return isinstance(X, list | tuple | np.ndarray) and len(X) > 0 and np.ndim(X[0]) == 2


def _exact(rows, cube):
    low, high = rows.sum(Extremes.of).bounds()
    if cube:
        half = float((high - low).max()) / 2
        middle = (low + high) / 2
        return np.minimum(low, middle - half), np.maximum(high, middle + half)
    return low, high
