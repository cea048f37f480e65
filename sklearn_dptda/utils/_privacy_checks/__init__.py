"""Checks of private estimators, in three groups.

``CHECKS`` is a dictionary of all checks by name. ``make_check_data`` makes their inputs.
"""

from sklearn_dptda.utils._privacy_checks import (
    _border_checks,
    _contract_checks,
    _output_checks,
)
from sklearn_dptda.utils._privacy_checks._check_inputs import CheckData, make_check_data

CHECKS = {
    name: value
    for module in (_contract_checks, _output_checks, _border_checks)
    for name, value in vars(module).items()
    if name.startswith("check_") and value.__module__ == module.__name__
}

__all__ = ["CHECKS", "CheckData", "make_check_data"]
