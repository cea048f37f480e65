"""Warnings about privacy."""


class PrivacyLeakWarning(RuntimeWarning):
    """A quantity that should be public was computed from the data.

    The result is still returned, as the ecosystem does, but the stated
    guarantee no longer covers everything that the result reveals. Pass the
    quantity that the warning names, and the warning goes away.
    """
