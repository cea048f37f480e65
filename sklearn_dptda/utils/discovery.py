"""List of all estimators of the package, for checks that must cover all of them."""

import importlib
import inspect
import pkgutil

from sklearn.base import BaseEstimator

from sklearn_dptda.privacy._estimator import is_private

# Subpackages that use this one are found by name at the call, because they cannot be imported here.
_ROOT = __name__.partition(".")[0]


def all_estimators(*, private: bool | None = None) -> list[tuple[str, type[BaseEstimator]]]:
    """List the public estimators of the package.

    Parameters
    ----------
    private : bool, default=None
        True lists the private estimators, False the others, and None all of them.

    Returns
    -------
    list of (str, type)
        Names and classes, sorted by name.

    Examples
    --------
    >>> from sklearn_dptda.utils.discovery import all_estimators
    >>> "PrivatePersistence" in dict(all_estimators(private=True))
    True
    """
    kinds = {}
    for module in pkgutil.walk_packages(importlib.import_module(_ROOT).__path__, f"{_ROOT}."):
        if module.name.split(".")[-1].startswith("_"):
            continue
        public = importlib.import_module(module.name)
        for name in getattr(public, "__all__", ()):
            value = getattr(public, name)
            # Base classes for your own estimators have no fit.
            estimator = inspect.isclass(value) and issubclass(value, BaseEstimator)
            if estimator and hasattr(value, "fit"):
                kinds[name] = value
    return [
        (name, kind)
        for name, kind in sorted(kinds.items())
        if private is None or is_private(kind()) == private
    ]
