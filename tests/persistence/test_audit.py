"""End-to-end audits of the pipeline, each with a broken twin that it must catch."""

import numpy as np
import pytest

from sklearn_dptda import DTMFiltration, PrivatePersistence
from sklearn_dptda.filtration import dtm_worst_case
from sklearn_dptda.privacy import audit_epsilon

CONFIDENCE = 1 - 1e-6
EPSILON, N_RUNS = 1.0, 10_000


class Births:
    """Births of the oldest component; ``factor`` > 1 breaks the promise.

    The birth moves away from zero by the full sensitivity. Hardly any other
    points are drawn, so that the birth alone bears the loss.
    """

    def __init__(self, factor, utility):
        self.factor = factor
        self.utility = utility

    def __call__(self, points, random_state=None):
        filtration = DTMFiltration(m=1.0, bounds=(0, 1), resolution=3).fit_transform([points])
        private = PrivatePersistence(
            epsilon=self.factor * EPSILON,
            homology_dimensions=0,
            max_points=1,
            spike=0.999,
            utility=self.utility,
            random_state=random_state,
        )
        (diagram,) = private.fit_transform(filtration)
        return diagram[0, 0] if len(diagram) else 1.0


@pytest.mark.slow
@pytest.mark.parametrize("utility", ["max", "sum"])
@pytest.mark.parametrize(("factor", "caught"), [(1.0, False), (2.0, True)])
def test_pipeline(factor, caught, utility):
    pair = dtm_worst_case(1.0, 16, [0.0], [1.0])
    result = audit_epsilon(
        Births(factor, utility),
        *pair,
        n_runs=N_RUNS,
        confidence=CONFIDENCE,
        random_state=0,
        n_jobs=2,
    )
    assert result.refutes(EPSILON) == caught
    assert result.epsilon > 0.6 * EPSILON


@pytest.mark.slow
def test_pipeline_with_operating_system_entropy():
    pair = dtm_worst_case(1.0, 16, [0.0], [1.0])
    result = audit_epsilon(Births(1.0, "max"), *pair, n_runs=N_RUNS, confidence=CONFIDENCE)
    assert np.isfinite(result.epsilon) and not result.refutes(EPSILON)
