"""
Saddles of a mixture, and how quadratic strings find them
=========================================================

After J. Byun, Y. Choi, J. Lee, "Improving the utility of differentially private clustering
through dynamical processing", Figures 1 to 3. The paper does not give the densities of its
pictures, so we use our own. Heights are f = -log p of a mixture of normal distributions.
"""

# %%
# Figure 1: critical points by index
# ----------------------------------
# Three hills around a dip. Each pair of hills has a saddle of index one between them (crosses), and
# the dip has index two (triangle). Two of the saddles join components of sublevel sets. At the
# third and highest saddle, all hills are joined already. It is therefore not a transition point,
# although its two descents end at different hills. Algorithm 3 keeps it, but single linkage never
# uses it.
import itertools

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import root
from scipy.special import logsumexp, softmax

from sklearn_dptda.plotting import DendrogramDisplay
from sklearn_dptda.published import published_linkage

WEIGHTS = np.array([0.3, 0.4, 0.3])
MEANS = np.array([[-0.6, -0.4], [0.7, -0.3], [0.0, 0.7]])
COVARIANCES = np.array([[[0.1, 0.02], [0.02, 0.06]], [[0.08, 0.0], [0.0, 0.1]], 0.08 * np.eye(2)])


def parts(points):
    """Log joint densities, and pulls to the centres, for each point and component."""
    away = points[:, None] - MEANS
    precisions = np.linalg.inv(COVARIANCES)
    pulls = np.einsum("kij,nkj->nki", precisions, away)
    logs = np.log(WEIGHTS / (2 * np.pi) / np.sqrt(np.linalg.det(COVARIANCES)))
    return logs - 0.5 * np.einsum("nki,nki->nk", away, pulls), pulls, precisions


def height(points):
    return -logsumexp(parts(points)[0], axis=1)


def slope_and_curvature(point):
    joint, pulls, precisions = parts(point[None])
    shares = softmax(joint[0])
    slope = shares @ pulls[0]
    squares = np.einsum("k,ki,kj->ij", shares, pulls[0], pulls[0])
    return slope, np.tensordot(shares, precisions, 1) - squares + np.outer(slope, slope)


def critical_points(reach):
    """Critical points that root finding reaches from a lattice of starts, and their indices."""
    lattice = np.linspace(-reach, reach, 25)
    found = []
    for start in itertools.product(lattice, lattice):
        end = root(lambda x: slope_and_curvature(x)[0], start, tol=1e-12)
        if end.success and np.abs(end.x).max() < reach and np.abs(end.fun).max() < 1e-9:
            found.append(end.x.round(7))
    points = np.unique(found, axis=0)
    values = (np.linalg.eigvalsh(slope_and_curvature(x)[1]) for x in points)
    return points, np.array([(value < 0).sum() for value in values])


axis = np.linspace(-1.4, 1.4, 121)
nodes = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
heights = height(nodes.reshape(-1, 2)).reshape(nodes.shape[:2])
points, index = critical_points(1.2)
print("critical points of index 0, 1, 2:", np.bincount(index))

figure = plt.figure(figsize=(10, 4.5), layout="constrained")
surface = figure.add_subplot(1, 2, 1, projection="3d")
surface.plot_surface(*np.moveaxis(nodes, -1, 0), np.minimum(heights, 5), cmap="viridis")
surface.set(title="f, cut off at 5", xlabel="x", ylabel="y")
ax = figure.add_subplot(1, 2, 2)
ax.contour(axis, axis, heights.T, levels=np.linspace(heights.min(), 3.5, 25), linewidths=0.6)
for kind, marker in enumerate("ox^"):
    chosen = points[index == kind]
    ax.plot(*chosen.T, marker, color="black", label=f"index {kind}")
saddles = points[index == 1][np.argsort(height(points[index == 1]))]
for number, place in enumerate(saddles, start=1):
    note = "" if number < 3 else ", no transition"
    ax.annotate(f"{number}: f = {height(place[None])[0]:.2f}{note}", place + 0.05)
