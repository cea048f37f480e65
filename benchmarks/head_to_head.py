"""Losses of private k-means: ``DPLloyd``, PE-means, Google, diffprivlib, and published numbers.

``PE_MEANS_PYTHON``, ``GOOGLE_DP_PYTHON`` and ``DIFFPRIVLIB_PYTHON`` name the interpreters of the
peers in separate environments, ``PE_MEANS_FOLDER`` the folder of t3humphries/PE-means, and
``GOOGLE_DP_FOLDER`` the folder ``learning`` of google/differential-privacy, which is also installed
beside PE-means. A missing peer is left out, and a message says so.
"""

import warnings
from dataclasses import dataclass
from time import process_time

import numpy as np
from joblib import Parallel, delayed
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, make_blobs
from sklearn.metrics import pairwise_distances_argmin_min

from benchmarks._ask import ask, missing
from benchmarks._table import Table
from sklearn_dptda.cluster import DPLloyd, DPTree
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
# Peers of the measured table: variable, job, and whether it is a source folder.
PEERS = {
    "PE-means": ("PE_MEANS", "evolve", True),
    "PE-means, projected": ("PE_MEANS", "evolve_projected", True),
    "Google LSH": ("GOOGLE_DP", "lsh", True),
    "diffprivlib": ("DIFFPRIVLIB", "noisy", False),
}


@dataclass(frozen=True)
class Published:
    """Areas under the curve of the loss over epsilon: Table I of arXiv 2606.00342.

    The values are those that ``notebooks/paper_tables.ipynb`` of its code prints, and are means of
    50 runs.
    """

    plain: float
    pe: float
    projected: float | None
    google: float
    fastlloyd: float
    diffprivlib: float

    def best(self):
        """The least loss of a private method, and its name."""
        losses = {
            "PE-means": self.pe,
            "PE-means, projected": self.projected,
            "Google": self.google,
            "FastLloyd": self.fastlloyd,
            "diffprivlib": self.diffprivlib,
        }
        return min((loss, name) for name, loss in losses.items() if loss is not None)


PUBLISHED = {
    "birch2": Published(0.0001, 0.0003, None, 0.0658, 0.0031, 0.0124),
    "iris": Published(0.1361, 0.2894, None, 0.6892, 0.3979, 1.3048),
    "g2, 4": Published(0.4650, 0.4761, None, 0.5465, 0.4666, 0.5468),
    "g2, 16": Published(0.7677, 0.7800, None, 0.8391, 0.8687, 1.1816),
    "g2, 64": Published(1.0956, 1.1538, 1.1295, 1.2478, 1.9647, 2.6608),
    "g2, 128": Published(1.3534, 1.7237, 1.4055, 1.5906, 2.6425, 4.4632),
    "blobs, 4 in 4": Published(0.0777, 0.0778, None, 0.1305, 0.1777, 0.2355),
    "blobs, 16 in 4": Published(0.0459, 0.0445, None, 0.0979, 0.0990, 0.1409),
    "blobs, 64 in 4": Published(0.0343, 0.0379, None, 0.1289, 0.0818, 0.1191),
    "blobs, 4 in 16": Published(0.0950, 0.0955, None, 0.1395, 0.7110, 0.5049),
    "blobs, 16 in 16": Published(0.0606, 0.0668, None, 0.1596, 0.7160, 0.5809),
    "blobs, 64 in 16": Published(0.0642, 0.1183, None, 0.3872, 0.7631, 0.8720),
    "blobs, 4 in 64": Published(0.0954, 0.0993, 0.0974, 0.1090, 1.4623, 0.8614),
    "blobs, 16 in 64": Published(0.0847, 0.1192, 0.1189, 0.2258, 1.7475, 1.3716),
    "blobs, 64 in 64": Published(0.0823, 0.3070, 0.4678, 0.7878, 2.2002, 2.2456),
    "blobs, 4 in 128": Published(0.1054, 0.1333, 0.1097, 0.1186, 1.7604, 1.1632),
    "blobs, 16 in 128": Published(0.0919, 0.1942, 0.1562, 0.2838, 2.3038, 1.9742),
    "blobs, 64 in 128": Published(0.0933, 0.5740, 0.7190, 0.9675, 2.7204, 2.9608),
}
# Tables on which the peers are run here; those of REAL are no part of the published evaluation.
RUN = (*list(PUBLISHED)[:6], "blobs, 16 in 16", "blobs, 64 in 16")
REAL = ("magic", "htru2", "shuttle", "usps")
QUICK = ("iris", "g2, 4")
# Numbers of rows and of clusters.
SIZES = ((300, 3), (1000, 4), (1000, 15), (3000, 10), (3000, 30), (10_000, 15), (10_000, 60))


