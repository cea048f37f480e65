"""Jobs of peers in separate environments. This file is run there by its path, not as a module.

``python _foreign.py JOB data.npz parameters.json`` prints the results of a job as JSON. The jobs
are ``kmeans``, ``classify``, ``embedding``, ``kmeans_times`` and ``lsh_times``.
"""

import json
import sys
import time

import numpy as np

# Rows of a first fit that is not timed, because it loads modules and fills caches.
WARM_UP = 1000


def kmeans(data, parameters):
    """Labels and seconds of diffprivlib's private k-means, for each seed."""
    from diffprivlib.models import KMeans

    X, bounds = data["X"], (data["low"], data["high"])
    labels, seconds = [], []
    for seed in range(parameters["n_seeds"]):
        model = KMeans(
            parameters["n_clusters"],
            epsilon=parameters["epsilon"],
            bounds=bounds,
            random_state=seed,
        )
        start = time.perf_counter()
        model.fit(X)
        seconds.append(time.perf_counter() - start)
        labels.append(np.asarray(model.predict(X)).tolist())
    return {"labels": labels, "seconds": seconds}


def classify(data, parameters):
    """Accuracy of diffprivlib's logistic regression and naive Bayes, for each seed."""
    from diffprivlib.models import GaussianNB, LogisticRegression

    found = {"logistic": [], "bayes": []}
    # Rows lie in a cube. The norm for the regression is the radius of the ball around the cube.
    norm = data["T"].shape[1] ** 0.5
    for seed, (X, y) in enumerate(zip(data["X"], data["y"], strict=True)):
        models = {
            "logistic": LogisticRegression(
                epsilon=parameters["epsilon"], data_norm=norm, C=10.0, random_state=seed
            ),
            "bayes": GaussianNB(epsilon=parameters["epsilon"], bounds=(-1, 1), random_state=seed),
        }
        for name, model in models.items():
            found[name].append(float(model.fit(X, y).score(data["T"], data["t"])))
    return found


def embedding(data, parameters):
    """Seconds of graspologic's adjacency spectral embedding, and a corner of the Gram matrix."""
    from graspologic.embed import AdjacencySpectralEmbed
    from scipy.sparse import csr_array

    n = len(data["indptr"]) - 1
    A = csr_array((data["data"].astype(float), data["indices"], data["indptr"]), shape=(n, n))
    seconds = []
    for _ in range(parameters["repeats"]):
        model = AdjacencySpectralEmbed(parameters["n_components"], diag_aug=False, check_lcc=False)
        start = time.perf_counter()
        Z = model.fit_transform(A)
        seconds.append(time.perf_counter() - start)
    return {"seconds": seconds, "gram": (Z[:50] @ Z[:50].T).tolist()}


def kmeans_times(data, parameters):
    """Seconds of one fit of diffprivlib's private k-means, on the clock and of the CPU."""
    from diffprivlib.models import KMeans

    bounds = data["low"], data["high"]
    return _times(
        lambda X: KMeans(
            parameters["n_clusters"], epsilon=parameters["epsilon"], bounds=bounds
        ).fit(X),
        data["X"],
    )


def lsh_times(data, parameters):
    """Seconds of one fit of Google's private k-means, on the clock and of the CPU."""
    from clustering import clustering_algorithm, clustering_params

    # Only the centers are kept, as in _foreign_clusters.py: the original result labels rows one by
    # one in Python.
    clustering_algorithm.ClusteringResult = lambda data, centers: centers
    privacy = clustering_params.DifferentialPrivacyParam(parameters["epsilon"], parameters["delta"])
    return _times(
        lambda X: clustering_algorithm.private_lsh_clustering(
            parameters["n_clusters"], clustering_params.Data(X, parameters["radius"]), privacy
        ),
        data["X"],
    )


def _times(fit, X):
    fit(X[:WARM_UP])
    start, cpu = time.perf_counter(), time.process_time()
    fit(X)
    return {"times": (time.perf_counter() - start, time.process_time() - cpu)}


if __name__ == "__main__":
    job, path, parameters = sys.argv[1:]
    with np.load(path) as data:
        jobs = (kmeans, classify, embedding, kmeans_times, lsh_times)
        named = {function.__name__: function for function in jobs}
        result = named[job](data, json.loads(parameters))
    print(json.dumps(result))
