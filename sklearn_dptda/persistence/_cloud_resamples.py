"""How sure the features of a released cloud are, by releasing it once more.

Proof: doc/theory/private_cloud.md, "Places".
"""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from sklearn_dptda._typing import FloatArray, RandomStateLike
from sklearn_dptda.filtration import GridFiltration, ReleasedCloud
from sklearn_dptda.persistence._cubical import CubicalPersistence
from sklearn_dptda.persistence._feature_regions import FeatureRegion, feature_regions
from sklearn_dptda.privacy._noise import spawn_seeds
from sklearn_dptda.privacy._parameters import quoted


class CloudResamples:
    """Functions of a released cloud after new noise of the same law: how much of it is noise.

    The released measure gets new noise, many times, and is projected again. What differs between
    the results is what noise does. They are post-processing, and cost no privacy. None of the
    numbers below is a probability: that would need a law of exact clouds.

    Parameters
    ----------
    cloud : ReleasedCloud
        The released cloud.
    filtration : DTMFiltration or KernelDistanceFiltration
        The fitted estimator of the function, on a grid.
    n_resamples : int, default=40
        Number of resamples.
    random_state : int, RandomState instance, Generator or None, default=None
        Source of the new noise.

    Attributes
    ----------
    function : GridFiltration
        The function of the released cloud itself.
    functions : list of GridFiltration
        Those of the resamples.

    See Also
    --------
    feature_regions : Where the features are.

    Examples
    --------
    >>> from sklearn_dptda import CubicalPersistence, DTMFiltration, PrivateCloud
    >>> from sklearn_dptda.datasets import make_two_circles
    >>> from sklearn_dptda.persistence import CloudResamples, feature_regions
    >>> X = make_two_circles(4000, random_state=0)
    >>> clouds = PrivateCloud(1.0, bounds=(-2.5, 3), random_state=0).fit_transform([X])
    >>> filtration = DTMFiltration(m=0.1).fit(clouds)
    >>> resamples = CloudResamples(clouds[0], filtration, random_state=0)
    >>> loops, = CubicalPersistence(1).fit_transform([resamples.function])
    >>> long = loops[loops[:, 1] - loops[:, 0] > 0.3]
    >>> resamples.shares(feature_regions(resamples.function, long, 1))
    array([1., 1.])
    >>> resamples.count(1, longer_than=0.3)
    array([0., 0., 1.])
    """

    cloud: ReleasedCloud
    function: GridFiltration
    functions: list[GridFiltration]

    def __init__(
        self,
        cloud: ReleasedCloud,
        filtration: Any,
        *,
        n_resamples: int = 40,
        random_state: RandomStateLike = None,
    ) -> None:
        if not (isinstance(n_resamples, Integral) and n_resamples >= 1):
            raise ValueError(f"n_resamples={quoted(n_resamples)} must be an integer of at least 1.")
        self.cloud = cloud
        again = [cloud.resample(seed) for seed in spawn_seeds(random_state, int(n_resamples))]
        functions: list[GridFiltration] = filtration.transform([cloud, *again])
        self.function, self.functions = functions[0], functions[1:]

    def _diagrams(self, dimension: int) -> list[FloatArray]:
        diagrams: list[FloatArray] = CubicalPersistence(dimension).fit_transform(self.functions)
        return diagrams

    def shares(self, regions: Sequence[FeatureRegion], dimension: int = 1) -> FloatArray:
        """Compute in which share of the resamples each feature is still there.

        A feature is there if one of at least half its persistence is at its place: around the
        place at which a loop or void dies, or at which a component is born.

        Parameters
        ----------
        regions : list of FeatureRegion
            Features of ``function``.
        dimension : int, default=1
            Their homology dimension.

        Returns
        -------
        ndarray of shape (n_regions,)
            The shares. They are 0 for loops and voids that are shorter than those of the cells
            themselves (``cloud.lattice_loop``).
        """
        found = np.zeros(len(regions))
        shortest = min((region.persistence for region in regions), default=0.0) / 2
        for function, diagram in zip(self.functions, self._diagrams(dimension), strict=True):
            long = diagram[diagram[:, 1] - diagram[:, 0] >= shortest]
            again = feature_regions(function, long, dimension)
            for i, own in enumerate(regions):
                near = (other for other in again if 2 * other.persistence >= own.persistence)
                found[i] += any(other.contains(own.middle) for other in near)
        least = self.cloud.lattice_loop if dimension > 0 else 0.0
        short = np.array([region.persistence <= least for region in regions], dtype=bool)
        return np.where(short, 0.0, found / len(self.functions))

    def count(self, dimension: int, longer_than: float) -> FloatArray:
        """Compute how often there are 0, 1, 2, ... features longer than a threshold.

        Parameters
        ----------
        dimension : int
            Homology dimension. In dimension 0, the essential component is counted, too.
        longer_than : float
            Persistence, in the units of the function, of at least ``cloud.lattice_loop``.

        Returns
        -------
        ndarray of shape (most + 1,)
            The shares of the resamples.
        """
        least = self.cloud.lattice_loop
        if not longer_than >= least:
            raise ValueError(
                f"longer_than={quoted(longer_than)} must be at least {least:.3g}, the persistence "
                "of the loops of the cells."
            )
        numbers = [int((d[:, 1] - d[:, 0] > longer_than).sum()) for d in self._diagrams(dimension)]
        return np.bincount(numbers) / len(numbers)

    def band(self, level: float = 0.95) -> float:
        """Compute a half width of a band around a distance-to-measure, and so of its diagrams.

        It is the largest difference of a resample from the function, at this level, and half the
        diagonal of a cell, by which points within cells can move the distance. If the band contains
        the exact function, births and deaths of its features are within this number of those of
        ``function``. No theorem says how often it does; see the guide for simulations.

        Parameters
        ----------
        level : float, default=0.95
            Share of the resamples.

        Returns
        -------
        float
            In the units of the function.
        """
        if not 0 < level < 1:
            raise ValueError(f"level={quoted(level)} must be a number between 0 and 1.")
        apart = [np.abs(each.values - self.function.values).max() for each in self.functions]
        return float(np.quantile(apart, level) + np.linalg.norm(self.cloud.cell) / 2)
