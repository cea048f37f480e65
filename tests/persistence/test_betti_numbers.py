"""Private counts: scores, law, statements, and refusals."""

import copy
import math
import re

import numpy as np
import pytest
from scipy.stats import binom

from sklearn_dptda import DTMFiltration, PrivateBettiNumbers
from sklearn_dptda.persistence._count_choice import scores_of, threshold_scores
from sklearn_dptda.persistence._private_betti_numbers import missed_score, threshold_statement
from tests._refusals import refuses
from tests.persistence._clouds import four_clouds
from tests.persistence._long_features import attacked, filtration, loops, wells
from tests.privacy._permute_and_flip import permute_and_flip_law

FALSE_ALARM = 1e-6


# Scores.


def test_threshold_scores_by_hand():
    scores = threshold_scores(np.array([9, 7, 2]), 5)
    assert scores.tolist() == [-4, -2, 2, -3]
    # There is nothing to count except the essential component.
    assert len(threshold_scores(np.array([], dtype=int), 5)) == 1


def test_threshold_scores_give_the_true_count_the_margin(rng):
    for _ in range(200):
        lives = np.sort(rng.integers(0, 50, size=rng.integers(1, 6)))[::-1]
        threshold = int(rng.integers(1, 50))
        scores = threshold_scores(lives, threshold)
        true = int((lives > threshold).sum())
        margin = np.abs(lives - threshold).min()
        assert scores[true] == margin
        assert (np.delete(scores, true) <= -margin).all()


def test_threshold_scores_move_no_further_than_lifetimes(rng):
    worst = 0
    for _ in range(200):
        size, most = rng.integers(1, 6), 7
        first = np.sort(rng.integers(0, 50, size))[::-1]
        second = np.sort(np.maximum(first + rng.integers(-most, most + 1, size), 0))[::-1]
        apart = np.abs(first - second).max()
        threshold = int(rng.integers(1, 50))
        counts = [threshold_scores(lives, threshold) for lives in (first, second)]
        assert np.abs(counts[0] - counts[1]).max() <= apart
        worst = max(worst, np.abs(counts[0] - counts[1]).max())
    # The bound is reached.
    assert worst == 7


# The law.


class TwiceTheRate(PrivateBettiNumbers):
    """Takes scores to move one way only."""

    def _choice(self, function):
        choice = super()._choice(function)
        return choice._replace(rate=2 * choice.rate)


def scores(private, item):
    """The choice of a fitted estimator, and the scores of all candidates."""
    (function,) = private.fit([item])._read([item])
    choice = private._choice(function.caps)
    found = scores_of(private._numbers(), function, choice)
    return choice, np.concatenate([each.ravel() for each in found])


def exact_law(estimator, values, sensitivity):
    """Law of the counts of one function, by enumeration of all orders."""
    choice, found = scores(estimator, filtration(values, sensitivity))
    return permute_and_flip_law(-found, choice.rate)


CASES = {
    "loops": ({"threshold": 0.2, "homology_dimensions": 1, "max_count": 3}, loops, 0.26),
    "components": ({"threshold": 0.2, "homology_dimensions": 0, "max_count": 3}, wells, 0.6),
    "both": ({"threshold": (0.2, 0.1), "max_count": 2}, loops, 0.26),
}


@pytest.mark.parametrize(
    ("case", "n_functions"),
    [("both", 4), ("components", 4), *(pytest.param(c, 40, marks=pytest.mark.laws) for c in CASES)],
)
def test_private_betti_numbers_lose_epsilon_and_a_twin_loses_more(case, n_functions, rng):
    options, make, level = CASES[case]
    sensitivity, worst = 2.0**-5, {PrivateBettiNumbers: 0.0, TwiceTheRate: 0.0}
    for _ in range(n_functions):
        values = make(np.sort(rng.uniform(0.0, 0.5, 3))[::-1])
        signs = rng.choice([-1.0, 1.0], values.shape) * sensitivity
        for other in (attacked(values, sensitivity, level), np.clip(values + signs, 0, 1)):
            for kind in worst:
                pair = [exact_law(kind(1.0, **options), v, sensitivity) for v in (values, other)]
                loss = np.abs(np.log(pair[0]) - np.log(pair[1])).max()
                worst[kind] = max(worst[kind], loss)
    assert worst[PrivateBettiNumbers] <= 1.0 + 1e-9
    # More than half of the budget is used, and the twin overspends.
    assert worst[PrivateBettiNumbers] > 0.5
    if case in ("loops", "components"):
        assert worst[TwiceTheRate] > 1.2


# Correctness of the statements.


def test_missed_score_bounds_permute_and_flip(rng):
    # Compared with exact laws: the worst case is many candidates just beyond the margin.
    for _ in range(50):
        rate, failure = 10 ** rng.uniform(-3, 0), rng.uniform(0.01, 0.3)
        bound = missed_score(5, rate, failure)
        for beyond in (bound + 1, 2 * bound + 1):
            law = permute_and_flip_law([0, *[beyond] * 4], rate)
            assert law[1:].sum() <= failure
    assert missed_score(1, 0.1, 0.01) == 0


def test_threshold_statement_sentences():
    sentence = threshold_statement({0: 2, 1: 0, 2: 1, 3: 5}, [0.3] * 4, 0.10001, 5)
    assert sentence == (
        "at least 2 components longer than 0.199; at most 2 components longer than 0.401; "
        "at most 0 loops longer than 0.401; "
        "at least 1 void longer than 0.199; at most 1 void longer than 0.401; "
        "at least 5 H3 classes longer than 0.199"
    )
    assert threshold_statement({0: 1, 1: 5}, [0.25, 0.25], 0.5, 5) == (
        "at most 1 component longer than 0.75"
    )
    assert threshold_statement({1: 5}, [0.3], 0.5, 5) == "nothing is certain"


