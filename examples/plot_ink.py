"""
How much ink does a loop need?
==============================

A handwritten zero has a hole, and a one has none. In this example, ink consists of dots, and
one dot is one record. How many dots does a private release need to distinguish the two digits,
and at which epsilon? One image of 8 by 8 pixels has about 300 dots. All 178 zeros together
have 56,415 dots. The digits are included in scikit-learn.

Protecting a *dot* is a weak guarantee. We use it on purpose, because it shows how much data a
loop needs. To protect the person who wrote a digit, the record would have to be an image.
"""

# %%
# We pool 1 to 30 images at a time. Each pool is a cloud of dots.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from sklearn_dptda import DTMFiltration, PrivateBettiNumbers, PrivatePersistence
from sklearn_dptda.persistence import not_empty

EPSILONS, POOLS = (0.5, 1.0, 2.0, 5.0), (1, 3, 10, 30)
MOST_POOLS, N_RELEASES = 40, 5
# sphinx_gallery_start_ignore
import os

if os.environ.get("SKLEARN_DPTDA_QUICK"):
    POOLS, MOST_POOLS, N_RELEASES = (1, 3, 10), 2, 1
# sphinx_gallery_end_ignore
digits = load_digits()


def ink(images):
    """A pixel with grey level v contains v dots."""
    dots = []
    for image in images.astype(int):
        row, column = np.nonzero(image)
        dots.append(np.repeat(np.c_[column, 7 - row], image[row, column], axis=0))
    return np.concatenate(dots).astype(float)


def pools(digit, size):
    images = digits.images[digits.target == digit]
    n_pools = min(MOST_POOLS, len(images) // size)
    return [ink(images[i * size : (i + 1) * size]) for i in range(n_pools)]


# %%
# We compare two releases at the same epsilon. The first one is a count of the loops whose
# persistence is more than half a pixel, a threshold that follows from public knowledge of a
# hole. The second one is a diagram of the loops. A diagram contains more information. Here we
# only check whether it has a loop above the noise floor of an empty diagram.
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
# Ten images are enough for both releases. With one image, a diagram needs a large epsilon. The
# count answers a simpler question, and needs a fifth of that epsilon.
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
