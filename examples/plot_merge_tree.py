"""
The merge tree of a mixture
===========================

This example shows how ``MorseMerging`` makes clusters from a mixture that has more
components than there are clusters, and how ``DPMoGMorse`` does the same with a private
mixture.

* A *mode* is a local maximum of the density. Most components have a mode of their own.
* The *height* of a point is minus the log density, measured from the highest mode, in nats.
  At 1 nat the density is ``1 / e`` of its largest value, and at 7 nats it is less than a
  thousandth.
* A *saddle* is the highest point on the best path between two modes.
* Modes are joined in the order of their saddles, the lowest height first. The joins form a
  tree. The *persistence* of a mode is the height difference between the mode and the
  saddle where it meets a mode with a larger density.
* A cut of the tree determines the clusters.

The tree is a function of the parameters of the mixture, and of no row. If the mixture is
private, so is the tree, and you may cut it any number of times.
"""

# %%
# Two mixtures of the same rows
# -----------------------------
# The rows form two moons and two blobs. One mixture is fitted by EM, without privacy, and the
# other one is private. They have the same number of components and the same seed. Clusters
# are numbered by their highest modes, so a shape may have different colours in the two.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs, make_moons
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from sklearn_dptda.cluster import DPMoG, DPMoGMorse, MorseMerging, morse_linkage
from sklearn_dptda.plotting import DendrogramDisplay, MixtureDensityDisplay

BOUNDS = ([-1.8, -1.2], [2.8, 1.7])


def scene(n, seed):
    """Two moons and two blobs, with 1/3, 1/3, 1/6 and 1/6 of the rows."""
    rng = np.random.RandomState(seed)
    moons, y_moons = make_moons(2 * n // 3, noise=0.06, random_state=rng)
    centers = [[-0.9, -0.6], [1.9, 1.1]]
    blobs, y_blobs = make_blobs(n // 3, centers=centers, cluster_std=0.1, random_state=rng)
    return np.vstack([moons, blobs]), np.concatenate([y_moons, 2 + y_blobs])


X, _ = scene(5000, 0)
fresh, truth = scene(3000, 10_000)

# With n_clusters=None, both join modes that stand out from their saddle by less than 1.25 nats.
exact = MorseMerging(GaussianMixture(12, random_state=0)).fit(X)
# The seed is for study only: leave it out for a real release.
private = DPMoGMorse(n_components=12, epsilon=2.0, bounds=BOUNDS, random_state=0).fit(X)
print(private.privacy_guarantee_)
both = {"no privacy: EM": exact, "private: ε = 2, δ = 10⁻⁶": private}
for name, one in both.items():
    saddles = one.linkage_[:, 2]
    ari = adjusted_rand_score(truth, one.predict(fresh))
    print(f"{name}: {len(one.modes_)} modes, saddles at", np.round(saddles, 1), "nats")
    print(f"  the cut: {one.n_clusters_} clusters, ARI on fresh rows {ari:.2f}")

# %%
# Density, tree and cut
# ---------------------
# The right column shows the number of clusters against the threshold: ``merge_threshold=t``
# joins across all saddles up to ``t``. The largest gap between saddles is the longest step
# of this staircase, which is shaded. The noise moves the saddles, but the long step remains.
# With ``n_clusters=None``, the tree is not cut at a single threshold. Instead, it keeps the
# clusters that stand out from their own saddle by 1.25 nats, whether they are dense or sparse.
# In the private mixture, one end of a moon is such a cluster as well, which makes five.
# ``n_clusters=4`` joins it.
figure, axes = plt.subplots(
    2, 3, figsize=(15, 9), layout="constrained", width_ratios=(1.35, 1.2, 1)
)
top = 1.15 * max(one.linkage_[-1, 2] for one in both.values())
for row, (name, one) in zip(axes, both.items(), strict=True):
    MixtureDensityDisplay.from_estimator(one, bounds=BOUNDS, ax=row[0], colorbar=False)
    row[0].set(aspect="equal", xlabel="", ylabel="", title=name)
    DendrogramDisplay.from_estimator(one, ax=row[1])
    row[1].set(ylim=(None, top), title="merge tree and its largest gap")
    saddles = one.linkage_[:, 2]
    steps = np.concatenate([[0], saddles, [top]])
    counts = np.arange(len(saddles) + 1, 0, -1)
    row[2].stairs(counts, steps, baseline=None, color="black", lw=2)
    widest = int(np.argmax(np.diff(steps[:-1])))
    gap = {"color": "#f0a92b", "alpha": 0.25, "lw": 0, "zorder": 0}
    row[1].axhspan(*steps[widest : widest + 2], **gap)
    row[2].axvspan(*steps[widest : widest + 2], **gap)
    row[2].annotate(
        f"{counts[widest]} clusters\nfor {np.diff(steps)[widest]:.1f} nats",
        (steps[widest : widest + 2].mean(), counts[widest]),
        xytext=(0, 12),
        textcoords="offset points",
        ha="center",
    )
    row[2].set(
        xlabel="merge_threshold (nats)", ylabel="clusters", xlim=(0, top), title="every cut of it"
    )
    row[2].set_yticks(range(1, 13))
    row[2].spines[["top", "right"]].set_visible(False)

# %%
# Other cuts
# ----------
# Other cuts need only the tree: no rows and no budget. You can fix a threshold in nats before
# you see any tree. It does not depend on the units of the columns, and means: "between two
# clusters, the density falls below ``exp(-t)`` of its largest value".
tree = morse_linkage(private.weights_, private.means_, private.covariances_)
for cut in ({"n_clusters": 2}, {"n_clusters": 4}, {"threshold": 1.0}, {"threshold": 4.0}):
    labels = tree.cut(**cut)
    weights = np.bincount(labels[tree.owners], private.weights_)
    print(cut, "->", labels.max() + 1, "clusters of weights", np.round(weights, 2))

# %%
# Splinters
# ---------
# With many components and a small budget, noise can split a small part off a shape. If the
# saddle between them is as high as the saddles between shapes, the cut takes the part for a
# cluster and joins two true clusters instead. ``min_cluster_weight`` is a public lower limit for
# the share of the rows of a cluster. Lighter clusters are merged first, across their lowest
# saddles.
#
# ``FrozenEstimator`` keeps the private mixture unchanged, so merging it again costs nothing
# and reads no rows: ``fit`` only checks the number of columns.
figure, axes = plt.subplots(1, 2, figsize=(11, 4.7), layout="constrained")
n_fits, shown = 15, 8
scores = np.empty((n_fits, 2))
for seed in range(n_fits):
    frozen = FrozenEstimator(DPMoG(16, epsilon=0.5, bounds=BOUNDS, random_state=seed).fit(X))
    for i, least in enumerate((0.0, 0.1)):
        merged = MorseMerging(frozen, n_clusters=4, min_cluster_weight=least).fit(fresh)
        scores[seed, i] = adjusted_rand_score(truth, merged.predict(fresh))
        if seed == shown:
            title = f"min_cluster_weight = {least:g}: ARI {scores[seed, i]:.2f}"
            MixtureDensityDisplay.from_estimator(merged, bounds=BOUNDS, ax=axes[i], colorbar=False)
            axes[i].set(aspect="equal", xlabel="", ylabel="", title=title)
print(
    f"epsilon 0.5, 16 components: without a least weight {np.sum(scores[:, 0] > 0.9)} of "
    f"{n_fits} fits have an ARI above 0.9, with it {np.sum(scores[:, 1] > 0.9)}"
)
print(f"the fit in the picture was chosen to show a splinter; it broke: {scores[shown].round(2)}")
plt.show()
