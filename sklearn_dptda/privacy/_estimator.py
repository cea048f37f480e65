"""What every private estimator shares: tags, payments, promises, pickles that differ.

The file ends with what a notebook shows of an estimator, and with the steps of a pipeline that
have learnt before it without privacy.
"""

import copy
import math
import secrets
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from html import escape
from types import FrameType
from typing import Any, Literal, Self, TypeAlias, TypeVar

import numpy as np
import sklearn.pipeline
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, PolynomialFeatures
from sklearn.utils import Tags, get_tags

from sklearn_dptda._typing import Adjacency
from sklearn_dptda.privacy._accountant import KeyedAccountant, PrivacyAccountant
from sklearn_dptda.privacy._default_accountant import default_accountant
from sklearn_dptda.privacy._guarantee import PrivacyGuarantee, kind_of_unit
from sklearn_dptda.privacy._noise import spawn_seeds
from sklearn_dptda.privacy._parameters import (
    comparable,
    public_parameters,
    quoted,
    validate_quoting,
)
from sklearn_dptda.privacy._release import learnt
from sklearn_dptda.privacy._release_key import ReleaseKey, Turn, next_turn
from sklearn_dptda.privacy._stored_release import SecondDraw
from sklearn_dptda.privacy._warnings import PrivacyLeakWarning, PrivacyLedgerError, warn_caller

# The entry of a pickle that no two pickles share.
FRESH = "_differs_in_every_pickle"
# The least and the largest finite loss for which no scale of noise overflows.
_EPSILON_RANGE = (1e-6, 1e6)
# What NoiseSource takes: None for the operating system's entropy.
Seed: TypeAlias = int | ReleaseKey | None


@dataclass(slots=True)
class PrivacyTags:
    """What the privacy checks need to know about an estimator.

    Attributes
    ----------
    input : {"functions", "clouds", "rows", "graph"}
        What ``X`` is: a list of functions on a public grid, a list of point
        clouds, a table with one record per row, an adjacency matrix.
    releases : {"fit", "transform"}
        Which method draws the release.
    adjacency : {"replace-one", "add-remove"}
        Neighbours that the guarantee speaks of.
    ragged : bool
        Whether the number of rows of what is released is private output
        itself, as that of a diagram or of clusters found.
    exact_sibling : callable or None
        Takes the estimator and returns the non-private one that equals it at
        ``epsilon=inf``.
    distance : callable or None
        Takes two releases and returns how far they are apart, where the mean
        change of their numbers would not tell: where the numbers of rows
        differ. None compares numbers, and (n, 2) arrays of different length as
        diagrams.
    zero_epsilon : bool
        Whether ``epsilon=0`` is accepted, for a release whose law does not depend
        on the records.
    labels : bool
        Whether a record is a row together with its label, both of which are
        protected.
    """

    input: Literal["functions", "clouds", "rows", "graph"] = "rows"
    releases: Literal["fit", "transform"] = "fit"
    adjacency: Adjacency = "replace-one"
    ragged: bool = False
    exact_sibling: Callable[[Any], BaseEstimator] | None = None
    distance: Callable[[Any, Any], float] | None = None
    zero_epsilon: bool = False
    labels: bool = False


@dataclass(slots=True)
class PrivateTags(Tags):
    """scikit-learn's tags and those of privacy."""

    privacy: Any = field(default_factory=PrivacyTags)


def is_private(estimator: BaseEstimator) -> bool:
    """Whether an estimator's tags say that it releases under differential privacy."""
    return getattr(get_tags(estimator), "privacy", None) is not None


class Paid(list[Seed]):
    """Seeds of a release that was paid for; it stores what is released beside the payment."""

    def __init__(
        self, seeds: Iterable[Seed], accountant: PrivacyAccountant | None = None, key: str = ""
    ) -> None:
        super().__init__(seeds)
        # None where nothing is to be kept.
        self._accountant, self.key = accountant, key

    def keep(self, returned: Any, **learnt_in_transform: Any) -> Any:
        """Store what ``transform`` returns, and what it has learnt; return the former."""
        self.keep_result({"transform": returned, **learnt_in_transform})
        return returned

    def keep_fitted(self, estimator: Any) -> None:
        """Store what a fit has learnt, but for other estimators that it holds."""
        numbers = {k: v for k, v in learnt(estimator).items() if not isinstance(v, BaseEstimator)}
        self.keep_result(numbers)

    def keep_result(self, release: dict[str, Any]) -> None:
        """Store what was released, by name."""
        if self._accountant is None:
            return
        try:
            self._accountant.store(self.key, release)
        except SecondDraw:
            raise
        except Exception as error:
            # The release is there, whatever fails now: it must not be lost, nor where warnings are
            # errors.
            reason = str(error).removesuffix(": nothing was released.")
            with suppress(RuntimeWarning):
                warn_caller(
                    "This release is paid for and made, and could not be stored in the ledger "
                    f"({type(error).__name__}: {reason}): keep it yourself.",
                    RuntimeWarning,
                )


