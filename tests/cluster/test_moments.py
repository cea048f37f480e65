"""Joint moments: sensitivities by attack, exact sums, and noise of the declared scale."""

import itertools
import math
import tracemalloc
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from sklearn_dptda.cluster import DPLloyd, DPMoG, _dp_tree
from sklearn_dptda.cluster._mixture_density import DensityByRows, MixtureDensity
from sklearn_dptda.privacy import FixedPoint, NoiseSource, Sensitivity
from sklearn_dptda.privacy._fixed_point import ROUND_DOWN, ROUND_UP
from sklearn_dptda.rows import _moments
from sklearn_dptda.rows._assignments import (
    Cells,
    ExactProducts,
    clip_norm,
    in_norm,
    nearest_to,
    row_products,
)
from sklearn_dptda.rows._moments import (
    GaussianBudget,
    LaplaceBudget,
    MomentWeights,
    SecondMoments,
    _sums_by_cell,
)
from sklearn_dptda.rows._rows import Rows
from tests._refusals import refuses
from tests.cluster._tables import case

WEIGHTS = [
    MomentWeights(0.3, 0.7),
    MomentWeights(0.5, 0.5),
    MomentWeights(1.0),
    MomentWeights(0.1, 0.3, 0.6),
    MomentWeights(0.2, 0.4, 0.4),
    MomentWeights(0.05, 0.9, 0.05),
    MomentWeights(1.0, 1.0, 1.0),
    MomentWeights(1.0, 4.0, 16.0),
    # Two records of one cell are furthest apart at an obtuse angle.
    MomentWeights(0.01, 0.5, 0.49),
]
KINDS = ["full", "tied", "diag", "spherical"]
EXACT = math.inf


class Exact(GaussianBudget):
    """No noise, on the lattice of a fine scale."""

    fixed_scale = 2.0**-8

    def scale(self, sensitivity, share):
        return self.fixed_scale

    def draw(self, scale, size):
        return np.zeros(size, dtype=np.int64)


class ExactL1(Exact):
    norm = "l1"


class Coarse(Exact):
    """No noise, on the lattice of a large scale."""

    fixed_scale = 2.0**40


@pytest.fixture
def fine_lattice(monkeypatch):
    """So fine that rounding is below what is compared."""
    monkeypatch.setattr(_moments, "FINEST_SCALE", 2.0**-8)


def budget(norm="l2", total=EXACT, adjacency="add-remove"):
    return {"l1": LaplaceBudget, "l2": GaussianBudget}[norm](total, adjacency, NoiseSource(0))


def contribution(u, cell, n_cells, weights, kind="full", norm="l2"):
    """Moments of one record in a cell, through the code that is released."""
    u = np.atleast_2d(u)
    exact = {"l1": ExactL1, "l2": Exact}[norm](EXACT, "add-remove", NoiseSource(0))
    moments = exact.release(
        Rows.of_array(u),
        lambda batch: (np.full(len(batch), cell), batch),
        n_cells,
        weights=weights,
        share=1.0,
        kind=kind if weights.second_moment else None,
    )
    w0, w1, w2 = weights.roots
    out = [w0 * moments.counts, w1 * moments.sums]
    if weights.second_moment:
        d = u.shape[1]
        seconds = SecondMoments(kind, d, norm)
        if kind in ("full", "tied"):
            entries = seconds.stretch * moments.second_moments[:, seconds.rows, seconds.columns]
        elif kind == "diag":
            entries = np.diagonal(moments.second_moments, axis1=1, axis2=2)
        else:
            entries = np.trace(moments.second_moments, axis1=1, axis2=2)
        out.append(w2 * entries)
    return np.concatenate([np.ravel(part) for part in out])


def at_first_centre(batch):
    return np.zeros(len(batch), dtype=int), np.zeros_like(batch)


def length(vector, norm):
    return np.linalg.norm(vector, {"l1": 1, "l2": 2}[norm])


def worst_residuals(weights, norm, rng, n_random):
    d = 3
    units = rng.normal(size=(n_random, 2, d)) * (rng.uniform(size=(n_random, 2, d)) < 0.7)
    sizes = np.maximum([[length(u, norm) for u in pair] for pair in units], 1e-9)
    units *= rng.uniform(0, 1, size=(n_random, 2, 1)) ** 0.2 / sizes[..., None]
    axis, other = np.eye(d)[:2]
    ratio = weights.sum / (2 * weights.second_moment) if weights.second_moment else math.inf
    cosine = -min(1.0, ratio)
    turned = cosine * axis + math.sqrt(1 - cosine**2) * other
    pairs = [(axis, axis), (axis, -axis), (axis, other), (axis, 0 * axis)]
    if norm == "l2":
        even = np.full(d, d**-0.5)
        pairs += [(axis, turned), (even, -even), (axis, -even)]
    return pairs + list(units)


