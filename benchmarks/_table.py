"""Tables of results as Markdown, the loop that fills them, and the folder of pictures."""

import os
import warnings
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from joblib import Parallel, delayed


@dataclass(frozen=True)
class Table:
    """A title, the columns as ``"first | second"``, the rows, and a note for the reader."""

    title: str
    columns: str
    rows: list
    note: str = ""

    def __str__(self):
        columns = self.columns.split(" | ")
        lines = [columns, ["---"] * len(columns), *self.rows]
        body = "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)
        note = f"\n{self.note}\n" if self.note else ""
        return f"### {self.title}\n\n{body}\n{note}"


def _cell(value):
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def scores(function, *axes, n_jobs=-1, **options):
    """Return the results of all combinations, such as data x method x seed.

    They are an array with one axis for each list of values, and those of a result behind them.
    """
    parallel = Parallel(n_jobs=n_jobs, **options)
    found = parallel(delayed(_quietly)(function, *case) for case in product(*axes))
    return np.reshape(found, (*map(len, axes), *np.shape(found)[1:]))


def _quietly(function, *case):
    """Call a function without warnings, such as those of rows that the noise hides."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*case)


def median(values, *quantiles, digits=2):
    """Show a median, with quantiles in brackets: 0.25 is the lower quartile, 0 the worst run."""
    middle, *others = (f"{q:.{digits}f}" for q in np.quantile(values, [0.5, *quantiles]))
    return f"{middle} ({', '.join(others)})"


def mean(values, digits=2):
    """Show a mean and a standard deviation."""
    return f"{np.mean(values):.{digits}f} ± {np.std(values):.{digits}f}"


def save(figure, name, dpi=110):
    """Write a picture into the folder that ``SKLEARN_DPTDA_OUT`` names."""
    out = Path(os.environ.get("SKLEARN_DPTDA_OUT", "benchmarks/out"))
    out.mkdir(parents=True, exist_ok=True)
    figure.savefig(out / name, dpi=dpi)
    plt.close(figure)
