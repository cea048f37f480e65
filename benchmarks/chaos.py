"""Random faults: kill processes, interrupt calls, fill the disk, and then check the ledger."""

import contextlib
import hashlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import psutil
from joblib import parallel_config
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from benchmarks._table import Table
from sklearn_dptda import DiagramFeatures, DTMFiltration, PrivatePersistence
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.model_selection import IncompleteReleases, release_replicates
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyLedgerError

BACKENDS = ("loky", "multiprocessing", "threading", "dask", "ray")
# Number of payments that the budget of a round covers exactly. A search trains and scores in three
# folds for each of four candidates, and fits once more at the end.
WORKS = {"replicates": 40, "search": 25}
NAME = "a round"
# Cost of a release, which is large enough to avoid warnings about noise.
EPSILON = 16.0
FAULTS = ("worker", "main", "interrupt", "disk")
# Number of calls of one round that are disturbed. Later calls are not.
MOST_FAULTS = 8
# Seconds after which a call that neither returns nor fails is ended.
HUNG = 180.0
# Each round has a new ledger, whose budget covers the payments exactly, and one name. The call is
# repeated by new processes until it returns. After every call, the ledger is checked: there must be
# no excess payment, and no stored or returned release may change. At the end, each payment must
# have one stored release, the stored releases must be the returned ones, and a call with other
# records under the same name must be refused. A full disk is simulated by a limit on the growth of
# files. In half of the cases in which a main process is killed, its workers continue to run.


def tables(quick):
    """Yield one table of rounds, faults and results, with one line per backend and task."""
    backends = [b for b in BACKENDS if b not in ("dask", "ray") or find_spec(b)]
    ends, coins = time.monotonic() + (60 if quick else 3600), random.Random()
    counts = {(backend, work): Counter() for backend in backends for work in WORKS}
    number = 0
    while time.monotonic() < ends:
        # Each pair of a backend and a kind of work in turn.
        backend = backends[number % len(backends)]
        work = list(WORKS)[number // len(backends) % len(WORKS)]
        with tempfile.TemporaryDirectory() as folder:
            _Round(Path(folder), backend, work, coins, counts[backend, work]).run()
        number += 1
    columns = ("rounds", "calls", *FAULTS, "payments", "stored", "returned", "wrong", "hung")
    rows = [(*pair, *(count[column] for column in columns)) for pair, count in counts.items()]
    total = [sum(count[column] for count in counts.values()) for column in columns]
    heads = (f"{c}s killed" if c in ("worker", "main") else c for c in columns)
    yield Table(
        "Random faults", " | ".join(["backend | work", *heads]), [*rows, ("all", "", *total)]
    )


class _Round:
    """One budget and one name, with repeated calls until one of them returns."""

    def __init__(self, folder, backend, work, coins, count):
        self.folder, self.backend, self.work = folder, backend, work
        self.coins, self.count = coins, count
        self.n = WORKS[work]
        self.budget = PrivacyAccountant(EPSILON * self.n, path=folder / "ledger.db")
        # Maps the name of a payment, or the place of a result, to the first digest seen there.
        self.seen = {}
        self.orphans = []

    def run(self):
        """Repeat the call until it returns everything, then compare the results."""
        self.count["rounds"] += 1
        returned, n_calls = None, 0
        try:
            while returned is None and n_calls < 3 * MOST_FAULTS:
                fault = self.coins.choice(FAULTS) if n_calls < MOST_FAULTS else None
                returned = self._call(fault)
                self._look()
                n_calls += 1
            self._finish(returned)
        finally:
            _end(self.orphans)

    def _call(self, fault):
        """Call in a separate process and return its result, or None if it did not return."""
        self.count["calls"] += 1
        said = self.folder / "said.txt"
        command = [sys.executable, "-m", "benchmarks.chaos", self.backend, self.work]
        with open(said, "wb") as out, open(self.folder / "errors.txt", "ab") as errors:
            process = subprocess.Popen(
                [*command, str(self.folder)], stdout=out, stderr=errors, start_new_session=True
            )
        family = [psutil.Process(process.pid)]
        while process.poll() is None and not said.stat().st_size:
            time.sleep(0.01)
        if fault is not None:
            time.sleep(self.coins.uniform(0.0, 5.0))
            family += self._strike(process, fault)
        try:
            process.wait(HUNG)
        except subprocess.TimeoutExpired:
            self.count["hung"] += 1
            family += family[0].children(recursive=True)
        if fault == "main" and self.coins.random() < 0.5:
            self.orphans += family
        else:
            _end(family)
        process.wait()
        last = said.read_text().splitlines()[-1:]
        result = json.loads(last[0]) if last and last[0].endswith("}") else {}
        for place, digest in enumerate(result.get("releases", [])):
            self._see(place, digest)
        return result["releases"] if "complete" in result else None

    def _strike(self, process, fault):
        """Cause a fault, and return the child processes, which may outlive the main process."""
        try:
            main = psutil.Process(process.pid)
            below = main.children(recursive=True)
        except psutil.NoSuchProcess:
            return []
        if fault == "worker":
            below = [p for p in below if _is_worker(p, main)]
            victims = self.coins.sample(below, min(len(below), self.coins.choice([1, 2])))
            self._kill(victims, fault)
        elif fault == "main":
            self._kill([main], fault)
        elif fault == "interrupt":
            self.count[fault] += 1
            # The interrupt goes to the main process, or to all processes as from a terminal.
            if self.coins.random() < 0.5:
                process.send_signal(signal.SIGINT)
            else:
                os.killpg(process.pid, signal.SIGINT)
        else:
            self.count[fault] += 1
            for each in [main, *below]:
                with contextlib.suppress(psutil.Error, ProcessLookupError):
                    hard = resource.prlimit(each.pid, resource.RLIMIT_FSIZE)[1]
                    resource.prlimit(each.pid, resource.RLIMIT_FSIZE, (0, hard))
        return below

    def _kill(self, victims, fault):
        for victim in victims:
            with contextlib.suppress(psutil.NoSuchProcess):
                victim.kill()
                self.count[fault] += 1

    def _look(self):
        """Check the ledger, which any program may read at any time."""
        if len(self.budget) > self.n:
            self._wrong("too many payments")
        for paid in self.budget.releases():
            if paid.size is not None:
                self._see(paid.key, _digest(self.budget.release(paid.key)["transform"]))

    def _see(self, where, digest):
        if digest is not None and self.seen.setdefault(where, digest) != digest:
            self._wrong("a second draw")

    def _finish(self, returned):
        stored = Counter(digest for where, digest in self.seen.items() if isinstance(where, str))
        self.count["payments"] += len(self.budget)
        self.count["stored"] += stored.total()
        if returned is None:
            return self._wrong("no call returned")
        self.count["returned"] += len(returned)
        if not len(self.budget) == stored.total() == self.n or self.budget.remaining().epsilon > 0:
            self._wrong(f"{len(self.budget)} payments, {stored.total()} stored, of {self.n}")
        if self.work == "replicates" and Counter(returned) != stored:
            self._wrong("the returned releases are not the stored ones")
        with contextlib.suppress(PrivacyLedgerError):
            _WORK[self.work](self.budget, NAME, shift=1e-3)
            self._wrong("other records were released under the same name")
        if len(self.budget) != self.n:
            self._wrong("other records were paid for")

    def _wrong(self, what):
        self.count["wrong"] += 1
        errors = (self.folder / "errors.txt").read_text(errors="replace")[-2000:]
        print(f"WRONG, {self.backend}, {self.work}: {what}\n{errors}", file=sys.stderr, flush=True)


def _is_worker(process, main):
    """Whether a process runs tasks, unlike a nanny, tracker or daemon of an engine."""
    try:
        words = process.cmdline()
        return (
            words == main.cmdline()
            or "loky" in " ".join(words)
            or any("spawn_main" in word for word in words)
            or words[0].startswith("ray::")
        ) and not any("resource_tracker" in word for word in words)
    except (psutil.NoSuchProcess, IndexError):
        return False


def _end(processes):
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, timeout=10)