@pytest.mark.parametrize(
    ("weights", "kind", "norm"),
    [
        # All weights, and all kinds in both norms, are in the unit layer.
        case(j == i % 8, weights, kind, norm)
        for i, weights in enumerate(WEIGHTS)
        for j, (norm, kind) in enumerate(itertools.product(["l2", "l1"], KINDS))
    ],
    ids=str,
)
def test_moment_weights_sensitivity_is_reached_and_never_exceeded(
    weights, kind, norm, rng, fine_lattice
):
    # Random pairs and the worst directions, in one cell and across cells.
    worst = {"add-remove": 0.0, "replace-one": 0.0}
    for u, v in worst_residuals(weights, norm, rng, 8):
        for second in (0, 1):
            a = contribution(u, 0, 2, weights, kind, norm)
            b = contribution(v, second, 2, weights, kind, norm)
            worst["add-remove"] = max(worst["add-remove"], length(a, norm))
            worst["replace-one"] = max(worst["replace-one"], length(a - b, norm))
    for adjacency, found in worst.items():
        declared = weights.sensitivity(adjacency, norm).value
        assert found <= declared * (1 + 1e-9)
        # If a replaced record costs most within a cell, only full moments reach the bound.
        within = declared > math.sqrt(2) * weights.sensitivity("add-remove", norm).value + 1e-9
        # Tied second moments are in one place, so two records there have less effect than in two
        # cells.
        loose = kind == "tied" if adjacency == "replace-one" else False
        loose |= kind != "full" and norm == "l2" and within
        if not (loose and weights.second_moment):
            assert found == pytest.approx(declared, rel=1e-9)


def test_moment_weights_replacing_costs_more_than_root_two():
    # If sums have larger weights than counts, a replaced record costs more than that.
    weights = MomentWeights(0.3, 0.7)
    assert weights.sensitivity("replace-one").value == pytest.approx(math.sqrt(2.8))
    assert weights.sensitivity("add-remove").value == 1.0


@pytest.mark.parametrize("d", [1, 2, 3, 8, 10, 16])
def test_moment_weights_sensitivity_of_raw_moments_in_the_cube(d, fine_lattice):
    # Corners of the cube have 1 + d + d**2 for one record, and twice that for two cells.
    weights = MomentWeights(1.0, d, d**2)
    corner = np.ones(d) / math.sqrt(d)
    moved = contribution(corner, 0, 1, weights)
    assert moved @ moved == pytest.approx(1 + d + d**2, rel=1e-9)
    assert weights.sensitivity("add-remove").value ** 2 == pytest.approx(1 + d + d**2)
    assert weights.sensitivity("replace-one").value ** 2 == pytest.approx(2 * (1 + d + d**2))


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_clip_norm_bounds_every_norm(rng, norm):
    residuals = rng.normal(size=(1000, 4)) * 10.0 ** rng.integers(-8, 8, size=(1000, 1))
    clipped = clip_norm(residuals, 0.7, norm)
    order = {"l1": 1, "l2": 2}[norm]
    assert np.linalg.norm(clipped, order, axis=1).max() <= 1
    small = np.linalg.norm(residuals, order, axis=1) < 0.7
    assert clipped[small] == pytest.approx(residuals[small] / 0.7, rel=1e-9)


def test_assignments_to_nearest_centres_and_to_one_cell(rng):
    X, centres = rng.normal(size=(200, 3)), 3 * rng.normal(size=(6, 3))
    distances = np.linalg.norm(X[:, None] - centres, axis=2)
    assert np.array_equal(nearest_to(centres, 20.0)(X), distances.argmin(axis=1))
    cells, residuals = Cells(centres[:1], 100.0, "l2")(X)
    assert not cells.any()
    assert residuals == pytest.approx((X - centres[0]) / 100.0)
    # Each cell has a radius of its own, beyond which residuals are clipped.
    cells, radii = distances.argmin(axis=1), np.linspace(0.5, 4.0, 6)[:, None]
    units = (X - centres[cells]) / radii[cells]
    sizes = np.linalg.norm(units, axis=1, keepdims=True)
    assert (sizes > 1).any() and (sizes < 1).any()
    _, found = Cells(centres, radii, "l2", lambda _: cells)(X)
    assert found == pytest.approx(units / np.maximum(sizes, 1.0), rel=1e-9)
    # The longest vector of a Euclidean ball, in each norm.
    for norm, order in (("l1", 1), ("l2", 2)):
        assert in_norm(0.7, 5, norm) == pytest.approx(
            np.linalg.norm(np.full(5, 0.7 / math.sqrt(5)), order)
        )


