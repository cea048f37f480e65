"""Loops of clouds that were released once, beside those of diagrams that were released alone."""

from functools import partial
from itertools import product

import numpy as np

from benchmarks._table import Table
from sklearn_dptda import CubicalPersistence, DTMFiltration, PrivateCloud, PrivatePersistence
from sklearn_dptda.persistence import CloudResamples, feature_regions
from sklearn_dptda.utils._tasks import run

_SIZES, _EPSILONS, _MASSES = (
    (300, 1000, 3000, 10_000, 30_000),
    (0.25, 0.5, 1.0, 2.0, 5.0),
    (0.05, 0.1),
)
# Long loops have this share of the longest one. A claim needs this share of resamples.
_LONG, _CLAIM, _RESOLUTION = 0.25, 0.9, 61


def _along(rng, n, pieces, jitter=0.01):
    """Points along straight pieces, with equal density."""
    pieces = np.asarray(pieces, dtype=float)
    lengths = np.linalg.norm(pieces[:, 1] - pieces[:, 0], axis=1)
    which, t = rng.choice(len(pieces), n, p=lengths / lengths.sum()), rng.random((n, 1))
    points = pieces[which, 0] * (1 - t) + pieces[which, 1] * t
    return points + jitter * rng.normal(size=points.shape)


def _ring(x, y, a, b=None, corners=60, turn=0.0):
    angles = np.linspace(0, 2 * np.pi, corners, endpoint=False) + turn
    ends = np.column_stack([x + a * np.cos(angles), y + (b or a) * np.sin(angles)])
    return list(zip(ends, np.roll(ends, -1, axis=0), strict=True))


def _streets(xs, ys):
    lines = [((x, ys[0]), (x, ys[-1])) for x in xs]
    return lines + [((xs[0], y), (xs[-1], y)) for y in ys]


def _rose(rng, n):
    angle = rng.random(n) * 2 * np.pi
    radius = 0.42 * np.cos(3 * angle)
    points = 0.5 + radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return points + 0.01 * rng.normal(size=points.shape)


def _cheese(rng, n):
    holes = np.array([(0.28, 0.3), (0.7, 0.27), (0.5, 0.68), (0.82, 0.72), (0.2, 0.72)])
    radii = np.array([0.12, 0.15, 0.13, 0.08, 0.1])
    points = 0.05 + 0.9 * rng.random((4 * n, 2))
    outside = (np.linalg.norm(points[:, None] - holes, axis=2) > radii).all(axis=1)
    return points[outside][:n]


