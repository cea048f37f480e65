"""
Private clustering with merging and without
===========================================

After J. Byun, Y. Choi, J. Lee, "Improving the utility of differentially private clustering
through dynamical processing": the adjusted Rand index against epsilon, for private
clusterings with as many components as there are classes, and for those with more components
that are merged along saddles of the density.

The paper's finding is that merging helps most methods on most tables. So it does here for
mixtures, k-means and trees. Tables are scaled by their own extremes, as in the paper: for a
table that is not public, that is not private.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from sklearn_dptda.cluster import DPCube, DPLloyd, DPMoG, DPMoGMorse, DPTree, MorseMerging
from sklearn_dptda.datasets import load_magic, load_pulsar, load_shuttle

EPSILONS, DELTA = [0.5, 1.0, 2.0, 5.0, 10.0], 1e-5
N_ROWS, N_SEEDS = 5000, 5
TABLES = (("pulsar", load_pulsar, 6), ("MAGIC", load_magic, 6), ("shuttle", load_shuttle, 12))
# sphinx_gallery_start_ignore
import os

if os.environ.get("SKLEARN_DPTDA_QUICK"):
    EPSILONS, N_ROWS, N_SEEDS, TABLES = [2.0], 1000, 1, TABLES[:1]
# sphinx_gallery_end_ignore


def tables():
    """Yield the name, rows, classes and number of components; a missing table is said."""
    yield "moons", *make_moons(N_ROWS, noise=0.08, random_state=0), 8
    yield "circles", *make_circles(N_ROWS, noise=0.05, factor=0.4, random_state=0), 16
    for name, load, n_components in TABLES:
        try:
            data = load()
        except FileNotFoundError as error:
            print(f"{name} skipped: {error}")
        else:
            yield name, data.data, data.target, n_components


def pair(kind, k, n_components, **public):
    """A private clustering as it is, and with its sub-clusters merged."""
    if kind is DPMoG:
        return DPMoG(k, **public), DPMoGMorse(k, n_components, **public)
    fine = kind(n_components, covariance_share=0.5, **public)
    return kind(k, **public), MorseMerging(fine, k)


def scores(kind, X, y, n_components, epsilon):
    """Mean adjusted Rand index of both."""
    indices = []
    for seed in range(N_SEEDS):
        public = {
            "epsilon": epsilon,
            "delta": DELTA,
            "bounds": (X.min(axis=0), X.max(axis=0)),
            "random_state": seed,
        }
        both = pair(kind, len(np.unique(y)), n_components, **public)
        indices.append([adjusted_rand_score(y, one.fit(X).predict(X)) for one in both])
    return np.mean(indices, axis=0)


# %%
KINDS = (DPMoG, DPLloyd, DPTree, DPCube)
COLOURS = ("#16325c", "#a3325f", "#e0703a", "#4fa8e0")
chosen = list(tables())
figure, axes = plt.subplots(
    1, len(chosen), figsize=(3.6 * len(chosen), 3.8), layout="constrained", sharey=True
)
for ax, (name, X, y, n_components) in zip(axes, chosen, strict=True):
    for kind, colour, marker in zip(KINDS, COLOURS, "os^D", strict=True):
        curves = np.array([scores(kind, X, y, n_components, epsilon) for epsilon in EPSILONS])
        for curve, style, label in zip(
            curves.T, (":", "-"), (kind.__name__, f"{kind.__name__} merged"), strict=True
        ):
            ax.semilogx(EPSILONS, curve, marker=marker, color=colour, linestyle=style, label=label)
            print(f"{name:8s} {label:16s}", *(f"{value:z.3f}" for value in curve))
    ax.set_xticks(EPSILONS, [f"{value:g}" for value in EPSILONS])
    ax.minorticks_off()
    ax.set(title=f"{name}, {n_components} components", xlabel="epsilon")
axes[0].set_ylabel("adjusted Rand index")
axes[-1].legend(fontsize="x-small", ncols=1)
plt.show()
