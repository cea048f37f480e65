"""Releases and diagrams of peers. This file is run in their environments by its path.

``python _foreign_tools.py JOB data.npz parameters.json`` prints results as JSON.
"""

import contextlib
import io
import json
import logging
import os
import sys
import time
import warnings

import numpy as np


def timed(function, repeats):
    """Return the seconds of each call, and the result of the last call."""
    seconds = []
    for number in range(repeats):
        start = time.perf_counter()
        result = function(number)
        seconds.append(time.perf_counter() - start)
    return seconds, result


def components(data, parameters):
    """Private principal components of diffprivlib, for each seed."""
    from diffprivlib.models import PCA

    found = []

    def fit(seed):
        low, high = data["low"], data["high"]
        model = PCA(
            parameters["n_components"],
            epsilon=parameters["epsilon"],
            bounds=(low, high),
            data_norm=float(np.linalg.norm(high - low) / 2),
            random_state=seed,
        )
        found.append(model.fit(data["X"]).components_.tolist())

    return {"seconds": timed(fit, parameters["repeats"])[0], "components": found}


def histogram(data, parameters):
    """Private counts of diffprivlib in square cells."""
    from diffprivlib.tools import histogram2d

    x, y = data["X"].T
    span = [(parameters["low"], parameters["high"])] * 2

    def release(seed):
        return histogram2d(
            x, y, epsilon=parameters["epsilon"], bins=parameters["bins"], range=span
        )[0]

    seconds, counts = timed(release, parameters["repeats"])
    return {"seconds": seconds, "counts": np.asarray(counts).ravel().tolist()}


def spark_counts(data, parameters):
    """Private counts of Tumult Analytics by cell number, on Spark with one thread."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    import pandas as pd
    from pyspark.sql import SparkSession
    from tmlt.analytics import AddOneRow, KeySet, PureDPBudget, QueryBuilder, Session

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    rows = spark.createDataFrame(pd.DataFrame({"cell": data["cells"]}))
    session = Session.from_dataframe(
        PureDPBudget(float("inf")), "rows", rows, protected_change=AddOneRow()
    )
    keys = KeySet.from_dict({"cell": list(range(parameters["n_cells"]))})
    query = QueryBuilder("rows").groupby(keys).count(name="n")

    def release(seed):
        return session.evaluate(query, PureDPBudget(parameters["epsilon"])).toPandas()

    # The first call is not timed, because the virtual machine compiles during it.
    release(0)
    seconds, table = timed(release, parameters["repeats"])
    return {"seconds": seconds, "counts": table.sort_values("cell")["n"].tolist()}


def quantiles(data, parameters):
    """First and 99th percentile by diffprivlib with half of epsilon each, for each seed."""
    from diffprivlib.tools import percentile

    def release(seed):
        return percentile(
            data["x"],
            [1, 99],
            epsilon=parameters["epsilon"],
            bounds=tuple(parameters["start"]),
            random_state=seed,
        )

    return {"intervals": [np.asarray(release(s)).tolist() for s in range(parameters["repeats"])]}


def cubical(data, parameters):
    """Seconds and diagrams of giotto-tda for a function on cells, by dimension."""
    from gtda.homology import CubicalPersistence

    values = data["values"][None]
    dimensions = tuple(range(values.ndim - 1))
    model = CubicalPersistence(homology_dimensions=dimensions, n_jobs=1)
    seconds, diagrams = timed(lambda _: model.fit_transform(values), parameters["repeats"])
    points = [diagrams[0][diagrams[0][:, 2] == q, :2].tolist() for q in dimensions]
    return {"seconds": seconds, "diagrams": points}


def entropies(data, parameters):
    """Entropies of Vietoris-Rips diagrams, the features of giotto-tda's example of shapes."""
    from gtda.diagrams import PersistenceEntropy
    from gtda.homology import VietorisRipsPersistence

    rips = VietorisRipsPersistence(metric="euclidean", homology_dimensions=[0, 1, 2], n_jobs=1)

    def features(_):
        return PersistenceEntropy().fit_transform(rips.fit_transform(data["clouds"]))

    seconds, X = timed(features, parameters["repeats"])
    return {"seconds": seconds, "features": X.tolist()}


def transport(data, parameters):
    """1-Wasserstein distance between diagrams by GUDHI, with the solver of POT."""
    from gudhi.wasserstein import wasserstein_distance

    def distance(_):
        return wasserstein_distance(data["P"], data["Q"], order=1.0, internal_p=np.inf)

    seconds, value = timed(distance, parameters["repeats"])
    return {"seconds": seconds, "distance": float(value)}


def marginals(data, parameters):
    """Synthetic rows for a table of codes, by MST or AIM of dpmm, and their CPU time."""
    import pandas as pd
    from dpmm.models.aim import AIMGM
    from dpmm.models.mst import MSTGM

    # The examples of dpmm use this many steps. A larger model takes hours on ten columns.
    kind, options = {
        "mst": (MSTGM, {"n_iters": 1000}),
        "aim": (AIMGM, {"n_iters": 500, "max_model_size": 20}),
    }[parameters["method"]]
    names = [f"c{j:02}" for j in range(len(data["sizes"]))]
    domain = dict(zip(names, data["sizes"].tolist(), strict=True))
    table = pd.DataFrame(data["codes"], columns=names)
    start = time.process_time()
    model = kind(
        epsilon=parameters["epsilon"],
        delta=parameters["delta"],
        domain=domain,
        n_jobs=1,
        **options,
    )
    model.set_random_state(np.random.RandomState(0))
    model.set_domain(domain)
    with contextlib.redirect_stdout(io.StringIO()):
        model.fit(table)
        rows = model.generate(n_records=len(table))
    seconds = time.process_time() - start
    return {"rows": rows[names].to_numpy().astype(int).tolist(), "seconds": seconds}


def contingency_table(data, parameters):
    """Synthetic rows for a table of codes, by AIM of OpenDP, and their CPU time."""
    import jax
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    jax.config.update("jax_enable_x64", True)
    names = [f"c{j:02}" for j in range(len(data["sizes"]))]
    keys = {
        name: list(range(size)) for name, size in zip(names, data["sizes"].tolist(), strict=True)
    }
    start = time.process_time()
    # Approximate privacy is not available if all values of all columns are public.
    loss = {"rho": parameters["rho"]}
    context = dp.Context.compositor(
        data=pl.DataFrame(data["codes"].astype(np.int64), schema=names, orient="row").lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(**loss),
    )
    query = context.query(**loss).contingency_table(keys=keys, algorithm=dp.mbi.AIM())
    rows = query.release().synthesize(rows=len(data["codes"]))
    seconds = time.process_time() - start
    values, rng = rows.select(names).to_numpy().astype(float), np.random.default_rng(0)
    # Some values are null, beside the public ones. Others of the column take their places.
    for column in values.T:
        gaps = np.isnan(column)
        column[gaps] = rng.choice(column[~gaps], gaps.sum())
    return {"rows": values.astype(int).tolist(), "seconds": seconds}


JOBS = {
    job.__name__: job
    for job in (
        components,
        histogram,
        spark_counts,
        quantiles,
        cubical,
        entropies,
        transport,
        marginals,
        contingency_table,
    )
}

if __name__ == "__main__":
    # This folder contains files with the same names as files of the peers.
    del sys.path[0]
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    job, path, text = sys.argv[1:]
    with np.load(path) as archive:
        arrays = dict(archive)
    print(json.dumps(JOBS[job](arrays, json.loads(text))))
