"""Draws that are functions of a secret key: their laws, and that repeated tasks repeat them."""

import copy
import hmac
import importlib
import math
import os
import pickle
import subprocess
import sys
import threading
from fractions import Fraction
from functools import partial, wraps
from hashlib import sha256
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.random_projection import GaussianRandomProjection

from sklearn_dptda import DTMFiltration, PrivatePersistence
from sklearn_dptda.cluster import DPLloyd, DPTree
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.features import DiagramFeatures, SortedLifetimes
from sklearn_dptda.metric_privacy import MetricExponentialMechanism
from sklearn_dptda.model_selection import release_once, release_replicates
from sklearn_dptda.model_selection._release_once import paid_by
from sklearn_dptda.population import PrivateMean
from sklearn_dptda.privacy import (
    NoiseSource,
    PrivacyAccountant,
    PrivacyBudgetExceeded,
    PrivacyLedgerError,
    _release,
    private_choice,
)
from sklearn_dptda.privacy._accountant import NamedAccountant
from sklearn_dptda.privacy._exact_draws import ExactDraws
from sklearn_dptda.privacy._parameters import public_parameters
from sklearn_dptda.privacy._release import digest_of
from sklearn_dptda.privacy._release_key import ReleaseKey, Turn
from tests._refusals import refuses
from tests.privacy._laws import noise_p_value, p_value
from tests.privacy._permute_and_flip import permute_and_flip_law

# Draws of a key follow from it, so that every run draws the same.
KEY = ReleaseKey._of(b"k" * 32)
# A test of a law fails if its p-value is below this.
ALARM = 1e-7
N = 10_000


@pytest.mark.parametrize(
    ("name", "scale"), [("laplace", 0.3), ("laplace", 2.3), ("gaussian", 0.75), ("gaussian", 7.0)]
)
def test_keyed_noise_follows_its_law(name, scale):
    draws = getattr(NoiseSource(KEY), f"discrete_{name}")(scale, N)
    assert noise_p_value(name, scale, draws) > ALARM
    # The test detects a scale that is wrong by 15 %.
    assert noise_p_value(name, 1.15 * scale, draws) < ALARM


def test_keyed_gaussian_has_its_variance_at_a_large_scale():
    draws = NoiseSource(KEY).discrete_gaussian(2.0**50, 2000) / 2.0**50
    # Five and a half standard errors.
    assert abs(draws.mean()) < 5.5 / math.sqrt(2000)
    assert abs(draws.var() - 1) < 5.5 * math.sqrt(2 / 2000)


@pytest.mark.parametrize("bounded_range", [True, False])
def test_keyed_choice_follows_its_law(bounded_range):
    costs, rate = [3, 0, 1, 9], 0.7
    draws = [
        private_choice(costs, rate, NoiseSource(KEY.child(i)), bounded_range=bounded_range)
        for i in range(5000)
    ]
    odds = np.exp(-rate * np.array(costs))
    expected = odds / odds.sum() if bounded_range else permute_and_flip_law(costs, rate)
    assert p_value(draws, expected) > ALARM
    assert p_value(draws, np.roll(expected, 1)) < ALARM


@pytest.mark.parametrize("exponent", [(0, 1), (1, 3), (1, 1), (7, 2)])
def test_keyed_draws_happen_with_exact_probabilities(exponent):
    # Five and a half standard errors.
    draws = ExactDraws(NoiseSource(KEY))
    hits = sum(draws._happens(Fraction(*exponent)) for _ in range(N))
    p = math.exp(-exponent[0] / exponent[1])
    assert abs(hits - N * p) <= 5.5 * math.sqrt(N * p * (1 - p))


def test_keyed_words_and_integers_are_one_stream():
    words = NoiseSource(KEY).words(5000)
    assert np.array_equal(words[:3000], NoiseSource(KEY).words(3000))
    # Bits of 64 * 5,000 fair coins within five and a half standard errors.
    ones = int(np.unpackbits(words.view(np.uint8)).sum())
    assert abs(ones - 160_000) < 5.5 * math.sqrt(80_000)
    source = NoiseSource(KEY)
    assert [source.below(1 << 64) for _ in range(3)] == words[:3].tolist()


