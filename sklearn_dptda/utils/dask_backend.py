"""A joblib backend for Dask whose loops continue if a worker dies."""

from typing import Any

from joblib import register_parallel_backend


def register_surviving_dask() -> None:
    """Register the joblib backend ``"surviving-dask"``.

    joblib's own backend ``"dask"`` scatters each large argument to one worker. If
    this worker dies, the argument is lost, and a search of scikit-learn ends with a
    ``FutureCancelledError`` after it has spent its budget. The backend
    ``"surviving-dask"`` scatters only the arguments that ``scatter=`` names, to all
    workers. Other arguments travel with their tasks, so that a task can run again
    anywhere. Loops of this package continue under both backends.

    Notes
    -----
    .. rubric:: Privacy

    If a fold of a search runs again, it spends again and draws new noise, unless
    the accountant is used under a key (see
    :meth:`~sklearn_dptda.privacy.PrivacyAccountant.under`).

    Examples
    --------
    >>> from joblib import parallel_config
    >>> from sklearn_dptda.utils.dask_backend import register_surviving_dask
    >>> register_surviving_dask()
    >>> with parallel_config(backend="surviving-dask", scatter=[X]):  # doctest: +SKIP
    ...     search.fit(X)
    """
    register_parallel_backend("surviving-dask", _make)


def _make(**options: Any) -> Any:
    from joblib._dask import DaskDistributedBackend

    class SurvivingDaskBackend(DaskDistributedBackend):
        call_data_futures: Any

        def start_call(self) -> None:
            super().start_call()
            # joblib scatters arguments only if this attribute is set.
            self._places, self.call_data_futures = self.call_data_futures, None

        def stop_call(self) -> None:
            self.call_data_futures = self._places
            super().stop_call()

    return SurvivingDaskBackend(**options)
