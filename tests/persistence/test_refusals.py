"""What diagrams, profiles, counts, their distances and their bounds refuse, and unpaid.

tests/test_refusals.py tries values of a wrong kind.
"""

import math

import numpy as np
import pytest

from sklearn_dptda import PersistenceProfile, PrivateBettiNumbers, PrivatePersistence
from sklearn_dptda.persistence import (
    DiagramErrors,
    bottleneck_distance,
    dilation_dissimilarity,
    shift_invariant_bottleneck_distance,
)
from sklearn_dptda.published import (
    PublishedPersistence,
    bottleneck_error_floor,
    mean_error_floor,
    published_error_bound,
    published_error_floor,
    sampling_error_bound,
)
from tests._refusals import by_name, refusals
from tests.persistence._long_features import filtration, loops
from tests.persistence._variants import variant

ITEMS = [filtration(loops([0.3, 0.1]), 0.01)]
SPACE = [filtration(np.zeros((3, 3, 3)), 0.01)]
PAIR = np.array([[1.0, 3.0], [0.5, 1.0]])


def errors_before(private=None, sensitivity=0.01, upper=1.0, **other):
    """Errors of diagrams that are known before a release."""
    private = PrivatePersistence() if private is None else private
    return DiagramErrors(private, [(sensitivity, upper)], **other)


BOUNDS = by_name(
    confidence=[1.0],
    n_features=[-1, (1, 2, 3), (1, -1), 1.5],
    floor=[math.nan, -1.0],
    sensitivity=[0.0],
    upper=[math.inf],
)
FLOORS = by_name(epsilon=[0.0, math.nan], sensitivity=[0.0], upper=[math.inf])
WORST = {"epsilon": 1.0, "sensitivity": 0.1, "upper": 1.0}
CLOUD = {"epsilon": 1.0, "n": 100, "m": 0.2, "diameter": 1.0}
SAMPLED = {"n": 10, "m": 0.2, "diameter": 1.0, "n_nodes": 5}
TOLERANCES = [("tol", *({"tol": tol} for tol in (0.0, -1.0, np.nan, np.inf)))]

REFUSED = {
    "diagrams": (
        lambda **options: PrivatePersistence(**options).fit(ITEMS),
        by_name(max_points=[0, 1000], spike=[1.0], homology_dimensions=[(), (0, 0)]),
    ),
    "functions": (
        lambda X: PrivatePersistence(sensitivity=0.1, upper=1.0).fit(X),
        [
            ("NaN", [[[np.nan, 0.0], [0.0, 1.0]]]),
            ("infinity", [np.array([[0.0, np.inf]])]),
            ("neither", ["a"]),
        ],
    ),
    "shares": (
        lambda epsilon: PrivatePersistence(epsilon, clipped_share=True).fit(ITEMS),
        [("epsilon must be between", 5e-324, 1e-15, 1e-6)],
    ),
    "changed diagrams": (
        lambda **new: PrivatePersistence().fit(ITEMS).set_params(**new).transform(ITEMS),
        [("fit again", {"epsilon": 1e4})],
    ),
    "profiles": (
        lambda **options: PersistenceProfile(**options).fit(ITEMS),
        by_name(
            epsilon=[1e-9],
            n_longest=[0, 1.5],
            confidence=[1.0],
            homology_dimensions=[(), 2],
        ),
    ),
    "far numbers": (
        lambda **public: PersistenceProfile(**public).fit([np.zeros((4, 4))]),
        [
            (
                r"sensitivity=.* and upper=.* are too far apart",
                {"sensitivity": 1e-12, "upper": 1.0},
                {"sensitivity": 1e-310, "upper": 1e-305},
            ),
        ],
    ),
    "changed profiles": (
        lambda method, X: getattr(
            PersistenceProfile(1.0).fit(ITEMS).set_params(confidence=0.5), method
        )(X),
        [
            (
                "fit again",
                {"method": "transform", "X": ITEMS},
                {"method": "confidence_intervals", "X": np.zeros((1, 4))},
            ),
        ],
    ),
    "counts": (
        lambda **options: PrivateBettiNumbers(**options).fit_transform(ITEMS),
        [
            *by_name(
                epsilon=[1e-9],
                threshold=[0.0, (0.1, 0.2, 0.3), (0.1, -0.2), ("a", 0.2)],
                max_count=[0],
                confidence=[0.0],
                homology_dimensions=[(1, 1)],
            ),
            ("threshold=100.0 must be below upper=", {"threshold": 100.0}),
            ("max_count=100 makes .* combinations of counts and thresholds", {"max_count": 100}),
            ("max_count", {"threshold": 0.1, "max_count": 101}),
        ],
    ),
    "counts in space": (
        lambda most: PrivateBettiNumbers(1.0, 0.2, (0, 1, 2), max_count=most).fit(SPACE),
        [("max_count=100 makes 1020100 combinations", 100)],
    ),
    "distances": (
        lambda diagram: bottleneck_distance(diagram, [[0, 1]]),
        [
            ("death before", [[1, 0]]),
            ("NaN", [[np.nan, 1]]),
            ("shape", [[1, 2, 3]]),
            ("beyond", [[-1e308, 1e308]]),
        ],
    ),
    "shifted distances": (
        lambda first=PAIR, **options: shift_invariant_bottleneck_distance(first, PAIR, **options),
        [
            ("scale", {"scale": "root"}),
            ("positive", {"first": [[0, 1]], "scale": "log"}),
            ("infinite birth", {"first": [[-np.inf, 0]]}),
            *TOLERANCES,
        ],
    ),
    "dilations": (
        lambda first=PAIR, **options: dilation_dissimilarity(first, PAIR, **options),
        [("negative", {"first": [[-1, 1]]}), ("first", {"first": [[2, 1]]}), *TOLERANCES],
    ),
    "error bounds": (errors_before, BOUNDS),
    "no error": (
        lambda error: errors_before(PrivatePersistence(5.0, max_points=2)).epsilon_for(error),
        [("error", 0.0)],
    ),
    "chains": (errors_before, [("mcmc", PublishedPersistence())]),
    "base measures": (
        lambda name: errors_before(variant(base_measure=name)).bound,
        [("Unknown base measure 'gamma'", "gamma")],
    ),
    "error floors": (
        lambda **other: bottleneck_error_floor(**{**WORST, **other}),
        [*FLOORS, *by_name(confidence=[1.0])],
    ),
    "mean error floors": (lambda **other: mean_error_floor(**{**WORST, **other}), FLOORS),
    "published bounds": (
        lambda **other: published_error_bound(**{**CLOUD, **other}),
        [
            *by_name(
                epsilon=[0.0, math.nan],
                diameter=[math.inf],
                confidence=[0.0],
                max_points=[-1],
                n_places=[0],
                n_dimensions=[0],
                approximation=[-0.1],
            ),
            ("n must", {"n": 0}),
            ("m must", {"m": 1.5}),
        ],
    ),
    "published floors": (
        lambda **other: published_error_floor(**{**CLOUD, **other}),
        [("m must be of at most", {"m": 0.6}), *by_name(confidence=[1.0])],
    ),
    "bounds of samples": (
        lambda **other: sampling_error_bound(**{**SAMPLED, **other}),
        by_name(n=[0], m=[0.0], diameter=[-1.0], n_nodes=[0], confidence=[1.0]),
    ),
}


@refusals(REFUSED)
@pytest.mark.filterwarnings("ignore:noise hides every feature")
def test_persistence_refuses_by_name_and_unpaid(refuse):
    refuse()
