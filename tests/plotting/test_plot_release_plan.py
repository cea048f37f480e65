import matplotlib.pyplot as plt
import numpy as np
import pytest

from sklearn_dptda import PrivatePersistence
from sklearn_dptda.model_selection import plan_release
from sklearn_dptda.plotting import plot_release_plan


@pytest.mark.conformance
def test_plot_release_plan_shows_the_curve_of_the_plan():
    private = PrivatePersistence(homology_dimensions=1)
    public = {"loop_radius": 1.0, "spread": 0.1, "m": 0.3, "max_distance": 1.0}
    plan = plan_release(4000, (-1.5, 1.5), private=private, **public)
    epsilons = plan.epsilon * np.array([0.01, 0.5, 1.0, 3.0])
    ax = plt.figure().subplots()
    assert plot_release_plan(plan, ax, epsilons=epsilons) is ax
    thresholds, errors, wanted, point = (line.get_ydata() for line in ax.lines)
    curve = plan.curve(epsilons)
    # If no statement is possible, nothing shorter than the range is flagged.
    assert thresholds[0] == plan.upper < curve.thresholds[0] and np.isnan(errors[0])
    np.testing.assert_array_equal(thresholds[1:], curve.thresholds[1:])
    np.testing.assert_array_equal(errors[2:], curve.error_bounds[2:])
    assert wanted[0] == point[0] == plan.visible_persistence
    assert thresholds[1] > wanted[0] >= thresholds[2]
    assert [text.get_text() for text in ax.texts] == [f"epsilon = {plan.epsilon:g}"]
