"""Public names have type hints, and the hints can be evaluated."""

import importlib
import inspect
import pkgutil
import typing
from functools import cache, cached_property

from _project import too_few

# Almost as many public functions as when this rule was written. If the search finds fewer, it is
# broken. So it is if one of these is not found, which are of different kinds.
FEWEST = 225
AMONG_THEM = (
    "filtration._grid_filtration.BaseGridFiltration.fit",
    "filtration._filtration.GridFiltration.shape",
    "graph._adjacency.NoisyAdjacency.of",
    "persistence._private_persistence.PrivatePersistence.__init__",
    "privacy.neighbours.row_neighbours",
    "utils._sklearn.ListOutputMixin.set_output",
    "utils.discovery.all_estimators",
)
# Names that modules import only for type checkers, some of them from optional libraries.
FOR_CHECKERS = dict.fromkeys(
    ("AccuracyBounds", "Axes", "Colormap", "DataFrame", "MarkDecorator", "PlotlyFigure"), object
)


def is_ours(value):
    """Tell whether the package defines a value."""
    return (getattr(value, "__module__", None) or "").split(".")[0] == "sklearn_dptda"


def public_modules():
    """Yield the modules without an underscore in their name."""
    package = importlib.import_module("sklearn_dptda")
    yield package
    for module in pkgutil.walk_packages(package.__path__, "sklearn_dptda."):
        if not any(part.startswith("_") for part in module.name.split(".")):
            yield importlib.import_module(module.name)


def public_values(module):
    """Return the values of ``__all__``, or else those that the module defines for others."""
    names = getattr(module, "__all__", None)
    if names is None:
        names = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
        ]
    return [getattr(module, name) for name in names]


def functions_of(member):
    """Return functions behind a member of a class or module: several behind a property."""
    if isinstance(member, property):
        found = [member.fget, member.fset, member.fdel]
    elif isinstance(member, cached_property):
        found = [member.func]
    elif isinstance(member, staticmethod | classmethod):
        found = [member.__func__]
    else:
        found = [member]
    found = [inspect.unwrap(function) for function in found if function is not None]
    return [function for function in found if inspect.isfunction(function) and is_ours(function)]


def members_of(value):
    """Return a function itself, or the constructors, public methods and properties of a class."""
    if not inspect.isclass(value):
        return [value]
    return [
        member
        for base in value.__mro__
        if is_ours(base)
        for name, member in vars(base).items()
        if name == "__init__" or not name.startswith("_")
    ]


@cache
def public_functions():
    """Return public functions, constructors, methods and properties of the package by name."""
    return {
        f"{function.__module__}.{function.__qualname__}": function
        for module in public_modules()
        for value in public_values(module)
        for member in members_of(value)
        for function in functions_of(member)
    }


def missing_hints(function):
    """Yield names of parameters without type hints, and ``return``."""
    signature = inspect.signature(function)
    for name, parameter in signature.parameters.items():
        if name not in ("self", "cls") and parameter.annotation is parameter.empty:
            yield name
    if signature.return_annotation is signature.empty:
        yield "return"


def shown_function(function):
    """Return the file of a function and its name, as problems name it."""
    return f"{function.__module__.replace('.', '/')}.py: {function.__qualname__}"


def functions_without_hints(functions=None):
    """Name public functions with parameters or results that have no type hint."""
    for function in (functions or public_functions()).values():
        missing = list(missing_hints(function))
        if missing:
            yield f"{shown_function(function)} has no type hints for {', '.join(missing)}. Add them"


def hints_that_fail(functions=None):
    """Name public functions whose hints cannot be evaluated."""
    for function in (functions or public_functions()).values():
        try:
            typing.get_type_hints(function, localns=FOR_CHECKERS)
        except (NameError, TypeError, AttributeError) as error:
            yield (
                f"{shown_function(function)} has a type hint that fails: {error}. Import what it "
                "names; if only type checkers do, add it to FOR_CHECKERS of .ci/style/hints.py"
            )


def forgotten_functions(functions=None):
    """Report that public functions were not found."""
    functions = functions or public_functions()
    yield from too_few(".ci/style/hints.py", "public functions", len(functions), FEWEST)
    for name in AMONG_THEM:
        if f"sklearn_dptda.{name}" not in functions:
            yield (
                f".ci/style/hints.py: the public function {name} is not found. Correct the search, "
                "or replace the function in AMONG_THEM if it was renamed"
            )


RULES = (functions_without_hints, hints_that_fail, forgotten_functions)
