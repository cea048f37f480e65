"""The layers of the package: subpackages import only from lower ones, without cycles."""

import ast
import re
from graphlib import CycleError, TopologicalSorter

from files import nodes_of, sources, text_of

# Code that is ruled out, the file of the package that may have it, and what to write instead.
RULED_OUT = (
    (r"^ *from \.+\w* import", None, "Write the full name of the module, which other rules read"),
    # In the block of this file, arithmetic warnings reveal nothing of records.
    (r"\bself\._pay\(", "privacy/_estimator.py", "Pay with `with self._paid(...)`"),
)


def floors(root):
    """Return the floor of each subpackage on the map in CONTRIBUTING.md, from the top down."""
    lines = text_of(root / "CONTRIBUTING.md").partition("## Floors")[2].split("```")[1].split("\n")
    names = [re.split(r"\s{2,}", line.strip())[0].split(", ") for line in lines if line.strip()]
    return {name: floor for floor, row in enumerate(names) for name in row}


def modules(root):
    """Return the file of each module of the package, by the name under which it is imported."""
    found = {}
    for path in sources(root):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


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


def upward_imports(root):
    """Name imports from other subpackages that are not on a lower floor, or on none."""
    known, floor_of = modules(root), floors(root)
    for module, path in known.items():
        own = package_of(module)
        if own not in floor_of:
            yield path, f"{own} is on no floor. Add it to the map in CONTRIBUTING.md"
            continue
        for other in sorted(imports(path, known)):
            used = package_of(other)
            if used != own and floor_of.get(used, -1) <= floor_of[own]:
                yield (
                    path,
                    f"it imports {other}, which is not on a lower floor. Move what both need to a "
                    "lower subpackage",
                )


def cycles(root):
    """Name modules that import each other in a cycle, the first one that is found."""
    known = modules(root)
    graph = {module: imports(path, known) - {module} for module, path in known.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle = error.args[1]
        yield (
            known[cycle[0]],
            f"modules import each other in a cycle: {', '.join(cycle)}. Move what they share to "
            "another module",
        )


def code_that_is_ruled_out(root):
    """Name code of the package that ``RULED_OUT`` has."""
    for path in sources(root):
        for pattern, home, instead in RULED_OUT:
            if path.relative_to(root / "sklearn_dptda").as_posix() != home:
                for found in re.findall(pattern, text_of(path), flags=re.MULTILINE):
                    yield path, f"`{found.strip()}` is ruled out. {instead}"
