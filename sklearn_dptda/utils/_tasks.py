"""Work in other processes and on other machines: tasks by joblib, and sums over parts by Dask.

Tasks run again if a worker dies.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
from joblib import Parallel, delayed, parallel_config
from joblib.parallel import ThreadingBackend, get_active_backend

from sklearn_dptda._typing import Table
from sklearn_dptda.privacy._estimator import plain_arithmetic

# Give up after this many consecutive losses of workers without any finished task.
_MAX_LOSSES = 5
# Number of sums that one Dask task adds. The tree of tasks is then shallow, and one worker holds
# only a few sums at a time.
_SUMS_PER_TASK = 8

# A function, and its first arguments, which are the same for all tasks.
_Work: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]
# Numbers of tasks and their other arguments.
_Tasks: TypeAlias = list[tuple[int, Sequence[Any]]]


@dataclass(frozen=True)
class Failed:
    """Placeholder for the result of a failed task, with its error."""

    error: BaseException


def tasks_may_repeat(n_jobs: int | None = None) -> bool:
    """Whether tasks run in other processes, and therefore run again if their process dies."""
    return _engine(n_jobs) is not None


def run(
    function: Callable[..., Any], items: Iterable[Sequence[Any]], *common: Any, **options: Any
) -> list[Any]:
    """``[function(*common, *item) for item in items]``, by joblib, with ``common`` for all.

    If ``function`` draws noise, it must use keys or seeds from the items, so that a task that runs
    again repeats its draw. Raises the first error of a task.
    """
    results = outcomes(partial(_silently, function), items, *common, **options)
    error = first_error(results)
    if error is not None:
        raise error
    return results


def _silently(function: Callable[..., Any], *arguments: Any) -> Any:
    with plain_arithmetic():
        return function(*arguments)


def first_error(results: Iterable[Any]) -> BaseException | None:
    """Return the first error among the results, Ctrl-C before all others, or None."""
    errors = [result.error for result in results if isinstance(result, Failed)]
    interrupts = [error for error in errors if isinstance(error, KeyboardInterrupt)]
    return next(iter(interrupts + errors), None)


def outcomes(
    function: Callable[..., Any],
    items: Iterable[Sequence[Any]],
    *common: Any,
    n_jobs: int | None = None,
    then: Callable[[int, Any], object] = lambda index, result: None,
    **options: Any,
) -> list[Any]:
    """Like :func:`run`, but a task that fails gives a :class:`Failed`, and the others continue.

    ``then`` is called with the index of an item and its result as soon as the task has finished.

    Ctrl-C ends the loop. It is then the error of all unfinished tasks.
    """
    items, losses = list(items), 0
    unfinished = Failed(RuntimeError("no worker finished this task."))
    results: list[Any] = [unfinished] * len(items)
    engine = _engine(n_jobs, options.get("prefer"))
    while missing := [(i, item) for i, item in enumerate(items) if results[i] is unfinished]:
        # A task that always kills its worker also ends the tasks beside it. After one loss, the
        # order is reversed. After more consecutive losses, tasks run one at a time.
        missing = missing[::-1] if losses == 1 else missing
        missing = missing[losses - 2 :][:1] or missing[-1:] if losses > 1 else missing
        try:
            for index, result in _finished(engine, (function, common), missing, n_jobs, options):
                results[index] = _then(then, index, result)
        except (Exception, KeyboardInterrupt) as error:
            # Errors of tasks are returned as results, so that this is an error of the engine, or an
            # interrupt.
            some = any(results[i] is not unfinished for i, _ in missing)
            losses = 0 if some else losses + 1
            ends = engine is None or losses == _MAX_LOSSES or isinstance(error, KeyboardInterrupt)
            if ends:
                results = [Failed(error) if r is unfinished else r for r in results]
    return results


def _then(then: Callable[[int, Any], object], index: int, result: Any) -> Any:
    """Call ``then`` with a result. Return the result, or the error as a :class:`Failed`."""
    if not isinstance(result, Failed):
        try:
            then(index, result)
        except Exception as error:
            return Failed(error)
    return result


def _finished(
    engine: str | None, work: _Work, missing: _Tasks, n_jobs: int | None, options: dict[str, Any]
) -> Iterator[tuple[int, Any]]:
    """Yield (index, result) as tasks finish; raise if the engine fails."""
    function, common = work
    backend, _ = get_active_backend(prefer=options.get("prefer"))
    # A backend that returns results only at the end loses finished results if it fails.
    as_they_finish = getattr(backend, "supports_return_generator", False)
    if engine is None and not isinstance(backend, ThreadingBackend):
        n_jobs, as_they_finish, options = 1, True, {**options, "backend": "sequential"}
    elif engine == "multiprocessing":
        # A pool of this backend waits for ever for the result of a worker that has died.
        as_they_finish, options = True, {**options, "backend": "loky"}
    tasks = (
        delayed(_attempt)(engine is not None, function, index, *common, *item)
        for index, item in missing
    )
    order = "generator_unordered" if as_they_finish else "list"
    # Without max_nbytes=None, joblib writes large arguments to shared memory or to disk, where the
    # exact records stay if the process is killed.
    yield from Parallel(n_jobs=n_jobs, return_as=order, max_nbytes=None, **options)(tasks)


def _attempt(
    elsewhere: bool, function: Callable[..., Any], index: int, *arguments: Any
) -> tuple[int, Any]:
    """Return the number of a task, and its result or a :class:`Failed`."""
    # Loops inside of a task in another process run sequentially.
    inner = parallel_config(backend="sequential") if elsewhere else nullcontext()
    try:
        with inner:
            return index, function(*arguments)
    except Exception as error:
        return index, Failed(error)


def _engine(n_jobs: int | None = None, prefer: str | None = None) -> str | None:
    """Return the name of the engine that runs tasks in other processes, or None."""
    backend, default = get_active_backend(prefer=prefer)
    kind, n_jobs = type(backend), default if n_jobs is None else n_jobs
    names = {base.__name__ for base in kind.__mro__}
    if "DaskDistributedBackend" in names:
        return "dask"
    if "RayBackend" in names:
        return None if n_jobs == 1 else "ray"
    if kind.__module__ != "joblib._parallel_backends":
        return "other"
    if names & {"SequentialBackend", "ThreadingBackend"} or backend.effective_n_jobs(n_jobs) == 1:
        return None
    return "multiprocessing" if "MultiprocessingBackend" in names else "loky"


def parts_elsewhere(X: Any) -> Any:
    """Return an object that sums over parts of rows on other machines, or None for other input.

    An object with a method ``map_reduce`` is returned itself.
    """
    if of_dask(X):
        return DaskParts(X)
    return X if has_map_reduce(X) else None


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection: an array, a data frame or a delayed object."""
    return any(kind.__module__.startswith("dask") for kind in type(X).__mro__) or (
        # Collections of other libraries may also hold data in memory, without a graph.
        hasattr(type(X), "__dask_graph__") and X.__dask_graph__() is not None
    )


