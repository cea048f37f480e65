"""How often released points are right, against the probability that is stated."""

import warnings
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from joblib import Parallel, delayed
from scipy.stats import binomtest

from benchmarks._clouds import FRESH, KNOWN
from benchmarks._table import Table, save
from sklearn_dptda import DTMFiltration, PrivatePersistence
from sklearn_dptda.persistence import beyond_noise
from sklearn_dptda.persistence._diagram_posterior import ReleasedDiagrams
from sklearn_dptda.persistence._mechanisms import mechanism_of, without_essential

_EPSILONS, _SIZES, _MASSES = (0.25, 0.5, 1.0, 2.0, 5.0), (500, 1000, 2000, 4000, 8000), (0.1, 0.2)
_BINS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.99, 1.01)
_CLAIM = 0.95


def tables(quick):
    """Yield the tables of claims, of reliability with a picture, and of rare shapes."""
    jobs = [
        # Masses and boxes take turns.
        (shape, n, _MASSES[(i + j) % 2], 1 + (i + seed) % 2, seed)
        for i, shape in enumerate(FRESH[:2] if quick else (*FRESH, *KNOWN))
        for j, n in enumerate(_SIZES[:1] if quick else _SIZES)
        for seed in (range(1) if quick else range(1, 3))
    ]
    # The numbers of points differ between clouds.
    found = Parallel(n_jobs=-1)(delayed(_points)(*job) for job in jobs)
    points = np.array([point for cloud in found for point in cloud])
    answered = np.isfinite(points[:, 3])
    yield _claims(points[answered], (~answered).sum())
    yield _reliability(points[answered])
    yield _misleading(2 if quick else 60)


def _points(shape, n, m, wide, seed):
    """What is true and what is stated, of the finite released points of all epsilons."""
    warnings.simplefilter("ignore")
    filtration = DTMFiltration(m, bounds=shape.bounds(wide), resolution=61)
    (function,) = filtration.fit_transform([shape.cloud(n, 7000 + seed)])
    return [point for epsilon in _EPSILONS for point in _released(function, epsilon, seed)]


def _released(function, epsilon, seed):
    private = PrivatePersistence(epsilon, random_state=seed).fit([function])
    (release,) = private.transform([function])
    (posterior,) = private.posterior([release], 1.0)
    exact = _under_cap(private, function)
    for q, diagram in enumerate(release):
        never_dies = beyond_noise(diagram, np.inf, dimension=q)
        long = beyond_noise(diagram, private.error_bounds_[0], dimension=q)
        for i, point in enumerate(diagram):
            if not never_dies[i]:
                yield epsilon, _is_near(point, exact[q]), long[i], posterior.probability[q][i]


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


def _claims(points, unanswered):
    rows = []
    for epsilon in (*_EPSILONS, None):
        own = points[np.isin(points[:, 0], epsilon or _EPSILONS)]
        real, long, claimed = own[:, 1] > 0, own[:, 2] > 0, own[:, 3] >= _CLAIM
        numbers = real, long, long & ~real, claimed, claimed & ~real
        ratio = claimed.sum() / max(long.sum(), 1)
        name = f"{epsilon:g}" if epsilon else "all"
        rows.append((name, len(own), *(each.sum() for each in numbers), ratio))
    return Table(
        f"Released points that can be claimed; {unanswered} without an answer are left out",
        "epsilon | points | real | beyond noise | wrong | probable | wrong | ratio",
        rows,
    )


def _reliability(points):
    """Stated and true shares, and their picture with binomial intervals."""
    rows = []
    for low, high in pairwise(_BINS):
        own = points[(points[:, 3] >= low) & (points[:, 3] < high)]
        if len(own):
            means = own[:, 3].mean(), own[:, 1].mean()
            rows.append((f"{low:g} to {min(high, 1):g}", len(own), *means))
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
    save(figure, "reliability.png")
    return Table("Stated and true share of real points", "stated | points | mean | real", rows)


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
        real, stated = np.array(points, dtype=float).reshape(-1, 2).T
        claimed, real = stated >= _CLAIM, real > 0
        numbers = real, claimed, claimed & ~real
        rows.append((name, len(points), *(each.sum() for each in numbers), unanswered))
    return Table(
        f"Loops that the prior does not expect, {n_releases} releases each",
        "exact loops | points | real | probable | wrong | without an answer",
        rows,
    )
