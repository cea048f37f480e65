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


def twin(name, check, base=PrivateMean, **methods):
    """Define a class of this module, whose methods replace those of an honest one."""
    kind = type(name, (base,), {"__module__": __name__, **methods})
    globals()[name] = breaks(check)(kind)


# What a guarantee states instead of the truth.
LIES = {
    "Boasts": ("guarantee_is_present_and_true", lambda self: {"epsilon": self.epsilon / 2}),
    "WrongNeighbours": ("guarantee_is_present_and_true", lambda _: {"adjacency": "add-remove"}),
    "StaleGuarantee": ("guarantee_follows_epsilon", lambda _: {"epsilon": 1.0}),
    "HidesSeed": ("guarantee_says_whether_it_was_seeded", lambda _: {"seeded": False}),
    "AlwaysPromises": (
        "guarantee_of_infinite_epsilon_promises_nothing",
        lambda self: {"epsilon": min(self.epsilon, 1e9)},
    ),
}


def stating(lie):
    return lambda self: replace(PrivateMean._guarantee(self), **lie(self))


for name, (check, lie) in LIES.items():
    twin(name, check, _guarantee=stating(lie))

# What a fit keeps of the records.
KEPT = {
    "CountsValues": (
        "neighbours_look_alike",
        lambda X: {"counts_": np.zeros(len(np.unique(X, axis=0)))},
    ),
    "SkipsEmpty": ("neighbours_look_alike", lambda X: {"not_empty_": True} if X.any() else {}),
    "KeepsRows": ("pickle_has_no_records", lambda X: {"rows_": [X.copy()]}),
    "KeepsRowsDeep": ("what_noise_does_not_touch_is_public", lambda X: {"rows_": [X.copy()]}),
    "Quartiles": (
        "what_noise_does_not_touch_is_public",
        lambda X: {"quartiles_": np.quantile(X, [0.25, 0.5, 0.75], axis=0)},
    ),
    "FirstRows": ("what_noise_does_not_touch_is_public", lambda X: {"rows_": X[:3].copy()}),
    "HidesDigits": (
        "what_noise_does_not_touch_is_public",
        lambda X: {"_codes": "".join(f"{int(999 * value):03d}" for value in X.ravel())},
    ),
    "KeepsModel": (
        "what_noise_does_not_touch_is_public",
        lambda X: {"model_": {"exact": [ExactMean((0, 1)).fit(X)]}},
    ),
    "KeepsCodes": (
        "fitted_size_does_not_depend_on_the_number_of_records",
        lambda X: {"_codes": (X[:, 0] > 0.5).tolist()},
    ),
}
honest_sum = PrivateMean._sum


def keeping(kept):
    def _sum(self, X, widths, noise):
        vars(self).update(kept(X))
        return honest_sum(self, X, widths, noise)

    return _sum


for name, (check, kept) in KEPT.items():
    twin(name, check, _sum=keeping(kept))


@breaks("neighbours_look_alike")
class WarnsOfTies(PrivateMean):
    def _sum(self, X, widths, noise):
        if len(np.unique(X[:, 0])) < 3:
            warnings.warn("few distinct values", stacklevel=2)
        return super()._sum(X, widths, noise)


def of_global_generator(self, X, widths, noise):
    return honest_sum(self, X, widths, NoiseSource(check_random_state(None).randint(2**31)))


def constant_noise(self, X, widths, noise):
    return X.sum(axis=0) + (0 if np.isinf(self.epsilon) else noise.discrete_laplace(20, 2))


def paid_for_one(self, X, widths, noise):
    return (honest_sum(self, X, widths, noise) + honest_sum(self, X, widths, noise)) / 2


def of_another_scale(self, X, widths, noise):
    return noise.cross(
        PrivateMean._statistic(self, X, FixedPoint(-40)),
        lambda exact: exact + noise.discrete_laplace(2.0**40 / self.epsilon, len(exact)),
        metric="l1",
        sensitivity=2.0**42,
        rate=self.epsilon / 2.0**42,
    )


