"""
The shape of a graph under edge privacy
=======================================

Who links to whom is hidden by flipping pairs of nodes; where the nodes lie relative to
each other survives. First a circle: the latent positions of a random dot product graph,
recovered from the noisy graph. Then the political blogs of 2004: two camps, found with
every link protected.
"""

# %%
# A circle of latent positions. The embedding of the noisy graph is that of the true one
# shrunk by ``sqrt(1 - 2 p)``, with ``p`` the public probability of a flip, which travels
# with the graph: the embedding takes it off.
import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import orthogonal_procrustes
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from sklearn_dptda.cluster import ToMATo
from sklearn_dptda.datasets import load_polblogs
from sklearn_dptda.graph import AdjacencySpectralEmbedding, EdgeFlip, make_latent, make_rdpg

n = 2000
X = make_latent(n, "circle", random_state=1)
A = make_rdpg(X, random_state=1)
figure, axes = plt.subplots(1, 4, figsize=(13, 3.6), layout="constrained")
angle = np.arctan2(X[:, 1], X[:, 0])
for ax, epsilon in zip(axes, (np.inf, 4.0, 2.0, 1.0), strict=True):
    noisy = EdgeFlip(epsilon, random_state=0).fit_transform(A)
    Z = AdjacencySpectralEmbedding(3).fit_transform(noisy)
    # Embeddings are known up to a rotation: the one that fits best.
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
# The political blogs: 1,222 of them, 16,714 links, and which camp each is in. Coordinates of unit
# length take the number of links of a blog off.
try:
    blogs = load_polblogs()
except FileNotFoundError as error:
    print(f"skipped the political blogs: {error}")
else:
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.6), layout="constrained")
    for ax, epsilon in zip(axes, (np.inf, 8.0, 4.0, 2.0), strict=True):
        scores = []
        for seed in range(5):
            model = make_pipeline(
                EdgeFlip(epsilon, random_state=seed),
                AdjacencySpectralEmbedding(2),
                Normalizer(),
                ToMATo(2),
            )
            labels = model.fit_predict(blogs.adjacency)
            scores.append(adjusted_rand_score(blogs.target, labels))
        Z = model.named_steps["adjacencyspectralembedding"].embedding_
        for camp, color, marker in ((0, "#0072B2", "o"), (1, "#D55E00", "^")):
            mine = blogs.target == camp
            name = blogs.target_names[camp]
            ax.scatter(*Z[mine].T, s=6, color=color, marker=marker, linewidths=0, label=name)
        name = "no flips" if np.isinf(epsilon) else f"epsilon = {epsilon:g}"
        ax.set_title(f"{name}: ARI {np.mean(scores):.2f}", fontsize=10)
        ax.set(xticks=[], yticks=[])
        print(f"political blogs, {name}: ARI {np.mean(scores):.2f}")
    axes[0].legend(frameon=False, fontsize=8)
    figure.suptitle("political blogs, coloured by camp: one link is one record")
plt.show()
