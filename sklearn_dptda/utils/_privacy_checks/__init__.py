"""What a private estimator is held to, in four groups of checks."""

from sklearn_dptda.utils._privacy_checks import _budget, _contract, _noise, _records
from sklearn_dptda.utils._privacy_checks._data import CheckData, make_check_data

CHECKS = {
    name: value
    for module in (_contract, _budget, _records, _noise)
    for name, value in vars(module).items()
    if name.startswith("check_") and value.__module__ == module.__name__
}

__all__ = ["CHECKS", "CheckData", "make_check_data"]
