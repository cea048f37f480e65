"""Measures by trees of pairs around a hub, also for models that are trained on synthetic rows."""

import math
import pickle
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from sklearn_dptda.privacy import _warnings, zcdp_rho
from sklearn_dptda.rows._rows import Rows
from sklearn_dptda.synthetic import PrivateMeasure, _box_measure, _tree_measure
from sklearn_dptda.utils._privacy_checks._border_checks import recorded, replayed
from tests._refusals import refuses, refuses_unpaid

KINDS = ["low", "high", "rare"]


def table(n, seed=0):
    """A class, two numbers that depend on it, one that does not, and an answer that does."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(3, n, p=[0.5, 0.4, 0.1])
    return pd.DataFrame(
        {
            "x": np.clip(rng.normal(kind, 0.7), -3, 6),
            "kind": np.array(KINDS)[kind],
            "y": np.clip(rng.lognormal(kind / 2, 0.5), 0, 20),
            "z": rng.uniform(0, 1, n),
            "yes": rng.random(n) < 0.2 + 0.3 * kind,
        }
    )


def measure(epsilon=1.0, **options):
    return PrivateMeasure(
        epsilon,
        ([-3, 0, 0], [6, 20, 1]),
        **{"categories": {"kind": KINDS}, "target": "kind", "random_state": 0} | options,
    )


def score(synthetic, X):
    """Area under the curve of a model of "rare or high", trained on the rows of another table."""
    features = ["x", "y", "z"]
    model = LogisticRegression().fit(synthetic[features], synthetic["kind"] == "low")
    return roc_auc_score(X["kind"] == "low", model.predict_proba(X[features])[:, 1])


@pytest.mark.nightly
def test_private_measure_with_target_trains_models():
    # 5,000 rows and ten seeds: the worst of them is compared with the model of the rows.
    X, fresh = table(5000), table(5000, seed=1)
    rows = score(X, fresh)
    with_target = [
        score(measure(random_state=seed).fit(X).sample(random_state=seed), fresh)
        for seed in range(10)
    ]
    assert min(with_target) > rows - 0.02


@pytest.mark.laws
@pytest.mark.parametrize("target", ["kind", "yes"])
def test_private_measure_with_target_has_columns_of_each_class(target):
    X = table(4000)
    exact = measure(math.inf, adjacency="replace-one", target=target).fit(X)
    synthetic = exact.sample(40_000, random_state=0)
    assert synthetic[target].dtype == X[target].dtype
    for value, rows in X.groupby(target):
        drawn = synthetic[synthetic[target] == value]
        assert len(drawn) / 40_000 == pytest.approx(len(rows) / 4000, abs=0.01)
        for name in ("x", "y", "z"):
            assert drawn[name].mean() == pytest.approx(rows[name].mean(), abs=0.1)
        for name in {"kind", "yes"} - {target}:
            shares = [part[name].value_counts(normalize=True) for part in (drawn, rows)]
            assert shares[0].sub(shares[1], fill_value=0).abs().max() < 0.04


@pytest.mark.parametrize(("share", "n_kinds"), [(0.0, 5), (0.4, 3)])
def test_private_measure_marginals_are_distribution_functions(share, n_kinds):
    kinds = [*KINDS, "none", "other"][:n_kinds]
    private = measure(marginal_share=share, categories={"kind": kinds, "yes": [False, True]})
    for ends, masses in (line.T for line in private.fit(table(500)).marginals_):
        assert (np.diff(ends) > 0).all() and (np.diff(masses) >= -1e-12).all()
        assert masses[0] == 0 and masses[-1] == pytest.approx(1)


def test_private_measure_of_tree_keeps_releases():
    private = measure(target=None).fit(table(500))
    assert private.hub_ == ["yes", "kind"]
    assert sorted({name for edge in private.edges_ for name in edge}) == ["x", "y", "z"]
    again = pickle.loads(pickle.dumps(private))
    pd.testing.assert_frame_equal(again.sample(random_state=0), private.sample(random_state=0))
    boxes = private.set_params(method="boxes").fit(table(500))
    assert boxes.hub_ == boxes.edges_ == [] and not hasattr(boxes, "_measure")


@pytest.mark.parametrize(
    ("sizes", "hint", "joined"),
    [
        ([np.inf, 2, 4, 2], None, (1, 3)),
        ([np.inf, 4, 2, 8], None, (2, 1)),
        ([np.inf, 2, 2, 26], 3, (3,)),
        ([np.inf, 2, 2, 3], 3, (3, 1)),
        ([np.inf, 9, np.inf], None, ()),
        ([1, np.inf, 8], None, (0, 2)),
    ],
)
def test_hub_joins_the_columns_of_fewest_values(sizes, hint, joined, rng):
    hub = _tree_measure.Hub.of(np.array(sizes, dtype=float), hint)
    assert hub.joined == joined
    points = np.where(
        np.isinf(hub.sizes),
        rng.random((50, len(sizes))),
        (rng.integers(0, 50, (50, len(sizes))) % np.where(np.isinf(hub.sizes), 1, hub.sizes) + 0.5)
        / hub.sizes,
    )
    axes = hub.axes(points)
    assert axes.shape[1] == len(hub.axis_sizes) == len(sizes) - max(len(joined) - 1, 0)
    assert hub.columns(axes) == pytest.approx(points)


@pytest.mark.parametrize(("adjacency", "moved"), [("add-remove", 1), ("replace-one", 2)])
@pytest.mark.parametrize(
    ("epsilon", "delta", "share"), [(0.3, 0.0, 0.0), (7.0, 0.0, None), (2.0, 1e-6, None)]
)
def test_private_measure_of_tree_spends_epsilon(epsilon, delta, share, adjacency, moved):
    # Beside the hub of the class and the answer there are three numbers, so that two pairs are
    # chosen, with scores that a row moves by one up or down, and two tables are released.
    private = measure(epsilon, delta=delta, adjacency=adjacency, marginal_share=share)
    draws = recorded(partial(private.fit, table(400))).crossings
    choices = [2 * moved * draw.rate for draw in draws if draw.metric == "range"]
    *lines, tables = [draw.rate for draw in draws if draw.metric in ("l1", "l2")]
    assert len(choices) == 2 and (len(lines) > 2) == (share != 0)
    if delta == 0:
        spent, total = sum(choices) + moved * (sum(lines) + 2 * tables), epsilon
    else:
        squares = [rate**2 for rate in (*lines, tables, tables)]
        spent = sum(loss**2 / 8 for loss in choices) + sum(squares) * moved / 2
        total = zcdp_rho(epsilon, delta)
    assert total * (1 - 1e-9) < spent <= total * (1 + 1e-12)


@pytest.mark.parametrize("options", [{}, {"delta": 1e-6}, {"adjacency": "replace-one"}], ids=str)
@pytest.mark.parametrize("number", range(4))
def test_private_measure_of_tree_loses_at_most_its_promise(options, number):
    # What enters each draw, for two tables that differ in a row, given the same earlier results.
    X, other = table(60, number), table(1, 99 + number)
    kept = X[1:] if options.get("adjacency") == "replace-one" else X
    neighbour = pd.concat([kept, other], ignore_index=True)
    private = measure(1.5, **options)
    transcript, guarantee = replayed(private, X, neighbour)
    assert max(transcript.moves) <= 1 + 1e-9
    epsilon, rho = transcript.losses()
    if "delta" in options:
        assert 0 < rho <= zcdp_rho(1.5, 1e-6) * (1 + 1e-9) and guarantee.rho == pytest.approx(
            zcdp_rho(1.5, 1e-6)
        )
    else:
        assert 0 < epsilon <= 1.5 * (1 + 1e-9)


def test_tree_scores_move_by_one_for_each_added_row():
    # All tables of two small axes and up to four rows, against expected counts that are fixed.
    expected = np.array([[1, 2], [0, 3]])
    cells = [(0, 0), (0, 1), (1, 0), (1, 1)]

    def score(rows):
        counts = np.zeros((2, 2), dtype=int)
        for cell in rows:
            counts[cell] += 1
        return _tree_measure.score(counts, expected)

    tables = [rows for n in range(5) for rows in product(cells, repeat=n)]
    moves = {score((*rows, more)) - score(rows) for rows in tables for more in cells}
    assert moves == {-1, 1}


def test_tree_counts_each_row_once_in_each_table(rng):
    lines = [(np.linspace(0, 1, 17), np.sort(np.r_[0, rng.random(15), 1])) for _ in range(4)]
    cells = _tree_measure._Cells(np.array([np.inf, np.inf, 5, 3]), lines, 3)
    counts = _tree_measure._Counts.of(cells, [(3, 0, 1), (3, 1, 2), (3, 0)], [4, 7, 2])
    X = rng.random((200, 4))
    exact = counts.exact(Rows.of_array(X))
    assert [table.sum() for table in exact] == [200] * 3
    more = counts.exact(Rows.of_array(np.vstack([X, rng.random((1, 4))])))
    assert [np.abs(b - a).sum() for a, b in zip(exact, more, strict=True)] == [1] * 3
    # Cells of a column of five values are single values.
    assert exact[1].shape[2] == 5
    assert exact[1].sum(axis=(0, 1)).tolist() == np.bincount((X[:, 2] * 5).astype(int)).tolist()


def test_tree_moves_table_to_nearest_masses(rng):
    # Compared with SciPy's least squares under the same conditions.
    noisy = rng.normal(2, 4, 6)
    near = _tree_measure._nearest_masses(noisy.reshape(2, 3), 12.0)
    best = minimize(
        lambda m: ((12 * m - noisy) ** 2).sum(),
        np.full(6, 1 / 6),
        bounds=[(0, 1)] * 6,
        constraints={"type": "eq", "fun": lambda m: m.sum() - 1},
        options={"ftol": 1e-12},
    )
    assert near.ravel() == pytest.approx(best.x, abs=1e-5)


def test_tree_edges_lead_from_the_root():
    edges = _tree_measure._from_root([0, 1, 2, 3, 4], [(0, 3), (2, 4), (1, 3), (2, 3)])
    assert edges == [(3, 0), (3, 1), (3, 2), (2, 4)]


@pytest.mark.laws
@pytest.mark.parametrize("options", [{}, {"delta": 1e-6}], ids=str)
def test_private_measure_of_tree_keeps_dependence_on_two_columns(options):
    # The class is the sign of a product, so that neither column alone says anything about it. The
    # agreement is near one half for independent columns; ten seeds.
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, (10_000, 4)), columns=list("abcd"))
    X["same"] = X["a"] * X["b"] > 0
    for seed in range(10):
        drawn = (
            PrivateMeasure(1.0, (-1, 1), random_state=seed, **options)
            .fit(X)
            .sample(10_000, random_state=seed)
        )
        assert ((drawn["a"] * drawn["b"] > 0) == drawn["same"]).mean() > 0.85


def test_private_measure_without_lines_takes_the_tables():
    X = np.random.default_rng(0).beta(2, 8, (3000, 4))
    for epsilon in (20.0, math.inf):
        private = PrivateMeasure(
            epsilon, (0, 1), adjacency="replace-one", marginal_share=0.0, random_state=0
        ).fit(X)
        assert private.sample(3000, random_state=0).mean(axis=0) == pytest.approx(
            [0.2] * 4, abs=0.03
        )


@pytest.mark.laws
def test_private_measure_of_tree_keeps_values_that_most_rows_have():
    # Nine in ten rows are zero in a column; twenty seeds.
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"z": np.where(rng.random(5000) < 0.9, 0.0, rng.uniform(5, 100, 5000))})
    X["x"], X["y"], X["yes"] = rng.normal(size=5000), rng.normal(size=5000), rng.random(5000) < 0.5
    bounds = {"z": (0, 100), "x": (-4, 4), "y": (-4, 4)}
    for seed in range(20):
        private = PrivateMeasure(1.0, bounds, random_state=seed).fit(X)
        low = (private.sample(5000, random_state=seed)["z"] < 4).mean()
        assert low == pytest.approx(0.9, abs=0.06)


@pytest.mark.parametrize(
    ("X", "options"),
    [
        (np.ones((1, 4)), {}),
        (np.full((30, 5), 0.5), {}),
        (np.column_stack([np.zeros(20), np.linspace(0, 1, 20)]), {"method": "tree"}),
        (np.linspace(0, 1, 20)[:, None], {"method": "tree"}),
        (
            np.array([[0, 1, 1]] * 9),
            {"method": "tree", "categories": {j: [0, 1] for j in range(3)}},
        ),
        (np.array([[0, 0.2, 0.3]] * 9), {"method": "tree", "categories": {0: [0.0]}}),
    ],
)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_private_measure_of_tree_takes_any_table(X, options, delta):
    for epsilon in (0.01, 1.0, math.inf):
        private = PrivateMeasure(epsilon, (0, 1), delta=delta, random_state=0, **options).fit(X)
        drawn = private.sample(30, random_state=0)
        assert drawn.shape == (30, X.shape[1]) and (drawn >= 0).all() and (drawn <= 1).all()


def test_private_measure_of_tree_is_the_same_by_chunks():
    X = table(700)
    whole, parts = measure().fit(X), measure().fit_chunks([X[:300], X[300:]])
    pd.testing.assert_frame_equal(whole.sample(random_state=0), parts.sample(random_state=0))


def test_private_measure_without_noise_draws_long_lists_of_categories():
    # More values than a table has cells, so that neighbours in the list share one.
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [rng.integers(0, 90, 3000), rng.random((3000, 2)), rng.integers(0, 2, 3000)]
    )
    private = PrivateMeasure(
        math.inf, (0, 1), categories={0: list(range(90)), 3: [0, 1]}, random_state=0
    ).fit(X)
    drawn = private.sample(9000, random_state=0)[:, 0].astype(int)
    assert np.bincount(drawn, minlength=90) / 9000 == pytest.approx(
        np.bincount(X[:, 0].astype(int), minlength=90) / 3000, abs=0.012
    )


TWICE = pd.concat([table(20), table(20)[["kind"]]], axis=1)
MISTAKES = [
    ({"target": "x"}, r"target must be a categorical or Boolean column.*got 'x'"),
    ({"target": "nothing"}, "target must be a categorical or Boolean column"),
    ({"target": 0}, "target must be a categorical or Boolean column"),
    ({"target": True}, "target must be a categorical or Boolean column"),
    ({"bounds": None, "X": table(20)[["kind"]]}, "beside others"),
    ({"bounds": (-3, 20), "X": TWICE}, "2 columns with the name 'kind'"),
    ({"marginal_share": 1.0}, "marginal_share"),
    ({"categories": [0, 1]}, "categories"),
    ({"method": "boxes"}, "target must be None with method='boxes'"),
    ({"method": "boxes", "target": None, "delta": 1e-6}, "delta must be 0 for boxes"),
    (
        {"bounds": (0, 1), "categories": None, "target": None, "X": np.zeros((2, 600))},
        "X has 600 columns, too many to choose pairs",
    ),
]


@pytest.mark.parametrize(("options", "message"), MISTAKES)
def test_private_measure_refuses_mistakes_unpaid(options, message):
    X = options.get("X", table(20))
    private = measure().set_params(**{k: v for k, v in options.items() if k != "X"})
    refuses_unpaid(message, private.fit, X)


def test_private_measure_of_tree_has_no_error_bound():
    refuses("no error bound for a tree", measure().fit(table(50)).error_bound)


@pytest.mark.laws
def test_private_measure_with_target_takes_absent_class():
    X = table(200)
    X = X[X["kind"] != "rare"]
    exact = measure(math.inf, adjacency="replace-one").fit(X)
    assert set(exact.sample(2000, random_state=0)["kind"]) == {"low", "high"}
    assert set(measure(1.0).fit(X).sample(100, random_state=0)["kind"]) <= set(KINDS)
    one_row = measure(0.01).fit(X[:1]).sample(5, random_state=0)
    assert len(one_row) == 5


@pytest.mark.laws
@pytest.mark.parametrize("epsilon", [0.2, 5.0])
def test_private_measure_with_target_counts_rows_at_bound(epsilon):
    # 3,000 rows, three in ten of them clipped to the upper bound; twenty fits of each kind.
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3000)
    x = np.where(rng.random(3000) < 0.3, 1.0, rng.uniform(0, 0.9, 3000))
    for seed in range(20):
        private = PrivateMeasure(
            epsilon, (0, 1), categories={1: [0, 1]}, target=1, random_state=seed
        ).fit(np.column_stack([x, y]))
        drawn = private.sample(4000, random_state=0)[:, 0]
        assert (drawn > 0.93).mean() == pytest.approx(0.3, abs=0.08)
        # Rows are drawn from the released values of a column.
        ends, masses = private.marginals_[0].T
        assert np.interp(0.93, ends, masses) == pytest.approx((drawn < 0.93).mean(), abs=0.03)


def test_private_measure_with_target_takes_arrays_and_constant_columns():
    X = np.column_stack([np.repeat([0.0, 1.0], 50), np.zeros(100), np.linspace(0, 1, 100)])
    private = PrivateMeasure(5.0, (0, 1), categories={0: [0.0, 1.0]}, target=0, random_state=0).fit(
        X
    )
    synthetic = private.sample(200, random_state=0)
    assert set(synthetic[:, 0]) == {0.0, 1.0}
    assert synthetic[synthetic[:, 0] == 1, 2].mean() > synthetic[synthetic[:, 0] == 0, 2].mean()


def test_box_measure_told_from_below_is_least_squares():
    # Compared with numpy's weighted least squares, for a tree in which one half is missing.
    rng = np.random.default_rng(0)
    there = [np.array([True, True]), np.array([True, True, True, False])]
    noisy = [rng.normal(size=2), np.where(there[1], rng.normal(size=4), 0.0)]
    variances = np.array([2.0, 0.5])
    (told, _), spread = _box_measure.told_from_below(noisy, variances, there)
    design = np.array([[1, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    weights = 1 / np.sqrt(np.repeat(variances, [2, 3]))
    counts = np.r_[noisy[0], noisy[1][:3]]
    best = np.linalg.lstsq(design * weights[:, None], counts * weights, rcond=None)[0]
    assert told == pytest.approx([best[0] + best[1], best[2]])
    # Variances of the least squares, by the normal equations.
    inverse = np.linalg.inv(design.T @ np.diag(weights**2) @ design)
    sums = np.array([[1, 1, 0], [0, 0, 1]])
    assert spread[0] == pytest.approx(np.diag(sums @ inverse @ sums.T).mean())


def test_box_measure_told_from_below_takes_levels_that_were_not_counted():
    there = [np.ones(2, dtype=bool), np.ones(4, dtype=bool)]
    noisy = [np.array([99.0, 99.0]), np.array([1.0, 2.0, 3.0, 4.0])]
    told, spread = _box_measure.told_from_below(noisy, np.array([np.inf, 0.5]), there)
    assert told[0].tolist() == [3, 7] and spread == pytest.approx([1.0, 0.5])


def test_a_long_choice_of_pairs_is_announced(monkeypatch, rng):
    narrow, wide = rng.uniform(size=(20, 3)), rng.uniform(size=(20, 6))
    monkeypatch.setattr(_warnings, "_LONG", 1e-5)
    PrivateMeasure(1.0, (0, 1), random_state=0).fit(narrow)
    with pytest.warns(UserWarning, match=r"take about \d+ s\. Half of the columns"):
        PrivateMeasure(1.0, (0, 1), random_state=0).fit(wide)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 31, 32, 33])
def test_drawn_cells_are_those_of_comparisons(n, rng):
    lines = np.cumsum(rng.integers(0, 3, (50, n)).astype(float), axis=1)
    rows, values = rng.integers(0, 50, 2000), rng.integers(-1, 4 * n, 2000) / 2
    found = _tree_measure._numbers_up_to(values, lines, rows)
    assert np.array_equal(found, (lines[rows] <= values[:, None]).sum(axis=1))