ax.set(aspect="equal", title="level curves")
ax.legend(loc="lower right")

# %%
# Figure 2: saddles between centres, and the tree
# -----------------------------------------------
# The saddles follow from Algorithms 3 and 4. Heights in the tree are measured from the densest
# centre.
tree = published_linkage(WEIGHTS, MEANS, COVARIANCES)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
left.contour(axis, axis, heights.T, levels=np.linspace(heights.min(), 3.5, 25), linewidths=0.6)
left.plot(*tree.modes.T, "o", color="black")
for number, centre in enumerate(tree.modes):
    left.annotate(str(number), centre + 0.05)
for (i, j), place, joined in zip(tree.edges, tree.saddles, tree.linkage, strict=True):
    left.plot(*place, "x", color="#e0703a", ms=9, mew=2)
    left.annotate(f"({i}, {j})", np.add(place, 0.05))
    left.annotate(f"{joined[2] + tree.mode_heights.min():.2f}", place - [0.3, 0.12])
left.set(aspect="equal", title="centres, and saddles with their f")
DendrogramDisplay(tree.linkage, mode_heights=tree.mode_heights).plot(right)
right.set(xlabel="centre", title="merge tree")

# %%
# Figure 3: one pair of centres
# -----------------------------
# The points of least density on each string (red), and the points to which the flow leads from
# there (numbers). Each string is the parabola through both centres whose vertex is the last
# number. The flow is longer here than in the library, so that you can distinguish the points.
# Newton steps from the last point end at the saddle.
WEIGHTS, MEANS = np.array([0.5, 0.5]), np.array([[-0.6, -0.2], [0.6, -0.1]])
COVARIANCES = np.array([[[0.09, 0.06], [0.06, 0.07]], [[0.08, -0.06], [-0.06, 0.09]]])
N_POINTS, N_STRINGS, FLOW = 20, 5, 0.2


def flowed(point):
    """One step of the flow (7), in the metric of mean shift."""
    joint, _, precisions = parts(point[None])
    shares = softmax(joint[0])
    return point - FLOW * np.linalg.solve(
        np.tensordot(shares, precisions, 1), slope_and_curvature(point)[0]
    )


s = (np.arange(1, N_POINTS + 1) / (N_POINTS + 1))[:, None]
across, vertex = MEANS[1] - MEANS[0], (MEANS[1] - MEANS[0]) / 2
strings, least, ends = [], [], []
for _ in range(1 + N_STRINGS):
    string = MEANS[0] + s * across + (s - s**2) * (4 * vertex - 2 * across)
    strings.append(string)
    least.append(string[height(string).argmax()])
    ends.append(flowed(least[-1]))
    vertex = ends[-1] - MEANS[0]
found = root(lambda x: slope_and_curvature(x)[0], ends[-1], tol=1e-12).x
values = np.linalg.eigvalsh(slope_and_curvature(found)[1])
print("Newton from the last point:", found.round(3), "negative eigenvalues:", (values < 0).sum())

figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
heights = height(nodes.reshape(-1, 2)).reshape(nodes.shape[:2])
ax.contour(axis, axis, heights.T, levels=np.linspace(heights.min(), 4, 25), linewidths=0.5)
for string in strings:
    ax.plot(*np.vstack([MEANS[0], string, MEANS[1]]).T, color="#999999", lw=0.8)
ax.plot(*MEANS.T, "o", color="black", ms=9)
ax.plot(*np.transpose(least), ".", color="#c0203a")
ax.plot(*np.transpose(ends), ".", color="black")
for number, end in enumerate(ends):
    ax.annotate(str(number), np.add(end, 0.015), fontsize="small")
ax.plot(*found, "o", color="#e0703a", ms=9)
ax.set(aspect="equal", xlim=(-0.9, 0.9), ylim=(-0.6, 0.8), title="six strings of one pair")
plt.show()
