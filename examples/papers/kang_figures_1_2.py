"""
Figures 1 and 2: balls around points, and a function's sublevel sets
====================================================================

After T. Kang, S. Kim, J. Sohn, J. Awan, "Differentially private topological data analysis",
Section 2. Two illustrations show how a diagram is computed. Figure 1 has nine points on a circle
and the Čech complex at 0.4, 0.8 and 1.2. Figure 2 has the L2 distance-to-measure of points on a
circle: three components are born at 0.308, 0.367 and 0.397, and two of them die at 0.613 and
0.636.

The text does not state the points or, for Figure 2, their number and the mass. We chose points with
the same births and deaths. Nothing here is private.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from gudhi import AlphaComplex
from matplotlib.collections import PatchCollection

from sklearn_dptda import CubicalPersistence, DTMFiltration
from sklearn_dptda.datasets import make_two_circles

COLORS, MARKERS, NAMES = ("#D55E00", "#009E73"), "o^", ("components (H0)", "loops (H1)")


def draw_diagram(ax, diagrams, end):
    """Draw components and loops; essential classes end at the upper edge."""
    ax.plot([0, end], [0, end], color="0.6", lw=0.8)
    for points, color, marker, name in zip(diagrams, COLORS, MARKERS, NAMES, strict=True):
        ax.scatter(
            *np.minimum(points, end).T, s=30, color=color, marker=marker, label=name, clip_on=False
        )
    ax.set(xlim=(0, end), ylim=(0, end), xlabel="birth", ylabel="death", aspect="equal")
    ax.legend(loc="lower right", frameon=False, fontsize="small")


def alive(diagrams, level):
    """Return a text with the numbers of components and loops that exist at a level."""
    n, loops = (int(((d[:, 0] <= level) & (level < d[:, 1])).sum()) for d in diagrams)
    return f"{n} component{'s' * (n != 1)}, {loops} loop{'s' * (loops != 1)}"


# %%
# Figure 1: the Čech complex of nine points
# -----------------------------------------
# The union of balls has the same homology as the Čech complex. So does the alpha complex of GUDHI,
# whose values are squared radii.
RADII = (0.4, 0.8, 1.2)
angle = np.radians([0, 20, 45, 100, 130, 165, 220, 280, 310])
points = np.column_stack([np.cos(angle), np.sin(angle)])
tree = AlphaComplex(points=points).create_simplex_tree()
# All points lie on one circle, where rounding creates loops of zero persistence.
tree.compute_persistence(min_persistence=1e-9)
cech = [np.sqrt(tree.persistence_intervals_in_dimension(q)) for q in (0, 1)]

figure, axes = plt.subplots(1, 4, figsize=(13, 3.7), layout="constrained")
for ax, radius in zip(axes, RADII, strict=False):
    balls = PatchCollection([plt.Circle(point, radius) for point in points])
    balls.set(facecolor="#56B4E9", edgecolor="none")
    ax.add_collection(balls)
    ax.plot(*points.T, "o", color="black", ms=4)
    ax.set(xlim=(-2.3, 2.3), ylim=(-2.3, 2.3), aspect="equal")
    ax.set_title(f"r = {radius:g}: {alive(cech, radius)}")
    print(f"Čech, r = {radius:g}: {alive(cech, radius)}")
draw_diagram(axes[3], cech, 1.3)
axes[3].set_title("Čech diagram")

# %%
# Figure 2: sublevel sets of the L2 distance-to-measure
# -----------------------------------------------------
# This is one of the few data sets, among those that we tried, with three components of long
# persistence. (Two more have a persistence of at most 0.002.) The left panel shows the function
# times -1, as in the paper.
LEVELS = (0.3, 0.4, 0.5, 0.62, 0.7, 1.0)
X = make_two_circles(60, radii=[1.4], centers=[[0.0, 0.0]], random_state=81)
dtm = DTMFiltration(0.2, p=2, bounds=(-2.1, 2.1), resolution=101, max_distance=np.inf)
(filtration,) = dtm.fit_transform([X])
(exact,) = CubicalPersistence().fit_transform([filtration])
births, deaths = exact[0][exact[0][:, 1] - exact[0][:, 0] > 0.01].T
print("components are born at", np.sort(births).round(3), "(paper .308, .367, .397)")
print("and die at", np.sort(deaths)[:-1].round(3), "(paper .613, .636)")
print("the loop lives from", *(f"{low:.3f} to {high:.3f}" for low, high in exact[1]))

figure, axes = plt.subplot_mosaic(
    "F012D\nF345D",
    figsize=(15, 5),
    width_ratios=[2, 1, 1, 1, 2],
    layout="constrained",
)
where = {"extent": (-2.1, 2.1, -2.1, 2.1), "origin": "lower"}
image = axes["F"].imshow(-filtration.values.T, cmap="viridis", **where)
axes["F"].plot(*X.T, "o", color="black", ms=2)
axes["F"].set_title("minus the L2 distance-to-measure")
figure.colorbar(image, ax=axes["F"], orientation="horizontal", shrink=0.8)
for i, level in enumerate(LEVELS):
    ax = axes[str(i)]
    ax.imshow(level >= filtration.values.T, cmap="Blues", vmax=1.6, **where)
    ax.plot(*X.T, "o", color="black", ms=1)
    ax.set(xticks=[], yticks=[])
    ax.set_title(f"up to {level:g}\n{alive(exact, level)}", fontsize="medium")
    print(f"L2-DTM, up to {level:g}: {alive(exact, level)}")
draw_diagram(axes["D"], exact, 1.6)
axes["D"].set_title("diagram")
plt.show()
