"""Functions with known persistences, and neighbours that differ as much as one record allows."""

import numpy as np

from sklearn_dptda import GridFiltration

UPPER = 1.0


def loops(lengths, base=0.25):
    """A function with one component, and loops of these persistences: holes of a flat ground."""
    values = np.full((3, 2 * len(lengths) + 1), base)
    values[1, 1::2] += lengths
    return values


def wells(lengths, base=0.75):
    """A function on a line with one more component than there are lengths of second ones."""
    values = np.full(2 * len(lengths) + 1, base)
    values[0] = 0.0
    values[2::2] -= lengths
    return values


def attacked(values, sensitivity, level):
    """What is above the level rises and what is below it sinks: all persistences grow."""
    return np.clip(values + np.where(values > level, 1, -1) * sensitivity, 0.0, UPPER)


def filtration(values, sensitivity, upper=UPPER):
    """The function with a public sensitivity, as filtrations carry it."""
    axes = tuple(np.linspace(0, 1, size) for size in np.shape(values))
    return GridFiltration(values, sensitivity, upper, 100, "made up", axes=axes)
