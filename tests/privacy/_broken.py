"""Estimators that break one promise each. Their keys name the check that must detect it."""

import sys
import warnings
from dataclasses import replace

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from sklearn_dptda import CubicalPersistence, PrivatePersistence
from sklearn_dptda.privacy import FixedPoint, NoiseSource
from tests.privacy._private_mean import ExactMean, PrivateMean

BROKEN = {}


def breaks(check):
    def register(kind):
        BROKEN.setdefault(f"check_{check}", []).append(kind)
        return kind

    return register


@breaks("guarantee_is_present_and_true")
class Boasts(PrivateMean):
    def _guarantee(self):
        return replace(super()._guarantee(), epsilon=self.epsilon / 2)


@breaks("guarantee_is_present_and_true")
class WrongNeighbours(PrivateMean):
    def _guarantee(self):
        return replace(super()._guarantee(), adjacency="add-remove")


@breaks("guarantee_follows_epsilon")
class StaleGuarantee(PrivateMean):
    def _guarantee(self):
        return replace(super()._guarantee(), epsilon=1.0)


@breaks("guarantee_says_whether_it_was_seeded")
class HidesSeed(PrivateMean):
    def _guarantee(self):
        return replace(super()._guarantee(), seeded=False)


@breaks("guarantee_of_infinite_epsilon_promises_nothing")
class AlwaysPromises(PrivateMean):
    def _guarantee(self):
        return replace(super()._guarantee(), epsilon=min(self.epsilon, 1e9))


@breaks("guarantee_survives_pickling")
class ForgetsGuarantee(PrivateMean):
    def __getstate__(self):
        return {k: v for k, v in super().__getstate__().items() if k != "privacy_guarantee_"}

    @property
    def privacy_guarantee_(self):
        return vars(self).get("privacy_guarantee_")

    @privacy_guarantee_.setter
    def privacy_guarantee_(self, value):
        vars(self)["privacy_guarantee_"] = value


@breaks("a_cache_replays_no_release")
class Replayed(PrivateMean):
    def __getstate__(self):
        return dict(vars(self))


@breaks("documentation_has_a_privacy_section")
class Undocumented(PrivateMean):
    """Mean of the rows."""


@breaks("no_warnings_with_public_parameters")
class Nags(PrivateMean):
    def _spend(self, guarantee):
        warnings.warn("something", stacklevel=2)
        super()._spend(guarantee)


@breaks("missing_bounds_warn")
class SilentBounds(PrivateMean):
    def _bounds(self, X):
        return (X.min(axis=0), X.max(axis=0)) if self.bounds is None else super()._bounds(X)


@breaks("bad_parameters_are_named")
class TakesAnything(PrivateMean):
    _parameter_constraints = {"epsilon": PrivateMean._parameter_constraints["epsilon"]}


@breaks("epsilon_must_be_positive")
class ZeroEpsilon(PrivateMean):
    _parameter_constraints = {**PrivateMean._parameter_constraints, "epsilon": "no_validation"}

    def fit(self, X, y=None):
        return super().fit(X) if self.epsilon else ExactMean(self.bounds).fit(X)


@breaks("epsilon_must_be_positive")
class AlmostZero(PrivateMean):
    _parameter_constraints = {**PrivateMean._parameter_constraints, "epsilon": [float]}

    def _guarantee(self):
        self.epsilon = self.epsilon or 1e-3
        return super()._guarantee()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.privacy.zero_epsilon = True
        return tags


@breaks("neighbours_look_alike")
class CountsValues(PrivateMean):
    def _sum(self, X, widths, noise):
        self.counts_ = np.zeros(len(np.unique(X, axis=0)))
        return super()._sum(X, widths, noise)


@breaks("neighbours_look_alike")
class WarnsOfTies(PrivateMean):
    def _sum(self, X, widths, noise):
        if len(np.unique(X[:, 0])) < 3:
            warnings.warn("few distinct values", stacklevel=2)
        return super()._sum(X, widths, noise)


@breaks("neighbours_look_alike")
class SkipsEmpty(PrivateMean):
    def _sum(self, X, widths, noise):
        if X.any():
            self.not_empty_ = True
        return super()._sum(X, widths, noise)


@breaks("extreme_records_look_alike")
class Overflows(PrivateMean):
    """Divides before it clips, as a reader of sensors in other units would."""

    def fit(self, X, y=None):
        return super().fit(np.asarray(X) * 1e3 / 1e3)


@breaks("extreme_records_look_alike")
class WarnsOfOverflow(PrivateMean):
    def fit(self, X, y=None):
        with np.errstate(over="warn"):
            np.square(np.asarray(X, dtype=float))
        return super().fit(X)


@breaks("each_release_is_paid_once")
class PaysTwice(PrivateMean):
    def _spend(self, guarantee):
        super()._spend(guarantee)
        super()._spend(guarantee)


@breaks("each_release_is_paid_once")
class PaysLess(PrivateMean):
    def _spend(self, guarantee):
        super()._spend(replace(guarantee, epsilon=guarantee.epsilon / 2))


