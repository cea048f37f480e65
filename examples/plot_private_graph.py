"""
The shape of a graph under edge privacy
=======================================

``EdgeFlip`` hides which nodes are linked by flipping pairs of nodes at random. The relative
positions of the nodes can still be estimated. The first example is a circle: the latent
positions of a random dot product graph, estimated from the noisy graph. The second one has
groups of nodes, which lie on rays. The third one is the network of political blogs of 2004: it
has two camps, which we find while every link is protected.
"""

# %%
# A circle of latent positions. The embedding of the noisy graph equals that of the true graph,
# shrunk by ``sqrt(1 - 2 p)``. Here ``p`` is the public probability of a flip. The graph carries
# it, and the embedding corrects for it.
import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import orthogonal_procrustes
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import Bunch

from sklearn_dptda.cluster import ToMATo
from sklearn_dptda.datasets import load_polblogs
from sklearn_dptda.graph import AdjacencySpectralEmbedding, EdgeFlip, make_latent, make_rdpg

n, N_RELEASES = 2000, 5
# sphinx_gallery_start_ignore
import os

if os.environ.get("SKLEARN_DPTDA_QUICK"):
    n, N_RELEASES = 500, 1
# sphinx_gallery_end_ignore
X = make_latent(n, "circle", random_state=1)
A = make_rdpg(X, random_state=1)
figure, axes = plt.subplots(1, 4, figsize=(13, 3.6), layout="constrained")
angle = np.arctan2(X[:, 1], X[:, 0])
for ax, epsilon in zip(axes, (np.inf, 4.0, 2.0, 1.0), strict=True):
    noisy = EdgeFlip(epsilon, random_state=0).fit_transform(A)
    Z = AdjacencySpectralEmbedding(3, normalize=False).fit_transform(noisy)
    # Embeddings are known up to a rotation. Use the rotation that fits best.
    Z = Z @ orthogonal_procrustes(Z, X)[0]
    error = np.sqrt(((Z - X) ** 2).sum(axis=1).mean())
    ax.scatter(Z[:, 0], Z[:, 1], c=angle, cmap="twilight", s=4, linewidths=0)
    circle = np.linspace(0, 2 * np.pi, 200)
    ax.plot(np.cos(circle) / 2**0.5, np.sin(circle) / 2**0.5, color="0.2", linewidth=0.8)
    name = "no flips" if np.isinf(epsilon) else f"epsilon = {epsilon:g}"
    ax.set_title(f"{name}: error {error:.3f}", fontsize=10)
    ax.set(xlim=(-1, 1), ylim=(-1, 1), xticks=[], yticks=[], aspect="equal")
figure.suptitle(f"latent positions of {n:,} nodes, from the graph with flipped pairs")

# %%
# Twelve groups of nodes. Some nodes have seven times as many links as others of their group, so
# each group is a ray from the origin. Coordinates of length one turn each ray into a compact
# cluster. They are a function of the noisy graph and have no privacy cost. ``KMeans`` is given
# the number of twelve groups. ``ToMATo`` is not: it finds one group on positions, and eleven on
# normalised coordinates.
rng = np.random.default_rng(0)
groups = np.repeat(np.arange(12), np.linspace(160, 40, 12).astype(int))
activity = np.exp(rng.uniform(-2, 0, (len(groups), 1)))
probabilities = np.full((12, 12), 0.05) + 0.85 * np.eye(12)
A = make_rdpg(activity * np.linalg.cholesky(probabilities)[groups], random_state=0)
epsilons = (8.0, 6.0, 4.0, 3.0, 2.0, 1.0)
# sphinx_gallery_start_ignore
if os.environ.get("SKLEARN_DPTDA_QUICK"):
    epsilons = (8.0, 2.0)
# sphinx_gallery_end_ignore
curves = {}
for epsilon in epsilons:
    noisy = EdgeFlip(epsilon, random_state=0).fit_transform(A)
    for normalize in (False, True):
        Z = AdjacencySpectralEmbedding(12, normalize=normalize).fit_transform(noisy)
        for clusterer in (KMeans(12, n_init=10, random_state=0), ToMATo()):
            score = adjusted_rand_score(groups, clusterer.fit_predict(Z))
            curves.setdefault((type(clusterer).__name__, normalize), []).append(score)
figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
colors = {"KMeans": "#0072B2", "ToMATo": "#D55E00"}
for (name, normalize), scores in curves.items():
    kind, line = ("normalized", "o-") if normalize else ("positions", "o:")
    ax.plot(epsilons, scores, line, color=colors[name], label=f"{name}, {kind}")
    print(f"twelve groups, {name}, {kind}: " + ", ".join(f"{score:.2f}" for score in scores))
ax.set(xlabel="epsilon", ylabel="adjusted Rand index", title="twelve groups of nodes")
_ = ax.legend(frameon=False, fontsize=8)

# %%
# The political blogs have 16,715 links, and the camp of each blog is known. Of the 1,490 blogs,
# 268 are not linked to the others. Leaving them out is a choice that depends on the links, and
# **no guarantee covers it**: the scores of the other 1,222 blogs are better than a private
# analysis of all blogs could achieve. We show both, as adjusted Rand indices over five releases.
# On positions, ``KMeans`` separates blogs with many links from blogs with few links. If the file
# is not available, two simulated camps take its place.


def made_up_blogs(largest_component):
    rng = np.random.default_rng(0)
    target = np.repeat([0, 1], [758, 732])
    activity = rng.pareto(1.5, (1490, 1)).clip(0, 9) / 14
    position = np.linalg.cholesky(np.array([[0.9, 0.1], [0.1, 0.9]]))[target]
    adjacency = make_rdpg(activity * position, random_state=0).tocsr()
    kept = np.arange(1490)
    if largest_component:
        kept = np.flatnonzero(adjacency.sum(axis=1) > 0)
    return Bunch(
        adjacency=adjacency[kept][:, kept], target=target[kept], target_names=["one", "other"]
    )


def load_blogs(largest_component):
    try:
        return load_polblogs(largest_component=largest_component)
    except FileNotFoundError:
        print("the political blogs are not at hand: made-up camps")
        return made_up_blogs(largest_component)


def camps(blogs, epsilon, normalize):
    """Coordinates of the last release, and scores of KMeans and ToMATo in each of five."""
    scores = []
    for seed in range(N_RELEASES):
        model = make_pipeline(
            EdgeFlip(epsilon, random_state=seed),
            AdjacencySpectralEmbedding(2, normalize=normalize),
        )
        Z = model.fit_transform(blogs.adjacency)
        clusterers = KMeans(2, n_init=10, random_state=0), ToMATo(2)
        scores.append([adjusted_rand_score(blogs.target, one.fit_predict(Z)) for one in clusterers])
    return Z, np.array(scores)


ROWS = (
    ("positions, largest component", True, False),
    ("normalized, largest component", True, True),
    ("normalized, all nodes", False, True),
)
figure, axes = plt.subplots(3, 4, figsize=(13, 10), layout="constrained")
for (kind, largest_component, normalize), row in zip(ROWS, axes, strict=True):
    blogs = load_blogs(largest_component)
    for ax, epsilon in zip(row, (np.inf, 8.0, 4.0, 2.0), strict=True):
        Z, scores = camps(blogs, epsilon, normalize)
        for camp, color, marker in ((0, "#0072B2", "o"), (1, "#D55E00", "^")):
            mine, name = blogs.target == camp, blogs.target_names[camp]
            ax.scatter(*Z[mine].T, s=6, color=color, marker=marker, linewidths=0, label=name)
        name = "no flips" if np.isinf(epsilon) else f"epsilon = {epsilon:g}"
        kmeans, tomato = scores.mean(axis=0)
        ax.set_title(f"{name}: ARI {kmeans:.2f}, {tomato:.2f}", fontsize=10)
        ax.set(xticks=[], yticks=[])
        low, high = scores.min(axis=0), scores.max(axis=0)
        print(
            f"{kind}, {len(Z)} nodes, {name}: KMeans {kmeans:.2f} ({low[0]:.2f} to {high[0]:.2f}), "
            f"ToMATo {tomato:.2f} ({low[1]:.2f} to {high[1]:.2f})"
        )
    row[0].set_ylabel(kind)
axes[0, 0].legend(frameon=False, fontsize=8)
figure.suptitle("two camps: ARI of KMeans, of ToMATo")
plt.show()

# %%
# On the published blogs with normalised coordinates at epsilon 4, ``KMeans`` has an index of 0.54
# to 0.59 on the largest component, and of 0.37 to 0.41 on all nodes. The difference
# seems to come from the secret choice of nodes, so it is not available to an analysis that protects
# every link.
