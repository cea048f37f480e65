"""Public names are annotated, the hints resolve, and type checkers use them."""

import importlib
import importlib.resources
import inspect
import pkgutil
import typing
from functools import cached_property

import matplotlib.axes
import matplotlib.colors
import pandas
import pytest

import sklearn_dptda
from sklearn_dptda.theory import AccuracyBounds

# Names that modules import only for type checkers.
FOR_CHECKERS = {
    "AccuracyBounds": AccuracyBounds,
    "Axes": matplotlib.axes.Axes,
    "Colormap": matplotlib.colors.Colormap,
    "DataFrame": pandas.DataFrame,
    "MarkDecorator": pytest.MarkDecorator,
    # Names of an optional library.
    "PlotlyFigure": object,
}
# Almost as many as when this test was written. If the search finds fewer, it is broken.
FEWEST = 225


def is_ours(value):
    return (getattr(value, "__module__", None) or "").split(".")[0] == "sklearn_dptda"


def public_modules():
    yield sklearn_dptda
    for module in pkgutil.walk_packages(sklearn_dptda.__path__, "sklearn_dptda."):
        if not any(part.startswith("_") for part in module.name.split(".")):
            yield importlib.import_module(module.name)


def public_values(module):
    names = getattr(module, "__all__", None)
    if names is None:
        names = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
        ]
    return [getattr(module, name) for name in names]


def functions_of(member):
    """Functions behind a member of a class or module: several behind a property."""
    if isinstance(member, property):
        found = [member.fget, member.fset, member.fdel]
    elif isinstance(member, cached_property):
        found = [member.func]
    elif isinstance(member, staticmethod | classmethod):
        found = [member.__func__]
    else:
        found = [member]
    found = [inspect.unwrap(f) for f in found if f is not None]
    return [f for f in found if inspect.isfunction(f) and is_ours(f)]


def public_functions():
    """Public functions, constructors, methods and properties that the package defines."""
    found = {}
    for module in public_modules():
        for value in public_values(module):
            members = [value]
            if inspect.isclass(value):
                members = [
                    member
                    for base in value.__mro__
                    if is_ours(base)
                    for name, member in vars(base).items()
                    if name == "__init__" or not name.startswith("_")
                ]
            for member in members:
                for function in functions_of(member):
                    found[f"{function.__module__}.{function.__qualname__}"] = function
    return found


FUNCTIONS = public_functions()


def missing_hints(function):
    signature = inspect.signature(function)
    for name, parameter in signature.parameters.items():
        if name not in ("self", "cls") and parameter.annotation is parameter.empty:
            yield name
    if signature.return_annotation is signature.empty:
        yield "return"


def test_public_functions_are_annotated():
    missing = {name: list(missing_hints(function)) for name, function in FUNCTIONS.items()}
    lines = [f"{name}: {', '.join(lacks)}" for name, lacks in missing.items() if lacks]
    assert not lines, "without type hints:\n" + "\n".join(lines)


def test_hints_resolve():
    lines = []
    for name, function in FUNCTIONS.items():
        try:
            typing.get_type_hints(function, localns=FOR_CHECKERS)
        except (NameError, TypeError, AttributeError) as error:
            lines.append(f"{name}: {error}")
    assert not lines, "hints that do not resolve:\n" + "\n".join(lines)


def test_nothing_was_forgotten():
    assert len(FUNCTIONS) >= FEWEST
    for name in (
        "filtration._grid_filtration.BaseGridFiltration.fit",
        "filtration._filtration.GridFiltration.shape",
        "graph._noisy.NoisyAdjacency.of",
        "persistence._private_persistence.PrivatePersistence.__init__",
        "privacy.neighbours.row_neighbours",
        "utils._sklearn.ListOutputMixin.set_output",
        "utils.discovery.all_estimators",
    ):
        assert f"sklearn_dptda.{name}" in FUNCTIONS


def test_missing_hints_are_named():
    def half(self, X, y: int = 0, *more, **options: int):
        return X

    assert list(missing_hints(half)) == ["X", "more", "return"]


def test_type_checkers_are_told():
    assert importlib.resources.files("sklearn_dptda").joinpath("py.typed").is_file()
