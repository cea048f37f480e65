"""Numbers that pages state, measured again: which of them does today's code still give?

Each claim names the text of a page and a measurement that takes seconds, because it repeats a part
of what the benchmark of the page does. A printed number is stale if it is farther from the found
one than three standard errors of the repetition, or, for ratios, than a third of it. The numbers
are read from the pages, so that a new number on a page is what is checked from then on.
"""

import math
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import _again as again
from benchmarks import utility
from benchmarks._table import Table, _quietly, scores

ROOT = Path(__file__).parent.parent
# Where a text has "{}" there is a number, and where it has "...", anything up to the next cell.
_NUMBER, _ANYTHING = r"(-?\d*\.?\d+(?:e-?\d+)?)", r"[^|]*?"
_OURS, _THEIRS = utility.VARIANTS


class Claim(NamedTuple):
    """A text of a page, and a function that measures its numbers: replicates by numbers."""

    page: str
    text: str
    measure: Callable
    # "mean", "median", "share" of 0 and 1, or "ratio".
    rule: str = "mean"

    def printed(self):
        """Return the numbers as the page prints them."""
        pattern = re.escape(re.sub(r"\s+", " ", self.text)).replace(r"\ ", r"\s+")
        pattern = pattern.replace(r"\{\}", _NUMBER).replace(r"\.\.\.", _ANYTHING)
        found = re.findall(pattern, (ROOT / self.page).read_text(encoding="utf-8"))
        if len(found) != 1:
            raise ValueError(
                f"{self.page} has the text {self.text!r} {len(found)} times, instead of once. "
                "Change its claim in benchmarks/pages.py, too."
            )
        return [found[0]] if isinstance(found[0], str) else list(found[0])


def verdict(printed, found, rule):
    """Return the lowest and the highest number that may be printed, and whether this one may."""
    found = np.asarray(found, dtype=float)
    centre, root = found.mean(), math.sqrt(len(found))
    if rule == "median":
        # The rank of the median has a standard error of half the root of the number of replicates.
        low, high = np.quantile(found, np.clip([0.5 - 1.5 / root, 0.5 + 1.5 / root], 0, 1))
    elif rule == "ratio":
        low, high = 2 / 3 * centre, 4 / 3 * centre
    else:
        # All replicates may agree although the share is neither 0 nor 1.
        p = (found.sum() + 1) / (len(found) + 2)
        spread = math.sqrt(p * (1 - p)) if rule == "share" else found.std(ddof=len(found) > 1)
        low, high = centre - 3 * spread / root, centre + 3 * spread / root
    decimals = len(printed.partition(".")[2].partition("e")[0])
    # A whole unit of the last digit, because some numbers are rounded up.
    rounding = 10.0 ** (-decimals + int(printed.partition("e")[2] or 0))
    return low, high, bool(low - rounding <= float(printed) <= high + rounding)


def checked(claims):
    """Yield a row for each number: page, text, printed, found, low, high, and the verdict."""
    for claim in claims:
        printed, found = claim.printed(), np.asarray(_quietly(claim.measure), dtype=float)
        if found.shape[1] != len(printed):
            raise ValueError(f"{claim.text!r} has {len(printed)} numbers, not {found.shape[1]}.")
        middle = np.median if claim.rule == "median" else np.mean
        for number, values in zip(printed, found.T, strict=True):
            low, high, holds = verdict(number, values, claim.rule)
            name = claim.text.replace("|", "/")[:60]
            cells = number, float(middle(values)), float(low), float(high)
            yield claim.page, name, *cells, "right" if holds else "stale"


def tables(quick):
    """Yield the table of verdicts, and fail if a number is stale."""
    rows = list(checked(CLAIMS[:1] if quick else CLAIMS))
    stale = [row for row in rows if row[-1] == "stale"]
    yield Table(
        f"{len(rows)} numbers of {len({row[0] for row in rows})} pages, {len(stale)} stale",
        "page | text | printed | found | from | to | verdict",
        rows,
    )
    if stale:
        raise SystemExit(f"{len(stale)} numbers of the pages are stale: see the table.")


_PAPERS = "doc/reproduction.md"
_MOST, _FIVE, _TIMES = (1, 2, 5, 10, 20), "{} | {} | {} | {} | {} |", "... | ... | ... | {} |"
_COLUMNS = " | ".join(8 * ["{}"])


def _measured(name, text, *rest):
    return Claim(f"doc/measured/{name}.md", text, *rest)


