"""One contract of refusals for every parameter of every estimator.

A value that a parameter cannot have is refused by an error that names the parameter, and nothing is
paid. Estimators and their parameters are found by discovery, so that none can be forgotten. Only
refusals with a remedy of their own, and those of combinations of parameters, are tested elsewhere.
"""

import math
import re
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils import get_tags

from sklearn_dptda import DTMFiltration
from sklearn_dptda.privacy import PrivacyAccountant
from sklearn_dptda.privacy._estimator import is_private
from sklearn_dptda.utils.discovery import all_estimators
from sklearn_dptda.utils.estimator_checks import make_instance

IMPOSSIBLE = [-1, math.nan, -math.inf, "no such value", object(), [], {}, b"bytes"]
# What some parameters mean by one of these values: all cores, no column with bounds or categories,
# the name of a privacy unit, and an upper bound of negative functions.
POSSIBLE = {
    "n_jobs": [-1],
    "bounds": [{}],
    "categories": [{}],
    # No column.
    "missing": [[]],
    "unit": ["no such value"],
    "upper": [-1],
    # Cross-validation of searches of clouds alone.
    "cv": [[], {}, b"bytes"],
    # The estimator as it is.
    "param_grid": [{}],
}
ROWS = np.random.default_rng(0).uniform(-1, 1, (60, 3))
ESTIMATORS = dict(all_estimators())


def instance_of(name):
    kind = ESTIMATORS[name]
    estimator = make_instance(kind) if is_private(kind()) else kind()
    # Filtrations carry both of these.
    carried = {"sensitivity", "upper"} & estimator.get_params().keys()
    return estimator.set_params(**dict.fromkeys(carried))


def inputs_of(estimator):
    """The arguments of fit in the form that an estimator takes, public ones as well as private."""
    tags = get_tags(estimator)
    functions = DTMFiltration(0.3, bounds=(-1, 1), resolution=7).fit_transform([ROWS[:30, :2]])
    kinds = {"rows": ROWS, "clouds": [ROWS[:, :2]] * 2, "functions": functions}
    kinds["graph"] = np.ones((8, 8)) - np.eye(8)
    private = getattr(tags, "privacy", None)
    if private is not None:
        return (kinds[private.input], np.arange(60) % 2)[: 1 + private.labels]
    of_others = {"CubicalPersistence": "functions", "DTMFiltration": "clouds"}
    of_others |= {"KernelDistanceFiltration": "clouds"}
    if type(estimator).__name__ == "DiagramFeatures":
        return ([[np.array([[0.0, 1.0]]), np.array([[0.2, 0.9]])]] * 2,)
    return (kinds[of_others.get(type(estimator).__name__, "rows")],)


def refusal_of(estimator, parameter, value):
    """The message with which fit refuses a value, or None; what was paid must be released."""
    accountant = PrivacyAccountant(math.inf)
    estimator = clone(estimator).set_params(**{parameter: value})
    if "accountant" in estimator.get_params() and parameter != "accountant":
        estimator.set_params(accountant=accountant)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator.fit(*inputs_of(estimator))
    except (ValueError, TypeError) as error:
        assert len(accountant) == 0, "paid and refused"
        return str(error)
    return None


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_refuse_impossible_parameters_by_name_and_unpaid(name):
    estimator = instance_of(name)
    for parameter in estimator.get_params(deep=False):
        for value in IMPOSSIBLE:
            message = refusal_of(estimator, parameter, value)
            if message is None:
                assert value in POSSIBLE.get(parameter, []), (parameter, value)
            else:
                # A name of one letter is a word of some sentences, too.
                named = rf"\b{parameter}\b" if len(parameter) > 1 else rf"(^|'){parameter}\b"
                assert re.search(named, message, re.IGNORECASE), (parameter, value, message)