class PrivateEstimatorMixin(BaseEstimator):
    """Mixin for estimators that release under differential privacy.

    The estimator has the parameters ``epsilon``, ``accountant`` and
    ``random_state``, and takes all its noise from
    :class:`~sklearn_dptda.privacy.NoiseSource`. Before it computes anything
    from the records that it releases, it enters ``with self._paid(guarantee)``,
    which yields a list of seeds for its noise. Within that block nothing gives the budget
    back, and NumPy says nothing about the values of records. It sets
    ``privacy_guarantee_``. When it has released, ``keep_fitted(self)`` of that list, or
    ``keep(returned)`` in ``transform``, stores the release beside the payment.

    It pays in ``fit``, or promises there what each later release will cost, by
    ``_promise``, which ``_check_promise`` compares with the parameters before it
    pays. Two pickles of an estimator that takes its noise from the operating
    system differ, so that ``Pipeline(memory=...)`` and :class:`joblib.Memory`
    never return an old release for a new one.

    See Also
    --------
    sklearn_dptda.utils.estimator_checks : What it is held to.
    """

    _validate_params = validate_quoting
    _not_compared = frozenset({"accountant", "random_state", "n_jobs", "verbose"})

    @contextmanager
    def _paid(
        self,
        guarantee: PrivacyGuarantee,
        n_seeds: int = 1,
        *,
        may_repeat: bool = False,
        records: Any = None,
    ) -> Iterator[Paid]:
        """Pay as :meth:`_pay` does, yield the seeds, and keep silent about records in the block."""
        seeds = self._pay(guarantee, n_seeds, may_repeat=may_repeat, records=records)
        if not isinstance(seeds, Paid):
            # A child class pays in its own way, and keeps its releases itself.
            seeds = Paid(seeds)
        with silent_arithmetic(), without_sizes():
            yield seeds

    def _pay(
        self,
        guarantee: PrivacyGuarantee,
        n_seeds: int = 1,
        *,
        may_repeat: bool = False,
        records: Any = None,
    ) -> Paid:
        """Pay for what the guarantee promises, if there is an accountant, and seed the noise.

        Returns seeds, or None for each where the operating system's entropy serves; keys, in
        a task that may run again, or where ``may_repeat`` says that draws are made in such tasks.
        ``records`` are everything that the release is computed from, for accountants under a key:
        None where that is not in memory. Compute what you have paid for under :meth:`_paid`.
        """
        # What a bad state can make fail, fails before the payment.
        seeds: list[Seed] = [*spawn_seeds(self.random_state, n_seeds)]
        turn, payer = next_turn(), self._payer()
        if turn is None and isinstance(payer, KeyedAccountant):
            if records is None:
                raise ValueError(
                    "An accountant under a key counts releases of records in memory alone, since "
                    "coins are a function of them."
                )
            turn = payer.turn(self, (records, seeds))
        if turn is None and may_repeat:
            turn = Turn.of(ReleaseKey())
        key = uuid.uuid4().hex if turn is None else turn.name
        self._spend(guarantee, key, None if turn is None else turn.digest)
        if turn is not None:
            # One key for the payment and for the coins: neither is had twice without the other.
            seeds = [turn.coins.child(i) if s is None else s for i, s in enumerate(seeds)]
        # Exact results are no releases.
        return Paid(seeds, None if math.isinf(guarantee.epsilon) else self._payer(), key)

    def _spend(
        self, guarantee: PrivacyGuarantee, key: str | None = None, digest: str | None = None
    ) -> None:
        accountant = self._payer()
        if accountant is None:
            return
        accountant.spend(
            guarantee.epsilon,
            guarantee.delta,
            rho=guarantee.rho,
            adjacency=guarantee.adjacency,
            unit=guarantee.unit,
            what=guarantee.released,
            estimator=type(self).__name__,
            parameters=public_parameters(self) | ({} if digest is None else {"digest": digest}),
            key=key,
        )

    def _payer(self) -> PrivacyAccountant | None:
        """The accountant that pays, or None where nobody keeps count."""
        return self.accountant if self.accountant is not None else default_accountant()

    def _guarantee_ahead(self, n_features: int | None) -> PrivacyGuarantee:
        """What one release will promise, from parameters and a number of columns, or None, alone.

        Called before any fit. Where the columns are not known and matter, a bound serves: here
        what the parameters allow at most.
        """
        kind = type(self).__name__
        return PrivacyGuarantee(
            epsilon=float(self.epsilon),
            delta=float(getattr(self, "delta", 0.0)),
            adjacency=get_tags(self).privacy.adjacency,
            unit="one record",
            mechanism=f"mechanism of {kind}",
            released=f"what {kind} releases",
            seeded=self.random_state is not None,
        )

    def _releases_ahead(
        self, method: str, n_features: int | None
    ) -> list[tuple[Any, PrivacyGuarantee]]:
        """Who pays for what in one call of ``"fit"`` or ``"transform"``, before any call."""
        self._validate_params()
        releases = method == self._releasing_method()
        return [(self, self._guarantee_ahead(n_features))] if releases else []

    def _releasing_method(self) -> str:
        return get_tags(self).privacy.releases

    def _check_epsilon(self, parts: float = 1) -> None:
        """Refuse losses that are finite and beyond what noise of equal parts can be scaled to."""
        least, most = parts * _EPSILON_RANGE[0], _EPSILON_RANGE[1]
        if not (least <= self.epsilon <= most or math.isinf(self.epsilon)):
            raise ValueError(
                f"epsilon must be inf or from {least:g} to {most:g}; got {quoted(self.epsilon)}."
            )

    def _after_steps(self, guarantee: PrivacyGuarantee) -> PrivacyGuarantee:
        """The guarantee; it does not cover what earlier steps learnt, and warns where they did."""
        for name, unit in _other_units_before(self, guarantee.unit):
            warn_caller(
                f"{name} protects {unit}, and {type(self).__name__} {guarantee.unit}: one person "
                "loses more than either says, and pipeline_guarantee cannot add them. Give groups "
                "to both; a data frame with the column of ids is handed on.",
                PrivacyLeakWarning,
            )
        learners = learners_before(self) if guarantee.public_parameters else []
        if not learners:
            return guarantee
        warn_caller(
            f"{', '.join(learners)} learnt from the records before {type(self).__name__}, without "
            "privacy, which the guarantee does not cover: use public constants in its place, or "
            "fit it to public data.",
            PrivacyLeakWarning,
        )
        return replace(guarantee, public_parameters=False)

    def _promise(self, guarantee: PrivacyGuarantee) -> None:
        """Say what each release will promise, for as long as no parameter changes."""
        self.privacy_guarantee_ = self._after_steps(guarantee)
        self._parameters_at_fit = self._parameters()

    def _promises_apart(self) -> list[PrivacyGuarantee]:
        """What ``privacy_guarantee_`` adds up; several steps may share one of them."""
        return [self.privacy_guarantee_]

    def _check_promise(self) -> None:
        """Refuse to release under a guarantee of other parameters."""
        if self._parameters() != self._parameters_at_fit:
            raise ValueError(
                "A parameter has changed since fit, so privacy_guarantee_ no longer describes "
                "what would be released: call fit again."
            )

    def _parameters(self) -> dict[str, Any]:
        """What the guarantee depends on, in values that can be compared and pickled."""
        compared = {
            name: comparable(value)
            for name, value in self.get_params(deep=False).items()
            if name not in self._not_compared
        }
        return {**compared, "seeded": self.random_state is not None}

    def __sklearn_tags__(self) -> PrivateTags:
        tags = super().__sklearn_tags__()
        return PrivateTags(**{f.name: getattr(tags, f.name) for f in fields(tags)})

    def _repr_html_inner(self) -> str:
        return super()._repr_html_inner() + promise_html(self, self._payer())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += promise_html(self, self._payer())
        return bundle

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "privacy_guarantee_" in state:
            # With the key of a release its noise can be undone, and what is fitted is published.
            state = {name: without_keys(value) for name, value in state.items()}
        # A worker process has no ``with`` block around it: the default travels along.
        if self.accountant is None and default_accountant() is not None:
            state["accountant"] = default_accountant()
        if self.random_state is None:
            # Caches know estimators by their pickles, and would replay a release for nothing:
            # whoever sees that two are equal sees that their records are.
            state[FRESH] = secrets.token_hex(16)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({name: value for name, value in state.items() if name != FRESH})

    def __copy__(self) -> Self:
        # Copies stay in this process: the default is still there when they are fitted.
        return self._with_state(self.__dict__)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self._with_state(copy.deepcopy(self.__dict__, memo))

    def _with_state(self, state: dict[str, Any]) -> Self:
        twin = object.__new__(type(self))
        twin.__dict__.update(state)
        return twin


