"""Mixed tables: data frames, integers, truth values and categories of private measures."""

import math
import pickle

import numpy as np
import pandas as pd
import pyarrow
import pytest
from sklearn.base import clone

from sklearn_dptda.synthetic import PrivateMeasure, _box_measure
from tests._refusals import refuses, refuses_unpaid

from ._measures import assert_audited

JOBS = ["cook", "clerk", "nurse", "smith", "tutor"]
LEVELS = ["low", "middle", "high"]
CATEGORIES = {"job": JOBS, "level": LEVELS}
BOUNDS = ([0, 17], [20, 90])


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=n)
    return pd.DataFrame(
        {
            "job": np.array(JOBS)[np.minimum(group + rng.geometric(0.6, n) - 1, 4)],
            "income": rng.lognormal(group / 2, 0.5, n),
            "level": pd.Categorical(np.array(LEVELS)[group], ["zzz", *LEVELS], ordered=True),
            "age": np.clip(rng.gamma(4 + group, 4) + 17, 17, 90).astype("int16"),
            "smokes": rng.random(n) < 0.2 + 0.2 * group,
        }
    )


def measure(epsilon=1.0, **options):
    return PrivateMeasure(epsilon, BOUNDS, categories=CATEGORIES, random_state=0, **options)


def total_variation(first, second, bins):
    """Half the sum of differences of the shares of values, or of bins of numbers."""
    if bins is not None:
        first, second = (np.digitize(column, bins) for column in (first, second))
    shares = [
        pd.Series(column).astype(str).value_counts(normalize=True) for column in (first, second)
    ]
    return shares[0].sub(shares[1], fill_value=0).abs().sum() / 2


def test_private_measure_returns_frames_of_same_types():
    X = people(500)
    private = measure().fit(X)
    synthetic = private.sample(random_state=0)
    assert list(synthetic.columns) == list(X.columns) == list(private.feature_names_in_)
    assert len(synthetic) == private.n_samples_
    for name in ("job", "income", "age", "smokes"):
        assert synthetic[name].dtype == X[name].dtype
    # A category of the rows' type that is not on the public list may come from the rows.
    assert synthetic["level"].cat.categories.tolist() == LEVELS and synthetic["level"].cat.ordered
    assert b"zzz" not in pickle.dumps(private)
    assert set(synthetic["job"]) <= set(JOBS)
    assert synthetic["age"].between(17, 90).all() and synthetic["income"].between(0, 20).all()
    pd.testing.assert_frame_equal(synthetic, clone(private).fit(X).sample(random_state=0))
    pd.testing.assert_frame_equal(
        synthetic, pickle.loads(pickle.dumps(private)).sample(random_state=0)
    )
    # Codes keep their meaning if the parameter is changed.
    private.set_params(categories=None)
    pd.testing.assert_frame_equal(synthetic, private.sample(random_state=0))


def test_private_measure_keeps_types_of_pandas_and_arrow():
    X = people(300).drop(columns="level")
    X = X.astype({"job": "string[pyarrow]", "age": "Int16", "smokes": "boolean"})
    X["nation"] = X["job"].astype(pd.ArrowDtype(pyarrow.string()))
    private = PrivateMeasure(bounds=BOUNDS, categories={"job": JOBS, "nation": JOBS})
    assert private.fit(X).sample(20).dtypes.tolist() == X.dtypes.tolist()
    table = pyarrow.Table.from_pandas(X)
    assert private.fit(table).sample(20).schema.types == table.schema.types
    # Nothing can be converted to a dictionary, whose values are those of the records anyway.
    coded = table.set_column(0, "job", table["job"].dictionary_encode())
    assert private.fit(coded).sample(20).schema.types == table.schema.types


@pytest.mark.filterwarnings("ignore:pandas.DataFrame with sparse columns")
def test_private_measure_reads_sparse_columns_as_numbers():
    X = pd.DataFrame({"a": pd.arrays.SparseArray([0, 1, 0, 2]), "b": [1.0, 2.0, 3.0, 4.0]})
    synthetic = PrivateMeasure(bounds=(0, 5)).fit(X).sample(9)
    assert synthetic["a"].between(0, 5).all()


