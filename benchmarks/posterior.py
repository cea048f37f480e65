"""How often released points and counts are right, against the probability that is stated."""

import os
import warnings
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from joblib import Parallel, delayed
from scipy.stats import binomtest

from benchmarks._clouds import FRESH, KNOWN
from benchmarks._table import Table
from sklearn_dptda import DTMFiltration, PrivateBettiNumbers, PrivatePersistence
from sklearn_dptda.persistence import beyond_noise
from sklearn_dptda.persistence._diagram_posterior import ReleasedDiagrams
from sklearn_dptda.persistence._mechanisms import mechanism_of, without_essential

_EPSILONS, _SIZES, _MASSES = (0.25, 0.5, 1.0, 2.0, 5.0), (500, 1000, 2000, 4000, 8000), (0.1, 0.2)
_BINS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.99, 1.01)
_CLAIM = 0.95
# A given threshold of counts.
_THRESHOLD = 0.2
# Expected numbers of features: the default, and the half and the double of it.
_EXPECTED = (1.0, 0.5, 2.0)


def tables(quick):
    """Yield the tables of this benchmark."""
    jobs = [
        # Masses and boxes take turns.
        (shape, n, _MASSES[(i + j) % 2], 1 + (i + seed) % 2, seed)
        for i, shape in enumerate(FRESH[:2] if quick else (*FRESH, *KNOWN))
        for j, n in enumerate(_SIZES[:1] if quick else _SIZES)
        for seed in (range(1) if quick else range(1, 3))
    ]
    found = Parallel(n_jobs=-1)(delayed(_points)(*job) for job in jobs)
    points = np.array([point for cloud in found for point in cloud if np.isfinite(point[3])])
    unanswered = sum(np.isnan(point[3]) for cloud in found for point in cloud)
    yield _claims(points, len(jobs), unanswered)
    reliability = _reliability(points)
    draw(reliability.rows)
    yield reliability
    yield _priors(points)
    yield _misleading(2 if quick else 60)
    yield _counts(Parallel(n_jobs=-1)(delayed(_counts_of_cloud)(*job) for job in jobs))


def _points(shape, n, m, wide, seed):
    """For each finite released point of all epsilons: what is true, and what is stated."""
    warnings.simplefilter("ignore")
    filtration = DTMFiltration(m, bounds=shape.bounds(wide), resolution=61)
    (function,) = filtration.fit_transform([shape.cloud(n, 7000 + seed)])
    points = []
    for epsilon in _EPSILONS:
        private = PrivatePersistence(epsilon, random_state=seed).fit([function])
        (release,) = private.transform([function])
        posteriors = [private.posterior([release], mean)[0] for mean in _EXPECTED]
        exact = _under_cap(private, function)
        for q, diagram in enumerate(release):
            never_dies = beyond_noise(diagram, np.inf, dimension=q)
            long = beyond_noise(diagram, private.error_bounds_[0], dimension=q)
            stated = np.transpose([p.probability[q] for p in posteriors]).reshape(-1, 3)
            points += [
                (epsilon, _is_near(point, exact[q]), long[i], *stated[i])
                for i, point in enumerate(diagram)
                if not never_dies[i]
            ]
    return points


def _counts_of_cloud(shape, n, m, wide, seed):
    """For each private count of all epsilons: what is true, and what is stated."""
    warnings.simplefilter("ignore")
    filtration = DTMFiltration(m, bounds=shape.bounds(wide), resolution=61)
    (function,) = filtration.fit_transform([shape.cloud(n, 7000 + seed)])
    stated = []
    for epsilon in _EPSILONS:
        for threshold in (None, _THRESHOLD):
            private = PrivateBettiNumbers(epsilon, threshold, random_state=seed)
            ((*counts,),) = private.fit_transform([function])
            (laws,) = private.posterior([counts])
            found = threshold is None
            margin = private.release_margins_[0] if found else private.margins_[0]
            above = private.thresholds_[0] if found else threshold
            exact = _under_cap(private, function) if found else _exact(function)
            for count, law, diagram, never_dies in zip(counts, laws, exact, (1, 0), strict=True):
                right = min((np.ptp(diagram, axis=1) > above).sum() + never_dies, 5)
                most = np.nan if np.isnan(law).any() else law.max()
                stated.append(
                    (epsilon, found, count == right, margin < above, most, law.argmax() == right)
                )
    return stated


