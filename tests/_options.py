"""Options of all private estimators, found by discovery, for contracts that try each of them."""

from sklearn.base import clone

from sklearn_dptda.utils._sklearn import StrOptions
from sklearn_dptda.utils.discovery import all_estimators
from sklearn_dptda.utils.estimator_checks import make_instance

PRIVATE = dict(all_estimators(private=True))

# What is drawn is told by "epsilon"; the others change nothing that enters a draw.
NO_STATISTIC = {
    "accountant", "random_state", "n_jobs", "unit", "confidence", "epsilon",
    # Post-processing of what was drawn.
    "min_cluster_weight", "merge_threshold",
    # Tried with functions of clouds.
    "sensitivity", "upper", "filtration", "clipped_share",
    # All runs of a search draw more than it costs: tests/privacy/test_best_of_runs.py.
    "law", "max_runs", "pad", "estimator", "param_grid", "cv", "scoring",
}  # fmt: skip
# Values beside the default of parameters that are neither words nor Boolean, and what a word needs
# to have an effect.
VALUES = {
    "bounds": [None, ([0.0, -1.0], [2.0, 1.0]), (-1000.0, 1000.0)],
    "delta": [0.0, {"delta": 0.0, "adjacency": "replace-one"}],
    "covariance_share": [0.5],
    "n_clusters": [None, 3],
    "n_components": [1],
    "n_landmarks": [3],
    "n_iter": [1],
    "n_bins": [None],
    "n_cells": [4, [2, 3]],
    "n_steps": [1],
    "max_depth": [None],
    "dimension": [1],
    "alpha": [20.0],
    "nodes": [20],
    "norm_bound": [0.5],
    "marginal_share": [0.0, 0.5],
    "start": [(0.0, 1.0)],
    "classes": [[0, 1, 2]],
    "candidates": [[0.3, 0.5]],
    "rank": [2],
    "homology_dimension": [1],
    "homology_dimensions": [0, (1,), (0,)],
    "max_points": [1],
    "max_count": [2],
    "mean_points": [{"mean_points": 1.0, "base_measure": "poisson"}],
    "n_longest": [1],
    "proposal_scale": [{"proposal_scale": 0.2, "mechanism": "mcmc"}],
    "spike": [0.5],
    "threshold": [0.3],
    "groups": [
        "who",
        {"groups": "who", "adjacency": "replace-one"},
        {"groups": "who", "delta": 0.0},
    ],
    "categories": [{"categories": {"kind": ["a", "b", "c"]}}],
    "method": [{"method": "tree", "delta": 1e-5}],
    "target": [{"categories": {"kind": ["a", "b", "c"]}, "target": "kind"}],
}
WITH = {
    "metric": {"adjacency": "replace-one"},
    "mcmc": {"n_iter": 2},
}
# Their noise is always Gaussian.
GAUSSIAN = {"DPMoG", "DPMoGMorse", "DPLandmarkToMATo", "PrivateLandmarks", "PublishedMixture"}


def words_of(kind, name):
    """The values of a parameter that are words or Boolean, from its constraints."""
    found = []
    for constraint in kind._parameter_constraints.get(name, []):
        if isinstance(constraint, StrOptions):
            found += sorted(constraint.options)
        if constraint == "boolean":
            found += [False, True]
    return found


def inherited_by(kind):
    """Parameters of other estimators from which a class derives, except for those of people."""
    bases = [base for base in kind.__mro__[1:] if base in PRIVATE.values()]
    names = {name for base in bases for name in base._parameter_constraints}
    return names - {"adjacency", "groups"}


def options_of(kind, tried):
    """Instances of a class: the default one, and one for each option of ``tried`` parameters."""
    default = make_instance(kind).set_params(random_state=0)
    yield "", default
    parameters = default.get_params(deep=False)
    for name in sorted(parameters.keys() & tried - NO_STATISTIC):
        for value in [*words_of(kind, name), *VALUES.get(name, [])]:
            changes = value if isinstance(value, dict) else {name: value}
            needed = WITH.get(name, {}) | WITH.get(value if isinstance(value, str) else "", {})
            changes = {k: v for k, v in needed.items() if k in parameters} | changes
            unknown = changes.keys() - parameters.keys()
            same = changes == {k: parameters[k] for k in changes.keys() & parameters.keys()}
            refused = value is None and None not in kind._parameter_constraints[name]
            if not (
                same or unknown or refused or (kind.__name__ in GAUSSIAN and "delta" in changes)
            ):
                yield f"{name}={value!r}", clone(default).set_params(**changes)