def test_release_once_repeats_its_draw_and_pays_once():
    X = np.random.default_rng(0).uniform(size=(300, 2))
    budget = PrivacyAccountant(2.0, 1e-4)
    model = DPLloyd(2, 0.5, bounds=(0, 1), accountant=budget)
    first, again = release_once(model, X, "one"), release_once(model, X, "one")
    assert np.array_equal(first["cluster_centers_"], again["cluster_centers_"])
    assert budget.total().epsilon == 0.5
    # Another name is another release.
    other = release_once(model, X, "two")
    assert not np.array_equal(first["cluster_centers_"], other["cluster_centers_"])
    assert budget.total().epsilon == 1.0


def test_child_keys_of_neighbours_share_no_coins():
    # With coins from the key alone, the difference of two releases would be that of the records.
    X, key = np.zeros((50, 1)), ReleaseKey()
    digests = map(digest_of, (X, np.vstack([X[:-1], [[1.0]]])))
    turns = [Turn.of(key, "a name", 1, digest) for digest in digests]
    noise = [NoiseSource(turn.coins).discrete_laplace(1e6, 20) for turn in turns]
    assert (noise[0] != noise[1]).all()
    # Their payments are one, and the second line is refused.
    assert turns[0].payment == turns[1].payment and turns[0].line != turns[1].line
    careless = [NoiseSource(key).discrete_laplace(1e6, 20) for _ in range(2)]
    assert (careless[0] == careless[1]).all()


def test_release_once_under_one_name_shares_no_noise_between_neighbours():
    # Their difference would be that of the records.
    X, noise = np.full((400, 1), 0.5), []
    for rows in (X, X + 0.125):
        named = NamedAccountant(PrivacyAccountant(1.0, 1e-6), KEY, "a name")
        model = PrivateMean(bounds=(0, 1), adjacency="replace-one", accountant=named)
        noise.append(release_once(model, rows, "one")["mean_"] - rows.mean())
    # The noise has a standard deviation of 0.01, and rounding is far smaller than 1e-6.
    assert abs(noise[0] - noise[1]) > 1e-6


def test_pickle_of_a_fitted_estimator_holds_no_key():
    # Workers get the key with the estimator, and readers must not get it with the release.
    accountant, rows = (
        PrivacyAccountant(99.0, 1e-3),
        np.random.default_rng(0).uniform(size=(100, 2)),
    )
    functions = DTMFiltration(0.5, bounds=(0, 1), resolution=5).fit_transform([rows])
    for model, data in (
        (DPLloyd(2, bounds=(0, 1)), rows),
        (PrivatePersistence(50.0), functions),
        (make_pipeline(PrivatePersistence(40.0)), functions),
    ):
        named = NamedAccountant(accountant, KEY, f"a {type(model).__name__}")
        (model[0] if hasattr(model, "steps") else model).accountant = named
        assert KEY._secret in pickle.dumps(model)
        assert KEY._secret not in pickle.dumps(model.fit(data))


def turn_of(named, *determines):
    with named.turn(*determines) as turn:
        return turn


def test_refused_payment_uses_up_no_turn():
    budget, X = PrivacyAccountant(1.0, 1e-5), make_two_circles(300, random_state=0)
    model = DPTree(2, bounds=(-3, 4), accountant=budget.under("a"))
    refuses(None, model.set_params(epsilon=2.0).fit, X, error=PrivacyBudgetExceeded)
    first = model.set_params(epsilon=0.8).fit(X).cluster_centers_
    # The same work in another session pays nothing.
    again = DPTree(2, epsilon=0.8, bounds=(-3, 4), accountant=budget.under("a")).fit(X)
    assert np.array_equal(first, again.cluster_centers_) and len(budget) == 1


