"""
Metric privacy: four worked examples, in numbers
================================================

M. Boedihardjo, T. Strohmer, R. Vershynin, "Metric geometry of the privacy-utility tradeoff",
Section 6: points of a normed space, probability measures, Lipschitz functions and words. Scales of
spaces in closed form beside those of finite parts of them, and what mechanisms attain.
"""

# %%
import time
from itertools import product

import numpy as np

from sklearn_dptda.metric_privacy import (
    KNormMechanism,
    PrivateMeasure,
    accuracy_bounds,
    baire_scale,
    entropic_scale,
    lipschitz_scale,
    measure_scale,
    normed_scale,
)

N_GRID, N_POINTS, N_SEEDS = 2001, 600, 40
# sphinx_gallery_start_ignore
import os

if os.environ.get("SKLEARN_DPTDA_QUICK"):
    N_GRID, N_POINTS, N_SEEDS = 501, 200, 5
# sphinx_gallery_end_ignore


def maximum_distances(X):
    return np.abs(X[:, None] - X).max(axis=2)


# %%
# **Example 1: normed spaces.** The entropic scale of ``R^d`` with the maximum norm is
# ``2 log(2) d / alpha``, and that of the interval [0, 1] the smaller of ``2 log(2) / alpha``
# and one.
line = np.linspace(0, 1, N_GRID)[:, None]
print("Example 1: interval; entropic scale in closed form and of a grid")
print(f"{'alpha':>8}{'closed form':>13}{f'grid of {N_GRID}':>14}")
for alpha in (2.0, 4.0, 16.0):
    closed = normed_scale(1, alpha=alpha, diameter=1.0)
    exact = entropic_scale(maximum_distances(line), alpha=alpha)
    print(f"{alpha:8g}{float(closed):13.4f}{float(exact):14.4f}")

print("\nsquare: proved bounds, those of random points, and noise of the K-norm mechanism")
print(f"{'alpha':>8}{'bounds of [0,1]^2':>22}{'random points':>22}{'mean':>10} / d / alpha")
X = np.random.default_rng(0).random((N_POINTS, 2))
for alpha in (8.0, 32.0, 128.0):
    bounds = normed_scale(2, alpha=alpha, diameter=1.0)
    certified = entropic_scale(maximum_distances(X), alpha=alpha)
    noise = KNormMechanism(alpha, "linf", random_state=0).fit_transform(np.zeros((4000, 2)))
    mean = np.abs(noise).max(axis=1).mean()
    print(f"{alpha:8g}{bounds!s:>22}{certified!s:>22}{mean:10.4f} / {2 / alpha:.4f}")

# %%
# **Example 2: probability measures.** Under the Wasserstein distance the best accuracy is of the
# order ``alpha^(-1/(d+1))``. The mechanism attains it; constants of the closed bounds are generous.


def distance_to_uniform(private):
    """Wasserstein distance from uniform points on a line, by distribution functions."""
    grid = np.linspace(0, 1, 2001)
    F = np.array([private.weights_[private.support_[:, 0] <= x].sum() for x in grid])
    return np.abs(F - grid).mean()


print("\nExample 2: measures on [0, 1]; distance of the release from uniform points")
print(f"{'alpha':>8}{'scale between':>20}{'attained':>10}{'sqrt(2 / alpha)':>17}")
uniform = np.linspace(0, 1, 4001)[:, None]
attained = []
for alpha in (8.0, 50.0, 200.0, 800.0, 5000.0):
    errors = [
        distance_to_uniform(
            PrivateMeasure(bounds=(0, 1), method="metric", alpha=alpha, random_state=seed).fit(
                uniform
            )
        )
        for seed in range(N_SEEDS)
    ]
    attained.append((alpha, np.mean(errors)))
    scale = measure_scale(1, alpha=alpha)
    print(f"{alpha:8g}{scale!s:>20}{np.mean(errors):10.4f}{np.sqrt(2 / alpha):17.4f}")
slope = np.polyfit(*np.log(np.array(attained)).T, 1)[0]
print(f"exponent of alpha: {slope:.2f}; theory -1/2")

# %%
# **Example 3: Lipschitz functions.** The same order, by bumps and by values on a grid.
print("\nExample 3: 1-Lipschitz functions on [0, 1]^d; entropic scale between")
print(f"{'alpha':>8}" + "".join(f"{f'd = {d}':>22}" for d in (1, 2, 3)))
for alpha in (1e2, 1e4, 1e6):
    print(f"{alpha:8g}" + "".join(f"{lipschitz_scale(d, alpha=alpha)!s:>22}" for d in (1, 2, 3)))

# %%
# **Example 4: words.** The distance of two words falls with their common prefix: an ultrametric,
# on which scales are known exactly, formula (6.4), and mechanisms need no factor of two.
print("\nExample 4: words of four letters 0 and 1, distance 2^-k at the first different place k")
names = {"formula (6.4)": 15, "exact": 8, "best (LP)": 11, "ultrametric": 13, "weighted": 10}
names["guaranteed"] = 12
print(f"{'alpha':>8}" + "".join(f"{name:>{width}}" for name, width in names.items()))
f = 2.0 ** -np.arange(1, 5)
words = np.array(list(product((0, 1), repeat=4)))
differ = words[:, None] != words
D = np.r_[f, 0.0][np.where(differ.any(axis=2), differ.argmax(axis=2), 4)]
for alpha in (1.0, 4.0, 16.0):
    bounds = accuracy_bounds(D, alpha=alpha)
    values = (bounds.optimum, *bounds.attained.values())
    print(
        f"{alpha:8g}{float(baire_scale(f, f, alpha=alpha)):15.4f}"
        f"{float(entropic_scale(D, alpha=alpha)):8.4f}"
        + "".join(f"{v:{w}.4f}" for v, w in zip(values, (11, 13, 10, 12), strict=True))
    )

# %%
# **How far from the best mechanism?** In one table, for the interval of 21 points.
start = time.perf_counter()
print()
interval = maximum_distances(np.linspace(0, 1, 21)[:, None])
for alpha in (1.0, 4.0, 16.0):
    print(accuracy_bounds(interval, alpha=alpha))
print(f"in {time.perf_counter() - start:.1f} s")
