"""Private boxes: exact laws between worst-case neighbours, accuracy, and refusals."""

import math
import warnings
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_dptda import (
    DTMFiltration,
    KernelDistanceFiltration,
    PrivacyAccountant,
    PrivacyBudgetExceeded,
    PrivacyLeakWarning,
    PrivatePersistence,
    audit_epsilon,
)
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.model_selection import planned_loss
from sklearn_dptda.preprocessing import PrivateBounds, _private_bounds
from sklearn_dptda.privacy import NoiseSource
from sklearn_dptda.privacy.neighbours import row_neighbours
from sklearn_dptda.rows import _private_cubes
from sklearn_dptda.rows._private_cubes import CellCounts
from sklearn_dptda.rows._rows import Rows
from sklearn_dptda.utils._privacy_checks._border_checks import recorded
from tests._refusals import failing, refuses, refuses_unpaid


def by_cube(X, low, width, n_levels):
    """Points in each cube, cube by cube: brute force."""
    out = []
    for level in range(n_levels):
        cubes = _private_cubes._Level(low, width, level, 4 if len(low) < 4 else 2)
        corners, counts = cubes.inside(CellCounts.of(cubes.cells(X)))
        full = np.zeros((cubes.n_corners,) * len(low), dtype=int)
        full[tuple(corners.T)] = counts
        out.append(full.ravel())
    return out


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("d", [1, 2])
def test_counts_of_cubes_move_by_one_for_one_row(adjacency, d):
    box = np.zeros(d), np.ones(d)
    for pair in row_neighbours(8, box, adjacency=adjacency):
        first, second = (by_cube(X, *_start(d), 5) for X in (pair.first, pair.second))
        moves = np.concatenate([a - b for a, b in zip(first, second, strict=True)])
        assert np.abs(moves).max() <= 1, pair.name
        if adjacency == "add-remove":
            # All costs change in the same direction, so no factor of two is needed.
            assert moves.min() >= 0 or moves.max() <= 0, pair.name


def _start(d):
    return np.full(d, -0.5), 2.0


@pytest.mark.parametrize("few", [0, 2])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_shifted_cube_loses_epsilon_between_neighbours(adjacency, few):
    # Exact laws, without sampling. The rate is half of epsilon if a row is replaced.
    epsilon, n_levels, worst = 1.0, 5, 0.0
    rate = epsilon if adjacency == "add-remove" else epsilon / 2
    for pair in row_neighbours(8, (np.zeros(2), np.ones(2)), adjacency=adjacency):
        logs = []
        for X in (pair.first, pair.second):
            levels = by_cube(X, *_start(2), n_levels)
            costs = np.concatenate(
                [2 * (n_levels - 1 - i) - np.maximum(c, few) for i, c in enumerate(levels)]
            )
            logs.append(-rate * costs - np.log(np.exp(-rate * costs).sum()))
        worst = max(worst, np.abs(logs[0] - logs[1]).max())
        assert worst <= epsilon + 1e-12, pair.name
    # The bound is almost reached: half the rate would appear safe, twice the rate would not.
    assert worst > 0.5 * epsilon


@pytest.fixture(params=[0, 1000], ids=["cells near many points", "all cells"])
def _either_way(request, monkeypatch):
    """Small tables take the path of large ones as well."""
    monkeypatch.setattr(_private_cubes, "_FEW_CORNERS", request.param)


@pytest.mark.usefixtures("_either_way")
@pytest.mark.parametrize("d", [2, *(pytest.param(d, marks=pytest.mark.laws) for d in (1, 3))])
def test_cubes_of_many_are_unions_of_fine_cells(d):
    rng = np.random.default_rng(d)
    X = np.r_[rng.normal(0, 3, (300, d)), np.full((1, d), 1e300), np.full((1, d), 8.0)]
    levels = [_private_cubes._Level(np.full(d, -1.7), 9.7, level, 4) for level in range(24)]
    sides = [level.side for level in levels]
    assert sides == pytest.approx(9.7 * 0.5 ** (np.arange(24) / 2))
    finest = Rows.of_array(X).sum(lambda part: _private_cubes._in_cells(part, levels[-2:]))
    for few in (0, 20):
        found = _private_cubes._cubes_of_many(levels, finest, few)
        for level in levels[:: 1 if d == 1 else 5]:
            direct = level.inside(CellCounts.of(level.cells(X)))
            many = direct[1] > few
            assert np.array_equal(found[level.level][0], direct[0][many])
            assert np.array_equal(found[level.level][1], direct[1][many])


