"""
Diagrams of three walkers
=========================

The data are phone accelerations of persons A, B and C, as clouds of 20,000 points in
space. One record is one row of the table, which is one sample of the acceleration. Each
person has many rows, and the same row occurs several times because the recorded windows overlap.
Therefore, the guarantee is *not* about a person.

At ``m = 0.05``, the features of these clouds are small compared with the public box.
The picture shows which of them remain visible at which epsilon.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.utils import Bunch

from sklearn_dptda import CubicalPersistence, DTMFiltration, PrivatePersistence
from sklearn_dptda.datasets import load_walkers
from sklearn_dptda.model_selection import privacy_utility_curve
from sklearn_dptda.plotting import PersistenceDiagramDisplay

EPSILONS, RESOLUTION, N_RELEASES = [1.0, 10.0], 41, 20
# sphinx_gallery_start_ignore
import os

if os.environ.get("SKLEARN_DPTDA_QUICK"):
    EPSILONS, RESOLUTION, N_RELEASES = [1.0], 17, 2
# sphinx_gallery_end_ignore


def main(walkers):
    """Release the diagrams of each walker and measure their errors."""
    # The sensor of a phone has a public range, and three times gravity covers every walk.
    # Distances beyond 1.5 carry no information at this mass, and the cap reduces the noise.
    dtm = DTMFiltration(
        m=0.05,
        bounds=(-3, 3),
        resolution=RESOLUTION,
        max_distance=1.5,
        method="exact",
        n_jobs=2,
    )
    filtrations = dtm.fit_transform(walkers.data)
    exact = CubicalPersistence().fit_transform(filtrations)
    _, axes = plt.subplots(
        len(EPSILONS), 3, figsize=(12, 4 * len(EPSILONS)), layout="constrained", squeeze=False
    )
    for row, epsilon in zip(axes, EPSILONS, strict=True):
        private = PrivatePersistence(epsilon=epsilon)
        releases = private.fit_transform(filtrations)
        curve = privacy_utility_curve(
            private, filtrations, param_range=[epsilon], n_replicates=N_RELEASES, n_jobs=2
        )
        errors = curve.errors[0].mean(axis=0)
        for ax, name, release, true, error in zip(
            row, walkers.target_names, releases, exact, errors, strict=True
        ):
            title = f"{name}, epsilon {epsilon:g}: error {error[0]:.3f}, {error[1]:.3f}"
            print(title)
            PersistenceDiagramDisplay(release, reference=true, upper=1.0).plot(ax)
            ax.set_title(title)


# %%
# If the published walks are not available, simulated ones take their place: for each walker, a
# closed curve in space, with noise.
def made_up_walks(n=20_000):
    rng = np.random.default_rng(0)
    clouds = []
    for swing in ([0.4, 0.3, 0.2], [0.5, 0.2, 0.4], [0.3, 0.5, 0.1]):
        phase = rng.uniform(0, 2 * np.pi, (n, 1))
        curve = swing * np.cos(phase * [1, 1, 2] - [0, np.pi / 2, 0.3]) + [0, -1, 0]
        clouds.append(curve + rng.normal(0, 0.1, (n, 3)))
    return Bunch(data=clouds, target_names=["made-up A", "made-up B", "made-up C"])


try:
    walks = load_walkers(download=False)
except FileNotFoundError:
    print("the published walks are not at hand: made-up ones")
    walks = made_up_walks()
main(walks)
plt.show()
