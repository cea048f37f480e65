"""Noise: secure and seeded draws compared with NumPy; payments by kind of ledger."""

import tempfile
from pathlib import Path

import numpy as np

from benchmarks._table import Table
from benchmarks._timing import side_by_side
from sklearn_dptda.privacy import NoiseSource, PrivacyAccountant

LAWS = {"discrete_gaussian": "normal", "discrete_laplace": "laplace"}
SCALES = (3.0, 1000.0, 2.0**30)


def tables(quick):
    """Yield the tables of this benchmark."""
    yield _draws(10**5 if quick else 10**6, 1 if quick else 3)
    yield _payments(20 if quick else 200)


def _draws(n, repeats):
    rows = [_row(law, scale, n, repeats) for law in LAWS for scale in SCALES]
    return Table(
        f"{n:,} draws of integer noise",
        ("law", "scale", "secure, s", "seeded, s", "NumPy, s", "secure / NumPy", "seeded / NumPy"),
        rows,
        f"Medians (range) of {repeats} calls in turn, with one thread. "
        "NumPy's noise is continuous and not private.",
    )


def _row(law, scale, n, repeats):
    secure, seeded, rng = NoiseSource(), NoiseSource(0), np.random.default_rng(0)
    times = side_by_side(
        lambda: getattr(secure, law)(scale, n),
        lambda: getattr(seeded, law)(scale, n),
        lambda: getattr(rng, LAWS[law])(0, scale, n),
        repeats=repeats,
    )
    medians = [time.median for time in times]
    return law, f"{scale:.4g}", *medians, medians[0] / medians[2], medians[1] / medians[2]


def _payments(count):
    with tempfile.TemporaryDirectory() as folder:
        memory = PrivacyAccountant(np.inf)
        file = PrivacyAccountant(np.inf, path=Path(folder) / "budget.db")
        few = PrivacyAccountant(np.inf)

        def pay(accountant):
            for _ in range(count):
                accountant.spend(0.1, what="a release", parameters={"k": 1})

        for _ in range(10_000):
            few.spend(0.1)
        times = side_by_side(lambda: pay(memory), lambda: pay(file), lambda: pay(few), repeats=3)
    names = ("memory", "SQLite file", "memory, after 10,000 payments")
    return Table(
        "One payment",
        ("ledger", "ms", "against memory"),
        [
            (name, time.median / count * 1e3, time.median / times[0].median)
            for name, time in zip(names, times, strict=True)
        ],
        f"Medians of 3 alternating runs of {count} payments. The file is synchronised to the disk "
        "after each payment.",
    )