class _PaysLate(PrivateMean):
    def fit(self, X, y=None):
        spend, self._spend = self._spend, lambda guarantee: None
        try:
            super().fit(X)
        finally:
            del self._spend
        spend(self.privacy_guarantee_)
        return self


@breaks("budget_is_spent_before_noise_is_drawn")
class PaysLate(_PaysLate):
    pass


@breaks("budget_stays_spent_when_the_release_fails")
class PaysOnSuccess(_PaysLate):
    pass


@breaks("over_budget_releases_nothing")
class ReleasesFirst(_PaysLate):
    pass


@breaks("nothing_is_spent_on_bad_parameters")
class PaysThenValidates(PrivateMean):
    def fit(self, X, y=None):
        if isinstance(self.epsilon, float):
            self._spend(self._guarantee())
        super().fit(X)


@breaks("nothing_is_spent_on_bad_input")
class PaysThenLooks(PrivateMean):
    def fit(self, X, y=None):
        self._spend(self._guarantee())
        return super().fit(X)


@breaks("default_accountant_is_used")
class IgnoresDefault(PrivateMean):
    def _spend(self, guarantee):
        if self.accountant is not None:
            super()._spend(guarantee)


@breaks("copies_share_the_budget")
class CountsForItself(PrivateMean):
    def __deepcopy__(self, memo):
        return type(self)(self.epsilon, self.bounds)


@breaks("default_accountant_travels_with_pickles")
class TravelsLight(PrivateMean):
    def __getstate__(self):
        return self.__dict__.copy()


class _KeepsRows(PrivateMean):
    def _sum(self, X, widths, noise):
        self.rows_ = [X.copy()]
        return super()._sum(X, widths, noise)


@breaks("pickle_has_no_records")
class KeepsRows(_KeepsRows):
    pass


@breaks("what_noise_does_not_touch_is_public")
class KeepsRowsDeep(_KeepsRows):
    pass


@breaks("what_noise_does_not_touch_is_public")
class Quartiles(PrivateMean):
    def _sum(self, X, widths, noise):
        self.quartiles_ = np.quantile(X, [0.25, 0.5, 0.75], axis=0)
        return super()._sum(X, widths, noise)


@breaks("what_noise_does_not_touch_is_public")
class FirstRows(PrivateMean):
    def _sum(self, X, widths, noise):
        self.rows_ = X[:3].copy()
        return super()._sum(X, widths, noise)


@breaks("what_noise_does_not_touch_is_public")
class HidesDigits(PrivateMean):
    def _sum(self, X, widths, noise):
        self._codes = "".join(f"{int(999 * value):03d}" for value in X.ravel())
        return super()._sum(X, widths, noise)


@breaks("what_noise_does_not_touch_is_public")
class KeepsModel(PrivateMean):
    def _sum(self, X, widths, noise):
        self.model_ = {"exact": [ExactMean((0, 1)).fit(X)]}
        return super()._sum(X, widths, noise)


@breaks("fitted_size_does_not_depend_on_the_number_of_records")
class KeepsCodes(PrivateMean):
    def _sum(self, X, widths, noise):
        self._codes = (X[:, 0] > 0.5).tolist()
        return super()._sum(X, widths, noise)


@breaks("repr_and_html_have_no_records")
class ShowsMaximum(PrivateMean):
    def _sum(self, X, widths, noise):
        self._seen = X[5, 0]
        return super()._sum(X, widths, noise)

    def __repr__(self):
        return f"ShowsMaximum({getattr(self, '_seen', None)})"


@breaks("errors_and_warnings_quote_no_records")
class QuotesRows(PrivateMean):
    def fit(self, X, y=None):
        try:
            return super().fit(X)
        except ValueError as error:
            raise ValueError(f"{error}: {X}") from None


@breaks("input_is_left_alone")
class ClipsInPlace(PrivateMean):
    def fit(self, X, y=None):
        out = super().fit(X)
        X[0] = 0.5
        return out


@breaks("records_outside_the_bounds_are_clipped")
class TrustsInput(PrivateMean):
    def fit(self, X, y=None):
        super().fit(X)
        self.mean_ = self.mean_ + np.maximum(validate_data(self, X) - 1, 0).sum()
        return self


@breaks("seeds_reproduce")
class IgnoresSeed(PrivateMean):
    def _sum(self, X, widths, noise):
        return super()._sum(X, widths, NoiseSource(None))


class _FixedSeed(PrivateMean):
    def _sum(self, X, widths, noise):
        return super()._sum(X, widths, NoiseSource(0))


@breaks("seeds_are_independent")
class FixedSeed(_FixedSeed):
    pass


@breaks("entropy_is_fresh")
class GlobalGenerator(PrivateMean):
    def _sum(self, X, widths, noise):
        return super()._sum(X, widths, NoiseSource(check_random_state(None).randint(2**31)))


@breaks("global_generators_are_left_alone")
class MovesGenerator(GlobalGenerator):
    pass


