"""The privacy accountant: a handle to a shared privacy budget, also usable as a ``with`` block."""

import os
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Real
from typing import Any, Literal, NoReturn, Self, cast

from sklearn_dptda._typing import Adjacency, PathLike
from sklearn_dptda.privacy._default_accountant import close_block, open_block
from sklearn_dptda.privacy._guarantee import (
    COMPOSITIONS,
    Budget,
    Charge,
    Neighbours,
    PrivacyGuarantee,
    PrivacyLoss,
    check_adjacency,
    curve_of,
)
from sklearn_dptda.privacy._ledger import Ledger, Payment
from sklearn_dptda.privacy._ledger_extract import changes_in, extract_of
from sklearn_dptda.privacy._ledger_stores import MemoryStore, make_store, process_lock
from sklearn_dptda.privacy._other_libraries import charge_of
from sklearn_dptda.privacy._parameters import quoted
from sklearn_dptda.privacy._release import digest_of
from sklearn_dptda.privacy._release_key import ReleaseKey, Turn
from sklearn_dptda.privacy._risk import PrivacyRisk
from sklearn_dptda.privacy._spend_history import Spend, SpendHistory
from sklearn_dptda.privacy._stored_release import to_bytes

# A ledger line keeps this many characters of a parameter: enough to recognise the parameter, too
# few to hold records.
_LONGEST_PARAMETER = 200
# Length of the key of a payment.
_KEY_LENGTH = 32
# The ledger shows names, and a name of this length can be read in one line.
_LONGEST_NAME = 100
# Handles of this process by the identities of their ledgers. An unpickled accountant finds its
# handle here.
_HANDLES: weakref.WeakValueDictionary[str, "PrivacyAccountant"] = weakref.WeakValueDictionary()


