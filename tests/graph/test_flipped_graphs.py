"""Vishwanath and Hehir on flipped random dot product graphs, and errors in their text."""

import itertools
import math

import numpy as np
import pytest
from gudhi import AlphaComplex
from scipy.spatial.distance import pdist

from sklearn_dptda import bottleneck_distance
from sklearn_dptda.graph import AdjacencySpectralEmbedding, EdgeFlip, make_latent, make_rdpg
from sklearn_dptda.persistence import dilation_dissimilarity, shift_invariant_bottleneck_distance

# Blocks in the plane, off lines through the origin, so no combination of coordinates is constant.
PLANE_BLOCKS = np.array([[0.9, 0.25], [0.4, 0.85], [0.05, 0.05]])
# The same with a sign: the products are x_1 y_1 - x_2 y_2.
MIXED_BLOCKS, MIXED = np.array([[0.9, 0.45], [0.05, 0.0], [0.7, -0.4]]), np.array([1, -1])


def probability(epsilon):
    """Of a flip, from the integer that coins are thrown with."""
    return EdgeFlip(epsilon)._numerator() / 2.0**64


def image(X, p):
    """Positions ``phi(X)`` of the flipped graph: Proposition 1."""
    return np.column_stack([np.sqrt(1 - 2 * p) * X, np.full(len(X), np.sqrt(p))])


def angles(n):
    t = np.linspace(0, 2 * np.pi, n, endpoint=False)
    return np.column_stack([np.cos(t), np.sin(t)])


# All graphs of four nodes, as their six pairs.
GRAPHS = np.array(list(itertools.product((0, 1), repeat=6)))
PAIRS = np.triu_indices(4, 1)


def graph_law(products):
    """Probability of each graph of four nodes whose pairs have these products."""
    p = products[PAIRS]
    return np.prod(np.where(GRAPHS == 1, p, 1 - p), axis=1)


def flipped_law(law, p):
    """Law of the graph after each pair has been flipped with probability ``p``."""
    k = (GRAPHS[:, None] != GRAPHS).sum(axis=2)
    return law @ (p**k * (1 - p) ** (6 - k))


@pytest.mark.parametrize("epsilon", [0.0, 1.0, math.inf])
@pytest.mark.parametrize("signs", [np.ones(2), MIXED], ids=["definite", "indefinite"])
def test_edge_flip_keeps_random_dot_product_graphs(epsilon, signs):
    # Proposition 1, compared with the law on all 64 graphs, and three maps that are not phi.
    X = np.array([[0.9, 0.3], [0.5, 0.1], [0.7, 0.2], [0.6, -0.3]])
    p = probability(epsilon)
    flipped = flipped_law(graph_law(X * signs @ X.T), p)

    def law(Y):
        return graph_law(Y * np.r_[signs, 1] @ Y.T)

    assert law(image(X, p)) == pytest.approx(flipped, abs=1e-14)
    if 0 < epsilon < math.inf:
        without = np.column_stack([np.sqrt(1 - 2 * p) * X, np.zeros(4)])
        for wrong in (without, (1 - 2 * p) * image(X, p), image(X, p / 2)):
            assert np.abs(law(wrong) - flipped).max() > 1e-4


@pytest.mark.parametrize(
    ("X", "more"),
    [
        # In a hyperplane off the origin, <a, x> = 1, phi needs no additional coordinate.
        (make_latent(50, "circle", random_state=0), 0),
        (make_latent(50, "sphere", random_state=0), 0),
        (np.array([[0.9, 0.1], [0.2, 0.8]]), 0),
        (np.array([[0.9, 0.1], [0.2, 0.8], [0.55, 0.45]]), 0),
        # Not in one: not every block model, and not every circle off the origin.
        (PLANE_BLOCKS, 1),
        (0.45 + 0.3 * angles(50), 1),
        # In one through the origin.
        (0.6 * angles(50), 1),
    ],
)
def test_flipped_positions_need_another_dimension_off_hyperplanes(X, more):
    d = np.linalg.matrix_rank(X)
    constant = np.linalg.lstsq(X, np.ones(len(X)), rcond=None)[0]
    in_hyperplane = np.abs(X @ constant - 1).max() < 1e-10
    for epsilon in (0.5, 2.0):
        rank = np.linalg.matrix_rank(image(X, probability(epsilon)))
        assert rank == d + more == d + (not in_hyperplane)


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_flipped_positions_are_similar_and_smaller(epsilon):
    # Corollary 1 (i) and (ii): phi is a similarity, and so a diffeomorphism onto its image.
    X = make_latent(60, "figure_eight", random_state=0)
    ratios = pdist(image(X, probability(epsilon))) / pdist(X)
    assert ratios == pytest.approx(math.sqrt(1 - 2 * probability(epsilon)), rel=1e-9)
    assert probability(epsilon + 0.1) < probability(epsilon)


