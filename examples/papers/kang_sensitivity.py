"""
Distance-to-measure diagrams: why they can be released
======================================================

After T. Kang, S. Kim, J. Sohn, J. Awan, "Differentially private topological data analysis": what
one point does to a persistence diagram. The Čech complex of a circle
loses half of its loop to one point in the middle, however many points there are. The diagram of
the L1 distance-to-measure moves by at most ``diam / (m n)``.

For the Čech complex the paper proves it of components (Theorem 5); the loop is an example of ours.
The bound of the L1 distance-to-measure is its Theorem 8. Both are measured here, each at a
neighbour made to hurt.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from gudhi import AlphaComplex

from sklearn_dptda import CubicalPersistence, DTMFiltration, bottleneck_distance
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.filtration import dtm_worst_case

MASS, LOW, HIGH = 0.05, -1.0, 1.0
SIZES = [250, 500, 1000, 2000, 4000, 8000]


def cech_loops(points):
    """Loops of the Čech filtration: the alpha complex has the same diagram."""
    tree = AlphaComplex(points=points).create_simplex_tree()
    tree.compute_persistence()
    return np.sqrt(tree.persistence_intervals_in_dimension(1))


def measure_loops(clouds):
    """Loops of the L1 distance-to-measure on a grid of a public box."""
    dtm = DTMFiltration(MASS, bounds=(LOW, HIGH), resolution=41, max_distance=np.inf)
    return CubicalPersistence(1).fit_transform(dtm.fit_transform(clouds)), dtm


# %%
# One point of a circle of radius 0.7 moves to its centre
# -------------------------------------------------------
# The diameter of the box is public. In the authors' published code the bound for this circle is
# ``4 / (m n)``.
rows = []
for n in SIZES:
    first = make_two_circles(n, radii=[0.7], centers=[[0.0, 0.0]], random_state=0)
    second = first.copy()
    second[0] = 0.0
    cech = bottleneck_distance(cech_loops(first), cech_loops(second))
    (a, b), dtm = measure_loops([first, second])
    rows.append((cech, bottleneck_distance(a, b), dtm.fit_transform([first])[0].sensitivity))

print("     n    Čech    L1-DTM   bound here   4 / (m n)")
for n, (cech, moved, bound) in zip(SIZES, rows, strict=True):
    print(f"{n:6d}  {cech:.4f}   {moved:.5f}      {bound:.5f}     {4 / (MASS * n):.5f}")
cech, moved, bound = np.transpose(rows)
slopes = [np.polyfit(np.log(SIZES), np.log(y), 1)[0] for y in (cech, moved, bound)]
print(f"exponents of n: Čech {slopes[0]:.2f} (paper: 0), L1-DTM {slopes[1]:.2f} (paper: -1)")

# %%
# The bound is attained
# ---------------------
# Of all neighbours, those that move a point across the whole box do the most: here the oldest
# component is born later by the full ``diam / k``, where ``k`` is ``m n`` rounded up.
first, second = dtm_worst_case(0.1, 100, [0.0, 0.0], [1.0, 1.0])
dtm = DTMFiltration(0.1, bounds=(0, 1), resolution=21, max_distance=np.inf)
filtrations = dtm.fit_transform([first, second])
a, b = CubicalPersistence(0).fit_transform(filtrations)
attained = bottleneck_distance(a, b)
print(f"worst case: moved by {attained:.4f} of {filtrations[0].sensitivity:.4f}")

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.loglog(SIZES, cech, "o-", label="Čech, a point moved to the centre")
ax.loglog(SIZES, moved, "s--", label="L1-DTM, the same point")
ax.loglog(SIZES, bound, "k:", label="L1-DTM, no two neighbours differ by more")
ax.set(xlabel="n", ylabel="bottleneck distance of the loops", title="What one point does")
ax.set_xticks(SIZES, SIZES)
ax.minorticks_off()
ax.legend()
plt.show()