@pytest.mark.parametrize("kind", KINDS)
def test_fit_budget_release_without_noise_is_moments(kind, rng):
    X = rng.uniform(-0.5, 0.5, size=(300, 3))
    cells = (X[:, 0] > 0).astype(int)
    moments = budget().release(
        Rows.of_array(X),
        lambda part: ((part[:, 0] > 0).astype(int), part),
        2,
        weights=MomentWeights(0.1, 0.3, 0.6),
        share=1.0,
        kind=kind,
    )
    assert moments.counts == pytest.approx(np.bincount(cells), abs=1e-5)
    for cell in (0, 1):
        assert moments.sums[cell] == pytest.approx(X[cells == cell].sum(axis=0), abs=1e-5)
    own = [X.T @ X] if kind == "tied" else [X[cells == c].T @ X[cells == c] for c in (0, 1)]
    for found, exact in zip(moments.second_moments, own, strict=True):
        if kind == "diag":
            exact = np.diag(np.diag(exact))
        elif kind == "spherical":
            exact = np.trace(exact) / 3 * np.eye(3)
        assert found == pytest.approx(exact, abs=1e-5)


def test_assignments_of_a_row_do_not_depend_on_other_rows(rng):
    # Bit for bit, neither cells nor residuals may depend on other rows.
    Z, centres = rng.normal(size=(257, 7)), rng.normal(size=(5, 7))
    density = MixtureDensity(np.ones(5), centres, np.array([np.eye(7) * 0.3] * 5))
    by_rows = DensityByRows(density, limit=5.0)
    functions = [
        nearest_to(centres, 2.0),
        by_rows.log_joint,
        lambda part: clip_norm(part, 0.7),
        lambda part: clip_norm(part, 0.7, "l1"),
    ]
    for function in functions:
        whole = function(Z)
        for start in range(20):
            rows = slice(start, 257 - 3 * start)
            assert np.array_equal(whole[rows], function(Z[rows].copy()))
    assert by_rows.log_joint(Z) == pytest.approx(density.log_joint(Z), rel=1e-5)
    assert np.array_equal(by_rows.likeliest(Z), density.log_joint(Z).argmax(1))


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_fit_budget_noise_of_counts_covers_all_that_a_row_moves(adjacency, norm):
    source = budget(norm, 0.5, adjacency)
    for touched in (1, 2, 3):
        before, after = np.zeros(8), np.zeros(8)
        before[:touched] = 1
        after[-touched:] = adjacency == "replace-one"
        scale = source.scale_of_counts(touched, 0.25)
        loss = length(before - after, norm) / scale
        _, deviation = source.noisy_counts(np.zeros(8, dtype=np.int64), touched, 0.25)
        assert deviation == pytest.approx({"l1": math.sqrt(2), "l2": 1}[norm] * scale)
        # A quarter of the epsilon, or half of the Gaussian parameter.
        assert loss == pytest.approx({"l1": 0.25, "l2": 0.5}[norm] * 0.5)
    # Counts are not rounded, however large the noise is.
    counts = np.array([0, 1, 2, 12_345_677])
    found, _ = Coarse(1.0, adjacency, NoiseSource(0)).noisy_counts(counts, 1, 1.0)
    assert np.array_equal(found, counts)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_fit_budget_choice_and_rest_spend_the_whole(adjacency, norm, monkeypatch):
    asked = []

    def choice(costs, rate, noise, *, bounded_range, change):
        assert change == ways * largest
        asked.append((rate, bounded_range))
        return 0

    monkeypatch.setattr(_moments, "private_choice", choice)
    ways = 1 if adjacency == "add-remove" else 2
    rng = np.random.default_rng(0)
    for total, share, largest in zip(*rng.uniform(0.01, 1, (2, 50)), range(1, 51), strict=True):
        source = budget(norm, total, adjacency)
        source.choose([1, 2], largest, share)
        rate, bounded_range = asked.pop()
        loss, rest = ways * largest * rate, source.rest(share).total
        # Of the two laws, only the exponential mechanism has a zCDP of one eighth of the squared
        # loss.
        assert bounded_range == (norm == "l2")
        if norm == "l1":
            assert loss == pytest.approx(share * total) and rest == pytest.approx(total - loss)
        else:
            assert loss**2 / 8 == pytest.approx(share * total**2 / 2)
            assert rest**2 / 2 == pytest.approx(total**2 / 2 - loss**2 / 8)


