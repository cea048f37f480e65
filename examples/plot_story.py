"""
A ward's vital signs, from raw table to report
==============================================

A hospital has one reading of temperature and pulse from each of 20,000 patients. It wants
to publish what the table looks like: is there a daily cycle, are there groups, and a
synthetic table to work with. No patient may be recognised by it. This page goes the whole
way, and says at each step what it costs and how far its result can be trusted.

The ward is made up, so that the truth may be shown beside what is released: most patients
follow a daily cycle, some have a fever, some are sedated. Real cycles are less clean.

Seeds keep this page as it is. They also undo the privacy of whatever they draw, and each
guarantee below says so. For a real release leave ``random_state`` out: then all noise comes from
the operating system, and is drawn in integers.
"""

# %%
# The table
# ---------
# One record is one row, and one row is one patient. How many there are is public.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_dptda import DTMFiltration, PrivacyAccountant, PrivatePersistence
from sklearn_dptda.cluster import DPMoGMorse
from sklearn_dptda.metric_privacy import PrivateMeasure
from sklearn_dptda.model_selection import plan_release, planned_loss
from sklearn_dptda.persistence import beyond_noise
from sklearn_dptda.plotting import MixtureDensityDisplay, PersistenceDiagramDisplay
from sklearn_dptda.preprocessing import PrivateBounds

N = 20_000


def make_ward(n, rng):
    """Patients in a daily cycle, with fever, and sedated."""
    state = rng.choice(3, n, p=[0.7, 0.2, 0.1])
    angle = rng.uniform(0, 2 * np.pi, n)
    cycle = np.c_[36.8 + 0.7 * np.cos(angle), 72 + 14 * np.sin(angle)]
    levels = np.array([[0.0, 0.0], [39.1, 108.0], [35.2, 48.0]])[state]
    levels[state == 0] = cycle[state == 0]
    spread = np.array([[0.08, 1.6], [0.25, 6.0], [0.15, 4.0]])[state]
    rows = levels + spread * rng.standard_normal((n, 2))
    return pd.DataFrame({"temperature": rows[:, 0].round(2), "pulse": rows[:, 1].round()})


ward = make_ward(N, np.random.default_rng(2026))

# %%
# A budget first
# --------------
# All releases together may cost ``epsilon = 2``. The accountant is a ledger: whatever is
# fitted in its ``with`` block pays into it before anything is computed, and the payment
# that would be too much is refused. ``path="budget.db"`` would keep it in a file.
budget = PrivacyAccountant(epsilon=2.0, delta=1e-6)

# %%
# Bounds, found privately
# -----------------------
# Noise is relative to a box around the data. Its ends must not be read off the table. Where
# the columns say what they can be, write that down, at no cost. Here we pretend to know
# nothing at all, and pay a twentieth of the budget for a private box.
with budget:
    finder = PrivateBounds(0.1, shape="box", random_state=0).fit(ward)
low, high = finder.bounds_
for name, *ends in zip(ward.columns, low, high, strict=True):
    print(f"{name}: from {ends[0]:.1f} to {ends[1]:.1f}")
print(f"share of the patients beyond it, privately: {finder.clipped_share_:.3f}")
print(finder.privacy_guarantee_)

# %%
# From here on the box is public. Degrees and beats per minute get the same unit by it,
# each row by itself.
rows = ((ward - low) / (high - low)).to_numpy()
UNIT = (0.0, 1.0)

# %%
# What will it take to see a cycle?
# ---------------------------------
# A daily cycle is a loop in the plane of two signs. We care about one that swings by an
# eighth of the box or more, that two patients in three follow, give or take a fortieth.
# These are public numbers, and so is the answer. The plan reads no record.
loops_only = PrivatePersistence(homology_dimensions=1)
plan = plan_release(N, UNIT, loop_radius=0.125, share=0.66, spread=0.025, private=loops_only)
print(plan)

# %%
# The other two questions get what is left. What the three cost together is known before
# any of them is asked.
shape = PrivatePersistence(plan.epsilon, homology_dimensions=1, random_state=0)
groups = DPMoGMorse(
    n_components=8, epsilon=0.8, bounds=UNIT, adjacency="replace-one", random_state=0
)
table = PrivateMeasure(0.9, UNIT, adjacency="replace-one", random_state=0)
print(sum((planned_loss(one) for one in (groups, table)), planned_loss(shape)))
print("left of the budget:", budget.remaining())