def _in_dust(rng, n):
    rings = _ring(0.4, 0.55, 0.27) + _ring(0.78, 0.25, 0.13)
    return np.vstack([_along(rng, n - n // 4, rings, 0.02), rng.random((n // 4, 2))])


_HEXAGONS = [(0.5, 0.5)] + [
    (0.5 + 0.277 * np.cos(a), 0.5 + 0.277 * np.sin(a)) for a in np.pi / 6 + np.arange(6) * np.pi / 3
]
_PIECES = {
    "blocks, 3 x 2": _streets(np.linspace(0.12, 0.88, 4), np.linspace(0.15, 0.85, 3)),
    "uneven blocks, 3 x 3": _streets([0.1, 0.3, 0.62, 0.9], [0.1, 0.45, 0.65, 0.9]),
    "five links": [
        piece for i in range(5) for piece in _ring(0.14 + 0.18 * i, 0.5 + 0.12 * (-1) ** i, 0.11)
    ],
    "honeycomb, 7": [piece for x, y in _HEXAGONS for piece in _ring(x, y, 0.16, corners=6)],
    "8 and B": _ring(0.25, 0.66, 0.13, 0.16)
    + _ring(0.25, 0.32, 0.16, 0.18)
    + [((0.6, 0.14), (0.6, 0.84))]
    + _ring(0.72, 0.66, 0.12, 0.17)
    + _ring(0.74, 0.32, 0.15, 0.18),
    "ellipses": _ring(0.3, 0.5, 0.2, 0.36)
    + _ring(0.72, 0.5, 0.16, 0.1)
    + _ring(0.72, 0.82, 0.1)
    + _ring(0.72, 0.2, 0.12, 0.09),
    "wide rings": _ring(0.34, 0.4, 0.2) + _ring(0.72, 0.7, 0.16),
}
LAWS = {name: partial(_along, pieces=pieces) for name, pieces in _PIECES.items()}
LAWS["wide rings"] = partial(LAWS["wide rings"], jitter=0.03)
LAWS |= {"rose": _rose, "cheese, 5 holes": _cheese, "two rings in dust": _in_dust}


def tables(quick):
    """Yield the share of long loops that are found, and the claims that are wrong.

    Found loops have a released point within half their persistence. A claim is a released loop
    above the floor of the cells that is in nine tenths of 40 resamples. It is wrong if the exact
    function has no loop of half its persistence around its place.
    """
    sizes, seeds = ((300, 1000), 1) if quick else (_SIZES, 3)
    names = list(LAWS)[:2] if quick else list(LAWS)
    settings = list(product(names, sizes, _EPSILONS, range(seeds)))
    found = np.array(run(_counts, settings, n_jobs=-1))
    rows = []
    for n, epsilon in product(sizes, _EPSILONS):
        own = [s[1:3] == (n, epsilon) for s in settings]
        real, cloud, claims, wrong, alone = found[own].sum(axis=(0, 1))
        by_law = found[own].reshape(len(names), -1, 5).sum(axis=1)
        quartiles = np.quantile(by_law[:, 1] / by_law[:, 0], [0, 0.25, 0.5])
        shares = [f"{share:.2f}" for share in (cloud / real, *quartiles, alone / real)]
        rows.append((n, epsilon, *shares, int(claims), int(wrong)))
    yield Table(
        f"Long loops found, {len(names)} laws, m = .05 and .1, {seeds} releases each",
        "n | epsilon | cloud | worst law | quartile | median | diagram | claims | wrong",
        rows,
    )
    seeds = 1 if quick else 5
    settings = list(product(names, sizes[1:4], (1.0,), range(100, 100 + seeds)))
    covered = np.array(run(_covered, settings, n_jobs=-1))
    of_size = [(n, covered[[s[1] == n for s in settings]].mean(axis=0)) for n in sizes[1:4]]
    yield Table(
        f"Bands and counts that contain the truth, epsilon 1, m = .1, {seeds} releases of each law",
        "n | band | count | half width in widths of the box",
        [(n, *(f"{share:.2f}" for share in shares)) for n, shares in of_size],
    )


def _covered(name, n, epsilon, seed):
    """Return whether the band and the counts contain the exact ones, and the half width."""
    X = LAWS[name](np.random.default_rng(1000 * seed + n), n)
    clouds = PrivateCloud(epsilon, bounds=(0, 1), random_state=seed).fit_transform([X])
    filtration = DTMFiltration(0.1, bounds=(0, 1), resolution=_RESOLUTION).fit([X])
    (exact,) = filtration.transform([X])
    resamples = CloudResamples(clouds[0], filtration, random_state=seed)
    (truth,) = CubicalPersistence(1).fit_transform([exact])
    least = 2 * clouds[0].lattice_loop
    likely = np.flatnonzero(resamples.count(1, least) >= 0.025)
    apart, width = np.abs(exact.values - resamples.function.values).max(), resamples.band()
    number = int((np.diff(truth) > least).sum())
    return apart <= width, likely[0] <= number <= likely[-1], width


def _counts(name, n, epsilon, seed):
    """Return real, found, claimed and wrong loops of the cloud, and those of the diagram, by m."""
    X = LAWS[name](np.random.default_rng(1000 * seed + n), n)
    clouds = PrivateCloud(epsilon, bounds=(0, 1), random_state=seed).fit_transform([X])
    counts = []
    for m in _MASSES:
        filtration = DTMFiltration(m, bounds=(0, 1), resolution=_RESOLUTION).fit([X])
        (exact,) = filtration.transform([X])
        resamples = CloudResamples(clouds[0], filtration, random_state=seed)
        released = resamples.function
        truth, loops = CubicalPersistence(1).fit_transform([exact, released])
        alone = PrivatePersistence(epsilon, random_state=seed).fit_transform([exact])[0][1]
        loops = loops[np.diff(loops)[:, 0] > clouds[0].lattice_loop]
        long = truth[np.diff(truth)[:, 0] >= _LONG * np.diff(truth).max(initial=0.0)]
        regions = feature_regions(released, loops, 1)
        shares = resamples.shares(regions)
        claims = [region for region, share in zip(regions, shares, strict=True) if share >= _CLAIM]
        of_truth = feature_regions(exact, truth, 1)
        right = [
            any(
                true.persistence >= claim.persistence / 2 and true.contains(claim.death_place)
                for true in of_truth
            )
            for claim in claims
        ]
        missed = len(claims) - sum(right)
        counts.append((len(long), _found(long, loops), len(claims), missed, _found(long, alone)))
    return counts


def _found(long, released):
    """Return how many loops have a released point of their own within half their persistence."""
    free, n_found = np.ones(len(released), dtype=bool), 0
    for birth, death in long:
        far = np.abs(released - (birth, death)).max(axis=1, initial=0.0)
        near = np.flatnonzero(free & (far <= (death - birth) / 2))
        if len(near):
            free[near[far[near].argmin()]] = False
            n_found += 1
    return n_found
