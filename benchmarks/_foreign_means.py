"""Centers of private k-means of peers. This file is run by its path, not as a module.

``python _foreign_means.py evolve|evolve_projected|lsh|noisy data.npz parameters.json`` prints the
centers and the CPU seconds of each seed as JSON.
"""

import json
import sys
import time

import numpy as np


def evolve(X, parameters, seed):
    """PE-means, with the parameters of its experiments."""
    from src.pe_means_main import pe_means

    return _evolved(pe_means, X, parameters, seed)


def evolve_projected(X, parameters, seed):
    """PE-means of a random projection to 16 columns, with the parameters of its experiments."""
    from src.pe_means_main import hdpe_means

    return _evolved(hdpe_means, X, parameters, seed)


def _evolved(method, X, parameters, seed):
    import faiss
    from clustering import clustering_params
    from src.helpers import PE_PARAMS

    _keep_centers()
    faiss.omp_set_num_threads(1)
    (n, d), k, epsilon = X.shape, parameters["n_clusters"], parameters["epsilon"]
    steps = int(4 * d**0.5)
    given = {
        **PE_PARAMS,
        "num_gen": max(int(epsilon * steps) if epsilon > 1 else steps, 1),
        "L": int(max(n / (5 * k), 4)),
        "run_id": seed,
    }
    data = clustering_params.Data(X, parameters["radius"])
    privacy = clustering_params.DifferentialPrivacyParam(epsilon, parameters["delta"])
    return method(k, data, given, privacy, visualize=False)[1]


def lsh(X, parameters, seed):
    """Google's k-means on a private coreset of a tree of locality-sensitive hashes."""
    from clustering import clustering_algorithm, clustering_params

    _keep_centers()
    np.random.seed(seed)  # noqa: NPY002 (what it draws from)
    return clustering_algorithm.private_lsh_clustering(
        parameters["n_clusters"],
        clustering_params.Data(X, parameters["radius"]),
        clustering_params.DifferentialPrivacyParam(parameters["epsilon"], parameters["delta"]),
    ).centers


def noisy(X, parameters, seed):
    """Diffprivlib's noisy Lloyd steps."""
    from diffprivlib.models import KMeans

    width = np.full(X.shape[1], parameters["width"])
    model = KMeans(
        parameters["n_clusters"],
        epsilon=parameters["epsilon"],
        bounds=(-width, width),
        random_state=seed,
    )
    return model.fit(X).cluster_centers_


class _Centers:
    """What is used of a result. The original labels rows one by one, which takes long."""

    def __init__(self, data, centers):
        self.centers, self.loss = centers, float("nan")


def _keep_centers():
    from clustering import clustering_algorithm

    clustering_algorithm.ClusteringResult = _Centers


if __name__ == "__main__":
    # This folder contains files with the same names as files of the peers.
    del sys.path[0]
    job, path, text = sys.argv[1:]
    parameters = json.loads(text)
    with np.load(path) as data:
        X = data["X"]
    fit = {f.__name__: f for f in (evolve, evolve_projected, lsh, noisy)}[job]
    # The first fit loads modules, so it is made twice, and the first time is not measured.
    fit(X[:1000], parameters, 0)
    centers, seconds = [], []
    for seed in range(parameters["n_seeds"]):
        start = time.process_time()
        centers.append(np.asarray(fit(X, parameters, seed)).tolist())
        seconds.append(time.process_time() - start)
    print(json.dumps({"centers": centers, "seconds": seconds}))
