"""Public numbers at the limits of floating point are refused unpaid, or give finite releases."""

import itertools
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils import get_tags

from sklearn_dptda import DTMFiltration, KernelDistanceFiltration
from sklearn_dptda.cluster import PrivateLandmarks
from sklearn_dptda.metric_privacy import KNormMechanism
from sklearn_dptda.population import private_two_sample_test
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import PrivacyAccountant
from sklearn_dptda.privacy._release import as_arrays, learnt
from sklearn_dptda.synthetic import PrivateMeasure
from sklearn_dptda.utils._privacy_checks._check_inputs import released
from sklearn_dptda.utils.discovery import all_estimators
from sklearn_dptda.utils.estimator_checks import make_instance

# What is drawn from private output does not depend on the limits of numbers.
pytestmark = pytest.mark.usefixtures("few_public_draws")

X = np.random.default_rng(0).normal(size=(100, 2))
# Pairs of decades with both signs, and neighbouring numbers of all sizes.
_SIZES = (1e-320, 1e-200, 1e-95, 1e-30, 1.0, 1e30, 1e95, 1e200, 1e308)
_ENDS = [0.0, *_SIZES, *(-size for size in _SIZES)]
BOXES = [
    *(pair for pair in itertools.combinations(sorted(_ENDS), 2)),
    *((x, float(np.nextafter(x, np.inf))) for x in _ENDS),
    *((x, x + 4 * abs(np.spacing(x))) for x in (1e-95, 1.0, 1e16, 1e30)),
    (-1.7e308, 1.7e308),
]
ALPHAS = (5e-324, 1e-300, 1e-80, 1e-9, 1.0, 1e9, 1e80, 1e300, 1.7e308)


def paid_and_lost(estimator, call):
    """What was paid for, and failed, or was no number."""
    accountant = PrivacyAccountant(np.inf, 0.9)
    estimator = clone(estimator).set_params(accountant=accountant)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            released = call(estimator)
        except ValueError as error:
            return str(error) if len(accountant) else None
    finite = all(np.isfinite(part).all() for part in as_arrays(released))
    return None if finite else "not finite"


def learn(estimator):
    tags = get_tags(estimator).privacy
    if tags.input == "clouds":
        return released(estimator, [X])
    return released(estimator, (X, X[:, 0] > 0) if tags.labels else X)


BOUNDED = [
    make_instance(kind)
    for _, kind in all_estimators(private=True)
    if "bounds" in kind().get_params() and kind is not PrivateBounds
]
ROWS = [each for each in BOUNDED if get_tags(each).privacy.input == "rows"]


@pytest.mark.laws
@pytest.mark.parametrize("estimator", BOUNDED, ids=lambda kind: type(kind).__name__)
def test_private_estimator_takes_any_bounds_or_refuses_them_unpaid(estimator):
    # Some of each kind, because their fits take equally long.
    for bounds in BOXES[::7] + BOXES[-25:]:
        assert paid_and_lost(estimator.set_params(bounds=bounds), learn) is None, bounds


MEASURED = [each for each in ROWS if "units" in each.get_params()]


@pytest.mark.parametrize("estimator", MEASURED, ids=lambda kind: type(kind).__name__)
def test_private_estimator_takes_any_units_or_refuses_them_unpaid(estimator):
    # A rule of one column leaves the other one its units. Nothing may overflow after the payment.
    for bounds in ((-1e89, 1e89), (0, 1e90), (0, 1e-90), ([0, 0], [1e-90, 1e90]), None):
        for units in ([1, 1e-9], [1e-9, 1], [1, 1e-12], [1e300, 1e295], [5e-324, 1]):
            given = estimator.set_params(bounds=bounds, units=units)
            assert paid_and_lost(given, learn) is None, (bounds, units)


@pytest.mark.laws
@pytest.mark.parametrize("shape", ["cube", "box"])
def test_private_bounds_takes_any_start_or_refuses_it_unpaid(shape):
    for start in BOXES:
        assert paid_and_lost(PrivateBounds(1.0, shape=shape, start=start), learn) is None, start


@pytest.mark.laws
@pytest.mark.parametrize("kind", [DTMFiltration, KernelDistanceFiltration])
def test_filtration_takes_any_start_of_a_private_box(kind):
    def transform(bounds):
        return [f.values for f in kind(bounds=bounds, resolution=5).fit([X]).transform([X])]

    for start in [*BOXES[::5], None]:
        assert paid_and_lost(PrivateBounds(1.0, start=start), transform) is None, start


