"""
Loops in six columns: one record is a person
============================================

A delay embedding turns a time series into points, and a period into a loop. Here, the
embedding has six columns, which is too many for a grid. The series of many people are
embedded together. One record is everything that belongs to one person: all of her points,
regardless of their number. :class:`~sklearn_dptda.cluster.PrivateLandmarks` and
:class:`~sklearn_dptda.DTMFiltration` both accept people as records, and both pay.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

from sklearn_dptda import DTMFiltration, PersistenceProfile, PrivacyAccountant
from sklearn_dptda.cluster import PrivateLandmarks
from sklearn_dptda.datasets import make_series
from sklearn_dptda.model_selection import pipeline_guarantee
from sklearn_dptda.plotting import FiltrationDisplay

N_PEOPLE = 600
# sphinx_gallery_start_ignore
import os

if os.environ.get("SKLEARN_DPTDA_QUICK"):
    N_PEOPLE = 300
# sphinx_gallery_end_ignore

# %%
# Simulated series, with or without a period. Each series becomes 17 points in six
# columns: six values with a distance of two steps, at every 18th step.
X, y = make_series(3 * N_PEOPLE, random_state=0)


def embedded(series):
    """Points of one person, of shape (17, 6)."""
    return np.lib.stride_tricks.sliding_window_view(series, 11)[::18, ::2]


populations = {
    name: [embedded(series) for series in X[y == kind][:N_PEOPLE]]
    for kind, name in ((1, "a period"), (0, "none"))
}
# sphinx_gallery_start_ignore
if os.environ.get("SKLEARN_DPTDA_QUICK"):
    # Fewer people would hide the loop. Fewer points of each person do not.
    populations = {name: [one[::9] for one in people] for name, people in populations.items()}
# sphinx_gallery_end_ignore
populations["a period"][0].shape

# %%
# With ``groups=True``, each cloud is a list of arrays, one for each person. Each person
# has the mass of one point, in the landmarks and in the function on them. Two thirds of
# the budget go to the landmarks, and one third to the length of the longest loop. The
# bounds are public, and points outside them are clipped. The seeds make this page
# repeatable. Without seeds, the draws are private.
pipelines, lengths = {}, {}
for name, people in populations.items():
    with PrivacyAccountant(epsilon=3.0, delta=1e-5):
        pipelines[name] = make_pipeline(
            DTMFiltration(
                m=0.2,
                groups=True,
                landmarks=PrivateLandmarks(epsilon=2.0, bounds=(-2, 2), random_state=0),
            ),
            PersistenceProfile(epsilon=1.0, homology_dimensions=1, n_longest=1, random_state=0),
        )
        lengths[name] = pipelines[name].fit_transform([people]).item()
print(pipeline_guarantee(pipelines["a period"]))
for name, pipeline in pipelines.items():
    error = pipeline[-1].release_half_widths_[0]
    print(f"{name}: the longest loop lives {lengths[name]:.2f}, give or take {error:.2f}")

# %%
# The landmarks are private output. The function on them is exact, so its colours and
# the loop are *not* private. Both are drawn in the plane in which the landmarks have
# the largest variance.
_, axes = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
for ax, (name, pipeline) in zip(axes, pipelines.items(), strict=True):
    (function,) = pipeline[0].transform([populations[name]])
    points = np.concatenate(populations[name])[:2000]
    FiltrationDisplay(function, points=points).plot(ax)
    ax.set_title(f"Not private: {name}")
plt.show()
