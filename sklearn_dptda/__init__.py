"""Topological data analysis under differential privacy, as scikit-learn estimators."""
