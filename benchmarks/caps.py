"""Gain of a cap that is chosen privately with the diagrams, and of an emptier base measure."""

from functools import partial

import numpy as np

from benchmarks._clouds import FRESH, apart, finite_parts
from benchmarks._table import Table, scores
from sklearn_dptda import CubicalPersistence, DTMFiltration, PrivatePersistence

_RANGES = ((0, 40), (40, 80), (80, 160), (160, 320), (320, 640), (640, 1300), (1300, 2600))
_EPSILONS, _MASSES, _WIDTHS = (0.5, 1.0, 2.0, 5.0), (0.1, 0.2), (1, 3)
# Added to errors before ratios are taken, as a share of the range of the tight box. It matters for
# clouds without a feature.
_NEGLIGIBLE = 0.005


def tables(quick):
    """Yield the table of errors by the loss over the range, on shapes that did not tune the rule.

    Errors are sums of the bottleneck distances of finite H0 and of H1 to the exact diagrams of the
    default cap. The gain is the error with the fixed cap and the earlier base measure, divided by
    that with the drawn cap (geometric mean); worst is the largest inverse ratio; worse than 1.05
    counts the inverse ratios above it by two standard errors.
    """
    sizes, n_clouds = ((300,), 2) if quick else ((300, 1000, 4000, 20_000), 20)
    shapes = FRESH[:2] if quick else FRESH
    errors = scores(partial(_errors, n_clouds=n_clouds), shapes, sizes, _MASSES, _WIDTHS)
    kept = np.ceil(np.outer(sizes, _MASSES))[:, :, None, None] * np.array(_EPSILONS)
    losses = np.broadcast_to(kept, errors.shape[:5]).ravel()
    errors = errors.reshape(-1, n_clouds, 3)
    rows = [
        (f"{low} to {high}" if high < np.inf else f"from {low}", *_summary(errors[group]))
        for low, high in (*_RANGES, (2600, np.inf), (0, np.inf), (160, np.inf))
        if (group := (low <= losses) & (losses < high)).any()
    ]
    yield Table(
        f"Errors of diagrams by the loss over the range, new shapes, {n_clouds} clouds a setting",
        "loss | settings | gain | worst | worse than 1.05 | to empty: fixed | drawn | worst",
        rows,
    )


def _errors(shape, n, m, wide, n_clouds):
    """Errors by epsilon and cloud, with the fixed and the drawn cap, and of empty diagrams.

    They are relative to the range of the tight box.
    """
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
        old = PrivatePersistence(epsilon, spike=earlier, random_state=0).fit_transform(fixed)
        new = PrivatePersistence(epsilon, random_state=0).fit_transform(drawn)
        rows.append(
            [
                [apart(each, truth) / tight for each in (finite_parts(a), finite_parts(b), empty)]
                for a, b, truth in zip(old, new, exact, strict=True)
            ]
        )
    return rows


def _summary(errors):
    """Number of settings, gain, worst ratio, number of worse settings, and errors to empty."""
    means = errors.mean(axis=1) + _NEGLIGIBLE
    logs = np.log(means[:, 0] / means[:, 1])
    excess = errors[:, :, 1] - 1.05 * errors[:, :, 0] - 0.05 * _NEGLIGIBLE
    doubt = 2 * excess.std(axis=1, ddof=1) / np.sqrt(excess.shape[1])
    to_empty = means[:, :2] / means[:, 2:]
    return (
        len(errors),
        f"{np.exp(logs.mean()):.2f}",
        f"{np.exp(-logs.min()):.2f}",
        int(((excess.mean(axis=1) > doubt) & (doubt > 0)).sum()),
        *(f"{np.exp(np.log(each).mean()):.2f}" for each in to_empty.T),
        f"{to_empty[:, 1].max():.2f}",
    )
