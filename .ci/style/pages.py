"""The pages of the documentation cover all public names, and what they name exists."""

import ast
import importlib
import inspect
import re
from functools import cache

from _project import DOC, ROOT, pages, shown, text_of, too_few, tree_of

API = DOC / "api.rst"
HERE = ".ci/style/pages.py"
PACKAGES = (
    "",
    ".cluster",
    ".datasets",
    ".decomposition",
    ".discriminant_analysis",
    ".features",
    ".filtration",
    ".graph",
    ".metric_privacy",
    ".model_selection",
    ".persistence",
    ".plotting",
    ".population",
    ".preprocessing",
    ".privacy",
    ".published",
    ".synthetic",
)
# Calls at the end of a cell that would show the address of an object.
DRAWING = {"plot", "from_estimator", "set", "set_title", "scatter", "imshow", "legend", "hist"}


@cache
def public_names(packages=PACKAGES):
    """Return classes and functions of all ``__all__`` lists, each under its shortest name."""
    found = {}
    for package in packages:
        module = importlib.import_module(f"sklearn_dptda{package}")
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                found.setdefault(value, name)
    return tuple(found.values())


def names_missing_from_the_api_page(page=API):
    """Name public classes and functions that the API page does not list."""
    named = set(re.findall(r"[\w.]+", text_of(page)))
    named |= {name.rpartition(".")[2] for name in named}
    for name in sorted({*public_names()} - named):
        yield f"{shown(page)}: the public name {name} is missing. Add it to the list of its task"
    yield from too_few(HERE, "public names", len(public_names()), 101)


def advanced_names(page=API):
    """Return names in the lists of the API page that are called advanced."""
    lists = re.findall(
        r"^\.\. rubric:: Advanced\n\n\.\. autosummary::\n(?:   :.*\n)*\n((?:   \w+\n)+)",
        text_of(page),
        flags=re.MULTILINE,
    )
    return set(" ".join(lists).split())


def names_that_are_not_shown(page=API):
    """Name what is public, not advanced, and in no example and on no page.

    Names of the papers' theorems are left out.
    """
    names = {*public_names(tuple(package for package in PACKAGES if package != ".published"))}
    advanced = advanced_names(page)
    if len(names) > 120:
        yield f"sklearn_dptda: {len(names)} public names are more than 120. Make some private"
    for name in sorted(advanced - names):
        yield f"{shown(page)}: the advanced name {name} is not public. Remove it"
    texts = [*(ROOT / "examples").rglob("*.py"), *DOC.glob("guide/*.md"), *DOC.glob("*.md")]
    words = {word for path in texts for word in re.findall(r"\w+", text_of(path))}
    for name in sorted(names - advanced - words):
        yield (
            f"{shown(page)}: {name} is in no example and on no page. Show it, or move it to a list "
            "of advanced names"
        )
    yield from too_few(shown(page), "advanced names", len(advanced), 21)


def dead_links(checked=None):
    """Name relative links that lead to no file."""
    n_links = 0
    for page in pages() if checked is None else checked:
        for link in re.findall(r"\]\(([^)#\s]+)", text_of(page)):
            if "://" in link or link.startswith("mailto:"):
                continue
            n_links += 1
            target = (page.parent / link).resolve()
            if target.is_relative_to(DOC / "auto_examples"):
                # The page is made from the script of the same name, and the index from the folder.
                target = ROOT / "examples" / target.relative_to(DOC / "auto_examples")
                target = target.parent if target.stem == "index" else target.with_suffix(".py")
            if not target.exists():
                yield f"{shown(page)}: the link {link} leads nowhere. Correct or remove it"
    if checked is None:
        yield from too_few(HERE, "relative links", n_links, 400)


def scripts_that_do_not_exist(checked=None):
    """Name benchmarks and examples that pages name and that do not exist."""
    known = {path.stem for path in (ROOT / "benchmarks").glob("*.py")}
    n_named = 0
    for page in pages() if checked is None else checked:
        commands = re.findall(r"python -m benchmarks ([\w ]+)", text_of(page))
        benchmarks = {name for names in commands for name in names.split()}
        examples = set(re.findall(r"\bexamples/[\w/]+\.py", text_of(page)))
        for name in sorted(benchmarks - known):
            yield f"{shown(page)}: there is no benchmark {name}. Name one of benchmarks/"
        for name in sorted(name for name in examples if not (ROOT / name).is_file()):
            yield f"{shown(page)}: {name} does not exist. Name the example that has replaced it"
        n_named += len(benchmarks) + len(examples)
    if checked is None:
        yield from too_few(HERE, "benchmarks and examples on pages", n_named, 20)


