"""
How much data do I need?
========================

The number of records and epsilon, mainly through their product, determine what a release
can show. This page computes the table of the user guide: the smallest epsilon at which each
question has an answer, for five sizes of data.

The first row is computed from public numbers and holds for all data. Plans simulate the next
two. The other rows show the smallest epsilon of a list at which four of five seeded fits succeed.
"""

# %%
# Shapes, from plans
# ------------------
# The shape is a loop of radius 1, with a spread of 0.1, in a box of side 3. ``plan_release``
# names the smallest epsilon at which 38 of 40 simulated diagrams show the loop with a stated
# probability of at least 95 %. In the rows "by a bound", it is flagged by the error bound, which
# holds for every diagram with two long features. For a count, we solve the bound on wrong answers
# for epsilon. Let ``P`` be the persistence that remains after the errors of sampling and of the
# grid, and ``D`` the sensitivity. With a threshold at half of ``P``, a count is wrong with a
# probability of at most :math:`\tfrac12 e^{-\varepsilon P / 4D}`.
import math

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score

from sklearn_dptda import PrivateBettiNumbers, PrivatePersistence
from sklearn_dptda.cluster import DPLloyd, DPMoGMorse, DPToMATo
from sklearn_dptda.model_selection import plan_release
from sklearn_dptda.published import detection_limit
from sklearn_dptda.synthetic import PrivateMeasure

SIZES, N_SEEDS, N_CLOUDS = (300, 1000, 3000, 10_000, 100_000), 5, 200
BOX, WRONG = (-1.5, 1.5), 0.05
LAKE = {"loop_radius": 1.0, "spread": 0.1}
LOOPS = PrivatePersistence(homology_dimensions=1)
# sphinx_gallery_start_ignore
import os

if os.environ.get("SKLEARN_DPTDA_QUICK"):
    SIZES, N_SEEDS, N_CLOUDS = (1000, 10_000), 1, 5
    # These are the choices of nearly all plans, and the search for them takes most of the time.
    LAKE |= {"m": 0.3, "max_distance": 1.0}
# sphinx_gallery_end_ignore


def count_plan(n):
    """Plan of the function, and the epsilon of a count that separates one loop from none."""
    plan = plan_release(n, BOX, **LAKE, private=LOOPS)
    return plan, 4 * plan.sensitivity / plan.visible_persistence * math.log(0.5 / WRONG)


def epsilon_of_count(n):
    return count_plan(n)[1]


def epsilon_of_diagram(n, private, claim):
    return plan_release(n, BOX, **LAKE, private=private, claim=claim).epsilon


# %%
# Does the count hold? Simulated points around the loop, and in a crowd without a loop.
def around(n, rng):
    angle, radius = rng.uniform(0, 2 * np.pi, n), rng.normal(1, LAKE["spread"], n)
    return np.c_[radius * np.cos(angle), radius * np.sin(angle)]


def crowd(n, rng):
    return rng.normal(0, 0.5, (n, 2))


plan, epsilon = count_plan(300)
dtm = plan.make_pipeline()[0]
half = plan.visible_persistence / 2
count = PrivateBettiNumbers(epsilon, half, homology_dimensions=1, max_count=1, random_state=0)
rng = np.random.default_rng(0)
for make, truth in ((around, 1), (crowd, 0)):
    counts = count.fit_transform(dtm.fit_transform([make(300, rng) for _ in range(N_CLOUDS)]))
    print(
        f"{make.__name__}, 300 points, epsilon {epsilon:.2g}: right {np.mean(counts == truth):.3f}"
    )

# %%
# Clusters and synthetic rows, by simulation
# ------------------------------------------
# The scores are computed on new rows. A measure is accurate enough if its own error bound is
# below a tenth of the width of the box.
EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)


def moons(n, seed):
    return make_moons(n, noise=0.07, random_state=seed)


def blobs(n, seed):
    centers = [[-3, -2], [-2, 3], [3, 1]]
    return make_blobs(n, centers=centers, cluster_std=0.7, random_state=seed)


def agrees(make, private, n, seed):
    fresh, truth = make(2000, 10_000 + seed)
    private.fit(make(n, seed)[0])
    return adjusted_rand_score(truth, private.predict(fresh)) > 0.9