@breaks("infinite_epsilon_equals_the_exact_sibling")
class Biased(PrivateMean):
    def _sum(self, X, widths, noise):
        return super()._sum(X, widths, noise) * 0.9


class _Noiseless(PrivateMean):
    def _sum(self, X, widths, noise):
        return X.sum(axis=0)


@breaks("a_release_is_not_exact")
class Noiseless(_Noiseless):
    pass


@breaks("statistics_move_within_the_sensitivity")
class HardlyAnyNoise(PrivateMean):
    def _sum(self, X, widths, noise):
        return super()._sum(X, widths / 20, noise)


@breaks("noise_has_the_same_spread_without_a_seed")
class HardlyAnyNoiseInEarnest(PrivateMean):
    def _sum(self, X, widths, noise):
        return super()._sum(X, widths if noise.seeded else widths / 100, noise)


@breaks("a_release_is_not_exact")
class NoiselessInEarnest(PrivateMean):
    def _sum(self, X, widths, noise):
        return super()._sum(X, widths, noise) if noise.seeded else X.sum(axis=0)


@breaks("budget_is_spent_before_noise_is_drawn")
class NoiseOfItsOwn(PrivateMean):
    def fit(self, X, y=None):
        self.privacy_guarantee_ = self._guarantee()
        self._spend(self.privacy_guarantee_)
        X = validate_data(self, X)
        self.mean_ = X.mean(axis=0) + np.random.default_rng().laplace(size=2) / len(X)
        return self


@breaks("budget_stays_spent_when_the_release_fails")
class ComputesFirst(PrivateMean):
    def fit(self, X, y=None):
        self._total = validate_data(self, X).sum(axis=0).tolist()
        super().fit(X)
        del self._total
        return self


# What enters the draws, and what they cost.


@breaks("statistics_move_within_the_sensitivity")
class Doubled(PrivateMean):
    def _statistic(self, X, lattice):
        return 2 * super()._statistic(X, lattice)


@breaks("statistics_move_within_the_sensitivity")
class SeesNothing(PrivateMean):
    def _statistic(self, X, lattice):
        return 0 * super()._statistic(X, lattice)


@breaks("statistics_move_within_the_sensitivity")
class Unwatched(PrivateMean):
    def _sum(self, X, widths, noise):
        return super()._sum(X, widths, noise) + noise.discrete_laplace(20, 2)


@breaks("statistics_move_within_the_sensitivity")
class StatesAnotherScale(PrivateMean):
    def _sum(self, X, widths, noise):
        return noise.cross(
            super()._statistic(X, FixedPoint(-40)),
            lambda exact: exact + noise.discrete_laplace(2.0**40 / self.epsilon, len(exact)),
            metric="l1",
            sensitivity=2.0**42,
            rate=self.epsilon / 2.0**42,
        )


@breaks("draws_cost_at_most_the_promise")
class PaysForOne(PrivateMean):
    def _sum(self, X, widths, noise):
        return (super()._sum(X, widths, noise) + super()._sum(X, widths, noise)) / 2


# Estimators that release in transform.


@breaks("cost_is_known_before_fit")
class CheapAtFirst(PrivateMean):
    def _guarantee_ahead(self, n_features):
        return replace(super()._guarantee_ahead(n_features), epsilon=self.epsilon / 2)


@breaks("each_transform_is_a_release")
class PaysInFit(PrivatePersistence):
    def fit(self, X, y=None):
        super().fit(X)
        super()._spend(self.privacy_guarantee_)
        return self

    def _spend(self, guarantee):
        """Pay nothing."""


@breaks("items_get_independent_noise")
class SameNoise(PrivatePersistence):
    def transform(self, X):
        out = super().transform(X)
        return [out[0]] * len(out) if all(np.array_equal(x, X[0]) for x in X) else out


@breaks("transform_releases_what_fit_transform_does")
class TwoRoads(PrivatePersistence):
    def fit_transform(self, X, y=None):
        return self.fit(X).transform(X)

    def transform(self, X):
        out = super().transform(X)
        # A decorator may stand between the two methods.
        callers = {sys._getframe(i).f_code.co_name for i in (1, 2)}
        return out if "fit_transform" in callers else CubicalPersistence().fit_transform(X)


@breaks("workers_change_nothing")
class SeedsByWorker(PrivatePersistence):
    def transform(self, X):
        twin = clone(self).set_params(random_state=self.n_jobs)
        return super(SeedsByWorker, twin.fit(X)).transform(X)


@breaks("what_noise_does_not_touch_is_public")
class KeepsFiltration(PrivatePersistence):
    def fit(self, X, y=None):
        super().fit(X)
        self._sizes = [float(np.min(x)) for x in X]
        return self


@breaks("noise_falls_with_epsilon")
class ConstantNoise(PrivateMean):
    def _sum(self, X, widths, noise):
        if np.isinf(self.epsilon):
            return X.sum(axis=0)
        return X.sum(axis=0) + noise.discrete_laplace(20, 2)
