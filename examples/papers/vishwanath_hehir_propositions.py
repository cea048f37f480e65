"""
Edge privacy: Propositions 1 and 2 and Corollary 1, in numbers
==============================================================

After S. Vishwanath, J. Hehir, "The shape of edge differential privacy". Proposition 1 says that the
graph with flipped pairs is a random dot product graph again, at ``phi(X)`` instead of ``X``.
Corollary 1 describes the effect on the diameter. Proposition 2 says that the diagrams converge in a
bottleneck distance that ignores this effect, and the question is in which one. The text contains no
numbers, so the sizes and shapes are ours.
"""

# %%
# Latent positions, their image, and the error of an embedding up to a rotation.
import time

import matplotlib.pyplot as plt
import numpy as np
from gudhi import AlphaComplex
from scipy.linalg import orthogonal_procrustes
from scipy.spatial.distance import pdist

from sklearn_dptda import bottleneck_distance
from sklearn_dptda.graph import (
    AdjacencySpectralEmbedding,
    EdgeFlip,
    make_latent,
    make_rdpg,
)
from sklearn_dptda.persistence import dilation_dissimilarity, shift_invariant_bottleneck_distance

N, N_BLOCK = 2000, 400
SIZES, N_REPEATS = (200, 500, 1000), 4
# sphinx_gallery_start_ignore
import os

if os.environ.get("SKLEARN_DPTDA_QUICK"):
    N, N_BLOCK, SIZES, N_REPEATS = 150, 50, (50, 100), 1
# sphinx_gallery_end_ignore
EPSILONS = (1.0, 2.0, 4.0)
PLANE_BLOCKS = np.array([[0.9, 0.25], [0.4, 0.85], [0.05, 0.05]])


def embed(noisy, n_components, **options):
    return AdjacencySpectralEmbedding(n_components, normalize=False, **options).fit_transform(noisy)


def error(Z, X):
    """Root mean square distance after the best rotation; missing columns count as zero."""
    width = max(Z.shape[1], X.shape[1])
    Z, X = (np.pad(M, ((0, 0), (0, width - M.shape[1]))) for M in (Z, X))
    rotation, _ = orthogonal_procrustes(Z, X)
    return np.sqrt(((Z @ rotation - X) ** 2).sum(axis=1).mean())


def image(X, p):
    """Positions whose products are ``p + (1 - 2 p) <x, y>``."""
    return np.column_stack([np.sqrt(1 - 2 * p) * X, np.full(len(X), np.sqrt(p))])


# %%
# Proposition 1 states ``d + 1`` coordinates. If the constant vector is a combination of the
# columns of ``X``, because all positions lie in a hyperplane that does not contain the origin, the
# image still has rank ``d``, and the last of the ``d + 1`` coordinates is noise. This holds for
# the first three shapes. A circle in the plane, and three blocks in the plane that are not on a
# line, do need three coordinates. If the third eigenvalue is below the noise, two coordinates are
# still more accurate. After debiasing by the public probability of flips, ``d`` coordinates
# estimate ``X`` itself.
print(f"Proposition 1: error of the embedding, n = {N}")
print(f"{'':14}{'epsilon':>8}{'phi, d':>9}{'phi, d+1':>9}{'X, debiased':>13}{'X, no flips':>13}")
turn = 2 * np.pi * np.random.default_rng(1).uniform(size=N)
SHAPES = {shape: make_latent(N, shape, random_state=1) for shape in ("circle", "sphere")}
SHAPES["figure eight"] = make_latent(N, "figure_eight", random_state=1)
SHAPES["plane circle"] = 0.45 + 0.3 * np.column_stack([np.cos(turn), np.sin(turn)])
SHAPES["plane blocks"] = PLANE_BLOCKS[np.arange(N) % 3]
for shape, X in SHAPES.items():
    A = make_rdpg(X, random_state=1)
    d = X.shape[1]
    clean = error(embed(A, d), X)
    for epsilon in EPSILONS:
        noisy = EdgeFlip(epsilon, random_state=0).fit_transform(A)
        phi = image(X, noisy.flip_probability)
        few, more = (embed(noisy, k, flip_probability=0.0) for k in (d, d + 1))
        values = (error(few, phi), error(more, phi), error(embed(noisy, d), X), clean)
        print(
            f"{shape:14}{epsilon:8g}"
            + "".join(f"{v:{w}.3f}" for v, w in zip(values, (9, 9, 13, 13), strict=True))
        )

# %%
# Corollary 1 (i) and (iii). The diameter of three blocks, which is the largest distance of their
# centres, shrinks by ``sqrt(1 - 2 p)``, and debiasing corrects this. At epsilon = 0, the image is
# one point of length ``sqrt(1 / 2)``: the release is an Erdős-Rényi graph of density one half.
A = make_rdpg(np.repeat(PLANE_BLOCKS, N_BLOCK, axis=0), random_state=0)


