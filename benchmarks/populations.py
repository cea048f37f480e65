"""Means, tests and expected diagrams of populations, and clouds and tables of people."""

import math
import os
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.optimize import linprog
from scipy.sparse import coo_array, eye_array, hstack
from scipy.stats import wasserstein_distance
from sklearn.metrics import adjusted_rand_score

from benchmarks._populations import alpha_diagrams, planar, series, shapes, standard
from benchmarks._table import Table
from sklearn_dptda import DTMFiltration
from sklearn_dptda.cluster import DPLloyd, DPMoG, DPToMATo
from sklearn_dptda.datasets import make_visits
from sklearn_dptda.features import PersistenceMass
from sklearn_dptda.population import PrivateMean, private_two_sample_test
from sklearn_dptda.synthetic import PrivateMeasure


def tables(quick):
    """Yield the tables of this benchmark."""
    planar_shapes, _ = shapes(planar, 300 if quick else 4500)
    yield _coverage(planar_shapes, 4 if quick else 500)
    yield _power([planar_shapes, series(150 if quick else 1200)], 4 if quick else 200)
    yield _expected_diagrams(60 if quick else 3000, (30,) if quick else (100, 300, 1000, 3000))
    yield _visits((100,) if quick else (200, 500, 2000), 2 if quick else 24)
    yield _recordings((50,) if quick else (100, 300, 1000), 2 if quick else 40)


# Bands.


_PROMISES = (("add-remove", 1e-6), ("replace-one", 1e-6), ("add-remove", 0.0))


def _coverage(population, n_draws):
    rows = []
    for n in (100, 300, 1000):
        for epsilon in (0.5, 1.0, 2.0):
            cells = []
            for adjacency, delta in (
                ("add-remove", 1e-6),
                ("replace-one", 1e-6),
                ("add-remove", 0),
            ):
                found = Parallel(n_jobs=-1)(
                    delayed(_band)(population.X, n, epsilon, delta, adjacency, seed)
                    for seed in range(n_draws)
                )
                held, width = np.mean(found, axis=0)
                cells.append(f"{held:.3f} ({width:.3f})")
            rows.append((n, epsilon, *cells))
    return Table(
        f"95 % confidence bands for the mean: {population.name}",
        ("people", "epsilon", "add-remove", "replace-one", "add-remove, delta = 0"),
        rows,
        f"Share of {n_draws} samples in which all means are in the band (mean half width). The "
        f"population has {len(population.X)} clouds. Bounds (0, 1), delta = 1e-06.",
    )


def _band(X, n, epsilon, delta, adjacency, seed):
    sample = X[np.random.default_rng(seed).choice(len(X), n)]
    mean = PrivateMean(epsilon, delta, (0, 1), adjacency=adjacency, random_state=seed).fit(sample)
    held = (np.abs(mean.mean_ - X.mean(axis=0)) <= mean.half_widths_).all()
    return float(held), float(mean.half_widths_.mean())


# Tests.


def _power(populations, n_tests):
    rows = []
    for population in populations:
        for share in (0.0, 0.2, 0.5):
            for n in (20, 100, 300):
                rejected = [
                    np.mean(
                        Parallel(n_jobs=-1)(
                            delayed(_rejected)(population, n, share, epsilon, seed)
                            for seed in range(n_tests)
                        )
                    )
                    for epsilon in (0.5, 1.0, 2.0, math.inf)
                ]
                rows.append((population.name, share, n, *(f"{each:.3f}" for each in rejected)))
    return Table(
        "private_two_sample_test: share of rejections at the level 0.05",
        ("data", "others", "people", *(f"epsilon = {e:g}" for e in (0.5, 1.0, 2.0)), "not private"),
        rows,
        f"{n_tests} tests. The controls are from the lower half of the classes. There are as many "
        "patients, and the share 'others' of them is from the upper half.",
    )


def _rejected(population, n, share, epsilon, seed):
    rng = np.random.default_rng(seed)
    low = population.y <= (population.y.max() - 1) // 2
    few, many = population.X[low], population.X[~low]
    others = rng.binomial(n, share)
    controls = few[rng.choice(len(few), n)]
    patients = np.vstack(
        [few[rng.choice(len(few), n - others)], many[rng.choice(len(many), others)]]
    )
    return private_two_sample_test(
        controls, patients, bounds=(0, 1), epsilon=epsilon, random_state=seed
    ).rejected


# Expected diagrams.

_UPPER, _LEAST, _FINE = 0.7, 0.1, 24


