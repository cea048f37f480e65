"""
How many components does a private mixture need?
================================================

``DPMoGMorse`` covers clusters with components, and joins components without a valley between
them. With too few components, a chain of them cannot follow a curved cluster. With too many,
each component has few rows, and noise dominates it.

As a rule, use 1.5 to 3 times as many components as clusters if the clusters are compact. For
curved clusters, use enough components that each piece is approximately straight: about 4 for a
half-circle and 8 for a circle. The smaller epsilon is, the narrower the suitable range.

Tuning on private rows costs budget in every fit, and a score on private rows is not private.
Here we tune on *simulated* rows of the expected shape, as many as there are private rows.
This costs nothing. Only the last fit, with the number of components that was found, uses
private rows.
"""

# %%
# Three shapes
# ------------
import matplotlib.pyplot as plt
import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from sklearn_dptda.cluster import DPMoGMorse

N = 3500
EPSILONS = [1.0, 5.0]
COMPONENTS, N_SEEDS = [4, 6, 8, 12, 16, 22, 30], 4
# sphinx_gallery_start_ignore
import os

if os.environ.get("SKLEARN_DPTDA_QUICK"):
    COMPONENTS, N_SEEDS = [4, 8, 16], 1
# sphinx_gallery_end_ignore


def blobs(n, seed):
    centers = [[-3, -2], [-2, 3], [0, 0], [3, 2], [3, -3]]
    return make_blobs(n, centers=centers, cluster_std=0.7, random_state=seed)


def moons(n, seed):
    return make_moons(n, noise=0.08, random_state=seed)


def circles(n, seed):
    return make_circles(n, noise=0.06, factor=0.5, random_state=seed)


# Generator, number of clusters, and bounds of each shape.
SHAPES = {
    "five blobs": (blobs, 5, (-6, 6)),
    "two moons": (moons, 2, ([-1.5, -1], [2.5, 1.5])),
    "two circles": (circles, 2, (-1.4, 1.4)),
}

# %%
# Fits
# ----
# The scores are computed on a new sample, so they describe the fitted function. All rows are
# simulated, so we can show seeds and scores.


def run(name, epsilon, n_components, seed):
    make, n_clusters, bounds = SHAPES[name]
    rows, _ = make(N, seed)
    estimator = DPMoGMorse(
        # There cannot be more clusters than components.
        min(n_clusters, n_components),
        n_components,
        epsilon=epsilon,
        bounds=bounds,
        random_state=seed,
    )
    fresh, truth = make(2000, 10_000 + seed)
    ari = adjusted_rand_score(truth, estimator.fit(rows).predict(fresh))
    return ari, len(estimator.modes_)


jobs = [
    (name, epsilon, n_components, seed)
    for name in SHAPES
    for epsilon in EPSILONS
    for n_components in COMPONENTS
    for seed in range(N_SEEDS)
]
fits = np.array(Parallel(n_jobs=2)(delayed(run)(*job) for job in jobs))
fits = fits.reshape(len(SHAPES), len(EPSILONS), len(COMPONENTS), N_SEEDS, 2)
for name, by_epsilon in zip(SHAPES, fits, strict=True):
    print(f"{name}, {N} rows: mean ARI (mean number of modes) by n_components")
    print(" " * 14 + "".join(f"{k:>12}" for k in COMPONENTS))
    for epsilon, values in zip(EPSILONS, by_epsilon.mean(axis=2), strict=True):
        cells = [f"{ari:z.2f} ({modes:.1f})" for ari, modes in values]
        print(f"epsilon = {epsilon:g}".ljust(14) + "".join(f"{cell:>12}" for cell in cells))

# %%
# The picture
# -----------
# The lines are means, and the bands go from the worst to the best fit. The lower row shows the
# number of modes. Where it leaves the diagonal, components share a mode, or are dropped
# because they hardly stand out from the noise.
LOOKS = {
    1.0: {"color": "#d55e00", "marker": "^", "ls": "--"},
    5.0: {"color": "#0072b2", "marker": "o", "ls": "-"},
}
figure, axes = plt.subplots(
    2, 3, figsize=(12, 6.4), layout="constrained", sharex=True, sharey="row"
)
for column, (name, by_epsilon) in zip(axes.T, zip(SHAPES, fits, strict=True), strict=True):
    for epsilon, values in zip(EPSILONS, by_epsilon, strict=True):
        look = LOOKS[epsilon]
        for ax, numbers in zip(column, np.moveaxis(values, -1, 0), strict=True):
            ax.fill_between(
                COMPONENTS, numbers.min(1), numbers.max(1), color=look["color"], alpha=0.15, lw=0
            )
            ax.plot(COMPONENTS, numbers.mean(1), lw=2, ms=6, label=f"ε = {epsilon:g}", **look)
    n_clusters = SHAPES[name][1]
    column[1].axline((0, 0), slope=1, color="#999999", lw=1, ls=":", label="one per component")
    column[1].axhline(n_clusters, color="#999999", lw=1, label="clusters")
    column[0].set_title(name, fontsize=13, weight="bold")
    column[1].set(xlabel="n_components", xticks=[4, 8, 12, 16, 22, 30], ylim=(0, 31))
    for ax in column:
        ax.spines[["top", "right"]].set_visible(False)
axes[0, 0].set(ylabel="adjusted Rand index", ylim=(-0.05, 1.05))
axes[1, 0].set(ylabel="modes", xlim=(3, 31))
handles, labels = axes[1, 0].get_legend_handles_labels()
figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
figure.suptitle(f"{N:,} simulated rows, δ = 10⁻⁶, {N_SEEDS} fits each")
plt.show()