class HoldsPrivateStepsMixin(BaseEstimator):
    """Mixin for estimators that fit private ones inside, and whose pickles hold no key."""

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if any(name.endswith("_") for name in state):
            state = {name: without_keys(value) for name, value in state.items()}
        return state


def without_keys(value: Any) -> Any:
    """The same, with accountants that know no key, also in estimators and lists of them."""
    if isinstance(value, KeyedAccountant):
        return value.without_key()
    if type(value) in (list, tuple):
        parts = [without_keys(part) for part in value]
        same = all(new is old for new, old in zip(parts, value, strict=True))
        return value if same else type(value)(parts)
    if isinstance(value, BaseEstimator):
        inside = {name: without_keys(part) for name, part in vars(value).items()}
        if any(inside[name] is not part for name, part in vars(value).items()):
            twin = object.__new__(type(value))
            vars(twin).update(inside)
            return twin
    return value


_Fit = TypeVar("_Fit", bound=Callable[..., Any])


def refused_without_trace(fit: _Fit) -> _Fit:
    """Decorate a ``fit`` that promises: one that fails leaves the estimator as it was.

    Otherwise a release under the promise of an earlier fit would be made with what the later one,
    of other parameters, had already set.
    """

    @wraps(fit)
    def whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return whole  # type: ignore[return-value]