def diameter(noisy, n_components, **options):
    centres = embed(noisy, n_components, **options).reshape(3, N_BLOCK, -1).mean(axis=1)
    return pdist(centres).max()


true = pdist(PLANE_BLOCKS).max()
print(f"\nCorollary 1: diameter of three blocks of {N_BLOCK} nodes; true {true:.4f}")
print(f"{'epsilon':>8}{'plain':>9}{'theory':>9}{'debiased':>10}")
for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0):
    noisy = EdgeFlip(epsilon, random_state=0).fit_transform(A)
    plain, debiased = diameter(noisy, 3, flip_probability=0.0), diameter(noisy, 2)
    theory = np.sqrt(1 - 2 * noisy.flip_probability) * true
    print(f"{epsilon:8g}{plain:9.3f}{theory:9.3f}{debiased:10.3f}")
nothing = EdgeFlip(0.0, random_state=0).fit_transform(A)
lengths = np.linalg.norm(embed(nothing, 1, flip_probability=0.0), axis=1)
print(
    f"{0:8g}{diameter(nothing, 1, flip_probability=0.0):9.3f}{0:9.3f}"
    f"   mean length {lengths.mean():.3f}, theory {np.sqrt(0.5):.3f}"
)

# %%
# Proposition 2. The loops of the circle, from the alpha complex of all nodes. We compare the
# diagram of the embedding of the noisy graph with that of the embedding of the true graph. The
# former is approximately a multiple of the latter. The first lines, without flips, compare two
# true graphs with the same positions, and show the effect of sampling alone.


def loops(points):
    tree = AlphaComplex(points=points).create_simplex_tree()
    tree.compute_persistence()
    squares = tree.persistence_intervals_in_dimension(1).reshape(-1, 2)
    return np.sqrt(squares[squares[:, 1] > squares[:, 0]])


def distances(n, epsilon, seed):
    X = make_latent(n, "circle", random_state=seed)
    A = make_rdpg(X, random_state=seed)
    other = make_rdpg(X, random_state=1000 + seed) if np.isinf(epsilon) else A
    noisy = EdgeFlip(epsilon, random_state=seed).fit_transform(other)
    true = loops(embed(A, 3))
    biased = loops(embed(noisy, 3, flip_probability=0.0))
    debiased = loops(embed(noisy, 3))
    tol = 1e-3
    return (
        bottleneck_distance(biased, true),
        shift_invariant_bottleneck_distance(biased, true, tol=tol),
        shift_invariant_bottleneck_distance(biased, true, scale="log", tol=tol),
        dilation_dissimilarity(biased, true, tol=tol),
        bottleneck_distance(debiased, true),
    )


NAMES = ("plain", "shift", "log shift", "dilation", "debiased")
print("\nProposition 2: distance of the loops of the noisy embedding from those of the true one")
print(f"{'epsilon':>8}{'n':>6}" + "".join(f"{name:>11}" for name in NAMES) + f"{'seconds':>9}")
trends = {}
for epsilon in (np.inf, *EPSILONS[::-1]):
    for n in SIZES:
        start = time.perf_counter()
        values = np.mean([distances(n, epsilon, seed) for seed in range(N_REPEATS)], axis=0)
        trends.setdefault(epsilon, []).append(values)
        shown = "".join(f"{value:11.3f}" for value in values)
        print(f"{epsilon:8g}{n:6d}{shown}{time.perf_counter() - start:9.1f}", flush=True)

# %%
# Summary of the numbers: exponents of ``n``, fitted to all sizes.
print("\nexponent of n " + "".join(f"{name:>11}" for name in NAMES))
for epsilon, rows in trends.items():
    slopes = np.polyfit(np.log(SIZES), np.log(rows), 1)[0]
    print(f"{'epsilon ' + format(epsilon, 'g'):14}" + "".join(f"{slope:11.2f}" for slope in slopes))

# %%
figure, axes = plt.subplots(1, len(trends), figsize=(3.2 * len(trends), 3.2), layout="constrained")
for ax, (epsilon, rows) in zip(axes, trends.items(), strict=True):
    for name, values in zip(NAMES, np.transpose(rows), strict=True):
        ax.loglog(SIZES, values, "o-", label=name)
    title = "no flips" if np.isinf(epsilon) else f"epsilon = {epsilon:g}"
    ax.set(xlabel="nodes", title=title)
    ax.set_xticks(SIZES, SIZES)
    ax.minorticks_off()
axes[0].set_ylabel("distance of the loops")
axes[-1].legend(fontsize="small")
plt.show()
