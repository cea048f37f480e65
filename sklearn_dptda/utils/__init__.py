"""Input validation, containers, parallel tasks and privacy checks.

Most other packages use it, and it uses only ``privacy``. Modules that begin with an underscore are
internal. The public modules are ``utils.discovery`` and ``utils.estimator_checks``.
"""
