"""Shares of clipped points, and warnings about releases that cannot show anything."""

import math
import pickle
import warnings

import numpy as np
import pytest

from sklearn_dptda import DTMFiltration, PersistenceProfile, PrivateBettiNumbers, PrivatePersistence
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.model_selection import planned_loss
from sklearn_dptda.preprocessing import PrivateBounds
from sklearn_dptda.privacy import NoiseSource, NoiseWarning, PrivacyAccountant, pure_rho
from sklearn_dptda.utils._privacy_checks._border_checks import recorded
from sklearn_dptda.utils.estimator_checks import privacy_checks

# A twentieth of epsilon, as the documentation of clipped_share states.
CLIPPED_SHARE = 0.05
X = make_two_circles(2000, random_state=0)


def functions(cloud, low=-3.0, high=3.5, **parameters):
    return DTMFiltration(0.2, bounds=(low, high), resolution=9, **parameters).fit_transform([cloud])


@pytest.mark.parametrize("method", ["exact", "lattice"])
def test_dtm_filtration_counts_clipped_points(method):
    rng = np.random.default_rng(0)
    cloud = rng.uniform(-4, 4, size=(500, 2))
    outside = int(((cloud < -3) | (cloud > 3.5)).any(axis=1).sum())
    filtration = DTMFiltration(0.2, bounds=(-3, 3.5), resolution=9, method=method).fit([cloud])
    (function,) = filtration.transform([cloud])
    assert function.n_clipped == outside
    # For parts, and after pickling.
    parts = filtration.make_histogram(cloud[:200]) + filtration.make_histogram(cloud[200:])
    (function,) = pickle.loads(pickle.dumps(filtration.transform([parts])))
    assert function.n_clipped == outside


def test_clipped_share_is_paid_for_and_promised():
    accountant = PrivacyAccountant(10.0, composition="zcdp", delta=1e-6)
    private = PrivatePersistence(1.0, clipped_share=True, accountant=accountant)
    F = functions(X)
    private.fit(F).transform(F)
    promise = private.privacy_guarantee_
    assert (
        promise.epsilon
        == accountant.spends()[0].epsilon
        == planned_loss(private, F).total()[0]
        == 1
    )
    assert "share of its points outside the bounds" in str(promise)
    plain = PrivatePersistence(1.0 - CLIPPED_SHARE).fit(F).privacy_guarantee_
    assert promise.rho == pytest.approx(plain.rho + pure_rho(CLIPPED_SHARE))
    # The count loses a twentieth, as the border is told, and the diagrams have less budget, which
    # their stated error includes.
    seeded = PrivatePersistence(1.0, clipped_share=True, random_state=0)
    losses = sorted(draw.loss for draw in recorded(lambda: seeded.fit_transform(F)).crossings)
    assert losses == pytest.approx([CLIPPED_SHARE, 1 - CLIPPED_SHARE])
    assert private.error_bound_ == pytest.approx(
        PrivatePersistence(1.0 - CLIPPED_SHARE).fit(F).error_bound_
    )


def test_clipped_share_shows_a_box_that_misses_the_points():
    private = PrivatePersistence(2.0, clipped_share=True, random_state=0)
    F = functions(X, 10.0, 16.5)
    exact = PrivatePersistence(math.inf, clipped_share=True)
    for one in (private, exact):
        one.fit(F).transform(F)
    assert private.clipped_share_[0] > 0.9 and exact.clipped_share_[0] == 1
    with pytest.raises(ValueError, match="clipped_share=True needs filtrations"):
        PrivatePersistence(1.0, sensitivity=0.1, upper=1.0, clipped_share=True).fit_transform(
            [np.eye(3)]
        )
    boxed = DTMFiltration(0.2, bounds=PrivateBounds(1.0, random_state=0), resolution=9).fit([X])
    assert 0 <= boxed.clipped_share_ <= 1


@pytest.mark.laws
@pytest.mark.parametrize(
    "private",
    [PrivatePersistence(0.2), PrivateBettiNumbers(0.2, threshold=0.2), PersistenceProfile(0.05)],
    ids=lambda kind: type(kind).__name__,
)
def test_noise_warning_names_an_epsilon_that_is_enough(private):
    cloud = make_two_circles(300, random_state=0)
    F = functions(cloud)
    with pytest.warns(NoiseWarning, match=r"sure to be visible from epsilon=\S+ on") as caught:
        private.fit(F)
    enough = float(str(caught[0].message).split("epsilon=")[-1].split(" ")[0])
    with warnings.catch_warnings(action="error", category=NoiseWarning):
        better = private.set_params(epsilon=1.06 * enough).fit(F)
    # A feature of a quarter of the range.
    if isinstance(private, PrivatePersistence):
        assert 2 * better.error_bound_ <= 1.02 * F[0].upper / 4
    elif isinstance(private, PersistenceProfile):
        assert 2 * better.half_widths_[0] <= F[0].upper / 4


def test_noise_warning_names_no_epsilon_where_none_helps():
    # The error of the lattice is larger than the range allows.
    cloud = make_two_circles(300, random_state=0)
    F = functions(cloud, method="lattice", refinement=1, max_distance=0.3)
    for private in (PrivatePersistence(1.0), PersistenceProfile(1.0)):
        with pytest.warns(UserWarning) as caught:
            private.fit(F)
        texts = [str(w.message) for w in caught if w.category is NoiseWarning]
        assert texts and "from epsilon" not in texts[0] and "Raise m" in texts[0]


class Clipped(PrivatePersistence):
    """Private diagrams and a count.

    .. rubric:: Privacy

    ``epsilon``-differentially private for replacing one point.
    """

    def _clipped_counts(self, X):
        # Bare functions have no points that could be clipped.
        return [(10, int(np.sum(np.asarray(x) > 0.5) > 3)) for x in X]


@pytest.mark.conformance
def test_clipped_share_passes_the_privacy_checks():
    private = Clipped(clipped_share=True, sensitivity=0.1, upper=1.0, max_points=2)
    checks = dict(privacy_checks(private))
    # The count changes nothing in workers.
    del checks["check_workers_change_nothing"]
    for check in checks.values():
        check()


@pytest.mark.parametrize("keyed", [False, True])
def test_clipped_share_and_diagrams_share_no_coins(keyed, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "sklearn_dptda.persistence._private_persistence._release",
        lambda function, _, mechanism, seed: seen.append(seed) or (function.upper, [[], []]),
    )
    counts = []
    monkeypatch.setattr(
        PrivatePersistence, "_noisy_shares", lambda self, counted, seeds: counts.extend(seeds)
    )
    F = functions(X) + functions(X[:500])
    private = PrivatePersistence(1.0, clipped_share=True, random_state=None if keyed else 0).fit(F)
    private.set_params(accountant=PrivacyAccountant(9.0).under("a name") if keyed else None)
    private.transform(F)
    coins = [NoiseSource(seed).words(4).tolist() for seed in seen + counts]
    assert len(seen) == len(counts) == 2
    assert len({tuple(words) for words in coins}) == 4
