"""Processor times compared with those of peers, on two kinds of processors, and a picture.

The second kind is this processor without its AVX-512 instructions, which some libraries use well
and others do not: NumPy's and OpenBLAS's are switched off. Calls use one thread.
``DIFFPRIVLIB_PYTHON`` and ``GOOGLE_DP_PYTHON`` name the interpreters of peers in other
environments, and ``GOOGLE_DP_FOLDER`` the folder ``learning`` of google/differential-privacy:
``eval "$(python -m benchmarks._peers FOLDER)"`` makes and names them.
"""

import json
import os
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np

from benchmarks._ask import missing
from benchmarks._table import Table, save
from benchmarks._timing import describe_machine

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
COLOURS = ("#0072b2", "#e69f00")


def tables(quick):
    """Yield messages about missing peers, then the table of this benchmark."""
    for peer in ("DIFFPRIVLIB", "GOOGLE_DP"):
        if reason := missing(peer, folder=peer == "GOOGLE_DP"):
            yield f"{peer} is left out: {reason}.\n"
    first, second = (_measured(environment, quick) for environment in _kinds())
    names = _kind_names()
    # A peer may have failed in one of the runs.
    rows = [
        (*case, *seconds, seconds[0] / seconds[1], second[case][0] / second[case][1])
        for case, seconds in first.items()
        if case in second
    ]
    _draw(rows, names)
    yield Table(
        "Processor seconds, and their ratios to those of peers",
        f"task | ours | peer | ours, s | peer, s | ratio, {names[0]} | ratio, {names[1]}",
        rows,
        "The least of five calls by turns, or of fewer if they take more than 30 s, each with one "
        "thread. Seconds are those of the first kind of processor. A fit of Google's is timed "
        "without its labels of the rows, and GaussianMixture makes as many passes as the private "
        "mixtures.",
    )


def _kinds():
    """Yield the environment variables of both kinds of processors."""
    dispatched = np._core._multiarray_umath.__cpu_dispatch__
    wide = [name for name in dispatched if name.startswith("AVX512") or name == "X86_V4"]
    yield {}
    yield {"NPY_DISABLE_CPU_FEATURES": " ".join(wide), "OPENBLAS_CORETYPE": "Haswell"}


def _kind_names():
    features = np._core._multiarray_umath.__cpu_features__
    return ("with AVX-512" if features.get("AVX512F") else "this processor", "without AVX-512")


def _measured(environment, quick):
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks._speed_cases", *(["--quick"] if quick else [])],
        env={**os.environ, **ONE_THREAD, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    rows = [json.loads(line) for line in answer.stdout.splitlines() if line.startswith("[")]
    return {tuple(row[:3]): row[3:] for row in rows}


def _draw(rows, names):
    figure, ax = plt.subplots(figsize=(11, 0.32 * len(rows) + 1.2), layout="constrained")
    places = np.arange(len(rows))
    for shift, column, name, colour in zip((-0.2, 0.2), (5, 6), names, COLOURS, strict=True):
        # Bars begin at equal times: to the left, this library is faster.
        low, high = (f([row[column] for row in rows], 1.0) for f in (np.minimum, np.maximum))
        ax.barh(places + shift, high - low, 0.38, left=low, label=name, color=colour)
    ax.axvline(1, color="black", linewidth=0.8)
    ax.set(xscale="log", xlabel="processor time, divided by that of the peer")
    ax.set_yticks(places, [f"{task}: {peer}" for task, _, peer, *_ in rows], fontsize="small")
    ax.invert_yaxis()
    ax.set_xlim(0.8 * min(min(row[5:]) for row in rows))
    ax.margins(y=0.01)
    figure.legend(loc="outside upper right", ncols=2)
    figure.supxlabel(describe_machine(), fontsize=5, color="0.4")
    save(figure, "speed.png", dpi=100)
