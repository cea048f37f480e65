"""
Two circles under differential privacy
======================================

This example compares private persistence diagrams with exact ones, on 4,000 points
on two circles, which have two components and two loops. It also shows how the error
depends on epsilon and on the number of points. The errors decrease like
``1 / (epsilon n)`` once the features stand out from the noise.

The data are simulated, so we can show exact diagrams beside private ones.
"""

# %%
# The function and one private diagram
# ------------------------------------
import matplotlib.pyplot as plt
import numpy as np

from sklearn_dptda import CubicalPersistence, DTMFiltration, PrivatePersistence
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.model_selection import privacy_utility_curve, release_replicates
from sklearn_dptda.plotting import (
    FiltrationDisplay,
    PersistenceDiagramDisplay,
    plot_privacy_utility,
)

SIZES, N_RELEASES = np.array([1000, 2000, 4000, 8000]), 50

dtm = DTMFiltration(m=0.2, bounds=(-2.5, 3))
# sphinx_gallery_start_ignore
import os

if os.environ.get("SKLEARN_DPTDA_QUICK"):
    SIZES, N_RELEASES = np.array([1000, 4000]), 2
    dtm.set_params(resolution=31)
# sphinx_gallery_end_ignore
X = make_two_circles(4000, random_state=0)
filtration = dtm.fit_transform([X])
exact = CubicalPersistence().fit_transform(filtration)[0]

private = PrivatePersistence(epsilon=2.0)
release = private.fit_transform(filtration)[0]
print(private.privacy_guarantee_)

figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
FiltrationDisplay(filtration[0], points=X).plot(axes[0])
axes[0].set_title("L1 distance-to-measure, m = 0.2")
PersistenceDiagramDisplay(release, reference=exact, upper=2.2).plot(axes[1])
_ = axes[1].set_title("one private diagram, epsilon = 2")

# %%
# Many releases
# -------------
# Fifty independent releases show the distribution of the mechanism. On sensitive
# data, you would have to pay for each of them.
releases = release_replicates(private, filtration, N_RELEASES, random_state=0)
clouds = [np.concatenate([r[0][q] for r in releases]) for q in (0, 1)]
display = PersistenceDiagramDisplay(clouds, reference=exact, upper=2.2).plot()
_ = display.ax_.set_title(f"{N_RELEASES} private diagrams, epsilon = 2")

# %%
# Error against epsilon
# ---------------------
curve = privacy_utility_curve(
    private,
    filtration,
    param_range=[1, 2, 5, 10],
    n_replicates=N_RELEASES,
    random_state=0,
    n_jobs=2,
)
plot_privacy_utility(curve).set_title(f"n = 4000, slope {curve.slope():.2f}")
print(f"slope of log error against log epsilon, 1 to 10: {curve.slope():.2f}")

# %%
# Error against the number of points
# ----------------------------------
figure, ax = plt.subplots(figsize=(5, 3.8), layout="constrained")
for epsilon, line in ((5.0, "-"), (1.0, "--")):
    errors = []
    for n in SIZES:
        items = dtm.fit_transform([make_two_circles(n, random_state=seed) for seed in range(3)])
        one = privacy_utility_curve(
            private,
            items,
            param_range=[epsilon],
            n_replicates=N_RELEASES // 4 + 1,
            random_state=0,
            n_jobs=2,
        )
        errors.append(one.mean().sum())
    slope = np.polyfit(np.log(SIZES), np.log(errors), 1)[0]
    ax.loglog(SIZES, errors, f"k{line}", marker="o", label=f"epsilon {epsilon:g}: {slope:.2f}")
    print(f"slope of log error against log n at epsilon = {epsilon:g}: {slope:.2f}")
ax.set_xticks(SIZES, labels=[str(n) for n in SIZES])
ax.minorticks_off()
ax.set(xlabel="n", ylabel="bottleneck distance, H0 + H1", title="slopes in n")
ax.legend(frameon=False)
plt.show()
