"""
Synthetic points or a private diagram?
======================================

This example compares two methods of private topology at the same epsilon. The first method releases
a private *measure*, draws synthetic points from it, and computes any number of results from these
points, all for one payment. The second method releases only the *diagram*: ``PrivatePersistence``
spends the whole budget on this result. Which one is more accurate?
"""

# %%
# The data are two circles. The error of each method is the bottleneck distance from the exact
# diagrams, for the main loops of the distance-to-measure. Both methods use replace-one
# neighbours, and the number of points is public.
import matplotlib.pyplot as plt
import numpy as np
from joblib import Parallel, delayed

from sklearn_dptda import (
    CubicalPersistence,
    DTMFiltration,
    PrivatePersistence,
    bottleneck_distance,
)
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.plotting import PersistenceDiagramDisplay
from sklearn_dptda.synthetic import PrivateMeasure

BOUNDS = (-3.0, 3.5)
EPSILONS = (0.5, 2.0, 8.0)
SIZES, RESOLUTION, N_REPEATS = (1000, 10_000, 100_000), 65, 12
# sphinx_gallery_start_ignore
import os

if os.environ.get("SKLEARN_DPTDA_QUICK"):
    SIZES, RESOLUTION, N_REPEATS = (1000, 10_000), 25, 1
# sphinx_gallery_end_ignore
dtm = DTMFiltration(m=0.05, bounds=BOUNDS, resolution=RESOLUTION)


def synthetic_road(X, epsilon, seed):
    private = PrivateMeasure(epsilon, BOUNDS, adjacency="replace-one", random_state=seed).fit(X)
    cloud = private.sample(min(len(X), 20_000), random_state=seed)
    return CubicalPersistence().fit_transform(dtm.fit_transform([cloud]))[0]


def diagram_road(X, epsilon, seed):
    filtration = dtm.fit_transform([X])
    return PrivatePersistence(epsilon, max_points=5, random_state=seed).fit_transform(filtration)[0]


def nothing(X, epsilon, seed):
    """No release at all: the error of an answer that does not use the data."""
    return [np.array([[0.0, np.inf]]), np.empty((0, 2))]


ROADS = {"synthetic points": synthetic_road, "private diagram": diagram_road, "empty": nothing}


def loops_error(X, exact, road, epsilon, seed):
    return bottleneck_distance(ROADS[road](X, epsilon, seed)[1], exact[1])


# %%
# The error of a diagram is proportional to its sensitivity over epsilon, about
# ``1 / (epsilon n)``. The error of synthetic points is about ``1 / sqrt(epsilon n)`` in the plane,
# and the error of the distance-to-measure follows it. Synthetic points are therefore better with
# few points, and the diagram is better with many. Synthetic points also allow you to analyse the
# data in more than one way without a further payment.
exact, errors = {}, {}
print(f"{'n':>8}{'epsilon':>9}" + "".join(f"{road:>18}" for road in ROADS))
for n in SIZES:
    X = make_two_circles(n, random_state=0)
    exact[n] = CubicalPersistence().fit_transform(dtm.fit_transform([X]))[0]
    for epsilon in EPSILONS:
        for road in ROADS:
            errors[n, epsilon, road] = Parallel(n_jobs=-1)(
                delayed(loops_error)(X, exact[n], road, epsilon, seed) for seed in range(N_REPEATS)
            )
        shown = "".join(f"{np.mean(errors[n, epsilon, road]):18.3f}" for road in ROADS)
        print(f"{n:8d}{epsilon:9g}{shown}", flush=True)

# %%
# Both methods in one picture.
figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
for road, marker, color in zip(list(ROADS)[:2], "o^", ("#0072B2", "#D55E00"), strict=True):
    for epsilon, style in zip(EPSILONS, ((0, (1, 1)), "--", "-"), strict=True):
        values = np.array([errors[n, epsilon, road] for n in SIZES])
        axes[0].plot(
            SIZES,
            values.mean(axis=1),
            marker=marker,
            color=color,
            linestyle=style,
            label=f"{road}, epsilon = {epsilon:g}",
        )
half = [np.mean(errors[n, EPSILONS[0], "empty"]) for n in SIZES]
axes[0].plot(SIZES, half, color="0.6", label="an empty diagram")
axes[0].set(xscale="log", yscale="log", ylim=(8e-4, 2), ylabel="error of the loops")
axes[0].set_xlabel("number of points")
axes[0].legend(frameon=False, fontsize=7)
n, epsilon = SIZES[1], EPSILONS[1]
X = make_two_circles(n, random_state=0)
for ax, road in zip(axes[1:], list(ROADS)[:2], strict=True):
    diagrams = ROADS[road](X, epsilon, 0)
    PersistenceDiagramDisplay(diagrams, reference=exact[n], upper=3.0).plot(ax)
    ax.set_title(f"{road}, n = {n:,}, epsilon = {epsilon:g}")
plt.show()