def _expected_diagrams(n_clouds, sizes):
    rng = np.random.default_rng(0)
    kinds = np.repeat([1, 2, 3], n_clouds // 3)
    diagrams = [alpha_diagrams(standard(planar(kind, 200, rng)))[1] for kind in kinds]
    fine = PersistenceMass(_UPPER, least_lifetime=_LEAST, resolution=_FINE).fit_transform(diagrams)
    # A quarter of the people is used as a public population.
    most = float(np.quantile(fine[::4].sum(axis=1), 0.95))
    rows = []
    for n in sizes:
        cells = []
        for epsilon in (0.5, 1.0, 2.0, math.inf):
            k = PersistenceMass.resolution_for(n, min(epsilon, 2.0))
            mass = PersistenceMass(_UPPER, least_lifetime=_LEAST, resolution=k).fit(diagrams)
            masses = mass.transform(diagrams)
            errors = Parallel(n_jobs=-1)(
                delayed(_transport)(mass, masses, fine, most, n, epsilon, seed)
                for seed in range(10)
            )
            cells.append(f"{np.mean(errors):.3f} ± {np.std(errors):.3f} (k = {k})")
        rows.append((n, *cells))
    return Table(
        "Expected persistence diagrams: partial transport to the exact one",
        ("people", "epsilon = 0.5", "epsilon = 1", "epsilon = 2", "no noise"),
        rows,
        "Relative to the total persistence of a person; mean and standard deviation over 10 seeds. "
        "The clouds are circles, figure eights and three loops of 200 points. Adjacency: "
        f"add-remove, delta = 0, M = {most:.2f}; k is the resolution.",
    )


def _transport(mass, masses, fine, most, n, epsilon, seed):
    chosen = np.random.default_rng(seed).permutation(len(fine))[:n]
    mean = PrivateMean(
        epsilon, 0.0, (0, most), norm_bound=most, confidence=None, random_state=seed
    ).fit(masses[chosen])
    points = mass.expected_diagram(mean.mean_, mean.noise_)
    found = np.zeros((_FINE + 1, _FINE + 1))
    lifetimes = points[:, 1] - points[:, 0]
    places = points[:, 0] / _UPPER, (lifetimes - _LEAST) / (_UPPER - _LEAST)
    i, j = (np.rint(place * _FINE).astype(int) for place in places)
    found[i, j] = points[:, 2] * lifetimes
    exact = fine[chosen].mean(axis=0)
    return _partial_transport(found.ravel(), exact) / fine.sum(axis=1).mean()


def _partial_transport(one, other):
    """Cost of moving mass along the edges of the grid, or to the diagonal."""
    n = _FINE + 1
    steps = _UPPER / _FINE, (_UPPER - _LEAST) / _FINE
    heights = np.tile(_LEAST + np.arange(n) * steps[1], n)
    nodes = np.arange(n * n).reshape(n, n)
    tails = np.concatenate([nodes[:-1].ravel(), nodes[:, :-1].ravel()])
    heads = np.concatenate([nodes[1:].ravel(), nodes[:, 1:].ravel()])
    edges = np.arange(len(tails))
    ones = np.ones(len(edges))
    places = np.concatenate([tails, heads]), np.concatenate([edges, edges])
    flow = coo_array((np.concatenate([ones, -ones]), places), (n * n, len(edges)))
    same = eye_array(n * n)
    lengths = np.repeat(steps, n * _FINE)
    return linprog(
        np.concatenate([lengths, lengths, heights, heights]),
        A_eq=hstack([flow, -flow, same, -same]).tocsr(),
        b_eq=(one - other) / heights,
        method="highs",
    ).fun


# Tables of people.

_BOX = (-8.0, 8.0)
_MODELS = {
    "DPToMATo": lambda **public: DPToMATo(None, **public),
    "DPLloyd": lambda **public: DPLloyd(4, **public),
    "DPMoG": lambda **public: DPMoG(4, **public),
    "PrivateMeasure": lambda **public: PrivateMeasure(**public),
}


def _visits(sizes, n_seeds):
    rows = []
    for biased in (False, True):
        truth = make_visits(20_000, max_visits=1, random_state=10**6)
        for n in sizes:
            for name in _MODELS:
                scores = np.array(
                    Parallel(n_jobs=-1)(
                        delayed(_visit_scores)(name, n, biased, truth, seed)
                        for seed in range(n_seeds)
                    )
                )
                apart = scores[:, 0] - scores[:, 1]
                rows.append(
                    (
                        "biased" if biased else "not biased",
                        n,
                        name,
                        *(f"{np.mean(s):.3f} ± {np.std(s):.3f}" for s in scores.T),
                        f"{apart.mean():+.3f} ± {apart.std(ddof=1) / len(apart) ** 0.5:.3f}",
                    )
                )
    return Table(
        "Tables of people with many rows",
        (
            "visits",
            "people",
            "estimator",
            "all rows, equal people",
            "first row of each",
            "difference",
        ),
        rows,
        f"make_visits, epsilon = 1, bounds (-8, 8), {n_seeds} seeds: adjusted Rand index on one "
        "row of each of 20,000 other people. For PrivateMeasure, it is a sliced Wasserstein "
        "distance to these rows, and lower is better. Difference: mean of the paired differences "
        "and its standard error.",
    )


def _visit_scores(name, n, biased, truth, seed):
    X, ids, _ = make_visits(n, biased=biased, random_state=seed)
    table = pd.DataFrame(X, columns=["x", "y"]).assign(patient_id=ids)
    target, _, labels = truth
    scores = []
    for most in (None, 1):
        model = _MODELS[name](epsilon=1.0, bounds=_BOX, groups="patient_id", random_state=seed).fit(
            table if most is None else table.groupby("patient_id").head(most)
        )
        if name == "PrivateMeasure":
            scores.append(_sliced(np.asarray(model.sample(3000, random_state=0))[:, :2], target))
        else:
            frame = pd.DataFrame(target, columns=["x", "y"])
            scores.append(adjusted_rand_score(labels, model.predict(frame)))
    return scores


def _sliced(sample, target):
    rng = np.random.default_rng(0)
    ways = rng.standard_normal((10, 2))
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    return np.mean([wasserstein_distance(sample @ way, target @ way) for way in ways])


# Clouds of people.


def _recordings(sizes, n_seeds):
    try:
        sessions = _emg()
    except FileNotFoundError as error:
        return f"Recordings are left out: {error}\n"
    public = {"m": 0.1, "bounds": (-1, 1), "resolution": 33}
    truth = DTMFiltration(**public, groups=True).fit_transform([sessions])[0].values
    rows = []
    for n in sizes:
        errors = np.array(
            Parallel(n_jobs=-1)(
                delayed(_sup_errors)(sessions, n, public, truth, seed) for seed in range(n_seeds)
            )
        )
        mean, one = errors.mean(axis=0)
        cells = (f"{m:.3f} ± {s:.3f}" for m, s in zip((mean, one), errors.std(axis=0), strict=True))
        rows.append((n, *cells, mean / one))
    return Table(
        "Clouds of people: sup error of the distance-to-measure, not private",
        ("people", "all points, equal people", "one point of each", "ratio"),
        rows,
        f"{len(sessions)} stretches of EMG recordings, with 20 to 3,000 readings of two muscles, "
        f"serve as people. m = 0.1, 33 x 33 nodes, {n_seeds} seeds. The errors are relative to the "
        "function of all people, and both methods have the same sensitivity. All stretches are of "
        "one subject, whom a release per stretch would not protect.",
    )


def _emg():
    """Stretches of the recordings of two muscles, with heavy-tailed lengths."""
    path = Path(os.environ.get("SKLEARN_DPTDA_DATA", ""), "emg.npz")
    if not path.is_file():
        raise FileNotFoundError(f"{path.name} is not in the folder SKLEARN_DPTDA_DATA.")
    with np.load(path) as data:
        # Pairs of a muscle on the right and on the left. The range of the amplifier ends at 4,000.
        pairs = [data["X"][:, pair] / 4000 for pair in ([0, 2], [1, 3], [4, 6], [5, 7])]
    rng, sessions = np.random.default_rng(0), []
    for X in pairs:
        lengths = np.minimum(20 + (10 * rng.pareto(1.1, len(X) // 20)).astype(int), 3000)
        ends = np.cumsum(lengths)
        sessions += np.split(X, ends[ends < len(X)])[:-1]
    return sessions


def _sup_errors(sessions, n, public, truth, seed):
    rng = np.random.default_rng(seed)
    chosen = [sessions[i] for i in rng.permutation(len(sessions))[:n]]
    one = np.array([cloud[rng.integers(len(cloud))] for cloud in chosen])
    people = DTMFiltration(**public, groups=True).fit_transform([chosen])[0].values
    points = DTMFiltration(**public).fit_transform([one])[0].values
    return [float(np.abs(values - truth).max()) for values in (people, points)]
