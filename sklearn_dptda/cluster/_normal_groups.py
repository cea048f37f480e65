"""Groups of components that one normal distribution each describes.

Clusters that cross, or lie about one centre, share their densest part, so no saddle separates
them. Everything here is a function of a mixture's parameters, and as private as they are.
Proof: doc/theory/private_mixtures.md, "Clusters that cross".
"""

from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_random_state

from sklearn_dptda._typing import FloatArray, IntArray
from sklearn_dptda.cluster._mixture_density import MixtureDensity

# Accuracy only: the mixture has been released.
# Groups of components replace merged modes if normal distributions of the groups are at most this
# many nats below the mixture, and at most this share of the nats that those of the merged modes
# are. In the laws of doc/measured/clusters.md, shares were .85 and more where modes are the
# clusters, and .4 and less where clusters cross.
_MOST_NATS, _MOST_SHARE = 0.4, 0.7
# At this share, how many nats they are does not matter: heavy tails are no reason to take modes for
# clusters that have one centre. Shares were .20 and less there, and .27 and more elsewhere.
_CLEAR_SHARE = 0.22
# Number of points at which densities are compared, and of steps that move components.
_N_POINTS, _N_STEPS = 2000, 20
# Least variance, as a share of the total one.
_LEAST_VARIANCE = 1e-9


@dataclass(frozen=True)
class _Sums:
    """Weights, first and second moments of some groups, which add up."""

    weights: FloatArray
    first: FloatArray
    second: FloatArray

    @classmethod
    def of(cls, density: MixtureDensity) -> "_Sums":
        """Each component as a group."""
        w, m = density.weights, density.means
        second = density.covariances + np.einsum("ki,kj->kij", m, m)
        return cls(w, w[:, None] * m, w[:, None, None] * second)

    def grouped(self, labels: IntArray, n: int) -> "_Sums":
        """Sums over the groups with the given labels."""
        members = (labels == np.arange(n)[:, None]).astype(float)
        return _Sums(*(np.tensordot(members, part, 1) for part in self._parts))

    def plus(self, i: int) -> "_Sums":
        """Each group with the group ``i`` added."""
        return _Sums(*(part + part[i] for part in self._parts))

    def without(self, i: int) -> "_Sums":
        """All groups but one."""
        return _Sums(*(np.delete(part, i, axis=0) for part in self._parts))

    def joined(self, i: int, j: int) -> "_Sums":
        """Groups of which the group ``i`` has been added to another one."""
        parts = [part.copy() for part in self._parts]
        for part in parts:
            part[j] += part[i]
        return _Sums(*parts).without(i)

    @property
    def _parts(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return self.weights, self.first, self.second

    def density(self) -> MixtureDensity:
        """One normal distribution for each group, with its mean and its covariance."""
        means = self.first / self.weights[:, None]
        second = self.second / self.weights[:, None, None]
        covariances = second - np.einsum("ki,kj->kij", means, means)
        covariances += _LEAST_VARIANCE * np.eye(means.shape[1])
        return MixtureDensity(self.weights, means, covariances)

    def costs(self) -> FloatArray:
        """Nats of the rows of each group under its normal distribution, up to a constant."""
        normal = self.density()
        logs = np.linalg.slogdet(normal.covariances)[1]
        return self.weights * (0.5 * logs - np.log(self.weights))


def groups_that_cross(density: MixtureDensity, labels: IntArray, n_groups: int) -> IntArray | None:
    """Groups of components, if normal distributions describe them far better than ``labels``.

    ``labels`` are clusters of the components. The groups are the same for other units of the
    columns.
    """
    if not 2 <= n_groups <= density.n_components:
        return None
    density = _standardised(density)
    sums = _Sums.of(density)
    groups = _refined(sums, _agglomerated(sums, n_groups), density, n_groups)
    points = _points(density)
    height = -density.height(points).mean()
    nats, others = (
        float(height + sums.grouped(each, int(each.max()) + 1).density().height(points).mean())
        for each in (groups, labels)
    )
    better = nats < max(min(_MOST_NATS, _MOST_SHARE * others), _CLEAR_SHARE * others)
    return groups if better else None


def _standardised(density: MixtureDensity) -> MixtureDensity:
    """The same mixture with mean zero and variances of one."""
    mean = density.weights @ density.means
    away = density.means - mean
    variances = np.einsum("k,kii->i", density.weights, density.covariances)
    units = np.sqrt(variances + density.weights @ np.square(away))
    covariances = density.covariances / np.outer(units, units)
    return MixtureDensity(density.weights, away / units, covariances)


def _agglomerated(sums: _Sums, n_groups: int) -> IntArray:
    """Join the two groups whose common normal distribution costs least, again and again."""
    members = [[i] for i in range(len(sums.weights))]
    own = sums.costs()
    pairs = np.array([sums.plus(i).costs() - own[i] - own for i in range(len(own))])
    np.fill_diagonal(pairs, np.inf)
    while len(members) > n_groups:
        j, i = sorted(divmod(int(pairs.argmin()), len(members)))
        members[j] += members.pop(i)
        sums = sums.joined(i, j)
        own, pairs = sums.costs(), np.delete(np.delete(pairs, i, 0), i, 1)
        pairs[j] = sums.plus(j).costs() - own[j] - own
        pairs[j, j] = np.inf
        pairs[:, j] = pairs[j]
    labels = np.empty(sum(map(len, members)), dtype=np.intp)
    for group, each in enumerate(members):
        labels[each] = group
    return labels


def _refined(sums: _Sums, labels: IntArray, density: MixtureDensity, n_groups: int) -> IntArray:
    """Move components to the normal distributions that cost least, as long as groups stay."""
    for _ in range(_N_STEPS):
        normal = sums.grouped(labels, n_groups).density()
        # The mean cost of the rows of a component: that of its centre, and half a trace.
        costs = -normal.log_joint(density.means)
        costs += 0.5 * np.einsum("gij,kji->kg", normal.precisions, density.covariances)
        moved = costs.argmin(axis=1)
        if len(np.unique(moved)) < n_groups or (moved == labels).all():
            break
        labels = moved
    return labels


def _points(density: MixtureDensity) -> FloatArray:
    """Points of the mixture, the same ones for the same mixture."""
    rng = check_random_state(0)
    chosen = rng.choice(density.n_components, _N_POINTS, p=density.weights)
    lower = np.linalg.cholesky(density.covariances)
    normal = rng.standard_normal((_N_POINTS, density.n_features))
    points: FloatArray = density.means[chosen] + np.einsum("nij,nj->ni", lower[chosen], normal)
    return points