def test_fit_budget_loss_is_no_more_in_the_last_digit():
    # In fractions: floats are rounded to the safe side, and by no more than necessary.
    rng = np.random.default_rng(0)
    for total, share, moved in zip(*rng.uniform(0.01, 1, (3, 200)), strict=True):
        source = budget("l1", total)
        spent = Fraction(total) * Fraction(share)
        scale = source.scale(Sensitivity(moved, "l1", "add-remove"), share)
        assert 1 - 2.0**-48 < Fraction(moved) / Fraction(scale) / spent <= 1
        assert 1 - 2.0**-48 < Fraction(source.choice_epsilon(share)) / spent <= 1


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_fit_budget_noise_covers_rounding_to_the_lattice(norm, kind, adjacency):
    # A replaced record changes each rounded number of two cells by one more step.
    weights, d, n_cells, scales = MomentWeights(0.1, 0.3, 0.6), 3, 5, []

    class Recorded(Exact):
        def draw(self, scale, size):
            scales.append(scale)
            return super().draw(scale, size)

    Recorded.norm = norm
    source = Recorded(1.0, adjacency, NoiseSource(0))
    rows = Rows.of_array(np.zeros((1, d)))
    source.release(rows, at_first_centre, n_cells, weights=weights, share=1.0, kind=kind)
    width = SecondMoments(kind, d, norm).width
    # If second moments are tied, the roundings of both records add up in one number.
    steps = [1.0] * 2 * (1 + d)
    steps += [2.0] * width if kind == "tied" else [1.0] * 2 * width
    more = length(steps, norm) if adjacency == "replace-one" else 0.0
    declared = weights.sensitivity(adjacency, norm)
    step = FixedPoint.for_scale(_moments.FINEST_SCALE).step
    scale = source.scale(declared, 1.0) / step
    for noise in scales:
        found = (noise / scale - 1) * declared.value / step
        assert found >= more * (1 - 1e-6) - 1e-6
        if not (norm == "l1" and kind == "tied"):
            assert found == pytest.approx(more, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    "kind", ["full", "diag", "spherical", pytest.param("tied", marks=pytest.mark.laws)]
)
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_fit_budget_noise_of_a_release_has_its_scale(kind, norm):
    # 4,000 empty cells (tied: 2,000 releases): means of squares within 5 standard errors, a
    # false-alarm rate below 1e-6. Laplace squares have a variance of 5, Gaussian ones of 2.
    weights, d = MomentWeights(0.1, 0.3, 0.6), 3
    source = budget(norm, total=0.3)
    n_releases, n_cells = (2000, 2) if kind == "tied" else (1, 4000)
    rows = Rows.of_array(np.zeros((1, d)))
    found = [
        source.release(rows, at_first_centre, n_cells, weights=weights, share=0.5, kind=kind)
        for _ in range(n_releases)
    ]
    scale = source.scale(weights.sensitivity("add-remove", norm), 0.5)
    assert found[0].sd_count == source.deviation(scale) / weights.roots[0]

    def close(squares, declared):
        error = math.sqrt((5 if norm == "l1" else 2) / squares.size)
        assert squares.mean() == pytest.approx(declared, rel=5 * error)

    # The row is in the first cell, at its centre.
    counts = np.concatenate([m.counts - (np.arange(n_cells) == 0) for m in found])
    sums = np.concatenate([m.sums for m in found])
    seconds = np.concatenate([m.second_moments for m in found])
    close(counts**2, found[0].sd_count ** 2)
    close(sums.ravel() ** 2, found[0].sd_sum ** 2)
    close((seconds**2).sum(axis=(1, 2)), found[0].var_second_moment)
    close(np.trace(seconds, axis1=1, axis2=2) ** 2, found[0].var_trace)


def test_row_products_of_many_columns_take_few_sums(monkeypatch):
    # A sum for each pair of columns and each piece of the rows would take minutes.
    rng, d, sums = np.random.default_rng(0), 40, []
    roots = rng.normal(size=(3, d, d))
    density = MixtureDensity(
        np.ones(3) / 3, rng.normal(size=(3, d)), roots @ roots.transpose(0, 2, 1) + np.eye(d)
    )
    X = rng.normal(size=(50, d))
    one_by_one = np.empty((50, 3))
    for k, (mean, factor, log_scale) in enumerate(density.parts()):
        whitened = np.column_stack([row_products(X - mean, row) for row in factor])
        one_by_one[:, k] = log_scale - 0.5 * row_products(whitened, whitened)

    def counted(X, Y):
        sums.append(1)
        return row_products(X, Y)

    found = DensityByRows(density, limit=10.0).log_joint(X)
    assert found == pytest.approx(one_by_one, rel=1e-5)
    monkeypatch.setattr(_dp_tree, "row_products", counted)
    tree = _dp_tree.BoxTree.root(roots[0], np.ones(d))
    by_axis = np.column_stack([row_products(X, axis) for axis in roots[0].T])
    np.testing.assert_array_equal(tree.coordinates(X), by_axis)
    assert len(sums) == 1


