"""A handle to a shared privacy budget, and the ``with`` block that makes it the default."""

import os
import threading
import weakref
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any, Literal, NoReturn, Self

from sklearn_dptda._typing import Adjacency, PathLike
from sklearn_dptda.privacy._default_accountant import close_block, open_block
from sklearn_dptda.privacy._digest import NOT_DIGESTED, digest_of
from sklearn_dptda.privacy._dp_events import charge_of
from sklearn_dptda.privacy._guarantee import (
    COMPOSITIONS,
    Budget,
    Charge,
    PrivacyGuarantee,
    PrivacyLoss,
    check_adjacency,
)
from sklearn_dptda.privacy._ledger import Ledger, Payment
from sklearn_dptda.privacy._ledger_extract import changes_in, extract_of
from sklearn_dptda.privacy._ledger_stores import MemoryStore, make_store, process_lock
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.privacy._release_key import ReleaseKey, Turn
from sklearn_dptda.privacy._spend_history import SpendHistory
from sklearn_dptda.privacy._stored_release import PaidRelease, to_bytes

# Characters that a ledger line keeps of a parameter: enough to recognise it, too few for records.
_LONGEST_PARAMETER = 200
# Characters of the key of a payment, as ReleaseKey.name has them.
_KEY_LENGTH = 32
# Handles of this process by the identities of their ledgers, so that pickles find them again.
_HANDLES: weakref.WeakValueDictionary[str, "PrivacyAccountant"] = weakref.WeakValueDictionary()


