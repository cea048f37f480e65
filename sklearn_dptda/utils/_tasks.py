"""Tasks on the cores of this machine or on a cluster, where workers may die and tasks run again."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias

from joblib import Parallel, delayed, parallel_config
from joblib.parallel import DEFAULT_MP_CONTEXT, ThreadingBackend, get_active_backend

from sklearn_dptda.privacy._estimator import silent_arithmetic

# Losses of workers in a row, without any task finished, before tasks are given up.
_MAX_LOSSES = 5
# Tasks that are sent ahead, at least: a scheduler sees what is coming, and never holds all items.
_MIN_TASKS_AHEAD = 64
# Seconds after which a wait lets signals in, which Windows holds back until then.
_WAIT_TIMEOUT = 0.5
# Seconds after which the result in a transfer is taken for one that is being made again.
_TRANSFER_TIMEOUT = 30.0

# A function, and the first arguments that all its tasks have in common.
_Work: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]
# Numbers of tasks and their other arguments.
_Tasks: TypeAlias = list[tuple[int, Sequence[Any]]]
# Sends one task and returns its future.
_Send: TypeAlias = Callable[..., Any]
# Opens a backend for some work and a number of workers: how to send tasks, number of cores.
_Sender: TypeAlias = Callable[[Any, _Work, int], AbstractContextManager[tuple[_Send, int]]]


@dataclass(frozen=True)
class Failed:
    """In place of a result: why there is none."""

    error: BaseException


def tasks_may_repeat(n_jobs: int | None = None) -> bool:
    """Whether tasks run in other processes, and so again where their process has died."""
    return _engine(n_jobs) is not None


def run(
    function: Callable[..., Any], items: Iterable[Sequence[Any]], *common: Any, **options: Any
) -> list[Any]:
    """``[function(*common, *item) for item in items]``, by joblib; ``common`` is shipped once.

    Whoever draws noise in ``function`` takes it from keys, or from seeds, among the items, so that
    a task that runs again repeats its draw. Raises the first error of a task.
    """
    results = outcomes(partial(_silently, function), items, *common, **options)
    error = first_error(results)
    if error is not None:
        raise error
    return results


def _silently(function: Callable[..., Any], *arguments: Any) -> Any:
    with silent_arithmetic():
        return function(*arguments)


def first_error(results: Iterable[Any]) -> BaseException | None:
    """Why there is no result of some task, None where there are all; Ctrl-C before all others."""
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
    """As :func:`run`, with a :class:`Failed` for each task that failed; all others are finished.

    ``then`` is called with the place of an item and its result, as soon as there is one.

    Ctrl-C ends the loop, and is why what was not finished by then has failed.
    """
    items, losses = list(items), 0
    unfinished = Failed(RuntimeError("no worker finished this task."))
    results: list[Any] = [unfinished] * len(items)
    engine = _engine(n_jobs, options.get("prefer"))
    while missing := [(i, item) for i, item in enumerate(items) if results[i] is unfinished]:
        # A task that always kills its worker takes those with it that run beside it: others come
        # first after one loss in a row, and alone after more.
        missing = missing[::-1] if losses == 1 else missing
        missing = missing[losses - 2 :][:1] or missing[-1:] if losses > 1 else missing
        try:
            for index, result in _finished(engine, (function, common), missing, n_jobs, options):
                results[index] = _then(then, index, result)
        except (Exception, KeyboardInterrupt) as error:
            # Errors of tasks are results: this one is of the engine, or of whoever stops it.
            some = any(results[i] is not unfinished for i, _ in missing)
            losses = 0 if some else losses + 1
            ends = engine is None or losses == _MAX_LOSSES or isinstance(error, KeyboardInterrupt)
            if ends:
                results = [Failed(error) if r is unfinished else r for r in results]
    return results


def _then(then: Callable[[int, Any], object], index: int, result: Any) -> Any:
    """A result that was handed on, or why it must not be seen."""
    if not isinstance(result, Failed):
        try:
            then(index, result)
        except Exception as error:
            return Failed(error)
    return result


def _finished(
    engine: str | None, work: _Work, missing: _Tasks, n_jobs: int | None, options: dict[str, Any]
) -> Iterator[tuple[int, Any]]:
    """Yield (index, result) as tasks finish; raise where the engine fails."""
    function, common = work
    backend, _ = get_active_backend(prefer=options.get("prefer"))
    # Backends that hand nothing over before the end lose what was finished where they fail.
    as_they_finish = getattr(backend, "supports_return_generator", False)
    tasks = (
        delayed(_attempt)(engine is not None, function, index, *common, *item)
        for index, item in missing
    )
    if engine in _SENDERS:
        arriving = _one_by_one(_SENDERS[engine], work, missing, n_jobs)
        tasks = (delayed(_same)(result) for result in arriving)
    if engine in _SENDERS or (engine is None and not isinstance(backend, ThreadingBackend)):
        # One after the other, as they are made here or arrive; joblib says how far it is.
        n_jobs, as_they_finish, options = 1, True, {**options, "backend": "sequential"}
    order = "generator_unordered" if as_they_finish else "list"
    yield from Parallel(n_jobs=n_jobs, return_as=order, **options)(tasks)


def _one_by_one(
    sender: _Sender, work: _Work, missing: _Tasks, n_jobs: int | None
) -> Iterator[tuple[int, Any]]:
    """Yield results as tasks finish; a task that the engine loses does not end the others.

    joblib's loops end with the first worker, and its pool of processes waits for a dead one.
    """
    backend, default = get_active_backend()
    n_jobs = default if n_jobs is None else n_jobs
    done: SimpleQueue[Any] = SimpleQueue()
    running: set[Any] = set()
    lost: Exception | None = None
    todo = iter(missing)
    with backend.retrieval_context(), sender(backend, work, n_jobs) as (send, cores):
        most = max(_MIN_TASKS_AHEAD, 2 * cores)
        try:
            while True:
                try:
                    for index, item in islice(todo, most - len(running)):
                        future = send(index, item)
                        running.add(future)
                        future.add_done_callback(done.put)
                except Exception as error:
                    lost, todo = error, iter(())
                if not running:
                    break
                try:
                    future = done.get(timeout=_WAIT_TIMEOUT)
                except Empty:
                    # Raises where no worker is left that tasks could wait for.
                    backend.effective_n_jobs(n_jobs)
                    continue
                try:
                    result = future.result(timeout=_TRANSFER_TIMEOUT)
                except TimeoutError:
                    # What a dead worker had finished is made again.
                    future.add_done_callback(done.put)
                    backend.effective_n_jobs(n_jobs)
                    continue
                except Exception as error:
                    lost = error
                else:
                    yield result
                running.discard(future)
        finally:
            for future in running:
                future.cancel()
    if lost is not None:
        raise lost


@contextmanager
def _to_dask(backend: Any, work: _Work, n_jobs: int) -> Iterator[tuple[_Send, int]]:
    import dask
    from distributed.protocol.pickle import dumps, loads

    cores = backend.effective_n_jobs(n_jobs)

    def send(*arguments: Any) -> Any:
        # Dask looks for its own collections in lists, and would have large arguments scattered;
        # but what was scattered dies with its workers, and what tasks make is made again.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1PB"}):
            return backend.client.submit(*arguments, **{"pure": False, **backend.submit_kwargs})

    shared = send(loads, dumps(work))
    yield lambda *task: send(_attempt_pickled, shared, dumps(task)), cores


def _attempt_pickled(work: _Work, task: bytes) -> tuple[int, Any]:
    from distributed.protocol.pickle import loads

    function, common = work
    index, item = loads(task)
    return _attempt(True, function, index, *common, *item)


@contextmanager
def _to_ray(backend: Any, work: _Work, n_jobs: int) -> Iterator[tuple[_Send, int]]:
    import ray

    function, common = work
    shared = [ray.put(part) for part in common]
    attempt = ray.remote(max_retries=_MAX_LOSSES)(_attempt)

    def send(index: int, item: Sequence[Any]) -> Any:
        return attempt.remote(True, function, index, *shared, *item).future()

    yield send, int(ray.cluster_resources().get("CPU", 1))


@contextmanager
def _to_processes(backend: Any, work: _Work, n_jobs: int) -> Iterator[tuple[_Send, int]]:
    n_jobs = backend.effective_n_jobs(n_jobs)
    with ProcessPoolExecutor(n_jobs, DEFAULT_MP_CONTEXT, _keep, work) as pool:
        yield lambda *task: pool.submit(_attempt_kept, *task), n_jobs


# The work that a process of a pool keeps for its tasks.
_KEPT: list[Any] = []


def _keep(*work: Any) -> None:
    _KEPT[:] = work


def _attempt_kept(index: int, item: Sequence[Any]) -> tuple[int, Any]:
    function, common = _KEPT
    return _attempt(True, function, index, *common, *item)


_SENDERS: dict[str | None, _Sender] = {
    "dask": _to_dask,
    "ray": _to_ray,
    "multiprocessing": _to_processes,
}


def _same(value: Any) -> Any:
    return value


def _attempt(
    elsewhere: bool, function: Callable[..., Any], index: int, *arguments: Any
) -> tuple[int, Any]:
    """Number of a task and its result, or why it failed."""
    # Loops inside of a task of another process are no tasks of their own.
    inner = parallel_config(backend="sequential") if elsewhere else nullcontext()
    try:
        with inner:
            return index, function(*arguments)
    except Exception as error:
        return index, Failed(error)


def _engine(n_jobs: int | None = None, prefer: str | None = None) -> str | None:
    """Name of the engine that runs tasks in other processes, and may run them again, or None."""
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
