"""Checks of the records: they are in no output without noise."""

import io
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import clone

from sklearn_dptda._typing import BoolArray, FloatArray
from sklearn_dptda.privacy._release import as_arrays, releases_in_transform
from sklearn_dptda.utils._privacy_checks._check_tools import (
    equal,
    fitted,
    refusal,
    release_and_state,
    released,
    tags_of,
)
from sklearn_dptda.utils._privacy_checks._data_checks import CheckData


def _digits(value: float) -> str:
    """Return the first decimals of the canary, which printed numbers would contain."""
    return f"{value:.6f}"[2:7]


def _spellings(value: float) -> Iterator[bytes]:
    """Yield representations of the canary as bytes."""
    yield f"{value:.10f}"[2:9].encode()
    for dtype in ("<f8", ">f8", "<f4"):
        yield np.array(value, dtype=dtype).tobytes()


def check_pickle_has_no_records(estimator: Any, data: CheckData) -> None:
    """The pickle of a fitted estimator contains no record."""
    if data.canary_value is None:
        return
    dumped = pickle.dumps(fitted(estimator, data.canary), protocol=4)
    for spelling in _spellings(data.canary_value):
        assert spelling not in dumped


def check_what_noise_does_not_touch_is_public(estimator: Any, data: CheckData) -> None:
    """Numbers that are the same under 20 seeds are the same for neighbours.

    Each number of the release and of the state, including hidden attributes, is
    either noisy or does not depend on the records.
    """
    for pair in data.neighbours:
        first, second = (_constants(estimator, X) for X in (pair.first, pair.second))
        for (one, fixed_one), (other, fixed_other) in zip(first, second, strict=False):
            if one.shape == other.shape:
                fixed = fixed_one & fixed_other
                assert np.array_equal(one[fixed], other[fixed], equal_nan=True), pair.name
            else:
                assert not (fixed_one.all() and fixed_other.all()), pair.name


def _constants(estimator: Any, X: Any) -> list[tuple[FloatArray, BoolArray]]:
    """Return arrays of release and state, and where they are the same under all seeds."""
    # At a small epsilon, a noisy bit stays the same 20 times with probability below 1e-5.
    runs = [as_arrays(release_and_state(estimator, X, seed, epsilon=0.05)) for seed in range(20)]
    constants = []
    for parts in zip(*runs, strict=False):
        if len({part.shape for part in parts}) > 1:
            constants.append((parts[0], np.zeros(parts[0].shape, dtype=bool)))
            continue
        same = [(part == parts[0]) | (np.isnan(part) & np.isnan(parts[0])) for part in parts]
        constants.append((parts[0], np.logical_and.reduce(same)))
    return constants


def check_repr_and_html_have_no_records(estimator: Any, data: CheckData) -> None:
    """The representations of a fitted estimator, as text and in a notebook, show no record."""
    if data.canary_value is None:
        return
    private = fitted(estimator, data.canary)
    digits = _digits(data.canary_value)
    shown = [repr(private), str(private.privacy_guarantee_)]
    shown += [private._repr_html_(), private.privacy_guarantee_._repr_html_()]
    assert not any(digits in text for text in shown)


def check_errors_and_warnings_quote_no_records(estimator: Any, data: CheckData) -> None:
    """Messages about invalid input and parameters do not contain values of records."""
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


def check_fitted_size_does_not_depend_on_the_number_of_records(
    estimator: Any, data: CheckData
) -> None:
    """The size of a fitted estimator does not reveal the number of records."""
    sizes = []
    for X in (data.X, data.larger):
        private = fitted(estimator, X, random_state=0)
        size = len(pickle.dumps(private, protocol=4))
        if tags_of(estimator).ragged and not releases_in_transform(estimator):
            # The number of rows of the release is private output itself.
            size = _size_without_arrays(private)
        if releases_in_transform(estimator):
            # The number of clouds is public, and so are arrays with one number for each cloud.
            arrays = (v for v in vars(private).values() if isinstance(v, np.ndarray))
            size -= sum(array.nbytes for array in arrays if array.shape == (len(X),))
        sizes.append(size)
    # The text of a number may be longer or shorter, but nothing may grow with the records.
    assert abs(sizes[0] - sizes[1]) <= 32


def _size_without_arrays(estimator: Any) -> int:
    """Size of a pickle in which every array is empty."""
    buffer = io.BytesIO()
    _ArraysAreEmpty(buffer, protocol=4).dump(estimator)
    return len(buffer.getvalue())


class _ArraysAreEmpty(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        return (np.empty, (0,)) if isinstance(value, np.ndarray) else NotImplemented


def check_input_is_left_alone(estimator: Any, data: CheckData) -> None:
    """The input is not changed in place."""
    before = pickle.dumps(data.X)
    released(estimator, data.X)
    assert pickle.dumps(data.X) == before


def check_records_outside_the_bounds_are_clipped(estimator: Any, data: CheckData) -> None:
    """Records outside of the bounds are clipped. An error would distinguish neighbours."""
    if data.outside is None or "bounds" not in estimator.get_params(deep=False):
        return
    seeded = clone(estimator).set_params(random_state=0)
    parts = [released(seeded, X) for X in (data.outside, data.clipped)]
    if not releases_in_transform(estimator):
        # The share of the records outside of the bounds is a release that may differ.
        for learnt in parts:
            learnt.pop("clipped_share_", None)
    assert equal(*parts)
