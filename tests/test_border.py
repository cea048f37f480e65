"""What enters the draws of every private estimator: no record moves it farther than declared.

Estimators are found by discovery, and so are their options: a new parameter fails a test until it
is tried here or is named among those that change no statistic. A release from one data set is
replayed for its neighbours, so that what enters the later draws is comparable, too.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pandas as pd
import pytest
from gudhi import SimplexTree
from sklearn.base import clone
from sklearn.utils import get_tags

from sklearn_dptda import DTMFiltration, PersistenceProfile, PrivateBettiNumbers, PrivatePersistence
from sklearn_dptda.cluster import DPLloyd
from sklearn_dptda.filtration import KernelDistanceFiltration, LandmarkComplex
from sklearn_dptda.metric_privacy import KNormMechanism, MetricExponentialMechanism
from sklearn_dptda.persistence import _cubical, _private_cap
from sklearn_dptda.persistence._private_cap import gates_of_caps
from sklearn_dptda.population import private_two_sample_test
from sklearn_dptda.privacy import NoiseSource, PrivacyGuarantee
from sklearn_dptda.privacy._border import Crossing, watched_border
from sklearn_dptda.privacy._release import release
from sklearn_dptda.published import PublishedPersistence, optimal_mechanism
from sklearn_dptda.rows import _assignments, _estimator
from sklearn_dptda.rows._moments import GaussianBudget
from sklearn_dptda.utils._privacy_checks import make_check_data
from sklearn_dptda.utils._privacy_checks._border_checks import (
    composed,
    recorded,
    recorded_release,
    replayed,
    within_promise,
)
from sklearn_dptda.utils.estimator_checks import make_instance
from tests._options import NO_STATISTIC, PRIVATE, VALUES, inherited_by, options_of, words_of
from tests._refusals import refuses

ROUNDING = 1 + 1e-9
pytestmark = [pytest.mark.usefixtures("few_public_draws"), pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("name", PRIVATE)
def test_border_tries_every_parameter(name):
    kind = PRIVATE[name]
    unknown = [
        parameter
        for parameter in kind().get_params(deep=False)
        if parameter not in NO_STATISTIC | VALUES.keys() and not words_of(kind, parameter)
    ]
    assert unknown == [], "add values to VALUES, or name them in NO_STATISTIC with a reason"


# Neighbours.


def tables(adjacency):
    """Tables of two columns, each with neighbours: rows at corners, at limits of floats, copies.

    A row is added to a table, or replaced in it.
    """
    rng = np.random.default_rng(0)
    spread, equal = rng.uniform(size=(40, 2)), np.full((12, 2), 0.5)
    corners = np.repeat([[0.0, 0.0], [1.0, 1.0]], 10, axis=0)
    for others, n_rows in ((spread, 4), (equal, 2), (corners, 2), (spread[:2], 1)):
        rows = [[1.0, 1.0], [1e308, -1e308], [1.0, 0.0], [5e-324, -0.0]][:n_rows]
        seconds = [np.vstack([[row], others]) for row in rows]
        if adjacency == "add-remove":
            yield others, seconds
        elif n_rows > 2:
            yield np.vstack([[[0.0, 0.0]], others]), seconds
            yield np.vstack([[[0.0, 1.0]], others]), seconds[2:]
        else:
            yield np.vstack([[[0.0, 0.0]], others]), seconds


def people(adjacency):
    """Frames with ids, each with a neighbour: a person has one row, or many, or nearly all.

    With add-remove neighbours, a person leaves.
    """
    rng = np.random.default_rng(1)
    for n_own, n_others in [(1, 20), (7, 20), (300, 4), (3, 3)]:
        own, others = rng.choice([0.0, 1.0], (n_own, 2)), rng.uniform(size=(n_others, 2))
        ids = np.r_[np.zeros(n_own, int), 1 + np.arange(n_others) // 2]
        # The other person has another number of rows.
        rows, labels = np.vstack([1 - own[: max(n_own - 3, 1)], others]), ids[min(n_own - 1, 3) :]
        if adjacency == "add-remove":
            rows, labels = others, ids[n_own:]
        # There must be two people, at least.
        if min(len(np.unique(ids)), len(np.unique(labels))) > 1:
            yield _frame(np.vstack([own, others]), ids), [_frame(rows, labels)]


def _frame(X, ids):
    return pd.DataFrame(X, columns=["a", "b"]).assign(who=ids)


def inputs_of(estimator):
    """Inputs with neighbours in the form that an estimator takes, with words and labels if needed.

    Each is an input and the list of its neighbours.
    """
    parameters, tags = estimator.get_params(deep=False), get_tags(estimator).privacy
    if tags.input != "rows":
        data = make_check_data(tags, parameters.get("upper"), parameters.get("sensitivity"))
        if tags.input == "clouds":
            of_people = parameters.get("groups") is not None
            inputs = (people if of_people else tables)(tags.adjacency)
            yield from (([x], [[y] for y in ys]) for x, ys in inputs)
            if of_people:
                return
        for pair in data.neighbours:
            second = (
                np.triu(pair.second) + np.tril(pair.first)
                if parameters.get("directed")
                else pair.second
            )
            graphs = pair.first, second
            if parameters.get("nodes"):
                # Lists of edges, each of which is in them in both directions.
                graphs = tuple(map(np.argwhere, graphs))
            yield graphs[0], [graphs[1]]
        return
    of_people = parameters.get("groups") is not None
    inputs = list((people if of_people else tables)(tags.adjacency))
    if parameters.get("missing"):
        n_own = int(tags.adjacency == "replace-one")
        many = [
            (_with_many_gaps(first, n_own), [_with_many_gaps(X, 1) for X in seconds])
            for first, seconds in inputs
        ]
        few = [
            (_with_gaps(first, of_people), [_with_gaps(X, True) for X in seconds])
            for first, seconds in inputs
        ]
        inputs = few + many
    for first, seconds in inputs:
        if parameters.get("categories"):
            first, *seconds = map(_with_words, [first, *seconds])
        if tags.labels:
            labelled = [(X, _labels_of(X)) for X in seconds]
            if tags.adjacency == "replace-one":
                # Only the label of the record changes.
                labelled.append((first, _labels_of(first)))
                labelled[-1][1][: 1 if not of_people else np.sum(first["who"] == 0)] ^= 1
            first, seconds = (first, _labels_of(first)), labelled
        yield first, seconds


def _with_gaps(X, of_record):
    """Make values missing: in the last row, and in the record that differs, if it is there."""
    X = X.copy()
    values = X if isinstance(X, np.ndarray) else X[["a", "b"]].to_numpy()
    values[-1, 1] = np.nan
    if isinstance(X, np.ndarray):
        values[: int(of_record)] = np.nan
        return X
    values[X["who"] == 0] = np.nan
    return X.assign(a=values[:, 0], b=values[:, 1])


def _with_many_gaps(X, n_own):
    """Make most values of the other records missing; ``n_own`` rows of an array are the record's.

    A statistic that fills gaps from other rows then moves by many rows.
    """
    X = X.copy()
    values = X if isinstance(X, np.ndarray) else X[["a", "b"]].to_numpy()
    others = np.arange(len(X)) >= n_own if isinstance(X, np.ndarray) else (X["who"] > 0).to_numpy()
    places = np.flatnonzero(others)
    values[places[3:], 0] = np.nan
    values[places[1::2], 1] = np.nan
    if isinstance(X, np.ndarray):
        return values
    return X.assign(a=values[:, 0], b=values[:, 1])


def _with_words(X):
    frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X, columns=["a", "b"])
    return frame.assign(kind=np.where(frame["a"] > 0.5, "a", "c"))


def _labels_of(X):
    if isinstance(X, pd.DataFrame):
        # All rows of a person have one label.
        return X["who"].to_numpy() % 2
    return (X[:, 0] > 0.5).astype(int)


def furthest(estimator, inputs, compute=release):
    """How far statistics move, in units of what is declared; draws cost all that is promised."""
    most = 0.0
    for first, seconds in inputs:
        transcript, guarantee = recorded_release(estimator, first, compute)
        for second in seconds:
            moves = transcript.replay(partial(compute, clone(estimator), second))
            most = float(np.max([most, *moves]))
            assert within_promise(transcript.declared(), guarantee), guarantee
        tags = get_tags(estimator).privacy
        if tags is not None and tags.input == "rows":
            assert least_share(transcript.crossings, guarantee) >= _estimator.LEAST_SHARE
            if type(estimator).__name__ not in SPENT_OTHERWISE:
                assert spent(transcript.crossings, guarantee) == pytest.approx(1, rel=1e-9)
    return most


# A loss that depends on distances, and all runs of a search, which draw more than it costs.
SPENT_OTHERWISE = {"MetricMeasure", "PrivateSearchCV"}


def spent(crossings, guarantee):
    """The share of a promise that all draws lose together, whether they moved or not."""
    epsilon, rho = composed([(draw.loss, draw.law) for draw in crossings])
    return epsilon / guarantee.epsilon if guarantee.delta == 0 else rho / guarantee.rho


def least_share(crossings, guarantee):
    """The smallest share of a fit that noise has, on which the check of 64 bits relies."""
    gaussian = math.sqrt(2 * guarantee.rho) if guarantee.delta else math.inf
    shares = [
        1.0
        if draw.rate == 0
        else (draw.loss / gaussian) ** 2
        if draw.law == "gaussian"
        else draw.loss / guarantee.epsilon
        for draw in crossings
        if draw.metric in ("l1", "l2")
    ]
    return min(shares, default=1.0)


# Tables, clouds and graphs.

# Where the neighbours here reach less than half of what is declared, and why.
LESS = {
    # A lifetime moves by two sensitivities only if its birth and its death part.
    ("PrivateMassSearch", ""): 0.05,
    # The sensitivity is that of a short way, and holds for a longer one.
    ("MetricMeasure", ""): 0.4,
    ("MetricMeasure", "bounds=(-1000.0"): 0.3,
    ("MetricMeasure", "alpha="): 0.2,
}


def least_of(name, option):
    return min([0.5, *(v for (n, o), v in LESS.items() if n == name and option.startswith(o))])


def check_options(kind, tried):
    reached = {}
    for option, estimator in options_of(kind, tried):
        reached[option] = furthest(estimator, inputs_of(estimator))
    assert max(reached.values()) <= ROUNDING, reached
    least = {option: least_of(kind.__name__, option) for option in reached}
    assert all(most >= least[option] for option, most in reached.items()), reached


@pytest.mark.parametrize("kind", PRIVATE.values(), ids=PRIVATE)
def test_border_holds_for_estimators_and_their_options(kind):
    check_options(kind, kind._parameter_constraints.keys() - inherited_by(kind))


# The estimators from which they are inherited are in the unit layer.
@pytest.mark.laws
@pytest.mark.parametrize("name", [name for name, kind in PRIVATE.items() if inherited_by(kind)])
def test_border_holds_for_inherited_options(name):
    check_options(PRIVATE[name], inherited_by(PRIVATE[name]))


def _of_chunks(estimator, X):
    if isinstance(X, tuple):
        return estimator.fit_chunks([(X[0][:3], X[1][:3]), (X[0][3:], X[1][3:])])
    return estimator.fit_chunks([X[:3], X[3:]])


def _of_frame(estimator, X):
    X, *y = X if isinstance(X, tuple) else (X,)
    return estimator.fit(pd.DataFrame(X, columns=["a", "b"]), *y)


# All containers give the same releases, as other tests show.
@pytest.mark.laws
@pytest.mark.parametrize("compute", [_of_chunks, _of_frame])
@pytest.mark.parametrize("name", [n for n, kind in PRIVATE.items() if hasattr(kind, "fit_chunks")])
def test_border_holds_for_chunks_and_frames(name, compute):
    estimator = make_instance(PRIVATE[name]).set_params(random_state=0)
    assert 0.5 <= furthest(estimator, inputs_of(estimator), compute) <= ROUNDING


# Functions of clouds.

LANDMARKS = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
FILTRATIONS = {
    "grid": DTMFiltration(0.2, bounds=(0, 1), resolution=7),
    "lattice": DTMFiltration(0.2, bounds=(0, 1), resolution=7, method="lattice"),
    "one cap": DTMFiltration(0.2, bounds=(0, 1), resolution=7, max_distance=None),
    "no cap": DTMFiltration(0.2, bounds=(0, 1), resolution=7, max_distance=math.inf),
    "public cap": DTMFiltration(0.2, bounds=(0, 1), resolution=7, max_distance=0.4),
    "p=2": DTMFiltration(0.2, 2, bounds=(0, 1), resolution=7),
    "kernel": KernelDistanceFiltration(0.3, bounds=(0, 1), resolution=7),
    "landmarks": DTMFiltration(0.2, landmarks=LANDMARKS),
    "landmarks, p=2": DTMFiltration(0.2, 2, landmarks=LANDMARKS),
    "landmarks, no cap": DTMFiltration(0.2, landmarks=LANDMARKS, max_distance=math.inf),
    "landmarks, edges": DTMFiltration(0.2, landmarks=LandmarkComplex(LANDMARKS, 1)),
    "landmarks, voids": DTMFiltration(
        0.2, landmarks=LandmarkComplex(np.vstack([np.eye(3), 1 - np.eye(3)]), 3)
    ),
}
# At this loss, diagrams and profiles draw from all caps.
MUCH = 300.0
RELEASES = {
    "diagrams": PrivatePersistence(MUCH, max_points=3),
    "diagrams, by dimension": PublishedPersistence(1.0, mechanism="exact", max_points=3),
    "diagrams, delta": PublishedPersistence(1.0, 1e-6, mechanism="exact", max_points=3),
    "diagrams and clipped points": PrivatePersistence(1.0, clipped_share=True, max_points=3),
    "chain": PublishedPersistence(1.0, n_iter=2, max_points=3),
    "profile": PersistenceProfile(MUCH),
    "profile, one cap": PersistenceProfile(1.0),
    "counts": PrivateBettiNumbers(1.0, max_count=2),
    "counts at a threshold": PrivateBettiNumbers(1.0, 0.05, max_count=2),
}


def clouds(columns):
    """Clouds, and where else their first point may be: at corners, on others, and far away."""
    rng = np.random.default_rng(2)
    if columns == 3:
        places, middle = np.vstack([np.eye(3), 1 - np.eye(3)]), np.full(3, 0.5)
    else:
        places, middle = LANDMARKS, np.full(2, 0.5)
    # Just outside of the landmarks, a simplex of the largest dimension has the value of the cap.
    for spread in (1.02, 1.0, 0.7):
        X = np.repeat(middle + spread * (places - middle), 5, axis=0)
        yield X, [middle]
    X = np.clip(
        places[rng.integers(len(places), size=20)] + rng.normal(size=(20, columns)) / 9, 0, 1
    )
    points = (places[0], places[-1], X[-1], places[:2].mean(axis=0), np.full(columns, 1e308))
    yield X, points
    # All values are at the cap, until a point comes to a corner: smaller caps hide less.
    yield np.tile(middle, (20, 1)), [places[0]]
    # As many points as neighbours count in one corner, and one of them goes to the others.
    X = np.repeat([np.zeros(columns), np.ones(columns)], [4, 16], axis=0)
    yield X, [X[-1]]


def hidden(cloud, ids):
    """The points of each person, as filtrations of people take them."""
    return [cloud[ids == i] for i in np.unique(ids)]


def functions_of(name):
    """Functions with neighbours, of points, of people with several points, and of histograms."""
    filtration = clone(FILTRATIONS[name])
    of_people = clone(filtration).set_params(groups=True)
    for i, (first, points) in enumerate(clouds(3 if "voids" in name else 2)):
        seconds = [np.vstack([[point], first[1:]]) for point in points]
        functions = [filtration.fit_transform([X]) for X in (first, *seconds)]
        yield functions[0], functions[1:]
        # The replaced person has one point or five, and the others have four.
        ids = np.r_[0, 1 + np.arange(len(first) - 1) // 4] if i % 2 else np.arange(len(first)) // 5
        own = np.sum(ids == 0)
        moved = [np.vstack([np.tile(point, (own, 1)), first[ids > 0]]) for point in points]
        functions = [of_people.fit_transform([hidden(X, ids)]) for X in (first, *moved)]
        yield functions[0], functions[1:]
    if name in ("lattice", "landmarks"):
        fitted = filtration.fit([first])
        counted = [fitted.transform([fitted.make_histogram(X)]) for X in (first, *seconds)]
        yield counted[0], counted[1:]


def check_functions(name, kinds):
    reached, dimensions = {}, (0,) if "edges" in name else (0, 1)
    inputs = list(functions_of(name))
    for kind in kinds:
        estimator = clone(RELEASES[kind])
        estimator.set_params(random_state=0, homology_dimensions=dimensions)
        if not kind.endswith("clipped points") or all(
            hasattr(f[0], "n_clipped") for f, _ in inputs
        ):
            reached[kind] = furthest(estimator, inputs)
    assert max(reached.values()) <= ROUNDING, reached
    # A lifetime moves by two sensitivities only if its birth and its death part.
    assert all(most >= (0.5 if "diagram" in kind else 0.2) for kind, most in reached.items())


# Each function with each kind of release in the unit layer; the variants of a kind with two.
KINDS = ["diagrams", "profile", "counts"]
VARIANTS = [kind for kind in RELEASES if kind not in KINDS]


@pytest.mark.parametrize("name", FILTRATIONS)
def test_border_holds_for_functions_of_points_and_people(name):
    check_functions(name, [*KINDS, *(VARIANTS if name in ("grid", "landmarks") else [])])


@pytest.mark.laws
@pytest.mark.parametrize("name", sorted(FILTRATIONS.keys() - {"grid", "landmarks"}))
def test_border_holds_for_functions_and_variants_of_releases(name):
    check_functions(name, VARIANTS)


# Releases that are no private estimators of the battery.


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_border_of_k_norm_mechanism_pays_by_distance(norm):
    rng = np.random.default_rng(0)
    estimator = KNormMechanism(2.0, norm=norm, bounds=(0, 1), random_state=0)
    first = rng.uniform(size=(5, 2))
    for second in (np.vstack([[1, 0], first[1:]]), np.vstack([first[:1] + 1e-3, first[1:]])):
        transcript, guarantee = replayed(estimator, first, second)
        far = np.linalg.norm((first - second)[0], {"l1": 1, "l2": 2, "linf": np.inf}[norm])
        assert transcript.losses()[0] <= guarantee.at_distance(far) * ROUNDING
    corners = np.zeros((3, 2)), np.vstack([np.ones((1, 2)), np.zeros((2, 2))])
    assert 0.9 < furthest(estimator, [(corners[0], corners[1:])]) <= ROUNDING


@pytest.mark.parametrize("options", [{}, {"rate": "weighted"}, {"net": 0.3}])
def test_border_of_metric_exponential_mechanism_pays_by_distance(options):
    candidates = np.linspace(0, 1, 9)[:, None]
    estimator = MetricExponentialMechanism(3.0, candidates=candidates, random_state=0, **options)
    for i, j in [(0, 8), (3, 4), (0, 1)]:
        transcript, guarantee = replayed(estimator, candidates[[i, 2]], candidates[[j, 2]])
        far = abs(candidates[i] - candidates[j]).item()
        assert 0 < transcript.losses()[0] <= guarantee.at_distance(far) * ROUNDING


def test_border_of_optimal_mechanism_pays_by_distance():
    D = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    mechanism = optimal_mechanism(D, alpha=1.0)
    transcript = recorded(partial(mechanism.sample, [0, 1], random_state=0))
    (most,) = transcript.replay(partial(mechanism.sample, [3, 1], random_state=0))
    assert 0.5 < most <= ROUNDING and transcript.declared()[0] == pytest.approx(3.0)


def test_border_holds_for_two_sample_test():
    rng, most = np.random.default_rng(0), 0.0
    for n, m in [(4, 4), (9, 3), (2, 12)]:
        X, Y = rng.uniform(size=(n, 2)), rng.uniform(size=(m, 2))
        for other in ([0.0, 1.0], X[-1], Y[0], [1e308, -1e308]):
            tests = [
                partial(
                    private_two_sample_test, each, Y, bounds=(0, 1), epsilon=2.0, random_state=0
                )
                for each in (X, np.vstack([[other], X[1:]]))
            ]
            transcript = recorded(tests[0])
            most = max(most, *transcript.replay(tests[1]))
            assert transcript.declared()[0] <= 2.0 * ROUNDING
    assert 0.1 < most <= ROUNDING


# Broken twins.


def _without_the_last_dimension(values, upper, complex):
    tree, start = SimplexTree(), 0
    for simplices in complex.simplices:
        own = values[start : start + len(simplices)]
        start += len(simplices)
        tree.insert_batch(np.ascontiguousarray(simplices[own < upper].T), own[own < upper])
    tree.compute_persistence()
    return tree


def _padded_too_little(caps, *exact):
    return [1.2 * gate for gate in gates_of_caps(caps, *exact)]


def _unclipped(residuals, radius, norm="l2", out=None):
    return residuals / radius


TWINS = {
    "landmarks": (_cubical, "persistent_tree", _without_the_last_dimension, RELEASES["diagrams"]),
    "gates": (_private_cap, "gates_of_caps", _padded_too_little, RELEASES["diagrams"]),
    "clipping": (_assignments, "clip_norm", _unclipped, None),
}


@pytest.mark.parametrize("name", TWINS)
def test_border_catches_broken_twins(name, monkeypatch):
    module, function, twin, estimator = TWINS[name]
    monkeypatch.setattr(module, function, twin)
    if estimator is None:
        estimator = make_instance(DPLloyd).set_params(random_state=0)
        assert furthest(estimator, tables("add-remove")) > ROUNDING
        return
    estimator = clone(estimator).set_params(random_state=0)
    assert furthest(estimator, functions_of("landmarks")) > ROUNDING


def test_border_catches_a_gaussian_budget_that_is_spent_twice(monkeypatch):
    monkeypatch.setattr(GaussianBudget, "rest", lambda self, spent: self)
    estimator = make_instance(DPLloyd).set_params(random_state=0, delta=1e-6)
    refuses("delta=1e-06", furthest, estimator, tables("add-remove"), error=AssertionError)


def test_within_promise_compares_the_epsilon_or_the_zcdp():
    stated = {"adjacency": "add-remove", "unit": "one row", "mechanism": "m", "released": "r"}
    pure = PrivacyGuarantee(1.0, 0.0, rho=0.5, seeded=False, **stated)
    assert within_promise((1.0, 9.0), pure) and not within_promise((1.0001, 0.0), pure)
    gaussian = PrivacyGuarantee(1.0, 1e-6, rho=0.02, seeded=False, **stated)
    assert within_promise((math.inf, 0.02), gaussian)
    assert not within_promise((0.0, 0.020001), gaussian)


def test_crossing_moves_by_weighted_parts():
    # Each part counts with its weight in the norm of all of them.
    crossing = Crossing((np.zeros(1), np.zeros(1)), "l1", 10.0, 1.0, weights=(1.0, 5.0))
    assert crossing.moved((np.array([2.0]), np.array([3.0]))) == 1.7


def test_border_catches_draws_beyond_it():
    def careless(noise):
        return 7 + noise.discrete_laplace(1.0, 1)

    refuses("is not known", recorded, partial(careless, NoiseSource(0)), error=AssertionError)
    with pytest.raises(AssertionError, match="declared rate"):
        recorded(
            lambda: NoiseSource(0).cross(
                [7],
                lambda n: n + NoiseSource(0).discrete_laplace(1.0, 1),
                metric="l1",
                sensitivity=1,
                rate=0.5,
            )
        )
    with pytest.raises(AssertionError, match="declared law"):
        recorded(
            lambda: NoiseSource(0).cross(
                [7],
                lambda n: n + NoiseSource(0).discrete_laplace(scale=1.0, size=1),
                metric="l1",
                sensitivity=1,
                rate=1.0,
                law="gaussian",
            )
        )
    with pytest.raises(AssertionError, match="is not known"):
        recorded(lambda: NoiseSource(0).generator().normal())


def test_border_ignores_other_threads():
    seen, noise = [], NoiseSource(0)
    with watched_border(lambda crossing, draw: seen.append(crossing)), ThreadPoolExecutor() as pool:
        elsewhere = pool.submit(
            noise.cross, [7], lambda n: len(n), metric="l1", sensitivity=1, rate=1.0
        )
        assert elsewhere.result() == 1 and seen == []


def test_border_refuses_what_cannot_be_compared():
    crossing = Crossing(np.array([np.nan]), "l1", 1.0, 1.0)
    refuses(None, crossing.moved, np.zeros(1), error=AssertionError)
    short = Crossing(np.array([-100], dtype=np.int8), "l1", 1.0, 1.0)
    assert short.moved(np.array([100], dtype=np.int8)) == 200
    assert composed([(1.0, "pure")])[1] > 0.46 > composed([(1.0, "range")])[1]
