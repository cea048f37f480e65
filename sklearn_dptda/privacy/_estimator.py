"""Base of all private estimators: tags, payments, guarantees, pickles and HTML."""

import copy
import math
import secrets
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, fields, replace
from functools import cache, wraps
from html import escape
from types import MappingProxyType
from typing import Any, Literal, Self, TypeAlias, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, get_tags
from threadpoolctl import ThreadpoolController

from sklearn_dptda._typing import Adjacency
from sklearn_dptda.privacy._accountant import NamedAccountant, PrivacyAccountant
from sklearn_dptda.privacy._asking import ask_before, is_asked, refuse_dear_search
from sklearn_dptda.privacy._default_accountant import default_accountant
from sklearn_dptda.privacy._every_estimator import EstimatorMixin, scoring_callbacks
from sklearn_dptda.privacy._guarantee import PrivacyGuarantee
from sklearn_dptda.privacy._learning_steps import learners_before, other_units_before
from sklearn_dptda.privacy._noise import spawn_seeds
from sklearn_dptda.privacy._parameters import (
    comparable,
    public_parameters,
    quoted,
    validate_quoting,
)
from sklearn_dptda.privacy._release import deciding_parameters, learnt
from sklearn_dptda.privacy._release_key import ReleaseKey, Turn
from sklearn_dptda.privacy._stored_release import SecondDraw
from sklearn_dptda.privacy._warnings import PrivacyLeakWarning, PrivacyLedgerError, warn_caller

# Name of the entry that makes each pickle unique.
FRESH = "_differs_in_every_pickle"
# The smallest and the largest finite loss for which no noise scale overflows.
_EPSILON_RANGE = (1e-6, 1e6)
# Seed of a NoiseSource. None stands for the operating system's entropy.
Seed: TypeAlias = int | ReleaseKey | None


