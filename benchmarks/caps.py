"""Gain of a cap that is chosen privately with the diagrams, and of an emptier base measure."""

import warnings

import numpy as np
from joblib import Parallel, delayed

from benchmarks._clouds import FRESH, KNOWN
from benchmarks._diagrams import apart, finite_parts
from benchmarks._table import Table
from sklearn_dptda import (
    CubicalPersistence,
    DTMFiltration,
    PersistenceProfile,
    PrivatePersistence,
)

_RANGES = (
    (0, 40),
    (40, 80),
    (80, 160),
    (160, 320),
    (320, 640),
    (640, 1300),
    (1300, 2600),
    (2600, 1e9),
)
_EPSILONS, _MASSES, _WIDTHS = (0.5, 1.0, 2.0, 5.0), (0.1, 0.2), (1, 3)
_PROFILES_OF_CLOUD = 4
# Added to errors before ratios are taken, as a share of the range of the tight box. It matters for
# clouds without a feature.
_NEGLIGIBLE = 0.005


def tables(quick):
    """Yield the tables of this benchmark."""
    sizes, n_clouds = ((300,), 2) if quick else ((300, 1000, 4000, 20_000), 20)
    for title, shapes in (("new shapes", FRESH), ("shapes of the rule", KNOWN)):
        settings = _settings(shapes[:2] if quick else shapes, sizes, n_clouds)
        yield _by_loss(title, settings, n_clouds)
        yield _by_shape(title, settings, n_clouds)
    yield _profiles(FRESH[:2] if quick else FRESH, sizes[1:3] or sizes, 2 if quick else 4)


def _settings(shapes, sizes, n_clouds):
    """Settings (shape, size, loss, width), with errors (fixed, drawn, empty) of each cloud."""
    jobs = [
        (shape, n, m, wide)
        for n in sorted(sizes)[::-1]
        for shape in shapes
        for m in _MASSES
        for wide in _WIDTHS
    ]
    found = Parallel(n_jobs=-1)(delayed(_errors)(*job, n_clouds) for job in jobs)
    return [
        (shape, size, epsilon * np.ceil(m * size), wide, np.array(errors))
        for (shape, size, m, wide), rows in zip(jobs, found, strict=True)
        for epsilon, errors in zip(_EPSILONS, rows, strict=True)
    ]


def _errors(shape, n, m, wide, n_clouds):
    """Errors by epsilon and cloud, relative to the range of the tight box."""
    clouds = [shape.cloud(n, 1000 + seed) for seed in range(n_clouds)]
    box = {"bounds": shape.bounds(wide), "method": "lattice"}
    drawn = DTMFiltration(m, **box).fit_transform(clouds)
    fixed = DTMFiltration(m, max_distance=None, **box).fit_transform(clouds)
    exact = [finite_parts(diagrams) for diagrams in CubicalPersistence().fit_transform(drawn)]
    tight, empty = (shape.box[1] - shape.box[0]) / 2, [np.empty((0, 2))] * 2
    rows = []
    for epsilon in _EPSILONS:
        loss = epsilon * drawn[0].upper / drawn[0].sensitivity
        earlier = 1 - min(max(loss / 2000, 2.0**-20), 0.2)
        old = _releases(PrivatePersistence(epsilon, spike=earlier), fixed)
        new = _releases(PrivatePersistence(epsilon), drawn)
        rows.append(
            [
                [apart(each, truth) / tight for each in (finite_parts(a), finite_parts(b), empty)]
                for a, b, truth in zip(old, new, exact, strict=True)
            ]
        )
    return rows


def _profiles(shapes, sizes, n_clouds):
    """Gain of a cap that is chosen separately, for profiles."""
    jobs = [(shape, n, wide) for n in sorted(sizes)[::-1] for shape in shapes for wide in _WIDTHS]
    found = Parallel(n_jobs=-1)(delayed(_profile_errors)(*job, n_clouds) for job in jobs)
    rows = []
    for wide in _WIDTHS:
        for low, high in _RANGES:
            group = [
                np.mean(errors, axis=0) + _NEGLIGIBLE
                for (_, n, width), by_epsilon in zip(jobs, found, strict=True)
                for epsilon, errors in zip(_EPSILONS, by_epsilon, strict=True)
                if width == wide and low <= epsilon * np.ceil(_MASSES[1] * n) < high
            ]
            if group and low >= 160:
                ratios = np.array(group)[:, 0] / np.array(group)[:, 1]
                rows.append(
                    (
                        wide,
                        f"{low} to {high:.0f}" if high < 1e9 else f"from {low}",
                        len(group),
                        f"{np.exp(np.log(ratios).mean()):.2f}",
                        f"{1 / ratios.min():.2f}",
                        f"{1 / ratios.max():.2f}",
                    )
                )
    return Table(
        "Errors of profiles under a cap that is chosen separately, new shapes",
        ("box", "loss", "settings", "gain", "worst", "best"),
        rows,
        "Largest error of four persistences, two of H0 and two of H1, relative to those of the "
        f"default cap, over {n_clouds} clouds of each setting and {_PROFILES_OF_CLOUD} releases of "
        f"each cloud, m = {_MASSES[1]:g}. Gain: the error with all of epsilon under the default "
        "cap, divided by the error if a fifth of epsilon is spent on a cap (geometric mean). Worst "
        "and best: the extremes of the inverse ratio.",
    )


