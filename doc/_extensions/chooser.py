"""The map from questions to estimators: a picture whose boxes are links."""

from html import escape

from api_links import public_pages
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

WIDTH, GAP, BOX, TOP = 226, 14, 24, 86
# Title and remark of a column; questions, and the estimators that answer them, in order.
COLUMNS = (
    (
        "Points",
        "one shape, 1 to 4 columns",
        (
            ("Which loops and components?", ("DTMFiltration", "PrivatePersistence")),
            ("How long do the longest live?", ("PersistenceProfile",)),
            ("How many are there?", ("PrivateBettiNumbers",)),
            ("Which mass m shows most?", ("PrivateMassSearch",)),
            ("In more columns: places", ("PrivateLandmarks",)),
            ("As features of a classifier", ("DiagramFeatures",)),
        ),
    ),
    (
        "A table",
        "one row is one record",
        (
            ("Groups of any shape", ("DPMoGMorse",)),
            ("… curved, in many columns", ("DPLandmarkToMATo",)),
            ("… in 1 to 3 columns, not counted", ("DPToMATo",)),
            ("Round or stretched groups", ("DPMoG", "DPLloyd")),
            ("Hundreds of columns: first", ("PrivatePCA",)),
            ("Synthetic rows", ("PrivateMeasure",)),
        ),
    ),
    (
        "A network",
        "one link is one record",
        (
            ("The graph itself, to hand on", ("EdgeFlip",)),
            ("Where its nodes lie", ("AdjacencySpectralEmbedding",)),
            ("Groups of nodes: then", ("ToMATo",)),
            ("What can be seen at all?", ("detection_limit",)),
        ),
    ),
    (
        "Single places",
        "each person's, roughly",
        (
            ("Noise in every direction", ("KNormMechanism",)),
            ("One of some public places", ("MetricExponentialMechanism",)),
            ("How good can it be?", ("accuracy_bounds",)),
        ),
    ),
)
# Questions before and after any of them.
AROUND = (
    ("What will it take?", "plan_release"),
    ("No bounds known?", "PrivateBounds"),
    ("More than one release?", "PrivacyAccountant"),
    ("What will a search pay?", "planned_loss"),
)


def names():
    """All public names that the map leads to."""
    found = [name for _, name in AROUND]
    for _, _, questions in COLUMNS:
        found += [name for _, answers in questions for name in answers]
    return found


class Chooser(SphinxDirective):
    """``chooser``: the map, with links that are right wherever the page is."""

    def run(self):
        """Put a node there, to be drawn once all pages are known."""
        return [nodes.raw("", "", format="html", classes=["chooser-map"])]


def _text(x, y, words, kind):
    return f'<text x="{x}" y="{y}" class="{kind}">{escape(words)}</text>'


def _link(x, y, width, name, address):
    middle = x + width / 2
    return (
        f'<a href="{escape(address)}"><rect x="{x}" y="{y}" width="{width}" height="{BOX}" rx="6"/>'
        f'<text x="{middle}" y="{y + 16.5}" class="name">{name}</text></a>'
    )


def _column(x, title, remark, questions, address):
    parts = [_text(x, TOP + 20, title, "head"), _text(x, TOP + 38, remark, "remark")]
    y = TOP + 52
    for question, answers in questions:
        parts.append(_text(x, y + 14, question, "question"))
        y += 20
        for name in answers:
            parts.append(_link(x, y, WIDTH, name, address(name)))
            y += BOX + 4
        y += 8
    return parts, y


def draw(address):
    """The map as SVG; ``address`` maps names to links."""
    total = len(COLUMNS) * (WIDTH + GAP) - GAP
    parts, bottom = [], 0
    for i, (question, name) in enumerate(AROUND):
        x = i * (WIDTH + GAP)
        parts += [_text(x, 16, question, "question"), _link(x, 22, WIDTH, name, address(name))]
    parts.append(f'<line x1="0" x2="{total}" y1="{TOP - 18}" y2="{TOP - 18}"/>')
    for i, column in enumerate(COLUMNS):
        drawn, y = _column(i * (WIDTH + GAP), *column, address)
        parts += drawn
        bottom = max(bottom, y)
    return (
        f'<div class="chooser"><svg viewBox="-2 0 {total + 4} {bottom}" role="group" '
        f'aria-label="Map from questions to estimators">{"".join(parts)}</svg></div>'
    )


def draw_maps(app, doctree, docname):
    """Draw each map with links relative to its page."""
    pages = public_pages(app)

    def address(name):
        page, anchor = pages[name]
        return f"{app.builder.get_relative_uri(docname, page)}#{anchor}"

    for node in doctree.findall(nodes.raw):
        if "chooser-map" in node["classes"]:
            node += nodes.Text(draw(address))
            node.rawsource = node.astext()


def setup(app):
    """Register the directive."""
    app.add_directive("chooser", Chooser)
    app.connect("doctree-resolved", draw_maps)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
