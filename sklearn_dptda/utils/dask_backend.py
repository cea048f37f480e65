"""A backend of joblib for Dask whose loops survive the death of a worker."""

from typing import Any

from joblib import register_parallel_backend


def register_surviving_dask() -> None:
    """Make ``parallel_config(backend="surviving-dask")`` known to joblib.

    joblib's own backend ``"dask"`` scatters each large argument to one worker,
    and with that worker it dies: a search of scikit-learn then ends with a
    ``FutureCancelledError``, after it has paid. This one scatters nothing but
    what ``scatter=`` names, to all workers; other arguments travel with their
    tasks, so that a task can run again anywhere. Loops of this package, such
    as ``transform`` and ``release_replicates``, survive under both.

    Notes
    -----
    .. rubric:: Privacy

    A fold of a search that runs again pays again and draws again, with coins
    of its own.

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
            # Without a place for them joblib scatters no arguments.
            self._places, self.call_data_futures = self.call_data_futures, None

        def stop_call(self) -> None:
            self.call_data_futures = self._places
            super().stop_call()

    return SurvivingDaskBackend(**options)
