"""The command line: ``python -m sklearn_dptda``."""

from sklearn_dptda._cli._main import main

__all__ = ["main"]
