"""Digests of everything that decides about a release: records, parameters, state and code."""

import copyreg
import dis
import pickle
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from sklearn_dptda.privacy._release import state

# Parameters of our estimators that change nothing about a release.
NOT_DIGESTED = {"accountant", "n_jobs", "verbose"}
_ATTRIBUTES_OF_EVERY_CLASS = {
    "__annotations__",
    "__dict__",
    "__module__",
    "__qualname__",
    "__weakref__",
    "_abc_impl",
}
_STANDARD_LIBRARY = sysconfig.get_paths()["stdlib"]


def digest_of(value: object) -> bytes:
    """Digest of objects, of the state of estimators among them, and of the code that they run.

    The same in every process that runs the same code. ValueError where something does not pickle.
    """
    sink = sha256()
    try:
        _Describer(sink).dump((_sources(), sys.version, value))
    except _Undescribed as error:
        raise ValueError(str(error)) from None
    except Exception as error:
        raise ValueError(
            "X, a parameter, or something that a function reads cannot be described "
            f"({type(error).__name__}): pass what pickles."
        ) from None
    return sink.digest()


class _Undescribed(ValueError):
    """Something that decides about a release has no description, for this reason."""


class _Describer(pickle.Pickler):
    """Pickles functions and classes as their code, not as their names, and estimators by value."""

    def __init__(self, sink: Any) -> None:
        super().__init__(_File(sink), protocol=5)
        # No references to earlier objects: whether equal texts are one object differs between
        # processes.
        self.fast = True
        self._open: list[Any] = []

    def reducer_override(self, value: Any) -> Any:
        """Describe what Python would pickle by its name."""
        if value is _described or value is _File:
            return NotImplemented
        if isinstance(value, type | FunctionType | ModuleType):
            release = _release_of(value)
            if release is not None:
                return _described, (_name(value), release)
        if isinstance(value, type | FunctionType):
            # Code may refer to itself: what is being described is only named.
            if any(value is other for other in self._open):
                return _described, (_name(value),)
            self._open.append(value)
            code = _of_class(value) if isinstance(value, type) else _of_function(value)
            return _described, (_name(value), code)
        if isinstance(value, ModuleType):
            raise _Undescribed(f"the module {value.__name__} is of no installed package: name it.")
        if hasattr(value, "get_params"):
            return _described, _of_estimator(value)
        return _reduced(value)


def _reduced(value: Any) -> Any:
    """What Python pickles an object as; one that it would pickle by its name is described."""
    reduce = copyreg.dispatch_table.get(type(value))
    reduced = value.__reduce_ex__(5) if reduce is None else reduce(value)
    if not isinstance(reduced, str):
        return reduced
    # Some objects, such as NumPy's universal functions, do not say where they are.
    name = (getattr(value, "__module__", None) or _module_of(value, reduced), reduced)
    release = _release_of_package(str(name[0]).partition(".")[0])
    if release is not None:
        return _described, (name, release)
    # Such as a function of your own in a cache, whose code may change under the same name.
    inner = getattr(value, "__wrapped__", None)
    if inner is None:
        raise _Undescribed(
            f"an object of type {type(value).__name__} pickles by its name alone, so that what it "
            "does may change: pass a function."
        )
    return _described, (type(value), name, inner)


def _module_of(value: Any, name: str) -> str | None:
    """Shortest name of an installed module that has this very object under a name."""
    found = [key for key, module in [*sys.modules.items()] if vars(module).get(name) is value]
    installed = [key for key in found if _release_of_package(key.partition(".")[0]) is not None]
    return min(installed, key=lambda key: (len(key), key), default=None)


def _described(*parts: object) -> None:
    """Stand for an object in its description."""


class _File:
    """File that digests what is written to it."""

    def __init__(self, sink: Any) -> None:
        self.write = sink.update


def _name(value: Any) -> tuple[Any, Any]:
    return getattr(value, "__module__", None), getattr(value, "__qualname__", value.__name__)