@pytest.mark.laws
def test_knorm_mechanism_takes_any_rate_or_refuses_it_unpaid():
    for bounds, alpha in itertools.product([*BOXES[::7], *BOXES[-25:]], ALPHAS):
        mechanism = KNormMechanism(alpha, bounds=bounds)
        assert paid_and_lost(mechanism, lambda one: one.fit_transform(X)) is None, (bounds, alpha)


@pytest.mark.laws
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64", "bool"])
@pytest.mark.parametrize("epsilon", [0.01, 1.0])
def test_private_measure_takes_whole_numbers_of_any_type(dtype, epsilon):
    pandas = pytest.importorskip("pandas")
    for n, seed in itertools.product((1, 20, 200), range(3)):
        table = pandas.DataFrame({"a": np.arange(n) % 7}).astype(dtype)
        measure = PrivateMeasure(epsilon, random_state=seed)
        assert paid_and_lost(measure, lambda one, X=table: learnt(one.fit(X))) is None, (n, seed)


SHARES = (5e-324, 1e-300, 1e-16, 1e-3, 0.5, 0.999, 1 - 1e-16)
PROMISES = ((1e-6, 0.0), (1e-6, 1e-9), (1e-3, 0.0))
WIDE = np.random.default_rng(0).uniform(size=(20, 40))
PAIRS = np.arange(20) // 2


def paid_and_no_noise(estimator, name, share, promise, bounds, groups):
    """What was paid for a fit with this share, although no number holds its noise."""
    asked = {"epsilon": promise[0], "delta": promise[1], name: share, "bounds": bounds}
    known = {k: v for k, v in asked.items() if hasattr(estimator, k)}
    private = clone(estimator).set_params(**known, random_state=0)
    labels = [PAIRS % 2] if get_tags(estimator).privacy.labels else []
    people = {"groups": groups} if hasattr(estimator, "groups") else {}
    return paid_and_lost(private, lambda one: learnt(one.fit(WIDE, *labels, **people)))


def shares_of(estimator, shares):
    names = [n for n in ("covariance_share", "marginal_share") if hasattr(estimator, n)]
    # And without a share.
    return [(name, share) for name in names for share in shares] + [("", 0.5)] * 4


@pytest.mark.parametrize("estimator", ROWS, ids=lambda kind: type(kind).__name__)
def test_private_estimator_refuses_noise_that_no_number_holds_unpaid(estimator):
    # Each share with some of the promises. All combinations are among the laws.
    for i, (name, share) in enumerate(shares_of(estimator, SHARES[::2])):
        promise, bounds, groups = PROMISES[i % 3], (None, (0, 1))[i % 2], (PAIRS, None)[i // 2 % 2]
        failed = paid_and_no_noise(estimator, name, share, promise, bounds, groups)
        assert failed is None, (name, share, promise, bounds)


@pytest.mark.laws
@pytest.mark.parametrize("estimator", ROWS, ids=lambda kind: type(kind).__name__)
def test_private_estimator_refuses_noise_beyond_numbers_with_all_options(estimator):
    options = (shares_of(estimator, SHARES), PROMISES, (None, (0, 1)), (None, PAIRS))
    for (name, share), promise, bounds, groups in itertools.product(*options):
        failed = paid_and_no_noise(estimator, name, share, promise, bounds, groups)
        assert failed is None, (name, share, promise, bounds)


def test_private_two_sample_test_refuses_noise_that_no_number_holds_unpaid():
    for epsilon in (1e-300, 2e-9, 1e-8, 1e-7):
        accountant, four = PrivacyAccountant(1.0), WIDE[:4]
        options = {"bounds": (0, 1), "epsilon": epsilon, "accountant": accountant}
        try:
            private_two_sample_test(four, four, random_state=0, **options)
        except ValueError as error:
            assert "epsilon" in str(error) and len(accountant) == 0
        assert len(accountant) == (epsilon == 1e-7)


def test_dtm_filtration_of_landmarks_at_one_place_has_a_cap():
    landmarks = PrivateLandmarks(5, np.inf)
    (function,) = DTMFiltration(landmarks=landmarks).fit_transform([np.full((100, 2), 3.0)])
    assert function.upper > 0 and function.values.max() <= function.upper
