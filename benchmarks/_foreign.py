"""Jobs of peers in separate environments. This file is run there by its path, not as a module.

``python _foreign.py JOB data.npz parameters.json`` prints what the job found for each seed, and the
seconds of the CPU that it took, as JSON.
"""

import contextlib
import io
import json
import logging
import sys
import tempfile
import time
import warnings
from importlib import import_module
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np

# Rows of a first fit that is not timed, because it loads modules and fills caches.
WARM_UP = 1000


def noisy(data, parameters, seed):
    """Centers of diffprivlib's noisy Lloyd steps."""
    from diffprivlib.models import KMeans

    bounds = data["low"], data["high"]
    model = KMeans(
        parameters["n_clusters"], epsilon=parameters["epsilon"], bounds=bounds, random_state=seed
    )
    return model.fit(data["X"]).cluster_centers_


def classify(data, parameters, seed):
    """Accuracy of diffprivlib's logistic regression or naive Bayes, on rows of a cube."""
    from diffprivlib.models import GaussianNB, LogisticRegression

    given = {"epsilon": parameters["epsilon"], "random_state": seed}
    if parameters["kind"] == "bayes":
        model = GaussianNB(bounds=(-1, 1), **given)
    else:
        # The norm for the regression is the radius of the ball around the cube.
        model = LogisticRegression(data_norm=data["T"].shape[1] ** 0.5, C=10.0, **given)
    return model.fit(data["X"][seed], data["y"][seed]).score(data["T"], data["t"])


def lsh(data, parameters, seed):
    """Centers of Google's k-means on a private coreset of locality-sensitive hashes."""
    from clustering import clustering_algorithm

    np.random.seed(seed)  # noqa: NPY002 (what it draws from)
    clustering_algorithm.ClusteringResult = _Centers
    given = _of_google(data, parameters)
    return clustering_algorithm.private_lsh_clustering(parameters["n_clusters"], *given).centers


def evolve(data, parameters, seed):
    """Centers of PE-means, with the parameters of its experiments."""
    from src.pe_means_main import pe_means

    return _evolved(pe_means, data, parameters, seed)


def evolve_projected(data, parameters, seed):
    """Centers of PE-means of a random projection to 16 columns."""
    from src.pe_means_main import hdpe_means

    return _evolved(hdpe_means, data, parameters, seed)


def _evolved(method, data, parameters, seed):
    import faiss
    from clustering import clustering_algorithm
    from src.helpers import PE_PARAMS

    clustering_algorithm.ClusteringResult = _Centers
    faiss.omp_set_num_threads(1)
    (n, d), k, epsilon = data["X"].shape, parameters["n_clusters"], parameters["epsilon"]
    steps = int(4 * d**0.5)
    given = {
        **PE_PARAMS,
        "num_gen": max(int(epsilon * steps) if epsilon > 1 else steps, 1),
        "L": int(max(n / (5 * k), 4)),
        "run_id": seed,
    }
    rows, privacy = _of_google(data, parameters)
    return method(k, rows, given, privacy, visualize=False)[1]


def _of_google(data, parameters):
    from clustering import clustering_params

    privacy = clustering_params.DifferentialPrivacyParam(parameters["epsilon"], parameters["delta"])
    return clustering_params.Data(data["X"], parameters["radius"]), privacy


class _Centers:
    """What is used of a result. The original labels rows one by one, which takes long."""

    def __init__(self, data, centers):
        self.centers, self.loss = centers, float("nan")


def marginals(data, parameters, seed):
    """Synthetic rows for a table of codes, by MST or AIM of dpmm."""
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
    privacy = {"epsilon": parameters["epsilon"], "delta": parameters["delta"]}
    model = kind(domain=domain, n_jobs=1, **privacy, **options)
    model.set_random_state(np.random.RandomState(seed))
    model.set_domain(domain)
    with contextlib.redirect_stdout(io.StringIO()):
        model.fit(table)
        rows = model.generate(n_records=len(table))
    return rows[names].to_numpy().astype(int)


def evolve_rows(data, parameters, seed):
    """Synthetic rows of Tab-PE, with the parameters of its example of a table of people."""
    import pandas as pd
    import torch

    # The tabular part uses no images, texts or language models, which need many packages.
    for part in ("api", "data", "embedding"):
        sys.modules |= {f"pe.{part}.{kind}": MagicMock() for kind in ("image", "text")}
    from pe.api import TabularAPI
    from pe.constant.data import (
        LABEL_ID_COLUMN_NAME,
        TABULAR_DATA_COLUMN_NAME,
        VARIATION_API_FOLD_ID_COLUMN_NAME,
    )
    from pe.data import TabularCSV
    from pe.embedding import TabularEmbedding
    from pe.histogram import NearestNeighbors
    from pe.population import CompositePopulation, PEPopulation
    from pe.runner import PE

    np.random.seed(seed)  # noqa: NPY002 (what it draws from)
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    *names, label = (f"c{j:02}" for j in range(data["X"].shape[1]))
    listed = [name for name, size in zip(names, data["sizes"], strict=False) if np.isfinite(size)]
    table = pd.DataFrame(data["X"], columns=[*names, label]).astype(dict.fromkeys(listed, int))
    table.to_csv("rows.csv", index=False)
    numbers = [name for name in names if name not in listed]
    kinds = {"cat_columns": listed, "int_columns": [], "float_columns": numbers}
    Path("kinds.json").write_text(json.dumps({**kinds, "label_columns": [label]}))
    rows = TabularCSV("rows.csv", "kinds.json")
    info, steps, n = rows.get_tab_info(), 30, 1000
    api = TabularAPI(info, num_iterations=steps)
    early = PEPopulation(
        api,
        initial_variation_api_fold=0,
        next_variation_api_fold=1,
        keep_selected=False,
        selection_mode="sample",
        histogram_threshold=0,
    )
    late = PEPopulation(
        api,
        initial_variation_api_fold=3,
        next_variation_api_fold=3,
        keep_selected=True,
        selection_mode="rank",
    )
    nearest = NearestNeighbors(
        TabularEmbedding(info), mode="L2", lookahead_degree=0, backend="torch"
    )
    runner = PE(rows, CompositePopulation([early] * 5 + [late] * (steps - 5)), nearest, loggers=[])
    privacy = {"epsilon": parameters["epsilon"], "delta": parameters["delta"]}
    with tempfile.TemporaryDirectory() as place:
        drawn = runner.run([n] * steps, checkpoint_path=place, **privacy).data_frame
    drawn = drawn[drawn[VARIATION_API_FOLD_ID_COLUMN_NAME] == -1]
    found = pd.DataFrame(drawn[TABULAR_DATA_COLUMN_NAME].tolist(), columns=[*listed, *numbers])
    return np.column_stack([found[names], drawn[LABEL_ID_COLUMN_NAME]]).astype(float)


if __name__ == "__main__":
    # This folder contains files with the same names as files of the peers.
    del sys.path[0]
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    name, path, text = sys.argv[1:]
    job, parameters = globals()[name], json.loads(text)
    with np.load(path) as archive:
        data = dict(archive)
    # Modules that take long to load are loaded before times are measured.
    for module in parameters.get("modules", ()):
        import_module(module)
    if parameters.get("warm_up"):
        job({**data, "X": data["X"][:WARM_UP]}, parameters, 0)
    found, seconds = [], []
    for seed in range(parameters["n_seeds"]):
        start = time.process_time()
        found.append(np.asarray(job(data, parameters, seed)).tolist())
        seconds.append(time.process_time() - start)
    print(json.dumps({"found": found, "seconds": seconds}))