def _road(accountant):
    filtration = DTMFiltration(0.2, bounds=(-3, 3.5), resolution=17)
    return make_pipeline(filtration, PrivatePersistence(EPSILON, accountant=accountant))


def _clouds(n, shift):
    return [make_two_circles(400, random_state=seed) + shift for seed in range(n)]


def _replicates(budget, name, shift=0.0):
    """Digests of releases in their order, with None for an unfinished release."""
    try:
        releases = release_replicates(
            # Two releases of one cloud may be equal by chance. For three clouds, this is unlikely.
            _road(budget),
            _clouds(3, shift),
            WORKS["replicates"],
            name=name,
            n_jobs=2,
        )
    except (IncompleteReleases, KeyboardInterrupt) as error:
        kept = getattr(error, "releases", [])
        return {"releases": [None if r is None else _digest(r) for r in kept]}
    return {"complete": True, "releases": [_digest(r) for r in releases]}


def _search(budget, name, shift=0.0):
    """Digests of the scores of a search under a name; each score is a function of a release."""
    model = make_pipeline(
        _road(budget.under(name)), DiagramFeatures(value_range=(0, 3)), LogisticRegression()
    )
    candidates = {"pipeline__dtmfiltration__m": [0.1, 0.2, 0.3, 0.4]}
    search = GridSearchCV(model, candidates, cv=3, n_jobs=2, error_score="raise")
    search.fit(_clouds(12, shift), np.arange(12) % 2)
    scores = [search.cv_results_[f"split{fold}_test_score"] for fold in range(3)]
    return {"complete": True, "releases": [_digest([[score]]) for score in scores]}


_WORK = {"replicates": _replicates, "search": _search}


def _digest(release):
    digest = hashlib.sha256()
    for diagrams in release:
        for diagram in diagrams:
            digest.update(np.ascontiguousarray(diagram).tobytes())
    return digest.hexdigest()


@contextlib.contextmanager
def _engine(backend):
    """Start the engine on which tasks run."""
    with contextlib.ExitStack() as stack:
        if backend == "dask":
            from distributed import Client, LocalCluster

            cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
            stack.enter_context(cluster)
            stack.enter_context(Client(cluster))
        elif backend == "ray":
            import ray
            from ray.util.joblib import register_ray

            register_ray()
            ray.init(
                num_cpus=2,
                include_dashboard=False,
                log_to_driver=False,
                object_store_memory=2**28,
                runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])}},
            )
            stack.callback(ray.shutdown)
        stack.enter_context(parallel_config(backend=backend, n_jobs=2))
        yield


def _main(backend, work, folder):
    folder = Path(folder)
    with _engine(backend):
        print("ready", flush=True)
        budget = PrivacyAccountant.open(folder / "ledger.db")
        print(json.dumps(_WORK[work](budget, NAME)), flush=True)


if __name__ == "__main__":
    _main(*sys.argv[1:])
