"""
How much ink does a loop need?
==============================

A handwritten zero has a hole, a one has none. Ink is made of dots, and one dot is one
record: from how many dots on does a private release tell the two apart, and at which
epsilon? One image of 8 by 8 pixels has about 300 dots; all 178 zeros together have 56,415.
The digits ship with scikit-learn.

Protecting a *dot* is a weak promise on purpose: it says how much data a loop needs. To
protect whoever wrote a digit, an image would have to be the record.
"""

# %%
# Images are pooled, 1 to 30 at a time, and each pool is a cloud of dots.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from sklearn_dptda import DTMFiltration, PrivateBettiNumbers, PrivatePersistence
from sklearn_dptda.persistence import not_empty

EPSILONS, POOLS, N_RELEASES = (0.5, 1.0, 2.0, 5.0), (1, 3, 10, 30), 5
# sphinx_gallery_start_ignore
import os

if os.environ.get("SKLEARN_DPTDA_QUICK"):
    N_RELEASES = 2
# sphinx_gallery_end_ignore
digits = load_digits()


def ink(images):
    """A pixel of grey level v holds v dots."""
    dots = []
    for image in images.astype(int):
        row, column = np.nonzero(image)
        dots.append(np.repeat(np.c_[column, 7 - row], image[row, column], axis=0))
    return np.concatenate(dots).astype(float)


def pools(digit, size):
    images = digits.images[digits.target == digit]
    return [ink(images[i * size : (i + 1) * size]) for i in range(min(40, len(images) // size))]


# %%
# Two releases are compared, at the same epsilon. A count of the loops that live for
# more than half a pixel: public knowledge of what a hole is. And a diagram of the loops, which
# says more, and is asked here only whether it is above the noise floor of an empty diagram.
THRESHOLD = 0.5
right = {"count": [], "diagram": []}
for size in POOLS:
    zeros, ones = pools(0, size), pools(1, size)
    functions = DTMFiltration(m=0.1, bounds=(0, 7)).fit_transform(zeros + ones)
    truth = np.repeat([True, False], [len(zeros), len(ones)])
    for scores in right.values():
        scores.append([])
    for epsilon in EPSILONS:
        found = {"count": [], "diagram": []}
        for seed in range(N_RELEASES):
            common = {"homology_dimensions": 1, "random_state": seed}
            count = PrivateBettiNumbers(epsilon, THRESHOLD, max_count=1, **common)
            found["count"].append(np.ravel(count.fit_transform(functions)) > 0)
            diagram = PrivatePersistence(epsilon, **common).fit(functions)
            found["diagram"].append(
                [
                    not_empty(loops, max(diagram.noise_floor_[0], THRESHOLD), dimension=1)
                    for loops in diagram.transform(functions)
                ]
            )
        for name, answers in found.items():
            right[name][-1].append(np.mean(np.array(answers) == truth))
    dots = int(np.mean([len(cloud) for cloud in zeros + ones]))
    cells = "  ".join(
        f"epsilon {epsilon:g}: {a:.2f}, {b:.2f}"
        for epsilon, a, b in zip(EPSILONS, right["count"][-1], right["diagram"][-1], strict=True)
    )
    print(f"{size:3d} images, about {dots:6,d} dots, right by count, by diagram:  {cells}")

# %%
# Ten images are enough for anything here. With one image a diagram needs a large epsilon, and
# the count, which is asked less, gets along with a fifth of it.
figure, (left, *axes) = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
left.imshow(digits.images[digits.target == 0][0], cmap="gray_r")
left.set(xticks=[], yticks=[], title="one zero: about 300 dots of ink")
markers = zip(EPSILONS, ("o-", "^--", "s-.", "D:"), strict=True)
for (column, (epsilon, look)), color in zip(
    enumerate(markers), ("#0072B2", "#D55E00", "#009E73", "#333333"), strict=True
):
    for ax, (name, scores) in zip(axes, right.items(), strict=True):
        values = np.array(scores)[:, column]
        ax.semilogx(POOLS, values, look, color=color, label=f"ε = {epsilon:g}")
        ax.set(xlabel="images of 300 dots", ylim=(0.4, 1.03), title=f"0 or 1, by a private {name}")
        ax.set_xticks(POOLS, labels=[str(size) for size in POOLS])
        ax.minorticks_off()
axes[0].set_ylabel("share of right answers")
axes[1].legend(frameon=False)
plt.show()
