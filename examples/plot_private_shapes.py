"""
Private clusters of shapes that k-means cannot see
==================================================

K-means cuts the plane with straight lines. ``DPMoGMorse`` covers each shape with a
chain of Gaussians and joins those that no valley of the density divides. Both are
differentially private here, at the same epsilon and delta and with the same public
bounds.
"""

# %%
# Four scenes
# -----------
# Bounds are public: what one knows of the columns before one sees a row. So is a least
# share of a cluster: no shape here has less than a tenth of the rows.
# Numbers of components were tried out on simulated data, which costs nothing: see
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


# Generator, clusters, components, bounds.
SCENES = {
    "moons": (moons, 2, 8, ([-1.5, -1], [2.5, 1.5])),
    "circles": (circles, 2, 16, (-1.4, 1.4)),
    "spirals": (spirals, 2, 24, (-1.2, 1.2)),
    "five shapes": (shapes, 5, 24, (-4.2, 4.2)),
}


def estimators(n_clusters, n_components, bounds, seed):
    """Both at the same price. Seeds are for study: a real release leaves them out."""
    common = {"epsilon": EPSILON, "delta": DELTA, "bounds": bounds, "random_state": seed}
    return (
        DPLloyd(n_clusters, **common),
        DPMoGMorse(n_clusters, n_components, min_cluster_weight=0.1, **common),
    )


# %%
# Fresh rows
# ----------
# Rows in the pictures are not those that were fitted. A fitted estimator is private:
# to apply it to rows of one's own tells nothing about the training rows. Labels *of
# training rows* are a function of each row itself, and no guarantee covers them. So
# labels and scores are those of a fresh sample of the same generator.
def match(truth, labels):
    """Number predicted clusters like the true ones that they overlap with most."""
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
# Colours differ in lightness, for greyscale, and markers differ too.
# The tint is the private partition of the plane.
COLOURS = np.array(["#16325c", "#f0a92b", "#a3325f", "#4fa8e0", "#e0703a"])
MARKERS = "o^sDv"


def scatter(ax, rows, numbers):
    for k in np.unique(numbers):
        mine = rows[numbers == k]
        ax.scatter(*mine.T, s=7, c=COLOURS[k], marker=MARKERS[k], lw=0, alpha=0.85, rasterized=True)


def tint(ax, estimator, number, bounds):
    """Colour the plane by the cluster that the private estimator gives to each place."""
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
    # Modes in the colours of the rows above them, and no longer in the display's own.
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
