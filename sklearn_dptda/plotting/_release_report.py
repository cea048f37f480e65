"""A release on one page that can be filed, or as a record for a public registry."""

import io
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from importlib.util import find_spec
from typing import Any, Literal

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from sklearn_dptda.model_selection import pipeline_guarantee
from sklearn_dptda.plotting._registry_record import registry_record
from sklearn_dptda.plotting._release_words import (
    meaning_of_epsilon,
    neighbours,
    public_parameters_of,
    versions,
    whom_it_protects,
)
from sklearn_dptda.privacy import PrivacyAccountant, PrivacyGuarantee, PrivacyLoss
from sklearn_dptda.privacy._guarantee import Budget, Charge, Sums

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
    form: Literal["page", "registry"] = "page",
) -> str:
    """Return a page of HTML that describes a release, for the files of a privacy officer.

    The page loads nothing from other places and contains no record. It shows what was
    released, the guarantee in words and numbers, what epsilon means and whom it
    protects, the error bounds, the public parameters, the budget before and after,
    and the versions of the packages.

    With ``form="registry"``, the same facts are a draft in the format (YAML, tier 3) of
    the public registry of deployments of differential privacy, registry.opendp.org.
    What only you can know is a question in its field, and all questions are listed
    at the top.

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
    form : {"page", "registry"}, default="page"
        A page of HTML, or a draft for the registry, without the picture.

    Returns
    -------
    str
        An HTML document, or a YAML document, in UTF-8.

    Raises
    ------
    ValueError
        If the guarantee does not hold, so that nothing can be registered.

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
    if form == "registry":
        return registry_record(
            estimator, guarantee, accountant, statements, parameters or {}, title
        )
    sections = [
        ("Guarantee", _guarantee(guarantee)),
        ("Release", _paragraphs([*statements, getattr(last, "error_statement_", "")])),
        ("Picture", "" if picture is None else f'<div class="scroll">{_drawn(picture)}</div>'),
        ("Public parameters", _parameters(estimator, parameters or {})),
        ("Budget", _budget(accountant)),
        ("Versions", _table(versions())),
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
        "adjacency": f"{guarantee.adjacency}. {neighbours(guarantee)}",
        "released": guarantee.released,
        "mechanism": guarantee.mechanism,
        "randomness": "a known seed: for tests and study only"
        if guarantee.seeded
        else "the operating system",
    }
    words = []
    if guarantee.holds:
        words = [meaning_of_epsilon(guarantee), whom_it_protects(guarantee)]
    return f"<p>{verdict}</p>{guarantee._repr_html_()}{_paragraphs(words)}{_table(numbers.items())}"


def _parameters(estimator: BaseEstimator, others: Mapping[str, Any]) -> str:
    rows = public_parameters_of(estimator, others)
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