def _profile_errors(shape, n, wide, n_clouds):
    """Errors (fixed, drawn) by epsilon and cloud, relative to the range of the tight box."""
    clouds = [shape.cloud(n, 1000 + seed) for seed in range(n_clouds)]
    box = {"bounds": shape.bounds(wide), "method": "lattice"}
    drawn = DTMFiltration(_MASSES[1], **box).fit_transform(clouds)
    fixed = DTMFiltration(_MASSES[1], max_distance=None, **box).fit_transform(clouds)
    exact = PersistenceProfile(np.inf).fit_transform(fixed)
    tight = (shape.box[1] - shape.box[0]) / 2

    def errors(epsilon, filtrations, seed):
        released = _releases(PersistenceProfile(epsilon), filtrations, seed)
        return np.abs(released - exact).max(axis=1) / tight

    return [
        np.vstack(
            [
                np.column_stack([errors(epsilon, fixed, seed), errors(epsilon, drawn, 100 + seed)])
                for seed in range(1, _PROFILES_OF_CLOUD + 1)
            ]
        )
        for epsilon in _EPSILONS
    ]


def _releases(private, filtrations, seed=0):
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return private.set_params(random_state=seed).fit_transform(filtrations)


def _by_loss(title, settings, n_clouds):
    groups = [
        (
            f"{low} to {high:.0f}" if high < 1e9 else f"from {low}",
            [s for s in settings if low <= s[2] < high],
        )
        for low, high in _RANGES
    ]
    groups += [("all", settings), ("from 160", [s for s in settings if s[2] >= 160])]
    rows = [(name, *_summary([errors for *_, errors in group])) for name, group in groups if group]
    return _table(f"by the loss over the range, {title}", ("loss",), rows, n_clouds)


def _by_shape(title, settings, n_clouds):
    rows = []
    for shape in dict.fromkeys(s[0] for s in settings):
        for wide in _WIDTHS:
            group = [e for s, _, loss, w, e in settings if s is shape and w == wide and loss >= 160]
            if group:
                rows.append((shape.name, wide, *_summary(group)))
    title = f"by shape, loss from 160 on, {title}"
    return _table(title, ("shape", "box"), rows, n_clouds)


def _table(title, groups, rows, n_clouds):
    return Table(
        f"Errors of diagrams {title}",
        (
            *groups,
            "settings",
            "gain",
            "worst",
            "worse than 1.05",
            "to empty: fixed",
            "drawn",
            "worst",
        ),
        rows,
        "Sums of the bottleneck distances of finite H0 and of H1 to the exact diagrams of the "
        f"default cap, over {n_clouds} clouds for each setting of n, m, epsilon and box. Gain: the "
        "error with the fixed cap and the earlier base measure, divided by the error with the "
        "drawn cap (geometric mean). Worst: the largest inverse ratio. Worse than 1.05: the number "
        "of settings whose inverse ratio exceeds 1.05 by two standard errors. To empty: the error "
        "divided by that of empty diagrams, and the worst such ratio with the drawn cap.",
    )


def _summary(groups):
    """Number of settings, gain, worst ratio, number of worse settings, and errors to empty."""
    means = np.array([errors.mean(axis=0) for errors in groups]) + _NEGLIGIBLE
    logs = np.log(means[:, 0] / means[:, 1])
    worse = 0
    for errors in groups:
        excess = errors[:, 1] - 1.05 * errors[:, 0] - 0.05 * _NEGLIGIBLE
        worse += excess.mean() > 2 * excess.std(ddof=1) / np.sqrt(len(excess)) > 0
    to_empty = means[:, :2] / means[:, 2:]
    return (
        len(groups),
        f"{np.exp(logs.mean()):.2f}",
        f"{np.exp(-logs.min()):.2f}",
        worse,
        *(f"{np.exp(np.log(each).mean()):.2f}" for each in to_empty.T),
        f"{to_empty[:, 1].max():.2f}",
    )
