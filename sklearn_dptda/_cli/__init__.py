"""The command line: ``python -m sklearn_dptda``.

``_main`` lists the commands. Each that pays describes a ``PaidRelease``, and ``run_paid`` makes it:
plan, refuse, read, pay, write. No error quotes a record.
"""

from sklearn_dptda._cli._main import main

__all__ = ["main"]