@pytest.mark.parametrize("n_jobs", [None, pytest.param(2, marks=pytest.mark.engines)])
def test_steps_that_run_at_the_same_time_have_names_of_their_own(n_jobs):
    budget, functions = PrivacyAccountant(3.0), list(np.random.default_rng(0).random((2, 40)))
    private = PrivatePersistence(0.5, sensitivity=0.1, upper=1.0, max_points=1, accountant=budget)
    both = FeatureUnion(
        [
            (name, make_pipeline(private, DiagramFeatures(SortedLifetimes(3), value_range=(0, 1))))
            for name in ("a", "b")
        ],
        n_jobs=n_jobs,
    )
    first, again = (release_once(both, functions, "union") for _ in range(2))
    assert np.array_equal(first, again) and len(budget) == 2
    names = [line.parameters["name"] for line in budget.spends()]
    assert sorted(names) == [f"'union/{step}__privatepersistence'" for step in "ab"]


class Outer(BaseEstimator):
    """An estimator that pays, and contains another one that pays."""

    def __init__(self, inner=None, accountant=None):
        self.inner = inner
        self.accountant = accountant


def test_an_estimator_that_contains_another_has_the_name_itself():
    budget = PrivacyAccountant(9.0)
    outer = Outer(DPLloyd(2, accountant=budget), accountant=budget)
    named = paid_by(clone(outer), outer, lambda payer: payer.under("mass"), apart=True)
    assert (named.accountant._name, named.inner.accountant._name) == ("mass", "mass/inner")


def test_under_works_after_a_memory_ledger_was_shared():
    budget = PrivacyAccountant(1.0)
    pickle.dumps(budget)
    assert turn_of(budget.under("a"), 1).line == turn_of(budget.under("a"), 1).line


def test_tags_of_keys_are_codes_of_their_secrets():
    # The expected name is computed from the definition, HMAC-SHA256 of the written label.
    expected = hmac.new(b"k" * 32, b"'name'", "sha256").hexdigest()[:32]
    assert KEY.tag() == expected and KEY.tag() not in (b"k" * 32).hex()
    assert len({each.tag() for each in (KEY, ReleaseKey(), *map(KEY.child, range(100)))}) == 102
    assert pickle.loads(pickle.dumps(KEY)).child((1, "a")).tag() == KEY.child((1, "a")).tag()
    assert repr(KEY) == "ReleaseKey()"


def test_named_accountant_gives_turns_in_the_order_of_releases():
    budget = PrivacyAccountant(1.0)
    first, second = ([turn_of(budget.under("a"), X) for X in (1, 2)] for _ in range(2))
    # The expected identity is computed from the definition.
    assert first[0].payment == sha256(b"1 a").hexdigest()[:32] and first[0].line["name"] == "a"
    named = budget.under("a")
    turns = [turn_of(named, 1) for _ in range(3)]
    assert turns[0].payment == first[0].payment == second[0].payment
    assert turns[0].coins.tag() == first[0].coins.tag() == second[0].line["tag"]
    assert len({turn.payment for turn in turns}) == len({t.coins.tag() for t in turns}) == 3
    # Copies and parts of the work have names and keys of their own.
    copies = [copy.deepcopy(named), copy.deepcopy(named), named.under("part")]
    turns += [turn_of(each, 1) for each in copies]
    assert [each.line["name"] for each in turns[3:]] == ["a/copy 1", "a/copy 2", "a/part"]
    assert len({turn.payment for turn in turns}) == len({t.coins.tag() for t in turns}) == 6
    # A template of clones is published with what it has fitted, and their noise follows from it.
    template = budget.under("b")
    assert template._key._secret in pickle.dumps(template)
    copy.deepcopy(template)
    assert template._key._secret not in pickle.dumps(template)


def test_fresh_coins_after_a_death_lose_twice_the_promise():
    # A mechanism of loss 1 whose run dies on one of its outputs: the surviving outputs lose almost
    # 2.
    e, rare = math.e, 1e-3
    law = np.array([rare * e, 0.25, 1 - 0.25 - rare * e])
    neighbour = np.array([rare, 0.25 * e - rare, 0.0])
    neighbour[2] = 1 - neighbour.sum()
    loss = np.abs(np.log(law / neighbour)).max()
    assert loss < 1.01
    survivors = law[:2] / law[:2].sum(), neighbour[:2] / neighbour[:2].sum()
    assert np.abs(np.log(survivors[0] / survivors[1])).max() > 1.95


