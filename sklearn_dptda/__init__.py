"""Topological data analysis under differential privacy, as scikit-learn estimators.

The names that are imported most are here; ``__init__.pyi`` lists them. A name or a folder is
imported when it is first used, so that ``import sklearn_dptda`` takes no time.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = "0.1.0"
