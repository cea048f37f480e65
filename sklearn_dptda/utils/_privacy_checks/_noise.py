"""The noise: fresh, independent, and as much of it as epsilon asks for."""

import math
import pickle
import random
from itertools import combinations

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from sklearn_dptda.privacy import audit_epsilon
from sklearn_dptda.utils._privacy_checks._tools import (
    close,
    distance,
    equal,
    released,
    releases_in_transform,
    tags_of,
)


def check_seeds_reproduce(estimator, data):
    """The same seed gives the same release, in a copy as well."""
    first = released(estimator, data.X, random_state=7)
    assert equal(first, released(estimator, data.X, random_state=7))
    again = pickle.loads(pickle.dumps(clone(estimator)))
    assert equal(first, released(again, data.X, random_state=7))


def check_seeds_are_independent(estimator, data):
    """Different seeds give different releases."""
    releases = [released(estimator, data.X, random_state=seed) for seed in range(6)]
    assert not any(equal(a, b) for a, b in combinations(releases, 2))


def check_entropy_is_fresh(estimator, data):
    """Without a seed no two releases agree, whatever the global generators are set to."""
    shared = check_random_state(None)
    state = shared.get_state(), random.getstate()
    releases = []
    try:
        for _ in range(4):
            shared.seed(0)
            random.seed(0)
            releases.append(released(estimator, data.X, random_state=None))
    finally:
        shared.set_state(state[0])
        random.setstate(state[1])
    assert not any(equal(a, b) for a, b in combinations(releases, 2))


def check_global_generators_are_left_alone(estimator, data):
    """A release neither reads nor moves NumPy's or Python's global generator."""
    shared = check_random_state(None)
    before = pickle.dumps(shared.get_state()), random.getstate()
    for seed in (None, 0):
        released(estimator, data.X, random_state=seed)
    assert (pickle.dumps(shared.get_state()), random.getstate()) == before


def check_items_get_independent_noise(estimator, data):
    """Two equal items of one call are released differently."""
    if not releases_in_transform(estimator) or not isinstance(data.X, list):
        return
    for seed in (None, 0):
        first, second = released(estimator, [data.X[0]] * 2, random_state=seed)
        assert not equal(first, second)


def check_infinite_epsilon_equals_the_exact_sibling(estimator, data):
    """Without noise the estimator is its non-private sibling."""
    make_sibling = tags_of(estimator).exact_sibling
    if make_sibling is None:
        return
    exact = make_sibling(clone(estimator).set_params(epsilon=math.inf))
    assert close(released(estimator, data.X, epsilon=math.inf), released(exact, data.X))


def check_a_release_is_not_exact(estimator, data):
    """There is noise at all."""
    exact = released(estimator, data.X, epsilon=math.inf)
    assert not any(
        close(released(estimator, data.X, random_state=seed), exact) for seed in range(3)
    )


def check_noise_falls_with_epsilon(estimator, data):
    """The mean error over 15 releases falls from epsilon 0.05 to 1 to 1000."""
    exact = released(estimator, data.X, epsilon=math.inf)
    errors = [
        np.mean(
            [
                distance(released(estimator, data.X, epsilon=epsilon, random_state=seed), exact)
                for seed in range(15)
            ]
        )
        for epsilon in (0.05, 1.0, 1000.0)
    ]
    assert errors[0] >= errors[1] > errors[2]


def check_workers_change_nothing(estimator, data):
    """The number of workers is no source of randomness."""
    if "n_jobs" not in estimator.get_params(deep=False):
        return
    serial = released(estimator, data.X, random_state=0, n_jobs=1)
    assert equal(serial, released(estimator, data.X, random_state=0, n_jobs=2))


def check_a_short_audit_finds_nothing(estimator, data):
    """300 runs on the first pair of neighbours; false alarm below 1e-6.

    Too short to see a wrong constant, long enough to see noise that is
    missing or added to the wrong thing.
    """
    pair = data.neighbours[0]
    claimed = clone(estimator)
    delta = claimed.get_params().get("delta", 0.0)
    result = audit_epsilon(
        claimed,
        pair.first,
        pair.second,
        delta=delta,
        n_runs=300,
        confidence=1 - 1e-6,
        random_state=0,
    )
    assert not result.refutes(claimed.epsilon), str(result)
