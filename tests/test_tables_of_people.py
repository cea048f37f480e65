"""All rows of a person have the weight of one: weights, exact losses, parts, and ids."""

import math
from functools import partial

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from sklearn_dptda.cluster import (
    DPLandmarkToMATo,
    DPLloyd,
    DPMoG,
    DPMoGMorse,
    DPToMATo,
    DPTree,
    MorseMerging,
)
from sklearn_dptda.decomposition import PrivatePCA
from sklearn_dptda.model_selection import pipeline_guarantee
from sklearn_dptda.population import PrivateMean
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import NoiseSource, PrivacyAccountant, PrivacyLeakWarning
from sklearn_dptda.published import DPCube
from sklearn_dptda.rows._moments import GaussianBudget, LaplaceBudget
from sklearn_dptda.rows._private_cubes import _least_cubes
from sklearn_dptda.rows._rows import MASS, Rows, weighted
from sklearn_dptda.synthetic import PrivateMeasure
from tests._refusals import refuses

BOX = (-1.0, 1.0)
ESTIMATORS = [
    DPLloyd(2, bounds=BOX),
    DPLloyd(2, delta=0.0, covariance_share=0.3),
    DPMoG(2, bounds=BOX, covariance_type="tied"),
    DPMoG(2, covariance_type="full"),
    DPMoGMorse(2, 3, bounds=BOX),
    DPTree(2, delta=0.0, bounds=BOX),
    DPCube(2, bounds=BOX),
    DPToMATo(2, bounds=BOX),
    DPLandmarkToMATo(2, bounds=BOX, n_landmarks=9),
    PrivateMean(),
    PrivateMean(delta=0.0, bounds=BOX, norm_bound=0.5),
    PrivateMeasure(),
    PrivateBounds(),
    PrivateBounds(shape="box"),
    PrivatePCA(bounds=BOX),
    PrivatePCA(delta=0.0),
]


def named(estimator):
    return type(estimator).__name__ + ("" if estimator.get_params().get("delta") else "-pure")


def visits(n_people=60, seed=0):
    """Rows of people of whom some have many."""
    rng = np.random.default_rng(seed)
    sizes = np.minimum(1 + (2 * rng.pareto(1.1, n_people)).astype(int), 300)
    ids = np.repeat([f"person-{i}" for i in range(n_people)], sizes)
    X = np.clip(
        0.2 * rng.normal(size=(len(ids), 2)) + rng.choice([-0.5, 0.5], (len(ids), 1)), -1, 1
    )
    table = pd.DataFrame({"x": X[:, 0], "patient_id": ids, "y": X[:, 1]})
    return table.sample(frac=1, random_state=seed, ignore_index=True)


def of_people(estimator, **options):
    return clone(estimator).set_params(groups="patient_id", random_state=0, **options)


def learnt(estimator):
    """Numbers that a fit has released."""
    released = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    return {n: v for n, v in released.items() if isinstance(v, np.ndarray | float | int)}


# Weights.


