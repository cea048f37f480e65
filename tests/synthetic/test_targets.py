"""Measures with a target: columns within classes, for models trained on synthetic rows."""

import math
import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from sklearn_dptda.privacy import PrivacyAccountant
from sklearn_dptda.synthetic import PrivateMeasure, _box_measure
from sklearn_dptda.utils._privacy_checks._border_checks import recorded

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
    private = measure(
        marginal_share=share, target="yes", categories={"kind": kinds, "yes": [False, True]}
    ).fit(table(500))
    for lines in [private.marginals_, *private.marginals_of_classes_]:
        for ends, masses in (line.T for line in lines):
            assert (np.diff(ends) > 0).all() and (np.diff(masses) >= -1e-12).all()
            assert masses[0] == 0 and masses[-1] == pytest.approx(1)


def test_private_measure_with_target_keeps_releases():
    private = measure().fit(table(500))
    assert len(private.marginals_of_classes_) == len(private.weights_) == 3
    assert all(len(lines) == 5 for lines in [private.marginals_, *private.marginals_of_classes_])
    again = pickle.loads(pickle.dumps(private))
    pd.testing.assert_frame_equal(again.sample(random_state=0), private.sample(random_state=0))
    assert measure(target=None).fit(table(500)).marginals_of_classes_ == []


@pytest.mark.parametrize(
    ("adjacency", "moved", "share", "epsilon"),
    [
        ("add-remove", 1, 0.0, 0.3),
        ("add-remove", 1, None, 7.0),
        ("replace-one", 2, 0.1, 7.0),
        ("replace-one", 2, None, 0.3),
    ],
)
def test_private_measure_with_target_spends_epsilon(adjacency, moved, share, epsilon):
    # A row is counted once in each of four tables of classes, whose noise has a common scale.
    private = measure(epsilon, adjacency=adjacency, marginal_share=share)
    draws = recorded(partial(private.fit, table(400))).crossings
    *others, of_classes = [draw.rate for draw in draws]
    spent = sum(moved * rate for rate in others) + 4 * moved * of_classes
    assert epsilon * (1 - 1e-9) < spent <= epsilon


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "x"}, r"target must be a categorical or Boolean column.*got 'x'"),
        ({"target": "nothing"}, "target must be a categorical or Boolean column"),
        ({"target": 0}, "target must be a categorical or Boolean column"),
        ({"target": True}, "target must be a categorical or Boolean column"),
    ],
)
def test_private_measure_refuses_bad_targets_unpaid(options, message):
    accountant = PrivacyAccountant(9.0)
    with pytest.raises(ValueError, match=message):
        measure(accountant=accountant).set_params(**options).fit(table(20))
    assert not accountant.spends()


def test_private_measure_refuses_target_alone_unpaid():
    accountant = PrivacyAccountant(9.0)
    alone = PrivateMeasure(categories={"kind": KINDS}, target="kind", accountant=accountant)
    with pytest.raises(ValueError, match="beside others"):
        alone.fit(table(20)[["kind"]])
    assert not accountant.spends()


@pytest.mark.parametrize("name", ["kind", "x"])
def test_private_measure_refuses_name_of_two_columns_unpaid(name):
    accountant, X = PrivacyAccountant(9.0), table(20)
    twice = pd.concat([X, X[[name]]], axis=1)
    with pytest.raises(ValueError, match=f"2 columns with the name '{name}'"):
        measure(accountant=accountant).set_params(bounds=(-3, 20)).fit(twice)
    assert not accountant.spends()


def test_private_measure_with_target_has_no_error_bound():
    with pytest.raises(ValueError, match="no error bound with a target"):
        measure().fit(table(50)).error_bound()


@pytest.mark.laws
def test_private_measure_with_target_takes_absent_class():
    X = table(200)
    X = X[X["kind"] != "rare"]
    exact = measure(math.inf, adjacency="replace-one").fit(X)
    assert exact.weights_[2] < 1e-6
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


@pytest.mark.laws
def test_private_measure_with_many_classes_has_coarser_lines():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random((300, 4)), rng.integers(0, 200, 300)])
    many = {4: list(map(float, range(200)))}
    private = PrivateMeasure(
        1e6, (0, 1), categories=many, target=4, marginal_share=0.5, random_state=0
    ).fit(X)
    assert sum(line.size for lines in private.marginals_of_classes_ for line in lines) < 1 << 23


@pytest.mark.laws
def test_private_measure_distance_of_releases_compares_classes():
    distance = measure().__sklearn_tags__().privacy.distance
    X = table(500)
    near, far = (
        vars(measure(math.inf, adjacency="replace-one").fit(X.assign(x=x)))
        for x in (X["x"], -X["x"].clip(-3, 3))
    )
    assert distance(near, near) == 0 < 1 < distance(near, far)


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
    shares = np.array([0.3, 0.7])
    told = _box_measure.told_from_below(noisy, shares, there)
    design = np.array([[1, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    weights = np.repeat(shares, [2, 3])
    counts = np.r_[noisy[0], noisy[1][:3]]
    best = np.linalg.lstsq(design * weights[:, None], counts * weights, rcond=None)[0]
    assert told[0] == pytest.approx([best[0] + best[1], best[2]])
