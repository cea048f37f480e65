"""Configuration of Sphinx."""

import os
import sys
from importlib.metadata import version as version_of
from pathlib import Path

import plotly.io
import plotly.offline

# Examples that take long run on less data here. The code for it is in a block that the pages hide.
os.environ.setdefault("SKLEARN_DPTDA_QUICK", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "sklearn_dptda"
author = "The sklearn_dptda developers"
copyright = author
release = version = version_of("sklearn-dptda")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    # Formulas are set by a script of this site, which needs no other host.
    "sphinx-mathjax-offline",
    "sphinx_gallery.gen_gallery",
    "api_links",
    "chooser",
]
exclude_patterns = [
    "_build",
    "_extensions",
    "auto_examples/**/*.ipynb",
    "generated/backreferences",
    "sg_execution_times.rst",
]
templates_path = ["_templates"]

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]

# The gallery begins with the examples for new users, and continues from points to tables to graphs.
FIRST = [
    "story",
    "two_circles",
    "command_line",
    "ink",
    "pipeline",
    "profile_and_count",
    "choosing_before_spending",
    "how_much_data",
    "wrong_box",
    "interactive",
    "private_shapes",
    "private_peaks",
    "merge_tree",
    "number_of_components",
    "five_epsilons",
    "private_pca",
    "synthetic_or_diagram",
    "private_graph",
    "geo_indistinguishability",
    "time_series",
    "walkers",
    "budget",
]


def gallery_rank(filename):
    """Sort key of an example: first the examples listed above in their order, then the others."""
    name = Path(filename).stem.removeprefix("plot_")
    return (FIRST.index(name) if name in FIRST else len(FIRST)), name


class FromThisSite(plotly.io.base_renderers.MimetypeRenderer):
    """Renderer of interactive figures that loads the script from this site, not from a CDN."""

    def to_mimebundle(self, figure):
        """Return the HTML that the gallery inserts into the page."""
        script = "../_static/plotly.min.js"
        page = plotly.io.to_html(figure, include_plotlyjs=script, full_html=False)
        return {"text/html": page}


plotly.io.renderers["this_site"] = FromThisSite()
plotly.io.renderers.default = "this_site"

# A build runs all examples if SKLEARN_DPTDA_GALLERY is "1", none if it is "0", and these if it is
# "some": a diagram, clusters, a graph, the command line and a paper. Others have no output then.
SOME = ("interactive", "private_shapes", "private_graph", "command_line", "kang_figures_1_2")
GALLERY = os.environ.get("SKLEARN_DPTDA_GALLERY", "1")

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "within_subsection_order": gallery_rank,
    "default_thumb_file": str(Path(__file__).parent / "_static" / "card.png"),
    "doc_module": ("sklearn_dptda",),
    "reference_url": {"sklearn_dptda": None},
    "backreferences_dir": "generated/backreferences",
    "filename_pattern": (
        rf"/(plot_)?({'|'.join(SOME)})\.py$"
        if GALLERY == "some"
        else r"/(plot_|vishwanath|boedihardjo|kang|byun)"
    ),
    "ignore_pattern": r"/_",
    "plot_gallery": GALLERY != "0",
    "capture_repr": ("_repr_html_",),
    "remove_config_comments": True,
    "download_all_examples": False,
    # Its table is drawn by scripts of other hosts.
    "write_computation_times": False,
    "show_memory": False,
    # Two processes import everything twice, which takes longer than a few examples.
    "parallel": 2 if GALLERY == "1" else False,
    "abort_on_example_error": True,
}

html_theme = "pydata_sphinx_theme"
html_title = f"sklearn_dptda {version}"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["style.css"]
html_theme_options = {
    "logo": {
        "text": f"sklearn_dptda {version}",
        "alt_text": "sklearn_dptda: home",
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo_dark.svg",
    },
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
}
html_sidebars = {"index": [], "get_started": []}
html_context = {"default_mode": "auto"}
html_show_sourcelink = False


def tell_of_small_data(app, docname, source):
    """Add a note to the page of an example if its output comes from a run on less data."""
    script = Path(app.srcdir, docname).with_suffix(".py")
    ran = GALLERY == "1" or (GALLERY == "some" and docname.endswith(SOME))
    quick = bool(os.environ["SKLEARN_DPTDA_QUICK"]) and docname.startswith("auto_examples/") and ran
    if quick and script.is_file() and "SKLEARN_DPTDA_QUICK" in script.read_text(encoding="utf-8"):
        head, code, rest = source[0].partition(".. GENERATED FROM PYTHON SOURCE LINES")
        note = ".. note:: The output and the pictures come from a run on less data than the code."
        source[0] = f"{head}{note}\n\n{code}{rest}"


def write_plotly(app, error):
    """Write the script of the interactive figures to the folder from which the pages load it."""
    if error is None and app.builder.format == "html":
        script = Path(app.outdir, "_static", "plotly.min.js")
        script.write_text(plotly.offline.get_plotlyjs(), encoding="utf-8")


def setup(app):
    """Register the functions of this file with Sphinx."""
    app.connect("build-finished", write_plotly)
    app.connect("source-read", tell_of_small_data)
