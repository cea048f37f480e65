"""Comparison of private clusterings: agreement with known classes, and running times."""

import warnings

import numpy as np
from sklearn.metrics import adjusted_rand_score

from benchmarks._ask import ask, missing
from benchmarks._peer_examples import examples
from benchmarks._table import Table
from benchmarks._timing import once, summary
from sklearn_dptda.cluster import DPLloyd, DPMoGMorse, DPToMATo

EPSILONS = (0.5, 1.0, 5.0)
DELTA = 1e-6
# Mixtures need a matrix for each component, and histograms a cell for each bin, so they are not
# run on more columns than these.
MANY_COLUMNS, FEW_COLUMNS = 20, 3

OURS = {
    "DPLloyd": lambda example, k, **public: DPLloyd(k, delta=DELTA, **public),
    "DPMoGMorse": lambda example, k, **public: (
        DPMoGMorse(k, max(8, k), delta=DELTA, **public)
        if example.X.shape[1] <= MANY_COLUMNS and not example.large
        else None
    ),
    "DPToMATo": lambda example, k, **public: (
        DPToMATo(**public) if example.X.shape[1] <= FEW_COLUMNS else None
    ),
}
THEIRS = ("diffprivlib KMeans", "Google LSH", "DPM", "DP-DBSCAN")
PEERS = {"DIFFPRIVLIB": False, "GOOGLE_DP": True, "DPM": True, "DP_DBSCAN": True}


def cluster_tables(quick):
    """Yield messages about missing peers, then tables of scores and of seconds."""
    for peer, folder in PEERS.items():
        if reason := missing(peer, folder=folder):
            yield f"{peer} is left out: {reason}.\n"
    n_seeds, epsilons = (2, (1.0,)) if quick else (4, EPSILONS)
    scores, times = [], []
    for example in examples(quick):
        k = len(np.unique(example.y[example.y >= 0]))
        for epsilon in (1.0,) if example.large else epsilons:
            seeds = 2 if example.large else n_seeds
            cells = {**_ours(example, k, epsilon, seeds), **_theirs(example, k, epsilon, seeds)}
            head = (f"{example.name}, {len(example.X):,} rows, {k} clusters", epsilon)
            scores.append((*head, *(_spread(example.y, cell) for cell in cells.values())))
            times.append((*head, *(f"{cell[1]}" if cell else "-" for cell in cells.values())))
    columns = ("data", "epsilon", *OURS, *THEIRS)
    note = (
        f"{n_seeds} seeds (2 for 100,000 rows). Adjacency: add-remove. The rows are in one public "
        "cube, except for DP-DBSCAN, which uses the range of the rows. "
        f"delta = {DELTA:g} for DPLloyd, DPMoGMorse, Google and DPM, and 0 for the others. The "
        "number of clusters is given to DPLloyd, DPMoGMorse, diffprivlib and Google, and estimated "
        "by DPToMATo, DPM and DP-DBSCAN. The two parameters of DP-DBSCAN are those of its "
        "examples. "
    )
    yield Table(
        "Private clusters: adjusted Rand index",
        columns,
        scores,
        note + "Mean and standard deviation.",
    )
    yield Table(
        "Private clusters: seconds of a fit", columns, times, "Medians (range) of the same fits."
    )


def _ours(example, k, epsilon, n_seeds):
    """Labels and times of our methods by name; None if a method does not suit the rows."""
    cells = {}
    for name, make in OURS.items():
        public = {"epsilon": epsilon, "bounds": (-0.5, 0.5)}
        models = [make(example, k, random_state=seed, **public) for seed in range(n_seeds)]
        if models[0] is None:
            cells[name] = None
            continue
        with warnings.catch_warnings():
            # Warnings about rows that the noise hides are expected here.
            warnings.simplefilter("ignore")
            seconds = [once(lambda m=m: m.fit(example.X))[0] for m in models]
            cells[name] = [m.predict(example.X) for m in models], summary(seconds)
    return cells


def _theirs(example, k, epsilon, n_seeds):
    d = example.X.shape[1]
    shared = {"epsilon": epsilon, "n_clusters": k, "n_seeds": n_seeds, "delta": DELTA}
    box = {"X": example.X, "low": np.full(d, -0.5), "high": np.full(d, 0.5)}
    script = {"script": "_foreign_clusters.py", "folder": True}
    # DPM does not clip rows and searches for gaps of 0.25 to 15, so it runs in the cube of its
    # demonstration.
    wide = {"X": np.clip(example.X, -0.5, 0.5) * 200}
    spans = {"alpha": example.alpha, "min_points": example.min_points, **script}
    answers = (
        ask("DIFFPRIVLIB", "kmeans", box, **shared),
        ask("GOOGLE_DP", "lsh", {"X": example.X}, radius=example.radius, **shared, **script),
        ask("DPM", "separation", wide, low=-100.0, high=100.0, **shared, **script),
        ask("DP_DBSCAN", "spans", {"X": example.original}, **shared, **spans)
        if example.original is not None
        else None,
    )
    return {
        name: answer and (answer["labels"], summary(answer["seconds"]))
        for name, answer in zip(THEIRS, answers, strict=True)
    }


def _spread(y, cell):
    if not cell:
        return "-"
    scores = [adjusted_rand_score(y, labels) for labels in cell[0]]
    return f"{np.mean(scores):.2f} ± {np.std(scores):.2f}"