@pytest.mark.laws
@pytest.mark.parametrize("seed", range(20))
def test_weights_of_people_are_equal_whatever_their_rows(seed):
    rng = np.random.default_rng(seed)
    sizes = np.r_[1, MASS + 5, 1 + (3 * rng.pareto(0.6, 20)).astype(int).clip(0, 3000)]
    ids = np.repeat(np.arange(len(sizes)), sizes)
    numbers = np.arange(len(ids), dtype=float)[:, None]
    order = rng.permutation(len(ids))
    of_row = np.zeros(len(ids), dtype=np.int64)
    for rows, weight in weighted(numbers[order], ids[order].tolist(), {}):
        of_row[rows[:, 0].astype(int)] = weight
    totals = np.bincount(ids, of_row).astype(int)
    assert totals.max() == MASS and (totals > MASS - sizes).all()
    # The weights are equal for all rows of a person, and depend only on their number.
    assert (of_row == (MASS // sizes)[ids]).all()


def test_nested_cubes_move_by_one_weight_if_a_person_is_replaced():
    # Some counts may rise and others fall, but the range of their changes is at most one weight.
    rng, ranges, ways = np.random.default_rng(0), [], set()
    for _ in range(300):
        counts = []
        for n_rows in rng.integers(1, 7, 2):
            X = np.r_[[[0.5]], np.exp2(rng.integers(-2, 4, (n_rows, 1)))]
            people = Rows.of_array(X, ids=["a", *["b"] * n_rows])
            counts.append(np.cumsum(people.sum(_least_cubes)))
        moved = counts[0] - counts[1]
        ranges.append(moved.max() - moved.min())
        ways.add((moved.max() > 0, moved.min() < 0))
    assert max(ranges) == MASS and ways == {
        (True, True),
        (True, False),
        (False, True),
        (False, False),
    }


# Releases, with rows in any place.


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
@pytest.mark.filterwarnings("ignore:.*lie outside the bounds")
def test_groups_with_copies_of_rows_change_nothing(estimator):
    table = visits().drop_duplicates("patient_id", ignore_index=True)
    once = learnt(of_people(estimator).fit(table))
    copies = pd.concat([table, table, table[:9], table[:9]], ignore_index=True)
    again = learnt(of_people(estimator).fit(copies))
    assert once.keys() == again.keys()
    assert all(np.array_equal(once[name], again[name]) for name in once)


@pytest.mark.parametrize("kind", [LaplaceBudget, GaussianBudget])
@pytest.mark.parametrize("total", [math.inf, 1e6, 1.0])
def test_sums_of_eight_million_people_stay_within_64_bits(kind, total):
    # doc/theory/people.md: 2**23 people, each of weight 720,720.
    n = 2**23
    budget = kind(total / 720_720, "add-remove", NoiseSource(0), 720_720)
    counts, deviation = budget.noisy_counts(np.array([n * 720_720, 0]), 1, 0.01)
    assert abs(counts[0] / 720_720 - n) <= 20 * deviation / 720_720 + 1e-6


def test_private_measure_counts_people_alike():
    # One of a hundred people has a thousand rows elsewhere, and the result follows the others.
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(-0.5, 0.05, (2000, 2)), np.full((1000, 2), 0.5)]
    ids = np.r_[np.arange(2000) % 100, np.full(1000, 100)]
    exact = PrivateMeasure(np.inf, BOX, random_state=0).fit(X, groups=ids)
    right = exact.weights_[exact.support_[:, 0] > 0].sum()
    assert right == pytest.approx(1 / 101, abs=1e-4) and exact.n_samples_ == 101
    rows = PrivateMeasure(np.inf, BOX, random_state=0).fit(X)
    assert rows.weights_[rows.support_[:, 0] > 0].sum() == pytest.approx(1 / 3, abs=1e-6)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_guarantee_names_people(adjacency):
    private = of_people(DPLloyd(2, bounds=BOX), adjacency=adjacency).fit(visits())
    verb = {"add-remove": "adding or removing", "replace-one": "replacing"}[adjacency]
    assert f"for {verb} all rows of one person, by 'patient_id'" in str(private.privacy_guarantee_)
    assert ("at least two" in str(private.privacy_guarantee_)) == (adjacency == "add-remove")
    assert private._guarantee_ahead(3).unit == private.privacy_guarantee_.unit


def test_unit_is_a_name_and_changes_no_number():
    table = visits()[["x", "y"]]
    rows, clouds = (
        DPLloyd(2, bounds=BOX, unit=unit, random_state=0).fit(table)
        for unit in ("one row", "one cloud")
    )
    assert np.array_equal(rows.cluster_centers_, clouds.cluster_centers_)
    assert clouds.privacy_guarantee_.unit == "one cloud"
    private = of_people(DPLloyd(2, bounds=BOX), unit="one cloud").fit(visits())
    assert private.privacy_guarantee_.unit == "all clouds of one person, by 'patient_id'"


# Pipelines, searches, routing.


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_transform_hands_ids_on_in_frames(library):
    frames = pytest.importorskip(library)
    table = visits()
    frame = frames.DataFrame({name: table[name].tolist() for name in table})
    for step in (PrivatePCA(1, bounds=BOX), DPLloyd(1, bounds=BOX)):
        first = of_people(step).fit(frame)
        made = first.transform(frame)
        assert list(made.columns) == first.get_feature_names_out().tolist()
        assert made["patient_id"].to_list() == frame["patient_id"].to_list()
        assert first.transform(
            frame.drop(columns="patient_id") if library == "pandas" else frame.drop("patient_id")
        ).shape == (len(table), 1)
        first.set_output(transform=library)
        assert list(first.transform(frame).columns) == list(made.columns)
    steps = [PrivatePCA(1, bounds=BOX), DPLloyd(2, bounds=(-3, 3))]
    pipeline = make_pipeline(*map(of_people, steps)).fit(frame)
    assert pipeline_guarantee(pipeline).unit == "all rows of one person, by 'patient_id'"
    assert len(pipeline.predict(frame)) == len(table)


@pytest.mark.parametrize("people_first", [True, False])
@pytest.mark.filterwarnings("ignore:.*lie outside the bounds")
def test_pipeline_guarantee_tells_people_and_rows_apart(people_first):
    table = visits()
    first, second = PrivatePCA(1, bounds=BOX, random_state=0), DPLloyd(2, random_state=0)
    ids = table["patient_id"]
    with sklearn.config_context(enable_metadata_routing=True):
        (first if people_first else second).set_fit_request(groups=True)
        (second if people_first else first).set_fit_request(groups=False)
        pipeline = make_pipeline(first, second)
        with pytest.warns(PrivacyLeakWarning, match="Give groups to both"):
            pipeline.fit(table[["x", "y"]], groups=ids)
        refuses("Give groups to all steps", pipeline_guarantee, pipeline)


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.engines)])
@pytest.mark.filterwarnings("ignore:.*(lie outside the bounds|fits failed)")
def test_cross_validation_refuses_folds_that_split_people(n_jobs):
    table = visits()
    X, ids = table[["x", "y"]].to_numpy(), table["patient_id"]
    private = DPLloyd(2, bounds=BOX, random_state=0)
    named = clone(private).set_params(groups="patient_id")
    scores = cross_val_score(named, table, cv=GroupKFold(3), groups=ids, n_jobs=n_jobs)
    assert np.isfinite(scores).all()
    refuses("the folds split people", cross_val_score, named, table, cv=KFold(3), n_jobs=n_jobs)
    with sklearn.config_context(enable_metadata_routing=True):
        asked = clone(private).set_fit_request(groups=True)
        grid = partial(GridSearchCV, asked, {"epsilon": [1.0, 2.0]}, n_jobs=n_jobs)
        assert np.isfinite(grid(cv=GroupKFold(3)).fit(X, groups=ids).best_score_)
        refuses("the folds split people", grid(cv=KFold(3)).fit, X, groups=ids)