def _of_estimator(estimator: Any) -> tuple[type, list[Any]]:
    """Class, parameters and fitted state, which `clone` keeps of frozen ones."""
    parameters = estimator.get_params(deep=False)
    # In a class of your own, any parameter may decide about the release.
    ignored = NOT_DIGESTED if _release_of(type(estimator)) else {"accountant"}
    bound = [
        (name, _ordered(value))
        for part in (parameters, state(estimator))
        for name, value in sorted(part.items())
        if name not in ignored
    ]
    return type(estimator), bound


def _ordered(value: Any) -> Any:
    """The same with containers in an order of their own."""
    if isinstance(value, dict):
        return [(_ordered(name), _ordered(part)) for name, part in value.items()]
    if isinstance(value, set | frozenset):
        return "set", sorted(map(digest_of, value))
    if type(value) in (list, tuple):
        return [_ordered(part) for part in value]
    return value


def _of_function(function: FunctionType) -> tuple[Any, ...]:
    codes = list(_nested(function.__code__))
    for step in (step for code in codes for step in dis.get_instructions(code)):
        # The function imports this module when it is called.
        name = step.argval if step.opname == "IMPORT_NAME" else None
        if name is not None and _release_of_package(name.partition(".")[0]) is None:
            raise _Undescribed(
                f"the function {function.__name__} imports {name} when it is called, which may "
                "change: import it before."
            )
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    known = function.__globals__
    names = sorted({name for code in codes for name in code.co_names})
    read = [(name, _global(known[name], names)) for name in names if name in known]
    return (
        _of_code(function.__code__),
        [_ordered(part) for part in (function.__defaults__, function.__kwdefaults__, cells)],
        _ordered(vars(function)),
        read,
    )


def _global(value: Any, names: list[str]) -> Any:
    """A global variable: of modules of your own what is read of them."""
    if isinstance(value, ModuleType) and _release_of(value) is None:
        return [(name, _global(vars(value)[name], names)) for name in names if name in vars(value)]
    return _ordered(value)


def _of_code(code: CodeType) -> tuple[Any, ...]:
    parts = [
        _of_code(part) if isinstance(part, CodeType) else _ordered(part) for part in code.co_consts
    ]
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, counts, parts


def _nested(code: CodeType) -> Iterator[CodeType]:
    """Code, and that of functions and classes within it."""
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _nested(part)


def _of_class(kind: type) -> tuple[Any, ...]:
    attributes = {
        name: (type(value).__name__, *_functions_of(value))
        for name, value in vars(kind).items()
        if name not in _ATTRIBUTES_OF_EVERY_CLASS
    }
    described = [(name, _ordered(value)) for name, value in sorted(attributes.items())]
    return type(kind), kind.__bases__, described


def _functions_of(attribute: Any) -> tuple[Any, ...]:
    """What a method or property is made of; other attributes as they are."""
    if isinstance(attribute, property):
        return attribute.fget, attribute.fset, attribute.fdel
    return (getattr(attribute, "__func__", attribute),)


def _release_of(value: Any) -> str | None:
    """Version of the installed package that something belongs to; None for code of your own."""
    name = value.__name__ if isinstance(value, ModuleType) else value.__module__
    return _release_of_package(str(name).partition(".")[0])


@cache
def _release_of_package(name: str) -> str | None:
    if name == __name__.partition(".")[0]:
        return _sources()
    file = getattr(sys.modules.get(name), "__file__", None)
    standard = name in sys.stdlib_module_names and name != "__main__"
    if standard and (file is None or file.startswith(_STANDARD_LIBRARY)):
        return sys.version
    if file is None or not {"site-packages", "dist-packages"} & set(Path(file).parts):
        return None
    try:
        return version(name)
    except PackageNotFoundError:
        # The distribution has another name than its package.
        return getattr(sys.modules[name], "__version__", None)


@cache
def _sources() -> str:
    """Digest of the code of this package."""
    folder, digest = Path(__file__).parents[1], sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
