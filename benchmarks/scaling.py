"""Growth of times with the numbers of rows, columns, grid nodes and clouds, with pictures."""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from benchmarks._machine import describe_machine
from benchmarks._table import Table
from benchmarks._timing import repeated
from sklearn_dptda import DTMFiltration, PrivatePersistence
from sklearn_dptda.cluster import DPCube, DPLloyd, DPMoG, DPMoGMorse, DPToMATo, DPTree, ToMATo
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.decomposition import PrivatePCA
from sklearn_dptda.metric_privacy import PrivateMeasure
from sklearn_dptda.preprocessing import PrivateBounds

BOUNDS = (-2.5, 3)
MARKERS = "os^Dv<>Pp*"


def tables(quick):
    """Yield the tables of this benchmark, each with a picture."""
    repeats = 1 if quick else 3
    yield _sweep("rows", "n", (1000, 10_000) if quick else ROWS, _rows, repeats)
    yield _sweep("columns", "d", (2, 4) if quick else COLUMNS, _columns, repeats)
    yield _sweep("components", "K", (2, 8) if quick else KINDS, _components, repeats)
    yield _sweep("nodes an axis, in the plane", "nodes", (31, 61) if quick else NODES, _n, repeats)
    yield _sweep("clouds of 1,000 points", "clouds", (2, 4) if quick else CLOUDS, _c, repeats)


ROWS = (1000, 10_000, 100_000, 1_000_000)
COLUMNS = (2, 4, 8, 16, 32, 64)
KINDS = (2, 8, 32, 128, 256)
NODES = (51, 101, 201, 401)
CLOUDS = (4, 16, 64)


def _blobs(n, d):
    return make_blobs(n, d, centers=6, center_box=(-8, 8), random_state=0)[0]


def _rows(n):
    """Estimators that accept any number of rows."""
    cloud, X = make_two_circles(n, random_state=0), _blobs(n, 2)
    box = (-12, 12)
    return {
        "DTMFiltration": lambda: DTMFiltration(0.2, bounds=BOUNDS).fit_transform([cloud]),
        "DPLloyd": lambda: DPLloyd(6, bounds=box).fit(X),
        "DPMoG": lambda: DPMoG(6, bounds=box).fit(X),
        "DPToMATo": lambda: DPToMATo(6, bounds=box).fit(X),
        "DPMoGMorse": lambda: DPMoGMorse(6, bounds=box).fit(X),
        "DPTree": lambda: DPTree(6, bounds=box).fit(X),
        "DPCube": lambda: DPCube(6, bounds=box).fit(X),
        "PrivateMeasure": lambda: PrivateMeasure(bounds=box).fit(X),
        "PrivateBounds": lambda: PrivateBounds(start=(-100, 100)).fit(X),
        "PrivatePCA": lambda: PrivatePCA(1, bounds=box).fit(X),
    }


def _columns(d):
    X, box = _blobs(20_000, d), (-12, 12)
    return {
        "DPLloyd": lambda: DPLloyd(6, bounds=box).fit(X),
        "DPMoG": lambda: DPMoG(6, bounds=box).fit(X),
        "DPMoGMorse": lambda: DPMoGMorse(6, bounds=box).fit(X),
        "DPTree": lambda: DPTree(6, bounds=box).fit(X),
        "PrivateBounds": lambda: PrivateBounds(start=(-100, 100)).fit(X),
        "PrivatePCA": lambda: PrivatePCA(1, bounds=box).fit(X),
    }


def _components(k):
    X, box = _blobs(20_000, 4), (-12, 12)
    return {
        "DPLloyd": lambda: DPLloyd(k, bounds=box).fit(X),
        "DPMoG": lambda: DPMoG(k, bounds=box).fit(X),
        "DPTree": lambda: DPTree(k, bounds=box).fit(X),
        "ToMATo": lambda: ToMATo(k).fit(X),
    }


def _n(side):
    X = make_two_circles(4000, random_state=0)
    dtm = DTMFiltration(0.2, bounds=BOUNDS, resolution=side)
    filtrations = dtm.fit_transform([X])
    return {
        "DTMFiltration, lattice": lambda: dtm.fit_transform([X]),
        "PrivatePersistence": lambda: PrivatePersistence().fit_transform(filtrations),
    }


def _c(count):
    clouds = [make_two_circles(1000, random_state=seed) for seed in range(count)]
    dtm = DTMFiltration(0.2, bounds=BOUNDS, resolution=101)
    filtrations = dtm.fit_transform(clouds)
    return {
        f"{name}, {jobs} worker{'s' * (jobs > 1)}": call
        for jobs in (1, 2)
        for name, call in (
            ("DTM", lambda jobs=jobs: dtm.set_params(n_jobs=jobs).fit_transform(clouds)),
            (
                "release",
                lambda jobs=jobs: PrivatePersistence(n_jobs=jobs).fit_transform(filtrations),
            ),
        )
    }


def _sweep(title, axis, values, make, repeats):
    measured = {}
    for value in values:
        for name, call in make(value).items():
            call()  # The first call starts workers and fills caches, and is not measured.
            measured.setdefault(name, []).append(repeated(call, repeats))
    _draw(title, axis, values, measured)
    rows = [
        (name, *(f"{t}" for t in times), _exponent(values, times))
        for name, times in measured.items()
    ]
    return Table(
        f"Seconds against {title}",
        (
            "estimator",
            *(f"{axis} = {value:,}" for value in values),
            "exponent of the last step",
        ),
        rows,
        f"Medians (range) of {repeats} calls, with one thread per worker and noise from the "
        "operating system. The exponent is that of the CPU time of this process.",
    )


def _exponent(values, times):
    # Of the processor's time, which other programs hardly change.
    ends = np.log([values[-2:], [t.cpu for t in times[-2:]]])
    (x0, x1), (y0, y1) = ends
    return float((y1 - y0) / (x1 - x0))


def _draw(title, axis, values, measured):
    out = Path(os.environ.get("SKLEARN_DPTDA_OUT", "benchmarks/out"))
    out.mkdir(parents=True, exist_ok=True)
    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    for (name, times), marker in zip(measured.items(), MARKERS, strict=False):
        middle = np.array([t.median for t in times])
        spread = [[t.median - t.low for t in times], [t.high - t.median for t in times]]
        ax.errorbar(values, middle, spread, marker=marker, capsize=3, label=name)
    ax.set(xscale="log", yscale="log", xlabel=axis, ylabel="seconds", title=f"Against {title}")
    ax.set_xticks(values, [f"{value:,}" for value in values])
    ax.xaxis.minorticks_off()
    ax.legend(fontsize="small")
    figure.supxlabel(describe_machine(), fontsize=5, color="0.4")
    figure.savefig(out / f"scaling_{axis}.png", dpi=90)
    plt.close(figure)