@pytest.mark.conformance
def test_private_measure_returns_polars_frames():
    polars = pytest.importorskip("polars")
    columns = people(500)
    X = polars.DataFrame(
        {name: columns[name].tolist() for name in columns},
        schema_overrides={"age": polars.Int16, "level": polars.Enum(["zzz", *LEVELS])},
    )
    synthetic = measure().fit(X).sample(100, random_state=0)
    assert synthetic.columns == X.columns
    assert synthetic.dtypes == [
        polars.String,
        polars.Float64,
        polars.Enum(LEVELS),
        polars.Int16,
        polars.Boolean,
    ]


@pytest.mark.parametrize("kind", [np.array, np.ndarray.tolist])
def test_private_measure_takes_arrays_and_lists_of_objects(kind):
    X = kind(people(300).to_numpy(dtype=object)[:, :4])
    private = PrivateMeasure(bounds=BOUNDS, categories={0: JOBS, 2: LEVELS}, random_state=0).fit(X)
    synthetic = private.sample(50, random_state=0)
    assert synthetic.dtype == object and synthetic.shape == (50, 4)
    assert set(synthetic[:, 0]) <= set(JOBS) and set(synthetic[:, 2]) <= set(LEVELS)
    # An object is not an integer, and the values of a list are in the rows.
    assert all(isinstance(age, float) for age in synthetic[:, 3])


@pytest.mark.laws
def test_private_measure_takes_arrays_of_strings_and_truth_values():
    X = np.array(JOBS)[:, None].repeat(2, axis=1)
    longer = [*JOBS, "a job of a longer name"]
    found = set()
    for seed in range(20):
        private = PrivateMeasure(categories={0: longer, 1: longer}, random_state=seed).fit(X[:1])
        found |= set(private.sample(500, random_state=0)[:, 0])
    assert found == set(longer)
    assert private.privacy_guarantee_.public_parameters
    truth = PrivateMeasure(math.inf, adjacency="replace-one").fit(np.eye(2, dtype=bool))
    synthetic = truth.sample(50, random_state=0)
    assert synthetic.dtype == bool and (synthetic.sum(axis=1) == 1).all()


def test_private_measure_takes_names_that_are_numbers():
    X = pd.DataFrame(np.ones((20, 3)), columns=[4, 7, 5]).astype({4: int})
    synthetic = PrivateMeasure(bounds=(0, 3)).fit(X).sample(9)
    assert synthetic.columns.tolist() == [4, 7, 5]
    assert [dtype.kind for dtype in synthetic.dtypes] == ["i", "f", "f"]


def test_private_measure_keeps_integers(monkeypatch):
    X = np.array([[3, 200], [3, 7], [9, 7]], dtype=np.uint8)
    exact = PrivateMeasure(math.inf, (0.5, 300.5), adjacency="replace-one").fit(X)
    synthetic = exact.sample(300, random_state=0)
    assert synthetic.dtype == np.uint8
    assert set(map(tuple, synthetic.tolist())) == set(map(tuple, X.tolist()))
    noisy = PrivateMeasure(0.5, (0.5, 300.5), random_state=0).fit(X).sample(300, random_state=0)
    assert noisy.dtype == np.uint8 and noisy.min() >= 1
    # Each of three values occurs if only two boxes are known.
    monkeypatch.setattr(_box_measure, "MOST_LEVELS", 1)
    flat = PrivateMeasure(1.0, (1, 3), random_state=0)
    flat = flat.fit(pd.DataFrame({"a": pd.array([2] * 9, dtype="Int8")})).sample(
        9000, random_state=0
    )
    assert flat["a"].dtype == "Int8" and set(flat["a"]) == {1, 2, 3}
    huge = np.array([[2**62], [5]])
    wide = PrivateMeasure(bounds=(0, 1e19)).fit(huge).sample(20)
    assert wide.dtype == np.int64 and wide.min() >= 0
    refuses("column 1 have no whole number", PrivateMeasure(bounds=([0, 0.2], [9, 0.8])).fit, X)


