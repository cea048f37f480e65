"""The command line: ``python -m sklearn_dptda``.

The module ``_main`` lists the commands. Each command that spends privacy budget describes a
``CommandRelease``, which ``run_paid`` makes in five steps: plan, refuse, read, pay, write.
Error messages never quote a record.
"""

from sklearn_dptda._cli._main import main

__all__ = ["main"]
