"""Pipeline steps whose workers die or are interrupted at enumerated moments."""

import contextlib
import itertools
import os
import pickle
import signal
import time
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator, TransformerMixin

from sklearn_dptda.model_selection._replicates import _KeptReplicates

# Windows has no signal that cannot be caught, and other signals end a process at once.
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)


def wait_until(condition, what, seconds=120.0):
    """Wait for a condition that another process or thread brings about, and fail if it does not.

    The time is long, because a busy machine must not exceed it.
    """
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not true after {seconds:.0f} s: {what}"
        time.sleep(0.005)


def take_number(folder):
    """Return how many calls came before this one, in all processes that share a folder."""
    for number in itertools.count():
        with contextlib.suppress(FileExistsError):
            open(os.path.join(folder, f"call-{number}"), "x").close()
            return number


@contextlib.contextmanager
def dask_on_this_machine(n_workers=2):
    """Workers in processes of one thread, and a client of them."""
    dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
    with (
        # A local cluster gives up a worker that is away 15 seconds after its death, even if it had
        # returned and has died again.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}),
        # Any free port, because clusters of several test processes run at the same time.
        distributed.LocalCluster(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@contextlib.contextmanager
def ray_on_this_machine(**options):
    """Two processors of Ray."""
    ray = pytest.importorskip("ray")
    for attempts_left in reversed(range(4)):
        try:
            # Without an address, it joins a cluster that happens to run on this machine.
            ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, **options)
        except Exception:
            # A busy machine may need more than the thirty seconds that Ray waits for itself.
            ray.shutdown()
            if not attempts_left:
                raise
        else:
            break
    try:
        yield
    finally:
        ray.shutdown()


class Killer:
    """Kills the process that calls it first."""

    def __init__(self, path):
        self.path = str(path)

    def __call__(self):
        try:
            open(self.path, "x").close()
        except FileExistsError:
            return
        os.kill(os.getpid(), KILL)


class Fragile(TransformerMixin, BaseEstimator):
    """Keeps what it is given in a folder; the first time that it runs in a worker it kills that."""

    def __init__(self, folder, spared):
        self.folder = folder
        self.spared = spared

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        if os.getpid() == self.spared:
            return X
        try:
            with open(os.path.join(self.folder, "seen.pickle"), "xb") as file:
                pickle.dump(X, file)
        except FileExistsError:
            return X
        os.kill(os.getpid(), KILL)


class Doomed(TransformerMixin, BaseEstimator):
    """Kills its worker in enumerated calls: all copies in all workers number their calls together.

    It dies in ``transform`` or, with ``leaving``, while the finished result is packed to be sent.
    What it had been given in call 3 is then in the file ``died-3``. If the engine ends the worker
    before that, because another one has died, a later call dies instead.
    """

    def __init__(self, folder, spared, calls, leaving=False):
        self.folder = folder
        self.spared = spared
        self.calls = calls
        self.leaving = leaving

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        if os.getpid() == self.spared:
            return X
        number = take_number(self.folder)
        files = (os.path.join(self.folder, f"died-{i}") for i in self.calls if i <= number)
        due = next((file for file in files if not os.path.exists(file)), None)
        if due is None:
            return X
        if self.leaving:
            return _Leaving(X, due)
        _die(due, X)
        return X


def _die(path, seen):
    """Write down what this process has in its hands, and kill it, if no other one has done so."""
    own = f"{os.path.dirname(path)}/seen-by-{os.getpid()}-{os.path.basename(path)}"
    with open(own, "wb") as file:
        pickle.dump(seen, file)
    # The file has this name only when it is complete, even if the engine ends this process now.
    with contextlib.suppress(FileExistsError):
        os.link(own, path)
        os.kill(os.getpid(), KILL)


class _Leaving(list):
    """A list that kills the process that packs it."""

    def __init__(self, items, path):
        super().__init__(items)
        self.path = path

    def __reduce__(self):
        _die(self.path, list(self))
        return list, (list(self),)


class FailsOnce(TransformerMixin, BaseEstimator):
    """Fails the second time that any of its copies runs."""

    def __init__(self, folder):
        self.folder = folder

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        number = len(os.listdir(self.folder))
        open(os.path.join(self.folder, str(number)), "x").close()
        if number == 1:
            raise ArithmeticError("on purpose")
        return X


class Interrupted(TransformerMixin, BaseEstimator):
    """Sends Ctrl-C to a process in one call of its copies, which number their calls together.

    The call waits until the process has put aside ``n_kept`` results. It and all later calls then
    wait until the process has received the signal. :func:`reported` lets the process tell them.
    """

    def __init__(self, folder, call, n_kept, target):
        self.folder = folder
        self.call = call
        self.n_kept = n_kept
        self.target = target

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        number = take_number(self.folder)
        if number == self.call:
            self._wait_for(f"kept-{self.n_kept}")
            os.kill(self.target, signal.SIGINT)
        if number >= self.call:
            self._wait_for("received")
        return X

    def _wait_for(self, name):
        paths = [os.path.join(self.folder, each) for each in (name, "late")]
        try:
            wait_until(lambda: any(map(os.path.exists, paths)), f"{name} exists")
        except AssertionError:
            # Otherwise, each of the other calls would wait as long.
            open(paths[-1], "x").close()
            raise


@contextlib.contextmanager
def reported(folder, monkeypatch):
    """Create ``kept-3`` when this process has put aside three releases, ``received`` at Ctrl-C."""
    keep, count = _KeptReplicates.keep, itertools.count()

    def kept(*arguments):
        # A release that is handed over now is put aside when the next one comes.
        # The signal may come while the file is open.
        Path(folder, f"kept-{next(count)}").touch(exist_ok=False)
        keep(*arguments)

    def received(*arguments):
        open(os.path.join(folder, "received"), "x").close()
        signal.default_int_handler(*arguments)

    monkeypatch.setattr(_KeptReplicates, "keep", kept)
    before = signal.signal(signal.SIGINT, received)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