@dataclass(frozen=True)
class Rows:
    """Rows about their mean in the unit ball, and the number of clusters."""

    name: str
    X: np.ndarray
    n_clusters: int

    @property
    def delta(self):
        """The delta of the paper."""
        return len(self.X) ** -1.1

    @property
    def width(self):
        """Half of the side of the least cube about the origin."""
        return float(np.abs(self.X).max())

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
    yield _published(quick)
    yield _measured(quick)
    yield _few_rows(quick)


def load(name):
    """Return the rows of a table, centred and scaled to the unit ball as in the paper."""
    if name in REAL:
        table = load_table(name)
        X, k = table.data.astype(float), len(table.target_names)
    elif name == "iris":
        X, k = load_iris(return_X_y=True)[0], 3
    elif name == "birch2":
        X, k = _sine(), 100
    elif name.startswith("g2"):
        d = int(name.split()[-1])
        rng = np.random.default_rng(0)
        X, k = rng.normal(np.repeat([500, 600], 1024)[:, None], 50, (2048, d)), 2
    else:
        k, d = (int(word) for word in name.split() if word.isdecimal())
        X = make_blobs(20_000, d, centers=k, random_state=1)[0].round(4)
    X = X - X.mean(axis=0)
    return Rows(name, X / np.linalg.norm(X, axis=1).max(), k)


def _sine():
    """The second table of BIRCH (Zhang et al. 1996): 100 clusters on four periods of a sine."""
    rng, turn = np.random.default_rng(0), 2 * np.pi * np.arange(100)
    centers = np.column_stack([turn, 25 * np.sin(turn / 25)])
    return np.repeat(centers, 250, axis=0) + rng.normal(size=(25_000, 2))


def _ours(rows, epsilon, delta, n_seeds, kind=DPLloyd):
    """Losses and CPU seconds of our own k-means."""
    losses, seconds = [], []
    for seed in range(n_seeds):
        model = kind(rows.n_clusters, epsilon, delta, (-1, 1), random_state=seed)
        start = process_time()
        with warnings.catch_warnings():
            # Warnings about rows that the noise hides are expected here.
            warnings.simplefilter("ignore")
            model.fit(rows.X)
        seconds.append(process_time() - start)
        losses.append(rows.loss(model.cluster_centers_))
    return losses, seconds


def _theirs(rows, peer, epsilon, n_seeds):
    """Losses and CPU seconds of a peer, or None if it is missing or is not for these rows."""
    variable, job, folder = PEERS[peer]
    n, d = rows.X.shape
    if job == "evolve_projected" and d <= MANY_COLUMNS:
        return None
    answer = ask(
        variable,
        job,
        {"X": rows.X},
        script="_foreign_means.py",
        folder=folder,
        n_clusters=rows.n_clusters,
        epsilon=epsilon,
        delta=rows.delta,
        radius=1.0,
        width=rows.width,
        n_seeds=FEW_SEEDS if n > MANY_ROWS and variable == "PE_MEANS" else n_seeds,
    )
    return answer and ([rows.loss(centers) for centers in answer["centers"]], answer["seconds"])


def _plain(rows, n_seeds):
    """Losses of k-means without privacy, from one start each."""
    models = (KMeans(rows.n_clusters, n_init=1, random_state=seed) for seed in range(n_seeds))
    return [rows.loss(model.fit(rows.X).cluster_centers_) for model in models]


# The published table.


