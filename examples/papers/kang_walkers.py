"""
Distinguishing walkers by their private diagrams
================================================

After T. Kang, S. Kim, J. Sohn, J. Awan, "Differentially private topological data analysis". The
data are three walking persons and their private diagrams. The paper calls the data locations, and
their source calls them accelerations. The paper compares each private diagram with the exact one.

This example asks a question of our own: for releases of each walker, how many are closest to the
exact diagram of the same walker? Guessing would give one third. One record is a row of the table.
Each person has many rows, and rows repeat, so the guarantee is not about a person.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from sklearn_dptda import (
    CubicalPersistence,
    DTMFiltration,
    PrivatePersistence,
    bottleneck_distance,
)
from sklearn_dptda.datasets import load_walkers
from sklearn_dptda.model_selection import release_replicates

EPSILONS, MASSES = [1.0, 2.0, 5.0, 10.0, 100.0], [0.05, 0.2]
RESOLUTION, N_REPLICATES = 41, 20
# sphinx_gallery_start_ignore
import os

if os.environ.get("SKLEARN_DPTDA_QUICK"):
    EPSILONS, MASSES, RESOLUTION, N_REPLICATES = [1.0, 10.0], [0.2], 17, 2
# sphinx_gallery_end_ignore


def distance(first, second):
    """Sum of the distances over all dimensions."""
    return sum(bottleneck_distance(a, b) for a, b in zip(first, second, strict=True))


def told_apart(filtrations, exact, epsilon):
    """Share of the releases that are closest to the exact diagram of their own walker."""
    private = PrivatePersistence(epsilon)
    releases = release_replicates(private, filtrations, N_REPLICATES, random_state=0, n_jobs=2)
    hits = [
        np.argmin([distance(release, true) for true in exact]) == walker
        for one in releases
        for walker, release in enumerate(one)
    ]
    return float(np.mean(hits))


def main(walkers):
    """Answer the question for several values of the mass and of epsilon."""
    _, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    for mass, marker in zip(MASSES, "so", strict=False):
        # The sensor of a phone has a public range, and three times gravity covers every walk.
        dtm = DTMFiltration(mass, bounds=(-3, 3), max_distance=1.5, resolution=RESOLUTION, n_jobs=2)
        filtrations = dtm.fit_transform(walkers.data)
        exact = CubicalPersistence().fit_transform(filtrations)
        between = [distance(exact[a], exact[b]) for a, b in ((0, 1), (0, 2), (1, 2))]
        print(f"m = {mass:g}: sensitivity {filtrations[0].sensitivity:.5f}, exact diagrams are")
        print("    apart by " + ", ".join(f"{d:.3f}" for d in between) + " (A-B, A-C, B-C)")
        shares = [told_apart(filtrations, exact, epsilon) for epsilon in EPSILONS]
        for epsilon, share in zip(EPSILONS, shares, strict=True):
            print(f"    epsilon = {epsilon:g}: {share:.0%} of the releases know their walker")
        ax.semilogx(EPSILONS, shares, marker=marker, label=f"m = {mass:g}")
    ax.set_xticks(EPSILONS, [f"{value:g}" for value in EPSILONS])
    ax.minorticks_off()
    ax.axhline(1 / 3, color="0.4", linestyle=":", label="guessing")
    ax.set(xlabel="epsilon", ylabel="share of releases", ylim=(0, 1.05))
    ax.set_title("Nearest to the exact diagram of the same walker")
    ax.legend()


# %%
try:
    data = load_walkers(download=False)
except FileNotFoundError as error:
    print(f"skipped: {error}")
else:
    main(data)
plt.show()
