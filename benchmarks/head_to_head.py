"""Losses of private k-means: ``DPLloyd``, PE-means, Google, diffprivlib, and published numbers.

``PE_MEANS_PYTHON``, ``GOOGLE_DP_PYTHON`` and ``DIFFPRIVLIB_PYTHON`` name the interpreters of the
peers in separate environments, ``PE_MEANS_FOLDER`` the folder of t3humphries/PE-means, and
``GOOGLE_DP_FOLDER`` the folder ``learning`` of google/differential-privacy, which is also installed
beside PE-means. A missing peer is left out, and a message says so.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, make_blobs
from sklearn.metrics import pairwise_distances_argmin_min

from benchmarks._ask import ask, missing
from benchmarks._table import Table, scores
from benchmarks._timing import cpu_of
from sklearn_dptda.cluster import DPLloyd
from sklearn_dptda.datasets import load_table

# The budgets of the paper. PE-means makes more steps above 1 and takes longer, so it is run here
# only up to 1, and its published numbers cover all budgets.
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
MEASURED = (0.25, 0.5, 1.0)
N_SEEDS = 10
# Losses of small tables vary between runs, so these have as many runs as the published ones.
SMALL, MANY_SEEDS = 5000, 50
# PE-means counts about a fifth of the rows as candidates, so its time grows as their square.
MANY_ROWS, FEW_SEEDS = 30_000, 3
# PE-means projects rows with more columns than these.
MANY_COLUMNS = 32
# Cells of a grid in each of at most four columns, and the most cells in all. A rule for the number,
# such as that of arXiv 2603.26963, can at best choose as well as hindsight does.
GRID, GRID_COLUMNS, MANY_CELLS = (4, 5, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128), 4, 21_000
# Peers of the measured table: variable, job, and whether it is a source folder.
PEERS = {
    "PE-means": ("PE_MEANS", "evolve", True),
    "PE-means, projected": ("PE_MEANS", "evolve_projected", True),
    "Google LSH": ("GOOGLE_DP", "lsh", True),
    "diffprivlib": ("DIFFPRIVLIB", "noisy", False),
}
# Areas under the curve of the loss over epsilon, of k-means without privacy and of these methods:
# Table I of arXiv 2606.00342, as notebooks/paper_tables.ipynb of its code prints it (50 runs).
METHODS = (*list(PEERS)[:2], "Google", "FastLloyd", "diffprivlib")
PUBLISHED = {
    "birch2": (0.0001, 0.0003, np.nan, 0.0658, 0.0031, 0.0124),
    "iris": (0.1361, 0.2894, np.nan, 0.6892, 0.3979, 1.3048),
    "g2, 4": (0.4650, 0.4761, np.nan, 0.5465, 0.4666, 0.5468),
    "g2, 16": (0.7677, 0.7800, np.nan, 0.8391, 0.8687, 1.1816),
    "g2, 64": (1.0956, 1.1538, 1.1295, 1.2478, 1.9647, 2.6608),
    "g2, 128": (1.3534, 1.7237, 1.4055, 1.5906, 2.6425, 4.4632),
    "blobs, 4 in 4": (0.0777, 0.0778, np.nan, 0.1305, 0.1777, 0.2355),
    "blobs, 16 in 4": (0.0459, 0.0445, np.nan, 0.0979, 0.0990, 0.1409),
    "blobs, 64 in 4": (0.0343, 0.0379, np.nan, 0.1289, 0.0818, 0.1191),
    "blobs, 4 in 16": (0.0950, 0.0955, np.nan, 0.1395, 0.7110, 0.5049),
    "blobs, 16 in 16": (0.0606, 0.0668, np.nan, 0.1596, 0.7160, 0.5809),
    "blobs, 64 in 16": (0.0642, 0.1183, np.nan, 0.3872, 0.7631, 0.8720),
    "blobs, 4 in 64": (0.0954, 0.0993, 0.0974, 0.1090, 1.4623, 0.8614),
    "blobs, 16 in 64": (0.0847, 0.1192, 0.1189, 0.2258, 1.7475, 1.3716),
    "blobs, 64 in 64": (0.0823, 0.3070, 0.4678, 0.7878, 2.2002, 2.2456),
    "blobs, 4 in 128": (0.1054, 0.1333, 0.1097, 0.1186, 1.7604, 1.1632),
    "blobs, 16 in 128": (0.0919, 0.1942, 0.1562, 0.2838, 2.3038, 1.9742),
    "blobs, 64 in 128": (0.0933, 0.5740, 0.7190, 0.9675, 2.7204, 2.9608),
}
# Tables on which the peers are run here; those of REAL are no part of the published evaluation.
RUN = (*list(PUBLISHED)[:6], "blobs, 16 in 16", "blobs, 64 in 16")
REAL = ("magic", "htru2", "shuttle", "usps")
QUICK = ("iris", "g2, 4")


class Rows(NamedTuple):
    """Rows about their mean in the unit ball, and the number of clusters."""

    name: str
    X: np.ndarray
    n_clusters: int

    @property
    def delta(self):
        """The delta of the paper."""
        return len(self.X) ** -1.1

    def __str__(self):
        n, d = self.X.shape
        return f"{self.name}: {n:,} x {d}, {self.n_clusters} clusters"

    def loss(self, centers):
        """Mean squared distance of the rows from their nearest centers."""
        return float(np.mean(pairwise_distances_argmin_min(self.X, np.asarray(centers))[1] ** 2))


def tables(quick):
    """Yield messages about missing peers, then the tables of this benchmark."""
    for variable, folder in {peer: folder for peer, _, folder in PEERS.values()}.items():
        if reason := missing(variable, folder=folder):
            yield f"{variable} is left out: {reason}.\n"
    yield _published(2 if quick else N_SEEDS, QUICK if quick else PUBLISHED)
    yield _measured(2, (1.0,), QUICK) if quick else _measured(N_SEEDS, MEASURED, RUN + REAL)


def _load(name):
    """Return the rows of a table, centred and scaled to the unit ball as in the paper."""
    if name in REAL:
        table = load_table(name)
        X, k = table.data.astype(float), len(table.target_names)
    elif name == "iris":
        X, k = load_iris(return_X_y=True)[0], 3
    elif name == "birch2":
        # Zhang et al. 1996: 100 clusters on four periods of a sine.
        rng, turn = np.random.default_rng(0), 2 * np.pi * np.arange(100)
        centers = np.column_stack([turn, 25 * np.sin(turn / 25)])
        X, k = np.repeat(centers, 250, axis=0) + rng.normal(size=(25_000, 2)), 100
    elif name == "fifteen":
        # As in the table S1 of Fränti and Virmajoki, with a fifth of its rows.
        rng, places = np.random.default_rng(0), []
        while len(places) < 15:
            place = rng.uniform(0.1, 0.9, 2)
            if all(np.linalg.norm(place - other) > 0.15 for other in places):
                places.append(place)
        X, k = np.array(places)[rng.integers(0, 15, 1000)] + 0.04 * rng.normal(size=(1000, 2)), 15
    elif name.startswith("g2"):
        d = int(name.split()[-1])
        rng = np.random.default_rng(0)
        X, k = rng.normal(np.repeat([500, 600], 1024)[:, None], 50, (2048, d)), 2
    else:
        k, d = (int(word) for word in name.split() if word.isdecimal())
        X = make_blobs(20_000, d, centers=k, random_state=1)[0].round(4)
    X = X - X.mean(axis=0)
    return Rows(name, X / np.linalg.norm(X, axis=1).max(), k)


def _ours(rows, epsilon, delta, seed):
    """Loss and CPU seconds of our own k-means."""
    model = DPLloyd(rows.n_clusters, epsilon, delta, (-1, 1), random_state=seed)
    seconds, _ = cpu_of(lambda: model.fit(rows.X))
    return rows.loss(model.cluster_centers_), seconds


def _theirs(rows, peer, epsilon, n_seeds):
    """Losses and CPU seconds of a peer, or None if it is missing or is not for these rows."""
    variable, job, folder = PEERS[peer]
    n, d = rows.X.shape
    if job == "evolve_projected" and d <= MANY_COLUMNS:
        return None
    # diffprivlib gets the least cube about the origin that contains the rows.
    width = np.full(d, np.abs(rows.X).max())
    answer = ask(
        variable,
        job,
        {"X": rows.X, "low": -width, "high": width},
        folder=folder,
        warm_up=True,
        n_clusters=rows.n_clusters,
        epsilon=epsilon,
        delta=rows.delta,
        radius=1.0,
        n_seeds=FEW_SEEDS if n > MANY_ROWS and variable == "PE_MEANS" else n_seeds,
    )
    return answer and ([rows.loss(centers) for centers in answer["found"]], answer["seconds"])


def _on_best_grid(rows, epsilon, n_seeds):
    """Losses of k-means of noisy counts, on the grid whose median loss turns out to be least."""
    d, k = rows.X.shape[1], rows.n_clusters
    if d > GRID_COLUMNS:
        return None
    sizes = [size for size in GRID if 2 * k <= size**d <= MANY_CELLS]
    found = [[_on_grid(rows, epsilon, size, seed) for seed in range(n_seeds)] for size in sizes]
    return min(found, key=np.median)


def _on_grid(rows, epsilon, size, seed):
    d, edges = rows.X.shape[1], np.linspace(-1, 1, size + 1)
    counts, _ = np.histogramdd(rows.X, [edges] * d)
    noisy = counts + np.random.default_rng(seed).laplace(0, 1 / epsilon, counts.shape)
    middles = np.meshgrid(*[(edges[1:] + edges[:-1]) / 2] * d, indexing="ij")
    model = KMeans(rows.n_clusters, n_init=1, random_state=seed)
    places, weights = np.stack(middles, axis=-1).reshape(-1, d), np.maximum(noisy, 0).ravel()
    return rows.loss(model.fit(places, sample_weight=weights).cluster_centers_)


def _plain(rows, n_seeds):
    """Losses of k-means without privacy, from one start each."""
    models = (KMeans(rows.n_clusters, n_init=1, random_state=seed) for seed in range(n_seeds))
    return [rows.loss(model.fit(rows.X).cluster_centers_) for model in models]


def _published(n_seeds, names):
    """The table of areas under the curve, beside published ones."""
    lines, ratios, lost = [], [], []
    for name in names:
        rows, (their_plain, *theirs) = _load(name), PUBLISHED[name]
        more = MANY_SEEDS if len(rows.X) < SMALL and n_seeds == N_SEEDS else n_seeds
        losses = scores(partial(_ours, rows), EPSILONS, [rows.delta], range(more))[:, 0, :, 0]
        own = np.trapezoid(losses.mean(axis=1), EPSILONS)
        plain = np.mean(_plain(rows, min(more, 5))) * (EPSILONS[-1] - EPSILONS[0])
        # The farthest row of g2 sets the unit, and it differs between draws, so losses are compared
        # as multiples of that of k-means without privacy.
        unit = plain / their_plain if name.startswith("g2") else 1.0
        ratio = own / (unit * np.nanmin(theirs)) - 1
        ratios.append(ratio)
        lost += [f"{name} ({ratio:+.0%}, {METHODS[np.nanargmin(theirs)]})"] if ratio >= 0 else []
        areas = ("-" if np.isnan(area) else f"{area:.4f}" for area in (own, *theirs))
        lines.append((f"{rows}", f"{their_plain:.4f}, {plain:.4f}", *areas, f"{ratio:+.1%}"))
    below, clearly = np.sum(np.array(ratios) < 0), np.sum(np.array(ratios) < -0.01)
    return Table(
        "Private k-means: area under the curve of the mean loss, with published values",
        " | ".join(["data | KMeans: published, here | DPLloyd", *METHODS, "DPLloyd against best"]),
        lines,
        f"DPLloyd has a lower loss than the best published method on {below} of {len(lines)} "
        f"tables, by more than 1 % on {clearly}. It does not on: {', '.join(lost) or 'none'}. "
        f"Means of {n_seeds} runs ({MANY_SEEDS} below {SMALL:,} rows).",
    )


def _measured(n_seeds, epsilons, names):
    """The table of methods that run here."""
    data = []
    for name in names:
        try:
            data.append(_load(name))
        except FileNotFoundError as error:
            print(error)
    lines, medians = [], []
    for rows in data:
        plain = np.median(_plain(rows, n_seeds))
        for epsilon in epsilons:
            # CPU times are those of one process.
            own = scores(partial(_ours, rows, epsilon), (rows.delta, 0.0), range(n_seeds), n_jobs=1)
            (mine, seconds), (pure, _) = own.transpose(0, 2, 1)
            ask_peer = partial(_theirs, rows, epsilon=epsilon, n_seeds=n_seeds)
            peers = {peer: ask_peer(peer) for peer in PEERS}
            losses = [answer and answer[0] for answer in peers.values()]
            shown = (mine, *losses, pure, _on_best_grid(rows, epsilon, n_seeds))
            cells = ["-" if each is None else _quartiles(each) for each in shown]
            evolved = peers["PE-means"]
            ratio = f"{np.median(seconds) / np.median(evolved[1]):.2g}" if evolved else "-"
            lines.append((f"{rows}", f"{epsilon:g}", *cells, f"{plain:.4g}", ratio))
            head = f"{rows.name} at {epsilon:g}", np.median(mine), np.median(pure)
            medians.append((*head, *(np.nan if x is None else np.median(x) for x in losses)))
    return Table(
        f"Private k-means: median losses of {n_seeds} runs here (quartiles)",
        " | ".join(
            ["data | epsilon | DPLloyd", *PEERS, "DPLloyd, delta = 0 | best grid, delta = 0"]
        )
        + " | KMeans | CPU ratio",
        lines,
        _counts(medians),
    )


def _quartiles(losses):
    low, middle, high = np.quantile(losses, (0.25, 0.5, 0.75))
    return f"{middle:.3g} ({low:.3g} to {high:.3g})"


def _counts(medians):
    """Say on how many lines DPLloyd has the lower median, against each peer and the best."""
    names, own, pure, *theirs = zip(*medians, strict=True)
    said = []
    for peer, losses in zip(PEERS, np.array(theirs), strict=True):
        # diffprivlib has no delta, so it is compared with pure privacy.
        below = np.array(pure if peer == "diffprivlib" else own) < losses
        said.append(f"{peer} in {below.sum()} of {np.isfinite(losses).sum()}")
    lost = []
    for name, mine, losses in zip(names, own, np.array(theirs[:3]).T, strict=True):
        if np.isfinite(losses).any() and mine >= np.nanmin(losses):
            peer = list(PEERS)[np.nanargmin(losses)]
            lost.append(f"{name} ({mine / np.nanmin(losses) - 1:+.0%}, {peer})")
    return (
        f"The median loss of DPLloyd is below that of {'; '.join(said)} lines. It is not below all "
        f"methods with the same delta on {len(lost)} of {len(names)} lines: {', '.join(lost)}."
    )
