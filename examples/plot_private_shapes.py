"""
Private clusters of shapes that k-means cannot separate
=======================================================

K-means divides the plane by straight lines. ``DPMoGMorse`` covers each shape with a
chain of Gaussian components, and joins components that are not separated by a valley of
the density. Both are differentially private here, with the same epsilon, delta and
public bounds.
"""

# %%
# Four scenes
# -----------
# The bounds are public: they follow from the meaning of the columns and not from the rows.
# The minimum share of a cluster is public as well: no shape here has less than a tenth of
# the rows. We chose the numbers of components on simulated data, which costs nothing: see
# ``plot_number_of_components.py``.
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.cluster import contingency_matrix

from sklearn_dptda.cluster import DPLloyd, DPMoGMorse
from sklearn_dptda.datasets import make_shapes, make_spirals
from sklearn_dptda.plotting import MixtureDensityDisplay

EPSILON, DELTA, N, N_FITS = 2.0, 1e-6, 5000, 10
# sphinx_gallery_start_ignore
import os

if os.environ.get("SKLEARN_DPTDA_QUICK"):
    N_FITS = 2
# sphinx_gallery_end_ignore


def moons(n, seed):
    return make_moons(n, noise=0.08, random_state=seed)


def circles(n, seed):
    return make_circles(n, noise=0.06, factor=0.5, random_state=seed)


def spirals(n, seed):
    return make_spirals(n, turns=1.0, noise=0.025, random_state=seed)


def shapes(n, seed):
    return make_shapes(n, noise=0.08, random_state=seed)


# Generator, number of clusters, number of components, and bounds of each scene.
SCENES = {
    "moons": (moons, 2, 8, ([-1.5, -1], [2.5, 1.5])),
    "circles": (circles, 2, 16, (-1.4, 1.4)),
    "spirals": (spirals, 2, 24, (-1.2, 1.2)),
    "five shapes": (shapes, 5, 24, (-4.2, 4.2)),
}


def estimators(n_clusters, n_components, bounds, seed):
    """Both with the same budget. The seeds are for study: leave them out for a real release."""
    common = {"epsilon": EPSILON, "delta": DELTA, "bounds": bounds, "random_state": seed}
    return (
        DPLloyd(n_clusters, **common),
        DPMoGMorse(n_clusters, n_components, min_cluster_weight=0.1, **common),
    )


# %%
# New rows
# --------
# The rows in the pictures are not the rows that the estimators were fitted to. A fitted
# estimator is private, so applying it to other rows reveals nothing more about the training
# rows. Labels *of training rows* depend on each row itself, and no guarantee covers them.
# Therefore, the labels and scores are those of a new sample from the same generator.
def match(truth, labels):
    """Give each predicted cluster the number of the true cluster that it overlaps with most."""
    overlap = contingency_matrix(truth, labels)
    rows, columns = linear_sum_assignment(-overlap)
    number = np.full(overlap.shape[1], -1)
    number[columns] = rows
    return number


fitted, scores = {}, {}
for name, (make, n_clusters, n_components, bounds) in SCENES.items():
    fresh, truth = make(3000, 10_000)
    runs = []
    for seed in range(N_FITS):
        rows, _ = make(N, seed)
        pair = [one.fit(rows) for one in estimators(n_clusters, n_components, bounds, seed)]
        runs.append([adjusted_rand_score(truth, one.predict(fresh)) for one in pair])
        if seed == 0:
            fitted[name] = pair
    scores[name] = np.array(runs)
    for column, one in enumerate(pair):
        ari = scores[name][:, column]
        print(
            f"{name:12s} {type(one).__name__:10s} ARI of the first fit {ari[0]:z.2f}, of "
            f"{N_FITS} fits: median {np.median(ari):z.2f}, worst {ari.min():z.2f}"
        )
print(pair[1].privacy_guarantee_)

# %%
# The picture
# -----------
# The colours differ in lightness, so that they can be distinguished in greyscale, and the
# markers differ as well. The tint shows the private partition of the plane.
COLOURS = np.array(["#16325c", "#f0a92b", "#a3325f", "#4fa8e0", "#e0703a"])
MARKERS = "o^sDv"


def scatter(ax, rows, numbers):
    for k in np.unique(numbers):
        mine = rows[numbers == k]
        ax.scatter(*mine.T, s=7, c=COLOURS[k], marker=MARKERS[k], lw=0, alpha=0.85, rasterized=True)


def tint(ax, estimator, number, bounds):
    """Colour each place of the plane by the cluster that the private estimator assigns to it."""
    low, high = (np.broadcast_to(end, 2) for end in bounds)
    x, y = (np.linspace(*ends, 300) for ends in zip(low, high, strict=True))
    nodes = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    regions = number[estimator.predict(nodes)].reshape(len(y), len(x))
    ax.pcolormesh(
        x, y, regions, cmap=ListedColormap(COLOURS), vmin=-0.5, vmax=4.5, alpha=0.16, lw=0,
        rasterized=True,
    )  # fmt: skip


figure, axes = plt.subplots(4, 4, figsize=(13, 13.6), layout="constrained")
for column, (name, (make, _, _, bounds)) in zip(axes.T, SCENES.items(), strict=True):
    fresh, truth = make(3000, 10_000)
    scatter(column[0], fresh, truth)
    column[0].set_title(name, fontsize=15, weight="bold", pad=10)
    for ax, one, ari in zip(column[1:3], fitted[name], scores[name].T, strict=True):
        number = match(truth, one.predict(fresh))
        tint(ax, one, number, bounds)
        scatter(ax, fresh, number[one.predict(fresh)])
        ax.set_title(f"ARI {ari[0]:z.2f}   (worst of {N_FITS} fits: {ari.min():z.2f})")
    MixtureDensityDisplay.from_estimator(
        one, ax=column[3], cmap="Blues", colorbar=False, show_components=False
    )
    column[3].get_legend().remove()
    # Draw the modes in the colours of the rows above, in place of the colours of the display.
    for line in list(column[3].lines):
        if line.get_label().startswith("cluster"):
            line.remove()
    for k in np.unique(one.mode_labels_):
        modes = one.modes_[one.mode_labels_ == k]
        look = {"c": COLOURS[number[k]], "marker": MARKERS[number[k]], "edgecolors": "white"}
        column[3].scatter(*modes.T, s=62, lw=1, zorder=5, **look)
    column[3].set_title(f"{len(one.modes_)} modes, saddles (×), merge tree (···)", fontsize=10)
    low, high = (np.broadcast_to(end, 2) for end in bounds)
    for ax in column:
        ax.set(xticks=[], yticks=[], xlabel="", ylabel="", xlim=(low[0], high[0]))
        ax.set(ylim=(low[1], high[1]), box_aspect=1)
        ax.spines[:].set_color("#bbbbbb")
for ax, text in zip(
    axes[:, 0],
    ("truth", "DPLloyd", "DPMoGMorse", "its density"),
    strict=True,
):
    ax.set_ylabel(text, fontsize=13, labelpad=10)
figure.suptitle(
    f"Private clusters at ε = {EPSILON:g}, δ = 10⁻⁶, from {N:,} rows — shown on fresh rows",
    fontsize=17,
)
plt.show()