def test_statements_of_counts_follow_each_sensitivity():
    items = [filtration(loops([0.3, 0.1]), s) for s in (0.001, 0.01)]
    private = PrivateBettiNumbers(5.0, 0.2, random_state=0).fit(items)
    counts = private.transform(items)
    assert counts.tolist() == [[1, 1], [1, 1]]
    first, second = private.statements(counts)
    assert "at least 1 loop longer than 0.19" in first and "(confidence 0.95)" in first
    margins = [
        float(re.search(r"least 1 loop longer than ([\d.]+)", s)[1]) for s in (first, second)
    ]
    assert 0.2 - margins[1] == pytest.approx(10 * (0.2 - margins[0]), rel=0.2)
    assert private.statements(counts[1:], items[1:]) == [second]
    refuses("counts has 1 rows", private.statements, counts[1:])
    refuses("counts must have 2 columns", private.statements, counts[:, :1])


@pytest.mark.engines
def test_statements_refuse_a_dask_collection():
    delayed = pytest.importorskip("dask").delayed
    items = [filtration(loops([0.3, 0.1]), 0.01)]
    private = PrivateBettiNumbers(5.0, 0.2, random_state=0).fit(items)
    counts = private.transform(items)
    refuses("counts is a Dask collection", private.statements, delayed(counts))


@pytest.mark.parametrize(
    ("options", "seed"),
    [({}, None), ({"threshold": 0.2}, 0), ({"threshold": 0.2, "max_count": 1}, None)],
)
def test_private_betti_numbers_of_extreme_epsilons(options, seed):
    item = filtration(loops([0.3, 0.02]), 0.001)
    private = PrivateBettiNumbers(1e6, random_state=seed, **options)
    assert private.fit_transform([item])[0, 1] == 1
    assert private.margins_[0] < 1e-5
    private.set_params(epsilon=0.002)
    (sentence,) = private.statements(private.fit_transform([item]))
    assert private.margins_[0] == math.inf
    assert sentence == "nothing is certain (confidence 0.95)."


# The estimator.


def test_private_betti_numbers_without_noise_count_by_hand():
    item = filtration(loops([0.3, 0.2, 0.1]), 0.01)
    for threshold, count in ((0.05, 3), (0.15, 2), (0.29, 1), (0.5, 0)):
        exact = PrivateBettiNumbers(np.inf, threshold).fit_transform([item])
        assert exact.tolist() == [[1, count]]
    assert PrivateBettiNumbers(np.inf, (0.05, 0.15)).fit_transform([item]).tolist() == [[1, 2]]
    assert PrivateBettiNumbers(np.inf, 0.05, max_count=2).fit_transform([item]).tolist() == [[1, 2]]
    line = filtration(wells([0.5, 0.4, 0.1]), 0.01)
    assert PrivateBettiNumbers(np.inf, 0.2, 0).fit_transform([line]).tolist() == [[3]]
    assert PrivateBettiNumbers(np.inf, None, 0).fit_transform([line]).tolist() == [[3]]
    # Without rounding, however close a persistence is to the threshold.
    near = filtration(loops([0.200009], base=0.0), 1.0)
    assert PrivateBettiNumbers(np.inf, 0.2).fit_transform([near]).tolist() == [[1, 1]]
    coarse = filtration(loops([0.3]), 1e-12)
    assert PrivateBettiNumbers(np.inf, 0.15).fit_transform([coarse]).tolist() == [[1, 1]]


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_private_betti_numbers_of_constant_functions_are_one_and_zero(value):
    item = filtration(np.full((4, 4), value), 0.001)
    for epsilon in (np.inf, 100.0):
        private = PrivateBettiNumbers(epsilon, 0.3, random_state=0)
        assert private.fit_transform([item]).tolist() == [[1, 0]]


def test_private_betti_numbers_make_frames(small):
    pandas = pytest.importorskip("pandas")
    private = PrivateBettiNumbers(1.0, 0.2).set_output(transform="pandas")
    frame = private.fit_transform([small])
    assert isinstance(frame, pandas.DataFrame) and list(frame.columns) == ["betti_0", "betti_1"]
    assert len(private.statements(frame)) == 1


def test_private_betti_numbers_guarantee_names_dimensions_and_threshold(small):
    guarantee = PrivateBettiNumbers(1.0, 0.2).fit([small]).privacy_guarantee_
    assert guarantee.delta == 0 and "(H0, H1) longer than 0.2" in str(guarantee)


@pytest.mark.nightly
@pytest.mark.parametrize(("n", "epsilon"), [(4000, 0.25), (20_000, 0.06)])
def test_private_betti_numbers_count_loops_at_a_small_epsilon(n, epsilon):
    # Two circles, one circle, a disc, and no shape: 95 % correct in 2,000 releases.
    items = DTMFiltration(m=0.2, bounds=(-2.5, 3)).fit_transform(four_clouds(n)[:3])
    private = PrivateBettiNumbers(epsilon, 0.2, 1, random_state=np.random.default_rng(0))
    for item, loops_there in zip(items, (2, 1, 0), strict=True):
        counts = private.fit([item]).transform([copy.deepcopy(item) for _ in range(2000)])
        assert (counts == loops_there).sum() >= binom.ppf(FALSE_ALARM, 2000, 0.95)
