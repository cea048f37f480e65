"""Topological data analysis under differential privacy, with scikit-learn estimators.

The most common names can be imported from here, and ``__init__.pyi`` lists them. A name or a
subpackage is loaded at its first use, so that ``import sklearn_dptda`` is fast.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = "0.1.0"