class PrivacyAccountant:
    """Privacy budget that all copies of an estimator share.

    Pass the accountant to private estimators as ``accountant=``. It is a handle to
    one ledger: ``clone``, ``copy``, ``deepcopy``, pickles and the workers of joblib
    (threads or processes) all spend from the same budget. The budget is charged
    before a release is drawn, and a payment is never undone.

    Parameters
    ----------
    epsilon : float
        Largest total privacy loss of all releases under this accountant. ``inf``
        counts losses without any limit, and does not limit ``delta`` either.
    delta : float, default=0.0
        Largest total failure probability of all releases, in [0, 1).
    path : str or path-like, default=None
        Place of the new ledger. To attach to an existing ledger, use
        :meth:`open` instead.

        - None: in the memory of this process and its threads. If another process
          needs the ledger, it moves to a temporary SQLite file, which is removed
          when this process ends.
        - A file name: a persistent SQLite file, shared by the processes of one
          machine. Only you can read it, until you change the access permissions
          of the file. Network file systems do not lock files reliably.
        - A SQLAlchemy URL, such as ``"postgresql://user@host/database"``: a
          database server, for teams and clusters. It needs
          ``pip install 'sklearn-dptda[ledger]'``. Pickles of the accountant
          contain the URL, so it must not contain a password.
    composition : {"basic", "zcdp"}, default="basic"
        How losses are added. ``"basic"`` adds the epsilons and adds the deltas.
        ``"zcdp"`` adds the losses in zero-concentrated differential privacy and
        converts the sum at ``delta``, which must be positive. This is better for many
        releases and worse for few. A loss with a positive delta must then state its
        ``rho``.
    keep : float, default=64.0
        Size in MiB of the largest release that a ledger with a ``path`` stores beside
        its payment. 0 stores no releases.

    Raises
    ------
    PrivacyLedgerError
        If something exists at ``path`` already, or if no ledger can be created
        there.

    Attributes
    ----------
    epsilon, delta, path, composition
        The budget in force. Read only.

    Notes
    -----
    .. rubric:: Privacy

    **What is counted.** The accountant adds the losses of all releases, for one
    adjacency and one kind of privacy unit, and refuses losses of another: people are
    one kind; rows, points and edges are another. One ``transform`` of many clouds is
    counted once (parallel composition). This is correct if each individual has
    records in only one cloud. If individuals appear in ``k`` of the clouds, divide
    epsilon by ``k``. Two accountants do not know of each other's releases.

    **What is stored.** The ledger stores the day, the cost, class names and public
    parameters as text. It stores no data and no seeds. A ledger with a ``path`` also
    stores the releases themselves, which are private output and therefore public: the
    fitted attributes of a private estimator, or what its ``transform`` returned. If
    you lose a release in a crash, :meth:`release` returns it. Releases with
    ``epsilon=inf`` are exact results and are not stored.

    **Rounding.** Sums are rounded once, and a budget admits a relative excess
    of 1e-12, so that ten losses of 0.1 fit a budget of 1.

    **Limits.** A user with write access to the file or the database can falsify the
    ledger. A table in :doc:`/guarantees` lists what is refused, such as old copies.

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
        # The rule may refuse the budget, in which case no file must be created.
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
        """Attach to an existing ledger. This never creates one.

        Parameters
        ----------
        path : str or path-like
            File name or SQLAlchemy URL of the ledger.
        epsilon : float, default=None
            Expected epsilon of the budget. None accepts any.
        delta : float, default=None
            Expected delta of the budget. None accepts any.
        composition : {"basic", "zcdp"}, default=None
            Expected composition. None accepts any.
        moved : bool, default=False
            True declares that the file at ``path`` has replaced the original file
            of the ledger, on this machine or another one, and that the original
            is no longer used. Otherwise a copy is refused, because each copy
            would have the whole budget. Payments that the current user has seen in
            the original stay paid.
        keep : float, default=64.0
            Size in MiB of the largest release that is stored beside its payment.

        Returns
        -------
        PrivacyAccountant

        Raises
        ------
        PrivacyLedgerError
            If there is no ledger at ``path``, for example because the file is
            missing or empty, or if the file is a copy or a restored backup.

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
                f"delta={budget.delta:g}, composition={budget.composition!r}, which differs from "
                "the arguments. Leave the arguments out to accept this budget, or choose another "
                "path."
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
        """Largest total privacy loss."""
        return self._budget.epsilon

    @property
    def delta(self) -> float:
        """Largest total failure probability."""
        return self._budget.delta

    @property
    def path(self) -> str | None:
        """Path of the ledger as it was given, or None."""
        return self._path

    @property
    def composition(self) -> str:
        """Rule by which losses are added."""
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
        """Spend the privacy loss of a release of your own, before you draw it.

        Private estimators call this method themselves.

        Parameters
        ----------
        epsilon : float, PrivacyGuarantee or dp_accounting.DpEvent
            Privacy loss of the release. Releases of other libraries, such as
            OpenDP, Tumult Analytics or Opacus, are counted as numbers or as
            events. A guarantee also provides delta, rho, adjacency, unit and
            what is released. The noise multiplier of an event is relative to
            the sensitivity under ``adjacency``.
        delta : float, default=0.0
            Failure probability of the release. For an event without a pure
            epsilon, it is the delta at which epsilon is computed, and must be
            positive.
        rho : float, default=None
            Zero-concentrated privacy loss for ``composition="zcdp"``, if it is better
            than ``epsilon**2 / 2``.
        adjacency : {"replace-one", "add-remove"}, default="replace-one"
            Neighbours for which the loss holds.
        unit : str, default="one record"
            The privacy unit, in the words of a guarantee. ``"one person"`` and
            ``"all rows of one person"`` count people.
        what : str, default=""
            Description of the release. It is stored in the ledger and must not
            contain data.
        estimator : str, default=""
            Name of the estimator or program that makes the release.
        parameters : dict, default=None
            Public parameters of the release, stored as text. They must not
            contain data.
        key : str of 32 characters, default=None
            Identity of the payment. A second payment under the same key, with the
            same content, costs nothing. That is only correct for the same
            release of the same records, drawn with the same random numbers.

        Raises
        ------
        PrivacyBudgetExceeded
            If the loss does not fit the budget. Nothing is spent.
        PrivacyLedgerError
            If the ledger cannot be used, or if something else was paid for under
            the key. Do not release anything in this case.

        Examples
        --------
        >>> from sklearn_dptda.privacy import PrivacyAccountant
        >>> accountant = PrivacyAccountant(1.0)
        >>> accountant.spend(0.25, unit="one person", what="a histogram")
        >>> accountant.remaining().epsilon
        0.75
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
                "unit must be a string that names the privacy unit, such as 'one row'; got "
                f"{quoted(unit)}."
            )
        charge = Charge(float(epsilon), float(delta), None if rho is None else float(rho))
        neighbours = Neighbours(check_adjacency(adjacency), str(unit))
        shown = {
            str(name): repr(value)[:_LONGEST_PARAMETER]
            for name, value in (parameters or {}).items()
        }
        self._ledger.spend([Payment(charge, neighbours, str(what), str(estimator), shown, key)])

    def check(self, releases: Iterable[tuple[PrivacyGuarantee, int]]) -> None:
        """Check whether planned releases fit the budget together. Nothing is spent.

        It does not reserve any budget: another program can spend from the ledger.

        Parameters
        ----------
        releases : iterable of (PrivacyGuarantee, int)
            Guarantees, and the numbers of such releases.

        Raises
        ------
        PrivacyBudgetExceeded
            If the releases do not fit the budget together.

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
        if releases := list(releases):
            self._ledger.check(releases)

    def total(self) -> PrivacyLoss:
        """Return the total privacy loss of all releases so far.

        Returns
        -------
        PrivacyLoss
            Under ``"zcdp"``, the sum is converted at the delta of the budget.
        """
        state = self._ledger.read()
        return state.budget.rule().total(state.sums)

    def remaining(self) -> PrivacyLoss:
        """Return the largest privacy loss that still fits the budget.

        Returns
        -------
        PrivacyLoss
            Under ``"zcdp"``, the largest pure loss (``delta=0``).
        """
        state = self._ledger.read()
        return state.budget.rule().remaining(state.sums)

    def risk(self, prior: float = 0.5, fpr: float = 0.01) -> PrivacyRisk:
        """Compute what all releases so far together can tell about one record.

        The ledger has the losses, not the mechanisms, so this is an upper bound. It is for losses
        that are fixed in advance. If you choose them by looking at earlier releases, compute the
        risk of the whole budget.

        Parameters
        ----------
        prior : float, default=0.5
            Probability, before the releases, that an accusation is right.
        fpr : float, default=0.01
            Rate of false accusations.

        Returns
        -------
        PrivacyRisk
            Bounds for every attack by someone who knows all other records.
        """
        state = self._ledger.read()
        adjacency = cast(Adjacency, state.adjacency or "replace-one")
        return PrivacyRisk.of(curve_of(state.sums, None), prior, fpr, adjacency)

    def spends(self) -> SpendHistory:
        """Return the history of all payments: day, cost, release and estimator.

        Returns
        -------
        SpendHistory
            One line for each payment, without data.
        """
        return SpendHistory(self._ledger.spends())

    def under(self, name: str) -> "NamedAccountant":
        """Return this accountant for releases that are paid and drawn once under a public name.

        Pass it as ``accountant=``. If you repeat the same work under the same name,
        after a crash or on another day, it pays nothing and draws the same. Each clone
        of an estimator gets a name of its own, so that the folds of a search can be
        repeated, by a computing engine whose worker has died or by you.

        Parameters
        ----------
        name : str
            Name of the work, such as ``"ward 3, november"``. The ledger shows it, so
            that it must not contain data.

        Returns
        -------
        NamedAccountant
            Accountant for the estimators of one piece of work. It cannot be used as a
            ``with`` block.

        Raises
        ------
        PrivacyLedgerError
            If the secret of the ledger cannot be read or created. It lies beside the
            marks of the ledger, in the home of the user who releases.

        Notes
        -----
        .. rubric:: Privacy

        The noise is a function of the secret of the ledger, the name, the records, the
        parameters and the code of this package. Anyone who knows the secret can undo
        the noise of all named releases. It is in no ledger, extract or pickle of a fitted
        estimator, and it travels only as a key of one name, with an estimator that is
        not fitted yet. If you delete the secret, stored releases remain.

        If the records or the parameters change, or if another user or machine with
        another secret takes the name, the ledger refuses the release, and nothing is
        spent. An ensemble that clones its estimator only in worker processes, such as
        ``BaggingClassifier`` with ``n_jobs``, cannot be fitted under a name.

        Examples
        --------
        >>> from sklearn.model_selection import cross_val_score
        >>> from sklearn_dptda.cluster import DPMoG
        >>> from sklearn_dptda.datasets import make_two_circles
        >>> from sklearn_dptda.privacy import PrivacyAccountant
        >>> X, budget = make_two_circles(900), PrivacyAccountant(3.0, 1e-5)
        >>> def scores():
        ...     model = DPMoG(2, bounds=(-3, 4), accountant=budget.under("circles"))
        ...     return cross_val_score(model, X, cv=3)
        >>> bool((scores() == scores()).all()), len(budget)
        (True, 3)
        """
        return NamedAccountant(self, self._ledger.secret().child(check_name(name)), name)

    def extract(self) -> dict[str, Any]:
        """Return the contents of the ledger, for an auditor without access to the ledger.

        Returns
        -------
        dict
            A dictionary that can be written as JSON, without releases and records:
            the name of the ``ledger``, its ``budget``, the number and exact sums of
            the payments (``counted``), the ``payments``, each with a ``hash`` of its
            line and of the previous hash, the SHA-256 digests of stored ``releases``,
            and the hash of everything (``seal``).

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
        """Find inconsistencies in an extract, without access to the ledger.

        Parameters
        ----------
        extract : dict
            Result of :meth:`extract`, possibly read from JSON.
        earlier : dict, default=None
            An earlier extract of the same ledger, for comparison.

        Returns
        -------
        list of str
            What was changed or removed, or does not add up.
        """
        return changes_in(extract, earlier)

    def store(self, key: str, release: object) -> None:
        """Store a release beside its payment.

        Private estimators store their releases themselves. A ledger without a
        ``path``, or with ``keep=0``, stores nothing.

        Parameters
        ----------
        key : str of 32 characters
            Key of the payment in :meth:`spend`.
        release : object
            The private output: numbers, strings, booleans, None, arrays of these,
            sparse matrices, and lists, tuples and dictionaries of them. It must
            contain nothing else.

        Raises
        ------
        PrivacyLedgerError
            If nothing was paid under the key, if another release is stored under
            it, or if the ledger cannot be used.
        """
        if self._path is None or self._keep == 0:
            return
        content = to_bytes(release, self._keep * 2**20)
        self._ledger.keep(_checked_key(key), content)

    def release(self, key: str) -> Any:
        """Return a stored release. This costs nothing.

        Parameters
        ----------
        key : str
            A key from :meth:`releases`, or a name, for the last release under it.

        Returns
        -------
        object
            The fitted attributes of the estimator, by name. For a release in
            ``transform``, the entry ``"transform"`` is what the method returned.

        Raises
        ------
        LookupError
            If nothing is stored under the key.
        PrivacyLedgerError
            If the stored release is damaged, or if the ledger cannot be used.

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
        >>> stored = again.release(again.releases()[-1].key)
        >>> bool((stored["cluster_centers_"] == model.cluster_centers_).all())
        True
        """
        return self._ledger.release(check_name(key))

    def releases(self) -> list[Spend]:
        """List all payments, and whether their releases are stored.

        Returns
        -------
        list
            The payments of :meth:`spends`. The attribute ``key`` is for :meth:`release`,
            and ``size`` is the size of the stored release in bytes, or None if it is
            not stored.
        """
        return self._ledger.spends()

    def __len__(self) -> int:
        """Return the number of payments."""
        return self._ledger.read().number

    def __bool__(self) -> bool:
        # Without this, an accountant without payments would be false, since its length is 0.
        return True

    def __enter__(self) -> Self:
        """Make this the default of every private estimator without an accountant.

        The default applies to this thread, or to this task of an event loop and the
        tasks that it starts. It also applies to worker threads without a default of
        their own, and to estimators that are sent to worker processes from inside the
        block, such as those of a grid search.

        The default does not apply to code that runs after the block has ended, nor to
        an estimator that is *created* in a worker process. If several threads or
        tasks have blocks of different accountants at the same time, a worker thread,
        or a task without a block, cannot know to which of them it belongs, and
        refuses to release anything. Pass ``accountant=`` in these cases. An estimator
        that is pickled inside the block keeps this accountant as its own. Give the
        accountant a path if the pickle must outlive this process.
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
    """Return a handle to an existing ledger: the one of this process, if it has one already."""
    handle = _HANDLES.get(ledger_id)
    if handle is None:
        handle = object.__new__(PrivacyAccountant)
        handle._set(Ledger(make_store(location), ledger_id), budget, path, keep)
    return handle