def first_draw(monkeypatch, release):
    """Costs and sizes of the groups, and the rate, that a release first draws with."""
    asked = []

    def draw(costs, sizes, rate, noise):
        asked.append((costs, sizes, rate))
        raise StopIteration

    monkeypatch.setattr(_private_cubes, "choose_member", draw)
    with pytest.raises(StopIteration):
        release()
    return asked[0]


def groups_of_cubes(monkeypatch, X, half, rate):
    """Costs and sizes of the groups of cubes in the start cube of this half width."""
    start = np.full(X.shape[1], -half), 2 * half
    cube = partial(_private_cubes.shifted_cube, Rows.of_array(X), *start, rate, len(X))
    return first_draw(monkeypatch, lambda: cube(NoiseSource(0)))[:2]


@pytest.mark.usefixtures("_either_way")
def test_shifted_cube_draws_from_groups_of_all_cubes(monkeypatch):
    # 160 rows: cubes with at most ten rows cost as much as with ten.
    X = np.random.default_rng(0).normal(0.0, 0.3, (160, 2))
    costs, sizes = groups_of_cubes(monkeypatch, X, 4.0, 0.25)
    # 11 levels: on more levels, there would be too many corners. A level costs 160 / (3 * 11).
    levels = by_cube(X, np.full(2, -4.0), 8.0, 11)
    expected = np.concatenate([4 * (10 - i) - np.maximum(c, 10) for i, c in enumerate(levels)])
    assert sum(sizes) == len(expected)
    found = np.repeat(costs, sizes)
    assert np.array_equal(np.sort(found), np.sort(expected))


@pytest.mark.usefixtures("_either_way")
@pytest.mark.parametrize(
    "d", [50, *(pytest.param(d, marks=pytest.mark.laws) for d in (1, 49, 64, 200))]
)
def test_shifted_cube_knows_dense_cubes_in_any_number_of_columns(d, monkeypatch):
    # 2**14 rows times 2**d does not fit into 64 bits, which must not hide the cubes with most rows.
    X = np.vstack([np.full((2**14, d), 0.3), np.full((3, d), -0.9)])
    costs, _ = groups_of_cubes(monkeypatch, X, 1.0, 1.0)
    # The smallest cube of the dense rows costs no level. In 200 columns, it has the others as well.
    assert min(costs) == -(2**14 if d < 200 else len(X))


@pytest.mark.nightly
@pytest.mark.parametrize("start", [(-100, 100), None])
@pytest.mark.parametrize("d", [12, 50, 200])
def test_private_bounds_of_many_columns_contain_the_rows(d, start):
    # The empty cubes are more than exp(138), against a least weight of 1e-60.
    X = np.random.default_rng(0).uniform(3.0, 4.0, (5000, d))
    for seed in range(3):
        low, high = PrivateBounds(1.0, start=start, random_state=seed).fit(X).bounds_
        assert (low <= 3.05).all() and (high >= 3.95).all()
        # Smaller cubes are too many, except with few columns or near the origin.
        assert (high - low).max() <= (16 if start is None else 5 if d <= 20 else 200)


@pytest.mark.parametrize("d", [4, 5])
def test_merged_sorts_cells_beyond_keys_alike(d, monkeypatch):
    rng = np.random.default_rng(d)
    cells, counts = rng.integers(-3, 3, (500, d)), rng.integers(1, 9, 500)
    by_keys = _private_cubes.merged(cells, counts)
    monkeypatch.setattr(_private_cubes, "_LARGEST_KEY", 1)
    assert all(map(np.array_equal, by_keys, _private_cubes.merged(cells, counts)))
    assert len(by_keys[1]) == len(np.unique(cells, axis=0)) and by_keys[1].sum() == counts.sum()