def _counts(found):
    """Tell how many counts are stated to be right, and how many of them are."""
    counts, rows = np.array([each for cloud in found for each in cloud], dtype=float), []
    for drawn in (1, 0):
        for epsilon in (*_EPSILONS, None):
            own = counts[(counts[:, 1] == drawn) & np.isin(counts[:, 0], epsilon or _EPSILONS)]
            claimed = own[:, 4] >= _CLAIM
            rows.append(
                (
                    "drawn" if drawn else f"{_THRESHOLD:g}",
                    f"{epsilon:g}" if epsilon else "all",
                    len(own),
                    int(own[:, 2].sum()),
                    int(own[:, 3].sum()),
                    claimed.sum(),
                    int((claimed & (own[:, 5] == 0)).sum()),
                    int(np.isnan(own[:, 4]).sum()),
                )
            )
    return Table(
        "Private counts with a probable number of features",
        ("threshold", "epsilon", "counts", "right", "at least", "probable", "wrong", "no answer"),
        rows,
        "right: the count is that of the exact diagram; at least: the statement that holds for "
        "every data set bounds the number from below.",
    )


def _exact(function):
    """Return the exact finite diagrams under the default cap."""
    (grid,) = PrivatePersistence(1.0).fit([function])._read([function])
    ((components, loops),) = grid.diagrams((0, 1))
    return [without_essential(components, function.upper)[0], loops]


def _under_cap(private, function):
    """Return the exact finite diagrams under the cap that was drawn."""
    (grid,) = private._read([function])
    uppers = [upper for _, upper in grid.caps]
    diagrams = grid.diagrams((0, 1), len(uppers))[uppers.index(private.cap_[0])]
    return [without_essential(diagrams[0], private.cap_[0])[0], diagrams[1]]


def _is_near(point, exact):
    """Tell whether an exact feature is closer to a point than both are to the diagonal."""
    apart = np.abs(exact - point).max(axis=1, initial=0.0)
    return bool((apart <= np.minimum(np.ptp(exact, axis=1), point[1] - point[0]) / 2).any())


def _claims(points, n_clouds, unanswered):
    rows = []
    for epsilon in (*_EPSILONS, None):
        own = points if epsilon is None else points[points[:, 0] == epsilon]
        if not len(own):
            continue
        real, long, claimed = own[:, 1] > 0, own[:, 2] > 0, own[:, 3] >= _CLAIM
        rows.append(
            (
                "all" if epsilon is None else f"{epsilon:g}",
                len(own),
                real.sum(),
                long.sum(),
                (long & ~real).sum(),
                claimed.sum(),
                (claimed & ~real).sum(),
                claimed.sum() / max(long.sum(), 1),
            )
        )
    return Table(
        f"Released points that can be claimed, {n_clouds} clouds",
        ("epsilon", "points", "real", "beyond noise", "wrong", "probable", "wrong", "ratio"),
        rows,
        f"{unanswered} points without an answer are left out.",
    )


def _reliability(points):
    rows = []
    for low, high in pairwise(_BINS):
        own = points[(points[:, 3] >= low) & (points[:, 3] < high)]
        if len(own):
            rows.append(
                (f"{low:g} to {min(high, 1):g}", len(own), own[:, 3].mean(), own[:, 1].mean())
            )
    return Table("Stated and true share of real points", ("stated", "points", "mean", "real"), rows)


