"""Type hints of an installed package are complete and can be used by each Python and checkers."""

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


def is_ours(value):
    return str(getattr(value, "__module__", "")).startswith("sklearn_dptda")


def public_functions():
    """Functions and methods to which public modules lead, by ``__all__`` if they have this list."""
    for module in pkgutil.walk_packages(sklearn_dptda.__path__, "sklearn_dptda."):
        if not any(part.startswith("_") for part in module.name.split(".")):
            public = importlib.import_module(module.name)
            names = [name for name in vars(public) if not name.startswith("_")]
            for value in (getattr(public, name) for name in getattr(public, "__all__", names)):
                bases = filter(is_ours, value.__mro__) if inspect.isclass(value) else ()
                for member in [value, *(m for base in bases for m in vars(base).values())]:
                    # Behind a property, a cached property, or a method of a class.
                    for name in ("fget", "func", "__func__"):
                        member = getattr(member, name, member)
                    member = inspect.unwrap(member)
                    if inspect.isfunction(member) and is_ours(member):
                        yield member


def without_hints(function):
    hints = typing.get_type_hints(function, localns=FOR_CHECKERS)
    named = {*inspect.signature(function).parameters, "return"} - {"self", "cls"}
    return named - hints.keys()


def test_hints_are_complete_and_resolve():
    functions = set(public_functions())
    assert len(functions) > 500
    for function in functions:
        is_public = function.__name__ == "__init__" or not function.__name__.startswith("_")
        # Hints of private methods must resolve as well.
        assert not (without_hints(function) and is_public), function.__qualname__


def test_missing_hints_are_seen():
    def half(self, X, y: int = 0, *more, **options: str):
        return X

    assert without_hints(half) == {"X", "more", "return"}


def test_type_checkers_are_told():
    assert importlib.resources.files("sklearn_dptda").joinpath("py.typed").is_file()
