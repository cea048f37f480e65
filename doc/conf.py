"""Sphinx configuration."""

import os
from importlib.metadata import version as version_of
from pathlib import Path

# Examples that would take long run on small data here, in a block that their pages do not show.
os.environ.setdefault("SKLEARN_DPTDA_QUICK", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

project = "sklearn_dptda"
author = "The sklearn_dptda developers"
copyright = author
release = version = version_of("sklearn-dptda")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "auto_examples/**/*.ipynb", "sg_execution_times.rst"]
templates_path = ["_templates"]

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/(plot_|vishwanath|boedihardjo|kang|byun)",
    "ignore_pattern": r"/_",
    "plot_gallery": os.environ.get("SKLEARN_DPTDA_GALLERY", "1") == "1",
    "capture_repr": (),
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_memory": False,
    "abort_on_example_error": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "sklearn_dptda"
html_static_path = ["_static"]
html_css_files = ["style.css"]
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
}
html_sidebars = {"index": [], "get_started": []}
html_show_sourcelink = False


def tell_of_small_data(app, docname, source):
    """Say on the page of an example that its output is that of a smaller run than its code's."""
    script = Path(app.srcdir, docname).with_suffix(".py")
    quick = bool(os.environ["SKLEARN_DPTDA_QUICK"]) and docname.startswith("auto_examples/")
    if quick and script.is_file() and "SKLEARN_DPTDA_QUICK" in script.read_text(encoding="utf-8"):
        head, code, rest = source[0].partition(".. GENERATED FROM PYTHON SOURCE LINES")
        note = ".. note:: Output and pictures are those of a run on less data than the code's."
        source[0] = f"{head}{note}\n\n{code}{rest}"


def setup(app):
    """Register what this file adds."""
    app.connect("source-read", tell_of_small_data)
