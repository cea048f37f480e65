"""Private clusterings from source folders. This file is run by its path, not as a module.

``python _foreign_clusters.py lsh|separation|spans data.npz parameters.json`` prints the labels and
seconds of each seed as JSON.
"""

import json
import sys
import time

import numpy as np


def lsh(X, parameters, seed):
    """Google's k-means on a private coreset of a tree of locality-sensitive hashes."""
    from clustering import clustering_algorithm, clustering_params

    np.random.seed(seed)  # noqa: NPY002 (what it draws from)
    # Only the centers are kept. The original result labels rows one by one in Python, and the time
    # for it would be included.
    clustering_algorithm.ClusteringResult = lambda data, centers: centers
    start = time.perf_counter()
    centers = clustering_algorithm.private_lsh_clustering(
        parameters["n_clusters"],
        clustering_params.Data(X, parameters["radius"]),
        clustering_params.DifferentialPrivacyParam(parameters["epsilon"], parameters["delta"]),
    )
    seconds = time.perf_counter() - start
    squares = (centers**2).sum(axis=1) - 2 * X @ centers.T
    return squares.argmin(axis=1), seconds


def separation(X, parameters, seed):
    """DPM, which splits rows where there are few, preferably near the middle."""
    from dpm import DPM

    np.random.seed(seed)  # noqa: NPY002 (what it draws from)
    model = DPM(
        X, (parameters["low"], parameters["high"]), parameters["epsilon"], parameters["delta"]
    )
    start = time.perf_counter()
    _, clusters = model.perform_clustering()
    seconds = time.perf_counter() - start
    labels = np.zeros(len(X), dtype=int)
    for number, members in enumerate(clusters):
        labels[members] = number
    return labels, seconds


def spans(X, parameters, seed):
    """DP-DBSCAN, which joins dense cells of a noisy grid.

    The steps are those of its script, with its Laplace noise.
    """
    from datatype_grid import GridSpace
    from datatype_point import Points
    from histogram import GridLabels, Histogram, NoisyHistogram, SumHistogram
    from noise import get_noise_gen

    rows = Points(X)
    low, high = rows.get_ranges()
    noise = get_noise_gen("Laplace", seed, 1, parameters["epsilon"])
    start = time.perf_counter()
    grid = GridSpace(X.shape[1], low, high, parameters["alpha"], 1.0)
    counts = Histogram.build_from_pts(rows, grid)
    noisy = NoisyHistogram.naive_build(counts, noise, grid.num_grids)
    sums = SumHistogram.build_from_counts(noisy, grid)
    margin = noise.max_sum_noise(0.5, grid.num_grids, grid.kappa)
    labels = GridLabels.label_high_freq(sums, parameters["min_points"] + margin)
    labels.merge_neighbors(grid)
    seconds = time.perf_counter() - start
    return labels.obtain_point_labels(rows, grid), seconds


if __name__ == "__main__":
    # This folder contains files with the same names as files of the peers.
    del sys.path[0]
    job, path, text = sys.argv[1:]
    parameters = json.loads(text)
    with np.load(path) as data:
        X = data["X"]
    fit = {"lsh": lsh, "separation": separation, "spans": spans}[job]
    found = [fit(X, parameters, seed) for seed in range(parameters["n_seeds"])]
    labels, seconds = zip(*found, strict=True)
    print(json.dumps({"labels": [np.asarray(y).tolist() for y in labels], "seconds": seconds}))
