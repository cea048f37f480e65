"""
Walkers told apart by their private diagrams
============================================

After T. Kang, S. Kim, J. Sohn, J. Awan, "Differentially private topological data analysis":
accelerations of three walking persons, their private diagrams, and whether the diagrams of one
person are nearer to each other than to those of the others.

Here the question is put to numbers of our own: of releases of each walker, how many are nearest
to the exact diagram of the same walker? One third would be guessing. One record is a row of the
table, and rows repeat: this is no statement about a person.
"""

# %%
import os
from pathlib import Path

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

quick = bool(os.environ.get("SKLEARN_DPTDA_QUICK"))
out = Path(os.environ.get("SKLEARN_DPTDA_OUT", "examples/out"))
out.mkdir(parents=True, exist_ok=True)

EPSILONS = [1.0, 10.0] if quick else [1.0, 2.0, 5.0, 10.0, 100.0]
MASSES = [0.2] if quick else [0.05, 0.2]
REPLICATES, WORKERS = (2, 1) if quick else (20, 2)


def distance(first, second):
    """Distances of all dimensions, added."""
    return sum(bottleneck_distance(a, b) for a, b in zip(first, second, strict=True))


def told_apart(filtrations, exact, epsilon):
    """Share of releases that are nearest to their own walker's exact diagram."""
    private = PrivatePersistence(epsilon)
    releases = release_replicates(private, filtrations, REPLICATES, random_state=0, n_jobs=WORKERS)
    hits = [
        np.argmin([distance(release, true) for true in exact]) == walker
        for one in releases
        for walker, release in enumerate(one)
    ]
    return float(np.mean(hits))


def main(walkers):
    """Ask the question for several masses and epsilon."""
    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    for mass, marker in zip(MASSES, "so", strict=False):
        # A phone's sensor has a public range; three times gravity holds every walk.
        dtm = DTMFiltration(
            mass, bounds=(-3, 3), max_distance=1.5, resolution=17 if quick else 41, n_jobs=WORKERS
        )
        filtrations = dtm.fit_transform([cloud[:: 10 if quick else 1] for cloud in walkers.data])
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
    figure.savefig(out / "kang_walkers.png", dpi=100)


# %%
try:
    data = load_walkers(download=not quick)
except FileNotFoundError as error:
    print(f"skipped: {error}")
else:
    main(data)
