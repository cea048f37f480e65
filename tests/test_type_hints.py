"""Type hints of an installed package can be used: with each Python, and by type checkers.

``.ci/style/hints.py`` checks that they are complete.
"""

import importlib
import importlib.resources
import inspect
import pkgutil
import typing

import sklearn_dptda

# Names that modules import only for type checkers, some of them from optional libraries.
FOR_CHECKERS = dict.fromkeys(
    ("AccuracyBounds", "Axes", "Colormap", "DataFrame", "MarkDecorator", "PlotlyFigure"), object
)


def public_functions():
    """Functions and methods that the lists ``__all__`` of public modules lead to."""
    for module in pkgutil.walk_packages(sklearn_dptda.__path__, "sklearn_dptda."):
        if not any(part.startswith("_") for part in module.name.split(".")):
            public = importlib.import_module(module.name)
            for value in (getattr(public, name) for name in getattr(public, "__all__", ())):
                members = vars(value).values() if inspect.isclass(value) else [value]
                yield from filter(inspect.isfunction, members)


def test_hints_resolve():
    functions = set(public_functions())
    assert len(functions) > 300
    for function in functions:
        typing.get_type_hints(function, localns=FOR_CHECKERS)


def test_type_checkers_are_told():
    assert importlib.resources.files("sklearn_dptda").joinpath("py.typed").is_file()