def test_nested_cube_loses_its_rate_between_neighbours(monkeypatch):
    # Replaced rows change all costs in the same direction, so the rate is the loss.
    rate, laws = 1.0, []
    for end in (0.0, 1.0, 1.5, -3.0, 2.0**-31, 2.0**40, -(2.0**61), 1e300):
        rows = Rows.of_array(np.array([[0.3], [end], [-5.0]]))
        nested = partial(_private_cubes.nested_cube, rows, rate, 3, NoiseSource(0))
        costs, sizes, drawn_at = first_draw(monkeypatch, nested)
        logs = -drawn_at * np.array(costs, dtype=float)
        laws.append(logs - np.log(sizes @ np.exp(logs)))
    worst = np.abs(np.subtract.outer(laws, laws).diagonal(axis1=1, axis2=3)).max()
    assert 0.8 * rate < worst <= rate + 1e-12


@pytest.mark.nightly
@pytest.mark.parametrize("start", [(-27.5, 27.5), (-2000, 3500), None])
@pytest.mark.parametrize("shape", ["cube", "box"])
def test_private_bounds_pay_little_for_a_wide_start(shape, start):
    # Intervals for columns of different units, without a known start.
    unit = 0.01 if shape == "box" and start is None else 1.0
    X = make_two_circles(4000, random_state=0) * [1.0, unit]
    extent = np.ptp(X, axis=0)
    for seed in range(5):
        private = PrivateBounds(0.4, shape=shape, start=start, random_state=seed).fit(X)
        low, high = private.bounds_
        assert (low < high).all() and private.clipped_share_ < 0.1
        assert np.mean(((low <= X) & (high >= X)).all(axis=1)) > 0.97
        assert ((high - low) / extent).max() < 3.0
        if shape == "cube":
            assert high[0] - low[0] == pytest.approx(high[1] - low[1])


def test_private_bounds_without_noise_are_least_and_largest_rows():
    X = make_two_circles(500, random_state=0)
    low, high = PrivateBounds(math.inf, shape="box").fit(X).bounds_
    assert np.array_equal(low, X.min(axis=0)) and np.array_equal(high, X.max(axis=0))
    exact = PrivateBounds(math.inf).fit(X)
    assert (exact.bounds_[0] <= low).all() and (exact.bounds_[1] >= high).all()
    assert np.subtract(*exact.bounds_[::-1]) == pytest.approx(np.full(2, (high - low).max()))
    assert exact.clipped_share_ == 0 and not exact.privacy_guarantee_.holds


def test_private_bounds_of_clouds_are_those_of_their_points():
    X = make_two_circles(600, random_state=0)
    expected = PrivateBounds(1.0, random_state=0).fit(X)
    # A cloud that is repeated counts once.
    for clouds in ([X[:200], X[200:]], X.reshape(3, 200, 2), [X, X, X]):
        other = PrivateBounds(1.0, random_state=0).fit(clouds)
        assert np.array_equal(expected.bounds_, other.bounds_)
        assert expected.clipped_share_ == other.clipped_share_
        assert other.privacy_guarantee_.unit == "one point of a cloud"


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("start", [None, (-9, 9)])
@pytest.mark.parametrize("shape", ["cube", "box"])
def test_private_bounds_spend_the_budget_in_parts(shape, start, adjacency):
    X = make_two_circles(200, random_state=0)
    private = PrivateBounds(0.7, shape=shape, start=start, adjacency=adjacency, random_state=0)
    planned = planned_loss(private, X).releases[0].guarantee
    draws = recorded(partial(private.fit, X)).crossings
    promised, epsilons = private.privacy_guarantee_, [draw.loss for draw in draws]
    assert sum(epsilons) == pytest.approx(0.7) and min(epsilons) > 0
    assert sum(epsilons) <= 0.7 * (1 + 1e-15)
    rhos = [draw.loss**2 / (2 if draw.metric == "l1" else 8) for draw in draws]
    assert promised.rho == planned.rho == pytest.approx(sum(rhos))
    assert promised.rho <= 0.7**2 / 2
    # If the number of columns is not known in advance, a cube is still one draw.
    behind = planned_loss(make_pipeline(FunctionTransformer(), private), X).releases[0].guarantee
    assert behind.rho == (promised.rho if shape == "cube" else None)


