"""How often a private diagram shows one feature with a high probability, by simulated releases.

The exact diagram has this feature alone, so that all numbers are public. The releases follow the
law of the estimator, and the probability is that of :meth:`PrivatePersistence.posterior`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from sklearn_dptda._typing import FloatArray
from sklearn_dptda.persistence._cubical import check_dimensions
from sklearn_dptda.persistence._diagram_posterior import ReleasedDiagrams
from sklearn_dptda.persistence._mechanisms import ExactMechanism, mechanism_of
from sklearn_dptda.persistence._private_cap import Public, prior_of_caps, release_with_cap

# Number of simulated releases, and the probability from which on a feature counts as shown.
N_RELEASES, PROBABLE = 40, 0.95
# Where a feature is born if nothing is said about it, as a share of the room.
_BORN = 1 / 3


def allowed_misses(confidence: float) -> int:
    """Return the largest number of simulated releases that need not show the feature."""
    return int((1 - confidence) * N_RELEASES + 1e-9)


@dataclass(frozen=True)
class SimulatedFeature:
    """A feature of a public persistence, and the law of the release that should show it.

    ``caps`` has the sensitivities and upper bounds under the default cap of distances and under
    smaller ones, which cut the feature. ``moved`` is the error of the values on a lattice. Without
    ``birth``, the feature is born at a third of the room.
    """

    private: BaseEstimator = field(compare=False)
    caps: Sequence[Public]
    dimension: int
    persistence: float
    birth: float | None = None
    moved: float = 0.0

    def at(self, epsilon: float) -> Self:
        """Return the same feature at another epsilon."""
        return replace(self, private=clone(self.private).set_params(epsilon=epsilon))

    def is_probable(self, confidence: float) -> bool:
        """Tell whether enough of the simulated releases show the feature."""
        dimensions, _ = check_dimensions(self.private.homology_dimensions)
        mechanism = mechanism_of(self.private, dimensions)
        assert isinstance(mechanism, ExactMechanism)
        misses = allowed_misses(confidence)
        for seed in range(N_RELEASES):
            misses -= not self._is_shown(mechanism, dimensions, seed)
            if misses < 0:
                return False
        return True

    def _is_shown(self, mechanism: ExactMechanism, dimensions: tuple[int, ...], seed: int) -> bool:
        caps = self.caps[: len(prior_of_caps(mechanism, self.caps))]
        exact = [self._exact(upper, dimensions) for _, upper in caps]
        if len(caps) > 1:
            place, drawn = release_with_cap(mechanism, caps, exact, dimensions, seed)
        else:
            place, drawn = 0, mechanism.release(exact[0], dimensions, *caps[0], seed)
        cap = caps[place][1]
        released = ReleasedDiagrams.of(mechanism, drawn, dimensions, self.caps, cap, self.moved)
        posterior = released.posterior(1.0)
        q = dimensions.index(self.dimension)
        points, feature = drawn[q], exact[place][q][-1:]
        # A point is near the feature if both are closer to each other than to the diagonal.
        reach = np.minimum(np.ptp(points, axis=1), np.ptp(feature, axis=1)) / 2
        near = np.abs(points - feature).max(axis=1) <= reach if len(feature) else False
        return bool(((posterior.probability[q] >= PROBABLE) & near).any())

    def _exact(self, upper: float, dimensions: tuple[int, ...]) -> list[FloatArray]:
        """Return the exact diagrams under a cap with this upper bound of the values."""
        room = self.caps[0][1] - self.persistence
        birth = _BORN * room if self.birth is None else min(self.birth, room)
        feature = np.minimum([[birth, birth + self.persistence]], upper)
        feature = feature[feature[:, 1] > feature[:, 0]]
        essential = np.array([[min(birth, upper), upper]])
        diagrams = []
        for q in dimensions:
            own = feature if q == self.dimension else feature[:0]
            diagrams.append(np.vstack([essential, own]) if q == 0 else own)
        return diagrams
