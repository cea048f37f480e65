"""The structure of the package: subpackages import only from lower ones, without cycles."""

import ast
from graphlib import CycleError, TopologicalSorter

from _project import PACKAGE, ROOT, nodes_of, shown, sources, text_of, too_few, tree_of

# From the bottom up. A subpackage imports from itself and from those in lower rows.
FLOORS = (
    {"_typing", "_docs"},
    {"privacy"},
    {"utils"},
    {"rows"},
    {"preprocessing", "decomposition", "cluster", "discriminant_analysis", "population"},
    {"filtration", "metric_privacy", "synthetic", "graph"},
    {"persistence", "features"},
    {"published"},
    {"model_selection"},
    {"plotting", "datasets"},
    {"sklearn_dptda"},
    {"_cli"},
    {"__main__"},
)
# The module whose block makes all payments: in it, arithmetic warnings reveal nothing of records.
PAYING = "sklearn_dptda.privacy._estimator"


def module_name(path):
    """Return the name by which a file of the package is imported."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules():
    """Return the file of each module of the package."""
    return {module_name(path): path for path in sources()}


def imports(path, known):
    """Return the ``known`` modules that a file imports, also in functions and for types alone."""
    taken = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            taken |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            submodules = {f"{node.module}.{alias.name}" for alias in node.names}
            # The names of a package that are not modules come from its __init__.
            taken |= submodules & known.keys() or {node.module}
    return taken & known.keys()


def package_of(module):
    """Return the subpackage of a module, or the module itself on the highest level."""
    return [*module.split("."), "sklearn_dptda"][1]


def floor_of(name):
    """Return the row of ``FLOORS`` that contains a subpackage; its length if none does."""
    return next((i for i, names in enumerate(FLOORS) if name in names), len(FLOORS))


def unknown_packages(paths=None):
    """Name modules that are on no floor."""
    for module, path in (paths or modules()).items():
        if floor_of(package_of(module)) == len(FLOORS):
            yield (
                f"{shown(path)}: {package_of(module)} is on no floor. Add it to FLOORS of "
                ".ci/style/house.py and to the map in CONTRIBUTING.md"
            )


def upward_imports(paths=None):
    """Name imports from the same or a higher floor, except those from the same subpackage."""
    paths = paths or modules()
    for module, path in paths.items():
        for other in sorted(imports(path, paths)):
            own, used = package_of(module), package_of(other)
            if used != own and floor_of(used) >= floor_of(own):
                yield (
                    f"{shown(path)}: it imports {other}, which is not on a lower floor. Move what "
                    "both need to a lower subpackage"
                )


def relative_imports(paths=None):
    """Name relative imports, which the rules above do not follow."""
    for path in (paths or modules()).values():
        for node in nodes_of(path):
            if isinstance(node, ast.ImportFrom) and node.level > 0:
                yield (
                    f"{shown(path)}:{node.lineno}: this import is relative. Write the full name "
                    "of the module"
                )


def cycles(paths=None):
    """Name modules that import each other in a cycle, the first one that is found."""
    paths = paths or modules()
    graph = {module: imports(path, paths) - {module} for module, path in paths.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle = error.args[1]
        yield (
            f"{shown(paths[cycle[0]])}: modules import each other in a cycle: {', '.join(cycle)}. "
            "Move what they share to another module"
        )


def folders_without_description(paths=None):
    """Name folders whose ``__init__`` does not describe them in at least two sentences."""
    for path in (paths or modules()).values():
        if path.name == "__init__.py":
            text = (ast.get_docstring(tree_of(path)) or "").replace("\n", " ")
            if len([part for part in text.split(". ") if part.strip()]) < 2:
                yield (
                    f"{shown(path)}: its docstring has less than two sentences. Say what the "
                    "folder is for"
                )


def old_map_of_contributors(page=ROOT / "CONTRIBUTING.md"):
    """Report that the map in CONTRIBUTING.md is not ``FLOORS``, read from the top down."""
    block = next((part for part in text_of(page).split("```") if "noise, calibration" in part), "")
    drawn = [{*line.split("  ")[0].split(", ")} for line in block.strip().splitlines()]
    if drawn != list(reversed(FLOORS)):
        yield f"{shown(page)}: its map of floors is not FLOORS of .ci/style/house.py. Change one"


def pays(node):
    """Tell whether a node of a syntax tree is a call of ``self._pay``."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "_pay"
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "self"
    )


def payments_elsewhere(paths=None):
    """Name modules that pay outside the block in which NumPy is silent."""
    paths = paths or modules()
    paying = {module for module, path in paths.items() if any(map(pays, nodes_of(path)))}
    for module in sorted(paying - {PAYING}):
        yield f"{shown(paths[module])}: it calls self._pay. Pay with `with self._paid(...)`"
    if PAYING not in paying:
        yield f".ci/style/house.py: {PAYING} does not call self._pay. Name the module that pays"


def few_modules():
    """Report that the modules of the package, or their imports, were not found."""
    paths = modules()
    n_imports = sum(len(imports(path, paths)) for path in paths.values())
    yield from too_few(".ci/style/house.py", "modules", len(paths), 150)
    yield from too_few(".ci/style/house.py", "imports within the package", n_imports, 500)


RULES = (
    unknown_packages,
    upward_imports,
    relative_imports,
    cycles,
    folders_without_description,
    old_map_of_contributors,
    payments_elsewhere,
    few_modules,
)