# What is released in place of the sum with noise.
SUMS = {
    "IgnoresSeed": ("seeds_reproduce", lambda s, X, w, _: honest_sum(s, X, w, NoiseSource(None))),
    "FixedSeed": ("seeds_are_independent", lambda s, X, w, _: honest_sum(s, X, w, NoiseSource(0))),
    "GlobalGenerator": ("entropy_is_fresh", of_global_generator),
    "MovesGenerator": ("global_generators_are_left_alone", of_global_generator),
    "Biased": (
        "infinite_epsilon_equals_the_exact_sibling",
        lambda s, X, w, noise: honest_sum(s, X, w, noise) * 0.9,
    ),
    "Noiseless": ("a_release_is_not_exact", lambda s, X, w, noise: X.sum(axis=0)),
    "NoiselessInEarnest": (
        "a_release_is_not_exact",
        lambda s, X, w, noise: honest_sum(s, X, w, noise) if noise.seeded else X.sum(axis=0),
    ),
    "HardlyAnyNoise": (
        "statistics_move_within_the_sensitivity",
        lambda s, X, w, noise: honest_sum(s, X, w / 20, noise),
    ),
    "HardlyAnyNoiseInEarnest": (
        "noise_has_the_same_spread_without_a_seed",
        lambda s, X, w, noise: honest_sum(s, X, w if noise.seeded else w / 100, noise),
    ),
    "Unwatched": (
        "statistics_move_within_the_sensitivity",
        lambda s, X, w, noise: honest_sum(s, X, w, noise) + noise.discrete_laplace(20, 2),
    ),
    "StatesAnotherScale": ("statistics_move_within_the_sensitivity", of_another_scale),
    "PaysForOne": ("draws_cost_at_most_the_promise", paid_for_one),
    "ConstantNoise": ("noise_falls_with_epsilon", constant_noise),
}
for name, (check, broken_sum) in SUMS.items():
    twin(name, check, _sum=broken_sum)

# What is counted in place of the records.
for name, factor in {"Doubled": 2, "SeesNothing": 0}.items():
    twin(
        name,
        "statistics_move_within_the_sensitivity",
        _statistic=lambda self, X, lattice, factor=factor: factor * lattice.sum(X),
    )

honest_spend = PrivateMean._spend


def spends(*guarantees):
    """Pay for other guarantees than the one that is given."""

    def _spend(self, guarantee):
        for paid in guarantees:
            honest_spend(self, paid(guarantee))

    return _spend


twin("PaysTwice", "each_release_is_paid_once", _spend=spends(replace, replace))
twin(
    "PaysLess",
    "each_release_is_paid_once",
    _spend=spends(lambda guarantee: replace(guarantee, epsilon=guarantee.epsilon / 2)),
)


@breaks("no_warnings_with_public_parameters")
class Nags(PrivateMean):
    def _spend(self, guarantee):
        warnings.warn("something", stacklevel=2)
        super()._spend(guarantee)


@breaks("default_accountant_is_used")
class IgnoresDefault(PrivateMean):
    def _spend(self, guarantee):
        if self.accountant is not None:
            super()._spend(guarantee)


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


class _PaysLate(PrivateMean):
    def fit(self, X, y=None):
        spend, self._spend = self._spend, lambda guarantee: None
        try:
            super().fit(X)
        finally:
            del self._spend
        spend(self.privacy_guarantee_)
        return self


for name, check in {
    "PaysLate": "budget_is_spent_before_noise_is_drawn",
    "PaysOnSuccess": "budget_stays_spent_when_the_release_fails",
    "ReleasesFirst": "over_budget_releases_nothing",
}.items():
    twin(name, check, _PaysLate)


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


@breaks("copies_share_the_budget")
class CountsForItself(PrivateMean):
    def __deepcopy__(self, memo):
        return type(self)(self.epsilon, self.bounds)


@breaks("default_accountant_travels_with_pickles")
class TravelsLight(PrivateMean):
    def __getstate__(self):
        return self.__dict__.copy()


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