# %%
# The shape
# ---------
# The distance-to-measure says how far each place is from a share ``m`` of the patients. Its
# loops are what is released. Before it releases, the estimator says what it can show.
public = {"bounds": UNIT, "resolution": plan.resolution, "max_distance": plan.max_distance}
functions = DTMFiltration(plan.m, **public).fit_transform([rows])
shape.fit(functions)
print(shape.error_statement_)

with budget:
    loops = shape.transform(functions)[0]
lives = np.diff(loops, axis=1).ravel()
sure = beyond_noise(loops, shape.error_bound_, dimension=1)
print("loops live for:", np.sort(lives)[::-1].round(3), "of which", sure.sum(), "beyond noise")
print(f"noise floor, for nothing at all: {shape.noise_floor_[0]:.4f}")

# %%
# There is a cycle. That is certain for *these* patients, up to the 5 % in the statement;
# whether another ward has one is a question of sampling.
#
# The groups
# ----------
# A private mixture of eight Gaussians, merged along the saddles of its density. The number
# of groups is not given. Weights come with the standard deviation of their noise.
with budget:
    groups.fit(rows)
again = groups.n_clusters_stability_
print(f"{groups.n_clusters_} groups; as many in {again:.0%} of redraws of the noise")
member = groups.predict(groups.means_)
for k in range(groups.n_clusters_):
    weights, noise = groups.weights_[member == k], groups.weights_noise_[member == k]
    mean = np.average(groups.means_[member == k], axis=0, weights=weights)
    temperature, pulse = low + mean * (high - low)
    print(
        f"{weights.sum():.3f} ± {np.sqrt((noise**2).sum()):.3f} of the patients, "
        f"around {temperature:.1f} °C and {pulse:.0f} per minute"
    )

# %%
# A synthetic table
# -----------------
# A private measure answers questions that nobody has asked yet. Its error bound is in
# Wasserstein distance, in widths of the box: how far mass must be moved at most to get
# from the table to the release, with a probability of 95 %.
with budget:
    table.fit(rows)
synthetic = pd.DataFrame(table.sample(N, random_state=0) * (high - low) + low, columns=ward.columns)
print(f"error of the measure: at most {table.error_bound():.3f} of the width of the box")
print("means of the synthetic table:", synthetic.mean().round(2).to_dict())
print(f"above 38 °C: {(synthetic.temperature > 38).mean():.3f} of the synthetic table")

# %%
# Means of the ward itself would be exact statistics of its patients. Nobody has paid for
# them, and they are not printed.

# %%
# The report
# ----------
# What was paid, and for what. This table, what is printed above, and all pictures below but
# the first may leave the hospital, when they come from a run without seeds.
for spend in budget.spends():
    print(f"epsilon {spend.epsilon:<6g} delta {spend.delta:<6g} {spend.estimator}")
print("left:", budget.remaining())

# %%
# In order: the ward, shown because it is made up; its loops, one of which is beyond noise;
# the density of the private mixture and its groups; the synthetic table.
figure, axes = plt.subplots(2, 2, figsize=(9.6, 8), layout="constrained")
axes = axes.ravel()
few = np.random.default_rng(0).permutation(N)[:4000]
for ax, frame, title in (
    (axes[0], ward, "the ward: not private"),
    (axes[3], synthetic, f"synthetic, ε = {table.epsilon:g}"),
):
    ax.plot(frame.temperature[few], frame.pulse[few], ".", ms=2, color="0.25", alpha=0.4)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), title=title)
    ax.set(xlabel="temperature, °C", ylabel="pulse, per minute")
PersistenceDiagramDisplay(
    [loops],
    homology_dimensions=[1],
    error_bound=shape.error_bound_,
    noise_floor=shape.noise_floor_,
).plot(axes[1], title=f"loops, ε = {shape.epsilon:g}")
MixtureDensityDisplay.from_estimator(groups, bounds=UNIT, ax=axes[2], colorbar=False)
axes[2].set(title=f"groups, ε = {groups.epsilon:g}", xlabel="in units of the box", ylabel="")
plt.show()

# %%
# What is not promised
# --------------------
# - Each patient gave one row. With several rows of a patient the loss of the patient is as
#   many times larger: see ``groups="patient_id"``.
# - How ``n_components=8``, the radius of the loop and the shares of the budget were chosen
#   is not covered. They were chosen without the table; try yours on simulated rows.
# - The reading of a diagram is about these rows, not about all patients there are.
