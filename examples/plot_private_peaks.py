"""
Clusters from a private histogram
=================================

``DPToMATo`` releases one noisy histogram. It then finds clusters of any shape, and their number,
as post-processing. The counts are smoothed and scaled to unit variance, so the prominence of
each side of a saddle is a z-score against the noise of sampling and of privacy. If both sides of
a saddle are prominent, it separates two clusters.
"""

# %%
# Four shapes of 10,000 points. The bounds are public and do not depend on the points.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from sklearn_dptda.cluster import DPLloyd, DPToMATo, ToMATo
from sklearn_dptda.datasets import make_shapes, make_spirals
from sklearn_dptda.plotting import PersistenceDiagramDisplay
from sklearn_dptda.plotting._style import CLUSTER_COLORS, CLUSTER_MARKERS

EPSILON = 1.0
n, n_fits = 10_000, 10
# sphinx_gallery_start_ignore
import os

if os.environ.get("SKLEARN_DPTDA_QUICK"):
    n_fits = 2
# sphinx_gallery_end_ignore

SCENES = {
    "moons": (lambda n, s: make_moons(n, noise=0.07, random_state=s), ([-1.6, -1.1], [2.6, 1.6])),
    "circles": (
        lambda n, s: make_circles(n, noise=0.05, factor=0.4, random_state=s),
        (-1.3, 1.3),
    ),
    "spirals": (lambda n, s: make_spirals(n, noise=0.02, random_state=s), (-1.2, 1.2)),
    "five shapes": (lambda n, s: make_shapes(n, noise=0.05, random_state=s), (-4, 4)),
}


def fit(bounds, seed):
    """A private clustering whose number of clusters is not given."""
    return DPToMATo(epsilon=EPSILON, bounds=bounds, random_state=seed)


# %%
# The scores are computed on new points, because scores of the private points would not be
# private. Private k-means and ordinary k-means are given the number of clusters.
fitted = {}
for name, (make, bounds) in SCENES.items():
    X, y = make(n, 0)
    fresh, truth = make(3000, 10_000)
    k = len(np.unique(y))
    fits = [fit(bounds, seed).fit(X) for seed in range(n_fits)]
    ours = [adjusted_rand_score(truth, one.predict(fresh)) for one in fits]
    lloyd = DPLloyd(k, EPSILON, bounds=bounds, random_state=0).fit(X)
    peers = {
        "DPLloyd": adjusted_rand_score(truth, lloyd.predict(fresh)),
        "KMeans": adjusted_rand_score(
            truth, KMeans(k, n_init=3, random_state=0).fit(X).predict(fresh)
        ),
    }
    fitted[name] = fits[0], fresh, ours
    numbers = [one.n_clusters_ for one in fits]
    print(
        f"{name:12s} DPToMATo {np.mean(ours):.2f} (least {min(ours):.2f}), clusters {numbers}; "
        + ", ".join(f"{peer} {value:.2f}" for peer, value in peers.items())
    )
print(fitted["moons"][0].privacy_guarantee_)

# %%
# The rows of the figure show the private histogram, the clusters of its cells with new points on
# top, and the prominence of the two sides of each saddle. Clusters are coloured, and saddles that
# noise alone can produce are grey.
figure, axes = plt.subplots(3, 4, figsize=(13, 9.6), layout="constrained")
for column, (name, (private, fresh, ours)) in zip(axes.T, fitted.items(), strict=True):
    (x0, x1), (y0, y1) = ((edges[0], edges[-1]) for edges in private.edges_)
    extent = (x0, x1, y0, y1)
    top = np.quantile(private.counts_, 0.995)
    column[0].imshow(
        private.counts_.T, origin="lower", extent=extent, cmap="Blues", vmin=0, vmax=top
    )
    column[0].set_title(name, fontweight="bold")
    labels = private.predict(fresh)
    colors = np.array(CLUSTER_COLORS)
    cells = private.cell_labels_.T % len(colors)
    shades = plt.matplotlib.colors.to_rgba_array(colors)[:, :3]
    column[1].imshow(0.82 + 0.18 * shades[cells], origin="lower", extent=extent)
    for cluster in np.unique(labels):
        column[1].scatter(
            *fresh[labels == cluster].T,
            s=4,
            color=colors[cluster % len(colors)],
            marker=CLUSTER_MARKERS[cluster % len(CLUSTER_MARKERS)],
            linewidths=0,
        )
    column[1].set_title(f"ARI {ours[0]:.2f} (worst of {n_fits} fits: {min(ours):.2f})", fontsize=9)
    prominences = private.diagram_[:, 0] - private.diagram_[:, 1]
    shown = prominences[:12]
    column[2].bar(
        np.arange(len(shown)),
        shown,
        color=[
            colors[i % len(colors)] if i < private.n_clusters_ else "0.8" for i in range(len(shown))
        ],
        edgecolor="0.2",
        linewidth=0.6,
    )
    column[2].set(xlabel="peak", xticks=[])
    column[2].set_title(f"{private.n_clusters_} clusters", fontsize=9)
    for ax in column[:2]:
        ax.set(xticks=[], yticks=[], aspect="equal", xlim=(x0, x1), ylim=(y0, y1))
for ax, label in zip(
    axes[:, 0], ("private histogram", "its clusters", "stands out by (z-score)"), strict=True
):
    ax.set_ylabel(label)
figure.suptitle(f"epsilon = {EPSILON:g}, {n:,} points, number of clusters not given")

# %%
# The prominences as a persistence diagram, beside diagrams of the points themselves. The points
# far from the diagonal are the clusters: there are five of them.
private, fresh, _ = fitted["five shapes"]
figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
PersistenceDiagramDisplay.from_estimator(private, ax=axes[0])
axes[0].set_title(f"DPToMATo, epsilon = {EPSILON:g}", fontsize=10)
PersistenceDiagramDisplay.from_estimator(ToMATo(5).fit(fresh), ax=axes[1])
axes[1].set_title("ToMATo, not private", fontsize=10)
plt.show()