@pytest.mark.parametrize("size", [1, 2, 3, 13, 40])
def test_box_measure_separates_single_values(size):
    sizes = np.array([size, math.inf])
    axes = _box_measure.halvings(sizes, 14)
    assert axes.count(0) == math.ceil(math.log2(size)) and len(axes) == 14
    ends = _box_measure.cell_ends(axes, sizes)
    low, high = _box_measure.boxes(axes, ends)
    there = (low < high).all(axis=1)
    assert _box_measure.box_numbers(axes, sizes)[-1] == there.sum() == size << 14 - axes.count(0)
    points = np.column_stack([(np.arange(size) + 0.5) / size, np.zeros(size)])
    leaves = _box_measure.leaf_of(points, axes, ends)
    assert there[leaves].all() and len(set(leaves)) == size
    assert (low[leaves] <= points).all() and (points < high[leaves]).all()


def random_points(rng):
    """Codes and numbers of the unit cube, and the sizes of their axes."""
    sizes = np.where(rng.random(4) < 0.5, rng.integers(1, 20, 4), math.inf)
    points = [
        rng.random(40) if math.isinf(size) else (rng.integers(size, size=40) + 0.5) / size
        for size in sizes
    ]
    return np.column_stack(points), sizes


@pytest.mark.laws
def test_box_measure_row_moves_one_count_of_each_level(rng):
    # 20 random tables of numbers and categories: leaving out a row changes one count of each level
    # by one, and replacing it changes two or none. In the worst case, all levels change at once.
    at_worst = False
    for _ in range(20):
        X, sizes = random_points(rng)
        axes = _box_measure.halvings(sizes, 7)
        ends = _box_measure.cell_ends(axes, sizes)
        low, high = _box_measure.boxes(axes, ends)

        def counts(points):
            leaves = _box_measure.leaf_of(points, axes, ends)  # noqa: B023
            return _box_measure.level_sums(np.bincount(leaves, minlength=len(low)))  # noqa: B023

        def changes(other):
            pairs = zip(counts(X), counts(other), strict=True)  # noqa: B023
            return [np.abs(a - b).sum() for a, b in pairs]

        assert changes(X[1:]) == [1] * len(axes)
        replaced = [changes(np.vstack([row, X[1:]])) for row in X[1:]]
        assert set(np.ravel(replaced)) <= {0, 2}
        at_worst |= np.min(replaced, axis=1).max() == 2
        assert (low < high).all(axis=1)[_box_measure.leaf_of(X, axes, ends)].all()
    assert at_worst


@pytest.mark.nightly
@pytest.mark.parametrize("share", [0.0, 0.9])
def test_private_measure_audit_of_categories_catches_broken_twin(share, monkeypatch):
    # 4,000 runs per side of a measure of three categories, and 2,000 of a twin with an eighth of
    # the noise; false alarms below 1e-6.
    monkeypatch.setattr(_box_measure, "MOST_LEVELS", 1)
    inside, outside = (np.array([[code], [2], [2]], dtype=object) for code in (0, 2))

    def release(X, random_state=None, epsilon=1.0):
        private = PrivateMeasure(
            epsilon,
            adjacency="replace-one",
            categories={0: [0, 1, 2]},
            marginal_share=share,
            random_state=random_state,
        ).fit(X)
        return private.marginals_[0][1, 1] if share else private.weights_[0]

    assert_audited(release, inside, outside)


def test_private_measure_without_noise_has_categories_of_data():
    X = people(200)[["job", "smokes"]]
    exact = PrivateMeasure(math.inf, adjacency="replace-one", categories={"job": JOBS}).fit(X)
    found = {
        (JOBS[round(job)], bool(round(smokes))): weight * 200
        for (job, smokes), weight in zip(exact.support_, exact.weights_, strict=True)
    }
    # The five jobs with both answers, and no values in between.
    assert len(found) == 10
    counts = X.value_counts().to_dict()
    assert {pair: count for pair, count in found.items() if count > 1e-9} == pytest.approx(counts)