def test_private_bounds_draw_nothing_for_a_column_of_groups():
    X = np.column_stack([make_two_circles(200, random_state=0), np.arange(200)])
    plain = planned_loss(PrivateBounds(0.7, shape="box", adjacency="add-remove"), X[:, :2])
    frame = pytest.importorskip("pandas").DataFrame(X, columns=["a", "b", "who"])
    grouped = PrivateBounds(0.7, shape="box", adjacency="add-remove", groups="who")
    assert planned_loss(grouped, frame).releases[0].guarantee.rho == pytest.approx(
        plain.releases[0].guarantee.rho
    )


@pytest.mark.laws
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_private_bounds_counts_spend_no_last_digit_more(adjacency):
    X = np.random.default_rng(0).uniform(size=(50, 1))
    shares = [_private_bounds._SIZE_SHARE] * (adjacency == "add-remove")
    shares.append(_private_bounds._CLIPPED_SHARE)
    for epsilon in np.random.default_rng(1).uniform(0.5, 5, 30):
        private = PrivateBounds(epsilon, start=(-9, 9), adjacency=adjacency, random_state=0)
        rates = [
            draw.rate for draw in recorded(partial(private.fit, X)).crossings if draw.metric == "l1"
        ]
        for rate, share in zip(rates, shares, strict=True):
            assert 1 - 2.0**-48 < Fraction(rate) / Fraction(share) / Fraction(epsilon) <= 1


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:.*lie beyond the private bounds")
@pytest.mark.parametrize("factor", [1.0, 4.0])
def test_audit_of_private_bounds_refutes_a_higher_rate(factor, monkeypatch):
    # 3,000 runs per side. A draw at four times the rate is caught. False alarms below 1e-6.
    honest = _private_cubes.shifted_cube
    monkeypatch.setattr(
        _private_cubes,
        "shifted_cube",
        lambda rows, low, width, rate, *rest: honest(rows, low, width, factor * rate, *rest),
    )
    private = PrivateBounds(1.0, start=(0, 64), shape="box")
    first, second = np.array([[1.0], [1.0]]), np.array([[1.0], [60.0]])
    result = audit_epsilon(private, first, second, n_runs=3000, confidence=1 - 1e-6, random_state=0)
    assert result.refutes(1.0) == (factor > 1), str(result)


@pytest.mark.parametrize(
    ("parameters", "X", "message"),
    [
        ({"epsilon": 1e-9}, [[0.0], [1.0]], "epsilon"),
        ({"start": (1, 0)}, [[0.0], [1.0]], "crossed"),
        ({"start": (0, np.inf)}, [[0.0], [1.0]], "finite"),
        ({}, np.empty((0, 2)), "0 sample"),
        ({}, [[0.0], [np.nan]], "NaN"),
        ({}, [[[0.0], [np.inf]]], "NaN or infinity"),
        ({}, [[[0.0], [1.0]], [[0.0, 1.0]]], "2 features"),
    ],
)
def test_private_bounds_refuse_bad_input_unpaid(parameters, X, message):
    refuses_unpaid(message, PrivateBounds(**parameters).fit, X)


def test_private_bounds_of_one_row_and_constant_columns_have_a_side():
    for X in ([[3.0, 4.0]], [[0.0, 5.0]] * 50):
        low, high = PrivateBounds(1.0, random_state=0).fit(X).bounds_
        assert np.isfinite(low).all() and (low < high).all()


