"""
The cost of a box that is too wide
==================================

Bounds are public, and you may not look at the data to set them. They are therefore often too wide.
The noise is proportional to the box, but a private cap of distances compensates for a box that is a
few times too wide. How much accuracy is lost, and which methods find the data in a wide box?

For two circles, this example compares diagrams in a box that is too wide with diagrams in a box
that :class:`~sklearn_dptda.preprocessing.PrivateBounds` finds inside it, for a tenth of epsilon.
For two moons, it compares peaks of a histogram and a mixture. Both spend a share of epsilon on
locating their rows, before they count or measure them.
"""

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score

from sklearn_dptda import (
    CubicalPersistence,
    DTMFiltration,
    PrivatePersistence,
    bottleneck_distance,
)
from sklearn_dptda.cluster import DPMoGMorse, DPToMATo
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.preprocessing import PrivateBounds

WIDTHS, N_BOXES, N_RELEASES = [1, 3, 10, 100, 1000], 10, 5
# sphinx_gallery_start_ignore
import os

if os.environ.get("SKLEARN_DPTDA_QUICK"):
    WIDTHS, N_BOXES, N_RELEASES = [1, 100], 1, 1
# sphinx_gallery_end_ignore
EPSILON = 1.0


def box(width):
    """A box that is ``width`` times as wide as the data, and not centred on them."""
    side = 5.5
    low = -2.5 - 0.37 * side * (width - 1)
    return low, low + side * width


def finite(diagrams, upper):
    """The diagrams without the essential class, whose death is the bound of the values."""
    return [diagram[diagram[:, 1] < upper - 1e-9] for diagram in diagrams]


X = make_two_circles(4000, random_state=0)
tight = DTMFiltration(0.2, bounds=box(1)).fit_transform([X])
exact = finite(CubicalPersistence().fit_transform(tight)[0], tight[0].upper)
empty = sum(bottleneck_distance(diagram, []) for diagram in exact)


def mean_error(bounds, epsilon):
    """Mean distance to the exact diagrams, over all releases in all boxes."""
    errors = []
    for seed in range(N_BOXES):
        if isinstance(bounds, PrivateBounds):
            bounds.set_params(random_state=seed)
        filtrations = DTMFiltration(0.2, bounds=bounds).fit_transform([X])
        for i in range(N_RELEASES):
            private = PrivatePersistence(epsilon, random_state=N_RELEASES * seed + i)
            released = finite(private.fit_transform(filtrations)[0], filtrations[0].upper)
            errors.append(sum(map(bottleneck_distance, released, exact)))
    return float(np.mean(errors))


given = [mean_error(box(width), EPSILON) for width in WIDTHS]
found = [
    mean_error(PrivateBounds(0.1 * EPSILON, start=box(width)), 0.9 * EPSILON) for width in WIDTHS
]
without = mean_error(PrivateBounds(0.1 * EPSILON), 0.9 * EPSILON)
print("width of the box", *WIDTHS)
print("error in the box", *np.round(given, 3))
print("error in a private box", *np.round(found, 3), "; without any start", round(without, 3))

# %%
# Both kinds of diagrams have the same total loss: the cost of the private box is subtracted from
# the epsilon of its diagrams. The two clusterings do not depend noticeably on the width of the box.
moons, y = make_moons(5000, noise=0.08, random_state=0)


def mean_score(model, width):
    """Mean adjusted Rand index over the seeds."""
    model.set_params(bounds=(-1.3 * width, 2.3 * width))
    fits = [model.set_params(random_state=seed).fit_predict(moons) for seed in range(N_BOXES)]
    return np.mean([adjusted_rand_score(y, labels) for labels in fits])


warnings.filterwarnings("ignore", message="n_clusters=2, but the private histogram")
models = DPMoGMorse(2, 8, epsilon=EPSILON), DPToMATo(2, epsilon=EPSILON)
scores = {type(m).__name__: [mean_score(m, width) for width in WIDTHS] for m in models}
for name, values in scores.items():
    print(name, *np.round(values, 2))

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
left.semilogx(WIDTHS, given, "o-", color="#0072B2", label="in the box")
left.semilogx(WIDTHS, found, "s--", color="#D55E00", label="in a private box inside")
left.axhline(without, color="#009E73", linestyle="-.", label="private box, no start")
left.axhline(empty, color="0.4", linestyle=":", label="an empty diagram")
left.set(xlabel="width of the box / width of the data", ylabel="bottleneck distance, H0 + H1")
left.set(title=f"two circles, total epsilon {EPSILON:g}", ylim=(0, None))
left.legend(frameon=False)
for (name, values), style in zip(scores.items(), ("o-", "s--"), strict=True):
    right.semilogx(WIDTHS, values, style, label=name)
right.set(xlabel="width of the box / width of the data", ylabel="adjusted Rand index")
right.set(title=f"two moons, total epsilon {EPSILON:g}", ylim=(-0.05, 1.05))
right.legend(frameon=False)
plt.show()
