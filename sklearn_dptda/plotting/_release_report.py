"""A release on one page that can be filed."""

import io
import math
import platform
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from html import escape
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from sklearn_dptda.model_selection import pipeline_guarantee
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyGuarantee, PrivacyLoss
from sklearn_dptda.privacy._guarantee import Budget, Charge, Sums, kind_of_unit
from sklearn_dptda.privacy._parameters import public_parameters

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1d2733; max-width: 52rem; margin: 2rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #d5dbe1;
         vertical-align: top; overflow-wrap: break-word; }
th { white-space: nowrap; overflow-wrap: normal; }
.scroll { overflow-x: auto; } .scroll svg { max-width: 100%; height: auto; }
"""

_PACKAGES = ("sklearn-dptda", "numpy", "scipy", "scikit-learn", "gudhi")
# The word for one of the privacy units of which a person may have several.
_PART = re.compile(r"(?:one|a) (?:directed )?(point|row|record|edge|link)\b")


def budget_over_time(accountant: PrivacyAccountant) -> list[PrivacyLoss]:
    """Return what was left at the start and after each payment, by the budget in force now."""
    rule = Budget(accountant.epsilon, accountant.delta, accountant.composition).rule()
    sums = Sums()
    left = [rule.remaining(sums)]
    for spend in accountant.spends():
        sums = sums.plus(Sums.of([(Charge(spend.epsilon, spend.delta, spend.rho), 1)]))
        left.append(rule.remaining(sums))
    return left


def release_report(
    estimator: BaseEstimator,
    *,
    accountant: PrivacyAccountant | None = None,
    picture: Any = None,
    statements: Sequence[str] = (),
    parameters: Mapping[str, Any] | None = None,
    title: str = "Report of a private release",
) -> str:
    """Return a page of HTML that describes a release, for the files of a privacy officer.

    The page loads nothing from other places and contains no record. It shows what was
    released, the guarantee in words and numbers, what epsilon means and whom it
    protects, the error bounds, the public parameters, the budget before and after,
    and the versions of the packages.

    Parameters
    ----------
    estimator : private estimator or Pipeline
        The fitted estimator.
    accountant : PrivacyAccountant, default=None
        The ledger that is shown. None takes that of the estimator, if it has one.
    picture : display, plotly Figure or matplotlib Figure, default=None
        Shown below the guarantee. It must draw private output or public
        parameters alone. A :class:`PersistenceDiagramDisplay` is interactive
        if plotly is installed, and adds 5 MB to the page then.
    statements : sequence of str, default=()
        Paragraphs about this release, such as its numbers: private output or public
        parameters alone.
    parameters : dict, default=None
        Further public parameters, by name, such as those of earlier steps or the name of
        the file. Those that are None are left out.
    title : str, default="Report of a private release"

    Returns
    -------
    str
        An HTML document in UTF-8.

    Notes
    -----
    .. rubric:: Privacy

    Nothing is released or spent. The page shows only public values, and ``picture``
    and ``statements`` as you pass them.

    Examples
    --------
    >>> from sklearn_dptda import DTMFiltration, PrivatePersistence
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> from sklearn_dptda.plotting import release_report
    >>> X = DTMFiltration(0.2, bounds=(-3, 3.5)).fit_transform([make_two_circles(1000)])
    >>> page = release_report(PrivatePersistence(epsilon=2.0).fit(X))
    >>> page.startswith("<!DOCTYPE html>"), "(epsilon=2, delta=0)" in page
    (True, True)
    """
    guarantee = pipeline_guarantee(estimator)
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    if accountant is None:
        accountant = getattr(last, "accountant", None)
    sections = [
        ("Guarantee", _guarantee(guarantee)),
        ("Release", _paragraphs([*statements, getattr(last, "error_statement_", "")])),
        ("Picture", "" if picture is None else f'<div class="scroll">{_drawn(picture)}</div>'),
        ("Public parameters", _parameters(estimator, parameters or {})),
        ("Budget", _budget(accountant)),
        ("Versions", _table(_versions())),
    ]
    body = "".join(f"<h2>{name}</h2>{content}" for name, content in sections if content)
    day = datetime.now(UTC).date().isoformat()
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body><h1>{escape(title)}</h1><p>Written on {day}. This page contains private output "
        f"and public parameters only.</p>{body}</body></html>\n"
    )


def _guarantee(guarantee: PrivacyGuarantee) -> str:
    verdict = "This release can be published under the guarantee below."
    if not guarantee.holds:
        verdict = "Do not publish this release as private: the guarantee below says why."
    numbers = {
        "epsilon": f"{guarantee.epsilon:g}",
        "delta": f"{guarantee.delta:g}",
        "zCDP rho": "-" if guarantee.rho is None else f"{guarantee.rho:.6g}",
        "privacy unit": guarantee.unit,
        "adjacency": f"{guarantee.adjacency}. {_neighbours(guarantee)}",
        "released": guarantee.released,
        "mechanism": guarantee.mechanism,
        "randomness": "a known seed: for tests and study only"
        if guarantee.seeded
        else "the operating system",
    }
    words = []
    if guarantee.holds:
        words = [_meaning_of_epsilon(guarantee), _whom_it_protects(guarantee)]
    return f"<p>{verdict}</p>{guarantee._repr_html_()}{_paragraphs(words)}{_table(numbers.items())}"


def _parameters(estimator: BaseEstimator, others: Mapping[str, Any]) -> str:
    rows = _public_parameters_of(estimator, others)
    return _table(rows.items()) if rows else "<p>All parameters have their default values.</p>"


def _budget(accountant: PrivacyAccountant | None) -> str:
    if accountant is None:
        return (
            "<p>No ledger counted this release. Losses of other releases of the same data add to "
            "the guarantee above.</p>"
        )
    left, spends = budget_over_time(accountant), accountant.spends()
    head = (
        f"<p>The budget is epsilon={accountant.epsilon:g}, delta={accountant.delta:g}, with "
        f"{accountant.composition} composition. "
        f"{left[-1].epsilon:.6g} of epsilon is left.</p><p>All releases together: "
        f"{escape(str(accountant.risk()))}</p>"
    )
    columns = ("payment", "day", "estimator", "released", "epsilon", "left before", "left after")
    rows = [
        (
            str(spend.number),
            spend.time,
            spend.estimator,
            spend.what,
            f"{spend.epsilon:g}",
            f"{before.epsilon:.6g}",
            f"{after.epsilon:.6g}",
        )
        for spend, before, after in zip(spends, left[:-1], left[1:], strict=True)
    ]
    return head + (f'<div class="scroll">{_table(rows, columns)}</div>' if rows else "")


def _drawn(picture: Any) -> str:
    """Return the picture as HTML that needs nothing else, interactive where it can be."""
    if hasattr(picture, "to_plotly") and find_spec("plotly") is not None:
        picture = picture.to_plotly()
    if hasattr(picture, "to_html"):
        return str(picture.to_html(full_html=False, include_plotlyjs=True))
    if not hasattr(picture, "savefig"):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(5, 4.5), layout="constrained")
        picture.plot(ax=figure.add_subplot())
        picture = figure
    buffer = io.StringIO()
    picture.savefig(buffer, format="svg")
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def _table(rows: Iterable[Sequence[str]], columns: Sequence[str] = ()) -> str:
    """Return a table with names of columns or, without them, with a name before each row."""

    def line(cells: Sequence[str], n_names: int) -> str:
        tags = ["th"] * n_names + ["td"] * (len(cells) - n_names)
        shown = zip(tags, map(escape, cells), strict=True)
        return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for tag, cell in shown) + "</tr>"

    head = line(columns, len(columns)) if columns else ""
    return f"<table>{head}{''.join(line(row, 0 if columns else 1) for row in rows)}</table>"


def _paragraphs(texts: Sequence[str]) -> str:
    once = dict.fromkeys(text.strip() for text in texts)
    return "".join(f"<p>{escape(text)}</p>" for text in once if text)


def _neighbours(guarantee: PrivacyGuarantee) -> str:
    """Return which data sets are neighbours."""
    if "edge" in guarantee.unit or "link" in guarantee.unit:
        return "Graphs are neighbours if they have the same nodes and differ in one link."
    return {
        "replace-one": "Data sets are neighbours if they have equally many records and differ in "
        "one. The number of records is public.",
        "add-remove": "Data sets are neighbours if one of them has one record more. The number of "
        "records is private.",
    }[guarantee.adjacency]


def _part(guarantee: PrivacyGuarantee) -> str | None:
    """Return the word for a privacy unit of which one person may have several, or None."""
    word = _PART.match(guarantee.unit)
    return word[1] if word and kind_of_unit(guarantee.unit) == "part" else None


def _meaning_of_epsilon(guarantee: PrivacyGuarantee) -> str:
    """Return one sentence about the odds of outcomes."""
    unit, change = guarantee.unit, "replaced"
    if guarantee.adjacency == "add-remove" or _part(guarantee) in ("edge", "link"):
        unit, change = unit.removesuffix(", there or not"), "added or removed"
    verb = "," * ("," in unit) + (" are" if unit.startswith("all ") else " is")
    beyond = f", up to an additional probability of {guarantee.delta:g}" * (guarantee.delta > 0)
    try:
        factor = f"{math.exp(guarantee.epsilon):.3g}"
    except OverflowError:
        factor = f"e^{guarantee.epsilon:g}"
    return (
        f"If {unit}{verb} {change}, the probability of every outcome of this release changes at "
        f"most by the factor e^epsilon = {factor}{beyond}."
    )


def _whom_it_protects(guarantee: PrivacyGuarantee) -> str:
    """Return what the guarantee means for people with several units, or nothing for people."""
    part = _part(guarantee)
    if part is None:
        return ""
    loss = "loss"
    if guarantee.delta > 0:
        loss = "epsilon, and up to k e^((k - 1) epsilon) times this delta"
    return (
        f"The guarantee protects one {part}. A person with k {part}s has up to k times this {loss}."
    )


def _public_parameters_of(estimator: BaseEstimator, others: Mapping[str, Any]) -> dict[str, str]:
    """Return other parameters and those of all steps that differ from their defaults."""
    steps = estimator.steps if isinstance(estimator, Pipeline) else [("", estimator)]
    rows = {name: repr(value) for name, value in others.items() if value is not None}
    for _, step in steps:
        for name, value in public_parameters(step).items():
            said = rows.get(name) == repr(value)
            if value is not None and not said and not isinstance(value, PrivacyAccountant):
                rows[f"{type(step).__name__}: {name}"] = repr(value)
    return rows


def _versions() -> Iterator[tuple[str, str]]:
    """Yield the names of packages and their versions."""
    yield "Python", f"{platform.python_version()} on {platform.system()}"
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            yield name, version(name)
