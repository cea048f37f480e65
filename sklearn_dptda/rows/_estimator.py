"""What estimators that learn from private rows share: bounds, payment, units, streams."""

import math
from functools import partial
from numbers import Real
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import Chunks, FloatArray
from sklearn_dptda.privacy import (
    NoiseSource,
    PrivacyAccountant,
    PrivacyGuarantee,
    PrivateEstimatorMixin,
    gaussian_mu,
    gaussian_rho,
    pure_rho,
)
from sklearn_dptda.privacy._noise import public_generator
from sklearn_dptda.privacy._warnings import warn_caller
from sklearn_dptda.rows._budget import GaussianBudget, LaplaceBudget
from sklearn_dptda.rows._intervals import private_box, rows_for_box
from sklearn_dptda.rows._rows import Box, Rows, count_beyond
from sklearn_dptda.rows._tables import GroupsMixin, check_rows, open_chunks
from sklearn_dptda.utils._bounds import bounds_by_column
from sklearn_dptda.utils._frames import Columns, parts_elsewhere
from sklearn_dptda.utils._sklearn import Interval, StrOptions

# Of what the bounds leave: for the share of the rows beyond them.
_CLIPPED_SHARES = {"l2": 0.005, "l1": 0.015}
# Share of the rows beyond the bounds from which on a fit says so, and standard deviations of noise
# that are hardly ever exceeded.
_MANY, _CERTAIN = 0.05, 7.0
# Widths of the box beyond which rows are clipped where they are assigned to what was learnt.
_FAR = 1e50
_OF_INPUT = {"n_features_in_", "feature_names_in_"}


