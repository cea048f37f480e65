"""Files that results are written to: JSON, CSV, GUDHI's persistence diagrams."""

import csv
import json
import math

import numpy as np


def write_json(path, guarantee, **content):
    """Write the guarantee and what belongs to it."""
    promised = {
        "text": str(guarantee),
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "adjacency": guarantee.adjacency,
        "unit": guarantee.unit,
        "seeded": guarantee.seeded,
    }
    text = json.dumps({"guarantee": promised, **content}, indent=1, default=_plain)
    path.write_text(text + "\n", encoding="utf-8")


def write_csv(path, header, rows):
    """Write a table; numbers to their last digit."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows([_plain(cell) for cell in row] for row in rows)


def write_persistence(path, dimensions, diagrams):
    """Write lines of dimension, birth and death, as GUDHI reads and writes them."""
    lines = [
        f"{q} {float(birth)!r} {float(death)!r}\n"
        for q, diagram in zip(dimensions, diagrams, strict=True)
        for birth, death in diagram
    ]
    path.write_text("".join(lines), encoding="utf-8")


def finite_or_none(value):
    """A number that JSON can hold."""
    return value if math.isfinite(value) else None


def _plain(value):
    """A number or an array of NumPy as one of Python."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
