"""Clouds of people: integer weights, worst neighbours, broken twins, parts, guarantees."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from sklearn_dptda import (
    DTMFiltration,
    KernelDistanceFiltration,
    PersistenceProfile,
    PrivateBettiNumbers,
    PrivatePersistence,
)
from sklearn_dptda.filtration import LatticeHistogram, _cloud
from sklearn_dptda.model_selection import PrivateMassSearch, pipeline_guarantee
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import NoiseWarning
from tests._refusals import refuses, refuses_unpaid

FEW = "ignore:One person can change the function"


def people(rng, n_people):
    """Arrays of 1 to 2,000 points: at a corner, at several, anywhere, or outside of the box."""

    def one():
        n = int(min(1 + 3 * rng.pareto(0.7), 2000))
        middle = rng.choice([0.0, 1.0, 0.5, rng.random()], 2)
        spread = rng.choice([0.0, 0.01, 0.3])
        return np.clip(middle + spread * rng.normal(size=(n, 2)), -0.1, 1.1)

    return [one() for _ in range(n_people)]


def table_of(each):
    ids = np.repeat([f"person-{i}" for i in range(len(each))], list(map(len, each)))
    X = np.concatenate(each)
    return pd.DataFrame({"x": X[:, 0], "patient_id": ids, "y": X[:, 1]})


def change(filtration, first, second):
    """Largest change of a value, in units of the declared sensitivity."""
    (one,), (other,) = filtration.fit_transform([first]), filtration.fit_transform([second])
    assert one.sensitivity == other.sensitivity and one.upper == other.upper
    return np.abs(one.values - other.values).max() / one.sensitivity


def hostile_changes(filtration, n_runs):
    for seed in range(n_runs):
        rng = np.random.default_rng(seed)
        each = people(rng, rng.integers(2, 15))
        # All points are at one corner, and those of one person leave.
        if seed % 2:
            each = [np.zeros((rng.integers(1, 9), 2)) for _ in each]
        other = [*each[:-1], *people(rng, 1)]
        options = {"m": 0.05 + 0.9 * rng.random(), "max_distance": rng.choice([0.3, 0.7, 2.0])}
        if isinstance(filtration, KernelDistanceFiltration):
            options = {"bandwidth": rng.choice([0.05, 0.3, 2.0])}
        yield change(clone(filtration).set_params(**options), each, other)


GRID = {"bounds": (0, 1), "resolution": 7, "groups": True}
ON_LANDMARKS = DTMFiltration(
    0.3, landmarks=[[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.3, 0.4], [0.9, 0.2]], groups=True
)


@pytest.mark.laws
@pytest.mark.parametrize(
    ("filtration", "least"),
    [
        *((DTMFiltration(p=p, **GRID), 0.999) for p in (1, 1.5, 3)),
        (KernelDistanceFiltration(**GRID), 0.5),
        (ON_LANDMARKS, 0.999),
    ],
)
@pytest.mark.filterwarnings(FEW)
def test_filtrations_person_moves_by_at_most_sensitivity(filtration, least):
    assert least < max(hostile_changes(filtration, 60)) <= 1


@pytest.mark.parametrize(("m", "n_people", "p"), [(0.2, 20, 2), (0.1, 50, 1), (0.33, 7, 3)])
@pytest.mark.filterwarnings(FEW)
def test_dtm_filtration_person_attains_sensitivity(m, n_people, p):
    rng = np.random.default_rng(0)
    k = int(np.ceil(m * n_people - 1e-9))
    far = [np.ones((rng.integers(1, 9), 2)) for _ in range(n_people - k)]
    near = [np.zeros((rng.integers(1, 99), 2)) for _ in range(k)]
    filtration = DTMFiltration(m, p, bounds=(0, 1), resolution=5, groups=True)
    moved = change(filtration, far + near, far + near[:-1] + [np.ones((1999, 2))])
    assert moved == pytest.approx(1, abs=1e-9)


def _every_point_alike(codes, counts, totals):
    return counts << _cloud.WEIGHT_BITS


def _rounded_one_by_one(codes, counts, totals, bits=3):
    weights = np.rint((counts << bits) / totals[codes]).astype(np.int64)
    return weights << (_cloud.WEIGHT_BITS - bits)


@pytest.mark.laws
@pytest.mark.parametrize("broken", [_every_point_alike, _rounded_one_by_one])
@pytest.mark.parametrize(
    "filtration",
    [DTMFiltration(0.3, **{**GRID, "resolution": 33}, refinement=4), ON_LANDMARKS],
)
@pytest.mark.filterwarnings(FEW)
def test_dtm_filtration_of_people_catches_broken_weights(filtration, broken, monkeypatch):
    monkeypatch.setattr(_cloud, "parts_of_weights", broken)
    # 15 nodes have equal weight: 8/15 each are rounded to a whole number.
    spread = np.column_stack([np.linspace(0, 0.2, 15), np.zeros(15)])
    others = [np.zeros((1, 2))] + [np.ones((1, 2))] * 8
    assert change(filtration, [spread, *others], [np.ones((15, 2)), *others]) > 1.2


@pytest.mark.parametrize(
    "filtration",
    [
        DTMFiltration(0.13, bounds=(0, 1), resolution=15),
        DTMFiltration(0.4, 2, bounds=(0, 1), resolution=15, max_distance=0.2),
        KernelDistanceFiltration(0.2, bounds=(0, 1), resolution=15),
    ],
)
def test_filtrations_of_one_point_each_equal_points_bit_for_bit(filtration):
    X = np.random.default_rng(0).random((300, 2))
    (points,) = clone(filtration).set_params(method="lattice", refinement=2).fit_transform([X])
    for copies in (1, 7):
        each = [np.repeat(x[None], copies, axis=0) for x in X]
        (of_people,) = clone(filtration).set_params(groups=True, refinement=2).fit_transform([each])
        assert np.array_equal(points.values, of_people.values)
        assert (points.sensitivity, points.upper) == (of_people.sensitivity, of_people.upper)


@pytest.mark.parametrize("seed", range(6))
def test_weights_of_people_telescope(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 10 ** rng.integers(1, 10), size=rng.integers(1, 40)).tolist()
    lattice, others = ((0.0, 1.0), (len(counts) + 1,)), int(rng.integers(6))

    def weights(n_others):
        histogram = LatticeHistogram(*lattice, people=True)
        nodes = np.arange(len(counts))
        histogram._pieces = [
            _cloud.PeopleAtNodes(
                len(counts) + 1, ["she"], nodes, np.array(counts), np.array([False])
            )
        ]
        for i in range(n_others):
            histogram.update([[1.0]], [f"other-{i}"])
        return histogram.counts

    hers = weights(0)
    assert hers.min() >= 0 and hers.sum() == 2**_cloud.WEIGHT_BITS
    exact = np.array(counts) * 2.0**_cloud.WEIGHT_BITS / sum(counts)
    assert np.abs(hers[: len(counts)] - exact).max() <= 1 + 1e-6
    with_others = weights(others)
    assert np.array_equal(hers[:-1], with_others[:-1])
    assert with_others[-1] == hers[-1] + others * 2**_cloud.WEIGHT_BITS


@pytest.mark.engines
def test_lattice_histogram_counts_person_in_parts_once():
    frame = pytest.importorskip("dask.dataframe")
    rng = np.random.default_rng(3)
    table = table_of(people(rng, 60)).sample(frac=1, random_state=0, ignore_index=True)
    filtration = DTMFiltration(0.3, bounds=(0, 1), resolution=11, groups="patient_id").fit([table])
    (whole,) = filtration.transform([table])
    chunks = [table[:1], table[1:1], table[1:50], table[50:]]
    histograms = [
        filtration.make_histogram(table),
        filtration.make_histogram(chunks),
        filtration.make_histogram(frame.from_pandas(table, npartitions=7)),
        sum(map(filtration.make_histogram, chunks[::-1])),
    ]
    for histogram in histograms:
        assert histogram.n_points == 60
        assert np.array_equal(filtration.transform([histogram])[0].values, whole.values)
    polars = pytest.importorskip("polars")
    same = polars.DataFrame({name: table[name].tolist() for name in table})
    assert np.array_equal(filtration.transform([same])[0].values, whole.values)
    outside = table[["x", "y"]].clip(0, 1).ne(table[["x", "y"]]).any(axis=1)
    assert whole.n_clipped == table["patient_id"][outside].nunique() > 0


@pytest.mark.laws
def test_dtm_filtration_of_people_hands_unit_to_guarantees():
    rng = np.random.default_rng(4)
    table = table_of(people(rng, 60))
    unit = "all points of one person, by 'patient_id'"
    public = DTMFiltration(0.3, bounds=(0, 1), resolution=11, groups="patient_id")
    (filtration,) = public.fit_transform([table])
    assert filtration.unit == unit and filtration.n_points == 60
    for private in (PrivatePersistence(), PersistenceProfile(), PrivateBettiNumbers(threshold=0.1)):
        fitted = private.set_params(random_state=0).fit([filtration])
        fitted.transform([filtration])
        assert fitted.privacy_guarantee_.unit == unit
    search = PrivateMassSearch(public, random_state=0).fit([table])
    assert search.privacy_guarantee_.unit == unit and search.filtration_.groups == "patient_id"
    # As finely as one of so many people can change the values.
    assert filtration.approximation_error <= filtration.sensitivity
    boxed = clone(public).set_params(bounds=PrivateBounds(2.0, start=(-3, 3), random_state=0))
    pipeline = make_pipeline(boxed, PrivatePersistence(1.0, clipped_share=True, random_state=0))
    pipeline.fit_transform([table])
    guarantee = pipeline_guarantee(pipeline)
    assert guarantee.unit == unit and guarantee.epsilon == 3.0
    assert "for replacing all points of one person, by 'patient_id': " in str(guarantee)


@pytest.mark.filterwarnings(FEW)
def test_private_persistence_refuses_functions_of_other_records():
    table = table_of(people(np.random.default_rng(4), 60))
    public = DTMFiltration(0.3, bounds=(0, 1), resolution=5, groups="patient_id")
    (filtration,) = public.fit_transform([table])
    several = public.fit_transform([table, table.sample(frac=1, random_state=0)])
    assert several[0].unit == "all points of one person in one cloud, by 'patient_id'"
    private = PersistenceProfile(random_state=0).fit([filtration])
    of_points = DTMFiltration(0.3, bounds=(0, 1), resolution=5).fit_transform([table[["x", "y"]]])
    refuses(r"other records \(points or people\) than those in fit", private.transform, of_points)
    refuses("different records", PersistenceProfile().fit, [filtration, several[0]])


def test_dtm_filtration_warns_of_few_people():
    each = people(np.random.default_rng(5), 20)
    with pytest.warns(NoiseWarning, match="too few people"):
        DTMFiltration(0.3, bounds=(0, 1), resolution=5, groups=True).fit_transform([each])


def test_dtm_filtration_of_people_keeps_no_names():
    table = table_of(people(np.random.default_rng(6), 40))
    filtration = DTMFiltration(0.5, bounds=(0, 1), resolution=5, groups="patient_id").fit([table])
    assert "person-" not in str(vars(filtration)) and "person-" not in repr(
        filtration.make_histogram(table)
    )


MISTAKES = {
    "a person without points": (
        [np.zeros((3, 2)), np.zeros((0, 2))],
        True,
        "a person without points",
    ),
    "one person": ([np.zeros((3, 2))], True, "fewer than 2 people"),
    "an array": (np.zeros((9, 2)), True, "must be a list of arrays, one for each person"),
    "unlike people": ([np.zeros((3, 2)), np.zeros((3, 1))], True, "features"),
    "no frame": (np.zeros((9, 2)), "patient_id", "name of one column"),
    "another name": (table_of([np.zeros((2, 2))] * 3), "id", "name of one column"),
    "a missing id": (
        table_of([np.zeros((2, 2))] * 3).assign(patient_id=["person-1", None] * 3),
        "patient_id",
        "a number or a string for each point",
    ),
    "names and numbers": (
        table_of([np.zeros((2, 2))] * 3).assign(patient_id=["person-1", 7] * 3),
        "patient_id",
        "all numbers or all strings",
    ),
    "all points of one": (
        table_of([np.zeros((2, 2))] * 3).assign(patient_id="person-1"),
        "patient_id",
        "fewer than 2 people",
    ),
    "a histogram of points": (
        LatticeHistogram((0, 1), (11, 11)),
        "patient_id",
        "records are people",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_dtm_filtration_of_people_refuses_mistakes_unpaid_and_unquoted(mistake):
    cloud, groups, message = MISTAKES[mistake]
    for bounds in ((0, 1), PrivateBounds()):
        filtration = DTMFiltration(bounds=bounds, groups=groups)
        said = refuses_unpaid(message, filtration.fit, [cloud])
        assert "person-" not in said


def test_people_histogram_refuses_more_points_than_its_weights_hold():
    histogram = DTMFiltration(0.5, bounds=(0, 1), resolution=5, groups=True)
    histogram = histogram.fit([[np.zeros((1, 2))] * 2]).make_histogram([np.zeros((1, 2))] * 2)
    # A database may count so many points; nobody could list them.
    whole = histogram._whole()
    for n, refused in ((2**40 - 1, False), (2**40, True)):
        histogram._whole = lambda n=n: whole._replace(counts=np.array([n, 1]))
        if refused:
            with pytest.raises(ValueError, match="more than 2"):
                _ = histogram.counts
        else:
            assert histogram.counts.sum() == 2 * 2**22
