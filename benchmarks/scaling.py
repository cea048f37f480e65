"""Growth of times with the numbers of rows, columns and clouds, with pictures."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from benchmarks._table import Table, save
from benchmarks._timing import describe_machine, repeated
from sklearn_dptda import DTMFiltration, PrivatePersistence
from sklearn_dptda.cluster import (
    DPLandmarkToMATo,
    DPLloyd,
    DPMoG,
    DPMoGMorse,
    DPToMATo,
    DPTree,
    PrivateLandmarks,
)
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.decomposition import PrivatePCA
from sklearn_dptda.discriminant_analysis import DPLinearDiscriminantAnalysis
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.published import DPCube
from sklearn_dptda.synthetic import PrivateMeasure

BOUNDS, BOX = (-2.5, 3), (-12, 12)
MARKERS = "os^Dv<>Pp*hXd8"


def tables(quick):
    """Yield the tables of this benchmark, each with a picture."""
    repeats = 1 if quick else 3
    yield _sweep("rows", "n", (1000, 10_000) if quick else ROWS, _rows, repeats)
    yield _sweep("columns", "d", (2, 4) if quick else COLUMNS, _columns, repeats)
    yield _sweep("clouds of 1,000 points", "clouds", (2, 4) if quick else CLOUDS, _c, repeats)


ROWS = (10_000, 100_000, 1_000_000, 10_000_000)
COLUMNS = (2, 4, 8, 16, 32, 64)
CLOUDS = (4, 16, 64)
# A call that takes longer than this many seconds is measured once.
LONG = 10


def _blobs(n, d):
    return make_blobs(n, d, centers=6, center_box=(-8, 8), random_state=0)


def _rows(n):
    """Estimators that accept any number of rows."""
    cloud, (X, y) = make_two_circles(n, random_state=0), _blobs(n, 2)
    return {
        "DTMFiltration": lambda: DTMFiltration(0.2, bounds=BOUNDS).fit_transform([cloud]),
        "DPToMATo": lambda: DPToMATo(6, bounds=BOX).fit(X),
        "DPCube": lambda: DPCube(6, bounds=BOX).fit(X),
        "PrivateMeasure": lambda: PrivateMeasure(bounds=BOX).fit(X),
        **_of_any_table(X, y),
    }


def _of_any_table(X, y):
    """Estimators that accept any numbers of rows and columns."""
    return {
        "DPLloyd": lambda: DPLloyd(6, bounds=BOX).fit(X),
        "DPMoG": lambda: DPMoG(6, bounds=BOX).fit(X),
        "DPMoGMorse": lambda: DPMoGMorse(6, bounds=BOX).fit(X),
        "DPTree": lambda: DPTree(6, bounds=BOX).fit(X),
        "PrivateLandmarks": lambda: PrivateLandmarks(bounds=BOX).fit(X),
        "DPLandmarkToMATo": lambda: DPLandmarkToMATo(6, bounds=BOX).fit(X),
        "PrivateBounds": lambda: PrivateBounds(start=(-100, 100)).fit(X),
        "PrivatePCA": lambda: PrivatePCA(1, bounds=BOX).fit(X),
        "DPLinearDiscriminantAnalysis": lambda: DPLinearDiscriminantAnalysis(
            classes=range(6), bounds=BOX
        ).fit(X, y),
    }


def _columns(d):
    return _of_any_table(*_blobs(20_000, d))


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
            # The first call starts workers and fills caches.
            first = repeated(call, 1)
            again = first.low <= LONG
            measured.setdefault(name, []).append(repeated(call, repeats) if again else first)
    _draw(title, axis, values, measured)
    rows = [
        (name, *(f"{t}" for t in times), _exponent(values, times))
        for name, times in measured.items()
    ]
    return Table(
        f"Seconds against {title}",
        " | ".join(["estimator", *(f"{axis} = {value:,}" for value in values), "exponent"]),
        rows,
        f"Medians (range) of {repeats} calls, or of one that takes more than {LONG} s, with one "
        "thread per worker and noise from the operating system. The exponent of the last step is "
        "that of the CPU time of this process.",
    )


def _exponent(values, times):
    # Of the processor's time, which other programs hardly change.
    ends = np.log([values[-2:], [t.cpu for t in times[-2:]]])
    (x0, x1), (y0, y1) = ends
    return float((y1 - y0) / (x1 - x0))


def _draw(title, axis, values, measured):
    figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
    ax.set_prop_cycle(color=plt.get_cmap("tab20").colors)
    for (name, times), marker in zip(measured.items(), MARKERS, strict=False):
        middle = np.array([t.median for t in times])
        spread = [[t.median - t.low for t in times], [t.high - t.median for t in times]]
        ax.errorbar(values, middle, spread, marker=marker, capsize=3, label=name)
    ax.set(xscale="log", yscale="log", xlabel=axis, ylabel="seconds", title=f"Against {title}")
    ax.set_xticks(values, [f"{value:,}" for value in values])
    ax.xaxis.minorticks_off()
    figure.legend(loc="outside right center", fontsize="small")
    figure.supxlabel(describe_machine(), fontsize=5, color="0.4")
    save(figure, f"scaling_{axis}.png", dpi=90)