@pytest.mark.engines
def test_names_refuse_descriptions_of_rows():
    X = np.random.default_rng(0).uniform(size=(300, 2))
    budget = PrivacyAccountant(1.0, 1e-4)
    model = DPLloyd(2, 0.5, bounds=(0, 1), accountant=budget)
    array = pytest.importorskip("dask.array").from_array(X, chunks=100)
    away = SimpleNamespace(map_reduce=lambda function: function(X))
    for description in (away, array):
        refuses("requires records in memory", release_once, model, description, "one")
    for description in (away, [away], array, [array], lambda: [X]):
        refuses("must be in memory", release_replicates, model, description, 2, name="two")
    assert len(budget) == 0


def _distance(a, b):
    return abs(float(a[0]) - float(b[0]))


def _twice(X):
    return 2 * X


class OfUser(BaseEstimator):
    """An estimator outside the package, whose parameters may mean anything."""

    def __init__(self, n_jobs=None):
        self.n_jobs = n_jobs


def test_digest_of_depends_on_all_parameters_and_fitted_state():
    long = np.arange(3000.0)
    other = long.copy()
    other[1500] += 1.0
    kinds = [
        MetricExponentialMechanism(1.0, _distance, [[long], [long + 1]]),
        MetricExponentialMechanism(1.0, _distance, [[long], [other + 1]]),
        make_pipeline(FunctionTransformer(_twice), DPLloyd(2)),
        make_pipeline(FunctionTransformer(partial(_twice)), DPLloyd(2)),
        make_pipeline(FunctionTransformer(partial(np.add, 1)), DPLloyd(2)),
        make_pipeline(FunctionTransformer(_twice), DPTree(2)),
        make_pipeline(FunctionTransformer(_twice), DPLloyd(3)),
        ColumnTransformer([("a", DPLloyd(2), [0, 1])]),
        ColumnTransformer([("a", DPLloyd(2), [0, 2])]),
    ]
    digests = list(map(digest_of, kinds))
    assert len(set(digests)) == len(digests)
    # In every process, and for every accountant.
    assert [digest_of(pickle.loads(pickle.dumps(kind))) for kind in kinds] == digests
    assert digest_of(DPLloyd(2, accountant=PrivacyAccountant(1.0))) == digest_of(DPLloyd(2))
    assert digest_of(OfUser(1)) != digest_of(OfUser(2))
    assert digest_of(DTMFiltration(n_jobs=1)) == digest_of(DTMFiltration(n_jobs=2))
    fitted = [StandardScaler().fit(np.array([[0.0], [size]])) for size in (1.0, 2.0)]
    sets = [FunctionTransformer(kw_args={"s": {FrozenEstimator(each)}}) for each in fitted]
    assert digest_of(sets[0]) != digest_of(sets[1])
    assert digest_of(sets[0]) == digest_of(clone(sets[0]))


def test_public_parameters_name_functions_without_an_address():
    # An address would differ in a worker, and the payment would be a different one.
    mechanism = MetricExponentialMechanism(2.0, _distance)
    assert public_parameters(mechanism)["metric"].endswith("test_keyed_draws._distance")


def release_of(budget, steps, X):
    """Release from a pipeline, always under the same name."""
    private = DPLloyd(2, 0.5, bounds=(-4, 4), accountant=budget)
    return release_once(make_pipeline(*steps, private), X, "one")


def test_release_once_refuses_a_name_of_something_else(monkeypatch):
    X = np.random.default_rng(0).uniform(size=(300, 2))
    neighbour = X.copy()
    neighbour[0] = 1 - neighbour[0]
    public = [StandardScaler().fit(np.array([[-size] * 2, [size] * 2])) for size in (1.0, 2.0)]
    twice = FunctionTransformer(_twice)
    for first, other in (
        (([], X), ([], neighbour)),
        (([FunctionTransformer(np.sin)], X), ([twice], X)),
        *[[([FrozenEstimator(scaler)], X) for scaler in public]],
    ):
        budget = PrivacyAccountant(10.0, 1e-3)
        release_of(budget, *first)
        refuses("Choose another name", release_of, budget, *other, error=PrivacyLedgerError)
        assert len(budget) == 1
    # Earlier steps are seen through their output, and functions need no name.
    budget = PrivacyAccountant(10.0, 1e-3)
    for step in (twice, FunctionTransformer(lambda X: X + X)):
        release_of(budget, [step], X)
    # The code of this package.
    monkeypatch.setattr(_release, "_sources", lambda: "another version")
    refuses("Choose another name", release_of, budget, [twice], X, error=PrivacyLedgerError)
    assert len(budget) == 1


