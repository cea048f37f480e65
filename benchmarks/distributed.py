"""Rows on other machines: seconds, processor time, memory, and a worker that is killed."""

import contextlib
import hashlib
import multiprocessing
import os
import pickle
import resource
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec

import numpy as np
import pandas
import psutil
from sklearn.base import BaseEstimator

from benchmarks._table import Table
from sklearn_dptda import DTMFiltration, PrivatePersistence
from sklearn_dptda.cluster import DPLloyd, DPMoGMorse, DPTree
from sklearn_dptda.privacy import PrivacyAccountant
from sklearn_dptda.synthetic import PrivateMeasure
from sklearn_dptda.utils._tasks import DaskParts

PART, COLUMNS, CLUSTERS = 250_000, 4, 6
BOX = (-1.0, 12.0)
# Number of people. Each of them has rows in all parts.
PEOPLE = 100_000


class _Diagram(BaseEstimator):
    """Private diagram of a cloud of people in the plane, from a histogram made where they are."""

    def __init__(self, accountant=None):
        self.accountant = accountant

    def fit_chunks(self, parts):
        filtration = DTMFiltration(
            m=0.05, bounds=(BOX[0], BOX[1]), groups="person", method="lattice", resolution=65
        ).fit([make_cloud(0)])
        released = PrivatePersistence(1.0, accountant=self.accountant, random_state=0)
        diagrams = released.fit_transform(filtration.transform([filtration.make_histogram(parts)]))
        self.diagram_ = np.concatenate(diagrams[0])


ESTIMATORS = {
    "DPLloyd": DPLloyd(CLUSTERS, bounds=BOX, random_state=0),
    "DPMoGMorse": DPMoGMorse(CLUSTERS, bounds=BOX, random_state=0),
    "DPTree": DPTree(CLUSTERS, bounds=BOX, random_state=0),
    "PrivateMeasure": PrivateMeasure(bounds=BOX, random_state=0),
    "DPLloyd, people": DPLloyd(CLUSTERS, bounds=BOX, groups="person", random_state=0),
    "a diagram, people": _Diagram(),
}
# Settings that the guide recommends. Dask's default returns memory after each step.
KEEPS_MEMORY = {"MALLOC_TRIM_THRESHOLD_": 1 << 26, "MALLOC_MMAP_THRESHOLD_": 1 << 25}
ENGINES = ("chunks", "Dask", "Dask, one worker killed")
OTHER_ENGINES = {"Ray": "ray", "Spark": "pyspark"}


def tables(quick):
    """Yield tables of all estimators, of other engines and of many rows, which takes hours."""
    names, n = (("DPLloyd",), 1_000_000) if quick else (ESTIMATORS, 10_000_000)
    yield _table(n, names, ENGINES)
    others = [f"{name}, one worker killed" for name, of in OTHER_ENGINES.items() if find_spec(of)]
    yield _table(n, names, (ENGINES[0], *others))
    if not quick:
        yield _table(100_000_000, names, ENGINES[1:])


def _table(n, names, engines):
    rows = []
    for name in names:
        first = None
        for engine in engines:
            # Each fit has its own process, so that the peak memory is that of one fit.
            spawn = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(1, mp_context=spawn) as pool:
                *measured, digest = pool.submit(_measure, name, engine, n).result()
            first = first or digest
            rows.append((name, engine, *measured, "yes" if digest == first else "NO"))
    return Table(
        f"{n:,} rows of {COLUMNS} columns, generated again in each pass where they are needed; "
        f"'people': rows of {PEOPLE:,} people",
        "estimator | rows | seconds | passes | CPU ns per row and pass | GB here | GB per worker"
        " | payments | equal",
        rows,
        "Dask, Ray and Spark use two worker processes of one thread, whose CPU time is not always "
        "known. Equal: the result is equal to the first one, bit for bit.",
    )


def make_part(seed):
    """Rows around some centres, which are fast to generate."""
    centres = np.random.default_rng(0).uniform(0, 10, (CLUSTERS, COLUMNS))
    part = np.random.default_rng([seed, 1]).random((PART, COLUMNS))
    for cluster, centre in enumerate(centres):
        part[cluster::CLUSTERS] += centre
    return part


def make_people(seed):
    """The same rows as a data frame, with a column of ids of people."""
    frame = pandas.DataFrame(make_part(seed), columns=list("abcd"))
    frame["person"] = np.random.default_rng([seed, 2]).integers(0, PEOPLE, PART)
    return frame


def make_cloud(seed):
    """Points of people in the plane."""
    return make_people(seed)[["a", "b", "person"]]


class _Counted:
    """Parts that count the passes over them."""

    def __init__(self, parts):
        self.parts, self.passes = parts, 0

    def map_reduce(self, function):
        self.passes += 1
        return self.parts.map_reduce(function)


class _Serial:
    def __init__(self, n_parts, make):
        self.n_parts, self.make = n_parts, make

    def map_reduce(self, function):
        return sum(function(self.make(seed)) for seed in range(self.n_parts))