def test_private_measure_takes_many_categories_and_only_one():
    many = [f"place {i}" for i in range(1000)]
    X = pd.DataFrame({"place": many[:5], "country": ["here"] * 5})
    lists = {"place": many, "country": ["here"]}
    synthetic = PrivateMeasure(1.0, categories=lists).fit(X).sample(300, random_state=0)
    assert set(synthetic["place"]) <= set(many) and set(synthetic["country"]) == {"here"}
    alone = PrivateMeasure(1.0, categories={"country": ["here"]}).fit(X[["country"]])
    assert alone.weights_.tolist() == [1.0]
    assert set(alone.sample(3)["country"]) == {"here"}


def test_private_measure_spends_all_on_boxes_of_single_values():
    rng = np.random.default_rng(0)
    X = rng.random((2000, 3)) < 0.5
    assert PrivateMeasure(1.0, random_state=0).fit(X).marginals_ == []
    few = PrivateMeasure(0.01, adjacency="replace-one", random_state=0).fit(X)
    assert len(few.marginals_) == 3


@pytest.mark.nightly
def test_private_measure_columns_are_near_data():
    # 2,000 rows at epsilon = 2: a part of the budget counts each column by itself. Without it,
    # numbers are spread uniformly over wide cells.
    X = people(2000)
    bins = {"income": np.linspace(0, 20, 21), "age": np.linspace(17, 90, 21)}

    def worst(private):
        synthetic = private.fit(X).sample(20_000, random_state=0)
        return max(total_variation(X[name], synthetic[name], bins.get(name)) for name in X)

    with_columns, without = worst(measure(2.0)), worst(measure(2.0, marginal_share=0.0))
    assert with_columns < 0.1 < 0.13 < without


NO_LIST = "'job' must be a list of at least one value"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"level": None}, r"'level' is not numeric. Pass categories=\{'level'"),
        ({"colour": ["red"]}, r"does not have: \['colour'\]"),
        ({0: JOBS}, r"does not have: \[0\]"),
        *(({"job": bad}, NO_LIST) for bad in ([], [*JOBS, "cook"], "cook", 5, [["cook"]])),
        ({"job": JOBS[:4]}, "'job' has values that are missing, or not in its list"),
        # With pandas before 3, a value of a column of objects would only be missing from the list.
        ({"job": [1, 2]}, "'job' (are not of the type|has values that are missing)"),
        *(({"age": [17, bad]}, "'age' are not of the type") for bad in (1.5, 10**6)),
    ],
)
def test_private_measure_refuses_bad_categories_unpaid(changes, message):
    categories = {k: v for k, v in (CATEGORIES | changes).items() if v is not None}
    private = PrivateMeasure(bounds=BOUNDS, categories=categories)
    said = refuses_unpaid(message, private.fit, people(100))
    # No value of a row is quoted, except those of the list that was passed.
    assert "tutor" not in said


def test_private_measure_refuses_missing_values_and_bounds_of_categories_unpaid():
    X = people(50)
    X.loc[7, "job"] = None
    refuses_unpaid("'job' has values that are missing", measure().fit, X)
    rows = people(9).to_numpy(dtype=object)
    refuses_unpaid("column 0 is not numeric", PrivateMeasure(bounds=BOUNDS).fit, rows)
    refuses_unpaid("not numbers", PrivateMeasure(bounds=BOUNDS).fit, [["tutor", 1.0]])
    unhashable, jobs = pd.DataFrame({"job": [["cook"], ["clerk"]]}), {"job": JOBS}
    missing = "'job' has values that are missing"
    refuses_unpaid(missing, PrivateMeasure(categories=jobs).fit, unhashable)
    all_columns = PrivateMeasure(bounds=([0] * 5, [1] * 5), categories=CATEGORIES)
    refuses_unpaid("2 here", all_columns.fit, people(9))
