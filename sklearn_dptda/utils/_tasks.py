"""Tasks on the cores of this machine or on a cluster, where workers may die and tasks run again."""

from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

from joblib import Parallel, delayed, parallel_config
from joblib.parallel import get_active_backend

from sklearn_dptda.privacy._estimator import silent_arithmetic

# Losses of workers in a row, without any task finished, before a cluster is given up.
_PATIENCE = 5


@dataclass(frozen=True)
class Failed:
    """In place of a result: why there is none."""

    error: Exception


def tasks_may_repeat() -> bool:
    """Whether the engine in force runs a task again whose worker has died."""
    return _engine() is not None


def run(function, items, *common, **options):
    """``[function(*common, *item) for item in items]``, by joblib; ``common`` is shipped once.

    Whoever draws noise in ``function`` takes it from keys, or from seeds, among the items, so that
    a task that runs again repeats its draw. Raises the first error of a task.
    """
    results = outcomes(partial(_silently, function), items, *common, **options)
    for result in results:
        if isinstance(result, Failed):
            raise result.error
    return results


def _silently(function, *arguments):
    with silent_arithmetic():
        return function(*arguments)


def outcomes(function, items, *common, n_jobs=None, **options):
    """As :func:`run`, with a :class:`Failed` for each task that failed; all others are finished."""
    items = list(items)
    results = [Failed(RuntimeError("no worker finished this task."))] * len(items)
    missing, losses = dict(enumerate(items)), 0
    while missing:
        before = len(missing)
        try:
            for index, result in _finished(function, missing, common, n_jobs, options):
                results[index] = result
                del missing[index]
        except Exception as error:  # Errors of tasks are results: these are of the engine.
            losses = 0 if len(missing) < before else losses + 1
            if not tasks_may_repeat() or losses == _PATIENCE:
                for index in missing:
                    results[index] = Failed(error)
                break
    return results


def _finished(function, missing, common, n_jobs, options):
    """Yield (index, result) as tasks finish; raise where the engine fails."""
    engine = _engine()
    if engine == "ray" and n_jobs != 1:
        yield from _by_ray(function, missing, common)
        return
    if engine == "dask" and common:
        # To all workers: what one of them has alone dies with it.
        client = get_active_backend()[0].client
        common = client.scatter(list(common), broadcast=True, hash=False)
    # Backends that hand nothing over before the end lose what was finished where they fail.
    as_they_finish = getattr(get_active_backend()[0], "supports_return_generator", False)
    order = "generator_unordered" if as_they_finish else "list"
    yield from Parallel(n_jobs=n_jobs, return_as=order, **options)(
        delayed(_attempt)(engine is not None, function, index, *common, *item)
        for index, item in list(missing.items())
    )


def _by_ray(function, missing, common):
    """Ray's own tasks: joblib's pool of actors loses everything with one of them."""
    import ray

    shared = [ray.put(part) for part in common]
    attempt = ray.remote(max_retries=_PATIENCE)(_attempt)
    waiting = [
        attempt.remote(True, function, index, *shared, *item)
        for index, item in list(missing.items())
    ]
    while waiting:
        done, waiting = ray.wait(waiting)
        yield from ray.get(done)


def _attempt(on_cluster, function, index, *arguments):
    """Number of a task and its result, or why it failed."""
    # Loops inside of a task of a cluster are no tasks of their own.
    inner = parallel_config(backend="sequential") if on_cluster else nullcontext()
    try:
        with inner:
            return index, function(*arguments)
    except Exception as error:
        return index, Failed(error)


def _engine():
    """Name of the engine that runs tasks again, as any may that is not of this machine."""
    kind = type(get_active_backend()[0])
    names = {base.__name__ for base in kind.__mro__}
    known = {"DaskDistributedBackend": "dask", "RayBackend": "ray"}
    here = kind.__module__ == "joblib._parallel_backends"
    return next((known[name] for name in names & known.keys()), None if here else "other")