def k_means(n, epsilon, seed):
    return agrees(blobs, DPLloyd(3, epsilon, bounds=(-6, 6), random_state=seed), n, seed)


def mixture(n, epsilon, seed):
    private = DPMoGMorse(2, 8, epsilon, bounds=([-1.5, -1], [2.5, 1.5]), random_state=seed)
    return agrees(moons, private, n, seed)


def peaks(n, epsilon, seed):
    private = DPToMATo(None, epsilon, bounds=([-1.5, -1], [2.5, 1.5]), random_state=seed)
    return agrees(moons, private, n, seed)


def measure(n, epsilon, seed):
    private = PrivateMeasure(epsilon, ([-1.5, -1], [2.5, 1.5]), random_state=seed)
    return private.fit(moons(n, seed)[0]).error_bound() < 0.1


def least_epsilon(comes_out, n):
    """The first epsilon of the list at which at least four of five fits succeed."""
    for epsilon in EPSILONS:
        if sum(comes_out(n, epsilon, seed) for seed in range(N_SEEDS)) >= 0.8 * N_SEEDS:
            return epsilon
    return np.inf


# %%
# Groups of a network
# -------------------
# The group contains a quarter of the nodes. They link among themselves more often, by 0.2,
# in a graph in which one in ten links exists. ``detection_limit`` is an estimate for a group
# that is not known in advance.


def epsilon_of_group(n):
    """The epsilon from which on the group is detected at every larger epsilon."""
    least = np.inf
    for epsilon in np.geomspace(20, 0.05, 200):
        if detection_limit(n, n // 4, epsilon, density=0.1).spectral > 0.2:
            break
        least = epsilon
    return least


# %%
# The table
# ---------
# If more than epsilon 20 is needed, there are too few records. The smallest tested value is 0.05.
QUESTIONS = {
    "is there a loop? (count)": epsilon_of_count,
    "loops: a diagram": lambda n: epsilon_of_diagram(n, LOOPS, "probable"),
    "components and loops: a diagram": lambda n: epsilon_of_diagram(n, None, "probable"),
    "loops, by a bound": lambda n: epsilon_of_diagram(n, LOOPS, "bound"),
    "components and loops, by a bound": lambda n: epsilon_of_diagram(n, None, "bound"),
    "three round groups (DPLloyd)": lambda n: least_epsilon(k_means, n),
    "two moons (DPMoGMorse)": lambda n: least_epsilon(mixture, n),
    "two moons, uncounted (DPToMATo)": lambda n: least_epsilon(peaks, n),
    "synthetic rows within 0.1 (PrivateMeasure)": lambda n: least_epsilon(measure, n),
    "a group of nodes (EdgeFlip)": epsilon_of_group,
}
# sphinx_gallery_start_ignore
if os.environ.get("SKLEARN_DPTDA_QUICK"):
    QUESTIONS = {key: solve for key, solve in QUESTIONS.items() if "a diagram" not in key}
# sphinx_gallery_end_ignore
needed = {}
print(f"{'least epsilon for':44s}" + "".join(f"{n:>10,d}" for n in SIZES))
for question, solve in QUESTIONS.items():
    values = np.array([solve(n) for n in SIZES])
    needed[question] = np.where(values > 20, np.nan, values)
    cells = ("-" if np.isnan(value) else f"{value:.2g}" for value in needed[question])
    print(f"{question:44s}" + "".join(f"{cell:>10}" for cell in cells))

# %%
# The lines decrease like ``1 / n``: twice the records need half the epsilon. The exception is
# the network, whose pairs are flipped separately: it gains with the root of the number of nodes.
figure, ax = plt.subplots(figsize=(8, 4.4), layout="constrained")
colors = ["#0072B2", "#56B4E9", "#000000", "#E69F00", "#D55E00", "#CC79A7", "#009E73", "#777777"]
drawn = [question for question in needed if "bound" not in question]
for question, color, marker in zip(drawn, colors, "os^Dv<Px", strict=False):
    ax.loglog(SIZES, needed[question], marker=marker, color=color, label=question)
ax.axhspan(0.1, 2, color="#009E73", alpha=0.08, lw=0)
ax.text(SIZES[0], 0.11, "customary promises", fontsize=8, color="#333333")
ax.set(xlabel="records (nodes of the network)", ylabel="least epsilon")
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize=8)
plt.show()