def of_dask(X: Any) -> bool:
    """Whether X is a Dask collection, or a list of Dask collections."""
    return is_dask(X) or (isinstance(X, list | tuple) and len(X) > 0 and all(map(is_dask, X)))


def has_map_reduce(X: Any) -> bool:
    # A column of a data frame may have this name.
    return callable(getattr(X, "map_reduce", None))


class DaskParts:
    """Parts of a Dask array or data frame, or of a list of delayed tables."""

    def __init__(self, X: Any) -> None:
        if hasattr(type(X), "to_delayed") and len(getattr(X, "shape", ())) != 2:
            raise ValueError(
                f"X is not a table: its type is {type(X).__name__}. The supported Dask collections "
                "are arrays of two dimensions, data frames and lists of delayed tables."
            )
        self._X, self._was_read = X, False

    @property
    def head(self) -> Table | None:
        """Empty table with the columns of the parts; None if the columns are not known yet."""
        if hasattr(type(self._X), "columns"):
            return self._X._meta
        if hasattr(type(self._X), "to_delayed"):
            return np.empty((0, self._X.shape[1]), self._X.dtype)
        return None

    @cached_property
    def _parts(self) -> list[Any]:
        return delayed_parts(self._X)

    def mapped(self, function: Callable[[Any], Any]) -> Any:
        """Apply a function to delayed tables; a list gives a list of delayed results."""
        from dask import delayed

        each = delayed(function, traverse=False)
        mapped = [each(part) for part in self._parts]
        return mapped if isinstance(self._X, list | tuple) else mapped[0]

    def map_reduce(self, function: Callable[[Any], Any]) -> Any:
        """Apply a function to each part where it is, and add the results in a tree.

        The first call, which is made before anything is paid, refuses a cluster without workers.
        """
        from dask import delayed

        if not self._was_read:
            _refuse_no_workers()
            self._was_read = True
        # The function is sent once to each machine. Dask does not search it for collections.
        shared = delayed(function, traverse=False)
        sums = [delayed(_applied)(shared, part) for part in self._parts]
        while len(sums) > 1:
            sums = [
                delayed(sum)(sums[i : i + _SUMS_PER_TASK])
                for i in range(0, len(sums), _SUMS_PER_TASK)
            ]
        return sums[0].compute()


def _refuse_no_workers() -> None:
    """Raise ValueError if Dask would wait without end, because its cluster has no workers."""
    from dask.base import get_scheduler

    # Without a client of a cluster, Dask computes on this machine.
    client: Any = getattr(get_scheduler(), "__self__", None)
    if not hasattr(client, "nthreads") or client.asynchronous:
        return
    # An adaptive cluster starts workers as soon as there is work.
    if getattr(client.cluster, "_adaptive", None) is None and not client.nthreads():
        raise ValueError(
            "X is a Dask collection, but the Dask cluster has no workers, so that the computation "
            "would never start. Start workers, for example with cluster.scale(1), or close the "
            "client to compute on this machine."
        )


def whole_rows(X: Any) -> Any:
    """Return a Dask array in chunks with all columns. Data frames are returned unchanged."""
    return X.rechunk({1: -1}) if hasattr(type(X), "rechunk") and X.ndim == 2 else X


def delayed_parts(X: Any) -> list[Any]:
    """Parts of a Dask collection, or of a list of Dask collections, each with all columns."""
    if isinstance(X, list | tuple):
        return [part for each in X for part in delayed_parts(each)]
    if not hasattr(type(X), "to_delayed"):
        return [X]
    parts = whole_rows(X).to_delayed()
    return list(parts.ravel() if hasattr(parts, "ravel") else parts)


def _applied(function: Callable[[Any], Any], part: Any) -> Any:
    return function(part)
