"""Estimators of rows as measurements of OpenDP: their maps, their releases, what is refused."""

import numpy as np
import opendp.prelude as dp
import pytest
from opendp.mod import OpenDPException

from sklearn_dptda import PrivatePersistence
from sklearn_dptda.cluster import DPLloyd, DPMoG
from sklearn_dptda.decomposition import PrivatePCA
from sklearn_dptda.discriminant_analysis import DPLinearDiscriminantAnalysis
from sklearn_dptda.graph import EdgeFlip
from sklearn_dptda.privacy import PrivacyAccountant, make_measurement
from tests._refusals import refuses

X = np.random.default_rng(0).uniform(size=(300, 2))
# Measurements have no seed. The warning is a false alarm of Laplace noise in one of 40,000 fits.
UNSURE = pytest.mark.filterwarnings("ignore:.* of the rows lie outside the bounds")


@pytest.fixture(autouse=True)
def features():
    dp.enable_features("contrib", "honest-but-curious")
    yield
    dp.disable_features("contrib", "honest-but-curious")


@UNSURE
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_make_measurement_has_the_map_of_a_pure_guarantee(adjacency):
    budget = PrivacyAccountant(9.0)
    private = DPLloyd(2, 0.5, delta=0, bounds=(0, 1), adjacency=adjacency, accountant=budget)
    measurement = make_measurement(private)
    assert [measurement.map(d) for d in (0, 1, 3)] == [0.0, 0.5, 1.5]
    metric = {"add-remove": dp.symmetric_distance, "replace-one": dp.change_one_distance}
    assert measurement.input_metric == metric[adjacency]()
    assert measurement.output_measure == dp.max_divergence()
    first, second = measurement(X), measurement(X)
    assert not np.array_equal(first["cluster_centers_"], second["cluster_centers_"])
    assert len(budget) == 2 and not hasattr(private, "cluster_centers_")


def test_make_measurement_has_the_delta_in_its_map():
    measurement = make_measurement(DPMoG(2, 1.0, delta=1e-6, bounds=(0, 1)))
    assert measurement.map(1) == (1.0, 1e-6)
    refuses(None, measurement.map, 2, error=OpenDPException)


@UNSURE
def test_make_measurement_composes_in_opendp():
    private = DPLloyd(2, 0.5, delta=0, bounds=(0, 1))
    several = dp.c.make_composition([make_measurement(private)] * 3)
    assert several.map(1) == 1.5
    assert len(several(X)) == 3


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (PrivatePersistence(1.0), "takes no table of rows"),
        (EdgeFlip(1.0), "takes no table of rows"),
        (DPLinearDiscriminantAnalysis(bounds=(0, 1)), "takes no table of rows alone"),
        (PrivatePCA(1, bounds=(0, 1), groups="who"), "groups must be None"),
        (DPLloyd(2, np.inf, bounds=(0, 1)), "epsilon must be finite"),
        (DPLloyd(2, bounds=(0, 1), random_state=0), "random_state must be None"),
    ],
)
def test_make_measurement_refuses_what_is_no_measurement(estimator, message):
    refuses(message, make_measurement, estimator)


def test_make_measurement_needs_features_of_opendp():
    dp.disable_features("honest-but-curious")
    with pytest.raises(OpenDPException, match="honest-but-curious"):
        make_measurement(DPLloyd(2, bounds=(0, 1)))
