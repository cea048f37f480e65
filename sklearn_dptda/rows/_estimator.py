"""The base class of estimators that pay once, in ``fit``, and learn from private rows."""

import math
import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import Chunks, FloatArray, IntArray
from sklearn_dptda.privacy import (
    NoiseSource,
    PrivacyAccountant,
    PrivacyGuarantee,
    PrivateEstimatorMixin,
    gaussian_mu,
)
from sklearn_dptda.privacy._every_estimator import with_progress, without_weights
from sklearn_dptda.privacy._guarantee import all_of_one_person
from sklearn_dptda.privacy._noise import LARGEST_SCALE, public_generator
from sklearn_dptda.privacy._risk import LossLaw
from sklearn_dptda.privacy._warnings import NoiseWarning, warn_caller
from sklearn_dptda.rows._far_rows import far_ends, without_far_rows
from sklearn_dptda.rows._localisation import rows_for_box
from sklearn_dptda.rows._moments import KEPT, FitBudget, GaussianBudget, LaplaceBudget
from sklearn_dptda.rows._public_box import BOUNDS_SHARE, PublicBox, Search
from sklearn_dptda.rows._rows import MASS, Box, Rows, count_beyond
from sklearn_dptda.rows._sizes import Logarithms
from sklearn_dptda.rows._tables import Coded, check_rows, open_chunks, with_gaps
from sklearn_dptda.utils._bounds import bounds_by_column
from sklearn_dptda.utils._frames import Columns, column_names, without_column
from sklearn_dptda.utils._people import (
    check_number_of_people,
    check_one_label,
    refuse_ids_as_feature,
    refuse_split_people,
    split_people,
    warn_of_ids,
)
from sklearn_dptda.utils._sklearn import Interval, StrOptions
from sklearn_dptda.utils._tasks import parts_elsewhere
from sklearn_dptda.utils._validation import check_cloud, first_places

# Accuracy only: each share is taken off the budget, whatever it is. The other constants decide on
# refusals that depend on public numbers, or are applied to what was released.

# Smallest share of the budget that any count of an estimator takes, if the caller's shares are left
# out of account.
LEAST_SHARE = 1e-3
# Shares that the caller chooses must leave something, for both sides.
SHARE = Interval(Real, 0.001, 0.999, closed="both")
# Share of the budget of a fit for counting the rows outside the bounds, by the norm of the noise.
# At epsilon 1, the noise is about 60 rows ("l2", delta=1e-6) or 94 rows ("l1"), and more after
# private bounds.
_SHARES_OF_CLIPPED_COUNT = {"l2": 0.005, "l1": 0.015}
# The same for counting the missing values of each column, if there may be any.
_SHARES_OF_MISSING = {"l2": 0.01, "l1": 0.03}
# Least share of known values by which sums are divided. With fewer, so few rows have both values of
# a product that it is better to be biased towards smaller covariances.
_LEAST_KNOWN = 0.5
# A fit warns if more than this share of the rows is outside the bounds ...
_MANY_CLIPPED = 0.05
# ... by a margin of this many standard deviations of the noise. Laplace noise exceeds the margin
# once in 40,000 fits, and Gaussian noise practically never.
_CERTAIN_DEVIATIONS = 7.0
# Rows to be assigned are clipped at this many widths of the box. At this distance, all centres are
# equally near, and no square overflows.
_FAR_WIDTHS = 1e50
_LEARNT_FROM_COLUMNS = {"n_features_in_", "feature_names_in_"}
# Parts of a release that estimators store in attributes with private names.
_KEPT_PRIVATELY = {"_axes", "_box", "_columns", "_measure", "_noise", "_table"}

# Parameter constraints that all estimators of rows share.
ROW_PARAMETERS = {
    "epsilon": [Interval(Real, 0, None, closed="right")],
    "adjacency": [StrOptions({"add-remove", "replace-one"})],
    "groups": [str, None],
    "unit": [str],
    "accountant": [PrivacyAccountant, None],
    "random_state": ["random_state", np.random.Generator],
}


