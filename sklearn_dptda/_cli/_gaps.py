"""Cells that are missing: rows that have some are dropped, or cells filled by public constants."""

import numpy as np

# Words for a number that is missing, in lower case and without dashes and similar characters.
_MISSING = {"", "na", "n/a", "nan", "null", "none", "nil", "missing", "unknown", "inf", "infinity"}


def is_missing(cell):
    """Whether a text stands for a number that is missing."""
    return cell.strip(".?*-_# ").lower() in _MISSING


def without_gaps(table, names, fill, drops):
    """Fill missing cells, and leave out the rows that still have some.

    Returns the table and which rows of the original one it has.
    """
    constants = _constants(names, table.shape[1], fill)
    missing = np.column_stack([_gaps(column) for column in table.T])
    # Texts of a fixed length would cut a longer constant off.
    table = table.astype(object) if table.dtype.kind in "US" else table.copy()
    for place, constant in constants.items():
        kind = table.dtype.kind
        table[missing[:, place], place] = constant if kind in "OUS" else _number(constant)
        missing[:, place] = False
    kept = ~missing.any(axis=1) if drops else np.ones(len(table), dtype=bool)
    if not kept.any():
        raise ValueError("--drop-incomplete: no row is complete.")
    return table[kept], kept


def _gaps(column):
    if column.dtype.kind in "fc":
        return ~np.isfinite(column)
    if column.dtype.kind not in "OUS":
        return np.zeros(len(column), dtype=bool)
    # NaN is the one cell that differs from itself.
    return np.array([c is None or c != c or is_missing(str(c)) for c in column.tolist()])


def _constants(names, width, fill):
    """Constant of each column that has one, by its place."""
    pairs = [text.rpartition("=") for text in fill]
    for_all = [value for _, equals, value in pairs if not equals]
    if len(for_all) > 1:
        raise ValueError("--fill takes one VALUE for all columns; others as NAME=VALUE.")
    named = [(name, value) for name, equals, value in pairs if equals]
    places = column_places("--fill", [name for name, _ in named], names, width)
    found = dict.fromkeys(range(width), for_all[0]) if for_all else {}
    return found | dict(zip(places, (value for _, value in named), strict=True))


def column_places(option, typed, names, width):
    """Return the places of the columns that an option names, and refuse to name one twice."""
    places = {}
    for name in typed:
        place = column_place(option, name, names, width)
        if place in places:
            raise ValueError(f"{option} names the column {name!r} twice: name it once.")
        places[place] = name
    return list(places)


def column_place(option, name, names, width):
    """Return the place of a column that an option names, by its name or number from 0."""
    if names is not None and name in names:
        if names.count(name) > 1:
            raise ValueError(f"{option}: several columns are named {name!r}: give a number from 0.")
        return names.index(name)
    if name.isdecimal() and int(name) < width:
        return int(name)
    raise ValueError(f"{option}: there is no column {name!r} among the {width} columns.")


def _number(text):
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--fill: {text!r} is no number, and the file holds numbers.") from None
