"""The map from questions to estimators: an SVG picture whose boxes are links."""

from html import escape

from api_links import public_pages
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

WIDTH, GAP, BOX, TOP = 226, 14, 24, 86
# For each column its title, a remark, and its questions with the estimators that answer them.
COLUMNS = (
    (
        "Points",
        "one shape, 1 to 4 columns",
        (
            ("Which loops and components?", ("DTMFiltration", "PrivatePersistence")),
            ("Lifetimes of the longest features", ("PersistenceProfile",)),
            ("How many features are there?", ("PrivateBettiNumbers",)),
            ("Which mass m is best?", ("PrivateMassSearch",)),
            ("Landmarks, for 5 or more columns", ("PrivateLandmarks",)),
            ("Features for a classifier", ("DiagramFeatures",)),
        ),
    ),
    (
        "A table",
        "one row is one record",
        (
            ("Clusters of any shape", ("DPMoGMorse",)),
            ("Curved clusters, many columns", ("DPLandmarkToMATo",)),
            ("Unknown number, 1 to 3 columns", ("DPToMATo",)),
            ("Round or elliptical clusters", ("DPMoG", "DPLloyd")),
            ("First step for wide tables", ("PrivatePCA",)),
            ("Synthetic rows", ("PrivateMeasure",)),
        ),
    ),
    (
        "A network",
        "one edge is one record",
        (
            ("A noisy graph to publish", ("EdgeFlip",)),
            ("Coordinates of the nodes", ("AdjacencySpectralEmbedding",)),
            ("Communities of nodes", ("ToMATo",)),
            ("What can be detected?", ("detection_limit",)),
        ),
    ),
    (
        "Locations",
        "one location of each person",
        (
            ("Noise in all directions", ("KNormMechanism",)),
            ("One from a list of public places", ("MetricExponentialMechanism",)),
            ("How accurate can it be?", ("accuracy_bounds",)),
        ),
    ),
)
# Questions that arise with every estimator, drawn above the columns.
AROUND = (
    ("Which epsilon do I need?", "plan_release"),
    ("Unknown bounds?", "PrivateBounds"),
    ("More than one release?", "PrivacyAccountant"),
    ("What does a search cost?", "planned_loss"),
)


def names():
    """List all public names to which the map links."""
    found = [name for _, name in AROUND]
    for _, _, questions in COLUMNS:
        found += [name for _, answers in questions for name in answers]
    return found


class Chooser(SphinxDirective):
    """The directive ``chooser``: the map, with links that are correct on every page."""

    def run(self):
        """Insert a placeholder node. The map is drawn once all pages are known."""
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
    """Draw the map as SVG; ``address`` maps names to links."""
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
    """Draw each map, with links relative to its page."""
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