def many_clipped(outside: float, deviation: float, n_rows: float) -> bool:
    """Whether a noisy number of rows outside the bounds is so large that the fit must warn."""
    return bool(outside - _CERTAIN_DEVIATIONS * deviation > _MANY_CLIPPED * n_rows)


class PrivateRowsEstimator(PrivateEstimatorMixin):
    """Base class of estimators that pay once, in ``fit``, and learn from private rows.

    :meth:`fit` and :meth:`fit_chunks` check, pay for the guarantee that ``_guarantee_of`` returns,
    and call ``_release``. Subclasses override ``_learn`` and ``_released``, and receive rows of the
    cube ``[-1, 1]**d`` and the rest of the budget. Only releases of another kind, such as a box,
    override ``_guarantee_of`` and ``_release``.

    With ``groups``, the privacy unit is a person, whose rows have the total weight ``rows.mass``.
    Proof: doc/theory/people.md, "Tables of people".
    """

    _parameter_constraints = {
        **ROW_PARAMETERS,
        "delta": [Interval(Real, 0, 1, closed="left")],
        "bounds": ["array-like", dict, None],
    }

    # Whether a fit learns a mixture or k-means, whose components can be merged.
    _has_mixture = False
    # Search for narrower bounds within given ones, if the fit makes one.
    _search: Search | None = None
    # Whether columns over decades count by their logarithms, if their units are to be found, and
    # rows far outside a box that was found are left out.
    _adapts_to_columns = False
    # A fit has two seeds: one for its noise, and one for public randomness.
    _n_seeds = 2

    # The steps of every fit, from the table to the release.

    @fill_doc
    @without_weights
    def fit(self, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None) -> Self:
        """Pay, and learn from the rows.

        %(fit_rows_or_parts)s

        %(refused_or_not_paid)s
        """
        if (parts := parts_elsewhere(X)) is not None:
            self._refuse_ids_of_parts(groups)
            return self.fit_chunks(parts)
        self._check_parameters()
        for remark in self._pay_and_learn(self._rows_of(X, groups)):
            warn_caller(remark, NoiseWarning)
        return self

    @fill_doc
    def fit_chunks(self, chunks: Chunks) -> Self:
        """Pay, and learn from rows that come in chunks.

        The result is the same as that of :meth:`fit` on all rows, but only one chunk is in
        memory at a time. With ``groups``, the rows of a person may be in several chunks, and
        one number for each person is in memory as well.

        %(chunks_of_rows)s

        Returns
        -------
        self

        %(refused_or_not_paid)s
        """
        self._check_parameters()
        check = partial(self._check_table, ensure_min_samples=0)
        rows = open_chunks(self, chunks, check, self._coding())
        warn_of_ids(getattr(self, "feature_names_in_", ()))
        rows = replace(rows, unit=self._unit())
        for remark in self._pay_and_learn(rows):
            warn_caller(remark, NoiseWarning)
        return self

    def _fit_clouds(
        self, given: Any, ids: list[list[Any]] | None = None, unit: str = "one point of a cloud"
    ) -> list[str]:
        """Pay, and learn from the points of all clouds together; return the texts of warnings.

        With ``ids``, all points of a person in a cloud have the total weight of one point.
        """
        self._check_parameters()
        clouds: list[FloatArray] = []
        # A cloud that occurs several times is used once. Otherwise, its points would count several
        # times.
        firsts = sorted(set(first_places(given)))
        for i in firsts:
            d = clouds[0].shape[1] if clouds else None
            clouds.append(check_cloud(given[i], f"X[{i}]", d, min_points=1))
        d = self.n_features_in_ = clouds[0].shape[1]
        columns, people = Columns.of(clouds[0], d), None
        self._check_columns(columns)
        if ids is not None:
            people = [(i, person) for i in firsts for person in ids[i]]
        return self._pay_and_learn(Rows.of_array(np.concatenate(clouds), columns, people, unit))

    def _check_parameters(self) -> None:
        """Refuse invalid parameters before any record is read."""
        self._validate_params()
        self._check_epsilon()

    @staticmethod
    def _refuse_ids_of_parts(groups: Any) -> None:
        if groups is not None:
            raise ValueError(
                "The argument groups of fit needs rows in memory. Set the parameter groups to the "
                "name of the column of ids instead."
            )

    def _rows_of(self, X: Any, ids: Any, labels: FloatArray | None = None) -> Rows:
        """Rows in memory, with the labels as their last column, and with the privacy unit."""
        given, people = ids, None
        if self.groups is not None or given is not None:
            X, people = self._split_people(X, given)
            refuse_ids_as_feature(X, given)
        warn_of_ids(column_names(X))
        table, columns = self._check_table(X)
        if labels is not None:
            self._check_labels(len(table), labels, people)
            table = np.column_stack([table, labels])
        return Rows.of_array(table, columns, people, self._unit(given is not None))

    def _split_people(self, X: Any, ids: Any) -> tuple[Any, Any]:
        """Return a table without ids, and valid ids of at least two people."""
        X, people = split_people(X, self.groups, ids)
        check_number_of_people(len(set(people)))
        refuse_split_people(people, self.groups)
        return X, people

    @staticmethod
    def _check_labels(n_rows: int, labels: FloatArray, people: Any) -> None:
        """Refuse labels that are not one for each row, or not one for each person."""
        if len(labels) != n_rows:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: {n_rows} in X, "
                f"{len(labels)} in y."
            )
        if people is not None:
            pairs = set(zip(people, labels.tolist(), strict=True))
            check_one_label(len(set(people)), len(pairs))

    def _refuse_later(self, X: Any, y: Any = None, groups: Any = None) -> None:
        """Refuse ids and labels that ``fit`` would refuse, before an earlier step is paid for.

        ``X`` is the input of the earlier step, which has the same rows, and the column of ids.
        """
        if parts_elsewhere(X) is None:
            self._refuse_labels(X, y, self._people_of(X, groups))

    def _people_of(self, X: Any, ids: Any) -> Any:
        """Return valid ids, or None without ids, or if an earlier step may add their column."""
        if ids is None and self.groups not in column_names(X):
            return None
        return self._split_people(X, ids)[1]

    def _refuse_labels(self, X: Any, y: Any, people: Any) -> None:
        """Refuse labels of rows, if the estimator learns from labels."""

    def _check_table(self, table: Any, **options: Any) -> tuple[FloatArray, Columns]:
        """Check a table before further ones are read, and return its rows and columns."""
        coded = self._coding()(table)
        rows = check_rows(self, coded.table, coded.gaps, **options)
        columns = Columns.of(table, rows.shape[1], coded.choices)
        columns = columns.may_miss([columns.names[place] for place in coded.gaps])
        self._check_columns(columns)
        return rows, columns

    def _check_columns(self, columns: Columns) -> None:
        """Refuse columns that do not fit the parameters, before anything is paid."""
        self._public_box(len(columns.names))

    def _coding(self) -> Callable[[Any], Coded]:
        """Function from a table to one of numbers, and to what is public about its columns."""
        return partial(with_gaps, getattr(self, "missing", False))

    @with_progress
    def _pay_and_learn(self, rows: Rows) -> list[str]:
        """Pay, and make the whole release or none, because half a release has no guarantee.

        Returns the texts of warnings, which the caller issues when the release is complete, because
        a warning may be turned into an error.
        """
        # Later releases that use the bounds or the centres of this release count it only once.
        self._check_noise(rows)
        own = replace(self._guarantee_of(rows), release_id=uuid.uuid4().hex)
        guarantee = self._after_steps(own)
        with self._paid(guarantee, self._n_seeds, records=self._records(rows)) as seeds:
            self._forget()
            try:
                remarks = self._release(rows, guarantee, *seeds)
            except BaseException:
                self._forget()
                raise
            self.privacy_guarantee_ = guarantee
        seeds.keep_fitted(self)
        return remarks

    def _check_noise(self, rows: Rows) -> None:
        """Refuse public numbers for which the noise of a count would not fit into 64 bits."""
        share, budget = LEAST_SHARE * BOUNDS_SHARE, self._budget(rows.mass)
        for name in ("marginal_share", "covariance_share"):
            if given := float(getattr(self, name, None) or 0.0):
                share *= min(given, 1 - given)
        if budget.scale_of_counts(rows.n_features, share) > LARGEST_SCALE:
            raise ValueError(
                f"epsilon={float(self.epsilon):g} is too small for {self.n_features_in_} columns "
                f"and the privacy unit {rows.unit!r}: the noise of a count does not fit into 64 "
                "bits. Raise epsilon, select fewer columns, or move shares towards 0.5."
            )

    def _records(self, rows: Rows) -> Any:
        """All inputs of a fit, for a digest; None if rows are not in memory."""
        return rows.in_memory()

    def _forget(self) -> None:
        """Remove the results of an earlier fit."""
        released = {name for name in vars(self) if name.endswith("_")} - _LEARNT_FROM_COLUMNS
        for name in released | (_KEPT_PRIVATELY & vars(self).keys()):
            delattr(self, name)

    def __getattr__(self, name: str) -> Any:
        # It is only called for attributes that do not exist.
        why = ""
        if name == "labels_":
            why = (
                ": labels of the rows of fit are not private. predict(X) computes them, for those "
                "who may see X"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{why}")

    def __sklearn_is_fitted__(self) -> bool:
        # A failed fit has learnt only the columns.
        return hasattr(self, "privacy_guarantee_")

    def _unit(self, ids_are_given: bool = False) -> str:
        """Privacy unit, for the guarantee."""
        if self.groups is None and not ids_are_given:
            return str(self.unit)
        where = ", by the groups of fit" if self.groups is None else ""
        return all_of_one_person(self.unit, self.groups, where)

    # The default release: bounds, the share of rows outside them, and the results of ``_learn``.

    def _guarantee_of(self, rows: Rows) -> PrivacyGuarantee:
        """Guarantee of a fit on these rows, computed from public information about them."""
        private = self._public_box(rows.n_features).private
        return self._guarantee(bool(private.any()), rows.unit)

    def _guarantee_ahead(self, n_features: int | None) -> PrivacyGuarantee:
        self._check_parameters()
        return self._guarantee(self.bounds is None, self._unit())

    def _guarantee(self, some_are_private: bool, unit: str) -> PrivacyGuarantee:
        found = some_are_private or self._search is not None
        given = not isinstance(units := getattr(self, "units", "columns"), str) or units == "bounds"
        released = ["bounds"] if found else []
        if self._adapts_to_columns:
            released.append(f"units {'' if given or not found else 'and logarithms '}of columns")
        released += ["the number of rows", "the share of rows outside the bounds"]
        if getattr(self, "missing", False):
            released.append("the share of missing values of each column")
        mechanism, (_, law) = self._mechanism(), self._loss()
        return PrivacyGuarantee(
            epsilon=float(self.epsilon),
            delta=0.0 if math.isinf(self.epsilon) else self._delta(),
            adjacency=self.adjacency,
            unit=unit,
            mechanism=mechanism,
            released=", ".join([*released, self._released()]),
            seeded=self.random_state is not None,
            law=law,
        )

    def _release(
        self, rows: Rows, guarantee: PrivacyGuarantee, seed: Any, public_seed: Any = None
    ) -> list[str]:
        """Set the released attributes and return the texts of warnings, after the payment."""
        rng, public = public_generator(public_seed), self._public_box(rows.n_features)
        rows, box, logarithms, budget = public.locate(
            rows, self._budget(rows.mass, NoiseSource(seed))
        )
        public = public.in_logarithms(logarithms)
        if self._adapts_to_columns:
            self.logarithms_ = logarithms.scales
        rows, budget, n, remarks = self._count_clipped(rows, box, budget, public)
        rows, budget = self._count_missing(rows, n, budget)
        self.units_ = box.unit
        remarks += self._learn(rows.map(box.to_cube), budget, rng, box) or []
        self.bounds_ = logarithms.back(box.low), logarithms.back(box.high)
        within_noise = getattr(self, "within_noise_", None)
        if within_noise is not None and within_noise.all():
            remarks.append(
                f"At epsilon={float(self.epsilon):g}, each of the {len(within_noise)} clusters of "
                "this release has no more rows than noise can produce. Raise epsilon, or ask for "
                "fewer clusters."
            )
        return remarks

    def _learn(
        self, rows: Rows, budget: FitBudget, rng: np.random.Generator, box: Box
    ) -> list[str] | None:
        """Learn from rows of the cube, which ``box`` converts; ``rng`` is a public generator.

        Returns the texts of warnings, if there are any.
        """
        raise NotImplementedError

    def _released(self) -> str:
        """Description of the results of :meth:`_learn`, for the guarantee."""
        raise NotImplementedError

    def _delta(self) -> float:
        """The delta of the guarantee; it is zero for estimators without this parameter."""
        return float(getattr(self, "delta", 0.0))

    def _loss(self) -> tuple[float, LossLaw]:
        """Parameter of the budget, which scales linearly with the number of rows, and its law."""
        epsilon, delta = float(self.epsilon), self._delta()
        if delta == 0:
            return epsilon, LossLaw((epsilon,))
        return self._gaussian_loss(epsilon, delta)

    @staticmethod
    def _gaussian_loss(epsilon: float, delta: float) -> tuple[float, LossLaw]:
        mu = gaussian_mu(epsilon, delta)
        return mu, LossLaw(mu=mu)

    def _mechanism(self) -> str:
        if self._delta() == 0:
            return "discrete Laplace mechanism, composed"
        return "discrete Gaussian mechanism, composed exactly"

    def _budget(self, mass: int, noise: NoiseSource | None = None) -> FitBudget:
        """Budget for rows of weight one, such that the rows of one record spend the whole loss.

        Scales can be computed without a source of noise.
        """
        kind = LaplaceBudget if self._delta() == 0 else GaussianBudget
        return kind(self._loss()[0] / mass, self.adjacency, cast(NoiseSource, noise), mass)

    # Bounds, public or missing, and the rows outside them.

    def _public_box(self, n_features: int) -> PublicBox:
        """What is public about the box of the rows; unusable bounds and units are refused."""
        names = getattr(self, "feature_names_in_", ())
        low, high = bounds_by_column(self.bounds, n_features, names)
        return PublicBox(low, high, search=self._search, logarithms=self._adapts_to_columns)

    def _rows_for_bounds(self, n_features: int) -> float:
        """Number of rows below which private bounds are mostly noise; 0 if bounds are public."""
        n_private = int(self._public_box(n_features).private.sum())
        if n_private == 0:
            return 0.0
        mass = 1 if self.groups is None else MASS
        return rows_for_box(n_private, self._budget(mass), BOUNDS_SHARE) / mass

    def _count_clipped(
        self, rows: Rows, box: Box, budget: FitBudget, public: PublicBox
    ) -> tuple[Rows, FitBudget, float, list[str]]:
        """Release the share of rows outside the bounds.

        Returns the rows without those that are left out, the remaining budget, the noisy number of
        these rows, and a warning, if there is one.
        """
        ends = [(box.low, box.high)]
        adapts = self._adapts_to_columns and public.is_wider_than(box)
        near = public.clipped(rows) if adapts else rows
        if adapts:
            ends.append(far_ends(box))
        beyond = [
            each.sum(partial(count_beyond, low=low, high=high))
            for each, (low, high) in zip((rows, near), ends, strict=False)
        ]
        # Rows inside, outside, and far outside.
        counts = -np.diff([rows.n_rows, *beyond, 0])
        share = _SHARES_OF_CLIPPED_COUNT[budget.norm]
        noisy, deviation = budget.noisy_counts(counts, 1, share)
        budget, n, left_out = budget.rest(share), max(noisy.sum(), 1.0), False
        outside = noisy[1:].sum()
        self.clipped_share_ = float(np.clip(outside / n, 0.0, 1.0))
        if adapts:
            near, budget, left_out = without_far_rows(near, box, budget, noisy[2], deviation, n)
            rows = near if left_out else rows
        remarks = []
        # The noise of a sum of counts.
        if many_clipped(outside, math.sqrt(len(beyond)) * deviation, n):
            how = "clipped to them, or left out" if left_out else "clipped to them"
            remarks.append(
                f"{self.clipped_share_:.0%} of the rows lie outside the bounds and are {how}: give "
                f"{public.remedy(box)}."
            )
        return rows, budget, n - noisy[2] if left_out else n, remarks

    def _count_missing(self, rows: Rows, n: float, budget: FitBudget) -> tuple[Rows, FitBudget]:
        """Release the share of missing values of each column, if there may be any.

        ``n`` is the noisy number of rows. Returns the rows with what the estimator may rely on, and
        the remaining budget.
        Proof: doc/theory/private_mixtures.md, "Missing values".
        """
        if not hasattr(self, "missing"):
            return rows, budget
        self.missing_share_ = np.zeros(self.n_features_in_)
        # Labels, which may follow the columns, are never missing.
        places = sorted(cast(Columns, rows.columns).gaps & set(range(self.n_features_in_)))
        if not places:
            return rows, budget
        counts = rows.selected(places).sum(_missing_by_column)
        share = _SHARES_OF_MISSING[budget.norm]
        noisy, deviation = budget.noisy_counts(counts, len(places), share)
        self.missing_share_[places] = np.clip(noisy / n, 0.0, 1.0)
        # Three standard deviations are left out, so that noise alone seldom makes sums larger.
        certain = np.clip((noisy - KEPT * deviation) / n, 0.0, 1 - _LEAST_KNOWN)
        known = np.ones(rows.n_features)
        known[places] = 1 - certain
        return replace(rows, known=known), budget.rest(share)

    # Rows after the fit.

    @property
    def _logarithms(self) -> Logarithms:
        """Which columns count by their logarithms."""
        return Logarithms.learnt_by(self, self.n_features_in_)

    def _rows(self, X: ArrayLike) -> FloatArray:
        """Rows that are to be assigned to the learnt components, with their logarithms."""
        rows = self._rows_as_given(X)
        return self._logarithms.of(rows)

    def _rows_as_given(self, X: ArrayLike) -> FloatArray:
        """Check rows that are to be assigned to the learnt components."""
        check_is_fitted(self)
        low, high = self.bounds_
        reach = _FAR_WIDTHS * (high - low)
        coded = self._coding()(without_column(X, getattr(self, "groups", None)))
        rows = check_rows(self, coded.table, coded.gaps, reset=False)
        return np.clip(rows, low - reach, high + reach)

    def __sklearn_tags__(self) -> Tags:
        """Return the tags of the estimator, including those of its privacy."""
        tags = super().__sklearn_tags__()
        tags.privacy.adjacency = self.adjacency
        tags.privacy.ragged = True
        tags.input_tags.allow_nan = bool(getattr(self, "missing", False))
        return tags


def _missing_by_column(X: FloatArray) -> IntArray:
    return np.isnan(X).sum(axis=0)
