"""The records: none may stay in, or leave with, what is not noised."""

import pickle
import re

import numpy as np
from sklearn.base import clone

from sklearn_dptda.utils._privacy_checks._tools import (
    equal,
    fitted,
    observed,
    refusal,
    released,
)


def _digits(value):
    """The canary in the first places that any printing keeps."""
    return f"{value:.6f}"[2:7]


def _spellings(value):
    """The canary as machines write it."""
    yield f"{value:.10f}"[2:9].encode()
    for dtype in ("<f8", ">f8", "<f4"):
        yield np.array(value, dtype=dtype).tobytes()


def check_pickle_has_no_records(estimator, data):
    """A fitted estimator can be handed on as a file."""
    if data.canary_value is None:
        return
    dumped = pickle.dumps(fitted(estimator, data.canary), protocol=4)
    for spelling in _spellings(data.canary_value):
        assert spelling not in dumped


def check_state_holds_no_training_data(estimator, data):
    """No array among the attributes, at any depth, is made of values of the data."""
    flat = np.concatenate([np.ravel(part) for part in _arrays(data.X)]).astype(float)
    if np.isin(flat, (0, 1)).all():
        # Zeros and ones are found anywhere; the size of the fitted object is checked as well.
        return
    private = fitted(estimator, data.X)
    own = {id(value) for value in private.get_params().values()}
    for array in _arrays([v for v in vars(private).values() if id(v) not in own]):
        if array.size >= 8 and array.dtype.kind in "fiu":
            assert np.isin(array.ravel().astype(float), flat).mean() < 0.5


def _arrays(value, depth=6):
    if depth == 0:
        return
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, list | tuple | set):
        for item in value:
            yield from _arrays(item, depth - 1)
    elif isinstance(value, dict):
        yield from _arrays(list(value.values()), depth - 1)
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        yield from _arrays(list(vars(value).values()), depth - 1)


def check_repr_and_html_have_no_records(estimator, data):
    """What a notebook shows of a fitted estimator shows no record."""
    if data.canary_value is None:
        return
    private = fitted(estimator, data.canary)
    digits = _digits(data.canary_value)
    shown = [repr(private), str(private.privacy_guarantee_)]
    shown += [private._repr_html_(), private.privacy_guarantee_._repr_html_()]
    assert not any(digits in text for text in shown)


def check_errors_and_warnings_quote_no_records(estimator, data):
    """Messages about bad input and bad parameters name parameters, not values of records."""
    if data.canary_value is None:
        return
    digits = _digits(data.canary_value)
    cases = [(name, clone(estimator), bad) for name, bad in data.invalid.items()]
    cases += [
        (name, clone(estimator).set_params(**{name: object()}), data.canary)
        for name in estimator.get_params(deep=False)
    ]
    if "bounds" in estimator.get_params(deep=False):
        cases.append(("no bounds", clone(estimator).set_params(bounds=None), data.canary))
    for name, one, X in cases:
        error, messages = refusal(one, X)
        assert not any(digits in text for text in [str(error), *messages]), name


def check_fitted_size_does_not_depend_on_the_number_of_records(estimator, data):
    """Whoever holds the fitted object cannot weigh the data."""
    sizes = []
    for X in (data.X, data.larger):
        private = fitted(estimator, X, random_state=0)
        # Numbers may be printed longer or shorter; arrays may not grow.
        sizes.append(len(re.sub(rb"\d", b"", pickle.dumps(private, protocol=4))))
    assert abs(sizes[0] - sizes[1]) <= 200


def check_input_is_left_alone(estimator, data):
    """The caller's records are not changed in place."""
    before = pickle.dumps(data.X)
    released(estimator, data.X)
    assert pickle.dumps(data.X) == before


def check_records_outside_the_bounds_are_clipped_or_refused(estimator, data):
    """Bounds are enforced, never trusted."""
    if data.outside is None or "bounds" not in estimator.get_params(deep=False):
        return
    seeded = clone(estimator).set_params(random_state=0)
    if observed(seeded, data.outside)["error"] is None:
        assert equal(released(seeded, data.outside), released(seeded, data.clipped))