class PrivacyAccountant:
    """A budget that every copy shares.

    Pass it to any private estimator as ``accountant=``. It is a handle to one
    ledger: ``clone``, ``copy``, ``deepcopy``, pickle and the workers of joblib
    (threads or processes) all spend from the same budget. A release is paid
    for before it is drawn, and a payment is never undone, whatever fails
    afterwards.

    Parameters
    ----------
    epsilon : float
        Budget; ``inf`` counts without any limit, of delta neither.
    delta : float, default=0.0
        Budget of failure probabilities.
    path : str or path-like, default=None
        Where the new ledger shall live; :meth:`open` attaches to one that
        exists, and only that. None: in the memory of this process and its
        threads; when it has to cross processes it moves to a temporary SQLite
        file, which is removed when this process ends. A file name: an SQLite
        file, durable, shared by the processes of one machine (network file
        systems do not lock reliably). A SQLAlchemy URL, such as
        ``"postgresql://user@host/database"``: a database server, for teams and
        clusters; needs ``pip install 'sklearn-dptda[ledger]'``; pickles of the
        handle contain the URL, so keep passwords out of it.
    composition : {"basic", "zcdp"}, default="basic"
        ``"basic"``: epsilons add up, deltas add up. ``"zcdp"``: losses are
        counted in zero-concentrated differential privacy and converted at
        ``delta``, which must be positive; better for many releases, worse for
        few. A loss with a delta must state its ``rho`` there.
    keep : float, default=64.0
        Largest release, in MiB, that a ledger with a ``path`` stores beside its
        payment; 0 stores none.

    Raises
    ------
    ValueError
        If a number is out of its range.
    PrivacyLedgerError
        If there is something at ``path`` already, or nothing can be made there.

    Attributes
    ----------
    epsilon, delta, path, composition
        The budget in force. Read only.

    See Also
    --------
    PrivacyGuarantee : What one release promises.

    Notes
    -----
    .. rubric:: Privacy

    **What is counted.** The losses of all releases under this accountant, for
    one adjacency and one kind of record: a ledger that has counted replaced
    records refuses losses for added or removed ones, and one that has counted
    people refuses losses of rows, points or edges, as those refuse people.
    Within one ``transform`` of many clouds the
    loss counts once (parallel composition), which is right where every
    individual has records in one cloud only; where individuals appear in
    ``k`` of the clouds, divide epsilon by ``k``. Releases under two
    accountants do not know of each other.

    **What is kept.** Time, cost, class names and public parameters as text;
    no data and no seeds. A ledger with a ``path`` also keeps the releases
    themselves, which are public once they are made: what a private estimator
    has learnt, or what its ``transform`` has returned. A release that was lost
    in a crash, or by a full disk, is there again with :meth:`release`. Releases
    with ``epsilon=inf`` are exact results, and are not kept.

    **Rounding.** Sums are rounded once, and a budget admits a relative excess
    of 1e-12, so that ten losses of 0.1 fit a budget of 1.

    **Limits.** Whoever may write to the file or the database can falsify it;
    the guarantees page has a table of what is refused, such as old copies.

    Examples
    --------
    >>> from sklearn.base import clone
    >>> from sklearn_dptda import PrivatePersistence
    >>> from sklearn_dptda.privacy import PrivacyAccountant
    >>> accountant = PrivacyAccountant(epsilon=1.0)
    >>> private = PrivatePersistence(0.4, sensitivity=0.1, upper=1.0, accountant=accountant)
    >>> for _ in range(2):
    ...     diagrams = clone(private).fit_transform([[0.0, 0.5, 0.25]])
    >>> accountant.total()
    PrivacyLoss(epsilon=0.8, delta=0.0)
    >>> clone(private).fit_transform([[0.0, 0.5, 0.25]])
    Traceback (most recent call last):
    ...
    sklearn_dptda.privacy._warnings.PrivacyBudgetExceeded: asked for epsilon=0.4, ...
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        path: PathLike | None = None,
        composition: Literal["basic", "zcdp"] = "basic",
        keep: float = 64.0,
    ) -> None:
        if not (isinstance(epsilon, Real) and epsilon > 0):
            raise ValueError(f"epsilon must be a positive number; got {quoted(epsilon)}.")
        if not (isinstance(delta, Real) and 0 <= delta < 1):
            raise ValueError(f"delta must be in [0, 1); got {quoted(delta)}.")
        if composition not in COMPOSITIONS:
            raise ValueError(
                f"composition must be one of {sorted(COMPOSITIONS)}; got {quoted(composition)}."
            )
        check_keep(keep)
        budget = Budget(float(epsilon), float(delta), composition)
        # A budget that its rule refuses makes no file.
        budget.rule()
        with process_lock:
            ledger = Ledger(MemoryStore() if path is None else make_store(path))
            ledger.create(budget)
        self._set(ledger, budget, None if path is None else os.fsdecode(path), keep)

    @classmethod
    def open(
        cls,
        path: PathLike,
        epsilon: float | None = None,
        delta: float | None = None,
        composition: Literal["basic", "zcdp"] | None = None,
        *,
        moved: bool = False,
        keep: float = 64.0,
    ) -> Self:
        """Attach to a ledger that exists; none is ever made here.

        Parameters
        ----------
        path : str or path-like
            File name or SQLAlchemy URL.
        epsilon, delta, composition : default=None
            What the budget is expected to be. None adopts what it is.
        moved : bool, default=False
            Says that the file at ``path`` has replaced the one that the ledger
            was made in, on this machine or another one, and that nobody spends
            from that one any more. A copy is refused otherwise, since each
            would have the whole budget. What this user saw paid stays paid.
        keep : float, default=64.0
            Largest release, in MiB, that is stored beside its payment.

        Returns
        -------
        PrivacyAccountant

        Raises
        ------
        ValueError
            If the ledger has another budget than is stated.
        PrivacyLedgerError
            If there is no ledger, such as a file that is missing or empty, or
            if the file is a copy or a restored backup.

        Examples
        --------
        >>> import os, tempfile
        >>> from sklearn_dptda.privacy import PrivacyAccountant
        >>> path = os.path.join(tempfile.mkdtemp(), "budget.db")
        >>> PrivacyAccountant(1.0, path=path).spend(0.25)
        >>> PrivacyAccountant.open(path).remaining().epsilon
        0.75
        """
        check_keep(keep)
        with process_lock:
            ledger = Ledger(make_store(path))
            budget = ledger.attach(moved)
        stated = (epsilon, delta, composition)
        if any(s is not None and s != b for s, b in zip(stated, budget, strict=True)):
            raise ValueError(
                f"The ledger {ledger.store.place} has the budget epsilon={budget.epsilon:g}, "
                f"delta={budget.delta:g}, composition={budget.composition!r}: leave them out to "
                "adopt it, or choose another path."
            )
        accountant = object.__new__(cls)
        accountant._set(ledger, budget, os.fsdecode(path), keep)
        return accountant

    def _set(self, ledger: Ledger, budget: Budget, path: str | None, keep: float) -> None:
        self._ledger = ledger
        self._budget = budget
        self._path = path
        self._keep = float(keep)
        _HANDLES[ledger.id] = self

    @property
    def epsilon(self) -> float:
        """Budget."""
        return self._budget.epsilon

    @property
    def delta(self) -> float:
        """Budget of failure probabilities."""
        return self._budget.delta

    @property
    def path(self) -> str | None:
        """Where the ledger was asked to live."""
        return self._path

    @property
    def composition(self) -> str:
        """How losses add up."""
        return self._budget.composition

    def spend(
        self,
        epsilon: Any,
        delta: float = 0.0,
        *,
        rho: float | None = None,
        adjacency: Adjacency = "replace-one",
        unit: str = "one record",
        what: str = "",
        estimator: str = "",
        parameters: Mapping[str, object] | None = None,
        key: str | None = None,
    ) -> None:
        """Pay for one release, before it is drawn.

        Parameters
        ----------
        epsilon : float, PrivacyGuarantee or dp_accounting.DpEvent
            The loss of the release. Releases of other libraries, such as OpenDP,
            Tumult Analytics or Opacus, count in this budget as numbers or as
            events. Of a guarantee, delta, rho, adjacency, unit and what was
            released are taken as well. The noise multiplier of an event is
            relative to the sensitivity under ``adjacency``.
        delta : float, default=0.0
            Failure probability. For an event without a pure epsilon, the delta
            at which its epsilon is computed; such an event needs one above 0.
        rho : float, default=None
            zCDP parameter of the release, where better than ``epsilon**2 / 2``;
            it is what counts under ``composition="zcdp"``.
        adjacency : {"replace-one", "add-remove"}, default="replace-one"
            For which neighbours the loss holds.
        unit : str, default="one record"
            What one record is, in the words of a guarantee: ``"one person"``, or
            ``"all rows of one person"``, counts people.
        what : str, default=""
            What will be released.
        estimator : str, default=""
            Who releases it.
        parameters : dict, default=None
            Public parameters; kept as text. Never data.
        key : str of 32 characters, default=None
            Whoever pays under the key of an earlier payment, and for the same
            line, pays nothing. That is right only for the same release, drawn
            with the same coins, of the same records: see :class:`ReleaseKey`.

        Raises
        ------
        PrivacyBudgetExceeded
            If the loss does not fit. Nothing is spent.
        PrivacyLedgerError
            If the ledger cannot be used, or something else was paid for under
            the key. Nothing may be released.
        """
        if key is not None:
            _checked_key(key)
        if isinstance(epsilon, PrivacyGuarantee):
            promise = epsilon
            epsilon, delta, rho = promise.epsilon, promise.delta, promise.rho
            adjacency, unit, what = promise.adjacency, promise.unit, what or promise.released
        elif not isinstance(epsilon, Real):
            counted = charge_of(epsilon, delta, check_adjacency(adjacency))
            what, epsilon = what or type(epsilon).__name__, counted.epsilon
            delta, rho = counted.delta, counted.rho
        if not (isinstance(unit, str) and unit):
            raise ValueError(
                f"unit must be a text that says what one record is; got {quoted(unit)}."
            )
        charge = Charge(float(epsilon), float(delta), None if rho is None else float(rho))
        line = {
            "adjacency": check_adjacency(adjacency),
            "unit": str(unit),
            "what": str(what),
            "estimator": str(estimator),
            "parameters": {
                str(name): repr(value)[:_LONGEST_PARAMETER]
                for name, value in (parameters or {}).items()
            },
        }
        self._ledger.spend([Payment(charge, line, key)])

    def check(self, releases: Iterable[tuple[PrivacyGuarantee, int]]) -> None:
        """Refuse releases that together would not fit, and spend nothing.

        The answer holds until somebody else spends: it is no reservation.

        Parameters
        ----------
        releases : iterable of (PrivacyGuarantee, int)
            What each release promises, and how many of them there will be.

        Raises
        ------
        PrivacyBudgetExceeded
            If the releases do not fit.
        ValueError
            If their losses cannot be added to those of this ledger.

        Examples
        --------
        >>> from sklearn_dptda.privacy import PrivacyAccountant, PrivacyGuarantee
        >>> guarantee = PrivacyGuarantee(0.4, 0.0, "replace-one", "one row", "some mechanism",
        ...     "a number", seeded=False)
        >>> PrivacyAccountant(1.0).check([(guarantee, 2)])
        >>> PrivacyAccountant(1.0).check([(guarantee, 3)])
        Traceback (most recent call last):
        ...
        sklearn_dptda.privacy._warnings.PrivacyBudgetExceeded: asked for epsilon=1.2, ...
        """
        releases = list(releases)
        charges = [(guarantee.charge, count) for guarantee, count in releases]
        if charges:
            self._ledger.check(charges, {guarantee.neighbours for guarantee, _ in releases})

    def total(self) -> PrivacyLoss:
        """Loss of all releases so far.

        Returns
        -------
        PrivacyLoss
            ``(epsilon, delta)``; under ``"zcdp"``, converted at the budget's
            delta.
        """
        state = self._ledger.read()
        return state.budget.rule().total(state.sums)

    def remaining(self) -> PrivacyLoss:
        """Return the largest loss that still fits.

        Returns
        -------
        PrivacyLoss
            ``(epsilon, delta)``; under ``"zcdp"``, the largest pure epsilon.
        """
        state = self._ledger.read()
        return state.budget.rule().remaining(state.sums)

    def spends(self) -> SpendHistory:
        """Return the history: when, what, how much, by whom; never data.

        Returns
        -------
        SpendHistory
        """
        return SpendHistory(self._ledger.spends())

    def under(self, key: ReleaseKey) -> "PrivacyAccountant":
        """Return this accountant under a key, for searches that may be made again.

        Each clone of an estimator that has it gets a key of its own. When a
        fold runs again, since its worker has died, or when the whole search is
        made again, after a crash or on another day, it pays nothing and
        repeats its draws. Coins are a function of the key and of a digest of
        records in memory, parameters and code; under its keys the ledger
        refuses releases of others, and nothing is paid for them.

        Parameters
        ----------
        key : ReleaseKey
            Of one search. :meth:`ReleaseKey.open` keeps one in a file.

        Returns
        -------
        PrivacyAccountant
            For ``accountant=`` of the estimators of one search. It cannot be
            the default of a block.

        Raises
        ------
        ValueError
            If ``key`` is none.

        Examples
        --------
        >>> from sklearn.model_selection import cross_val_score
        >>> from sklearn_dptda.cluster import DPMoG
        >>> from sklearn_dptda.datasets import make_two_circles
        >>> from sklearn_dptda.privacy import PrivacyAccountant, ReleaseKey
        >>> X, budget, key = make_two_circles(900), PrivacyAccountant(3.0, 1e-5), ReleaseKey()
        >>> def scores():
        ...     model = DPMoG(2, bounds=(-3, 4), accountant=budget.under(key))
        ...     return cross_val_score(model, X, cv=3)
        >>> bool((scores() == scores()).all()), len(budget)
        (True, 3)
        """
        if not isinstance(key, ReleaseKey):
            raise ValueError(f"key must be a ReleaseKey; got one of type {type(key).__name__}.")
        return KeyedAccountant(self, key)

    def extract(self) -> dict[str, Any]:
        """Return all that the ledger says, for somebody who checks it without the ledger.

        Returns
        -------
        dict
            In JSON: ``ledger``, its name; ``budget``; ``counted``, number and
            exact sums of the payments; ``payments``, each with a ``hash`` of
            itself and of the hash before; ``releases``, names of payments whose
            releases are stored, with their SHA-256 digests; and ``seal``, the
            hash of everything. No releases and no records.

        Examples
        --------
        >>> from sklearn_dptda.privacy import PrivacyAccountant
        >>> budget = PrivacyAccountant(2.0)
        >>> budget.spend(0.5, what="a histogram")
        >>> extract = budget.extract()
        >>> PrivacyAccountant.check_extract(extract)
        []
        >>> extract["payments"][0]["epsilon"] = 0.1
        >>> PrivacyAccountant.check_extract(extract)[0]
        'payment 1 was changed, or one before it is missing'
        """
        return extract_of(self._ledger)

    @staticmethod
    def check_extract(
        extract: Mapping[str, Any], earlier: Mapping[str, Any] | None = None
    ) -> list[str]:
        """Find what does not fit in an extract of a ledger, which need not be there.

        Parameters
        ----------
        extract : dict
            As :meth:`extract` makes it, or as it was read from JSON.
        earlier : dict, default=None
            An earlier extract of the same ledger.

        Returns
        -------
        list of str
            What was changed, removed or does not add up, in words; empty where
            nothing was.

        Raises
        ------
        ValueError
            If one of them is no extract, or was made by a newer version.
        """
        return changes_in(extract, earlier)

    def store(self, key: str, release: object) -> None:
        """Store a release beside its payment.

        Private estimators do it for what they release. Whatever a ledger
        without a ``path``, or with ``keep=0``, is given, it forgets.

        Parameters
        ----------
        key : str of 32 characters
            That of the payment: see :meth:`spend`.
        release : object
            Private output alone. Numbers, texts, truth values, None, arrays of
            these, sparse matrices, and lists, tuples and dictionaries of them.

        Raises
        ------
        TypeError
            If it holds anything else.
        ValueError
            If it is larger than ``keep``.
        PrivacyLedgerError
            If nothing was paid under the key, if another release is stored
            there, or if the ledger cannot be used.
        """
        if self._path is None or self._keep == 0:
            return
        content = to_bytes(release, self._keep * 2**20)
        self._ledger.keep(_checked_key(key), content)

    def release(self, key: str | ReleaseKey) -> Any:
        """Return a release that was made before, wherever and whenever that was.

        Parameters
        ----------
        key : str of 32 characters or ReleaseKey
            One of those that :meth:`releases` lists; or the key of
            ``release_once``, of whose releases the last one is returned.

        Returns
        -------
        object
            What an estimator has learnt, by name; or ``transform``, what it has
            returned, with what it has learnt there.

        Raises
        ------
        LookupError
            If nothing is stored under the key.
        PrivacyLedgerError
            If what is stored is damaged, or the ledger cannot be used.

        Examples
        --------
        >>> import os, tempfile
        >>> from sklearn_dptda.cluster import DPLloyd
        >>> from sklearn_dptda.datasets import make_two_circles
        >>> from sklearn_dptda.privacy import PrivacyAccountant
        >>> path = os.path.join(tempfile.mkdtemp(), "budget.db")
        >>> with PrivacyAccountant(1.0, 1e-5, path=path):
        ...     model = DPLloyd(2, epsilon=0.5).fit(make_two_circles(1000))
        >>> again = PrivacyAccountant.open(path)
        >>> last = again.releases()[-1]
        >>> last.estimator, last.number
        ('DPLloyd', 1)
        >>> stored = again.release(last.key)
        >>> bool((stored["cluster_centers_"] == model.cluster_centers_).all())
        True
        """
        if isinstance(key, ReleaseKey):
            return self._ledger.release_under(key)
        return self._ledger.release(_checked_key(key))

    def releases(self) -> list[PaidRelease]:
        """Return all payments, and whether what was paid for is stored beside them.

        Returns
        -------
        list
            Of objects with ``key``, ``number``, ``time``, ``estimator``, ``what``, and
            ``size`` in bytes, which is None where nothing is stored.
        """
        return self._ledger.releases()

    def __len__(self) -> int:
        """Count the spends."""
        return self._ledger.read().number

    def __bool__(self) -> bool:
        # An accountant without spends is still an accountant.
        return True

    def __enter__(self) -> Self:
        """Make this the default of every private estimator without an accountant.

        It holds for what runs in this context: this thread, or this task of
        an event loop, and the tasks that it starts; for worker threads that
        have no default of their own; and for estimators that are sent to
        worker processes from inside the block, such as those of a grid search.
        Where several threads or tasks have such blocks at once, a worker
        thread cannot know whose it is; nor can a task without a block beside
        others with blocks. Both release nothing: pass ``accountant=`` there.
        What runs after the block has ended, such as a job that was queued in
        it, is not covered. An estimator that is *made* in a worker process knows no
        default: give it the accountant. An estimator that is pickled inside
        the block keeps this accountant as its own; give the accountant a path
        if the pickle is to outlive this process.
        """
        open_block(self)
        return self

    def __exit__(self, *exception: object) -> None:
        close_block(self)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        self._ledger.share()
        place = self._ledger.store.location
        return _attach, (place, self._ledger.id, self._budget, self._path, self._keep)

    def __repr__(self) -> str:
        text = f"PrivacyAccountant(epsilon={self.epsilon!r}, delta={self.delta!r}"
        if self._path is not None:
            where = self._ledger.store.place.strip("'")
            text += f", path={where!r}"
        if self.composition != "basic":
            text += f", composition={self.composition!r}"
        return text + ")"


def _attach(
    location: str, ledger_id: str, budget: Budget, path: str | None, keep: float = 64.0
) -> PrivacyAccountant:
    """Handle to an existing ledger; the one of this process where there is one."""
    handle = _HANDLES.get(ledger_id)
    if handle is None:
        handle = object.__new__(PrivacyAccountant)
        handle._set(Ledger(make_store(location), ledger_id), budget, path, keep)
    return handle


def check_keep(keep: object) -> None:
    """Refuse bounds of stored releases that are no numbers from 0 on."""
    if not (isinstance(keep, Real) and float(keep) >= 0):
        raise ValueError(f"keep must be a number of MiB, 0 or more; got {quoted(keep)}.")


def _checked_key(key: object) -> str:
    if not (isinstance(key, str) and len(key) == _KEY_LENGTH):
        raise ValueError(f"key must be a text of {_KEY_LENGTH} characters; got {quoted(key)}.")
    return key


class KeyedAccountant(PrivacyAccountant):
    """An accountant under a key: whatever its clones release is paid for once, and drawn once.

    scikit-learn clones an estimator for each fold of a search, in the process that sends the
    folds, and in the same order each time. A clone has a copy of the accountant, and a copy of a
    keyed one has a child of its key. So each fold has a key of its own, which travels with its
    task: a task that runs again, or a search that is made again, finds what was paid.

    Proof: doc/theory/kept_releases.md, "One payment, one release".
    """

    def __init__(self, accountant: PrivacyAccountant, key: ReleaseKey) -> None:
        self.__dict__.update(vars(accountant))
        self._key, self._n_copies, self._n_turns = key, 0, 0
        self._lock = threading.Lock()

    def turn(self, estimator: Any, records: Any) -> Turn:
        """Coins, name and digest of the next release of an estimator, from these records."""
        with self._lock:
            self._n_turns += 1
            key = self._key.child(("release", self._n_turns))
        parameters = {
            name: value
            for name, value in estimator.get_params(deep=False).items()
            if name not in NOT_DIGESTED
        }
        bound = key.child(digest_of((type(estimator), sorted(parameters.items()), records)))
        return Turn(bound, key.name(), bound.name())

    def without_key(self) -> PrivacyAccountant:
        """The accountant of the same ledger that knows no key."""
        plain = object.__new__(PrivacyAccountant)
        own = {"_key", "_n_copies", "_n_turns", "_lock"}
        vars(plain).update({name: v for name, v in vars(self).items() if name not in own})
        return plain

    def __copy__(self) -> "KeyedAccountant":
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> "KeyedAccountant":
        with self._lock:
            self._n_copies += 1
            return KeyedAccountant(self, self._key.child(("copy", self._n_copies)))

    def __enter__(self) -> NoReturn:
        raise ValueError(
            "An accountant under a key cannot be the default of a block, since each estimator "
            "needs a copy of its own: pass it as accountant=."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (super().__reduce__(), self._key, self._n_copies, self._n_turns)


def _again(
    accountant: tuple[Any, ...], key: ReleaseKey, n_copies: int, n_turns: int
) -> KeyedAccountant:
    attach, arguments = accountant
    keyed = KeyedAccountant(attach(*arguments), key)
    keyed._n_copies, keyed._n_turns = n_copies, n_turns
    return keyed
