"""The command line: ``python -m sklearn_dptda``.

Commands are modules of their own with ``add_parser`` and ``run``, listed in ``_main``. What they
share are the reading of points, the arguments, errors that quote no record, and the way in which
those that pay do it: plan, refuse, read, pay, write.
"""

from sklearn_dptda._cli._main import main

__all__ = ["main"]
