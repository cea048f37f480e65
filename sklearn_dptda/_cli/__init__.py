"""The command line: ``python -m sklearn_dptda``.

The module ``_main`` lists the commands. Their options are the parameters of the estimators that
they run. Each command that spends privacy budget is a ``PayingCommand``, which goes one way: plan,
refuse, read, pay, write. Error messages never quote a record.
"""

from sklearn_dptda._cli._main import main

__all__ = ["main"]
