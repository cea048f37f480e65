"""Refusals of clouds and parameters of filtrations, each with a remedy or a limit of its own."""

import numpy as np
import pytest

from sklearn_dptda import DTMFiltration, KernelDistanceFiltration, PrivacyLeakWarning
from sklearn_dptda.utils._bounds import check_bounds

GOOD = [np.random.default_rng(0).uniform(size=(10, 2))]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([np.zeros((1, 2))], "1 point"),
        ([np.zeros((0, 2))], "0 point"),
        ([np.zeros(4)], "shape"),
        ([np.zeros((4, 0))], "0 features"),
        ([[[0, np.nan], [1, 1]]], "NaN"),
        ([[[0, np.inf], [1, 1]]], "infinity"),
        ([np.zeros((4, 2)), np.zeros((4, 3))], r"X\[1\] has 3 features"),
        ([np.full((4, 2), 1j)], "complex"),
        ([[["a", "b"], ["c", "d"]]], "numeric"),
        ([np.zeros((4, 5))], "5 dimensions"),
    ],
)
def test_filtrations_refuse_bad_clouds(X, message):
    # Both filtrations read clouds with the same code.
    with pytest.raises(ValueError, match=message):
        DTMFiltration(bounds=(0, 1)).fit(X)


def test_kernel_distance_filtration_refuses_nan():
    with pytest.raises(ValueError, match="NaN"):
        KernelDistanceFiltration(bounds=(0, 1)).fit([[[0, np.nan], [1, 1]]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"m": 0.0}, "'m' parameter"),
        ({"m": 1.5}, "'m' parameter"),
        ({"p": 0.5}, "'p' parameter"),
        ({"bounds": (1, 0)}, "bounds are crossed"),
        ({"bounds": (0, 0)}, "bounds are crossed"),
        ({"bounds": (0, np.inf)}, "bounds must be finite"),
        ({"bounds": (0, 1, 2)}, "bounds must be a pair"),
        ({"bounds": ([0, 0, 0], [1, 1, 1])}, "bounds must be a pair"),
        ({"resolution": 1}, "resolution"),
        ({"resolution": (5, 5, 5)}, "resolution"),
        ({"resolution": (5.5, 5)}, "resolution"),
        ({"resolution": 10_000}, "memory"),
        ({"max_distance": 0}, "max_distance"),
        ({"max_distance": 1e-30}, "max_distance"),
        ({"memory": 0}, "memory"),
        ({"refinement": 0}, "refinement"),
    ],
)
def test_dtm_filtration_refuses_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        DTMFiltration(**{"bounds": (0, 1), **options}).fit(GOOD)


@pytest.mark.parametrize("bandwidth", [0.0, 1e9, 1e-200])
def test_kernel_distance_filtration_refuses_bad_bandwidth(bandwidth):
    with pytest.raises(ValueError, match="bandwidth"):
        KernelDistanceFiltration(bandwidth, bounds=(0, 1)).fit(GOOD)


def test_dtm_filtration_warns_of_missing_bounds():
    estimator = DTMFiltration(resolution=5)
    with pytest.warns(PrivacyLeakWarning, match="bounds"):
        estimator.fit(GOOD)
    assert not estimator.transform(GOOD)[0].public_bounds
    with pytest.warns(PrivacyLeakWarning, match="bounds"):
        DTMFiltration(resolution=5).fit([np.ones((4, 2))]).transform([np.ones((4, 2))])


def test_dtm_filtration_refusal_names_random_projections():
    with pytest.raises(ValueError, match="GaussianRandomProjection"):
        DTMFiltration(bounds=(0, 1)).fit([np.zeros((4, 8))])


@pytest.mark.parametrize("resolution", [None, 5])
def test_dtm_filtration_refuses_thousands_of_dimensions(resolution):
    filtration = DTMFiltration(bounds=(0, 1), resolution=resolution)
    with pytest.raises(ValueError, match="A grid in 5000 dimensions is not supported: at most 4"):
        filtration.fit([np.zeros((4, 5000))])


def test_dtm_filtration_refuses_lattice_beyond_memory():
    options = {"bounds": (0, 1), "resolution": 41, "refinement": 10, "memory": 8}
    estimator = DTMFiltration(method="lattice", **options).fit(GOOD)
    with pytest.raises(ValueError, match="lattice needs"):
        estimator.transform(GOOD)
    assert DTMFiltration(**options).fit(GOOD).transform(GOOD)[0].approximation_error == 0


def test_dtm_filtration_transform_refuses_other_dimension():
    estimator = DTMFiltration(bounds=(0, 1), resolution=5).fit(GOOD)
    with pytest.raises(ValueError, match="3 features"):
        estimator.transform([np.zeros((4, 3))])


def test_dtm_filtration_messages_quote_no_records():
    secret = 0.123456789
    with pytest.raises(ValueError) as error:
        DTMFiltration(bounds=(0, 1)).fit([[[secret, np.nan], [secret, 1]]])
    assert "0.1234" not in str(error.value)


@pytest.mark.parametrize("bounds", [{"x": (0, 1), "y": (0, 1)}, {0: (0, 1), 1: (0, 1)}])
def test_check_bounds_refuses_names_with_advice(bounds):
    # Two keys that are numbers would be taken for the ends of all coordinates.
    cloud = np.random.default_rng(0).random((20, 2))
    with pytest.raises(ValueError, match="pass bounds=\\(all lows, all highs\\)"):
        DTMFiltration(bounds=bounds).fit([cloud])
    with pytest.raises(ValueError, match="pass bounds=\\(all lows, all highs\\)"):
        check_bounds(bounds, 2)
