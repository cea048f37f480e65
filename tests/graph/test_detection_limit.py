"""Detection limits of blocks, compared with releases."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from sklearn_dptda.graph import AdjacencySpectralEmbedding, EdgeFlip, make_sbm
from sklearn_dptda.published import detection_limit
from tests._refusals import refuses

FALSE_ALARM = 1e-6
Z95 = 1.6448536269514722


def fixed_graph(n, k, density, difference, rng):
    """Graph with as many edges within the first nodes, and elsewhere, as densities ask for."""
    rows, columns = np.triu_indices(n, 1)
    inside = columns < k
    A = np.zeros((n, n))
    for part, share in ((inside, density + difference), (~inside, density)):
        places = np.flatnonzero(part)
        chosen = rng.permutation(places)[: math.ceil(share * len(places))]
        A[rows[chosen], columns[chosen]] = 1
    return A + A.T


def score(noisy, k, p, density):
    """How far the block's density is above the others', in deviations of equal ones."""
    A = noisy.toarray()
    n = len(A)
    inside, pairs = A[:k, :k].sum() / 2, k * (k - 1) / 2
    others = n * (n - 1) / 2 - pairs
    difference = inside / pairs - (A.sum() / 2 - inside) / others
    hit = p + (1 - 2 * p) * (density or 0.0)
    return difference / math.sqrt(hit * (1 - hit) * (1 / pairs + 1 / others))


def seen(graph, k, epsilon, density=None, n_releases=500):
    """Releases of which a test at 5 % takes the block for denser."""
    count = 0
    for seed in range(n_releases):
        noisy = EdgeFlip(epsilon, random_state=seed).fit_transform(graph(seed))
        count += score(noisy, k, noisy.flip_probability, density) > Z95
    return count


def in_range(count, probability, n=500):
    low, high = binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], n, probability)
    return low <= count <= high


SETTINGS = [(120, 30, 1.0, 0.3), (120, 12, 2.0, 0.2), (60, 40, 0.5, 0.05)]


@pytest.mark.nightly
@pytest.mark.parametrize(("n", "k", "epsilon", "density"), SETTINGS)
def test_detection_limit_of_given_block_in_fixed_graph(n, k, epsilon, density):
    # 500 releases each of a graph with the difference and of one without. It is detected in 0.95
    # and 0.05 of them.
    limit = detection_limit(n, k, epsilon).given
    rng = np.random.default_rng(0)
    dense, even = (fixed_graph(n, k, density, x, rng) for x in (limit, 0.0))
    assert in_range(seen(lambda _: dense, k, epsilon), 0.95)
    assert in_range(seen(lambda _: even, k, epsilon), 0.05)


@pytest.mark.nightly
def test_detection_limit_halved_is_not_seen():
    # If the limit were too small by half, it would be detected in half of the releases.
    n, k, epsilon, density = SETTINGS[0]
    limit = detection_limit(n, k, epsilon).given / 2
    graph = fixed_graph(n, k, density, limit, np.random.default_rng(0))
    assert not in_range(seen(lambda _: graph, k, epsilon), 0.95)


@pytest.mark.nightly
@pytest.mark.parametrize(("n", "k", "epsilon", "density"), SETTINGS)
def test_detection_limit_of_given_block_in_random_graphs(n, k, epsilon, density):
    limit = detection_limit(n, k, epsilon, density=density).given
    assert limit > detection_limit(n, k, epsilon).given
    for difference, probability in ((limit, 0.95), (0.0, 0.05)):
        table = np.full((2, 2), density) + np.diag([difference, 0.0])
        count = seen(
            lambda seed: make_sbm([k, n - k], table, random_state=seed)[0],  # noqa: B023
            k,
            epsilon,
            density,
        )
        assert in_range(count, probability)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("n", "k", "epsilon", "density"), [(800, 200, 2.0, 0.1), (800, 200, 2.0, 0.01)]
)
def test_detection_limit_spectral_is_where_eigenvalues_appear(n, k, epsilon, density):
    # 20 releases on both sides. A background of 0.01 has no eigenvalue of its own.
    limit = detection_limit(n, k, epsilon, density=density).spectral
    counted = []
    for factor in (0.75, 1.25):
        table = np.full((2, 2), density) + np.diag([factor * limit, 0.0])
        total = 0
        for seed in range(20):
            A, _ = make_sbm([k, n - k], table, random_state=seed)
            noisy = EdgeFlip(epsilon, random_state=seed).fit_transform(A)
            private = AdjacencySpectralEmbedding().fit(noisy)
            total += int((np.abs(private.eigenvalues_) > 1.05 * private.noise_edge_).sum())
        counted.append(total - 20 * (density > 0.05))
    assert counted[0] <= 3 and counted[1] >= 17


def test_detection_limit_has_variance_of_theory():
    for epsilon in (0.2, 1.0, 3.0):
        limit = detection_limit(1000, 200, epsilon, confidence=0.9).given
        pairs, others = math.comb(200, 2), math.comb(1000, 2) - math.comb(200, 2)
        deviation = math.sqrt(1 / pairs + 1 / others) / (2 * math.sinh(epsilon / 2))
        assert limit == pytest.approx(2 * 1.2815515655446 * deviation)


def test_detection_limit_falls_with_epsilon_size_and_confidence():
    lost = detection_limit(50, 5, 0.1)
    assert lost.given == lost.spectral == math.inf and "at no difference" in str(lost)
    exact = detection_limit(50, 5, math.inf)
    assert exact.given == exact.spectral == 0.0
    assert detection_limit(50, 5, math.inf, density=0.3).given > 0
    # With more nodes, more budget or less confidence, smaller differences are detected.
    base = detection_limit(1000, 50, 2.0, density=0.1)
    assert detection_limit(1000, 100, 2.0, density=0.1).given < base.given
    assert detection_limit(1000, 50, 3.0, density=0.1).spectral < base.spectral
    assert detection_limit(1000, 50, 2.0, density=0.1, confidence=0.8).given < base.given


def test_detection_limit_refuses_bad_parameters_by_name():
    refused = {
        "n_nodes": (2, 10.5),
        "block_size": (1, 100),
        "epsilon": (0, -1.0, math.nan, "one"),
        "density": (0, 1.0, math.nan),
        "confidence": (0.5, 1, math.nan),
    }
    for name, values in refused.items():
        for value in values:
            parameters = {"n_nodes": 100, "block_size": 10, "epsilon": 1.0, name: value}
            refuses(name, detection_limit, **parameters, error=(TypeError, ValueError))


@pytest.mark.parametrize(
    ("n", "m", "density"), [(10_000, 2500, 0.1), (1000, 100, 0.05), (1000, 300, 0.1)]
)
def test_detection_limit_spectral_falls_with_epsilon(n, m, density):
    limits = [
        detection_limit(n, m, epsilon, density=density).spectral
        for epsilon in (0.1, 0.12, 0.13, 0.14, 0.2, 0.3, 0.5, 0.7, 1.0, 2.0, 4.0, 8.0)
    ]
    # Where the block becomes larger than the background, the limit stays.
    finite = np.minimum(limits, 1.0)
    assert (np.diff(finite) <= 1e-9).all() and limits[-1] < 0.2