def _published(quick):
    n_seeds, names = (2, QUICK) if quick else (N_SEEDS, PUBLISHED)
    found = Parallel(n_jobs=-1)(delayed(_areas)(name, n_seeds) for name in names)
    rows, below, clearly, lost = [], 0, 0, []
    for name, (shape, plain, own) in zip(names, found, strict=True):
        theirs = PUBLISHED[name]
        best, method = theirs.best()
        if name.startswith("g2"):
            # The farthest row sets the unit, and it differs between draws, so losses are compared
            # as multiples of that of k-means without privacy.
            best *= plain / theirs.plain
        below += own < best
        clearly += own < 0.99 * best
        lost += [] if own < best else [f"{name} ({own / best - 1:+.0%}, {method})"]
        rows.append(
            (
                shape,
                f"{theirs.plain:.4f}, {plain:.4f}",
                *map(_four, (own, theirs.pe, theirs.projected)),
                *map(_four, (theirs.google, theirs.fastlloyd, theirs.diffprivlib)),
                f"{own / best - 1:+.1%}",
            )
        )
    return Table(
        "Private k-means: area under the curve of the mean loss, with published values",
        (
            "data",
            "KMeans: published, here",
            "DPLloyd",
            "PE-means",
            "PE-means, projected",
            "Google LSH",
            "FastLloyd",
            "diffprivlib",
            "DPLloyd against the best published",
        ),
        rows,
        f"DPLloyd has a lower loss than the best published method on {below} of {len(rows)} "
        f"tables, by more than 1 % on {clearly}. It does not on: {', '.join(lost) or 'none'}.\n\n"
        "The loss is the mean squared distance of the rows from their nearest centres, after the "
        "rows are centred and scaled to the unit ball. Areas are those of trapezoids over epsilon "
        f"= {', '.join(f'{e:g}' for e in EPSILONS)}. The columns from PE-means on are published "
        "(means of 50 runs, printed by the code of arXiv 2606.00342), and those of DPLloyd are "
        f"means of {n_seeds} runs here ({MANY_SEEDS} below {SMALL:,} rows). All but diffprivlib "
        "have delta = n^-1.1 and Gaussian noise; diffprivlib has delta = 0. PE-means and Google "
        "are given the unit ball and the "
        "exact number of rows n, which counts as public in that paper; FastLloyd and diffprivlib "
        "are given the least cube about the origin that contains the rows. DPLloyd is given the "
        "cube around the unit ball, and not n. Adjacency is "
        "add-remove for DPLloyd, and PE-means scales the noise of its counts for it. Blobs are the "
        "published tables, made by the same function from the same seed; iris is scikit-learn's "
        "copy; g2 and birch2 are drawn again from their laws, and g2 is compared in multiples of "
        "the loss of KMeans, because its unit depends on the draw.",
    )


def _areas(name, n_seeds):
    """The rows, and the areas under the curves of the mean losses of k-means and DPLloyd."""
    rows = load(name)
    if len(rows.X) < SMALL and n_seeds == N_SEEDS:
        n_seeds = MANY_SEEDS
    curve = [np.mean(_ours(rows, epsilon, rows.delta, n_seeds)[0]) for epsilon in EPSILONS]
    plain = np.mean(_plain(rows, min(n_seeds, 5))) * (EPSILONS[-1] - EPSILONS[0])
    return f"{rows}", float(plain), float(np.trapezoid(curve, EPSILONS))


def _four(value):
    return "-" if value is None else f"{value:.4f}"


# Few rows for each cluster.


def _few_rows(quick):
    sizes = SIZES[:1] if quick else SIZES
    cases = [(n, k, d, epsilon) for n, k in sizes for d in (2, 4, 8) for epsilon in (0.5, 1.0)]
    lines = Parallel(n_jobs=2, prefer="threads")(delayed(_multiples)(*case) for case in cases)
    return Table(
        "Few rows for each cluster: losses as multiples of that of KMeans",
        ("rows", "clusters", "columns", "epsilon", "DPLloyd", "DPTree", "PE-means"),
        lines,
        "Medians over three tables of normal clusters (equal and small, of unlike sizes and "
        "numbers of rows, equal and wide), with four runs each of our own and two of PE-means.",
    )


def _multiples(n, k, d, epsilon):
    """A line of the table: the case, and the medians of the multiples."""
    found = {DPLloyd: [], DPTree: [], "PE-means": []}
    for seed, kind in enumerate(("equal", "unlike", "wide")):
        X = _clusters(n, k, d, kind, seed)
        X = X - X.mean(axis=0)
        rows = Rows(kind, X / np.linalg.norm(X, axis=1).max(), k)
        plain = rows.loss(KMeans(k, n_init=3, random_state=0).fit(rows.X).cluster_centers_)
        for method, losses in found.items():
            if method == "PE-means":
                answer = _theirs(rows, method, epsilon, 2)
                mine = answer[0] if answer else [np.nan]
            else:
                mine = _ours(rows, epsilon, rows.delta, 4, method)[0]
            losses.extend(loss / plain for loss in mine)
    return n, k, d, f"{epsilon:g}", *(f"{np.median(losses):.2f}" for losses in found.values())


def _clusters(n, k, d, kind, seed):
    """Rows of normal clusters with uniform centres in a cube."""
    rng = np.random.default_rng(5000 + seed)
    centres = rng.uniform(-1, 1, (k, d))
    widths = np.full(k, {"equal": 0.25, "wide": 0.5}.get(kind, 0.35) * k ** (-1 / d))
    weights = np.ones(k)
    if kind == "unlike":
        weights, widths = np.geomspace(10, 1, k), widths * rng.uniform(0.4, 1.6, k)
    y = rng.choice(k, n, p=weights / weights.sum())
    return centres[y] + widths[y, None] * rng.standard_normal((n, d))


