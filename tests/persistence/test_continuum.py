"""The exact sampler, compared with naive references in the continuum."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from sklearn_dptda.persistence import bottleneck_distance
from sklearn_dptda.published import PublishedPersistence


def mechanism(rate, max_points, name="exact", **options):
    """What draws one diagram of loops at that loss."""
    private = PublishedPersistence(
        rate, 0.0, 1, max_points, name, spike=0.5, sensitivity=1.0, upper=1.0, **options
    )
    drawn_by = private.fit([[0.0, 1.0]])._mechanism()
    assert drawn_by.rate == rate
    return drawn_by


def naive(diagram, slope, max_points, rng, n):
    """Uniform diagrams, kept with probability exp(-slope * distance)."""
    kept = []
    while len(kept) < n:
        points = np.sort(rng.uniform(0, 1, (max_points, 2)), axis=1)
        if rng.random() < np.exp(-slope * bottleneck_distance(points, diagram)):
            kept.append(points)
    return kept


def summaries(diagrams, target):
    distance = [bottleneck_distance(d, target) for d in diagrams]
    longest = [np.max(d[:, 1] - d[:, 0], initial=0) for d in diagrams]
    death = [np.max(d[:, 1], initial=0) for d in diagrams]
    return np.array([distance, longest, death])


@pytest.mark.laws
@pytest.mark.parametrize(
    "diagram", [[[0.1, 0.8], [0.2, 0.6], [0.5, 0.55]], [[0.3, 0.4], [0.3, 0.41]]]
)
def test_exact_sampler_agrees_with_rejection_in_the_continuum(diagram):
    # 300 draws each, and 2 x 3 tests at a false-alarm rate of 1e-6 each.
    diagram, rate, sensitivity = np.array(diagram), 4.0, 0.1
    exact = mechanism(rate, 3)
    draw = exact.sampler([diagram], (1,), sensitivity, 1.0)
    ours = [draw(i)[0] for i in range(300)]
    reference = naive(diagram, rate / (2 * sensitivity), 3, np.random.default_rng(0), 300)
    for a, b in zip(summaries(ours, diagram), summaries(reference, diagram), strict=True):
        # The grid has 80 steps, so values are compared up to one step of jitter.
        jitter = np.random.default_rng(1).uniform(-0.0125, 0.0125, len(a))
        assert ks_2samp(a + jitter, b + jitter).pvalue > 1e-6


@pytest.mark.laws
def test_exact_sampler_agrees_with_a_long_markov_chain():
    # 80 independent chains of 500 steps at a low rate, at which chains converge. There are 3
    # tests at a false-alarm rate of 1e-6 each.
    diagram = np.array([[0.1, 0.8], [0.5, 0.55]])
    chain = mechanism(2.0, 2, "mcmc", n_iter=500, proposal_scale=0.15)
    theirs = [chain.release([diagram], (1,), 0.1, 1.0, i)[0] for i in range(80)]
    exact = mechanism(2.0, 2)
    draw = exact.sampler([diagram], (1,), 0.1, 1.0)
    ours = [draw(i)[0] for i in range(400)]
    for a, b in zip(summaries(ours, diagram), summaries(theirs, diagram), strict=True):
        assert ks_2samp(a, b).pvalue > 1e-6