@pytest.mark.parametrize(("d", "seen"), [(2, 2), (10, 10), (100, 10), (400, 4), (64, 8)])
def test_exact_products_are_exact_sums_of_whole_numbers(d, seen, rng):
    # A row is clipped to the range for d columns, and observed in a few of them, as a projection.
    limit = 2 * d**0.5
    vectors = rng.normal(size=(24, seen)) * 10.0 ** rng.integers(-3, 3, size=(24, 1))
    vectors[1] = 0.0
    X = rng.normal(size=(40, seen))
    X[0] = 1.0
    X *= limit / np.linalg.norm(X, axis=1)[:, None]
    # All coordinates are above the limit, in the direction of a vector, so no sums are larger.
    X = np.vstack([X, 1e3 * np.sign(vectors)])
    products = ExactProducts.of(vectors, limit)
    whole = np.rint(np.clip(np.ldexp(X, products.bits), -products.reach, products.reach))
    assert (np.abs(whole) @ np.abs(products.vectors)).max() < 2**53
    columns = [[int(v) for v in column] for column in products.vectors.T]
    sums = [
        [sum(int(x) * v for x, v in zip(row, c, strict=True)) for c in columns] for row in whole
    ]
    found = np.vstack([batch for _, batch in products.batches(X)])
    assert np.array_equal(found, np.array(sums, dtype=float) * products.units)
    inside = np.clip(X, -limit, limit)
    # A coordinate is off by at most one step, at the limit, and coordinates of vectors by half a
    # step.
    room = (seen + 2) * 2.0**-26 * limit * np.abs(vectors).sum(axis=1) + 1e-300
    assert (np.abs(found - inside @ vectors.T) <= room).all()


def test_round_up_covers_five_roundings():
    assert Fraction(ROUND_UP) * (1 - Fraction(1, 2**53)) ** 5 > 1
    assert Fraction(ROUND_DOWN) * (1 + Fraction(1, 2**53)) ** 5 < 1


@pytest.mark.parametrize("n_cells", [1, 2, 64, 65, 300])
@pytest.mark.parametrize("scale", [1e9, 3.0, 2.0**-20])
def test_sums_by_cell_are_those_of_integers(n_cells, scale, rng):
    # With the least scale, sums exceed what floats represent exactly.
    lattice = FixedPoint.for_scale(scale)
    cells, values = rng.integers(0, n_cells, 3000), rng.uniform(-1, 1, (3000, 3))
    found = _sums_by_cell(cells, n_cells, lattice, 0.7, np.asfortranarray(values))
    expected = [[0] * 3 for _ in range(n_cells)]
    for cell, row in zip(cells.tolist(), (0.7 * values).tolist(), strict=True):
        for j, value in enumerate(row):
            expected[cell][j] += math.trunc(Fraction(value) / Fraction(2) ** lattice.exponent)
    assert found.dtype == np.int64 and found.tolist() == expected


def test_rows_give_up_their_memory_only_if_nobody_keeps_them(rng):
    X = rng.normal(size=(5000, 3))
    given = Rows.of_array(X.copy())
    made = given.map(np.negative)
    kept = made.kept().map(np.negative, reuse=True)
    assert made.sum(_total) == pytest.approx(-X.sum())
    doubled = made.map(partial(np.multiply, 2.0), reuse=True)
    assert doubled.sum(_total) == pytest.approx(-2 * X.sum())
    # Rows whose memory was taken are refused, and not read.
    refuses("must read the same rows", made.sum, _total)
    assert kept.sum(_total) == pytest.approx(X.sum()) == given.sum(_total)


def _total(part):
    return float(part.sum())


@pytest.mark.parametrize("estimator", [DPLloyd, DPMoG])
def test_fits_need_little_more_memory_than_one_copy_of_the_rows(estimator, rng):
    X = rng.normal(size=(200_000, 8))
    model = estimator(3, bounds=(-6, 6), random_state=0)
    model.fit(X[:1000])
    tracemalloc.start()
    model.fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.3 * X.nbytes
