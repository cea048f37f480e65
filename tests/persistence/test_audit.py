"""End-to-end audit of the pipeline, and a broken twin that it must catch."""

import numpy as np
import pytest
from scipy.stats import beta

from sklearn_dptda import DTMFiltration, PrivatePersistence
from sklearn_dptda.filtration import dtm_worst_case

CONFIDENCE = 1 - 1e-6
EPSILON, N_RUNS = 1.0, 10_000


def lower_bound(event_first, event_second):
    """Lower confidence bound of epsilon from counts of one event (Clopper and Pearson)."""
    n = len(event_first)
    tail = (1 - CONFIDENCE) / 4
    bounds = []
    for a, b in ((event_first.sum(), event_second.sum()), (event_second.sum(), event_first.sum())):
        low = beta.ppf(tail, a, n - a + 1) if a > 0 else 0.0
        high = beta.ppf(1 - tail, b + 1, n - b) if b < n else 1.0
        bounds.append(np.log(low / high) if low > 0 else -np.inf)
    return max(bounds)


def births(points, seed, factor=1.0):
    """Births of the oldest component over many releases; ``factor`` > 1 breaks the promise."""
    filtration = DTMFiltration(m=1.0, bounds=(0, 1), resolution=3).fit_transform([points])[0]
    private = PrivatePersistence(
        epsilon=factor * EPSILON,
        homology_dimensions=0,
        max_points=1,
        spike=0.999,  # hardly any other points, so that the birth alone bears the loss
        random_state=seed,
    )
    return np.array(
        [d[0, 0] if len(d) else 1.0 for d in private.fit_transform([filtration] * N_RUNS)]
    )


def audit(factor):
    # The birth moves away from zero by the full sensitivity: a release at zero tells most.
    first, second = dtm_worst_case(1.0, 16, [0.0], [1.0])
    p, q = births(first, 1, factor) == 0, births(second, 2, factor) == 0
    return max(lower_bound(p, q), lower_bound(~p, ~q))


@pytest.mark.slow
def test_honest_pipeline_passes():
    assert audit(1.0) <= EPSILON


@pytest.mark.slow
def test_twin_with_half_the_noise_is_caught():
    assert audit(2.0) > EPSILON
