"""An accountant under a key: whatever its clones release is paid for once, and drawn once.

scikit-learn clones an estimator for each fold of a search, in the process that sends the folds, and
in the same order each time. A clone has a copy of the accountant, and a copy of a keyed one has a
child of its key. So each fold has a key of its own, which travels with its task: a task that runs
again, or a search that is made again, finds what was paid.

Proof: doc/theory/kept_releases.md, "One payment, one release".
"""

import threading
from typing import Any, NoReturn

from sklearn_dptda.privacy._accountant import PrivacyAccountant
from sklearn_dptda.privacy._digest import NOT_DIGESTED, digest_of
from sklearn_dptda.privacy._release_key import ReleaseKey, Turn


class KeyedAccountant(PrivacyAccountant):
    """An accountant for searches that may be made again, or whose folds may run again.

    Each clone of an estimator that has it gets a key of its own. When a fold
    runs again, since its worker has died, or when the whole search is made
    again, after a crash or on another day, it pays nothing and repeats its
    draws.

    Parameters
    ----------
    accountant : PrivacyAccountant
        Who pays.
    key : ReleaseKey
        Of one search. :meth:`ReleaseKey.open` keeps one in a file.

    Raises
    ------
    ValueError
        If either is none.

    See Also
    --------
    sklearn_dptda.model_selection.release_replicates : Many releases under one key.

    Notes
    -----
    .. rubric:: Privacy

    That of the estimators, each of which has its own copy, and makes its
    releases in one order. Coins are a function of the key and of a digest of
    records in memory, parameters and code. Under its keys the ledger refuses
    releases of other records, parameters or code, and nothing is paid for them.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn_dptda.cluster import DPMoG
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> from sklearn_dptda.privacy import KeyedAccountant, PrivacyAccountant, ReleaseKey
    >>> X, budget, key = make_two_circles(900), PrivacyAccountant(3.0, 1e-5), ReleaseKey()
    >>> def scores():
    ...     model = DPMoG(2, bounds=(-3, 4), accountant=KeyedAccountant(budget, key))
    ...     return cross_val_score(model, X, cv=3)
    >>> bool((scores() == scores()).all()), len(budget)
    (True, 3)
    """

    def __init__(self, accountant: PrivacyAccountant, key: ReleaseKey) -> None:
        if not isinstance(accountant, PrivacyAccountant):
            kind = type(accountant).__name__
            raise ValueError(f"accountant must be a PrivacyAccountant; got one of type {kind}.")
        if not isinstance(key, ReleaseKey):
            raise ValueError(f"key must be a ReleaseKey; got one of type {type(key).__name__}.")
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
