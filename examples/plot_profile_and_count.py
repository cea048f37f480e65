"""
A diagram, a profile or a count?
================================

This example asks three questions about one cloud of points, each at the same epsilon. A
private diagram contains the births and deaths of features. A profile contains only the
persistences of the longest features, with intervals that hold for every data set. A count
contains only the number of features with a long persistence. The less you ask for, the more
accurate the answer.

The points are simulated, so we can show exact numbers beside private ones.
"""

# %%
# The cloud and its filtration
# ----------------------------
import matplotlib.pyplot as plt
import numpy as np

from sklearn_dptda import (
    DTMFiltration,
    PersistenceProfile,
    PrivateBettiNumbers,
    PrivatePersistence,
)
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.model_selection import PrivateMassSearch, release_replicates

N, N_RELEASES = 4000, 200
EPSILONS = [0.1, 0.2, 0.5, 1.0]
# sphinx_gallery_start_ignore
import os

if os.environ.get("SKLEARN_DPTDA_QUICK"):
    N_RELEASES, EPSILONS = 25, [0.1, 0.5]
# sphinx_gallery_end_ignore

X = make_two_circles(N, noise=0.05, random_state=0)
filtrations = DTMFiltration(m=0.2, bounds=(-2.5, 3)).fit_transform([X])

# %%
# One release of each
# -------------------
# All three have an epsilon of 0.5. In practice, you would ask one question, or pay for each
# of them.
EPSILON, THRESHOLD = 0.5, 0.2

diagram = PrivatePersistence(EPSILON, homology_dimensions=1).fit_transform(filtrations)[0]
print("persistences in a private diagram:", np.sort(diagram[:, 1] - diagram[:, 0])[::-1].round(2))

profiler = PersistenceProfile(EPSILON, homology_dimensions=1).fit(filtrations)
profile = profiler.transform(filtrations)
for name, (low, high) in zip(
    profiler.get_feature_names_out(), profiler.confidence_intervals(profile)[0], strict=True
):
    print(f"{name}: between {low:.2f} and {high:.2f}")

counter = PrivateBettiNumbers(EPSILON, THRESHOLD, homology_dimensions=1).fit(filtrations)
counts = counter.transform(filtrations)
print(*counter.statements(counts))

# %%
# Many releases
# -------------
# The points are simulated, so we can look at the distribution of the answers, and count how
# often they are right.


def two_longest(diagram):
    lives = np.sort(np.append(diagram[:, 1] - diagram[:, 0], [0.0, 0.0]))
    return lives[::-1][:2]


exact = PersistenceProfile(np.inf, homology_dimensions=1).fit_transform(filtrations)[0]
errors, right = {}, {}
for epsilon in EPSILONS:
    diagrams = [
        one[0]
        for one in release_replicates(
            PrivatePersistence(epsilon, homology_dimensions=1),
            filtrations,
            N_RELEASES,
            random_state=0,
        )
    ]
    profiles = np.vstack(
        release_replicates(
            PersistenceProfile(epsilon, homology_dimensions=1),
            filtrations,
            N_RELEASES,
            random_state=0,
        )
    )
    betti = np.vstack(
        release_replicates(
            PrivateBettiNumbers(epsilon, THRESHOLD, homology_dimensions=1),
            filtrations,
            N_RELEASES,
            random_state=0,
        )
    )
    read = np.array([two_longest(one) for one in diagrams])
    errors[epsilon] = read - exact, profiles - exact
    counted = (
        np.array([(one[:, 1] - one[:, 0] > THRESHOLD).sum() for one in diagrams]) == 2
    ).mean()
    right[epsilon] = counted, (betti == 2).mean()
    print(
        f"epsilon {epsilon:g}: error of the longest loop {abs(errors[epsilon][0][:, 0]).mean():.3f}"
        f" (diagram), {abs(errors[epsilon][1][:, 0]).mean():.3f} (profile); right counts "
        f"{right[epsilon][0]:.0%} (diagram), {right[epsilon][1]:.0%} (count)"
    )

# %%
# The picture
# -----------
DIAGRAM, PRIVATE = "#d55e00", "#0072b2"
figure, (left, middle, last) = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")

intervals = profiler.confidence_intervals(profile)[0]
for rank, (value, (low, high), truth) in enumerate(
    zip(profile[0], intervals, exact, strict=True), start=1
):
    left.plot([rank, rank], [low, high], color=PRIVATE, lw=6, alpha=0.35, solid_capstyle="butt")
    left.plot(rank, value, "o", color=PRIVATE, ms=9, label="profile" if rank == 1 else None)
    left.plot(rank, truth, "k_", ms=26, mew=2, label="exact" if rank == 1 else None)
lives = two_longest(diagram)
left.plot([1.15, 2.15], lives, "^", color=DIAGRAM, ms=9, label="read off a private diagram")
left.axhline(THRESHOLD, color="#999999", ls=":", lw=1)
left.set(
    xticks=[1, 2],
    xticklabels=["longest loop", "second"],
    xlim=(0.6, 2.5),
    ylim=(0, None),
    ylabel="persistence",
    title=f"one release, ε = {EPSILON:g}: 95 % intervals",
)
left.legend(frameon=False, fontsize=9)

for index, (name, color, marker) in enumerate(
    [("private diagram", DIAGRAM, "^"), ("profile", PRIVATE, "o")]
):
    means = [abs(errors[epsilon][index][:, 0]).mean() for epsilon in EPSILONS]
    middle.loglog(EPSILONS, means, marker=marker, color=color, label=name)
middle.set(xlabel="ε", ylabel="mean absolute error", title="persistence of the longest loop")
middle.set_xticks(EPSILONS, labels=[f"{epsilon:g}" for epsilon in EPSILONS])
middle.minorticks_off()
middle.legend(frameon=False)

for index, (name, color, marker) in enumerate(
    [("private diagram", DIAGRAM, "^"), ("PrivateBettiNumbers", PRIVATE, "o")]
):
    shares = [right[epsilon][index] for epsilon in EPSILONS]
    last.semilogx(EPSILONS, shares, marker=marker, color=color, label=name)
last.set(xlabel="ε", ylabel="share of releases", ylim=(0, 1.05), title="two loops are counted")
last.set_xticks(EPSILONS, labels=[f"{epsilon:g}" for epsilon in EPSILONS])
last.minorticks_off()
last.legend(frameon=False)
for ax in figure.axes:
    ax.spines[["top", "right"]].set_visible(False)

# %%
# Which mass?
# -----------
# You can also choose the mass of the filtration from the private points, at a low cost: here
# a fifth of epsilon. The losses of the choice and of the profile add up.
search = PrivateMassSearch(DTMFiltration(bounds=(-2.5, 3)), epsilon=0.1).fit([X])
after = PersistenceProfile(0.4, homology_dimensions=1)
chosen = after.fit_transform(search.filtration_.fit_transform([X]))
print(f"m = {search.m_:g}, profile {chosen[0].round(2)}, ± {after.half_widths_[0]:.2f}")
print(search.privacy_guarantee_ + after.privacy_guarantee_)
plt.show()