# The measured table.


def _measured(quick):
    n_seeds, epsilons, names = (2, (1.0,), QUICK) if quick else (N_SEEDS, MEASURED, RUN + REAL)
    data = []
    for name in names:
        try:
            data.append(load(name))
        except FileNotFoundError as error:
            print(error)
    cases = [(rows, epsilon) for rows in data for epsilon in epsilons]
    own = [_ours(rows, epsilon, rows.delta, n_seeds) for rows, epsilon in cases]
    pure = [_ours(rows, epsilon, 0.0, n_seeds)[0] for rows, epsilon in cases]
    plain = {rows.name: np.median(_plain(rows, n_seeds)) for rows in data}
    # Peers run in processes of their own, so threads only wait for them.
    answers = Parallel(n_jobs=2, prefer="threads")(
        delayed(_theirs)(*case, n_seeds) for case in _asked(cases)
    )
    cells = [dict(zip(PEERS, part, strict=True)) for part in _chunks(answers, len(PEERS))]
    lines = []
    for (rows, epsilon), mine, without, peers in zip(cases, own, pure, cells, strict=True):
        evolved = peers["PE-means"]
        lines.append(
            (
                f"{rows}",
                f"{epsilon:g}",
                _quartiles(mine[0]),
                *(_quartiles(peer and peer[0]) for peer in peers.values()),
                _quartiles(without),
                f"{plain[rows.name]:.4g}",
                f"{np.median(mine[1]) / np.median(evolved[1]):.2g}" if evolved else "-",
            )
        )
    return Table(
        "Private k-means: losses of methods that run here",
        (
            "data",
            "epsilon",
            "DPLloyd",
            *PEERS,
            "DPLloyd, delta = 0",
            "KMeans, not private",
            "CPU, DPLloyd / PE-means",
        ),
        lines,
        f"{_counts(cases, own, pure, cells)}\n\nMedians (quartiles) over {n_seeds} seeds, and "
        f"{FEW_SEEDS} for PE-means with more than {MANY_ROWS:,} rows. The methods are given what "
        "the note of the first table says, except that Google's code is the original one, "
        "which is not given n. magic, htru2, shuttle and usps are no tables of that paper; their "
        "clusters are as many as their classes. Compare DPLloyd, delta = 0 with diffprivlib, which "
        "has the least cube. The projected PE-means is for more than "
        f"{MANY_COLUMNS} columns. CPU: ratio of the medians of the seconds of a fit, with one "
        "thread each, without labels of the rows.",
    )


def _asked(cases):
    return [(rows, peer, epsilon) for rows, epsilon in cases for peer in PEERS]


def _chunks(values, size):
    return [values[start : start + size] for start in range(0, len(values), size)]


def _quartiles(losses):
    if not losses:
        return "-"
    low, middle, high = np.quantile(losses, (0.25, 0.5, 0.75))
    return f"{middle:.3g} ({low:.3g} to {high:.3g})"


def _counts(cases, own, pure, cells):
    """Say on how many lines DPLloyd has the lower median, against each peer and the best."""
    said = []
    for peer in PEERS:
        # diffprivlib has no delta, so it is compared with pure privacy.
        mine = pure if peer == "diffprivlib" else [losses for losses, _ in own]
        pairs = [
            (np.median(losses), np.median(cell[peer][0]))
            for losses, cell in zip(mine, cells, strict=True)
            if cell[peer]
        ]
        if pairs:
            said.append(f"{peer} in {sum(a < b for a, b in pairs)} of {len(pairs)}")
    if not said:
        return "No peer was run."
    lost, tables_lost = [], set()
    for (rows, epsilon), (losses, _), cell in zip(cases, own, cells, strict=True):
        gaussian = [p for p in PEERS if cell[p] and p != "diffprivlib"]
        if not gaussian:
            continue
        best, peer = min((np.median(cell[p][0]), p) for p in gaussian)
        if np.median(losses) >= best:
            ratio = np.median(losses) / best - 1
            lost.append(f"{rows.name} at {epsilon:g} ({ratio:+.0%}, {peer})")
            tables_lost.add(rows.name)
    names = {rows.name for rows, _ in cases}
    return (
        f"The median loss of DPLloyd is below that of {'; '.join(said)} lines. It is below all "
        f"methods with the same delta in {len(cases) - len(lost)} of {len(cases)} lines, and at "
        f"every epsilon on {len(names) - len(tables_lost)} of {len(names)} tables. It is not on: "
        f"{', '.join(lost) or 'none'}."
    )
