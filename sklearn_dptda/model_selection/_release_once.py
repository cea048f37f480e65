"""One release in a task that an engine may run more than once."""

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

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone

from sklearn_dptda.filtration import LatticeHistogram
from sklearn_dptda.filtration._filtration import Filtration
from sklearn_dptda.privacy import PrivateEstimatorMixin, ReleaseKey
from sklearn_dptda.privacy._release import release
from sklearn_dptda.privacy._release_key import under
from sklearn_dptda.utils._frames import frame_library, parts_elsewhere

# Parameters of our estimators that change nothing about a release.
_NOT_DIGESTED = {"accountant", "n_jobs", "verbose"}
_PLAIN_TYPES = {bool, bytes, complex, float, int, str, type(None)}
_ATTRIBUTES_OF_EVERY_CLASS = {
    "__annotations__",
    "__dict__",
    "__module__",
    "__qualname__",
    "__weakref__",
    "_abc_impl",
}
_STANDARD_LIBRARY = sysconfig.get_paths()["stdlib"]
_ELSEWHERE_MESSAGE = (
    "X must be in memory, since coins are a function of its records: read the part of a task "
    "inside of the task, and pass that."
)


def release_once(estimator: BaseEstimator, X: Any, key: ReleaseKey) -> Any:
    """Release in a task of your own that may run again: paid once, drawn once.

    Parameters
    ----------
    estimator : estimator
        Private, or a pipeline. It is cloned. Give it an accountant that workers
        can reach, such as one in a database server.
    X : array-like, DataFrame, or list of them
        Its input, in memory: read the part of a task inside of the task. It
        must pickle, and is read twice.
    key : ReleaseKey
        Made before the task is sent, one for each task. A key is good for one
        release: of these records, by these parameters and this code.

    Returns
    -------
    object
        What ``fit_transform`` returns; of estimators that release in ``fit``,
        what they have learnt, by name.

    Raises
    ------
    ValueError
        If ``key`` is none; if X describes records that are elsewhere, such as a
        Dask collection or a function: what the description means could change
        between two runs; if a private step has no accountant, which alone can
        refuse a key that is used twice; or if another step draws at random
        without a ``random_state``. Nothing is spent.
    PrivacyLedgerError
        If the key has paid for a release of other records, other parameters or
        other code. Nothing is spent and nothing is released.

    Notes
    -----
    .. rubric:: Privacy

    That of the estimator. All coins are a function of the key and of a digest
    of the records, the parameters and the code of all steps; the name of the
    payment is a function of the key alone, and the ledger keeps the digest
    beside it. The same task, run again, pays nothing and repeats its draw.
    Anything else under the same key is refused: equal releases of two data
    sets under one key would tell that the data sets are equal. The law of the
    result is that of one release, since it does not depend on how often the
    task has died; with fresh coins in each run it would be the law given that
    the run survived, which can lose twice as much. The proof is in the guide to
    guarantees.

    The digest holds fitted state, the versions of installed packages, the
    sources of this one, and of your own functions and classes their code and
    the global variables that they read. It cannot see what your code reads from
    elsewhere, such as files or the clock: all steps must be functions of their
    input. Steps that draw in threads of their own, which have no key, pay in
    each run.

    Examples
    --------
    >>> from sklearn_dptda.cluster import DPLloyd
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> from sklearn_dptda.model_selection import release_once
    >>> from sklearn_dptda.privacy import PrivacyAccountant, ReleaseKey
    >>> budget, key = PrivacyAccountant(1.0, 1e-5), ReleaseKey()
    >>> model = DPLloyd(2, 0.8, bounds=(-3, 3.5), accountant=budget)
    >>> X = make_two_circles(1000, random_state=0)
    >>> first, again = release_once(model, X, key), release_once(model, X, key)
    >>> bool((first["cluster_centers_"] == again["cluster_centers_"]).all())
    True
    >>> budget.total().epsilon
    0.8
    """
    copy, X, bound = bound_to(key, estimator, X)
    with under(key, bound):
        return release(copy, X)


def bound_to(
    key: ReleaseKey, estimator: BaseEstimator, X: Any
) -> tuple[BaseEstimator, Any, ReleaseKey]:
    """A clone, records in memory, and the key that both decide about with the code they run."""
    if not isinstance(key, ReleaseKey):
        raise ValueError(f"key must be a ReleaseKey; got one of type {type(key).__name__}.")
    X = _in_memory(X)
    copy = clone(estimator)
    _refuse_unrepeatable(copy)
    return copy, X, key.child(digest_of((copy, X)))


def _in_memory(X):
    """A copy of records, which is digested and released: what reads them is read once."""
    if type(X) in _PLAIN_TYPES or isinstance(X, np.generic):
        return X
    if isinstance(X, list | tuple):
        return [_in_memory(part) for part in X]
    if callable(X) or parts_elsewhere(X) is not None:
        raise ValueError(_ELSEWHERE_MESSAGE)
    if frame_library(X) is not None:
        if hasattr(X, "select_dtypes"):
            _check_items(X.select_dtypes(object).to_numpy().ravel())
        elif "Object" in map(str, X.dtypes):
            raise ValueError(_ELSEWHERE_MESSAGE)
        return X.copy() if hasattr(X, "copy") else X
    if hasattr(X, "__array__"):
        # An array that is mapped into memory from a file can change with the file.
        X = np.array(X)
        if X.dtype == object:
            _check_items(X.ravel())
        return X
    graph = hasattr(X, "adjacency") and hasattr(X, "nodes")
    if not (graph or issparse(X) or isinstance(X, Filtration | LatticeHistogram)):
        raise ValueError(_ELSEWHERE_MESSAGE)
    return X.copy() if issparse(X) else X