@pytest.mark.nightly
def test_edge_flip_shrinks_diameter_of_embedding():
    # Diameter of the centres of three blocks of 400, the largest of three distances.
    A = make_rdpg(np.repeat(PLANE_BLOCKS, 400, axis=0), random_state=0)
    true = pdist(PLANE_BLOCKS).max()
    for epsilon in (1.0, 2.0, 4.0):
        noisy = EdgeFlip(epsilon, random_state=0).fit_transform(A)
        Z = AdjacencySpectralEmbedding(3, flip_probability=0.0).fit(noisy).embedding_
        centres = Z.reshape(3, 400, 3).mean(axis=1)
        shrunk = math.sqrt(1 - 2 * noisy.flip_probability) * true
        assert pdist(centres).max() == pytest.approx(shrunk, rel=0.05)


def test_flipped_positions_at_epsilon_zero_are_one_point():
    # Corollary 1 (iii). The text has the length one half, whose square is not the probability 1/2.
    X = make_latent(20, "circle", random_state=0)
    Y = image(X, probability(0.0))
    assert np.ptp(Y, axis=0).max() == 0
    assert np.linalg.norm(Y[0]) == math.sqrt(0.5)
    assert Y[0] @ Y[1] == pytest.approx(0.5) and not Y[:, :-1].any()


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["definite", "indefinite"])
def test_edge_flip_adds_plus_to_signature(kind):
    # The signature (p, q) becomes (p + 1, q). Blocks of 600: the smallest eigenvalue is 65, and the
    # noise reaches 42.
    X, signs = {"definite": (PLANE_BLOCKS, np.ones(2)), "indefinite": (MIXED_BLOCKS, MIXED)}[kind]
    A = make_rdpg(np.repeat(X, 600, axis=0), signature=signs, random_state=0)
    noisy = EdgeFlip(1.0, random_state=0).fit_transform(A)
    before = AdjacencySpectralEmbedding(2).fit(A).signature_
    embedding = AdjacencySpectralEmbedding(3, flip_probability=0.0).fit(noisy)
    assert (before == -1).sum() == (embedding.signature_ == -1).sum() == (signs == -1).sum()
    assert (embedding.signature_ == 1).sum() == (signs == 1).sum() + 1
    Y = image(X, noisy.flip_probability)
    exact = np.linalg.eigvalsh(600 * (Y * np.r_[signs, 1]) @ Y.T)
    assert np.sort(embedding.eigenvalues_) == pytest.approx(exact, abs=20)
    assert np.abs(exact).min() > 1.5 * embedding.noise_edge_


def test_edge_flip_in_hyperplane_can_turn_minus_into_plus():
    # 1' B^-1 1 = -30: at flips of 1/32, epsilon = log(31), the second eigenvalue passes zero.
    B = np.array([[0.1, 0.3], [0.3, 0.8]])
    assert np.ones(2) @ np.linalg.inv(B) @ np.ones(2) == pytest.approx(-30)
    for epsilon, negative in ((math.inf, 1), (4.0, 1), (3.0, 0), (1.0, 0)):
        p = probability(epsilon)
        values = np.linalg.eigvalsh(p + (1 - 2 * p) * B)
        assert (values < 0).sum() == negative and np.abs(values).min() > 1e-3
    at = np.linalg.eigvalsh(1 / 32 + (1 - 2 / 32) * B)
    assert abs(at[0]) < 1e-12


def loops(points):
    tree = AlphaComplex(points=points).create_simplex_tree()
    tree.compute_persistence()
    squares = tree.persistence_intervals_in_dimension(1).reshape(-1, 2)
    return np.sqrt(squares[squares[:, 1] > squares[:, 0]])


def test_flipped_positions_have_dilated_diagram():
    # Proposition 2 in the limit: the same points and their images.
    X = make_latent(80, "circle", random_state=0)
    p = probability(1.0)
    before, after = loops(X[:, :2]), loops(np.sqrt(1 - 2 * p) * X[:, :2])
    longest = np.ptp(before, axis=1).max()
    assert bottleneck_distance(after, before) > 0.2 * longest
    assert dilation_dissimilarity(after, before, tol=1e-6) < 1e-5 * longest
    logarithmic = shift_invariant_bottleneck_distance(after, before, scale="log", tol=1e-6)
    assert logarithmic < 1e-4


def test_shift_invariant_distance_does_not_prove_proposition_2():
    # The limit of a circle is {(0, d)}, and that of its image {(0, c d)}. A shift leaves half of
    # the difference. Logarithms of the limits do not exist, and those of diagrams that converge to
    # the same limit can diverge.
    d, c = 0.7, 0.68
    assert shift_invariant_bottleneck_distance([[0, c * d]], [[0, d]]) == pytest.approx(
        (1 - c) * d / 2
    )
    with pytest.raises(ValueError, match="no logarithm"):
        shift_invariant_bottleneck_distance([[0, c * d]], [[0, d]], scale="log")
    for n in (10, 1000, 100_000):
        first, second = [[1 / n, 1]], [[1 / n**2, 1]]
        assert bottleneck_distance(first, second) < 1 / n
        distance = shift_invariant_bottleneck_distance(first, second, scale="log")
        assert distance == pytest.approx(math.log(n) / 2, rel=1e-5)
