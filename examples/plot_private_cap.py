"""
A private cap of distances
==========================

``DTMFiltration`` caps distances: longer distances count as the cap. The noise is proportional to
the cap. If the cap is half the longest side of the box, a box that is three times too wide makes
the error three times as large. A cap that is smaller than the features hides them. The best cap
depends on the data.

:class:`~sklearn_dptda.PrivatePersistence` therefore draws the cap together with the diagrams, in
one draw and for the epsilon of one draw. With ``max_distance=None`` you get a fixed cap of half
the longest side of the box, and a number is a public cap of your own.
"""

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np

from sklearn_dptda import (
    CubicalPersistence,
    DTMFiltration,
    PrivatePersistence,
    bottleneck_distance,
)
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.privacy import NoiseWarning

WIDTHS, N_RELEASES = [1, 1.5, 2, 3, 4.5], 20
# sphinx_gallery_start_ignore
import os

if os.environ.get("SKLEARN_DPTDA_QUICK"):
    WIDTHS, N_RELEASES = [1, 3], 2
# sphinx_gallery_end_ignore
EPSILON = 1.0
warnings.simplefilter("ignore", NoiseWarning)

X = make_two_circles(4000, random_state=101)


def functions(width, max_distance):
    """The function of the cloud, in a box that is ``width`` times as wide as needed."""
    box = 0.25 - 2.75 * width, 0.25 + 2.75 * width
    return DTMFiltration(0.2, bounds=box, max_distance=max_distance).fit_transform([X])


# %%
# Errors
# ------
# The figure shows the errors of the loops of two circles of 4,000 points, released at epsilon 1
# in boxes of increasing width. The errors are distances to the exact diagram. Half of all
# releases are between the lower and the upper line.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for max_distance, colour, name in ((None, "C1", "default cap"), ("private", "C0", "private cap")):
    quartiles, caps = [], []
    for width in WIDTHS:
        F = functions(width, max_distance)
        (exact,) = CubicalPersistence(1).fit_transform(F)
        errors = []
        for seed in range(N_RELEASES):
            private = PrivatePersistence(EPSILON, homology_dimensions=1, random_state=seed)
            errors.append(bottleneck_distance(private.fit_transform(F)[0], exact))
            caps.append(private.cap_[0])
        quartiles.append(np.quantile(errors, [0.25, 0.5, 0.75]))
    low, middle, high = np.transpose(quartiles)
    print(f"{name}: medians {np.round(middle, 3).tolist()}, caps from {min(caps):.2f}")
    left.fill_between(WIDTHS, low, high, color=colour, alpha=0.25, linewidth=0)
    left.plot(WIDTHS, middle, "o-", color=colour, label=name)
left.set(xlabel="width of the box (1: tight)", ylabel="error of loops", ylim=(0, None))
_ = left.legend(frameon=False)

# %%
# The released diagrams
# ---------------------
# Here, the box is three times too wide. The cap is a part of the release, and the diagrams are
# those of the function with this cap, so no death exceeds it.
F = functions(3, "private")
private = PrivatePersistence(EPSILON, homology_dimensions=1, random_state=0)
(loops,) = private.fit_transform(F)
(exact,) = CubicalPersistence(1).fit_transform(F)
(fixed,) = PrivatePersistence(EPSILON, homology_dimensions=1, random_state=0).fit_transform(
    functions(3, None)
)
print(f"cap drawn: {private.cap_[0]:.2f}, default: {F[0].upper:.2f}")
print(f"error bound before the release: {private.error_bound_:.2f}, ", end="")
print(f"under the cap that was drawn: {private.error_bounds_[0]:.2f}")
right.plot([0, 3], [0, 3], color="0.7", linewidth=1)
right.axhline(private.cap_[0], color="C0", linestyle=":", linewidth=1)
right.scatter(*exact.T, s=90, facecolors="none", edgecolors="0.2", label="exact")
right.scatter(*fixed.T, marker="x", color="C1", label=f"default cap: {len(fixed)} loops")
right.scatter(*loops.T, s=18, color="C0", label="private cap")
right.set(xlabel="birth", ylabel="death", xlim=(0, 3), ylim=(0, 3), aspect="equal")
right.legend(frameon=False, loc="lower right")
plt.show()

# %%
# A public cap
# ------------
# If you look for a loop of a known radius, use this radius as a public cap, because points that
# are farther away carry no information about the loop.
# :func:`~sklearn_dptda.model_selection.plan_release` accepts it, and reports the gain.
from sklearn_dptda.model_selection import plan_release

# sphinx_gallery_start_ignore
if os.environ.get("SKLEARN_DPTDA_QUICK"):
    from functools import partial

    # The search chooses this mass, and takes half of the time if there are no others.
    plan_release = partial(plan_release, m=0.1)
# sphinx_gallery_end_ignore
print(plan_release(4000, bounds=(-8, 8.5), loop_radius=1.0, share=0.5, spread=0.1))
