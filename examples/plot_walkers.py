"""
Three walking persons
=====================

Phone accelerations of persons A, B and C: clouds of 20,000 points in space.
One record is one row of the table, a sample of the acceleration; rows repeat,
so this is *not* a statement about a person.

At ``m = 0.05`` the features of these clouds are small against the public box:
the picture shows honestly which of them survive at which epsilon.
"""

# %%
import os
from pathlib import Path

import matplotlib.pyplot as plt

from sklearn_dptda import CubicalPersistence, DTMFiltration, PrivatePersistence
from sklearn_dptda.datasets import load_walkers
from sklearn_dptda.model_selection import privacy_utility_curve
from sklearn_dptda.plotting import PersistenceDiagramDisplay

quick = bool(os.environ.get("SKLEARN_DPTDA_QUICK"))
out = Path(os.environ.get("SKLEARN_DPTDA_OUT", "examples/out"))
out.mkdir(parents=True, exist_ok=True)


def main(walkers):
    """Release diagrams of each walker and measure the errors."""
    # A phone's sensor has a public range; three times gravity holds every walk. Distances
    # beyond 1.5 carry nothing at this mass, and the cap shrinks the noise.
    dtm = DTMFiltration(
        m=0.05,
        bounds=(-3, 3),
        resolution=21 if quick else 41,
        max_distance=1.5,
        method="exact",
        n_jobs=2,
    )
    filtrations = dtm.fit_transform([cloud[:: 10 if quick else 1] for cloud in walkers.data])
    exact = CubicalPersistence().fit_transform(filtrations)
    epsilons = [1.0] if quick else [1.0, 10.0]
    figure, axes = plt.subplots(
        len(epsilons), 3, figsize=(12, 4 * len(epsilons)), layout="constrained", squeeze=False
    )
    for row, epsilon in zip(axes, epsilons, strict=True):
        private = PrivatePersistence(epsilon=epsilon)
        releases = private.fit_transform(filtrations)
        curve = privacy_utility_curve(
            private, filtrations, param_range=[epsilon], n_replicates=5 if quick else 20, n_jobs=2
        )
        errors = curve.errors[0].mean(axis=0)
        for ax, name, release, true, error in zip(
            row, walkers.target_names, releases, exact, errors, strict=True
        ):
            title = f"{name}, epsilon {epsilon:g}: error {error[0]:.3f}, {error[1]:.3f}"
            print(title)
            PersistenceDiagramDisplay(release, reference=true, upper=1.0).plot(ax=ax, title=title)
    figure.savefig(out / "walkers.png", dpi=100)


# %%
try:
    data = load_walkers(download=not quick)
except FileNotFoundError as error:
    print(f"skipped: {error}")
else:
    main(data)