@contextmanager
def silent_arithmetic() -> Iterator[None]:
    """Keep NumPy from warning or raising because of the values of records.

    A warning about an overflow would tell, without noise, that there is a record which is large.
    Each thread and each process has settings of its own, so that tasks enter this themselves.
    """
    with np.errstate(all="ignore"):
        yield


@contextmanager
def without_sizes() -> Iterator[None]:
    """Keep the shapes of arrays that do not fit, which records may decide, out of the error."""
    try:
        yield
    except MemoryError:
        raise MemoryError("there is too little memory for this fit.") from None


def promise_html(estimator: Any, accountant: PrivacyAccountant | None) -> str:
    """What a notebook shows below a private estimator: its promise, its error, its budget."""
    style = "font-size:.92em;padding:.2em .8em;max-width:60em"
    parts = []
    guarantee = getattr(estimator, "privacy_guarantee_", None)
    if guarantee is not None:
        parts.append(guarantee._repr_html_())
    for words in (_error(estimator), _budget(accountant)):
        if words:
            parts.append(f'<div style="{style}">{escape(words)}</div>')
    return "".join(parts)


def _error(estimator: Any) -> str:
    """How far a release is off, where the fitted estimator says so in words or half widths."""
    statement = getattr(estimator, "error_statement_", "")
    widths = getattr(estimator, "half_widths_", None)
    if statement or widths is None:
        return statement
    return (
        f"With a probability of {estimator.confidence:.4g} all errors of a release are at most "
        f"{max(widths):.3g}."
    )


def _budget(accountant: PrivacyAccountant | None) -> str:
    if accountant is None:
        return "No accountant: nobody keeps count of what is released."
    total = f"epsilon={accountant.epsilon:g}, delta={accountant.delta:g}"
    try:
        left = accountant.remaining()
    except PrivacyLedgerError as error:
        return f"Budget of {total}; its ledger cannot be read: {error}"
    return f"Budget of {total}; left: epsilon={left.epsilon:.6g}, delta={left.delta:.6g}."


def learners_in(steps: Iterable[Any], public: bool = False) -> tuple[list[str], bool]:
    """Names of the steps that learn records without privacy, and whether the output is public.

    ``public`` says so of the input. What follows a release in ``transform`` is post-processing.
    """
    names: list[str] = []
    for step in steps:
        found, public = _learners(step, public)
        names += found
    return names, public


def _learners(step: Any, public: bool) -> tuple[list[str], bool]:
    if step is None or isinstance(step, str):
        return [], public
    if isinstance(step, Pipeline):
        return learners_in([part for _, part in step.steps], public)
    if isinstance(step, FeatureUnion | ColumnTransformer):
        listed = getattr(step, "transformers", None) or step.transformer_list
        parts = [part for _, part, *_ in listed]
        # What is in no column of the list goes through the remainder.
        parts.append(getattr(step, "remainder", "drop"))
        each = [_learners(part, public) for part in parts if part != "drop"]
        names = [name for found, _ in each for name in found]
        return names, all(after for _, after in each) and (public or len(each) > 0)
    if isinstance(step, BaseSearchCV):
        return _learners(step.estimator, public)
    if hasattr(step, "_releasing_method"):
        return [], public or step._releasing_method() == "transform"
    return [type(step).__name__] * (not public and learns(step)), public