def pictures_without_file_or_description(checked=None):
    """Name pictures that do not exist, and those without a text for readers who cannot see them."""
    n_pictures = 0
    for page in pages() if checked is None else checked:
        pictures = [
            (link, alt) for alt, link in re.findall(r"!\[([^]]*)\]\(([^)\s]+)\)", text_of(page))
        ]
        for link, options in re.findall(r"```\{figure\} (\S+)\n((?::.*\n)*)", text_of(page)):
            alt = re.search(r"^:alt: (.{20,})", options, flags=re.MULTILINE)
            pictures.append((link, alt and alt[1]))
        for link, alt in pictures:
            if not (page.parent / link).is_file():
                yield f"{shown(page)}: the picture {link} does not exist. Draw it or remove it"
            if not alt:
                yield (
                    f"{shown(page)}: the picture {link} has no text. Say in `:alt:` what it shows, "
                    "in 20 characters or more"
                )
        n_pictures += len(pictures)
    if checked is None:
        yield from too_few(HERE, "pictures on pages", n_pictures, 20)


def guide_pages_without_picture_or_api(checked=None):
    """Name pages of the guide without a picture, or without a link to a public name."""
    guide = sorted(DOC.glob("guide/*.md")) if checked is None else checked
    for page in guide:
        text = text_of(page)
        # A public name in backticks becomes a link to its page.
        literals = {found.partition("(")[0] for found in re.findall(r"`([^`\n]+)`", text)}
        if "```{chooser}" not in text and "```{figure}" not in text:
            yield f"{shown(page)}: it has no picture. Draw one with doc/pictures.py"
        if "```{chooser}" not in text and not literals & {*public_names()}:
            yield f"{shown(page)}: it names no public name in backticks. Name what it is about"
    if checked is None:
        yield from too_few(HERE, "pages of the guide", len(guide), 15)


def names_of_the_map_that_are_not_public(path=DOC / "_extensions" / "chooser.py"):
    """Name what the map of questions links to and that is not public."""
    # Only its tables and the function that lists their names are run: the rest needs Sphinx.
    body = [
        node
        for node in tree_of(path).body
        if isinstance(node, ast.Assign) or getattr(node, "name", None) == "names"
    ]
    namespace = {}
    exec(compile(ast.Module(body, []), path.name, "exec"), namespace)
    names = namespace["names"]()
    for name in sorted({*names} - {*public_names()}):
        yield f"{shown(path)}: {name} is not public. Link what has replaced it"
    yield from too_few(shown(path), "names on the map", len(names), 16)


def examples_that_draw_nothing_or_print_addresses(checked=None):
    """Name examples without a picture, and cells whose last value is an object that was drawn."""
    examples = sorted((ROOT / "examples").glob("plot_*.py")) if checked is None else checked
    for script in examples:
        text = text_of(script)
        if not re.search(r"\bplt\.(subplots|figure|show)\(|sphinx_gallery_thumb", text):
            yield f"{shown(script)}: it draws nothing. Add a picture"
        for cell in re.split(r"^# %%.*$", text, flags=re.MULTILINE):
            last = ast.parse(cell).body[-1:]
            for call in (node.value for node in last if isinstance(node, ast.Expr)):
                called = getattr(call, "func", None)
                name = getattr(called, "attr", getattr(called, "id", ""))
                if name in DRAWING or name.startswith("plot_"):
                    yield f"{shown(script)}: a cell ends with the value of {name}. Assign it to _"
    if checked is None:
        yield from too_few(HERE, "examples", len(examples), 20)


RULES = (
    names_missing_from_the_api_page,
    names_that_are_not_shown,
    dead_links,
    scripts_that_do_not_exist,
    pictures_without_file_or_description,
    guide_pages_without_picture_or_api,
    names_of_the_map_that_are_not_public,
    examples_that_draw_nothing_or_print_addresses,
)
