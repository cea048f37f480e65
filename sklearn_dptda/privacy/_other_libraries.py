"""Exchange with other libraries for differential privacy.

Losses of other libraries, which are events of ``dp_accounting``, become charges of a ledger.
Estimators of rows become measurements of OpenDP, so that its combinators can count them.
"""

import math
from typing import Any

from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

from sklearn_dptda._typing import Adjacency
from sklearn_dptda.privacy._guarantee import Charge, accounting_library
from sklearn_dptda.privacy._release import release


def charge_of(event: Any, delta: float, adjacency: Adjacency) -> Charge:
    """Return what a ledger counts for an event.

    Pure events count their epsilon. Others count the epsilon that the RDP accountant computes at
    ``delta``, and the rho of the event where all of its parts have one.
    """
    if not type(event).__module__.startswith("dp_accounting."):
        raise TypeError(
            "epsilon must be a number, a PrivacyGuarantee or an event of dp_accounting; got "
            f"{type(event).__name__}."
        )
    accounting = accounting_library()
    epsilon, rho = _pure_and_concentrated(event, accounting)
    if math.isfinite(epsilon):
        return Charge(epsilon, 0.0, rho)
    if not delta > 0:
        raise ValueError(
            f"delta must be above 0 for {type(event).__name__}, which has no pure epsilon."
        )
    from dp_accounting.rdp import RdpAccountant

    relation = {"replace-one": "REPLACE_ONE", "add-remove": "ADD_OR_REMOVE_ONE"}[adjacency]
    accountant = RdpAccountant(
        neighboring_relation=getattr(accounting.NeighboringRelation, relation)
    )
    if not accountant.supports(event):
        raise ValueError(
            f"{type(event).__name__} cannot be counted under {adjacency!r} adjacency: pass its "
            "epsilon and delta as numbers."
        )
    accountant.compose(event)
    return Charge(
        float(accountant.get_epsilon(delta)), float(delta), rho if math.isfinite(rho) else None
    )


def _pure_and_concentrated(event: Any, accounting: Any) -> tuple[float, float]:
    """Pure epsilon and zCDP rho of an event, infinite where it has none."""
    if isinstance(event, accounting.NoOpDpEvent):
        return 0.0, 0.0
    if isinstance(event, accounting.ComposedDpEvent):
        parts = [_pure_and_concentrated(part, accounting) for part in event.events]
        return math.fsum(part[0] for part in parts), math.fsum(part[1] for part in parts)
    if isinstance(event, accounting.SelfComposedDpEvent):
        epsilon, rho = _pure_and_concentrated(event.event, accounting)
        # No events of no loss at all are no loss, and not infinity times nothing.
        return (event.count * epsilon, event.count * rho) if event.count else (0.0, 0.0)
    if isinstance(event, accounting.LaplaceDpEvent):
        epsilon = math.inf if event.noise_multiplier == 0 else 1 / event.noise_multiplier
        return epsilon, Charge(epsilon).concentrated
    if isinstance(event, accounting.GaussianDpEvent):
        scale = event.noise_multiplier
        return math.inf, math.inf if scale == 0 else 1 / (2 * scale**2)
    if isinstance(event, accounting.ZCDpEvent):
        return math.inf, event.rho if event.xi == 0 else math.inf
    return math.inf, math.inf


def make_measurement(estimator: BaseEstimator) -> Any:
    """Return an OpenDP measurement that fits a clone of an estimator and returns its release.

    Parameters
    ----------
    estimator : private estimator
        It takes a table with one record per row, without ``groups``, and has a finite
        ``epsilon``. It is cloned at each call. If it has an accountant, each call
        pays there as well.

    Returns
    -------
    opendp.Measurement
        Takes an array of shape (n_samples, n_features), and returns what the
        estimator has learnt: a dictionary of attributes, or what ``transform``
        returns. Its metric is ``symmetric_distance`` under add-remove and
        ``change_one_distance`` under replace-one adjacency. Its measure is
        ``max_divergence``, or ``approximate(max_divergence)`` where there is a
        delta. The privacy map grows in proportion to the distance; with a
        delta it takes a distance of 0 or 1.

    Raises
    ------
    opendp.mod.OpenDPException
        If its features "contrib" and "honest-but-curious" are not enabled, by which
        it trusts the privacy map that we state.

    Notes
    -----
    .. rubric:: Privacy

    The map states the guarantee of the estimator, with the same public numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import opendp.prelude as dp
    >>> from sklearn_dptda.cluster import DPLloyd
    >>> from sklearn_dptda.privacy import make_measurement
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> measurement = make_measurement(DPLloyd(2, epsilon=0.5, delta=0, bounds=(0, 1)))
    >>> measurement.map(1), measurement.map(2)
    (0.5, 1.0)
    >>> released = measurement(np.random.default_rng(0).uniform(size=(500, 2)))
    >>> released["cluster_centers_"].shape
    (2, 2)
    """
    tags = getattr(get_tags(estimator), "privacy", None)
    if tags is None or tags.input != "rows" or tags.labels:
        raise ValueError(
            f"{type(estimator).__name__} takes no table of rows alone: OpenDP has no domain and "
            "no distance for its input."
        )
    if getattr(estimator, "groups", None) is not None:
        raise ValueError("groups must be None: OpenDP's distances between tables count rows.")
    guarantee = estimator._guarantee_ahead(None)
    if math.isinf(guarantee.epsilon):
        raise ValueError("epsilon must be finite: an exact result is no measurement.")
    if guarantee.seeded:
        raise ValueError("random_state must be None: a draw from a known seed is not private.")
    try:
        from opendp.domains import user_domain
        from opendp.measurements import make_user_measurement
        from opendp.measures import approximate, max_divergence
        from opendp.metrics import change_one_distance, symmetric_distance
    except ImportError:
        raise ImportError(
            "Measurements need OpenDP: pip install 'sklearn-dptda[opendp]'."
        ) from None

    by_rows = {"add-remove": symmetric_distance, "replace-one": change_one_distance}

    def loss(distance: int) -> Any:
        if guarantee.delta == 0:
            return distance * guarantee.epsilon
        if distance > 1:
            raise ValueError("a guarantee with a delta has a map for neighbours alone.")
        return distance * guarantee.epsilon, distance * guarantee.delta

    pure = max_divergence()
    return make_user_measurement(
        user_domain("tables", lambda X: len(getattr(X, "shape", ())) == 2),
        by_rows[guarantee.adjacency](),
        pure if guarantee.delta == 0 else approximate(pure),
        lambda X: release(clone(estimator), X),
        loss,
    )