def _check_items(items):
    """Refuse objects that turn into numbers, which may read them from elsewhere."""
    if not all(type(item) in _PLAIN_TYPES or isinstance(item, np.generic) for item in items):
        raise ValueError(_ELSEWHERE_MESSAGE)


def _refuse_unrepeatable(estimator):
    """Refuse what would not repeat its draw, and what nobody would refuse to use a key again."""
    for step in (estimator, *estimator.get_params(deep=True).values()):
        if isinstance(step, PrivateEstimatorMixin):
            if step._payer() is None:
                raise ValueError(
                    f"{type(step).__name__} has no accountant: release_once needs one, whose "
                    "ledger remembers what a key has been used for."
                )
        elif isinstance(step, BaseEstimator) and getattr(step, "random_state", 0) is None:
            raise ValueError(
                f"{type(step).__name__} has random_state=None, and would make another release "
                "each time its task runs: give it a number."
            )


def digest_of(value: object) -> bytes:
    """Digest of objects, of the state of estimators among them, and of the code that they run.

    The same in every process that runs the same code. ValueError where something does not pickle.
    """
    sink = sha256()
    try:
        _Describer(sink).dump((_sources(), sys.version, value))
    except _Undescribed as error:
        raise ValueError(str(error)) from None
    except (pickle.PicklingError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ValueError(
            "X, a parameter, or something that a function reads cannot be described "
            f"({type(error).__name__}): pass what pickles."
        ) from None
    return sink.digest()


class _Undescribed(ValueError):
    """Something that decides about a release has no description, for this reason."""


class _Describer(pickle.Pickler):
    """Pickles functions and classes as their code, not as their names, and estimators by value."""

    def __init__(self, sink):
        super().__init__(_File(sink), protocol=5)
        # No references to earlier objects: whether equal texts are one object differs between
        # processes.
        self.fast = True
        self._open = []

    def reducer_override(self, value):
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
            of_kind = _of_class if isinstance(value, type) else _of_function
            return _described, (_name(value), of_kind(value))
        if isinstance(value, ModuleType):
            raise _Undescribed(f"the module {value.__name__} is of no installed package: name it.")
        if hasattr(value, "get_params"):
            return _described, _of_estimator(value)
        return NotImplemented


def _described(*parts):
    """Stand for an object in its description."""


class _File:
    """File that digests what is written to it."""

    def __init__(self, sink):
        self.write = sink.update


def _name(value):
    return getattr(value, "__module__", None), getattr(value, "__qualname__", value.__name__)


def _of_estimator(estimator):
    """Class, parameters and fitted state, which `clone` keeps of frozen ones."""
    parameters = estimator.get_params(deep=False)
    state = {name: value for name, value in vars(estimator).items() if name not in parameters}
    # In a class of your own, any parameter may decide about the release.
    ignored = _NOT_DIGESTED if _release_of(type(estimator)) else {"accountant"}
    bound = [
        (name, _ordered(value))
        for part in (parameters, state)
        for name, value in sorted(part.items())
        if name not in ignored
    ]
    return type(estimator), bound


def _ordered(value):
    """The same with containers in an order of their own."""
    if isinstance(value, dict):
        return [(_ordered(name), _ordered(part)) for name, part in value.items()]
    if isinstance(value, set | frozenset):
        return "set", sorted(map(digest_of, value))
    if type(value) in (list, tuple):
        return [_ordered(part) for part in value]
    return value


def _of_function(function):
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


def _global(value, names):
    """A global variable: of modules of your own what is read of them."""
    if isinstance(value, ModuleType) and _release_of(value) is None:
        return [(name, _global(vars(value)[name], names)) for name in names if name in vars(value)]
    return _ordered(value)


def _of_code(code):
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


def _of_class(kind):
    attributes = {
        name: (type(value).__name__, *_functions_of(value))
        for name, value in vars(kind).items()
        if name not in _ATTRIBUTES_OF_EVERY_CLASS
    }
    described = [(name, _ordered(value)) for name, value in sorted(attributes.items())]
    return type(kind), kind.__bases__, described


def _functions_of(attribute):
    """What a method or property is made of; other attributes as they are."""
    if isinstance(attribute, property):
        return attribute.fget, attribute.fset, attribute.fdel
    return (getattr(attribute, "__func__", attribute),)


def _release_of(value):
    """Version of the installed package that something belongs to; None for code of your own."""
    name = value.__name__ if isinstance(value, ModuleType) else value.__module__
    return _release_of_package(str(name).partition(".")[0])


@cache
def _release_of_package(name):
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
def _sources():
    """Digest of the code of this package."""
    folder, digest = Path(__file__).parents[1], sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
