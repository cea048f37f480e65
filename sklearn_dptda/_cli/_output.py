"""The output of the commands: folders, files and progress messages."""

import csv
import json
import math
import os
import re
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from sklearn_dptda._cli._terminal import tell

# Seconds until the first progress message, and between the later ones.
_FIRST_LINE_SECONDS, _NEXT_LINE_SECONDS = 2.0, 5.0

# Beginning of a formula. A single sign, such as a blood group, is none.
_FORMULA = re.compile(r"\s*([=@]|[+-]\s*\S)")
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)

# Of the JSON files; release.schema.json describes them.
FORMAT_VERSION = 1


def output_folder(name):
    """Create the folder for the results, before anything is paid.

    A ``ValueError`` says why the folder cannot be created or written to.
    """
    out = Path(name)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"--out: cannot create the folder {out} ({error.strerror}).") from None
    if not os.access(out, os.W_OK | os.X_OK):
        raise ValueError(
            f"--out: the folder {out} cannot be written to. Choose another folder, or change its "
            "permissions."
        )
    return out


def new_figure(width, height):
    """Return an empty figure, in inches. Only commands that draw wait for matplotlib's import."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def shown_loss(loss):
    """Return the epsilon and the delta of a loss or a guarantee as a text."""
    return f"epsilon={loss.epsilon:g}, delta={loss.delta:g}"


def write_json(path, guarantee, **content):
    """Write a JSON file that contains the guarantee and further fields."""
    names = ("epsilon", "delta", "adjacency", "unit", "seeded")
    promised = {"text": str(guarantee), **{name: getattr(guarantee, name) for name in names}}
    promised["advantage"] = guarantee.advantage
    head = {"format_version": FORMAT_VERSION, "release": path.stem, "guarantee": promised}
    text = json.dumps(_finite({**head, **content}), indent=1, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def _finite(value):
    """Convert a value to what JSON has: infinity and NaN become None, and arrays become lists."""
    value = _plain(value)
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_csv(path, header, rows):
    """Write a table as CSV, with all digits of its numbers."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows([_plain(cell) for cell in row] for row in rows)


def refuse_formulas(what, texts):
    """Refuse texts for a CSV file that a spreadsheet program would run as formulas.

    Names and categories are public parameters, which programs must read unchanged. They are
    therefore not escaped.
    """
    for text in texts:
        if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
            raise ValueError(
                f"{what}: a spreadsheet program would run {text!r} as a formula. Choose a text "
                "that begins with a letter or a digit."
            )


def _plain(value):
    """Convert a NumPy number or array to numbers or lists of Python."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


@contextmanager
def slow(what):
    """Report on stderr what the program is doing, after two seconds and then every five."""
    done = threading.Event()
    teller = threading.Thread(target=_tell, args=(what, done), daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()


def _tell(what, done):
    start = time.monotonic()
    if done.wait(_FIRST_LINE_SECONDS):
        return
    tell(f"{what} ...")
    while not done.wait(_NEXT_LINE_SECONDS):
        elapsed = time.monotonic() - start
        tell(f"{what} ... {elapsed:.0f} s")


def rounded_probability(probability):
    """Write a probability with two digits, and nothing uncertain as certain."""
    if probability > 0.99:
        return "above 0.99"
    return f"{probability:.2f}" if probability >= 0.01 else "below 0.01"
