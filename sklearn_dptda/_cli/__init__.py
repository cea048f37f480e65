"""The command line: ``python -m sklearn_dptda``.

Commands are modules of their own with ``add_parser`` and ``run``. What they share are the reading
of points, the arguments, and errors that quote no record.
"""

from sklearn_dptda._cli._main import main

__all__ = ["main"]