# Cheap ones first.
CLAIMS = [
    Claim("README.md", f"| {_OURS} | {_FIVE}", partial(utility._errors, _OURS, 4000, 10)),
    Claim("README.md", f"| {_THEIRS} | {_FIVE}", partial(utility._errors, _THEIRS, 4000, 10)),
    Claim(_PAPERS, "and n = 10^4, 10^5, 10^6, it is {}, {} and {}", again.theorem_17),
    Claim(
        _PAPERS,
        "Mean sums at epsilon 0.5, 1 and 10, n = 4,000: {}, {}, {}; with it",
        partial(again.errors, [(4000, again.published(e)) for e in (0.5, 1.0, 10.0)], np.inf),
    ),
    Claim(
        _PAPERS,
        "; with it {}, {}, {}. At `n` =",
        partial(again.errors, [(4000, again.ours(e)) for e in (0.5, 1.0, 10.0)]),
    ),
    Claim(
        _PAPERS,
        "At `n` = 500 and 16,000, epsilon = 1: {}, {}; with it",
        partial(again.errors, [(n, again.published(1.0)) for n in (500, 16_000)], np.inf),
    ),
    Claim(
        _PAPERS,
        "; with it {}, {} |",
        partial(again.errors, [(n, again.ours(1.0)) for n in (500, 16_000)]),
    ),
    Claim(
        _PAPERS,
        "that law has {}, {}, {}, {}, {}, and",
        partial(again.errors, [(4000, again.published(1.0, k)) for k in _MOST], np.inf),
    ),
    Claim(
        _PAPERS,
        "where `M` is an upper bound, {}, {}, {}, {}, {} |",
        partial(again.errors, [(4000, again.ours(1.0, max_points=k)) for k in _MOST]),
    ),
    Claim(_PAPERS, "(means {}, {}, {}, {})", partial(scores, again.two_circles_of_nodes, range(5))),
    Claim(
        "doc/guide/which_epsilon.md",
        "| 1 | {} / {} / {} | {} / {} / {} | {} / {} / {} |",
        again.risks,
    ),
    Claim(
        "doc/guide/parameters.md",
        "{} of 10 diagrams (`m = 0.1`, epsilon 2)",
        partial(again.loops_beyond_noise, 0.9),
    ),
    Claim(
        "doc/theory/private_profiles.md",
        "| error, read off a private diagram, H1 | {} | {} | {} |",
        partial(again.longest_loop, "diagram"),
    ),
    Claim(
        "doc/theory/private_profiles.md",
        "| error, profile, the longest loop alone | {} | {} | {} |",
        partial(again.longest_loop, "profile"),
    ),
    Claim("doc/guide/tables.md", f"| default | 1 | {_COLUMNS} |", partial(again.census, "default")),
    Claim(
        "doc/guide/tables.md",
        f"| `delta=1e-6` | 1 | {_COLUMNS} |",
        partial(again.census, "delta=1e-6"),
    ),
    _measured(
        "searches",
        "| classes in a ring | 1 | {} | {} (...) | {} |",
        partial(again.search, "classes in a ring", 1.0),
        "median",
    ),
    _measured(
        "searches",
        "| k-means, six groups | 3 | {} | {} (...) | {} |",
        partial(again.search, "k-means, six groups", 3.0),
        "median",
    ),
    _measured(
        "landmarks", "| 4,000 | 6 | 0.08 | {} | {} |", partial(again.right_loops, 6, 1), "share"
    ),
    _measured(
        "landmarks",
        "| 4,000 | 10 | 0.08 | ... | ... | ... | {} | {} |",
        partial(again.right_loops, 10, 2),
        "share",
    ),
    _measured("caps", "| from 160 | 440 | {} |", again.drawn_cap, "ratio"),
    _measured("private_cloud", "| 1000 | 1 | {} |", partial(again.loops_of_clouds, 1000), "ratio"),
    _measured("private_cloud", "| 3000 | 1 | {} |", partial(again.loops_of_clouds, 3000), "ratio"),
    _measured(
        "posterior", "| all | 1123 | 927 | 536 | 0 | 885 | 0 | {} |", again.probable_points, "ratio"
    ),
    _measured(
        "synthetic",
        "| made up, even | {} (...) | {} (...) | 0.944",
        lambda: again.models(1)[0],
        "median",
    ),
    _measured(
        "synthetic", "| made up, even | {} | {} | 0.071", lambda: again.models(1)[1], "median"
    ),
    _measured(
        "classifiers",
        "| series, lifetimes | 60 | 1 | {} (...) | {} (",
        partial(again.classified, 60),
        "median",
    ),
    _measured(
        "classifiers",
        "| series, lifetimes | 300 | 1 | {} (...) | {} (",
        partial(again.classified, 300),
        "median",
    ),
    _measured("graphs", "| 10 groups, degrees vary | 4 | {} | {} |", again.nodes),
    _measured("graphs", "| moons | {} / {} / {} |", partial(again.flat_peaks, "moons", 0.5)),
    _measured(
        "graphs", "| circles | ... | {} / {} / {} |", partial(again.flat_peaks, "circles", 1.0)
    ),
    _measured("populations", "| 300 | {} ({}) | 0.974", partial(again.bands, 300)),
    _measured("populations", "| 0 | 100 | {} | {} | {} |", partial(again.tests, 0.0, 100), "share"),
    _measured(
        "populations", "| 0.2 | 300 | {} | {} | {} |", partial(again.tests, 0.2, 300), "share"
    ),
    _measured(
        "head_to_head",
        "| iris | {} / ... | {} / ... | {} /",
        partial(again.lloyd, "iris"),
        "median",
    ),
    _measured(
        "head_to_head",
        "the loss is {}, {} and {} times that of `KMeans`",
        partial(again.lloyd_and_kmeans, "fifteen"),
        "median",
    ),
    _measured(
        "head_to_head",
        "| g2, 16 | {} / ... | {} / ... | {} /",
        partial(again.lloyd, "g2, 16"),
        "median",
    ),
    _measured(
        "peers",
        f"| distance-to-measure, 4,000 points, 800 neighbours, ... | {_TIMES}",
        partial(again.times, "_distances_to_measure"),
        "ratio",
    ),
    _measured(
        "peers",
        f"| bottleneck distance, 50 points | {_TIMES}",
        partial(again.times, "_bottleneck"),
        "ratio",
    ),
]
