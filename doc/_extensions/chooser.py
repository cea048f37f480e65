"""The map from questions to estimators: columns of questions, whose answers are links."""

from html import escape

from api_links import public_pages
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

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
        "People",
        "one cloud, series or row of each",
        (
            ("Mean of their features, with a band", ("PrivateMean",)),
            ("Do two groups differ?", ("private_two_sample_test",)),
            ("Classify them, labels included", ("DPLinearDiscriminantAnalysis",)),
            ("Their expected diagram", ("PersistenceMass",)),
            ("Features of each person", ("SortedLifetimes",)),
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
    ("What does it risk?", "PrivacyRisk"),
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


def _question(question, answers, address):
    links = "".join(
        f'<a href="{escape(address(name))}"><code>{escape(name)}</code></a>' for name in answers
    )
    return f'<li><span class="question">{escape(question)}</span>{links}</li>'


def _column(title, remark, questions, address):
    listed = "".join(_question(question, answers, address) for question, answers in questions)
    return (
        f"<div><p><strong>{escape(title)}</strong><br><small>{escape(remark)}</small></p>"
        f"<ul>{listed}</ul></div>"
    )


def draw(address):
    """Write the map as HTML, whose columns wrap; ``address`` maps names to links."""
    around = "".join(_question(question, (name,), address) for question, name in AROUND)
    columns = "".join(_column(*column, address) for column in COLUMNS)
    return (
        '<nav class="chooser" aria-label="Map from questions to estimators">'
        f'<ul class="around">{around}</ul><div class="columns">{columns}</div></nav>'
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
