"""Clouds, parameters and landmarks that filtrations refuse, each with a remedy or a limit."""

import math

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.mixture import GaussianMixture

from sklearn_dptda import (
    DTMFiltration,
    KernelDistanceFiltration,
    PrivacyAccountant,
    PrivacyLeakWarning,
)
from sklearn_dptda.cluster import DPMoG, PrivateLandmarks
from sklearn_dptda.filtration import LandmarkComplex, LatticeHistogram
from sklearn_dptda.published import cech_midpoint_case, dtm_midpoint_case
from sklearn_dptda.utils._bounds import check_bounds
from tests._refusals import refusals, refuses

GOOD = [np.random.default_rng(0).uniform(size=(10, 2))]
LANDMARKS = np.random.default_rng(3).uniform(size=(7, 5))
X = np.random.default_rng(1).normal(size=(600, 5))
ALL_LOWS = r"pass bounds=\(all lows, all highs\)"
# Two keys that are numbers would be taken for the ends of all coordinates.
NAMED = [{"x": (0, 1), "y": (0, 1)}, {0: (0, 1), 1: (0, 1)}]
PEOPLE = LatticeHistogram(([0, 0], [1, 2]), (3, 5), people=True)
POINTS = LatticeHistogram(([0, 0], [1, 2]), (3, 5))


def fit(**options):
    DTMFiltration(**{"bounds": (0, 1), **options}).fit(GOOD)


def fit_on(**options):
    DTMFiltration(**options).fit([X])


def fit_on_model(model, clouds=(X,), **options):
    """Points are landmarks that another ledger has paid for."""
    with PrivacyAccountant(math.inf):
        landmarks = FrozenEstimator(clone(model).fit(X))
    DTMFiltration(landmarks=landmarks, **options).fit(list(clouds))


