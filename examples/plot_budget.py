"""
Secure noise, a shared privacy budget, and an audit
===================================================

This example shows three common mistakes, and how the library avoids them.

1. Floating-point noise can reveal the value that it hides: its low bits around 1 differ
   from those around 0. Noise on a public lattice of integers does not have this problem.
2. If a budget is copied, each copy can be spent. Here, all clones pay into one ledger, and
   the payment that would exceed the budget is refused.
3. A claimed epsilon can be wrong. An audit runs a mechanism on two neighbouring data sets
   and computes a lower bound of its privacy loss. It detects a mechanism with half the
   noise.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone

from sklearn_dptda import (
    DTMFiltration,
    PrivacyAccountant,
    PrivacyBudgetExceeded,
    PrivatePersistence,
    audit_epsilon,
)
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.plotting import plot_audit
from sklearn_dptda.privacy import FixedPoint, NoiseSource

# %%
# The attack checks whether each release is a multiple of 2**-53.
n = 200


def numpy_laplace(answer):
    return answer + np.random.default_rng().laplace(size=n)


def lattice_laplace(answer):
    lattice = FixedPoint.for_scale(1.0)
    steps = lattice.encode(np.full(n, answer))
    return lattice.decode(steps + NoiseSource().discrete_laplace(1.0 / lattice.step, n))


def share_off(releases):
    return np.mean(releases * 2.0**53 % 1 != 0)


off = {
    name: [share_off(release(answer)) for answer in (0.0, 1.0)]
    for name, release in (("NumPy", numpy_laplace), ("NoiseSource", lattice_laplace))
}
print("share of releases that are no multiple of 2**-53, for the answers 0 and 1:", off)

# %%
# One ledger that all clones share.
X = DTMFiltration(m=0.2, bounds=(-3, 3.5), resolution=31).fit_transform(
    [make_two_circles(1000, random_state=0)]
)
with PrivacyAccountant(epsilon=1.0) as budget:
    private = PrivatePersistence(epsilon=0.4)
    for _ in range(3):
        try:
            clone(private).fit_transform(X)
        except PrivacyBudgetExceeded as refusal:
            print("refused:", refusal)
print(budget.spends())


# %%
# A count with the noise that epsilon = 1 requires, and a count with half of that noise.
def count(data, random_state=None, scale=1.0):
    return len(data) + NoiseSource(random_state).discrete_laplace(scale, 1)


def careless_count(data, random_state=None):
    return count(data, random_state, scale=0.5)


audits = {
    mechanism.__name__: audit_epsilon(
        mechanism, ["someone"], [], n_runs=10_000, confidence=0.999, random_state=0
    )
    for mechanism in (count, careless_count)
}
for name, result in audits.items():
    print(f"{name}: {result}")

# %%
figure, axes = plt.subplots(1, 3, figsize=(13, 3.8), layout="constrained")
places = np.arange(2)
for shift, (name, shares), hatch in zip((-0.2, 0.2), off.items(), ("//", ""), strict=True):
    colour = "#e69f00" if name == "NumPy" else "#0072b2"
    bars = axes[0].bar(places + shift, shares, 0.38, label=name, color=colour, hatch=hatch)
    axes[0].bar_label(bars, fmt="{:.2f}")
axes[0].set_xticks(places, ("answer 0", "answer 1"))
axes[0].set(ylabel="share of releases", title="No multiple of 2⁻⁵³", ylim=(0, 0.5))
axes[0].legend(loc="upper right")
for ax, (name, result) in zip(axes[1:], audits.items(), strict=True):
    verdict = "refutes" if result.refutes(1.0) else "does not refute"
    title = f"{name}: ε ≥ {result.epsilon:.2f}\n{verdict} ε = 1"
    plot_audit(result, ax).set_title(title)
plt.show()