# GUDHI's transformers that treat each sample by itself, whatever their parameters are.
_OF_ONE_SAMPLE = frozenset(
    {
        "BirthPersistenceTransform",
        "CechPersistence",
        "Clamping",
        "CubicalPersistence",
        "DiagramSelector",
        "DimensionSelector",
        "PersistenceLengths",
        "ProminentPoints",
        "RipsPersistence",
        "TimeDelayEmbedding",
        "WeightedCechPersistence",
    }
)
# Those that do where a range is given, and the parameter that is the range.
_RANGES = {
    "BettiCurve": "sample_range",
    "Entropy": "sample_range",
    "Landscape": "sample_range",
    "PersistenceImage": "im_range",
    "Silhouette": "sample_range",
}


def _learns_in_gudhi(step: Any) -> bool:
    """Whether a transformer of GUDHI does more than to map one sample at a time."""
    name = type(step).__name__
    if name in ("TopologicalVector", "ComplexPolynomial"):
        # Without a threshold they make as many numbers as the largest diagram asks for.
        return bool(step.threshold <= 0)
    if name == "Entropy" and step.mode == "scalar":
        return False
    if name in ("DiagramScaler", "Padding"):
        return bool(step.use)
    if name == "BettiCurve" and (step.predefined_grid is not None or step.resolution is None):
        return step.predefined_grid is None
    if name in _RANGES:
        return bool(np.isnan(np.asarray(getattr(step, _RANGES[name]), dtype=float)).any())
    return name not in _OF_ONE_SAMPLE


def learns(step: Any) -> bool:
    """Whether ``fit`` keeps what records say; estimators of this package know it themselves.

    Proof: doc/theory/people.md, "Maps of one record".
    """
    if hasattr(step, "_learns_records"):
        return bool(step._learns_records())
    if type(step).__module__.startswith("gudhi."):
        return _learns_in_gudhi(step)
    # Constants are the caller's, and a frozen step has learnt before.
    constant = isinstance(step, SimpleImputer) and step.strategy == "constant"
    constant = constant and not step.add_indicator
    # A public list of categories teaches nothing either, unless they are counted, nor does the
    # number of columns.
    listed = isinstance(step, OneHotEncoder | OrdinalEncoder) and not (
        isinstance(step.categories, str) or step.min_frequency or step.max_categories
    )
    quiet = constant or listed or isinstance(step, FrozenEstimator | PolynomialFeatures)
    return bool(get_tags(step).requires_fit and not quiet)


def learners_before(estimator: Any) -> list[str]:
    """Names of what has learnt records in the pipelines that are fitting this estimator now.

    An estimator does not know its pipeline: the calls that lead here do. Where a step is fitted in
    a thread or process of its own, nothing is found.
    """
    names: list[str] = []
    for pipeline in _pipelines():
        names = learners_in(_before(pipeline, estimator))[0] + names
    return names


def _pipelines() -> Iterator[Pipeline]:
    """Pipelines that are being fitted by the calls that lead here."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == sklearn.pipeline.__file__:
            pipeline = frame.f_locals.get("self")
            if isinstance(pipeline, Pipeline) and frame.f_code.co_name.startswith("fit"):
                yield pipeline
        frame = frame.f_back


def _other_units_before(estimator: Any, unit: str) -> list[tuple[str, str]]:
    """Steps before this one that protect people where it does not, or the other way round."""
    found = []
    for step in [step for pipeline in _pipelines() for step in _before(pipeline, estimator)]:
        other = getattr(getattr(step, "privacy_guarantee_", None), "unit", unit)
        if (kind_of_unit(other) == "person") != (kind_of_unit(unit) == "person"):
            found.append((type(step).__name__, other))
    return found


def _before(pipeline: Pipeline, estimator: Any) -> list[Any]:
    """Steps before the one that is the estimator, or holds it, or a copy where fits are cached."""
    steps = [part for _, part in pipeline.steps]
    held = [[part, *_values(part)] for part in steps]
    for same in (lambda part: part is estimator, lambda part: type(part) is type(estimator)):
        for place, parts in enumerate(held):
            if any(map(same, parts)):
                return steps[:place]
    return []


def _values(part: Any) -> Iterable[Any]:
    return part.get_params(deep=True).values() if hasattr(part, "get_params") else ()
