"""
Time series: one person, one series
===================================

Each person has a time series, and half of the people have a series with a period. A delay
embedding turns a series into a cloud, and a period into a loop. This example shows how
many people are needed to distinguish the two kinds if everything that belongs to a person
is protected: her series and her label.

A series is *one record*: its lifetimes form a row, and the classifier protects rows
together with their labels. For comparison, the same epsilon is spent on the single points
of the clouds. A person has nearly 300 points, which leaves a 300th of epsilon for each
point, and her label is not protected at all.
"""

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np
from gudhi.point_cloud.timedelay import TimeDelayEmbedding
from gudhi.sklearn import CechPersistence
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_dptda import DiagramFeatures, DTMFiltration, PrivatePersistence
from sklearn_dptda.datasets import make_series
from sklearn_dptda.discriminant_analysis import DPLinearDiscriminantAnalysis
from sklearn_dptda.features import SortedLifetimes
from sklearn_dptda.model_selection import pipeline_guarantee
from sklearn_dptda.population import private_two_sample_test

N_TEST, SIZES, SEEDS = 400, (60, 120, 180, 300, 450, 600), 20
# sphinx_gallery_start_ignore
import os

if os.environ.get("SKLEARN_DPTDA_QUICK"):
    N_TEST, SIZES, SEEDS = 60, (60, 120), 2
# sphinx_gallery_end_ignore
X, y = make_series(N_TEST + max(SIZES), random_state=0)


def standard(clouds):
    """Scale each cloud to about the unit ball, by its own mean and standard deviation."""
    return [(cloud - cloud.mean(axis=0)) / (3 * cloud.std()) for cloud in clouds]


# %%
# Every step before the classifier treats each series separately, with public parameters.
# Therefore, the guarantee for rows also holds for whole series.
embedding = TimeDelayEmbedding(dim=2, delay=3, skip=1)
topology = make_pipeline(
    embedding,
    FunctionTransformer(standard),
    CechPersistence(homology_dimensions=[0, 1]),
    DiagramFeatures(SortedLifetimes(4), value_range=(0, 1)),
)
private = DPLinearDiscriminantAnalysis(
    [0, 1], epsilon=1.0, bounds=(0, 1), unit="one series", random_state=0
)
model = make_pipeline(topology, private).fit(X[N_TEST:], y[N_TEST:])
print(pipeline_guarantee(model))
print(f"accuracy of {max(SIZES)} people: {model.score(X[:N_TEST], y[:N_TEST]):.3f}")

# %%
# How many people are needed? The lifetimes are computed once. Each private fit uses other
# people and other noise.
lifetimes = topology.fit_transform(X)
test = lifetimes[:N_TEST]


def accuracies(make, n):
    """Accuracies of fits on ``n`` people each."""
    scores = []
    for seed in range(SEEDS):
        rows = N_TEST + np.random.default_rng(seed).permutation(len(X) - N_TEST)[:n]
        scores.append(make(seed).fit(lifetimes[rows], y[rows]).score(test, y[:N_TEST]))
    return scores


def private_fit(epsilon):
    """Return a function that makes a private classifier from a seed."""
    return lambda seed: DPLinearDiscriminantAnalysis(
        [0, 1], epsilon=epsilon, bounds=(0, 1), unit="one series", random_state=seed
    )


with warnings.catch_warnings():
    # With few people the noise is large, and the fits warn about it.
    warnings.simplefilter("ignore")
    curves = {
        f"private, epsilon = {epsilon:g}": [accuracies(private_fit(epsilon), n) for n in SIZES]
        for epsilon in (1.0, 3.0)
    }
curves["not private"] = [accuracies(lambda seed: LinearDiscriminantAnalysis(), n) for n in SIZES]
for name, scores in curves.items():
    medians = ", ".join(f"{n}: {np.median(s):.2f}" for n, s in zip(SIZES, scores, strict=True))
    print(f"{name}: {medians}")

# %%
# The same budget for a person, spent on her points one by one: epsilon is divided by their
# number, and the labels are not protected.
n_points = len(embedding.transform([X[0]])[0])
by_points = make_pipeline(
    embedding,
    FunctionTransformer(standard),
    DTMFiltration(0.1, bounds=(-1, 1), resolution=15),
    PrivatePersistence(epsilon=1.0 / n_points, random_state=0),
    DiagramFeatures(SortedLifetimes(4), value_range=(0, 1)),
    LogisticRegression(),
)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    n = SIZES[1]
    per_point = by_points.fit(X[N_TEST : N_TEST + n], y[N_TEST : N_TEST + n])
    chance = per_point.score(X[:N_TEST], y[:N_TEST])
print(f"{n_points} points a person, epsilon = 1 for a person: accuracy {chance:.3f}")

# %%
# Do the two kinds differ at all? This release is a yes or no, and protects everything that
# belongs to a person.
rows, kinds = lifetimes[N_TEST : N_TEST + 120], y[N_TEST : N_TEST + 120]
answer = private_two_sample_test(
    rows[kinds == 0], rows[kinds == 1], bounds=(0, 1), unit="one series", random_state=0
)
print(answer)

# %%
_, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained", width_ratios=[1, 1, 1.5])
for ax, kind, name in zip(axes, (1, 0), ("a period", "no period"), strict=False):
    series = X[int(np.flatnonzero(y == kind)[0])]
    (cloud,) = standard(embedding.transform([series]))
    ax.plot(*cloud.T, ".", color="#0072B2" if kind else "#D55E00", ms=4)
    ax.set(title=f"one person: {name}", aspect="equal", xlabel="$x_t$", ylabel="$x_{t+3}$")
for (name, scores), line in zip(curves.items(), ("o-", "^-", "k--"), strict=True):
    low, middle, high = np.quantile(scores, [0.25, 0.5, 0.75], axis=1)
    axes[2].plot(SIZES, middle, line, label=name)
    axes[2].fill_between(SIZES, low, high, alpha=0.15)
axes[2].axhline(chance, color="#999999", linestyle=":", label="epsilon = 1, paid point by point")
axes[2].set(title="all of a person protected", xlabel="people", ylabel="accuracy", ylim=(0.4, 1.01))
axes[2].legend(fontsize="small")
plt.show()
