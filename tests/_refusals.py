"""Tables of calls that must be refused: by an error that says why, and unpaid."""

import math
from functools import partial

import pytest

from sklearn_dptda.privacy import PrivacyAccountant


def by_name(**values):
    """Rows of impossible values of keywords, whose errors must contain their names."""
    return [(name, *({name: value} for value in each)) for name, each in values.items()]


def refusals(table):
    """Parametrize a test by ``refuse``, which makes the calls of one row of a table.

    Each entry of the table has a call and its rows, and, unless it is ValueError, the error. A row
    has a text that the error must match, and what the call must refuse: dicts are keywords, and
    others the only argument.
    """
    cases = [
        pytest.param(partial(_refuse, call, *row, error=(*error, ValueError)[0]), id=f"{name}-{i}")
        for name, (call, rows, *error) in table.items()
        for i, row in enumerate(rows)
    ]
    return pytest.mark.parametrize("refuse", cases)


def _refuse(call, message, *values, error):
    for value in values:
        given, words = ((), value) if isinstance(value, dict) else ((value,), {})
        refuses_unpaid(message, partial(call, *given, **words), error=error)


def refuses_unpaid(message, call, /, *arguments, **options):
    """Call a function that must raise an error with a text, and pay nothing."""
    with PrivacyAccountant(math.inf) as accountant:
        said = refuses(message, call, *arguments, **options)
    assert not accountant.spends()
    return said


def refuses(message, call, /, *arguments, error=ValueError, **options):
    """Call a function that must raise an error with a text, and return what the error says."""
    with pytest.raises(error, match=message) as caught:
        call(*arguments, **options)
    return str(caught.value)


def failing(error):
    """Return a function that raises an error, whatever it is given."""

    def fail(*_, **__):
        raise error

    return fail
