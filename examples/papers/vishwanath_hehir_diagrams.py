"""
Edge privacy: the pictures behind the theorems
==============================================

After S. Vishwanath, J. Hehir, "The shape of edge differential privacy". This example shows the
diagrams of an embedding before and after edges are flipped. It also shows how fast they approach
each other if epsilon is public, and if it is not. These are not the figures of the abstract
(clusters that come closer, and ToMATo against k-means). They follow notebooks in the authors' code
for a longer version. The latent positions here have products between zero and one, so the theorems
apply without changes.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from gudhi import AlphaComplex
from scipy.linalg import orthogonal_procrustes

from sklearn_dptda import bottleneck_distance
from sklearn_dptda.graph import AdjacencySpectralEmbedding, EdgeFlip, make_latent, make_rdpg
from sklearn_dptda.plotting import PersistenceDiagramDisplay

N, SIZES, N_REPEATS = 2000, (100, 250, 500, 1000, 2000), 8
# sphinx_gallery_start_ignore
import os

if os.environ.get("SKLEARN_DPTDA_QUICK"):
    N, SIZES, N_REPEATS = 400, (50, 200), 2
# sphinx_gallery_end_ignore


def diagrams(points):
    """Components and loops of the alpha complex of all points."""
    tree = AlphaComplex(points=points).create_simplex_tree()
    tree.compute_persistence()
    by_dimension = (tree.persistence_intervals_in_dimension(q).reshape(-1, 2) for q in (0, 1))
    return [np.sqrt(squares[squares[:, 1] > squares[:, 0]]) for squares in by_dimension]


# %%
# The embedding of the noisy graph has the shape of the true embedding at a smaller size, so its
# diagram is closer to the origin. Debiasing also restores the size.
EPSILON = 2.0
figure, axes = plt.subplots(4, 3, figsize=(10, 13), layout="constrained")
for row, shape in zip((0, 2), ("circle", "figure_eight"), strict=True):
    X = make_latent(N, shape, random_state=1)
    A = make_rdpg(X, random_state=1)
    noisy = EdgeFlip(EPSILON, random_state=0).fit_transform(A)
    d = X.shape[1]
    true = AdjacencySpectralEmbedding(d, normalize=False).fit_transform(A)
    plain = AdjacencySpectralEmbedding(d, flip_probability=0.0, normalize=False).fit_transform(
        noisy
    )
    debiased = AdjacencySpectralEmbedding(d, normalize=False).fit_transform(noisy)
    exact = diagrams(true)
    for column, (name, Z) in enumerate(
        (("all edges", true), (f"epsilon = {EPSILON:g}, plain", plain), ("debiased", debiased))
    ):
        ax, below = axes[row, column], axes[row + 1, column]
        # An embedding is known up to a rotation. Use the rotation that fits best.
        Z = Z @ orthogonal_procrustes(Z, X)[0]
        ax.scatter(X[:, 0], X[:, 1], s=1, color="0.75", label="latent")
        ax.scatter(Z[:, 0], Z[:, 1], s=2, color="#0072B2", linewidths=0, label="embedding")
        ax.set(xlim=(-1, 1), ylim=(-1, 1), xticks=[], yticks=[], aspect="equal")
        ax.set_title(f"{shape.replace('_', ' ')}: {name}", fontsize=10)
        embedded = diagrams(Z)
        far = bottleneck_distance(embedded[1], exact[1])
        PersistenceDiagramDisplay(embedded, reference=exact, upper=0.85).plot(below)
        below.set_title(f"loops are {far:.3f} away", fontsize=10)
        print(f"{shape:14}{name:22} bottleneck distance of loops {far:.3f}")

# %%
# If epsilon is public, debias. If epsilon is unknown, for example because you only have the noisy
# graph, first scale all embeddings to unit size. The figure shows the loops of the circle, with the
# mean and the range over several graphs.
EPSILONS = (1.0, 2.0, 4.0)


def unit(Z):
    """Centre the points and scale them to a root mean square distance of one."""
    Z = Z - Z.mean(axis=0)
    return Z / np.sqrt((Z**2).sum(axis=1).mean())


def distances(n, epsilon, seed):
    A = make_rdpg(make_latent(n, "circle", random_state=seed), random_state=seed)
    noisy = EdgeFlip(epsilon, random_state=seed).fit_transform(A)
    true = AdjacencySpectralEmbedding(3, normalize=False).fit_transform(A)
    known = AdjacencySpectralEmbedding(3, normalize=False).fit_transform(noisy)
    unknown = AdjacencySpectralEmbedding(3, flip_probability=0.0, normalize=False).fit_transform(
        noisy
    )
    return (
        bottleneck_distance(diagrams(known)[1], diagrams(true)[1]),
        bottleneck_distance(diagrams(unit(unknown))[1], diagrams(unit(true))[1]),
    )


figure, axes = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained", sharex=True)
for epsilon, marker, color in zip(EPSILONS, "o^s", ("#0072B2", "#D55E00", "#009E73"), strict=True):
    values = np.array([[distances(n, epsilon, seed) for seed in range(N_REPEATS)] for n in SIZES])
    for ax, loops, name in zip(axes, np.moveaxis(values, 2, 0), ("public", "unknown"), strict=True):
        ax.plot(
            SIZES, loops.mean(axis=1), marker=marker, color=color, label=f"epsilon = {epsilon:g}"
        )
        ax.fill_between(SIZES, loops.min(axis=1), loops.max(axis=1), color=color, alpha=0.15)
        ax.set(xscale="log", xlabel="number of nodes", title=f"epsilon {name}")
        shown = "".join(f"{value:8.3f}" for value in loops.mean(axis=1))
        print(f"epsilon {epsilon:g} {name:8}: distance at n = {SIZES}:{shown}")
axes[0].set_ylabel("bottleneck distance of loops")
axes[1].set_ylabel("the same at unit size")
axes[0].legend(frameon=False)
for ax in axes:
    ax.set_ylim(bottom=0)
plt.show()
