"""Checks of private estimators, in five groups.

``CHECKS`` is a dictionary of all checks by name. ``make_check_data`` makes their inputs.
"""

from sklearn_dptda.utils._privacy_checks import (
    _border_checks,
    _budget_checks,
    _contract_checks,
    _noise_checks,
    _record_checks,
)
from sklearn_dptda.utils._privacy_checks._data_checks import CheckData, make_check_data

CHECKS = {
    name: value
    for module in (_contract_checks, _budget_checks, _record_checks, _noise_checks, _border_checks)
    for name, value in vars(module).items()
    if name.startswith("check_") and value.__module__ == module.__name__
}

__all__ = ["CHECKS", "CheckData", "make_check_data"]