@pytest.mark.parametrize(
    "kind", [DTMFiltration, pytest.param(KernelDistanceFiltration, marks=pytest.mark.laws)]
)
def test_filtration_pays_once_for_its_private_bounds(kind):
    X = [make_two_circles(300, random_state=seed) for seed in range(2)]
    with PrivacyAccountant(1.0) as accountant:
        box = PrivateBounds(0.25, start=(-1000, 1000), random_state=0)
        filtration = kind(bounds=box, resolution=21)
        functions = filtration.fit_transform(X)
        assert accountant.total().epsilon == 0.25
        private = PrivatePersistence(0.75, random_state=0).fit(functions)
        private.transform(functions)
        # The box has already been paid for.
        assert accountant.total().epsilon == 1.0
        refuses(None, filtration.fit, X, error=PrivacyBudgetExceeded)
        assert filtration.transform(X)[0].bounds_guarantee.epsilon == 0.25
    guarantee = private.privacy_guarantee_
    assert guarantee.epsilon == 1.0 and "a box" in guarantee.released
    assert functions[0].public_bounds
    assert filtration.get_params()["bounds__epsilon"] == 0.25


def test_private_persistence_refuses_several_private_bounds():
    X = [make_two_circles(200, random_state=0)]
    start = {"start": (-50, 50), "random_state": 0}
    one = DTMFiltration(bounds=PrivateBounds(1.0, **start), resolution=11).fit_transform(X)
    other = DTMFiltration(bounds=(-3, 4), resolution=11).fit_transform(X)
    refuses("several boxes", PrivatePersistence().fit, [*one, *other])
    refuses("another private box", PrivatePersistence(random_state=0).fit(other).transform, one)


def test_filtration_refuses_private_bounds_that_do_not_fit_unpaid():
    X, box = [make_two_circles(200, random_state=0)], PrivateBounds(0.5)
    private = PrivateBounds(0.5, adjacency="add-remove")
    refuses_unpaid("adjacency='replace-one'", DTMFiltration(bounds=private).fit, X)
    counted = DTMFiltration(bounds=(-3, 4)).fit(X).make_histogram(X[0])
    refuses_unpaid("histograms", DTMFiltration(bounds=box).fit, [counted])
    refuses_unpaid("resolution", DTMFiltration(resolution=1, bounds=box).fit, X)


def test_filtration_in_bounds_of_data_stays_without_public_bounds():
    X = [make_two_circles(200, random_state=0)]
    with pytest.warns(PrivacyLeakWarning):
        filtration = DTMFiltration(resolution=11).fit(X)
    assert not filtration.set_params(bounds=(-3, 4)).transform(X)[0].public_bounds


def test_private_bounds_tell_no_sizes_in_errors_of_memory(monkeypatch):
    monkeypatch.setattr(
        _private_cubes,
        "shifted_cube",
        failing(MemoryError("Unable to allocate an array with shape (4321, 2)")),
    )
    accountant = PrivacyAccountant(1.0)
    private = PrivateBounds(0.5, start=(0, 1), accountant=accountant)
    with pytest.raises(MemoryError, match="too little memory") as caught:
        private.fit(np.zeros((5, 2)))
    assert "4321" not in str(caught.value) and caught.value.__cause__ is None
    assert caught.value.__suppress_context__ and accountant.total().epsilon == 0.5


@pytest.mark.parametrize(
    ("n", "epsilon", "warns"),
    [(300, 0.2, True), (300, 5.0, False), (300, 1e6, False), (3, 1e-6, True)],
)
def test_private_bounds_of_few_rows_warn_that_they_may_be_far_too_wide(n, epsilon, warns):
    X, start = np.random.default_rng(0).uniform(-1, 1, (n, 2)), (-10.0, 10.0)
    for public, expected in ((None, warns), (start, False)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            PrivateBounds(epsilon, start=public, random_state=0).fit(X)
        assert any("too wide" in str(each.message) for each in caught) == expected