REFUSED = {
    # Both filtrations read clouds with the same code.
    "a cloud": (
        lambda X: DTMFiltration(bounds=(0, 1)).fit(X),
        [
            ("1 point", [np.zeros((1, 2))]),
            ("0 point", [np.zeros((0, 2))]),
            ("shape", [np.zeros(4)]),
            ("0 features", [np.zeros((4, 0))]),
            ("NaN", [[[0, np.nan], [1, 1]]]),
            ("infinity", [[[0, np.inf], [1, 1]]]),
            (r"X\[1\] has 3 features", [np.zeros((4, 2)), np.zeros((4, 3))]),
            ("complex", [np.full((4, 2), 1j)]),
            ("numeric", [[["a", "b"], ["c", "d"]]]),
            ("5 dimensions", [np.zeros((4, 5))]),
            ("GaussianRandomProjection", [np.zeros((4, 8))]),
            ("A grid in 5000 dimensions is not supported: at most 4", [np.zeros((4, 5000))]),
        ],
    ),
    "a cloud and a grid": (
        lambda X: DTMFiltration(bounds=(0, 1), resolution=5).fit(X),
        [("A grid in 5000 dimensions is not supported: at most 4", [np.zeros((4, 5000))])],
    ),
    "a cloud of kernels": (
        lambda X: KernelDistanceFiltration(bounds=(0, 1)).fit(X),
        [("NaN", [[[0, np.nan], [1, 1]]])],
    ),
    "another cloud": (
        lambda X: DTMFiltration(bounds=(0, 1), resolution=5).fit(GOOD).transform(X),
        [("3 features", [np.zeros((4, 3))])],
    ),
    "parameters": (
        fit,
        [
            ("'m' parameter", {"m": 0.0}, {"m": 1.5}),
            ("'p' parameter", {"p": 0.5}),
            ("bounds are crossed", {"bounds": (1, 0)}, {"bounds": (0, 0)}),
            ("bounds must be finite", {"bounds": (0, np.inf)}),
            ("bounds must be a pair", {"bounds": (0, 1, 2)}, {"bounds": ([0] * 3, [1] * 3)}),
            (ALL_LOWS, *({"bounds": bounds} for bounds in NAMED)),
            ("resolution", *({"resolution": each} for each in (1, (5, 5, 5), (5.5, 5)))),
            ("memory", {"resolution": 10_000}, {"memory": 0}),
            ("max_distance", {"max_distance": 0}, {"max_distance": 1e-30}),
            ("refinement", {"refinement": 0}),
        ],
    ),
    "bandwidths": (
        lambda bandwidth: KernelDistanceFiltration(bandwidth, bounds=(0, 1)).fit(GOOD),
        [("bandwidth", 0.0, 1e9, 1e-200)],
    ),
    "bounds": (
        lambda **given: check_bounds(**given),
        [(ALL_LOWS, *({"bounds": bounds, "n_features": 2} for bounds in NAMED))],
    ),
    "people": (
        lambda X: DTMFiltration(bounds=(0, 1), groups=True, method="exact").fit(X),
        [("method='exact' is not supported with groups", [[np.zeros((3, 2)), np.ones((3, 2))]])],
    ),
    "landmarks": (
        fit_on,
        [
            ("adjacency='replace-one'", {"landmarks": PrivateLandmarks(adjacency="add-remove")}),
            ("n_landmarks", *({"landmarks": PrivateLandmarks(n)} for n in (1, 1001))),
            ("dimension", {"landmarks": PrivateLandmarks(dimension=4)}),
            ("delta must be positive", {"landmarks": PrivateLandmarks(delta=0.0)}),
            ("without privacy_guarantee_", {"landmarks": DPMoG(3)}),
            ("landmarks has 1 point", {"landmarks": LANDMARKS[:1]}),
            (
                "landmarks has 4 columns, but the point clouds have 5",
                {"landmarks": LANDMARKS[:, :4]},
            ),
            ("landmarks contains NaN", {"landmarks": np.full((3, 5), np.nan)}),
            ("landmarks are all at one place", {"landmarks": np.ones((3, 5))}),
            ("max_distance is negligible", {"landmarks": LANDMARKS, "max_distance": 1e-12}),
            (
                "so bounds must keep the default.*to Priv",
                {"landmarks": LANDMARKS, "bounds": (0, 1)},
            ),
            ("so method must keep the default", {"landmarks": LANDMARKS, "method": "lattice"}),
            (
                "so resolution, refinement must keep the default",
                {"landmarks": LANDMARKS, "resolution": 9, "refinement": 2},
            ),
            ("Pass fewer landmarks", {"landmarks": np.ones((1001, 5))}),
        ],
    ),
    "models": (
        fit_on_model,
        [
            ("without privacy_guarantee_", GaussianMixture(2)),
            ("replace-one", DPMoG(2, bounds=(-2, 2))),
            (
                "Pass groups to both",
                {
                    "model": DPMoG(2, bounds=(-2, 2), adjacency="replace-one", random_state=0),
                    "clouds": [[X[i::60] for i in range(60)]],
                    "groups": True,
                },
            ),
        ],
    ),
    "reaches": (
        lambda reach: LandmarkComplex(np.eye(3), reach=reach),
        [("reach must be a number", np.nan, np.inf, -1.0, "x", [1.0])],
    ),
    "numbers of points that move": (
        lambda moved: dtm_midpoint_case(5, [0.0], [1.0], moved),
        [("n_moved", 0, 3)],
    ),
    "pairs": (
        cech_midpoint_case,
        [("two different points", [[1.0, 1.0], [1.0, 1.0]]), ("X", [[0.0, np.nan], [1.0, 1.0]])],
    ),
    "points of a database": (
        lambda lines: PEOPLE.update_counts(lines),
        [("which points belong to one person", [(1, 1, 2, 0)])],
    ),
    "ids": (
        lambda histogram, ids: histogram.update([[0.0, 0.5]], ids),
        [
            (
                "ids must be given if and only if",
                {"histogram": PEOPLE, "ids": None},
                {"histogram": POINTS, "ids": ["she"]},
            )
        ],
    ),
    "a sum": (lambda other: PEOPLE + other, [("same records", POINTS)]),
}


@refusals(REFUSED)
@pytest.mark.filterwarnings("ignore:One person can change the function")
def test_filtrations_refuse_by_name_and_unpaid(refuse):
    refuse()


def test_dtm_filtration_warns_of_missing_bounds():
    for X in (GOOD, [np.ones((4, 2))]):
        estimator = DTMFiltration(resolution=5)
        with pytest.warns(PrivacyLeakWarning, match="Pass bounds=.* without looking at the data"):
            estimator.fit(X)
        assert not estimator.transform(X)[0].public_bounds


def test_dtm_filtration_refuses_lattice_beyond_memory():
    options = {"bounds": (0, 1), "resolution": 41, "refinement": 10, "memory": 8}
    estimator = DTMFiltration(method="lattice", **options).fit(GOOD)
    refuses("lattice needs", estimator.transform, GOOD)
    assert DTMFiltration(**options).fit(GOOD).transform(GOOD)[0].approximation_error == 0