@dataclass(slots=True)
class PrivacyTags:
    """Properties of a private estimator that the privacy checks need.

    An estimator sets them in ``__sklearn_tags__``, as ``tags.privacy``.

    Parameters
    ----------
    input : {"functions", "clouds", "rows", "graph"}, default="rows"
        Kind of ``X``: functions on a public grid, point clouds, a table with one
        record in each row, or an adjacency matrix.
    releases : {"fit", "transform"}, default="fit"
        Method that draws the release.
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Neighbours for which the guarantee holds.
    ragged : bool, default=False
        Whether the number of rows of the release is private output itself, like
        the number of points in a diagram or the number of estimated clusters.
    exact_sibling : callable, default=None
        Function that takes the estimator and returns the non-private estimator
        that equals it at ``epsilon=inf``. None: there is no such estimator.
    distance : callable, default=None
        Distance between two releases, needed if they can differ in their numbers of
        rows. None compares the numbers, and (n, 2) arrays of different lengths as
        diagrams.
    zero_epsilon : bool, default=False
        Whether ``epsilon=0`` is valid. Such a release does not depend on the records.
    labels : bool, default=False
        Whether a record is a row together with its label, so that both are
        protected.

    Examples
    --------
    >>> from sklearn.utils import get_tags
    >>> from sklearn_dptda.cluster import DPMoG
    >>> get_tags(DPMoG()).privacy.adjacency
    'add-remove'
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
    """The tags of scikit-learn together with the privacy tags."""

    privacy: Any = field(default_factory=PrivacyTags)


def is_private(estimator: BaseEstimator) -> bool:
    """Whether the tags of an estimator say that its releases are differentially private."""
    return getattr(get_tags(estimator), "privacy", None) is not None


class Paid(list[Seed]):
    """Seeds of a release that was paid for, with methods that store the release in the ledger."""

    def __init__(
        self, seeds: Iterable[Seed], accountant: PrivacyAccountant | None = None, key: str = ""
    ) -> None:
        super().__init__(seeds)
        # The accountant is None if nothing is to be stored.
        self._accountant, self.key = accountant, key

    def keep(self, returned: Any, **learnt_in_transform: Any) -> Any:
        """Store what ``transform`` returns and has learnt, and return the former."""
        self.keep_result({"transform": returned, **learnt_in_transform})
        return returned

    def keep_fitted(self, estimator: Any) -> None:
        """Store the fitted attributes of an estimator, except for estimators that it holds."""
        numbers = {k: v for k, v in learnt(estimator).items() if not isinstance(v, BaseEstimator)}
        self.keep_result(numbers)

    def keep_result(self, release: dict[str, Any]) -> None:
        """Store the parts of a release by name."""
        if self._accountant is None:
            return
        try:
            self._accountant.store(self.key, release)
        except SecondDraw:
            raise
        except Exception as error:
            # The release exists and is paid for. It must not be lost because of an error here, even
            # if warnings are errors.
            reason = str(error).removesuffix(": nothing was released.")
            with suppress(RuntimeWarning):
                warn_caller(
                    "This release was made and paid for, but it could not be stored in the ledger "
                    f"({type(error).__name__}: {reason}). Save the fitted estimator or the result "
                    "yourself.",
                    RuntimeWarning,
                )


class PrivateEstimatorMixin(EstimatorMixin, BaseEstimator):
    """Mixin for your own estimators with differentially private releases.

    The estimator has the parameters ``epsilon``, ``accountant`` and
    ``random_state``. It takes all its noise from
    :class:`~sklearn_dptda.privacy.NoiseSource`, to whose method ``cross`` it passes each
    statistic, and follows these steps:

    1. Before it computes anything from the records, it enters
       ``with self._paid(guarantee) as seeds``. This spends the privacy loss of
       the guarantee and yields a list of seeds for the noise. An error inside the
       block does not give the budget back, and NumPy does not warn about values
       of records there.
    2. It sets ``privacy_guarantee_``.
    3. It stores the release beside the payment: ``seeds.keep_fitted(self)`` in
       ``fit``, or ``return seeds.keep(result)`` in ``transform``.

    An estimator that releases in ``transform`` calls ``_promise`` in ``fit`` to
    state the guarantee of each later release. ``transform`` then calls
    ``_check_promise``, which refuses parameters that have changed since.

    Any two pickles of an estimator without a seed differ, so that caches such as
    ``Pipeline(memory=...)`` never return an old release instead of a new one.

    See Also
    --------
    sklearn_dptda.utils.estimator_checks : Checks for private estimators.

    Examples
    --------
    >>> from sklearn_dptda.privacy import NoiseSource, PrivacyGuarantee, PrivateEstimatorMixin
    >>> class RowCount(PrivateEstimatorMixin):
    ...     def __init__(self, epsilon=1.0, accountant=None, random_state=None):
    ...         self.epsilon = epsilon
    ...         self.accountant = accountant
    ...         self.random_state = random_state
    ...     def fit(self, X, y=None):
    ...         guarantee = PrivacyGuarantee(
    ...             self.epsilon, 0.0, "add-remove", "one row", "discrete Laplace mechanism",
    ...             "number of rows", seeded=self.random_state is not None)
    ...         with self._paid(guarantee) as seeds:
    ...             noise = NoiseSource(*seeds)
    ...             self.count_ = noise.cross(
    ...                 len(X),
    ...                 lambda n: n + int(noise.discrete_laplace(1 / self.epsilon, 1)[0]),
    ...                 metric="l1", sensitivity=1, rate=self.epsilon)
    ...         self.privacy_guarantee_ = guarantee
    ...         seeds.keep_fitted(self)
    ...         return self
    >>> abs(RowCount(random_state=0).fit([[0.0]] * 100).count_ - 100) < 20
    True
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
        """Pay like :meth:`_pay` and yield the seeds; messages in the block do not show records.

        Before that, other parts of the same pipeline or union are asked what they would refuse.
        """
        ask_before(self)
        seeds = self._pay(guarantee, n_seeds, may_repeat=may_repeat, records=records)
        if not isinstance(seeds, Paid):
            # A subclass pays in its own way and stores its releases itself.
            seeds = Paid(seeds)
        with plain_arithmetic(), without_sizes():
            yield seeds

    def _pay(
        self,
        guarantee: PrivacyGuarantee,
        n_seeds: int = 1,
        *,
        may_repeat: bool = False,
        records: Any = None,
    ) -> Paid:
        """Spend the loss of the guarantee, if there is an accountant, and return the seeds.

        The seeds are integers, or None for the operating system's entropy. In a task that may run
        again, they are keys. ``may_repeat`` says that draws are made in such tasks. ``records`` is
        everything that the release is computed from, which accountants under a name need, or None
        if the records are not in memory. Do not compute the release under this method but under
        :meth:`_paid`.
        """
        self._refuse_other_constants()
        # An invalid random state must fail before the payment.
        seeds: list[Seed] = [*spawn_seeds(self.random_state, n_seeds)]
        turns: AbstractContextManager[Turn | None] = nullcontext()
        payer = self._payer()
        if isinstance(payer, NamedAccountant):
            if records is None and payer.needs_records:
                raise ValueError(
                    "An accountant under a name requires records in memory, because the noise is "
                    "a function of the name and the records. Pass an array or a data frame as X, "
                    "or an accountant without a name."
                )
            turns = payer.turn(type(self), deciding_parameters(self), records, seeds)
        with turns as turn:
            if turn is None and may_repeat:
                turn = Turn.of(ReleaseKey(), None, 1)
            key = uuid.uuid4().hex if turn is None else turn.payment
            self._spend(guarantee, key, {} if turn is None else turn.line)
        if turn is not None:
            # Payment and noise depend on the same key: a repeated draw has a repeated payment.
            seeds = [turn.coins.child(i) if s is None else s for i, s in enumerate(seeds)]
        # Exact results are not stored.
        return Paid(seeds, None if math.isinf(guarantee.epsilon) else self._payer(), key)

    def _refuse_other_constants(self) -> None:
        """Refuse values in place of constants of the class, which no guarantee or name sees."""
        given = vars(self).keys() - self.get_params(deep=False).keys()
        names = sorted(n for n in given if not n.endswith("_") and hasattr(type(self), n))
        if names:
            raise ValueError(
                f"{', '.join(names)} of {type(self).__name__} is a constant, not a parameter. "
                "Delete the attribute. To study another value, set it in a subclass."
            )

    def _spend(
        self,
        guarantee: PrivacyGuarantee,
        key: str | None = None,
        line: Mapping[str, str] = MappingProxyType({}),
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
            parameters={**public_parameters(self), **line},
            key=key,
        )

    def _payer(self) -> PrivacyAccountant | None:
        """Return the accountant to charge, or None if losses are not counted."""
        return self.accountant if self.accountant is not None else default_accountant()

    def _guarantee_ahead(self, n_features: int | None) -> PrivacyGuarantee:
        """Return the guarantee of one release, given only parameters and a number of columns.

        It is called before any fit. ``n_features`` is None if the columns are unknown. If they
        matter, the guarantee is then a bound: the largest loss that the parameters allow.
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
        """List the releases of one call of ``"fit"`` or ``"transform"`` and who pays for them."""
        self._validate_params()
        releases = method == self._releasing_method()
        return [(self, self._guarantee_ahead(n_features))] if releases else []

    def _releasing_method(self) -> str:
        return get_tags(self).privacy.releases

    def _check_epsilon(self, parts: float = 1) -> None:
        """Refuse a finite epsilon for which the noise of equal parts could not be scaled."""
        least, most = parts * _EPSILON_RANGE[0], _EPSILON_RANGE[1]
        if not (least <= self.epsilon <= most or math.isinf(self.epsilon)):
            raise ValueError(
                f"epsilon must be between {least:g} and {most:g}, or inf; got "
                f"{quoted(self.epsilon)}."
            )

    def _after_steps(self, guarantee: PrivacyGuarantee) -> PrivacyGuarantee:
        """Return the guarantee after a check of earlier pipeline steps, and warn about leaks.

        The guarantee does not cover what earlier steps learnt without privacy.
        """
        for name, unit in other_units_before(self, guarantee.unit):
            warn_caller(
                f"The privacy unit of {name} is {unit}, and that of {type(self).__name__} is "
                f"{guarantee.unit}. The privacy loss of one person is larger than either guarantee "
                "states, and pipeline_guarantee cannot add the guarantees. Give groups to both "
                "steps: a data frame keeps the column of ids from step to step.",
                PrivacyLeakWarning,
            )
        if scoring := scoring_callbacks(self):
            warn_caller(
                f"{', '.join(scoring)} may receive the records during the fit. The privacy "
                "guarantee does not cover what this callback computes from them, such as scores. "
                "Remove it, or do not publish what it records.",
                PrivacyLeakWarning,
            )
        learners = learners_before(self) if guarantee.public_parameters else []
        if not learners:
            return guarantee
        # A search warns of the steps of all its candidates at once.
        if not is_asked():
            warn_caller(
                f"{', '.join(learners)} learnt from the records before {type(self).__name__}, "
                "without privacy. The privacy guarantee does not cover this. Replace the step by "
                "public constants, or fit it to public data.",
                PrivacyLeakWarning,
            )
        return replace(guarantee, public_parameters=False)

    def _promise(self, guarantee: PrivacyGuarantee) -> None:
        """Set the guarantee of each later release, valid until a parameter changes."""
        self.privacy_guarantee_ = self._after_steps(guarantee)
        self._parameters_at_fit = self._parameters()

    def _promises_apart(self) -> list[PrivacyGuarantee]:
        """List the summands of ``privacy_guarantee_``; several steps may share one of them."""
        return [self.privacy_guarantee_]

    def _check_promise(self) -> None:
        """Raise ValueError if a parameter has changed since the guarantee was set."""
        self._refuse_other_constants()
        if self._parameters() != self._parameters_at_fit:
            raise ValueError(
                "A parameter has changed since fit, so that privacy_guarantee_ does not describe "
                "this release any more. Call fit again."
            )

    def _parameters(self) -> dict[str, Any]:
        """Parameters on which the guarantee depends, as values that compare and pickle."""
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
        if "privacy_guarantee_" in state and isinstance(self.accountant, NamedAccountant):
            # Fitted estimators are published, and with the key of a release its noise can be
            # undone.
            state["accountant"] = self.accountant.without_key()
        # A worker process has no ``with`` block, so that the pickle must hold the default.
        if self.accountant is None and default_accountant() is not None:
            state["accountant"] = default_accountant()
        if self.random_state is None:
            # Caches compare estimators by their pickles. They would return an old release without a
            # payment, and two equal releases would reveal that their records are equal.
            state[FRESH] = secrets.token_hex(16)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({name: value for name, value in state.items() if name != FRESH})

    def __sklearn_clone__(self) -> Self:
        refuse_dear_search()
        twin: Self = super().__sklearn_clone__()
        return twin

    def __copy__(self) -> Self:
        # A copy stays in this process, where the default still applies when it is fitted.
        return self._with_state(self.__dict__)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self._with_state(copy.deepcopy(self.__dict__, memo))

    def _with_state(self, state: dict[str, Any]) -> Self:
        twin = object.__new__(type(self))
        twin.__dict__.update(state)
        return twin


_Fit = TypeVar("_Fit", bound=Callable[..., Any])


def refused_without_trace(fit: _Fit) -> _Fit:
    """Decorate ``fit`` so that a failed call leaves the estimator unchanged.

    Otherwise, a later release under the guarantee of an earlier fit could use attributes that the
    failed fit, with other parameters, had already set.
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
def plain_arithmetic() -> Iterator[None]:
    """Compute without warnings that depend on the values of records, and in one thread.

    A warning about an overflow would reveal, without noise, that a large record exists. The
    settings belong to a thread, so that each task enters this block itself.

    Several threads gain nothing in products of our sizes, and wait for each other on a computer
    that has other work to do.
    """
    blas = _blas()
    # The setting belongs to the process: a block inside of another one leaves it as it is.
    several = any(library.num_threads != 1 for library in blas.lib_controllers)
    with np.errstate(all="ignore"), blas.limit(limits=1) if several else nullcontext():
        yield


