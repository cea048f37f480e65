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


def tables(quick):
    """Yield tables of all estimators on all engines, and of many rows, which takes hours."""
    engines = ["chunks", "Dask", *(name for name in ("Ray", "PySpark") if find_spec(name.lower()))]
    names, n = (("DPLloyd",), 1_000_000) if quick else (ESTIMATORS, 10_000_000)
    yield _table(n, names, engines)
    if not quick:
        yield _table(100_000_000, names, ["Dask"])


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
        "Dask, Ray and Spark use two worker processes of one thread. One of them is killed, so the "
        "CPU time is not known. Equal: the result is equal to the first one, bit for bit.",
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
    start_engine = {"chunks": _chunks, "Dask": _dask, "Ray": _ray, "PySpark": _spark}[engine]
    with start_engine(n // PART, make) as (parts, kill, memory):
        parts = _Counted(parts)
        if kill:
            # Workers start and import their modules before the time is measured.
            parts.map_reduce(len)
            parts.passes = 0
            killer = threading.Thread(target=_once_begun, args=[private, parts, kill])
            killer.start()
        start, cpu = time.perf_counter(), time.process_time()
        private.fit_chunks(parts)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        if kill:
            killer.join()
        in_workers = memory()
    per_row = "-" if kill else cpu / (n * parts.passes) * 1e9
    measured = seconds, parts.passes, per_row, _gigabytes(), in_workers
    return *measured, len(accountant.spends()), _digest(private)


def _once_begun(private, parts, kill):
    """Kill a worker once the passes that learn from rows have begun.

    A histogram is made before anything is paid, so passes are counted for diagrams.
    """
    while not (parts.passes if isinstance(private, _Diagram) else private.accountant.spends()):
        time.sleep(0.01)
    time.sleep(0.5)
    kill()


def _nothing():
    return "-"


@contextlib.contextmanager
def _chunks(n_parts, make):
    yield _Serial(n_parts, make), None, _nothing


@contextlib.contextmanager
def _dask(n_parts, make):
    import dask
    from distributed import Client, LocalCluster

    with (
        dask.config.set({"distributed.nanny.pre-spawn-environ": KEEPS_MEMORY}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield (
            DaskParts([dask.delayed(make)(seed) for seed in range(n_parts)]),
            lambda: psutil.Process(next(iter(cluster.workers.values())).process.pid).kill(),
            lambda: max(client.run(_gigabytes).values()),
        )


def _kill_below():
    """Kill a worker of Ray or Spark."""
    while True:
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                words = " ".join(process.cmdline())
                # The process that Spark calls a daemon is the parent of its workers.
                of_spark = "pyspark.daemon" in words and "daemon" in " ".join(
                    process.parent().cmdline()
                )
                of_ray = words.startswith("ray::") and "Agent" not in words
                if of_spark or of_ray:
                    return process.kill()
        time.sleep(0.2)


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
        yield _OnRay(n_parts, make), _kill_below, _nothing
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
        frame = spark.range(n_parts).repartition(max(n_parts // 2, 2))
        yield _OnSpark(frame, make), _kill_below, _nothing
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