def test_morse_merging_passes_people_on():
    table = visits()
    for merged in (
        MorseMerging(of_people(DPMoG(2, bounds=BOX))).fit(table),
        MorseMerging(DPMoG(2, bounds=BOX)).fit(table[["x", "y"]], groups=table["patient_id"]),
    ):
        assert "one person" in merged.estimator_.privacy_guarantee_.unit
    assert len(MorseMerging(of_people(DPMoG(2, bounds=BOX))).fit(table).predict(table)) == len(
        table
    )


# Mistakes.

SECRET = "person-73645"


def changed(**columns):
    return visits().assign(**columns)


MISTAKES = {
    "too few ids": (lambda: SECRET, "groups has 12 entries, but X has"),
    "one person": (lambda t: [SECRET] * len(t), "at least 2 people"),
    "nobody's rows": (
        lambda t: [SECRET, None] * (len(t) // 2) + [SECRET] * (len(t) % 2),
        "some are missing",
    ),
    "names and numbers": (lambda t: [SECRET] + [7] * (len(t) - 1), "all numbers or all strings"),
    "nan": (lambda t: [math.nan] * len(t), "some are missing"),
    "lists": (lambda t: [[SECRET]] * len(t), "some are missing"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize(
    "estimator", [DPLloyd(2, bounds=BOX), PrivateBounds(), PrivatePCA()], ids=named
)
def test_groups_with_bad_ids_cost_nothing_and_quote_nobody(estimator, mistake):
    make, message = MISTAKES[mistake]
    table = visits()
    ids = make() if mistake == "too few ids" else make(table)
    accountant = PrivacyAccountant(10.0, 1e-3)
    private = clone(estimator).set_params(accountant=accountant)
    with pytest.raises(ValueError, match=message) as caught:
        private.fit(table[["x", "y"]], groups=ids)
    assert SECRET not in str(caught.value) and len(accountant) == 0
    if mistake != "too few ids":
        private.set_params(groups="patient_id")
        for method, given in (
            (private.fit, changed(patient_id=ids)),
            (private.fit_chunks, [changed(patient_id=ids)]),
        ):
            with pytest.raises(ValueError, match=message) as caught:
                method(given)
            assert SECRET not in str(caught.value) and len(accountant) == 0


def test_groups_given_twice_or_elsewhere_are_refused():
    table = visits()
    refuses("groups is given twice", of_people(DPLloyd(2)).fit, table, groups=table["patient_id"])
    with pytest.raises(ValueError, match="The argument groups of fit needs rows in memory"):
        array = pytest.importorskip("dask.array").from_array(table[["x", "y"]].to_numpy())
        DPLloyd(2).fit(array, groups=table["patient_id"])
