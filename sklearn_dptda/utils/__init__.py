"""Validation, containers, tasks, the privacy checks, the door to scikit-learn's private helpers.

Everything above uses it; it uses ``privacy`` alone. Its underscored modules are internal; public
are ``utils.dask_backend``, ``utils.discovery`` and ``utils.estimator_checks``.
"""
