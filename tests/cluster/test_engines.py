"""The protocol of parts on Ray, Spark and SQL, as in the guide, with workers that are killed."""

import contextlib
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from sklearn_dptda.cluster import DPLloyd, DPMoG
from sklearn_dptda.privacy import PrivacyAccountant
from sklearn_dptda.synthetic import PrivateMeasure
from tests._fragile import Killer, dask_on_this_machine, ray_on_this_machine

NAMES = ["a", "b", "c"]
X = make_blobs(2000, centers=3, n_features=3, random_state=0)[0]
GUIDE = Path(__file__).parents[2] / "doc" / "guide" / "large_data.md"


def guide_code(name):
    """What the guide defines in the block that holds a name."""
    if not GUIDE.is_file():
        pytest.skip("the documentation is not beside the tests: an installed package")
    blocks = GUIDE.read_text().split("```")[1::2]
    (block,) = (block.partition("\n")[2] for block in blocks if name in block)
    space = {}
    exec(block, space)
    return space


def check(rows):
    """Two estimators give what they give of the rows in memory, and pay once."""
    for private in (DPMoG(3, random_state=0), PrivateMeasure(random_state=0)):
        accountant = PrivacyAccountant(np.inf)
        private.set_params(accountant=accountant)
        counted = private.fit_chunks(rows).weights_
        assert len(accountant.spends()) == 1
        assert np.array_equal(counted, private.fit(X).weights_)


@pytest.mark.engines
@pytest.mark.filterwarnings("ignore")
def test_guide_on_ray_gives_the_same_release():
    ray = pytest.importorskip("ray")
    with ray_on_this_machine():
        blocks = [ray.put(part) for part in np.array_split(X, 5)]
        check(guide_code("class OnRay")["OnRay"](blocks))


@contextlib.contextmanager
def spark_frame(table, monkeypatch, tries=1):
    """A table on Spark, in three parts, each of which is tried so often."""
    pytest.importorskip("pyspark")
    pandas = pytest.importorskip("pandas")
    from pyspark.sql import SparkSession

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master(f"local[2,{tries}]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", 300)
        .getOrCreate()
    )
    try:
        yield spark.createDataFrame(pandas.DataFrame(table, columns=NAMES)).repartition(3)
    finally:
        spark.stop()


@pytest.mark.engines
@pytest.mark.filterwarnings("ignore")
def test_guide_on_spark_gives_the_same_release(monkeypatch):
    with spark_frame(X, monkeypatch) as frame:
        check(guide_code("class OnSpark")["OnSpark"](frame))


@pytest.mark.engines
@pytest.mark.filterwarnings("ignore")
def test_guide_on_spark_with_a_killed_worker_costs_nothing(monkeypatch, tmp_path):
    mark, kill = str(tmp_path / "killed"), signal.SIGKILL

    def first_dies(tables):
        # The functions are sent by value, because workers do not import the tests.
        for table in tables:
            with contextlib.suppress(FileExistsError):
                open(mark, "x").close()
                os.kill(os.getpid(), kill)
            yield table

    with spark_frame(X, monkeypatch, tries=4) as frame:
        dying = frame.mapInPandas(first_dies, frame.schema)
        check(guide_code("class OnSpark")["OnSpark"](dying))
    assert os.path.exists(mark)


def test_guide_on_duckdb_gives_the_same_release():
    duckdb = pytest.importorskip("duckdb")
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=NAMES)
    connection = duckdb.connect()
    connection.register("people", table)
    check(guide_code("def read_duckdb")["read_duckdb"](connection, "SELECT a, b, c FROM people"))


class Marking(PrivacyAccountant):
    """Creates a file when it has been paid."""

    mark = None

    def spend(self, *args, **options):
        super().spend(*args, **options)
        if self.mark is not None:
            self.mark.touch()


def dying_part(part, folder):
    """A part. After the payment, the first two workers that read one die."""
    if (folder / "paid").exists():
        for number in range(2):
            Killer(folder / str(number))()
    return part


@pytest.mark.engines
@pytest.mark.filterwarnings("ignore")
def test_dask_with_killed_workers_costs_nothing(tmp_path):
    dask = pytest.importorskip("dask")
    expected, accountant = DPLloyd(3, random_state=0).fit(X), Marking(np.inf)
    accountant.mark = tmp_path / "paid"
    private = DPLloyd(3, random_state=0, accountant=accountant)
    parts = [dask.delayed(dying_part)(part, tmp_path) for part in np.array_split(X, 8)]
    with dask_on_this_machine():
        private.fit(parts)
    assert (tmp_path / "0").exists() and (tmp_path / "1").exists()
    assert len(accountant.spends()) == 1
    assert np.array_equal(private.cluster_centers_, expected.cluster_centers_)