def check_keep(keep: object) -> None:
    """Raise ValueError unless ``keep`` is a number, 0 or larger."""
    if not (isinstance(keep, Real) and float(keep) >= 0):
        raise ValueError(f"keep must be a number of MiB, 0 or larger; got {quoted(keep)}.")


def _checked_key(key: object) -> str:
    if not (isinstance(key, str) and len(key) == _KEY_LENGTH):
        raise ValueError(f"key must be a string of {_KEY_LENGTH} characters; got {quoted(key)}.")
    return key


def check_name(name: object) -> str:
    """Return a name; ValueError unless it is a text that a ledger can show in a line."""
    if not (isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME and name.isprintable()):
        raise ValueError(
            f"name must be a string of 1 to {_LONGEST_NAME} printable characters, such as "
            f"'ward 3, november'; got {quoted(name)}."
        )
    return str(name)


class NamedAccountant(PrivacyAccountant):
    """An accountant under a name: each release of its clones is paid for once and drawn once.

    scikit-learn clones an estimator for each fold of a search, in the process that sends the
    folds, and in the same order each time. A clone has a copy of the accountant, and a copy of a
    named accountant has a child of its key and of its name. Each fold therefore has a key of its
    own, which travels with its task, and is in no pickle once it has been used. A task that runs
    again, or a search that is repeated, finds its payment in the ledger.

    A template that is cloned in workers alone is unused here, and is published with what they have
    fitted. What was pickled before it was ever copied therefore gives no keys to its clones
    elsewhere, so that such ensembles are refused.

    ``digest`` is one of everything that determines the releases, if the caller knows it. Otherwise
    the releasing step digests itself and its records. Without a name, the work cannot be
    repeated in another call: then the digest is ``b""``, as the records are always the same.

    Proof: doc/theory/kept_releases.md, "One payment, one release".
    """

    def __init__(
        self,
        accountant: PrivacyAccountant,
        key: ReleaseKey | None,
        name: str | None,
        digest: bytes | None = None,
    ) -> None:
        self.__dict__.update(vars(accountant))
        self._take(key, name)
        self._digest = digest
        self._is_copy = self._is_elsewhere = False

    def _take(self, key: ReleaseKey | None, name: str | None) -> None:
        # The key is None in a pickle that was made after the key had been used.
        self._key, self._name, self._n_copies, self._n_turns = key, name, 0, 0
        self._lock = threading.Lock()

    @property
    def needs_records(self) -> bool:
        """Whether a turn needs all that determines the release."""
        return self._digest is None

    @contextmanager
    def turn(self, *determines: Any) -> Iterator[Turn]:
        """Yield the turn of the next release, which is over if its payment in the block succeeds.

        ``determines`` is all that determines the release.
        """
        if self._key is None:
            raise ValueError(
                "This accountant was used before it was pickled, or was cloned in a worker alone, "
                "so that it has no key. Set accountant=budget.under(name) again, and fit ensembles "
                "in this process."
            )
        digest = digest_of(determines) if self._digest is None else self._digest
        with self._lock:
            yield Turn.of(self._key, self._name, self._n_turns + 1, digest)
            self._n_turns += 1

    def without_key(self) -> Self:
        """Return an accountant that refuses to release, for the pickle of a fitted estimator."""
        twin = self._child("under", "")
        twin._take(None, self._name)
        return twin

    def under(self, name: str) -> "NamedAccountant":
        """Return an accountant whose name follows this name, for a part of the work."""
        part = self._child("under", check_name(name))
        part._is_elsewhere = False
        return part

    def _child(self, *label: Any) -> Self:
        """Return an accountant with a child of the key and of the name."""
        twin = object.__new__(type(self))
        vars(twin).update(vars(self))
        key = None if self._key is None else self._key.child(label)
        part = label[-1] if label[0] == "under" else " ".join(map(str, label))
        twin._take(key, None if self._name is None else f"{self._name}/{part}")
        return twin

    def __copy__(self) -> Self:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        with self._lock:
            self._n_copies += 1
            copy = self._child("copy", self._n_copies)
        if self._is_elsewhere and not self._is_copy:
            copy._key = None
        copy._is_copy = True
        return copy

    def __enter__(self) -> NoReturn:
        raise ValueError(
            "An accountant under a name cannot be the default of a with block, because each "
            "estimator needs a copy of its own. Pass it as accountant=."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Estimators that fit clones of others keep these templates. After a fit they are published,
        # and the noise of the clones can be undone with the key of the template.
        used = self._n_copies or self._n_turns
        plain = super().__reduce__()
        named = None if used else self._key, self._name, self._digest
        return _under, (plain, named, self._is_copy)


def _under(accountant: tuple[Any, ...], named: tuple[Any, ...], is_copy: bool) -> NamedAccountant:
    attach, arguments = accountant
    found = NamedAccountant(attach(*arguments), *named)
    found._is_copy, found._is_elsewhere = is_copy, True
    return found