def test_digest_of_an_array_is_that_of_its_values(tmp_path):
    X = np.random.default_rng(0).uniform(size=(30, 2))
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for equal in (np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], mapped):
        assert digest_of(equal) == digest_of(X)
    others = (X[:, :1], X.ravel(), X.astype(np.float32), np.nextafter(X, 2), X.view(np.int64))
    assert len({digest_of(each) for each in (X, *others)}) == 6
    # Texts are told apart by their cells, wherever the texts are in memory.
    words = [np.array([["a", part], [None, 2]], dtype=object) for part in ("bc", "".join("bc"))]
    assert digest_of(words[0]) == digest_of(words[1]) != digest_of(words[0].T)


def test_digest_of_refuses_code_that_cannot_be_imported():
    def inner(X):
        return X

    for nameless in (inner, lambda X: X, partial(inner), make_pipeline(FunctionTransformer(inner))):
        refuses("define functions and classes in a module", digest_of, nameless)
    # A wrapper has the name of what it wraps.
    refuses("define functions and classes in a module", digest_of, wraps(_twice)(lambda X: 3 * X))
    masks = [np.ma.array([1.0, 2.0], mask=mask) for mask in ([0, 1], [1, 0])]
    assert digest_of(masks[0]) != digest_of(masks[1])
    for module in (sys, threading.Lock()):
        refuses("cannot be described", digest_of, module)
    assert digest_of(np.add) == digest_of(np.add) != digest_of(np.multiply)
    assert digest_of(_twice) != digest_of(_distance)


def test_release_once_refuses_what_it_cannot_repeat():
    X = np.random.default_rng(0).uniform(size=(300, 2))
    budget = PrivacyAccountant(10.0, 1e-3)
    private = DPLloyd(2, 0.5, bounds=(0, 1), accountant=budget)
    pipeline = make_pipeline(GaussianRandomProjection(2), private)
    refuses("GaussianRandomProjection has random_state=None", release_once, pipeline, X, "one")
    refuses("DPLloyd has no accountant", release_once, DPLloyd(2, 0.5, bounds=(0, 1)), X, "one")
    grid = GridSearchCV(private, {"accountant": [budget, PrivacyAccountant(1.0)]})
    refuses("candidates of a search have accountants", release_once, grid, X, "one")
    mechanism = MetricExponentialMechanism(
        1.0, lambda a, b: 0.0, X[:3], accountant=PrivacyAccountant(9.0)
    )
    refuses("in a module", release_once, mechanism, X[:3], "one")
    assert len(budget) == 0


_DIGESTED = """
import numpy as np, pandas as pd
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn_dptda.cluster import DPLloyd
from sklearn_dptda.privacy._accountant import NamedAccountant
from sklearn_dptda.privacy._release import digest_of

def chosen(X):
    return X

X = np.arange(600.0).reshape(300, 2)
letters = FunctionTransformer(chosen, kw_args={"a": set("abcdefghijklmnopqrstuvwxyz")})
frame = pd.DataFrame({"a": ["u", "v"] * 150, "b": X[:, 0]})
digest = digest_of((make_pipeline(letters, DPLloyd(2)), X, frame)).hex()
print(digest)
"""


@pytest.mark.engines
def test_digest_of_is_the_same_in_another_process(tmp_path, monkeypatch):
    # Sets have another order in another process, unless its hashes are seeded alike.
    (tmp_path / "digested.py").write_text(_DIGESTED)
    monkeypatch.syspath_prepend(tmp_path)
    path = os.pathsep.join(each for each in sys.path if each)
    other = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    run = subprocess.run(
        [sys.executable, "-c", "import digested"],
        env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": other},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == importlib.import_module("digested").digest
    sys.modules.pop("digested")
