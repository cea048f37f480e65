"""
Edge privacy: clusters of nodes on two circles
==============================================

After Figure 2 of S. Vishwanath, J. Hehir, "The shape of edge differential privacy". The figure
illustrates spectral clustering by ``ToMATo`` instead of ``KMeans``, and the text states no
settings or numbers. We use those of the authors' code: 900 nodes on a circle of radius 0.9 and 300
on a circle of radius 0.5, linked with probability ``|<x, y>|``, and three coordinates. The code
does not flip any pairs in this script, but we do.
"""

# %%
# Positions ``x`` and ``-x`` have the same probabilities. Therefore, the embedding winds each circle
# twice around a cone, and the two circles are parallel loops, one above the other.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from sklearn_dptda.cluster import ToMATo
from sklearn_dptda.graph import AdjacencySpectralEmbedding, EdgeFlip, make_sbm

SIZES, N_REPEATS = (900, 300), 20
# sphinx_gallery_start_ignore
import os

if os.environ.get("SKLEARN_DPTDA_QUICK"):
    SIZES, N_REPEATS = (450, 150), 2
# sphinx_gallery_end_ignore


def circles(seed):
    """Graph of two circles, in which each node is its own block, and the circle of each node."""
    y = np.repeat([0, 1], SIZES)
    angle = np.random.default_rng(seed).uniform(0, 2 * np.pi, len(y))
    x = np.array([0.9, 0.5])[y, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return make_sbm(np.ones(len(y), dtype=int), np.abs(x @ x.T), random_state=seed)[0], y


# %%
# The debiased embedding after the flips, with the clusters of both methods. The colours are the
# clusters, and the index is the adjusted Rand index. ``KMeans`` cuts across both circles for every
# epsilon.
EPSILONS = (np.inf, 4.0, 2.0, 1.0)
METHODS = {"KMeans": KMeans(2, n_init=10, random_state=0), "ToMATo": ToMATo(2)}
COLORS = np.array(["#0072B2", "#D55E00"])
figure, axes = plt.subplots(
    2, 4, figsize=(13, 6.8), layout="constrained", subplot_kw={"projection": "3d"}
)
A, y = circles(0)
for column, epsilon in zip(axes.T, EPSILONS, strict=True):
    noisy = EdgeFlip(epsilon, random_state=0).fit_transform(A)
    Z = AdjacencySpectralEmbedding(3, normalize=False).fit_transform(noisy)
    # Turn the axis of the cone upwards.
    Z = np.roll(Z * np.sign(np.median(Z[:, 0])), -1, axis=1)
    for ax, (name, method) in zip(column, METHODS.items(), strict=True):
        labels = method.fit_predict(Z)
        score = adjusted_rand_score(y, labels)
        ax.scatter(*Z.T, c=COLORS[labels], s=4, linewidths=0, depthshade=False)
        ax.view_init(elev=28, azim=-60)
        ax.set(xticklabels=[], yticklabels=[], zticklabels=[], box_aspect=(1, 1, 1))
        flips = "no flips" if np.isinf(epsilon) else f"epsilon = {epsilon:g}"
        ax.set_title(f"{name}, {flips}: {score:.2f}", fontsize=10)
figure.suptitle("two circles of nodes: clusters of the embedding")

# %%
# The same over many graphs, down to values of epsilon at which the circles can no longer be found.
ALL = (np.inf, 8.0, 4.0, 2.0, 1.5, 1.0, 0.7, 0.5)
scores = np.empty((len(ALL), N_REPEATS, len(METHODS)))
for seed in range(N_REPEATS):
    A, y = circles(seed)
    for row, epsilon in enumerate(ALL):
        noisy = EdgeFlip(epsilon, random_state=seed).fit_transform(A)
        Z = AdjacencySpectralEmbedding(3, normalize=False).fit_transform(noisy)
        scores[row, seed] = [adjusted_rand_score(y, m.fit_predict(Z)) for m in METHODS.values()]
print(f"adjusted Rand index, mean of {N_REPEATS} graphs, and share above 0.9; epsilon:")
print(" " * 8 + "".join(f"{epsilon:8g}" for epsilon in ALL))
figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
for name, marker, color, values in zip(
    METHODS, "so", COLORS, np.moveaxis(scores, 2, 0), strict=True
):
    print(f"{name:8}" + "".join(f"{mean:8.3f}" for mean in values.mean(axis=1)))
    shares = (values > 0.9).mean(axis=1)
    print("  > 0.9 " + "".join(f"{share:8.2f}" for share in shares))
    finite, means = ALL[1:], values[1:].mean(axis=1)
    ax.plot(finite, means, marker=marker, color=color, label=name)
    ax.fill_between(finite, values[1:].min(axis=1), values[1:].max(axis=1), color=color, alpha=0.15)
ax.set(xlabel="epsilon", xscale="log", ylabel="adjusted Rand index", title="two circles of nodes")
ax.set_xticks(ALL[1:], [f"{epsilon:g}" for epsilon in ALL[1:]], minor=False)
ax.minorticks_off()
ax.legend(frameon=False)
plt.show()
