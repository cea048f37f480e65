"""Digests of everything that determines a release: records, parameters, state and code."""

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

# Parameters of the estimators of this package that do not change a release.
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

    The digest is the same in every process that runs the same code. Raises ValueError if something
    cannot be pickled.
    """
    sink = sha256()
    try:
        _Describer(sink).dump((_sources(), sys.version, value))
    except _Undescribed as error:
        raise ValueError(str(error)) from None
    except Exception as error:
        raise ValueError(
            "X, a parameter, or an object that a function reads cannot be described "
            f"({type(error).__name__}). Pass objects that can be pickled."
        ) from None
    return sink.digest()


class _Undescribed(ValueError):
    """An object that determines a release cannot be described. The message gives the reason."""


class _Describer(pickle.Pickler):
    """Pickler that describes functions and classes by their code, and estimators by value."""

    def __init__(self, sink: Any) -> None:
        super().__init__(_File(sink), protocol=5)
        # Do not refer to earlier objects: whether two equal strings are the same object differs
        # between processes.
        self.fast = True
        self._open: list[Any] = []

    def reducer_override(self, value: Any) -> Any:
        """Describe objects that Python would pickle by name only."""
        if value is _described or value is _File:
            return NotImplemented
        if isinstance(value, type | FunctionType | ModuleType):
            release = _release_of(value)
            if release is not None:
                return _described, (_name(value), release)
        if isinstance(value, type | FunctionType):
            # Code may refer to itself. An object that is already being described is only named.
            if any(value is other for other in self._open):
                return _described, (_name(value),)
            self._open.append(value)
            code = _of_class(value) if isinstance(value, type) else _of_function(value)
            return _described, (_name(value), code)
        if isinstance(value, ModuleType):
            raise _Undescribed(
                f"the module {value.__name__} does not belong to an installed package. Refer to "
                "its functions by name instead."
            )
        if hasattr(value, "get_params"):
            return _described, _of_estimator(value)
        return _reduced(value)


def _reduced(value: Any) -> Any:
    """Return the pickled form of an object, or a description if the form is a name only."""
    reduce = copyreg.dispatch_table.get(type(value))
    reduced = value.__reduce_ex__(5) if reduce is None else reduce(value)
    if not isinstance(reduced, str):
        return reduced
    # Some objects, such as NumPy's universal functions, do not name their module.
    name = (getattr(value, "__module__", None) or _module_of(value, reduced), reduced)
    release = _release_of_package(str(name[0]).partition(".")[0])
    if release is not None:
        return _described, (name, release)
    # This may be a cached function of the user, whose code may change under the same name.
    inner = getattr(value, "__wrapped__", None)
    if inner is None:
        raise _Undescribed(
            f"an object of type {type(value).__name__} pickles by its name alone, so that its "
            "behaviour could change unnoticed. Pass a function instead."
        )
    return _described, (type(value), name, inner)


def _module_of(value: Any, name: str) -> str | None:
    """Return the shortest name of an installed module in which ``name`` is this very object."""
    # An entry may be None, or stand for a module that is not loaded yet.
    modules = [(key, getattr(module, "__dict__", {})) for key, module in [*sys.modules.items()]]
    found = [key for key, names in modules if names.get(name) is value]
    installed = [key for key in found if _release_of_package(key.partition(".")[0]) is not None]
    return min(installed, key=lambda key: (len(key), key), default=None)


def _described(*parts: object) -> None:
    """Represent an object in a description."""


class _File:
    """File-like object that digests everything written to it."""

    def __init__(self, sink: Any) -> None:
        self.write = sink.update


def _name(value: Any) -> tuple[Any, Any]:
    return getattr(value, "__module__", None), getattr(value, "__qualname__", value.__name__)


def _of_estimator(estimator: Any) -> tuple[type, list[Any]]:
    """Class, parameters and fitted state. ``clone`` keeps the state of frozen estimators."""
    parameters = estimator.get_params(deep=False)
    # In a class of the user, any parameter may affect the release.
    ignored = NOT_DIGESTED if _release_of(type(estimator)) else {"accountant"}
    bound = [
        (name, _ordered(value))
        for part in (parameters, state(estimator))
        for name, value in sorted(part.items())
        if name not in ignored
    ]
    return type(estimator), bound


def _ordered(value: Any) -> Any:
    """Replace containers by lists in a defined order."""
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
        # The function imports this module only when it is called.
        name = step.argval if step.opname == "IMPORT_NAME" else None
        if name is not None and _release_of_package(name.partition(".")[0]) is None:
            raise _Undescribed(
                f"the function {function.__name__} imports {name} when it is called, and this "
                "module may change. Import it before, outside of the function."
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
    """Describe a global variable; of a module of the user, only the names that are read."""
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
    """Yield a code object, and the code of functions and classes within it."""
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
    """Functions of a method or property; other attributes unchanged."""
    if isinstance(attribute, property):
        return attribute.fget, attribute.fset, attribute.fdel
    return (getattr(attribute, "__func__", attribute),)


def _release_of(value: Any) -> str | None:
    """Version of the installed package of an object; None for code of the user."""
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
        # The name of the distribution differs from that of its package.
        return getattr(sys.modules[name], "__version__", None)


@cache
def _sources() -> str:
    """Digest of the code of this package."""
    folder, digest = Path(__file__).parents[1], sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