@cache
def _blas() -> Any:
    """Return the libraries of linear algebra that are loaded."""
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def without_sizes() -> Iterator[None]:
    """Remove array shapes from memory errors, because the shapes may depend on the records."""
    try:
        yield
    except MemoryError:
        raise MemoryError("There is too little memory for this fit.") from None


def promise_html(estimator: Any, accountant: PrivacyAccountant | None) -> str:
    """HTML below a private estimator in a notebook: its guarantee, its error and its budget."""
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
    """Error of a release, if the fitted estimator states it in words or half widths."""
    statement = getattr(estimator, "error_statement_", "")
    widths = getattr(estimator, "half_widths_", None)
    if statement or widths is None:
        return statement
    return (
        f"With probability {estimator.confidence:.4g}, all errors of a release are at most "
        f"{max(widths):.3g}."
    )


def _budget(accountant: PrivacyAccountant | None) -> str:
    if accountant is None:
        return "No accountant: privacy losses are not counted."
    total = f"epsilon={accountant.epsilon:g}, delta={accountant.delta:g}"
    try:
        left = accountant.remaining()
    except PrivacyLedgerError as error:
        return f"Privacy budget: {total}. Its ledger cannot be read: {error}"
    return (
        f"Privacy budget: {total}. Remaining: epsilon={left.epsilon:.6g}, delta={left.delta:.6g}."
    )