def draw(rows):
    """Draw stated and true shares, with binomial intervals, and return the path of the picture."""
    out = Path(os.environ.get("SKLEARN_DPTDA_OUT", "benchmarks/out"))
    out.mkdir(parents=True, exist_ok=True)
    figure, ax = plt.subplots(figsize=(5, 4.4), layout="constrained")
    ax.plot([0, 1], [0, 1], color="0.7", lw=1)
    for i, (_, n, stated, real) in enumerate(rows):
        limits = binomtest(round(real * n), n).proportion_ci(0.95)
        ax.plot([stated, stated], limits, color="#0072B2", lw=1.5)
        ax.plot(stated, real, "o", color="#0072B2", ms=6)
        # Numbers of points whose neighbours are close are on the other side.
        is_close = i + 1 < len(rows) and rows[i + 1][2] - stated < 0.05
        at = {"xytext": (-20 if is_close else 7, -9), "textcoords": "offset points"}
        ax.annotate(str(n), (stated, real), color="0.35", fontsize="small", **at)
    ax.set(xlabel="stated probability (mean)", ylabel="share of real points")
    ax.set(xlim=(-0.03, 1.06), ylim=(-0.03, 1.03), aspect="equal")
    path = out / "reliability.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


def _priors(points):
    rows = []
    for i, expected in enumerate(_EXPECTED):
        stated = points[:, 3 + i]
        claimed = stated >= _CLAIM
        wrong = (claimed & (points[:, 1] == 0)).sum()
        change = np.abs(stated - points[:, 3])
        rows.append((expected, claimed.sum(), wrong, float(np.nanquantile(change, 0.95))))
    return Table(
        "Claims by the expected number of features",
        ("expected_features", "probable", "wrong", "95 % of changes below"),
        rows,
    )


def _features(lengths, rng, births=None):
    """Return a diagram with features of these persistences, in shares of the range."""
    births = rng.uniform(0, 1 - lengths) if births is None else np.full(len(lengths), births)
    return np.column_stack([births, births + lengths])


# Exact diagrams of H1 that the prior does not expect. Persistences are in scales of noise, so they
# depend on the loss over the range.
_UNEXPECTED = {
    "30 loops of up to 3 scales of noise": lambda u, r: _features(u * r.uniform(0, 3, 30), r),
    "30 of up to 8": lambda u, r: _features(u * r.uniform(0, 8, 30), r),
    "10 of 8 to 20": lambda u, r: _features(u * r.uniform(8, 20, 10), r),
    "4 of 30 each": lambda u, r: _features(np.full(4, 30 * u), r),
    "8 of 20 to 60, one birth": lambda u, r: _features(u * r.uniform(20, 60, 8), r, 0.1),
    "9 of 45 each": lambda u, r: _features(np.full(9, 45 * u), r),
    "14 of 20 to 60, more than max_points": lambda u, r: _features(u * r.uniform(20, 60, 14), r),
}


def _misleading(n_releases):
    """Releases of exact diagrams that the prior does not expect."""
    rows, private = [], PrivatePersistence(1.0)
    for name, draw in _UNEXPECTED.items():
        points, unanswered = [], 0
        for seed in range(n_releases):
            rng, loss = np.random.default_rng(seed), (150, 250, 400)[seed % 3]
            mechanism = mechanism_of(private, (0, 1))
            public = (1 / loss, 1.0)
            scale = 2 * public[0] / mechanism.rate
            components = np.array([[0.05, 1.0], [0.1, 0.1 + 20 * scale]])
            exact = [components, np.minimum(draw(scale, rng), 1.0)]
            release = mechanism.release(exact, (0, 1), *public, seed)
            released = ReleasedDiagrams.of(mechanism, release, (0, 1), [public], 1.0, 0.0)
            posterior = released.posterior(1.0)
            unanswered += not posterior.converged
            for point, stated in zip(release[1], posterior.probability[1], strict=True):
                points.append((_is_near(point, exact[1]), stated))
        points = np.array(points, dtype=float).reshape(-1, 2)
        claimed = points[:, 1] >= _CLAIM
        real = points[:, 0] > 0
        rows.append(
            (name, len(points), real.sum(), claimed.sum(), (claimed & ~real).sum(), unanswered)
        )
    return Table(
        f"Loops that the prior does not expect, {n_releases} releases each",
        ("exact loops", "points", "real", "probable", "wrong", "without an answer"),
        rows,
    )