def _measure(name, engine, n):
    private, accountant = ESTIMATORS[name], PrivacyAccountant(np.inf)
    people = make_cloud if "diagram" in name else make_people
    make = people if "people" in name else make_part
    private.set_params(accountant=accountant)
    n_parts = n // PART
    if engine == "chunks":
        parts, workers = _Counted(_Serial(n_parts, make)), "-"
        seconds, cpu = _timed(private, parts)
    elif engine.startswith("Dask"):
        seconds, cpu, parts, workers = _on_dask(private, n_parts, make, "killed" in engine)
    else:
        on_engine = {"Ray": _ray, "Spark": _spark}[engine.partition(",")[0]]
        cpu, workers = None, "-"
        with on_engine(n_parts, make) as parts:
            parts = _Counted(parts)
            # Workers start and import their modules before the time is measured.
            parts.map_reduce(len)
            parts.passes = 0
            killer = threading.Thread(target=_kill_below, args=[_has_begun(private, parts)])
            killer.start()
            seconds, _ = _timed(private, parts)
            killer.join()
    here = _gigabytes()
    per_row = cpu / (n * parts.passes) * 1e9 if cpu is not None else "-"
    payments = len(accountant.spends())
    return seconds, parts.passes, per_row, here, workers, payments, _digest(private)


def _timed(private, parts):
    start, cpu = time.perf_counter(), time.process_time()
    private.fit_chunks(parts)
    return time.perf_counter() - start, time.process_time() - cpu


def _on_dask(private, n_parts, make, kill):
    import dask
    from dask import delayed
    from distributed import Client, LocalCluster

    with (
        dask.config.set({"distributed.nanny.pre-spawn-environ": KEEPS_MEMORY}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        parts = _Counted(DaskParts([delayed(make)(seed) for seed in range(n_parts)]))
        # Workers import their modules before the time is measured.
        before = sum(client.run(time.process_time).values())
        if kill:
            threading.Thread(target=_kill, args=[cluster, _has_begun(private, parts)]).start()
        seconds, cpu = _timed(private, parts)
        after = sum(client.run(time.process_time).values())
        memory = max(client.run(_gigabytes).values())
    # The processor time of a killed worker is lost.
    return seconds, None if kill else cpu + after - before, parts, memory


def _has_begun(private, parts):
    """Return a function that is true once a worker may be killed.

    A histogram is made before anything is paid, so passes are counted for diagrams.
    """
    if isinstance(private, _Diagram):
        return lambda: parts.passes > 0
    return private.accountant.spends


def _kill(cluster, has_begun):
    while not has_begun():
        time.sleep(0.01)
    time.sleep(0.5)
    psutil.Process(next(iter(cluster.workers.values())).process.pid).kill()


def _kill_below(has_begun):
    """Kill a worker of Ray or Spark once the passes that learn from rows have begun."""
    while not has_begun():
        time.sleep(0.01)
    killed = False
    while not killed:
        time.sleep(0.2)
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                words = " ".join(process.cmdline())
                # The process that Spark calls a daemon is the parent of its workers.
                of_spark = "pyspark.daemon" in words and "daemon" in " ".join(
                    process.parent().cmdline()
                )
                of_ray = words.startswith("ray::") and "Agent" not in words
                if of_spark or of_ray:
                    process.kill()
                    killed = True
                    break


class _OnRay(_Serial):
    def map_reduce(self, function):
        import ray

        make = self.make
        count = ray.remote(max_retries=3)(lambda seed: function(make(seed)))
        return sum(ray.get([count.remote(seed) for seed in range(self.n_parts)]))


@contextlib.contextmanager
def _ray(n_parts, make):
    import ray

    paths = {"PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])}
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": paths},
    )
    try:
        yield _OnRay(n_parts, make)
    finally:
        ray.shutdown()


class _OnSpark:
    def __init__(self, frame, make):
        self.frame, self.make = frame, make

    def map_reduce(self, function):
        make = self.make

        def count(tables):
            # Parts are read one by one, because a pass must not hold all parts of a task.
            for table in tables:
                total = sum(function(make(seed)) for seed in table["id"])
                yield pandas.DataFrame({"sum": [pickle.dumps(total)]})

        rows = self.frame.mapInPandas(count, "sum binary").collect()
        return sum(pickle.loads(row["sum"]) for row in rows)


@contextlib.contextmanager
def _spark(n_parts, make):
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join([os.getcwd(), *filter(None, sys.path)])
    # A failed task is repeated up to four times. In local mode, this must be requested.
    builder = SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield _OnSpark(spark.range(n_parts).repartition(max(n_parts // 2, 2)), make)
    finally:
        spark.stop()


def _gigabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def _digest(private):
    digest = hashlib.sha256()
    for name, value in sorted(vars(private).items()):
        if not (name.endswith("_") and isinstance(value, np.ndarray)):
            continue
        # The bytes of an array of objects, such as names of columns, are addresses.
        numbers = value.astype(str) if value.dtype == object else value
        digest.update(name.encode() + numbers.tobytes())
    return digest.hexdigest()