class PrivateRowsEstimator(GroupsMixin, PrivateEstimatorMixin, BaseEstimator):
    """Base of estimators that learn from private rows of a box.

    Children say in ``_learn`` what they compute from rows of the cube
    ``[-1, 1]**d`` and a budget, and in ``_released`` what comes out.
    """

    _parameter_constraints = {
        "epsilon": [Interval(Real, 0, None, closed="right")],
        "delta": [Interval(Real, 0, 1, closed="left")],
        "bounds": ["array-like", dict, None],
        "bounds_share": [Interval(Real, 0, 1, closed="neither")],
        "adjacency": [StrOptions({"add-remove", "replace-one"})],
        **GroupsMixin._group_constraints,
        "accountant": [PrivacyAccountant, None],
        "random_state": ["random_state", np.random.Generator],
    }
    _gaussian_only = True
    _always_finds_bounds = False

    @fill_doc
    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Pay, and learn from the rows.

        %(fit_rows_or_parts)s

        %(refused_or_not_paid)s
        """
        if (parts := parts_elsewhere(X)) is not None:
            return self.fit_chunks(parts)
        self._check_parameters()
        (table,) = self._first_rows([X])
        rows = self._check_table(table)
        return self._pay_and_learn(Rows.of_array(rows, Columns.of(table, rows.shape[1])))

    @fill_doc
    def fit_chunks(self, chunks: Chunks) -> Self:
        """Pay, and learn from rows that come in chunks.

        The result is that of :meth:`fit` on all rows together, in the memory
        of one chunk; with ``groups``, and of a number for each person, whose
        rows may be in several chunks.

        %(chunks_of_rows)s

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or a chunk is refused, or if ``chunks`` is an
            iterator. Nothing is spent.
        PrivacyBudgetExceeded
            If the accountant's budget does not cover the fit.
        """
        self._check_parameters()
        check = partial(self._check_table, ensure_min_samples=0)
        return self._pay_and_learn(open_chunks(self, chunks, check))

    def _check_table(self, table, **options):
        """Rows of a table; what its columns do not allow is refused before other rows are read."""
        rows = check_rows(self, table, **options)
        self._check_features(rows.shape[1])
        self._public_bounds(rows.shape[1])
        return rows

    def _public_bounds(self, n_features):
        """Bounds of columns, NaN where they are private; a box that no number fits is refused."""
        names = getattr(self, "feature_names_in_", ())
        low, high = bounds_by_column(self.bounds, n_features, names)
        private = np.isnan(low)
        self._scaled_box(np.where(private, -1.0, low), np.where(private, 1.0, high))
        return low, high

    def _check_parameters(self):
        self._validate_params()
        self._check_groups()
        if self._gaussian_only and self._delta() == 0:
            raise ValueError(
                "delta must be positive, since the noise is Gaussian. DPLloyd, DPTree and DPCube "
                "are pure with delta=0."
            )

    def _delta(self):
        """Failure probability; estimators without the parameter are pure."""
        return float(getattr(self, "delta", 0.0))

    def _check_features(self, n_features):
        """Refuse rows of the wrong width, before anything is paid."""

    def _pay_and_learn(self, rows):
        low, high = self._public_bounds(rows.n_features)
        total, rho = self._loss()
        finds_bounds = np.isnan(low).any() or self._always_finds_bounds
        guarantee = self._after_steps(self._guarantee(rho, finds_bounds))
        n_private = int(np.isnan(low).sum())
        with self._paid(guarantee, 2) as (seed, public_seed):
            budget = self._budget(total, seed)
            self._forget()
            try:
                low, high, budget = self._find_bounds(rows, low, high, budget)
                budget, many_clipped = self._count_clipped(rows, low, high, budget)
                box = self._scaled_box(low, high)
                rng = public_generator(public_seed)
                self._learn(rows.map(box.to_cube), budget, rng, box)
            except BaseException:
                # Half of a release carries no guarantee.
                self._forget()
                raise
            self.bounds_, self.privacy_guarantee_ = (low, high), guarantee
        # Where warnings are errors, the release is there all the same.
        if many_clipped:
            self._warn_of_clipping(n_private)
        self._warn_of_release()
        return self

    def _warn_of_clipping(self, n_private):
        remedy = "wider bounds, or none"
        if n_private:
            remedy = (
                f"public bounds, since the noise hides those of {n_private} columns, fewer "
                "columns, or a larger epsilon"
            )
        warn_caller(
            f"{self.clipped_share_:.0%} of the rows lie beyond the bounds and are clipped to "
            f"them: give {remedy}."
        )

    def _warn_of_release(self):
        """Warn of what the released attributes show to be other than was asked for."""

    def _budget(self, total, seed):
        kind = LaplaceBudget if self._delta() == 0 else GaussianBudget
        return kind(self._of_row(total), self.adjacency, NoiseSource(seed))

    def _rows_for_bounds(self, n_features):
        """Rows with fewer of which private bounds are hardly more than noise; 0 of public ones."""
        n_private = int(np.isnan(self._public_bounds(n_features)[0]).sum())
        budget, share = self._budget(self._loss()[0], 0), float(self.bounds_share)
        return rows_for_box(n_private, budget, share) if n_private else 0.0

    def _scaled_box(self, low, high):
        return Box.centred(low, high, self._one_unit())

    def _find_bounds(self, rows, low, high, budget):
        """Bounds with private ones where they are NaN, and the budget that is left."""
        private = np.flatnonzero(np.isnan(low))
        if len(private) == 0:
            return low, high, budget
        *ends, spent = private_box(rows.selected(private), budget, float(self.bounds_share))
        low[private], high[private] = ends
        return low, high, budget.rest(spent)

    def _count_clipped(self, rows, low, high, budget):
        """Release the share of the rows beyond the bounds; the budget left, and if it is large."""
        outside = rows.sum(partial(count_beyond, low=low, high=high))
        counts = np.array([rows.n_rows - outside, outside])
        share = _CLIPPED_SHARES[budget.norm]
        noisy, sd = budget.counts(counts, 1, share)
        n = max(noisy.sum(), 1.0)
        self.clipped_share_ = float(np.clip(noisy[1] / n, 0.0, 1.0))
        return budget.rest(share), bool(noisy[1] - _CERTAIN * sd > _MANY * n)

    def _forget(self):
        """Remove what an earlier fit learnt."""
        for name in [n for n in vars(self) if n.endswith("_") and n not in _OF_INPUT]:
            delattr(self, name)

    def _one_unit(self):
        """Whether all columns are divided by the same number, as isotropic shapes need."""
        return False

    def _loss(self):
        """Parameter of the budget, of which k rows lose k times as much, and zCDP of the fit."""
        epsilon, delta = float(self.epsilon), self._delta()
        return (epsilon, pure_rho(epsilon)) if delta == 0 else self._gaussian_loss(epsilon, delta)

    @staticmethod
    def _gaussian_loss(epsilon, delta):
        mu = gaussian_mu(epsilon, delta)
        return mu, gaussian_rho(mu)

    def _guarantee_ahead(self, n_features):
        self._check_parameters()
        return self._guarantee(self._loss()[1], self.bounds is None or self._always_finds_bounds)

    def _guarantee(self, rho, finds_bounds):
        exact = math.isinf(self.epsilon)
        bounds = "bounds, " if finds_bounds else ""
        return PrivacyGuarantee(
            epsilon=float(self.epsilon),
            delta=0.0 if exact else self._delta(),
            adjacency=self.adjacency,
            unit=self._unit(),
            mechanism=self._mechanism(),
            released=f"{bounds}the share of rows beyond the bounds, {self._released()}",
            seeded=self.random_state is not None,
            rho=rho,
        )

    def _mechanism(self):
        if self._delta() == 0:
            return "discrete Laplace mechanism, composed"
        return "discrete Gaussian mechanism, composed exactly"

    def _rows(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        rows = check_rows(self, X, reset=False)
        # Nothing is nearer to one cluster than to another from there on, and no square overflows.
        low, high = self.bounds_
        return np.clip(rows, low - _FAR * (high - low), high + _FAR * (high - low))

    def __sklearn_tags__(self):
        """Say what a release is."""
        tags = super().__sklearn_tags__()
        tags.privacy.adjacency = self.adjacency
        tags.privacy.ragged = True
        return tags
