"""The accountant of the ``with`` block that a release is made in."""

from sklearn_dptda.privacy._accountant import PrivacyAccountant
from sklearn_dptda.privacy._with_blocks import BLOCKS


def default_accountant() -> PrivacyAccountant | None:
    """Return the accountant of the innermost ``with`` block, or None.

    Raises
    ------
    RuntimeError
        Outside of any block, in a worker thread that could belong to several
        of them, and in a thread in which only other tasks have blocks.
    """
    accountant: PrivacyAccountant | None = BLOCKS.accountant()
    return accountant
